//! Random waypoint: go to a uniform point at a uniform speed, rest, go on (Johnson and Maltz 1996).
//!
//! A walk is followed leg by leg in closed form, and only when somebody asks where it is. It begins at the station's
//! placement, not in the walk's stationary law: speeds and places need some legs to settle.

use mqttlab_units::{Dice, Duration, Instant, Seed};

use super::field::Point;
use super::spec::MobilitySpec;

/// One station's walk.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    size: Point,
    speed_m_s: [f64; 2],
    pause: Duration,
    from: Point,
    to: Point,
    depart: Instant,
    arrive: Instant,
    dice: Dice,
}

impl Walk {
    /// A walk that begins with a pause at `from`.
    pub(crate) fn new(mobility: &MobilitySpec, from: Point, seed: Seed) -> Self {
        let MobilitySpec::RandomWaypoint {
            width_mm, height_mm, speed_min_mm_s, speed_max_mm_s, pause, ..
        } = *mobility
        else {
            panic!("a walk was made of stations that do not move");
        };
        let metres = |mm: u64| mm as f64 / 1e3;
        Walk {
            size: [metres(width_mm), metres(height_mm)],
            speed_m_s: [metres(speed_min_mm_s), metres(speed_max_mm_s)],
            pause,
            from,
            to: from,
            depart: Instant::ZERO,
            arrive: Instant::ZERO,
            dice: seed.dice(),
        }
    }

    /// Where it is. Asked in the order of time, it follows the walk; an earlier time than the present leg's gives
    /// the leg's start.
    pub(crate) fn position(&mut self, at: Instant) -> Point {
        while at >= self.arrive + self.pause {
            self.next_leg();
        }
        let Some(gone) = at.checked_since(self.depart) else { return self.from };
        let leg = self.arrive.since(self.depart);
        if gone >= leg {
            return self.to;
        }
        let share = gone.as_ns() as f64 / leg.as_ns() as f64;
        [0, 1].map(|axis| self.from[axis] + share * (self.to[axis] - self.from[axis]))
    }

    fn next_leg(&mut self) {
        self.from = self.to;
        self.to = [0, 1].map(|axis| self.dice.uniform() * self.size[axis]);
        let [slowest, fastest] = self.speed_m_s;
        let speed_m_s = slowest + self.dice.uniform() * (fastest - slowest);
        let metres = (self.to[0] - self.from[0]).hypot(self.to[1] - self.from[1]);
        self.depart = self.arrive + self.pause;
        // At least a nanosecond, so that a walk in a point does not stand still for ever.
        self.arrive = self.depart + Duration::from_s_f64(metres / speed_m_s).max(Duration::from_ns(1));
    }
}
