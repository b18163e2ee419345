//! What the clients do when the broker dies, refuses, is silent or is not there.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::fleet_support::{
    Mosquitto, Performance, ValidityEvidence, fake_broker, perform, plan, publisher, subscriber, until,
};
use mqttlab_system::process::Signal;
use mqttlab_units::Duration;
use serde_json::{Value, json};

const KEEPS_SESSIONS: &str = "persistence true\nautosave_interval 1\nautosave_on_changes true";

fn persistent(mut group: Value) -> Value {
    group["protocol"]["mqtt"]["clean_session"] = json!(false);
    group["protocol"]["mqtt"]["session_expiry_s"] = json!(3600);
    group
}

/// Publishes for a second and a half, in the middle of which the broker is ended and started again.
fn interrupted(broker: &mut Mosquitto, signal: Signal, version: &str) -> ValidityEvidence {
    let mut groups = Vec::new();
    for qos in 0..3 {
        groups.push(persistent(publisher(&format!("p{qos}"), 2, "t/{group}/{client}", qos, 5_000)));
        groups.push(persistent(subscriber(&format!("s{qos}"), 1, &format!("t/p{qos}/#"), qos)));
    }
    groups.iter_mut().for_each(|group| group["protocol"]["mqtt"]["version"] = json!(version));
    let performance = Performance::start(plan(broker.port, 1500, &groups));
    performance.wait_until_ready();
    let schedule = performance.begin();
    let figures = &performance.control.figures;
    until("a part is delivered", || figures.delivered.load(Relaxed) > 100);
    broker.end(signal);
    until("everybody has noticed", || figures.connected.load(Relaxed) == 0);
    let offered = figures.offered.load(Relaxed);
    until("some messages had nowhere to go", || figures.offered.load(Relaxed) > offered + 60);
    broker.restart();
    performance.wait_until_ready();
    until("publishing is over and everything acknowledged", || {
        performance.control.now() >= schedule.measure_until && figures.unacknowledged.load(Relaxed) == 0
    });
    // What is still under way to subscribers, apart from what is lost, which nobody can wait for.
    let settle = performance.control.now() + Duration::from_ms(500);
    until("deliveries have had their time", || performance.control.now() > settle);
    performance.end()
}

fn count(evidence: &ValidityEvidence, qos: u8, fate: &str) -> usize {
    let is =
        |row: &&std::collections::BTreeMap<String, Value>| row["qos"] == json!(qos) && row["fate"] == fate;
    evidence.messages.iter().filter(is).count()
}

#[test]
fn persistent_sessions_lose_nothing_over_an_orderly_restart() {
    for version in ["3.1.1", "5"] {
        let Some(mut broker) = Mosquitto::start(KEEPS_SESSIONS) else { return };
        let evidence = interrupted(&mut broker, Signal::TERM, version);
        for qos in [1, 2] {
            assert_eq!(
                (count(&evidence, qos, "delivered"), count(&evidence, qos, "lost")),
                (600, 0),
                "QoS {qos}"
            );
        }
        assert_eq!(count(&evidence, 2, "duplicate"), 0);
        assert_eq!(count(&evidence, 1, "unsent") + count(&evidence, 2, "unsent"), 0);
        // QoS 0 has no session that waits: what was offered without a connection is counted as unsent.
        assert!(count(&evidence, 0, "unsent") > 0);
        let accounted =
            ["delivered", "lost", "unsent"].map(|fate| count(&evidence, 0, fate)).iter().sum::<usize>();
        assert_eq!(accounted, 600);
        let events = evidence.events();
        assert_eq!((events["disconnect"], events["connack"]), (9, 18));
        assert!(events["reconnect"] >= 9 && evidence.says("connack", "session present"));
    }
}

#[test]
fn every_message_is_accounted_for_when_the_broker_is_killed() {
    let Some(mut broker) = Mosquitto::start(KEEPS_SESSIONS) else { return };
    let evidence = interrupted(&mut broker, Signal::KILL, "3.1.1");
    for qos in 0..3 {
        let accounted =
            ["delivered", "lost", "unsent"].map(|fate| count(&evidence, qos, fate)).iter().sum::<usize>();
        assert_eq!(accounted, 600, "QoS {qos}");
    }
    let acknowledged = evidence.messages.iter().filter(|row| row["fate"] == "delivered" && row["qos"] != 0);
    assert!(acknowledged.clone().count() > 0);
    assert!(acknowledged.clone().all(|row| !row["acknowledged_ns"].is_null()));
    // A broker that lost its sessions may throw a client out once more, over the second half of a QoS 2 exchange that
    // it knows nothing of.
    assert!(evidence.events()["disconnect"] >= 9);
}

