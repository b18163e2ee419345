//! What a message costs in calls of the allocator, from the simulation to the complete recording with its derived tables.
//!
//! Two runs that differ in length alone are counted, with all of their threads, so that what is paid once falls out of the
//! difference. The bounds are what was measured and a quarter more: whoever allocates for each message or frame anew is
//! found, and a batch more or less is not.

use std::fs;
use std::path::{Path, PathBuf};

use mqttlab_capture::SegmentWitness;
use mqttlab_counting::{Counting, calls_of_all_threads};
use mqttlab_plan::{Destination, Plan};
use mqttlab_run::{Interruption, Observer, Outcome, Progress};
use mqttlab_sim::Simulation;
use mqttlab_summary::summarise;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Quiet;

impl Observer for Quiet {
    fn on_progress(&mut self, _: &Progress) {}

    fn cancelled(&mut self) -> Option<Interruption> {
        None
    }
}

/// A directory that goes with its test.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Calls in the simulation, in finishing its recording, and in deriving tables from that; deliveries.
type Spent = ([u64; 3], u64);

fn spent(plan: &Value, directory: &Path) -> Spent {
    let plan = Plan::from_json(&plan.to_string()).expect("a plan");
    let witness = Box::new(SegmentWitness::new(plan.server_ports()));
    let mut simulation = Simulation::new(plan, &Destination::new(directory), witness, &mut Quiet)
        .expect("a plan that can be simulated");
    let mut marks = vec![calls_of_all_threads()];
    let mut mark = || marks.push(calls_of_all_threads());
    simulation.run(&mut Quiet).expect("a run");
    let delivered = simulation.counts().delivered;
    mark();
    assert_eq!(simulation.finish(Ok(()), &mut Quiet), Outcome::Complete);
    mark();
    summarise(directory, directory).expect("derived tables");
    mark();
    ([marks[1] - marks[0], marks[2] - marks[1], marks[3] - marks[2]], delivered)
}

/// Four clients, a message of two every 10 ms, for so many seconds.
fn plan(qos: u8, packets: bool, seconds: u64) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/plan/pair.json");
    let mut plan: Value = serde_json::from_slice(&fs::read(path).expect("a corpus file")).expect("JSON");
    plan["phases"]["duration_ns"] = json!(seconds * 1_000_000_000);
    plan["groups"][0]["publish"]["qos"] = json!(qos);
    plan["groups"][0]["publish"]["arrival"]["interval_ns"] = json!(10_000_000);
    for link in plan["network"]["links"].as_array_mut().expect("links") {
        link["rate_bit_s"] = json!(100_000_000);
    }
    plan["recording"]["packets"] = json!(packets);
    plan
}

#[test]
fn a_message_costs_no_more_calls_of_the_allocator_than_it_did() {
    let place = std::env::temp_dir().join(format!("mqttlab-allocations-{}", std::process::id()));
    fs::create_dir_all(&place).expect("a scratch directory");
    let scratch = Scratch(place);
    let mut found = Vec::new();
    for (qos, packets, bounds) in BOUNDS {
        let [(short, few), (long, many)] = [6, 18].map(|seconds| {
            spent(&plan(qos, packets, seconds), &scratch.0.join(format!("{qos}-{packets}-{seconds}")))
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
