//! What a radio channel costs: wall time per event and per frame, for stations in reach of each other and on grids.
//!
//! `cargo run --release -p mqttlab-net --example radio_bench`

#![allow(clippy::disallowed_methods)] // The machine keeps no clock; its bench does.

use std::time::Instant as Clock;

use mqttlab_net::radio::{
    EnergyProfile, Input, MacSpec, Medium, MediumSpec, MobilitySpec, Output, PhySpec, PlacementSpec,
    RadioSpec,
};
use mqttlab_units::{Bytes, Duration, Instant, Seed};

fn main() {
    println!("stations               load simulated    events    frames  ns/event  ns/frame  simulated s/s");
    for stations in [2, 20, 100] {
        measure(
            "saturated",
            spec(PlacementSpec::Random { stations, width_mm: 50_000, height_mm: 50_000 }),
            1,
            None,
        );
    }
    for stations in [3, 20] {
        let spec = spec(PlacementSpec::Random { stations, width_mm: 50_000, height_mm: 50_000 });
        measure("50 ms each", spec, 100, Some(Duration::from_ms(50)));
    }
    for stations in [1_000, 10_000] {
        let grid = spec(PlacementSpec::Grid { stations, spacing_mm: 100_000 });
        measure("grid, 1 s each", grid, 10, Some(Duration::from_s(1)));
    }
    let mut walking =
        spec(PlacementSpec::Random { stations: 1_000, width_mm: 3_000_000, height_mm: 3_000_000 });
    walking.mobility = MobilitySpec::RandomWaypoint {
        width_mm: 3_000_000,
        height_mm: 3_000_000,
        speed_min_mm_s: 1_000,
        speed_max_mm_s: 10_000,
        pause: Duration::from_s(1),
        refresh: Duration::from_ms(100),
    };
    measure("walking, 1 s each", walking, 10, Some(Duration::from_s(1)));
}

fn spec(placement: PlacementSpec) -> MediumSpec {
    MediumSpec {
        name: "air".into(),
        phy: PhySpec::preset("b-11").expect("known"),
        mac: MacSpec::standard(),
        radio: RadioSpec::preset("b-11").expect("known"),
        channel: None,
        interferers: Vec::new(),
        placement,
        mobility: MobilitySpec::None,
        energy: EnergyProfile::preset("esp8266").expect("known"),
    }
}

/// Every station sends 300 B to the next one, always or at this interval.
fn measure(load: &str, spec: MediumSpec, simulated_s: u64, interval: Option<Duration>) {
    let mut medium = Medium::new(spec, Seed(1));
    let count = medium.stations();
    let end = Instant::ZERO + Duration::from_s(simulated_s);
    let mut to_come: Vec<(Instant, usize)> = match interval {
        None => (0..2 * count).map(|i| (Instant::ZERO, i % count)).collect(),
        Some(interval) => regular(count, interval, simulated_s),
    };
    to_come.reverse();
    let (mut events, mut frames) = (0_u64, 0_u64);
    let started = Clock::now();
    while let Some(at) = earliest(&medium, &to_come).filter(|at| *at <= end) {
        events += 1;
        match to_come.last() {
            Some((due, from)) if *due == at => {
                send(&mut medium, at, *from);
                to_come.pop();
            }
            _ => medium.tick(at),
        }
        while let Some(output) = medium.poll() {
            let Output::Finished(finished) = output else { continue };
            frames += 1;
            if interval.is_none() {
                send(&mut medium, at, finished.from);
            }
        }
    }
    let wall = started.elapsed();
    println!(
        "{count:8} {load:>18} {simulated_s:6} s {events:9} {frames:9} {:9.0} {:9.0} {:9.1}",
        wall.as_nanos() as f64 / events as f64,
        wall.as_nanos() as f64 / frames as f64,
        simulated_s as f64 / wall.as_secs_f64(),
    );
}

fn regular(count: usize, interval: Duration, simulated_s: u64) -> Vec<(Instant, usize)> {
    let mut dice = Seed(2).dice();
    let mut sends = Vec::new();
    for station in 0..count {
        let mut at = Instant::ZERO + Duration::from_ns(dice.below(interval.as_ns()));
        while at < Instant::ZERO + Duration::from_s(simulated_s) {
            sends.push((at, station));
            at += interval;
        }
    }
    sends.sort();
    sends
}

fn earliest(medium: &Medium, to_come: &[(Instant, usize)]) -> Option<Instant> {
    medium.next_deadline().into_iter().chain(to_come.last().map(|(at, _)| *at)).min()
}

fn send(medium: &mut Medium, now: Instant, from: usize) {
    let to = (from + 1) % medium.stations();
    medium.handle(now, Input::Send { frame: 0, from, to, size: Bytes(300) });
}
