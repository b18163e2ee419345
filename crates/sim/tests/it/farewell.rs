//! The end of a run: everybody says goodbye, and that costs each client as much as its connection did, however many
//! there are.

use std::fs;
use std::path::Path;

use mqttlab_capture::SegmentWitness;
use mqttlab_plan::{Destination, Plan};
use mqttlab_run::{Interruption, Progress, RunObserver, RunOutcome, RunPhase};
use serde_json::{Value, json};

/// Notes how much processor time was used when each phase began.
#[derive(Default)]
struct Stopwatch {
    began_ns: Vec<(RunPhase, u64)>,
}

impl RunObserver for Stopwatch {
    fn on_progress(&mut self, progress: &Progress) {
        match progress {
            Progress::Phase { phase, .. } => self.began_ns.push((*phase, processor_time_ns())),
            Progress::Warning { text } => panic!("a run without loss warns of something: {text}"),
            _ => {}
        }
    }

    fn cancelled(&mut self) -> Option<Interruption> {
        None
    }
}

/// Of this thread, so that what else the machine does is not measured.
fn processor_time_ns() -> u64 {
    let text =
        fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel that counts processor time");
    text.split_whitespace().next().expect("a number").parse().expect("nanoseconds")
}

/// Clients that connect, subscribe and leave, over a network that takes hardly any time.
fn plan(clients: u32) -> Plan {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/plan/pair.json");
    let mut plan: Value = serde_json::from_slice(&fs::read(path).expect("a corpus file")).expect("JSON");
    plan["recording"]["packets"] = json!(false);
    for link in plan["network"]["links"].as_array_mut().expect("links") {
        link["rate_bit_s"] = json!(1_000_000_000_u64);
    }
    plan["groups"][0]["count"] = json!(1);
    plan["groups"][1]["count"] = json!(clients);
    plan["groups"][1]["connect_over_ns"] = json!(1_000_000_000_u64);
    Plan::from_json(&plan.to_string()).expect("a right plan")
}

#[test]
fn a_farewell_of_many_clients_takes_no_longer_than_their_connecting() {
    let directory = std::env::temp_dir().join(format!("mqttlab-farewell-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    let mut watch = Stopwatch::default();
    let analyser = Box::new(SegmentWitness::new(vec![1883]));
    let outcome = mqttlab_sim::run(plan(CLIENTS), &Destination::new(&directory), analyser, &mut watch);
    assert_eq!(outcome, RunOutcome::Complete);
    fs::remove_dir_all(&directory).expect("a recording");
    let began = |wanted| watch.began_ns.iter().find(|(phase, _)| *phase == wanted).expect("a phase").1;
    let connecting = began(RunPhase::Measurement) - began(RunPhase::Connect);
    // The farewell has no line of its own: it ends the cool-down, in which nothing else happens.
    let leaving = began(RunPhase::Finalise) - began(RunPhase::CoolDown);
    assert!(
        leaving < 2 * connecting,
        "{leaving} ns for the farewell, {connecting} ns to connect and subscribe"
    );
}

/// So many that a look at each of them at every event would take many times what the events take.
const CLIENTS: u32 = 5_000;
