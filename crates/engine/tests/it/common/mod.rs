//! A pair of clients to simulate, and where its recording goes.

use std::fs;
use std::path::{Path, PathBuf};

use mqttlab_capture::SegmentWitness;
use mqttlab_plan::{Destination, Plan};
use mqttlab_run::{Interruption, Progress, RunObserver};
use mqttlab_sim::Simulation;
use serde_json::{Value, json};

/// Somebody who watches a run and says nothing.
pub struct Quiet;

impl RunObserver for Quiet {
    fn on_progress(&mut self, _: &Progress) {}

    fn cancelled(&mut self) -> Option<Interruption> {
        None
    }
}

/// A directory that goes with its test.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let place = std::env::temp_dir().join(format!("mqttlab-{name}-{}", std::process::id()));
        fs::create_dir_all(&place).expect("a scratch directory");
        Scratch(place)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Four clients, a message of two every so many milliseconds, for so many seconds.
pub fn plan(qos: u8, packets: bool, interval_ms: u64, seconds: u64) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/plan/pair.json");
    let mut plan: Value = serde_json::from_slice(&fs::read(path).expect("a corpus file")).expect("JSON");
    plan["phases"]["duration_ns"] = json!(seconds * 1_000_000_000);
    plan["groups"][0]["publish"]["qos"] = json!(qos);
    plan["groups"][0]["publish"]["arrival"]["interval_ns"] = json!(interval_ms * 1_000_000);
    for link in plan["network"]["links"].as_array_mut().expect("links") {
        link["rate_bit_s"] = json!(100_000_000);
    }
    plan["recording"]["packets"] = json!(packets);
    plan
}

/// The simulation of a plan that can be simulated.
pub fn simulation(plan: &Value, directory: &Path) -> Simulation {
    let plan = Plan::from_json(&plan.to_string()).expect("a plan");
    let witness = Box::new(SegmentWitness::new(plan.server_ports()));
    Simulation::new(plan, &Destination::new(directory), witness, &mut Quiet)
        .expect("a plan that can be simulated")
}
