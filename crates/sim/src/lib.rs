//! The simulator: the same plan in virtual time.
//!
//! ```text
//!   plan ──► clients ──► sessions ──► TCP endpoints ──► links, radio ──► TCP ──► broker model ──► … ──► recording
//! ```
//!
//! Discrete events in integer nanoseconds, one thread a run. The sessions, the links and the schedules are the very
//! machines that a live run drives; TCP and the broker are models. The same plan gives the same recording, byte by
//! byte, on every machine.
//!
//! What it does not model: the time that hosts take to compute (but for the broker's service time), payload bytes,
//! ARP, and clients other than the lab's own.

mod agenda;
mod client;
mod conductor;
mod connection;
mod dropped;
mod evidence;
mod few;
mod limits;
mod message;
mod publishing;
mod receiving;
mod server;
mod stack;
mod steady;
mod stream;
mod topics;
mod wire;
mod world;

use std::collections::BTreeMap;

use mqttlab_plan::{NetworkKind, Plan, Progress, Roster, Verdict};
use mqttlab_recording::{
    Client, DirectRecorder, Ending, Layout, RunFacts, SegmentAnalyser, Session, Topic, read_layout,
};
use serde_json::json;

use evidence::Evidence;
use world::World;

pub use limits::memory_needed;

/// Who watches a run.
pub trait Audience {
    /// Something to be passed on.
    fn hear(&mut self, progress: &Progress);
    /// Something to be read before the numbers are trusted.
    fn warn(&mut self, text: String);
    /// Everything that was warned of.
    fn warnings(&self) -> Vec<String>;
    /// Why the run shall end now, if it shall.
    fn interruption(&mut self) -> Option<String>;
    /// Whether it is time for figures; then how many events were handled in a second of processor time.
    fn wants_figures(&mut self, events: u64) -> Option<u64>;
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// In a word.
    pub verdict: Verdict,
    /// In a sentence, when it did not complete.
    pub reason: Option<String>,
}

/// Runs a plan and leaves its recording in the plan's directory.
pub fn run(plan: Plan, analyser: Box<dyn SegmentAnalyser>, audience: &mut dyn Audience) -> Outcome {
    match prepare(plan, analyser) {
        Ok(world) => perform(world, audience),
        Err(reason) => Outcome { verdict: Verdict::Failed, reason: Some(reason) },
    }
}

fn prepare(plan: Plan, analyser: Box<dyn SegmentAnalyser>) -> Result<World, String> {
    if plan.network.kind == NetworkKind::External {
        return Err(
            "the network is external, but the simulator has no external broker; choose another network"
                .into(),
        );
    }
    limits::check(&plan)?;
    let roster = Roster::of(&plan);
    let layout = layout(&plan, &roster);
    let mut recorder =
        DirectRecorder::create(&plan.directory, &plan.to_json(), &layout).map_err(|e| e.to_string())?;
    recorder.provisional();
    let evidence = Evidence::new(recorder, plan.recording.packets, analyser);
    let mut world = World::new(plan, roster, evidence)?;
    world.evidence.message(|recorder| {
        recorder.keep();
        Ok(())
    });
    Ok(world)
}

fn perform(mut world: World, audience: &mut dyn Audience) -> Outcome {
    let result = world.run(audience);
    audience.hear(&Progress::Phase {
        phase: mqttlab_plan::Phase::Finalise,
        at_ns: world.now.as_ns(),
        length_ns: 0,
    });
    world.end();
    let layout = read_layout(&world.plan.directory).map(|layout| Layout {
        warm_up_end_ns: world.conductor.steady_from().unwrap_or(world.conductor.measure_from).as_ns(),
        measurement_end_ns: world.conductor.measure_until.as_ns(),
        ..layout
    });
    let facts = facts(&world, audience.warnings());
    let (recorder, failure) = world.evidence.finish();
    let ending = match (&result, failure) {
        (Ok(()), None) => Ending::Complete,
        (Err(reason), _) => Ending::Incomplete(reason.clone()),
        (Ok(()), Some(error)) => Ending::Incomplete(error.to_string()),
    };
    match (layout.and_then(|layout| recorder.finish(Some(layout), &facts, &ending)), ending) {
        (Ok(_), Ending::Complete) => Outcome { verdict: Verdict::Complete, reason: None },
        (Ok(_), Ending::Incomplete(reason)) => Outcome { verdict: Verdict::Incomplete, reason: Some(reason) },
        (Err(error), _) => {
            let reason = format!("the recording could not be finished: {error}");
            Outcome { verdict: Verdict::Incomplete, reason: Some(reason) }
        }
    }
}

/// What a plan says about its recording; when it was made the recorder adds.
fn layout(plan: &Plan, roster: &Roster) -> Layout {
    let client = |(group, client): (&mqttlab_plan::Group, u32)| Client {
        name: group.client_id(client),
        group: group.name.clone(),
        host: group.host_of(client) as u16,
        session: Some(Session { expiry_ns: group.mqtt.session_expiry().map(|expiry| expiry.as_ns()) }),
    };
    let topic = |entry: &mqttlab_plan::Entry| Topic {
        name: entry.name.clone(),
        receivers: entry.receivers,
        shares: entry.shares,
        relayed: entry.relayed,
    };
    Layout {
        producer: "simulator".into(),
        seed: plan.seed.0,
        hosts: plan.hosts.iter().map(|host| host.name.clone()).collect(),
        links: plan.link_names(),
        clients: plan.clients().map(client).collect(),
        topics: roster.topics().iter().map(topic).collect(),
        receivers: roster.receivers().to_vec(),
        measurement_end_ns: u64::MAX,
        late_after_ns: plan.late_after().map(|late| late.as_ns()),
        ..Layout::default()
    }
}

fn facts(world: &World, warnings: Vec<String>) -> RunFacts {
    let details = [
        ("phases", world.conductor.facts()),
        ("network", json!(world.plan.network.description)),
        ("dropped_by_broker", json!(world.tally.dropped_by_broker)),
        ("stations", world.wire.stations()),
    ];
    RunFacts {
        versions: BTreeMap::from([("engine".into(), env!("CARGO_PKG_VERSION").into())]),
        warnings,
        validity: json!({ "valid": true, "reasons": [] }),
        details: details.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    }
}
