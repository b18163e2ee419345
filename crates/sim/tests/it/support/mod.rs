//! What the tests of the simulator share: plans of the corpus, and an observer that keeps quiet.

#![allow(dead_code)] // Each test file is a crate of its own and uses a part.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use mqttlab_capture::SegmentWitness;
use mqttlab_plan::{Destination, Plan};
use mqttlab_run::{Interruption, Progress, RunObserver, RunOutcome};
use mqttlab_sim::Simulation;
use serde_json::Value;

/// A directory that goes with its test.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let directory = std::env::temp_dir().join(format!("mqttlab-sim-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("a scratch directory");
        Scratch(directory)
    }

    pub fn run(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An observer that hears nothing and never ends a run.
pub struct Quiet;

impl RunObserver for Quiet {
    fn on_progress(&mut self, _progress: &Progress) {}

    fn cancelled(&mut self) -> Option<Interruption> {
        None
    }
}

/// A plan of the corpus as JSON.
pub fn corpus(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/plan").join(name);
    serde_json::from_slice(&fs::read(path).expect("a corpus file")).expect("JSON")
}

/// A simulation of a plan, recorded in `directory`.
pub fn simulation(plan: &Value, directory: PathBuf) -> Simulation {
    let plan = Plan::from_json(&plan.to_string()).expect("a plan");
    let analyser = SegmentWitness::new(plan.server_ports());
    Simulation::new(plan, &Destination::new(&directory), Box::new(analyser), &mut Quiet)
        .expect("a plan that can be simulated")
}

/// Ends a simulation that has come to its plan's end.
pub fn finish(simulation: Simulation) {
    assert!(simulation.is_over());
    assert_eq!(simulation.finish(Ok(()), &mut Quiet), RunOutcome::Complete);
}

/// The tables of a recording, byte by byte.
pub fn tables(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(directory).expect("a recording").map(|entry| entry.expect("an entry").path());
    let tables = files.filter(|path| path.extension().is_some_and(|extension| extension == "parquet"));
    let read = |path: PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, fs::read(path).expect("a table"))
    };
    tables.map(read).collect()
}

/// Runs a plan through, and returns its tables.
pub fn recorded(plan: &Value, directory: PathBuf) -> BTreeMap<String, Vec<u8>> {
    let mut simulation = simulation(plan, directory.clone());
    simulation.run(&mut Quiet).expect("a run");
    finish(simulation);
    tables(&directory)
}
