//! What the clients publish and receive through a real broker, counted to the last message.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use crate::fleet_support::{Mosquitto, Performance, group, perform, plan, publisher, subscriber, until};
use serde_json::{Value, json};

const VERSIONS: [&str; 3] = ["3.1", "3.1.1", "5"];

#[test]
fn every_qos_and_version_reaches_every_other_at_the_lesser_qos() {
    let Some(broker) = Mosquitto::start("") else { return };
    let mut groups = Vec::new();
    for (qos, version) in (0..3).flat_map(|qos| VERSIONS.map(|version| (qos, version))) {
        let mut publishing = publisher(&format!("p{version}q{qos}"), 1, "t/{group}", qos, 10_000);
        let mut subscribing = subscriber(&format!("s{version}q{qos}"), 1, "t/#", qos);
        publishing["protocol"]["mqtt"]["version"] = json!(version);
        subscribing["protocol"]["mqtt"]["version"] = json!(version);
        groups.extend([publishing, subscribing]);
    }
    let evidence = perform(plan(broker.port, 200, &groups));
    assert_eq!(evidence.fates(), [("delivered", 9 * 9 * 20)].into());
    for row in &evidence.messages {
        let subscriber_qos = i64::from(row["subscriber"].as_i64().unwrap() as i32 / 6);
        let lesser = row["qos"].as_i64().unwrap().min(subscriber_qos);
        assert_eq!(row["qos_delivered"], json!(lesser));
        assert_eq!((&row["identified"], &row["payload_bytes"]), (&json!("payload"), &json!(64)));
        assert_eq!(row["acknowledged_ns"].is_null(), row["qos"] == 0);
        assert!(row["written_ns"].as_i64() >= row["sent_ns"].as_i64());
        assert!(row["sent_ns"].as_i64() >= row["intended_ns"].as_i64());
        assert!(row["received_ns"].as_i64() > row["sent_ns"].as_i64());
    }
    let expected =
        [("close", 18), ("connack", 18), ("connect", 18), ("suback", 9), ("subscribe", 9), ("tcp_info", 18)];
    assert_eq!(evidence.events(), expected.into());
}

#[test]
fn wildcards_overlaps_and_other_topics_are_expected_as_the_broker_delivers() {
    let Some(broker) = Mosquitto::start("allow_duplicate_messages false") else { return };
    let mut rotating = publisher("p", 3, "s/{client}/t{topic}", 1, 5_000);
    rotating["publish"]["topics"] = json!(4);
    let mut both = group("both", 1);
    both["subscriptions"] = json!([{ "filter": "s/+/t0", "qos": 1 }, { "filter": "s/0/#", "qos": 0 }]);
    let groups = [rotating, subscriber("own", 3, "s/{client}/+", 1), both, subscriber("none", 1, "s/+", 1)];
    let evidence = perform(plan(broker.port, 200, &groups));
    // 40 messages of each of three publishers to their own subscribers; a quarter of them, and those of the first,
    // to the one with two filters.
    assert_eq!(evidence.fates(), [("delivered", 120 + 30 + 30)].into());
}

#[test]
fn small_payloads_are_matched_by_order_and_others_not_at_all() {
    let Some(broker) = Mosquitto::start("") else { return };
    let sized = |name: &str, bytes: u64, count: u32, topic: &str| {
        let mut publishing = publisher(name, count, topic, 1, 10_000);
        publishing["publish"]["payload"] = json!({ "kind": "random", "bytes": bytes });
        publishing
    };
    let groups = [
        sized("empty", 0, 2, "t/{group}/{client}"),
        sized("eight", 8, 1, "t/{group}"),
        sized("nine", 9, 1, "t/{group}"),
        sized("crowd", 4, 2, "t/{group}"),
        subscriber("s", 1, "t/#", 1),
    ];
    let evidence = perform(plan(broker.port, 200, &groups));
    // On one topic with several publishers nothing tells whose a message is: what arrives is foreign, and what became of
    // those that were sent is unknown.
    assert_eq!(evidence.fates(), [("delivered", 80), ("foreign", 40), ("unknown", 40)].into());
    let by_order = evidence.messages.iter().filter(|row| row["identified"] == "order").count();
    assert_eq!(by_order, 60);
}