#[test]
fn a_farewell_long_after_the_connection_is_not_a_disconnect() {
    let Some(broker) = Mosquitto::start("") else { return };
    let mut groups = [publisher("p", 2, "t", 1, 50_000), subscriber("s", 2, "t", 1)];
    for group in &mut groups {
        group["reconnect"]["connect_timeout_ns"] = json!(300_000_000);
    }
    let performance = Performance::start(plan(broker.port, 600, &groups));
    performance.wait_until_ready();
    let schedule = performance.begin();
    until("it is over", || performance.control.now() > schedule.measure_until);
    let evidence = performance.end();
    assert_eq!(evidence.events()["connack"], 4);
    assert_eq!(evidence.events().get("disconnect"), None);
}

#[test]
fn without_a_broker_everything_is_offered_and_nothing_sent() {
    let mut groups = [publisher("p", 2, "t", 0, 10_000), publisher("q", 1, "t", 1, 10_000)];
    groups[1]["protocol"]["mqtt"]["max_queued"] = json!(5);
    // Nobody listens there. A port that was free a moment ago may be another test's broker by now.
    let performance = Performance::start(plan(1, 200, &groups));
    let schedule = performance.begin();
    until("all is offered", || performance.control.figures.offered.load(Relaxed) == 60);
    until("it is over", || performance.control.now() > schedule.measure_until);
    let evidence = performance.end();
    assert_eq!(evidence.fates(), [("no_receiver", 5), ("unsent", 55)].into());
    assert!(evidence.says("note", "refused") && evidence.events()["reconnect"] > 0);
    assert_eq!(evidence.events().get("disconnect"), None);
}

#[test]
fn a_refusal_for_good_is_not_tried_again_and_a_passing_one_is() {
    for (code, again) in [(5, false), (3, true)] {
        let attempts = Arc::new(AtomicU32::new(0));
        let broker = fake_broker({
            let attempts = Arc::clone(&attempts);
            move |mut stream| {
                attempts.fetch_add(1, Relaxed);
                let mut connect = [0; 256];
                let _ = stream.read(&mut connect);
                let _ = stream.write_all(&[0x20, 2, 0, code]);
            }
        });
        let performance = Performance::start(plan(broker.port(), 100, &[subscriber("s", 1, "t", 0)]));
        let figures = &performance.control.figures;
        match again {
            false => until("the client gives up", || figures.failed.load(Relaxed) == 1),
            true => until("it tries again", || attempts.load(Relaxed) > 2),
        }
        let evidence = performance.end();
        assert!(evidence.says("refused", &format!("CONNECT: code 0x{code:02x}")));
        assert_eq!(evidence.events().contains_key("reconnect"), again, "code {code}");
    }
}

#[test]
fn a_silent_broker_is_given_up_at_the_connect_timeout() {
    let held = std::sync::Mutex::new(Vec::new());
    let broker = fake_broker(move |stream| held.lock().unwrap().push(stream));
    let mut silent = subscriber("s", 1, "t", 0);
    silent["reconnect"]["connect_timeout_ns"] = json!(100_000_000);
    silent["reconnect"]["enabled"] = json!(false);
    let performance = Performance::start(plan(broker.port(), 100, &[silent]));
    until("the client gives up", || performance.control.figures.failed.load(Relaxed) == 1);
    let evidence = performance.end();
    assert!(evidence.says("note", "no CONNACK in time"));
    assert_eq!(evidence.events(), [("connect", 1), ("note", 1), ("tcp_info", 1)].into());
}

