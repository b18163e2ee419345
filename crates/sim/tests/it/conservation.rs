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
fn frames_are_conserved_while_links_change_and_messages_at_qos_1_and_2_survive_it() {
    let scratch = Scratch::new("changes");
    for (name, qos, queue) in
        [("pair.json", 1, "keep"), ("lossy.json", 2, "drop"), ("shared.json", 1, "drop")]
    {
        let mut plan = corpus(name);
        plan["groups"][0]["publish"]["qos"] = json!(qos);
        for group in plan["groups"].as_array_mut().expect("groups") {
            group["protocol"]["mqtt"]["clean_session"] = json!(false);
        }
        plan["phases"]["cool_down_ns"] = json!(60_000_000_000_u64);
        let links = plan["network"]["links"].as_array().expect("links").clone();
        let names: Vec<&Value> = links.iter().map(|link| &link["name"]).collect();
        let mut slow = links[0].clone();
        (slow["rate_bit_s"], slow["queue"]["limit_packets"]) = (json!(50_000), json!(3));
        let changes = [
            (100, json!({ "kind": "down", "queue": queue })),
            (450, json!({ "kind": "up" })),
            (600, json!({ "kind": "spec", "spec": slow })),
            (700, json!({ "kind": "down", "queue": "keep" })),
            (800, json!({ "kind": "spec", "spec": links[0] })),
            (900, json!({ "kind": "up" })),
        ];
        let event = |(at, change): &(u64, Value)| json!({ "at_ns": at * 1_000_000, "name": "change", "links": names, "change": change });
        plan["events"] = changes.iter().map(event).collect();
        let simulation = watched(&plan, &scratch, name, |state| {
            let frames = state.frames;
            let known = frames.arrived + frames.corrupted + frames.dropped + frames.under_way;
            assert_eq!(frames.sent + frames.copied, known, "{name}: {frames:?}");
        });
        let (counts, frames) = (simulation.counts(), simulation.state().expect("a state").frames);
        assert!(frames.dropped > 0, "{name}: {frames:?}");
        assert_eq!((counts.sent, counts.unacknowledged), (counts.offered, 0), "{name}: {counts:?}");
        assert_eq!(counts.delivered, counts.expected, "{name}: {counts:?}");
        finish(simulation);
    }
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