#[test]
fn payloads_of_every_kind_arrive_whole() {
    let Some(broker) = Mosquitto::start("") else { return };
    let kinds = [
        (json!({ "kind": "gps" }), 400),
        (json!({ "kind": "image" }), 1300),
        (json!({ "kind": "random", "bytes": 100_000 }), 100_000),
        (json!({ "kind": "fixed", "bytes": 1_000_000 }), 1_000_000),
        (json!({ "kind": "fixed", "bytes": 10_000_000 }), 10_000_000),
        (json!({ "kind": "random", "bytes": 10_000_000 }), 10_000_000),
    ];
    let groups: Vec<Value> = kinds
        .iter()
        .enumerate()
        .map(|(index, (payload, _))| {
            let mut publishing = publisher(&format!("p{index}"), 1, "t/{group}", 2, 100_000);
            publishing["publish"]["payload"] = payload.clone();
            publishing
        })
        .chain([subscriber("s", 1, "t/#", 2)])
        .collect();
    let evidence = perform(plan(broker.port, 200, &groups));
    assert_eq!(evidence.fates(), [("delivered", 12)].into());
    for row in &evidence.messages {
        let (bytes, about) =
            (row["payload_bytes"].as_i64().unwrap(), kinds[row["publisher"].as_i64().unwrap() as usize].1);
        assert!((bytes - about).abs() <= about / 20, "{bytes} instead of about {about}");
        assert_eq!(row["identified"], "payload");
    }
}

#[test]
fn a_relays_copy_is_measured_from_the_first_publishers_intended_time() {
    let Some(broker) = Mosquitto::start("") else { return };
    let mut relay = subscriber("relay", 1, "ping/+", 1);
    relay["relay"] = json!({ "topic_suffix": "/pong", "qos": 2 });
    let mut pinging = publisher("p", 2, "ping/{client}", 1, 10_000);
    pinging["subscriptions"] = json!([{ "filter": "ping/{client}/pong", "qos": 2 }]);
    let evidence = perform(plan(broker.port, 200, &[relay, pinging]));
    assert_eq!(evidence.fates(), [("delivered", 80)].into());
    for row in &evidence.messages {
        let (to_relay, publisher) = (row["subscriber"] == 0, &row["publisher"]);
        assert!(to_relay || row["subscriber"] == *publisher);
        assert_eq!(row["qos_delivered"], json!(if to_relay { 1 } else { 2 }));
        let other = |other: &&BTreeMap<String, Value>| {
            other["sequence"] == row["sequence"]
                && other["publisher"] == *publisher
                && other["subscriber"] == 0
        };
        let first_leg = evidence.messages.iter().find(other).unwrap();
        assert!(row["latency_ns"].as_i64() >= first_leg["latency_ns"].as_i64());
    }
}

#[test]
fn a_shared_subscription_delivers_once_to_one_of_its_members() {
    let Some(broker) = Mosquitto::start("") else { return };
    let mut members = subscriber("m", 3, "$share/team/t/#", 1);
    members["protocol"]["mqtt"]["version"] = json!("5");
    let groups = [publisher("p", 1, "t/{client}", 1, 5_000), members, subscriber("s", 1, "t/#", 0)];
    let evidence = perform(plan(broker.port, 200, &groups));
    assert_eq!(evidence.fates(), [("delivered", 80)].into());
    let expected = evidence.control.figures.expected.load(Relaxed);
    assert_eq!(expected, 80);
}

#[test]
fn back_to_back_publishers_send_what_their_window_lets_out_and_no_more_than_asked() {
    let Some(broker) = Mosquitto::start("") else { return };
    let mut groups = vec![subscriber("s", 1, "t/#", 2)];
    for qos in 0..3 {
        let mut publishing = publisher(&format!("p{qos}"), 2, "t/{group}/{client}", qos, 1);
        publishing["publish"]["arrival"] = json!({ "kind": "back_to_back" });
        publishing["publish"]["messages"] = json!(500);
        // Nothing may wait: the next message is made when there is room for it.
        publishing["protocol"]["mqtt"]["max_queued"] = json!(0);
        groups.push(publishing);
    }
    let performance = Performance::start(plan(broker.port, 60_000, &groups));
    performance.wait_until_ready();
    performance.begin();
    let control = &performance.control;
    until("all is offered and settled", || {
        control.figures.offered.load(Relaxed) == 3000 && control.is_settled()
    });
    assert_eq!(performance.end().fates(), [("delivered", 3000)].into());
}
