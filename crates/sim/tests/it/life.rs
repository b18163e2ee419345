//! Servers that end, stand still and start again in the course of a run.

use crate::support::{Quiet, Scratch, corpus, finish, simulation};
use mqttlab_sim::{SimCounts, Simulation};
use mqttlab_units::Duration;
use serde_json::{Value, json};

/// Two publishers and two subscribers whose sessions stay, and a broker with a disk. They try again after 100 ms.
fn plan(qos: u8) -> Value {
    let mut plan = corpus("pair.json");
    plan["servers"][0]["role"]["broker"]["settings"]["persistence"] = json!(true);
    plan["groups"][0]["publish"]["qos"] = json!(qos);
    plan["groups"][1]["subscriptions"][0]["qos"] = json!(qos);
    for group in plan["groups"].as_array_mut().expect("groups") {
        group["protocol"]["mqtt"]["clean_session"] = json!(false);
        (group["reconnect"]["initial_ns"], group["reconnect"]["maximum_ns"]) =
            (json!(100_000_000), json!(200_000_000));
    }
    plan["phases"]["cool_down_ns"] = json!(60_000_000_000_u64);
    plan
}

/// The plan with these events of its first server: milliseconds, what, and whether its disk stays.
fn with_events(mut plan: Value, events: &[(u64, &str, bool)]) -> Value {
    let server = plan["servers"][0]["name"].clone();
    let event = |(at, kind, persistence): &(u64, &str, bool)| {
        json!({
            "at_ns": at * 1_000_000, "name": kind, "server": server,
            "change": { "kind": kind, "persistence": persistence },
        })
    };
    plan["events"] = events.iter().map(event).collect();
    plan
}

/// Runs a plan through; what it counted.
fn counts(plan: &Value, name: &str) -> SimCounts {
    let scratch = Scratch::new(name);
    let mut simulation = simulation(plan, scratch.run("run"));
    simulation.run(&mut Quiet).expect("a run");
    let counts = simulation.counts();
    finish(simulation);
    counts
}

/// The longest copies that a plan may have, on the slowest host, repeated as often as it may say.
#[test]
fn copies_that_last_beyond_the_end_of_time_are_never_sent() {
    let mut plan = with_events(plan(1), &[(600, "pause", true), (700, "continue", true)]);
    let host = plan["servers"][0]["host"].as_u64().expect("a host") as usize;
    plan["hosts"][host]["limits"] =
        json!({ "processor": [1, 100], "memory_bytes": null, "disk_bytes_s": null });
    let broker = &mut plan["servers"][0]["role"]["broker"];
    broker["service"]["per_copy_ns"] = json!(3_600_000_000_000_u64);
    broker["settings"]["retry"] = json!({ "interval_ns": 1_000_000 });
    plan["groups"][1]["count"] = json!(50);
    plan["groups"][1]["subscriptions"][0]["filter"] = json!("#");
    plan["phases"]["cool_down_ns"] = json!(5_000_000_000_u64);
    let counts = counts(&plan, "copies");
    assert!(counts.delivered == 0 && counts.sent > 0, "{counts:?}");
}

#[test]
fn over_a_kill_and_a_start_qos_1_loses_nothing_whenever_it_comes() {
    for at in (300..400).step_by(19) {
        let events = [(at, "kill", true), (at + 350, "start", true)];
        let counts = counts(&with_events(plan(1), &events), "kill-1");
        assert_eq!((counts.delivered, counts.unacknowledged), (counts.expected, 0), "at {at}: {counts:?}");
        assert_eq!((counts.offered, counts.sent, counts.disconnects), (20, 20, 4), "at {at}: {counts:?}");
    }
}

#[test]
fn over_a_kill_qos_2_loses_at_most_what_was_between_two_writes_and_over_a_stop_nothing() {
    let mut lost = Vec::new();
    for kind in ["kill", "stop"] {
        let missing = (300..400).step_by(19).map(|at| {
            let events = [(at, kind, true), (at + 350, "start", true)];
            let counts = counts(&with_events(plan(2), &events), kind);
            assert_eq!(counts.unacknowledged, 0, "{kind} at {at}: {counts:?}");
            counts.expected - counts.delivered
        });
        lost.push(missing.collect::<Vec<u64>>());
    }
    assert!(lost[0].iter().all(|missing| *missing <= 2), "{lost:?}");
    assert!(lost[1].iter().all(|missing| *missing == 0), "{lost:?}");
}

