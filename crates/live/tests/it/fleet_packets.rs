//! What clients record of their own packets where no frame will show them, and that they do not where frames do.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use crate::fleet_support::{
    Mosquitto, Performance, ValidityEvidence, perform, plan, publisher, subscriber, until,
};
use mqttlab_live::clients::UnrecordedConnections;
use mqttlab_plan::{NetworkKind, Plan};
use mqttlab_system::process::Signal;
use serde_json::{Value, json};

fn with_packets(mut plan: Plan) -> Plan {
    plan.recording.packets = true;
    plan
}

/// How many packets of each kind went each way.
fn counts(packets: &[BTreeMap<String, Value>]) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    for row in packets {
        let word = |name: &str| row[name].as_str().unwrap().to_owned();
        *counts.entry((word("direction"), word("kind"))).or_default() += 1;
    }
    counts
}

/// The connections of clients are whole: what stands in the rows of each direction lies one behind the other.
fn hold_together(evidence: &ValidityEvidence) {
    let mut ends = BTreeMap::new();
    for row in &evidence.packets {
        assert_eq!((&row["seen_by"], &row["segments"]), (&json!("client"), &Value::Null));
        let up = row["direction"] == "to_broker";
        assert_eq!((row["written_ns"].is_null(), row["read_ns"].is_null()), (!up, up), "{row:?}");
        assert!(row["first_sent_ns"].is_null() && row["complete_ns"].is_null());
        let end = ends.entry((row["connection"].as_u64().unwrap(), up)).or_insert(0);
        assert_eq!(row["stream_start"].as_u64().unwrap(), *end);
        *end = row["stream_end"].as_u64().unwrap();
    }
}

#[test]
fn every_packet_of_every_qos_is_recorded_once_with_the_message_that_it_carries() {
    let Some(broker) = Mosquitto::start("") else { return };
    for (qos, answers) in [(0, [0, 0, 0, 0]), (1, [20, 0, 0, 0]), (2, [0, 20, 20, 20])] {
        let groups = [publisher("p", 1, "t/{client}", qos, 10_000), subscriber("s", 1, "t/#", qos)];
        let evidence = perform(with_packets(plan(broker.port, 200, &groups)));
        assert_eq!(evidence.fates(), [("delivered", 20)].into());
        hold_together(&evidence);
        let counts = counts(&evidence.packets);
        let count = |way: &str, kind: &str| counts.get(&(way.into(), kind.into())).copied().unwrap_or(0);
        let there = ["PUBLISH", "PUBREL"].map(|kind| count("to_broker", kind));
        let back = ["PUBACK", "PUBREC", "PUBCOMP"].map(|kind| count("to_client", kind));
        assert_eq!(there, [20, answers[2]], "QoS {qos}");
        assert_eq!(back, [answers[0], answers[1], answers[3]], "QoS {qos}");
        assert_eq!(count("to_client", "PUBLISH"), 20);
        assert_eq!((count("to_broker", "CONNECT"), count("to_client", "CONNACK")), (2, 2));
        assert_eq!((count("to_broker", "SUBSCRIBE"), count("to_client", "SUBACK")), (1, 1));
        assert_eq!(count("to_broker", "DISCONNECT"), 2);
        for row in evidence.packets.iter().filter(|row| row["kind"] == "PUBLISH") {
            let message = evidence.messages.iter().find(|message| message["sequence"] == row["sequence"]);
            let message = message.expect("it carries one of the messages");
            assert_eq!((&row["publisher"], &row["topic"]), (&json!(0), &json!("t/0")));
            assert_eq!((&row["qos"], &row["payload_bytes"]), (&json!(qos), &json!(64)));
            match row["direction"] == "to_broker" {
                true => assert!(row["written_ns"].as_u64() <= message["written_ns"].as_u64()),
                false => assert!(row["read_ns"].as_u64() <= message["received_ns"].as_u64()),
            }
        }
    }
}

#[test]
fn connections_are_told_apart_when_clients_come_back_and_relays_say_whose_message_it_is() {
    let Some(mut broker) = Mosquitto::start("") else { return };
    let mut relay = subscriber("relay", 1, "ping/+", 1);
    relay["relay"] = json!({ "topic_suffix": "/pong", "qos": 1 });
    let groups = [relay, publisher("p", 1, "ping/{client}", 1, 20_000), subscriber("s", 1, "ping/+/pong", 1)];
    let performance = Performance::start(with_packets(plan(broker.port, 1_000, &groups)));
    performance.wait_until_ready();
    broker.end(Signal::TERM);
    let figures = &performance.control.figures;
    until("everybody has noticed", || figures.connected.load(Relaxed) == 0);
    broker.restart();
    // What is published before a subscriber is back is lost to it, and the run would never settle.
    performance.wait_until_ready();
    let schedule = performance.begin();
    performance.wait_until_settled(schedule);
    let evidence = performance.end();
    hold_together(&evidence);
    let connects = evidence.packets.iter().filter(|row| row["kind"] == "CONNACK");
    let mut clients = BTreeMap::<u64, Vec<u64>>::new();
    for row in connects {
        let connections = clients.entry(row["client"].as_u64().unwrap()).or_default();
        connections.push(row["connection"].as_u64().unwrap());
    }
    assert_eq!(clients.len(), 3);
    let mut all: Vec<u64> = clients.into_values().flatten().collect();
    let with_repetitions = all.len();
    assert!(with_repetitions >= 6, "each has come back");
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), with_repetitions, "no connection has two CONNACKs");
    let of_relay = evidence
        .packets
        .iter()
        .filter(|row| row["kind"] == "PUBLISH" && row["client"] == 0 && row["direction"] == "to_broker");
    let mut relayed = 0;
    for row in of_relay {
        assert_eq!((&row["publisher"], &row["topic"]), (&json!(1), &json!("ping/0/pong")));
        relayed += 1;
    }
    assert!(relayed > 10, "{relayed}");
}

#[test]
fn beside_a_server_that_somebody_listens_to_only_the_others_clients_record_their_packets() {
    let Some(broker) = Mosquitto::start("") else { return };
    let pair = |n: u8| {
        [
            publisher(&format!("p{n}"), 1, &format!("t{n}"), 1, 10_000),
            subscriber(&format!("s{n}"), 1, &format!("t{n}"), 1),
        ]
    };
    let mut plan = with_packets(plan(broker.port, 200, &[pair(0), pair(1)].concat()));
    // The same broker under a second name.
    plan.servers.push(plan.servers[0].clone());
    plan.groups[2..].iter_mut().for_each(|group| group.connects_to = 1);
    // Frames of an emulated network show what crosses links; somebody listens to the first server's own host.
    let mut emulated = plan.clone();
    emulated.network.kind = NetworkKind::Emulated;
    let performance = Performance::start_unseen(plan, UnrecordedConnections::of(&emulated, &[0]));
    performance.wait_until_ready();
    let schedule = performance.begin();
    performance.wait_until_settled(schedule);
    let evidence = performance.end();
    assert_eq!(evidence.fates(), [("delivered", 40)].into());
    hold_together(&evidence);
    let mut clients: Vec<u64> = evidence.packets.iter().map(|row| row["client"].as_u64().unwrap()).collect();
    clients.sort_unstable();
    clients.dedup();
    assert_eq!(clients, [2, 3]);
}

#[test]
fn a_run_that_wants_no_packets_has_none() {
    let Some(broker) = Mosquitto::start("") else { return };
    let evidence =
        perform(plan(broker.port, 50, &[publisher("p", 1, "t", 0, 10_000), subscriber("s", 1, "t", 0)]));
    assert!(evidence.packets.is_empty());
}
