//! Nothing is made and nothing vanishes: of frames at every instant, of messages at the end.

use crate::support::{Quiet, Scratch, corpus, finish, simulation};
use mqttlab_sim::{SimCounts, Simulation, SimulationState};
use serde_json::{Value, json};

/// Steps a plan to its end; looks at it every so many steps.
fn watched(
    plan: &Value,
    scratch: &Scratch,
    name: &str,
    mut look: impl FnMut(&SimulationState),
) -> Simulation {
    let mut simulation = simulation(plan, scratch.run(name));
    for steps in 0_u64.. {
        if simulation.is_over() {
            break;
        }
        simulation.step(&mut Quiet).expect("a step");
        if steps % 7 == 0 {
            look(&simulation.state().expect("a state"));
        }
    }
    simulation
}

#[test]
fn every_frame_has_arrived_or_was_dropped_or_is_under_way() {
    let scratch = Scratch::new("frames");
    let mut lost = 0;
    for name in ["pair.json", "lossy.json", "radio.json", "direct.json", "shared.json", "grid.json"] {
        let mut plan = corpus(name);
        if let Some(link) = plan.pointer_mut("/network/links/0") {
            // Every fate that a frame can have.
            (link["duplication"], link["corruption"]) = (json!([1, 10]), json!([1, 10]));
        }
        let simulation = watched(&plan, &scratch, name, |state| {
            let frames = state.frames;
            let known = frames.arrived + frames.corrupted + frames.dropped + frames.under_way;
            assert_eq!(frames.sent + frames.copied, known, "{name}: {frames:?}");
        });
        let frames = simulation.state().expect("a state").frames;
        assert!(frames.sent > 100 && frames.arrived > 100, "{name}: {frames:?}");
        lost += frames.dropped + frames.corrupted;
        finish(simulation);
    }
    assert!(lost > 0, "frames were dropped");
}

#[test]
fn all_that_was_expected_is_delivered_where_nothing_is_dropped() {
    let scratch = Scratch::new("messages");
    for (name, qos) in [("pair.json", 0), ("direct.json", 1), ("lossy.json", 2), ("bursts.json", 1)] {
        let mut plan = corpus(name);
        plan["groups"][0]["publish"]["qos"] = json!(qos);
        plan["phases"]["cool_down_ns"] = json!(60_000_000_000_u64);
        let simulation = watched(&plan, &scratch, name, |state| {
            let SimCounts { offered, sent, expected, delivered, .. } = state.counts;
            assert!(sent <= offered && delivered <= expected, "{name}: {:?}", state.counts);
        });
        let counts = simulation.counts();
        assert!(counts.sent == counts.offered && counts.sent >= 18, "{name}: {counts:?}");
        assert_eq!(counts.delivered, counts.expected, "{name}");
        assert_eq!((counts.unacknowledged, counts.dropped_by_broker), (0, 0), "{name}");
        finish(simulation);
    }
}

#[test]
fn what_a_full_queue_drops_is_what_is_missing() {
    let scratch = Scratch::new("queue");
    let mut plan = corpus("bursts.json");
    // One message is in flight and one waits; the other three of a burst find the queue full.
    let settings = &mut plan["servers"][0]["role"]["broker"]["settings"];
    (settings["max_inflight"], settings["max_queued"]) = (json!(1), json!(1));
    plan["phases"]["cool_down_ns"] = json!(60_000_000_000_u64);
    let mut longest = 0;
    let simulation = watched(&plan, &scratch, "run", |state| {
        let sessions = &state.hosts[0].servers.first().expect("a broker").sessions;
        longest = sessions.iter().map(|session| session.waiting).max().unwrap_or(0).max(longest);
    });
    let counts = simulation.counts();
    assert_eq!(longest, 1, "the queue was full, and never longer than it may be");
    assert!(counts.dropped_by_broker > 0, "{counts:?}");
    assert_eq!(counts.delivered + counts.dropped_by_broker, counts.expected, "{counts:?}");
    finish(simulation);
}

#[test]
fn a_broker_that_is_too_slow_has_a_queue_that_grows_and_then_empties() {
    let scratch = Scratch::new("service");
    let mut plan = corpus("bursts.json");
    // 2 publishers × 25 messages a second × (PUBLISH, PUBACK of the copy) × 15 ms: more than a second has.
    plan["servers"][0]["role"]["broker"]["service"]["per_packet_ns"] = json!(15_000_000);
    plan["phases"]["cool_down_ns"] = json!(60_000_000_000_u64);
    let (mut longest, mut last) = (0, 0);
    let simulation = watched(&plan, &scratch, "run", |state| {
        last = state.hosts[0].servers.first().expect("a broker").inbox;
        longest = longest.max(last);
    });
    // At the end nothing but the clients' DISCONNECTs is left.
    assert!(longest >= 10 && last <= 4, "{longest}, then {last}");
    finish(simulation);
}
