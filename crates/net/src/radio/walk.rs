//! Random waypoint: go to a uniform point at a uniform speed, rest, go on (Johnson and Maltz 1996).
//!
//! A walk is followed leg by leg in closed form, and only when somebody asks where it is. It begins at the station's
//! placement, not in the walk's stationary law: speeds and places need some legs to settle.

use mqttlab_units::{Dice, Duration, Instant, Seed};

use super::point::Point;
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
    /// What was walked before this leg.
    walked_m: f64,
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
            walked_m: 0.0,
            dice: seed.dice(),
        }
    }

    /// Where it is. Must be asked in the order of time: an earlier time than the present leg's gives the leg's start.
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

    /// How far it has walked until then. Asked as [`Walk::position`] is.
    pub(crate) fn walked_m(&mut self, at: Instant) -> f64 {
        let here = self.position(at);
        self.walked_m + metres_between(self.from, here)
    }

    fn next_leg(&mut self) {
        self.walked_m += metres_between(self.from, self.to);
        self.from = self.to;
        self.to = [0, 1].map(|axis| self.dice.uniform() * self.size[axis]);
        let [slowest, fastest] = self.speed_m_s;
        let speed_m_s = slowest + self.dice.uniform() * (fastest - slowest);
        let metres = metres_between(self.from, self.to);
        self.depart = self.arrive + self.pause;
        // At least a nanosecond, so that a walk in a point does not stand still for ever.
        self.arrive = self.depart + Duration::from_s_f64(metres / speed_m_s).max(Duration::from_ns(1));
    }
}

fn metres_between(a: Point, b: Point) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk() -> Walk {
        let mobility = MobilitySpec::RandomWaypoint {
            width_mm: 200_000,
            height_mm: 100_000,
            speed_min_mm_s: 1_000,
            speed_max_mm_s: 5_000,
            pause: Duration::from_s(2),
            refresh: Duration::from_ms(100),
        };
        Walk::new(&mobility, [7.0, 8.0], Seed(1))
    }

    #[test]
    fn a_walk_stays_in_its_area_and_never_exceeds_its_speed() {
        let mut walk = walk();
        let mut last = walk.position(Instant::ZERO);
        assert_eq!(last, [7.0, 8.0]);
        for step in 1..100_000_u64 {
            let here = walk.position(Instant::from_ns(step * 100_000_000));
            assert!((0.0..=200.0).contains(&here[0]) && (0.0..=100.0).contains(&here[1]), "{here:?}");
            assert!(metres_between(last, here) <= 5.0 * 0.1 + 1e-6, "{last:?} {here:?}");
            last = here;
        }
    }

    #[test]
    fn legs_have_uniform_speeds_and_pauses_between_them() {
        let mut walk = walk();
        let mut speeds = Vec::new();
        for _ in 0..10_000 {
            let rested = walk.arrive;
            walk.next_leg();
            assert_eq!(walk.depart, rested + Duration::from_s(2));
            assert_eq!(walk.position(walk.depart), walk.from);
            speeds.push(metres_between(walk.from, walk.to) / walk.arrive.since(walk.depart).as_s_f64());
        }
        assert!(speeds.iter().all(|speed| (0.999..=5.001).contains(speed)));
        // Uniform in 1 to 5 m/s: mean 3, standard deviation 4 / sqrt(12); five standard errors.
        let mean = speeds.iter().sum::<f64>() / 1e4;
        assert!((mean - 3.0).abs() < 5.0 * 1.155 / 100.0, "{mean}");
    }

    #[test]
    fn a_walk_is_where_it_is_however_often_it_is_asked() {
        let (mut often, mut seldom) = (walk(), walk());
        for second in 0..5000 {
            often.position(Instant::from_ns(second * 1_000_000_000));
        }
        let at = Instant::from_ns(5000 * 1_000_000_000);
        assert_eq!(often.position(at), seldom.position(at));
        assert_eq!(often.walked_m(at), seldom.walked_m(at));
    }
}
