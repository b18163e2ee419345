//! IEEE 802.11 against first principles, in virtual time.

mod change;
mod contention;
mod exchange;
mod interference;
mod listening;
mod scale;
mod stage;
mod variation;

use mqttlab_net::radio::{
    EnergyProfile, ErrorModel, FadingSpec, Finished, Input, MacSpec, Medium, MediumSpec, MobilitySpec,
    Outcome, Output, PhySpec, PlacementSpec, Position, RadioSpec, ShadowingSpec,
};
use mqttlab_units::{Bytes, Duration, Instant, Seed};

/// Stations on a line, by their distances in metres from the first.
fn line(preset: &str, metres: &[i64]) -> MediumSpec {
    let positions = metres.iter().map(|x| Position { x_mm: x * 1000, y_mm: 0 }).collect();
    MediumSpec {
        name: "air".into(),
        phy: PhySpec::preset(preset).unwrap(),
        mac: MacSpec::standard(),
        radio: RadioSpec::preset(preset).unwrap(),
        channel: None,
        interferers: Vec::new(),
        placement: PlacementSpec::Explicit { positions },
        mobility: MobilitySpec::None,
        energy: EnergyProfile::preset("esp8266").unwrap(),
    }
}

fn us(us: u64) -> Instant {
    Instant::ZERO + Duration::from_us(us)
}

fn send(medium: &mut Medium, now: Instant, frame: u64, from: usize, to: usize, bytes: u64) {
    medium.handle(now, Input::Send { frame, from, to, size: Bytes(bytes) });
}

/// Runs to this time, and collects what happened.
fn run_until(medium: &mut Medium, end: Instant) -> Vec<Output> {
    let mut outputs: Vec<Output> = std::iter::from_fn(|| medium.poll()).collect();
    while let Some(deadline) = medium.next_deadline().filter(|deadline| *deadline <= end) {
        medium.tick(deadline);
        outputs.extend(std::iter::from_fn(|| medium.poll()));
    }
    outputs
}

/// Runs until nothing is to come, and collects what happened.
fn settle(medium: &mut Medium) -> Vec<Output> {
    run_until(medium, Instant::from_ns(u64::MAX))
}

fn finished(outputs: &[Output]) -> Vec<Finished> {
    let done = |output: &Output| match output {
        Output::Finished(finished) => Some(*finished),
        Output::Arrived { .. } => None,
    };
    outputs.iter().filter_map(done).collect()
}

fn arrivals(outputs: &[Output]) -> Vec<(u64, Instant)> {
    let arrived = |output: &Output| match output {
        Output::Arrived { frame, at, .. } => Some((*frame, *at)),
        Output::Finished(_) => None,
    };
    outputs.iter().filter_map(arrived).collect()
}

fn is_delivered(finished: &Finished) -> bool {
    matches!(finished.fate, Outcome::Delivered { .. })
}

fn medium(spec: MediumSpec) -> Medium {
    Medium::new(spec, Seed(1))
}
