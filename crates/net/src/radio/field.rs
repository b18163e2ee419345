//! Where stations are, and who hears whom how loud.

use mqttlab_units::{Duration, Instant, Seed};

use super::fading::Fading;
use super::level::{Levels, ratio};
use super::point::Point;
use super::shadowing::Shadowing;
use super::spec::{MediumSpec, MobilitySpec, PlacementSpec, Position};
use super::walk::Walk;

/// Positions and the powers between them. Interferers have the numbers behind those of stations. A station's row is made when it first sends, and made again at its first
/// transmission of each refresh interval where stations move; it stays as it is while the station is sending.
#[derive(Clone, Debug)]
pub(crate) struct StationField {
    positions: Vec<Point>,
    walks: Vec<Walk>,
    refresh: Option<Duration>,
    /// Refresh interval that the positions belong to, counted from 1.
    epoch: u64,
    /// How far each station has walked.
    walked_m: Vec<f64>,
    rows: Vec<PowerRow>,
    reach_m2: f64,
    shadowing: Option<Shadowing>,
    fading: Option<Fading>,
    stations: usize,
    /// How many times as loud as a station each interferer is.
    loudness: Vec<f64>,
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
    /// How loud on average over reflections, in attowatts.
    mean: u64,
    /// How loud in this transmission.
    pub(crate) power: u64,
}

impl StationField {
    pub(crate) fn new(spec: &MediumSpec, levels: &Levels, seed: Seed) -> Self {
        let mut positions = placed(&spec.placement, seed);
        let stations = positions.len();
        let walks = walks(&spec.mobility, &positions, seed);
        positions.extend(spec.interferers.iter().map(|interferer| point(interferer.position)));
        let louder = |spec_mdbm: i32| ratio(spec_mdbm - spec.radio.transmit_power_mdbm);
        let shadowing = spec.radio.shadowing.as_ref().map(|spec| Shadowing::new(spec, seed));
        StationField {
            rows: vec![PowerRow::default(); positions.len()],
            walked_m: vec![0.0; positions.len()],
            walks,
            positions,
            refresh: match &spec.mobility {
                MobilitySpec::None => None,
                MobilitySpec::RandomWaypoint { refresh, .. } => Some(*refresh),
            },
            epoch: 1,
            // Behind no obstacle, a station may be heard from anywhere.
            reach_m2: if shadowing.is_some() { f64::INFINITY } else { levels.reach_m2() },
            shadowing,
            fading: spec.radio.fading.as_ref().map(|spec| Fading::new(spec, seed)),
            stations,
            loudness: spec.interferers.iter().map(|interferer| louder(interferer.power_mdbm)).collect(),
        }
    }

    /// Who hears this station, as it was last made. Stations in the order of their numbers.
    pub(crate) fn row(&self, station: usize) -> &[Neighbour] {
        &self.rows[station].near
    }

    /// Makes a station's row as it is for a transmission that begins now.
    pub(crate) fn update(&mut self, now: Instant, station: usize, levels: &Levels) {
        self.advance(now);
        if self.rows[station].epoch != self.epoch {
            self.make_row(station, levels);
        }
        let loudness = self.loudness_of(station);
        let Some(fading) = &self.fading else { return };
        for near in &mut self.rows[station].near {
            let gain = fading.gain(now, station, near.station as usize);
            near.power = levels.varied(near.mean as f64, loudness, gain);
        }
    }

    fn make_row(&mut self, station: usize, levels: &Levels) {
        let mut row = std::mem::take(&mut self.rows[station]);
        row.epoch = self.epoch;
        row.near.clear();
        // In the order of station numbers: the order in which receivers begin must not depend on places.
        let reach_m2 = if station < self.stations { self.reach_m2 } else { f64::INFINITY };
        for other in 0..self.stations {
            let squared_m2 = squared_distance(self.positions[station], self.positions[other]);
            if squared_m2 > reach_m2 || other == station {
                continue;
            }
            let mean = self.mean_power(station, other, levels);
            if mean > 0 {
                row.near.push(Neighbour { station: other as u32, mean, power: mean });
            }
        }
        self.rows[station] = row;
    }

    /// The power between two stations at the start of the refresh interval, on average over reflections.
    pub(crate) fn power(&mut self, now: Instant, from: usize, to: usize, levels: &Levels) -> u64 {
        self.advance(now);
        self.mean_power(from, to, levels)
    }

    fn mean_power(&mut self, from: usize, to: usize, levels: &Levels) -> u64 {
        let squared_m2 = squared_distance(self.positions[from], self.positions[to]);
        let loudness = self.loudness_of(from);
        let Some(shadowing) = &mut self.shadowing else { return levels.received(squared_m2, loudness, 1.0) };
        let way_m = self.walked_m[from] + self.walked_m[to];
        levels.received(squared_m2, loudness, shadowing.gain(from, to, way_m))
    }

    /// How many times as loud as a station a station or an interferer is.
    fn loudness_of(&self, number: usize) -> f64 {
        number.checked_sub(self.stations).map_or(1.0, |interferer| self.loudness[interferer])
    }

    /// The times after which powers are others, though nobody is told.
    pub(crate) fn intervals(&self) -> Vec<Duration> {
        self.refresh.into_iter().chain(self.fading.as_ref().map(Fading::coherence)).collect()
    }

    /// Where a station is. To ask does not advance its walk, so that rows do not depend on who looks.
    pub(crate) fn position(&self, now: Instant, station: usize) -> Point {
        match self.walks.get(station) {
            Some(walk) => walk.clone().position(now),
            None => self.positions[station],
        }
    }

    /// A station stands elsewhere. What is on the air keeps its powers.
    pub(crate) fn place(&mut self, station: usize, position: Position) {
        assert!(self.walks.is_empty(), "a station that walks was placed");
        let there = point(position);
        self.walked_m[station] += squared_distance(self.positions[station], there).sqrt();
        self.positions[station] = there;
        // All rows are out of date.
        self.epoch += 1;
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
        for (station, walk) in self.walks.iter_mut().enumerate() {
            self.positions[station] = walk.position(start);
            self.walked_m[station] = walk.walked_m(start);
        }
    }
}

fn squared_distance(a: Point, b: Point) -> f64 {
    (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)
}

pub(super) fn point(position: Position) -> Point {
    [position.x_mm as f64 / 1e3, position.y_mm as f64 / 1e3]
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
        PlacementSpec::Explicit { positions } => positions.iter().copied().map(point).collect(),
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
