//! Where the stations of a channel are, for whoever wants to draw or record it.
//!
//! Placement and walks follow from the spec and the seed alone, so that nobody has to ask the channel itself: its emulator may be
//! in another thread, and its walks must not depend on who looks.

use mqttlab_units::{Instant, Seed};

use super::field::{placed, point, walks};
use super::point::Point;
use super::spec::{MediumSpec, Position};
use super::walk::Walk;

/// The places of a medium's stations over time, the same that a [`Medium`](super::Medium) of this spec and seed reckons with.
#[derive(Clone, Debug)]
pub struct Whereabouts {
    starts: Vec<Point>,
    /// Empty where stations stand still.
    walks: Vec<Walk>,
}

impl Whereabouts {
    /// Of a medium that is made from the same.
    pub fn new(spec: &MediumSpec, seed: Seed) -> Self {
        let seed = seed.derive(&spec.name);
        let starts = placed(&spec.placement, seed);
        Whereabouts { walks: walks(&spec.mobility, &starts, seed), starts }
    }

    /// Whether stations move at all.
    pub fn is_moving(&self) -> bool {
        !self.walks.is_empty()
    }

    /// A station that stands still stands elsewhere from now on.
    ///
    /// # Panics
    /// When there is no such station.
    pub fn place(&mut self, station: usize, position: Position) {
        self.starts[station] = point(position);
    }

    /// Where a station is. To be asked in the order of time.
    ///
    /// # Panics
    /// When there is no such station.
    pub fn position(&mut self, at: Instant, station: usize) -> Position {
        let point = match self.walks.get_mut(station) {
            Some(walk) => walk.position(at),
            None => self.starts[station],
        };
        let [x_mm, y_mm] = point.map(|metres| (metres * 1e3).round() as i64);
        Position { x_mm, y_mm }
    }
}

#[cfg(test)]
mod tests {
    use mqttlab_units::{Bytes, Duration};

    use super::super::spec::{MobilitySpec, PlacementSpec};
    use super::super::{EnergyProfile, Input, MacSpec, Medium, PhySpec, RadioSpec};
    use super::*;

    #[test]
    fn they_are_where_the_medium_has_them_whatever_it_carries() {
        let spec = MediumSpec {
            name: "air".into(),
            phy: PhySpec::preset("b-11").unwrap(),
            mac: MacSpec::standard(),
            radio: RadioSpec::preset("b-11").unwrap(),
            channel: None,
            interferers: Vec::new(),
            placement: PlacementSpec::Random { stations: 5, width_mm: 100_000, height_mm: 50_000 },
            mobility: MobilitySpec::RandomWaypoint {
                width_mm: 100_000,
                height_mm: 50_000,
                speed_min_mm_s: 1_000,
                speed_max_mm_s: 9_000,
                pause: Duration::from_s(1),
                refresh: Duration::from_ms(100),
            },
            energy: EnergyProfile::preset("mica2").unwrap(),
        };
        let mut medium = Medium::new(spec.clone(), Seed(7));
        let mut whereabouts = Whereabouts::new(&spec, Seed(7));
        assert!(whereabouts.is_moving());
        let start = whereabouts.position(Instant::ZERO, 3);
        for second in 0..200 {
            let now = Instant::from_ns(second * 1_000_000_000);
            medium.handle(now, Input::Send { frame: second, from: 0, to: 1, size: Bytes(100) });
            while medium.poll().is_some() {}
            for station in 0..5 {
                assert_eq!(whereabouts.position(now, station), medium.position(station), "{second} s");
            }
        }
        assert_ne!(whereabouts.position(Instant::from_ns(200_000_000_000), 3), start);
    }
}
