//! What a message costs in calls of the allocator, from the simulation to the complete recording with its derived tables.
//!
//! Two runs that differ in length alone are counted, with all of their threads, so that what is paid once falls out of the
//! difference. The bounds are what was measured and a quarter more: whoever allocates for each message or frame anew is
//! found, and a batch more or less is not.

#[path = "it/common/mod.rs"]
mod common;

use std::path::Path;

use common::{Quiet, Scratch, plan, simulation};
use mqttlab_counting::{Counting, calls_of_all_threads};
use mqttlab_derived::summarise;
use mqttlab_run::RunOutcome;
use serde_json::Value;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls in the simulation, in finishing its recording, and in deriving tables from that; deliveries.
type Spent = ([u64; 3], u64);

fn spent(plan: &Value, directory: &Path) -> Spent {
    let mut simulation = simulation(plan, directory);
    let mut marks = vec![calls_of_all_threads()];
    let mut mark = || marks.push(calls_of_all_threads());
    simulation.run(&mut Quiet).expect("a run");
    let delivered = simulation.counts().delivered;
    mark();
    assert_eq!(simulation.finish(Ok(()), &mut Quiet), RunOutcome::Complete);
    mark();
    summarise(directory, directory).expect("derived tables");
    mark();
    ([marks[1] - marks[0], marks[2] - marks[1], marks[3] - marks[2]], delivered)
}

#[test]
fn a_message_costs_no_more_calls_of_the_allocator_than_it_did() {
    let scratch = Scratch::new("allocations");
    let mut found = Vec::new();
    for (qos, packets, bounds) in BOUNDS {
        let [(short, few), (long, many)] = [6, 18].map(|seconds| {
            spent(&plan(qos, packets, 10, seconds), &scratch.0.join(format!("{qos}-{packets}-{seconds}")))
        });
        assert!(many > few + 2_300, "{few} and {many} deliveries");
        let more = (many - few) as f64;
        let calls: Vec<f64> =
            short.iter().zip(long).map(|(few, many)| (many as f64 - *few as f64) / more).collect();
        let within = calls.iter().zip(bounds).all(|(calls, bound)| *calls <= bound);
        found.push((
            within,
            format!("QoS {qos}, packets {packets}: {calls:.3?} calls a delivery, {bounds:?} allowed"),
        ));
    }
    let lines: Vec<&str> = found.iter().map(|(_, line)| line.as_str()).collect();
    assert!(found.iter().all(|(within, _)| *within), "{}", lines.join("\n"));
}

/// By QoS and whether packets are recorded: calls a delivery in the simulation, the finishing, the derived tables.
const BOUNDS: [(u8, bool, [f64; 3]); 4] = [
    (0, false, [0.06, 0.02, 0.01]),
    (0, true, [0.3, 0.05, 0.3]),
    (1, true, [1.45, 0.1, 0.35]),
    (2, true, [3.1, 0.1, 0.6]),
];
