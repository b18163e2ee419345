//! Where stations are, and who hears whom how loud.

use mqttlab_units::{Duration, Instant, Seed};

use super::level::Levels;
use super::point::Point;
use super::spec::{MobilitySpec, PlacementSpec};
use super::walk::Walk;

/// Positions and the powers between them. A station's row is made when it first sends, and made again at its first
/// transmission of each refresh interval where stations move; it stays as it is while the station is sending.
#[derive(Clone, Debug)]
pub(crate) struct StationField {
    positions: Vec<Point>,
    walks: Vec<Walk>,
    refresh: Option<Duration>,
    /// Refresh interval that the positions belong to, counted from 1.
    epoch: u64,
    rows: Vec<PowerRow>,
    reach_m2: f64,
}

#[derive(Clone, Debug, Default)]
struct PowerRow {
    epoch: u64,
    near: Vec<Neighbour>,
}

/// A station that hears another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbour {
    pub(crate) station: u32,
    /// How loud, in attowatts.
    pub(crate) power: u64,
}

impl StationField {
    pub(crate) fn new(
        placement: &PlacementSpec,
        mobility: &MobilitySpec,
        levels: &Levels,
        seed: Seed,
    ) -> Self {
        let positions = placed(placement, seed);
        StationField {
            rows: vec![PowerRow::default(); positions.len()],
            walks: walks(mobility, &positions, seed),
            positions,
            refresh: match mobility {
                MobilitySpec::None => None,
                MobilitySpec::RandomWaypoint { refresh, .. } => Some(*refresh),
            },
            epoch: 1,
            reach_m2: levels.reach_m2(),
        }
    }

    /// Who hears this station, as it was last made. Stations in the order of their numbers.
    pub(crate) fn row(&self, station: usize) -> &[Neighbour] {
        &self.rows[station].near
    }

    /// Makes a station's row where it is out of date.
    pub(crate) fn update(&mut self, now: Instant, station: usize, levels: &Levels) {
        self.advance(now);
        if self.rows[station].epoch == self.epoch {
            return;
        }
        let here = self.positions[station];
        let row = &mut self.rows[station];
        row.epoch = self.epoch;
        row.near.clear();
        // In the order of station numbers: the order in which receivers begin must not depend on places.
        for (other, there) in self.positions.iter().enumerate() {
            let squared_m2 = squared_distance(here, *there);
            if squared_m2 > self.reach_m2 || other == station {
                continue;
            }
            let power = levels.received(squared_m2);
            if power > 0 {
                row.near.push(Neighbour { station: other as u32, power });
            }
        }
    }

    /// The power between two stations at the start of the refresh interval.
    pub(crate) fn power(&mut self, now: Instant, from: usize, to: usize, levels: &Levels) -> u64 {
        self.advance(now);
        levels.received(squared_distance(self.positions[from], self.positions[to]))
    }

    /// Where a station is. To ask does not advance its walk, so that rows do not depend on who looks.
    pub(crate) fn position(&self, now: Instant, station: usize) -> Point {
        match self.walks.get(station) {
            Some(walk) => walk.clone().position(now),
            None => self.positions[station],
        }
    }

    /// All positions are taken at the start of each refresh interval in which somebody asks.
    fn advance(&mut self, now: Instant) {
        let Some(refresh) = self.refresh else { return };
        let intervals = now.as_ns() / refresh.as_ns();
        if self.epoch == intervals + 1 {
            return;
        }
        self.epoch = intervals + 1;
        // At the interval's start and not now: who asks first must not decide on the positions of all.
        let start = Instant::ZERO + refresh * intervals;
        for (position, walk) in self.positions.iter_mut().zip(&mut self.walks) {
            *position = walk.position(start);
        }
    }
}

fn squared_distance(a: Point, b: Point) -> f64 {
    (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)
}

/// How stations walk from their places, by the medium's seed; nobody where they stand still.
pub(super) fn walks(mobility: &MobilitySpec, from: &[Point], seed: Seed) -> Vec<Walk> {
    if *mobility == MobilitySpec::None {
        return Vec::new();
    }
    let seed = seed.derive("mobility");
    from.iter().zip(0..).map(|(from, station)| Walk::new(mobility, *from, seed.index(station))).collect()
}

/// Where stations are at the start, by the medium's seed.
pub(super) fn placed(placement: &PlacementSpec, seed: Seed) -> Vec<Point> {
    let seed = seed.derive("placement");
    let metres = |mm: u64| mm as f64 / 1e3;
    match placement {
        PlacementSpec::Explicit { positions } => {
            positions.iter().map(|p| [p.x_mm as f64 / 1e3, p.y_mm as f64 / 1e3]).collect()
        }
        PlacementSpec::Grid { stations, spacing_mm } => {
            let columns = (1..).find(|c| c * c >= *stations).expect("a square root");
            let point = |i: u32| {
                [metres(*spacing_mm) * (i % columns) as f64, metres(*spacing_mm) * (i / columns) as f64]
            };
            (0..*stations).map(point).collect()
        }
        PlacementSpec::Random { stations, width_mm, height_mm } => {
            let mut dice = seed.dice();
            (0..*stations)
                .map(|_| [metres(*width_mm) * dice.uniform(), metres(*height_mm) * dice.uniform()])
                .collect()
        }
    }
}