#[test]
fn a_broker_with_an_empty_disk_has_no_sessions_and_who_publishes_before_they_are_back_is_not_heard() {
    for persistence in [[false, true], [true, false]] {
        let events = [(300, "kill", persistence[0]), (400, "start", persistence[1])];
        let mut plan = with_events(plan(1), &events);
        // The subscribers come back long after the publishers.
        let slow = &mut plan["groups"][1]["reconnect"];
        (slow["initial_ns"], slow["maximum_ns"]) = (json!(500_000_000), json!(500_000_000));
        let counts = counts(&plan, "empty");
        assert_eq!((counts.sent, counts.unacknowledged), (20, 0), "{counts:?}");
        assert!(counts.delivered + 4 < counts.expected && counts.delivered > 8, "{counts:?}");
    }
}

#[test]
fn a_port_without_a_program_refuses_and_clients_are_back_soon_after_the_start() {
    let scratch = Scratch::new("refuses");
    let plan = with_events(plan(0), &[(200, "kill", true), (700, "start", true)]);
    let mut simulation = simulation(&plan, scratch.run("run"));
    let began = publishing_begins(&mut simulation);
    let mut online = |ms: u64| {
        simulation.run_until(began + Duration::from_ms(ms), &mut Quiet).expect("a run");
        simulation.counts().connected
    };
    // Back-off with jitter is at most 220 ms, and an attempt takes some round trips of 10 ms.
    assert_eq!([online(190), online(230), online(699), online(1_000)], [4, 0, 0, 4]);
    simulation.run(&mut Quiet).expect("a run");
    let counts = simulation.counts();
    assert_eq!((counts.offered, counts.disconnects), (20, 4));
    assert!(counts.sent < 16, "QoS 0 waits for nobody: {counts:?}");
    finish(simulation);
}

#[test]
fn a_pause_keeps_connections_and_delivers_everything_afterwards() {
    for qos in 0..3 {
        let scratch = Scratch::new("pause");
        let plan = with_events(plan(qos), &[(200, "pause", true), (700, "continue", true)]);
        let mut simulation = simulation(&plan, scratch.run("run"));
        let began = publishing_begins(&mut simulation);
        let mut delivered = |ms: u64| {
            simulation.run_until(began + Duration::from_ms(ms), &mut Quiet).expect("a run");
            simulation.counts().delivered
        };
        let [stopped, still, after] = [delivered(220), delivered(699), delivered(900)];
        assert!(stopped == still && after >= still + 8, "QoS {qos}: {stopped}, {still}, {after}");
        simulation.run(&mut Quiet).expect("a run");
        let counts = simulation.counts();
        assert_eq!((counts.delivered, counts.disconnects), (20, 0), "QoS {qos}: {counts:?}");
        finish(simulation);
    }
}

#[test]
fn a_pause_longer_than_the_keep_alive_costs_only_who_is_silent() {
    let mut plan = plan(1);
    for group in plan["groups"].as_array_mut().expect("groups") {
        group["protocol"]["mqtt"]["keep_alive_s"] = json!(1);
    }
    plan["phases"]["duration_ns"] = json!(4_000_000_000_u64);
    let plan = with_events(plan, &[(500, "pause", true), (2_400, "continue", true)]);
    let counts = counts(&plan, "keep-alive");
    // Clients that hear no PINGRESP leave by themselves; nobody who speaks is turned out.
    assert_eq!((counts.delivered, counts.unacknowledged), (counts.expected, 0), "{counts:?}");
}

#[test]
fn every_kind_of_server_survives_what_happens_to_it() {
    let life = [
        (100, "pause", true),
        (200, "kill", true),
        (300, "start", true),
        (400, "pause", true),
        (500, "continue", true),
        (600, "stop", false),
        (650, "pause", true),
        (700, "start", true),
        (750, "start", true),
    ];
    for name in [
        "pair.json",
        "lossy.json",
        "gateway.json",
        "aggregating.json",
        "proxy.json",
        "zeromq.json",
        "relay.json",
    ] {
        for server in 0..2 {
            let scratch = Scratch::new("all");
            let mut plan = corpus(name);
            let Some(server) = plan["servers"].get(server).map(|server| server["name"].clone()) else {
                continue;
            };
            plan = with_events(plan, &life);
            for event in plan["events"].as_array_mut().expect("events") {
                event["server"] = server.clone();
            }
            let mut simulation = simulation(&plan, scratch.run("run"));
            simulation.run(&mut Quiet).expect("a run");
            let frames = simulation.state().expect("a state").frames;
            let known = frames.arrived + frames.corrupted + frames.dropped + frames.under_way;
            assert_eq!(frames.sent + frames.copied, known, "{name}: {frames:?}");
            finish(simulation);
        }
    }
}

/// Steps to the beginning of the measurement, which is that of publishing here.
fn publishing_begins(simulation: &mut Simulation) -> mqttlab_units::Instant {
    while simulation.state().expect("a state").phase != "measurement" {
        simulation.step(&mut Quiet).expect("a step");
    }
    simulation.now()
}
