//! Clients that leave, in order or without a word, come back, and do not read.

use crate::support::{Quiet, Scratch, corpus, finish, simulation};
use mqttlab_sim::{SimCounts, Simulation};
use mqttlab_units::{Duration, Instant};
use serde_json::{Value, json};

/// Two publishers and two subscribers with sessions that stay, for four seconds.
fn plan(name: &str, qos: u8) -> Value {
    let mut plan = corpus(name);
    for group in plan["groups"].as_array_mut().expect("groups") {
        if let Some(mqtt) = group["protocol"].get_mut("mqtt") {
            (mqtt["clean_session"], mqtt["keep_alive_s"]) = (json!(false), json!(1));
        }
        if !group["publish"].is_null() {
            group["publish"]["qos"] = json!(qos);
        }
        for subscription in group["subscriptions"].as_array_mut().expect("subscriptions") {
            subscription["qos"] = json!(qos);
        }
    }
    (plan["phases"]["duration_ns"], plan["phases"]["cool_down_ns"]) =
        (json!(4_000_000_000_u64), json!(30_000_000_000_u64));
    plan
}

/// The plan with these events: milliseconds, what, of which clients.
fn with_events(mut plan: Value, events: &[(u64, &str, &[u32])]) -> Value {
    let event = |(at, kind, clients): &(u64, &str, &[u32])| json!({ "at_ns": at * 1_000_000, "name": kind, "clients": clients, "change": { "kind": kind } });
    plan["events"] = events.iter().map(event).collect();
    plan
}

fn begun(plan: &Value, scratch: &Scratch) -> (Simulation, Instant) {
    let mut simulation = simulation(plan, scratch.run("run"));
    while simulation.state().expect("a state").phase != "measurement" {
        simulation.step(&mut Quiet).expect("a step");
    }
    let began = simulation.now();
    (simulation, began)
}

/// What is counted so many milliseconds after publishing began, each time, and at the end.
fn counts_at<const N: usize>(name: &str, plan: &Value, times: [u64; N]) -> ([SimCounts; N], SimCounts) {
    let scratch = Scratch::new(name);
    let (mut simulation, began) = begun(plan, &scratch);
    let counts = times.map(|ms| {
        simulation.run_until(began + Duration::from_ms(ms), &mut Quiet).expect("a run");
        simulation.counts()
    });
    simulation.run(&mut Quiet).expect("a run");
    let end = simulation.counts();
    finish(simulation);
    (counts, end)
}

#[test]
fn who_disconnects_or_vanishes_gets_what_waited_for_it_when_it_comes_back() {
    for (kind, away_ms) in [("disconnect", 60), ("vanish", 1_650)] {
        for qos in [1, 2] {
            let plan = with_events(plan("pair.json", qos), &[(500, kind, &[3]), (2_500, "return", &[3])]);
            let ([before, away, back], end) = counts_at("returns", &plan, [499, 500 + away_ms, 3_000]);
            assert_eq!([before.connected, away.connected, back.connected], [4, 3, 4], "{kind}, QoS {qos}");
            // A disconnect that was to be is none.
            assert_eq!((end.disconnects, end.offered, end.sent), (0, 80, 80), "{kind}, QoS {qos}");
            // Of QoS 2 what was half exchanged goes on, too.
            assert_eq!((end.delivered, end.unacknowledged), (end.expected, 0), "{kind}, QoS {qos}: {end:?}");
        }
    }
}

#[test]
fn who_vanishes_publishes_nothing_and_who_disconnects_publishes_later() {
    let of = |kind| {
        let plan = with_events(plan("pair.json", 1), &[(505, kind, &[0, 1]), (2_505, "return", &[0, 1])]);
        counts_at("publishes", &plan, []).1
    };
    let [disconnected, vanished] = ["disconnect", "vanish"].map(of);
    assert_eq!((disconnected.offered, disconnected.sent, disconnected.delivered), (80, 80, 80));
    assert_eq!((vanished.offered, vanished.sent), (80, 40), "two of them for two seconds of four");
    assert_eq!((vanished.delivered, vanished.unacknowledged), (40, 0));
}