#[test]
fn a_broker_that_answers_no_ping_is_left_and_tried_again() {
    let held = std::sync::Mutex::new(Vec::new());
    let broker = fake_broker(move |mut stream: TcpStream| {
        let mut connect = [0; 256];
        let _ = stream.read(&mut connect);
        let _ = stream.write_all(&[0x20, 2, 0, 0]);
        held.lock().unwrap().push(stream);
    });
    let mut group = publisher("p", 1, "t", 1, 1_000_000);
    group["protocol"]["mqtt"]["keep_alive_s"] = json!(1);
    let performance = Performance::start(plan(broker.port(), 100, &[group]));
    until("the connection is lost", || performance.control.figures.disconnects.load(Relaxed) == 1);
    until("there is another", || performance.control.figures.connected.load(Relaxed) == 1);
    let evidence = performance.end();
    assert!(evidence.says("disconnect", "no PINGRESP in time"));
}

#[test]
fn bytes_that_are_not_mqtt_end_the_connection_once() {
    let broker = fake_broker(move |mut stream: TcpStream| {
        let mut connect = [0; 256];
        let _ = stream.read(&mut connect);
        let _ = stream.write_all(&[0x20, 2, 0, 0, 0x00, 0x00, 0x40, 2, 0, 1]);
    });
    let mut group = publisher("p", 1, "t", 1, 1_000_000);
    group["reconnect"]["enabled"] = json!(false);
    let performance = Performance::start(plan(broker.port(), 100, &[group]));
    until("the client gives up", || performance.control.figures.failed.load(Relaxed) == 1);
    let evidence = performance.end();
    assert!(evidence.says("disconnect", "malformed packet"));
    assert_eq!(evidence.events()["disconnect"], 1);
}

#[test]
fn a_will_is_published_when_the_client_vanishes() {
    let Some(broker) = Mosquitto::start("") else { return };
    let mut mourned = publisher("m", 1, "t", 0, 1_000_000);
    mourned["protocol"]["mqtt"]["will"] =
        json!({ "topic": "wills", "payload": "adieu, monde", "qos": 1, "retain": false });
    // The second connection under the same name takes the first one's place, which dies without a word.
    mourned["count"] = json!(2);
    mourned["protocol"]["mqtt"]["client_id"] = json!("same");
    mourned["reconnect"]["enabled"] = json!(false);
    mourned["connect_over_ns"] = json!(400_000_000);
    let performance = Performance::start(plan(broker.port, 100, &[subscriber("s", 1, "wills", 1), mourned]));
    std::thread::sleep(std::time::Duration::from_millis(900));
    let evidence = performance.end();
    assert_eq!(evidence.fates(), [("will", 1)].into());
}

#[test]
fn what_a_full_session_does_not_take_is_unsent() {
    let broker = fake_broker({
        let held = std::sync::Mutex::new(Vec::new());
        move |mut stream: TcpStream| {
            let mut connect = [0; 256];
            let _ = stream.read(&mut connect);
            let _ = stream.write_all(&[0x20, 2, 0, 0]);
            held.lock().unwrap().push(stream);
        }
    });
    let mut group = publisher("p", 1, "t", 1, 1_000);
    group["protocol"]["mqtt"]["max_inflight"] = json!(3);
    group["protocol"]["mqtt"]["max_queued"] = json!(4);
    let performance = Performance::start(plan(broker.port(), 50, &[group]));
    performance.wait_until_ready();
    performance.begin();
    until("all is offered", || performance.control.figures.offered.load(Relaxed) == 50);
    assert_eq!(performance.control.figures.sent.load(Relaxed), 7);
    assert_eq!(performance.control.figures.unacknowledged.load(Relaxed), 7);
    let evidence = performance.end();
    assert_eq!(evidence.fates(), [("no_receiver", 7), ("unsent", 43)].into());
    let written = evidence.messages.iter().filter(|row| !row["written_ns"].is_null()).count();
    assert_eq!(written, 3);
}

#[test]
fn a_thousand_clients_keep_their_schedule() {
    let Some(broker) = Mosquitto::start("") else { return };
    let mut groups = [publisher("p", 500, "t/{client}", 1, 100_000), subscriber("s", 500, "t/{client}", 1)];
    groups[0]["publish"]["start_phase"] = json!("random");
    groups.iter_mut().for_each(|group| group["connect_over_ns"] = json!(300_000_000));
    let evidence = perform(plan(broker.port, 500, &groups));
    assert_eq!(evidence.fates(), [("delivered", 2500)].into());
}