#[test]
fn who_does_not_return_is_missing_at_the_end_and_a_broker_notices_who_vanished_by_its_keep_alive() {
    let plan = with_events(plan("pair.json", 1), &[(500, "vanish", &[2, 3])]);
    let scratch = Scratch::new("vanished");
    let (mut simulation, began) = begun(&plan, &scratch);
    let mut known = |ms: u64| {
        simulation.run_until(began + Duration::from_ms(ms), &mut Quiet).expect("a run");
        let state = simulation.state().expect("a state");
        let broker = state.hosts.iter().flat_map(|host| &host.servers).next().expect("a broker");
        broker.sessions.iter().filter(|session| session.connected).count()
    };
    // More than one and a half seconds after it was last heard, when the broker next looks: every six seconds.
    assert_eq!([known(2_200), known(6_000)], [4, 2]);
    simulation.run(&mut Quiet).expect("a run");
    let counts = simulation.counts();
    assert!(counts.delivered < counts.expected && counts.unacknowledged == 0, "{counts:?}");
    finish(simulation);
}

#[test]
fn who_does_not_read_keeps_its_connection_until_its_keep_alive_and_reads_everything_later() {
    let mut plan = plan("pair.json", 1);
    for group in plan["groups"].as_array_mut().expect("groups") {
        group["protocol"]["mqtt"]["keep_alive_s"] = json!(60);
    }
    let plan = with_events(plan, &[(500, "stop_reading", &[2, 3]), (2_500, "continue_reading", &[2, 3])]);
    let ([still, before, after], end) = counts_at("reads", &plan, [520, 2_499, 2_600]);
    assert_eq!(still.delivered, before.delivered);
    // The window of 20 of each, which nobody acknowledges, and then the rest.
    assert!(after.delivered >= before.delivered + 38, "{before:?}, {after:?}");
    assert_eq!((end.disconnects, end.delivered), (0, end.expected));
}

#[test]
fn a_connection_that_ends_while_nobody_reads_is_noticed_when_somebody_does() {
    let mut plan =
        with_events(plan("pair.json", 1), &[(500, "stop_reading", &[2]), (1_500, "continue_reading", &[2])]);
    for group in plan["groups"].as_array_mut().expect("groups") {
        group["protocol"]["mqtt"]["keep_alive_s"] = json!(60);
        group["reconnect"]["initial_ns"] = json!(10_000_000);
    }
    plan["servers"][0]["role"]["broker"]["settings"]["persistence"] = json!(true);
    let events = plan["events"].as_array_mut().expect("events");
    for (place, at, kind) in [(1, 505, "stop"), (2, 520, "start")] {
        let change = json!({ "kind": kind, "persistence": true });
        events.insert(
            place,
            json!({ "at_ns": at * 1_000_000, "name": kind, "server": "broker", "change": change }),
        );
    }
    let ([meanwhile, after], end) = counts_at("ends", &plan, [1_499, 2_000]);
    assert_eq!([meanwhile.disconnects, after.disconnects], [3, 4]);
    assert_eq!((end.delivered, end.unacknowledged), (end.expected, 0), "{end:?}");
}

#[test]
fn clients_of_every_protocol_leave_and_come_back() {
    let all: &[u32] = &[0, 1, 2, 3];
    let events = [
        (100, "stop_reading", all),
        (200, "vanish", all),
        (300, "vanish", all),
        (400, "return", all),
        (500, "disconnect", all),
        (500, "return", all),
        (600, "continue_reading", all),
        (700, "disconnect", all),
        (900, "vanish", all),
        (2_000, "return", all),
    ];
    for name in
        ["pair.json", "lossy.json", "gateway.json", "asleep.json", "zeromq.json", "radio.json", "proxy.json"]
    {
        let mut plan = with_events(plan(name, 0), &events);
        let clients: u64 = plan["groups"]
            .as_array()
            .expect("groups")
            .iter()
            .map(|group| group["count"].as_u64().expect("a count"))
            .sum();
        for event in plan["events"].as_array_mut().expect("events") {
            event["clients"].as_array_mut().expect("clients").truncate(clients as usize);
        }
        plan["phases"]["cool_down_ns"] = json!(1_000_000_000);
        let (_, end) = counts_at("protocols", &plan, []);
        assert!(end.delivered > 0 && end.delivered <= end.expected, "{name}: {end:?}");
    }
}
