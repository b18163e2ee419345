//! Frames of MQTT-SN 2.0 that another maker's codec makes and takes: `data/maps-messaging-2.0.txt` says whose.

use std::collections::BTreeMap;

use mqttlab_mqtt::Qos;
use mqttlab_mqttsn::v2::{Packet, Topic, decode};

fn frames() -> BTreeMap<&'static str, Vec<u8>> {
    let lines = include_str!("../data/maps-messaging-2.0.txt").lines().filter(|line| !line.starts_with('#'));
    let frame = |line: &'static str| {
        let mut words = line.split_ascii_whitespace();
        let name = words.next().expect("a name");
        let digits: String = words.skip(1).collect();
        let octet = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
        (name, (0..digits.len()).step_by(2).map(octet).collect())
    };
    lines.map(frame).collect()
}

#[test]
fn frames_of_another_maker_mean_here_what_they_mean_there() {
    let name = Topic::Name;
    let expected = [
        (
            "connect",
            Packet::Connect {
                clean_start: true,
                id: 0x1234,
                keep_alive_s: 60,
                packet_max: 0,
                client_id: "client1",
            },
        ),
        (
            "publish",
            Packet::Publish {
                dup: false,
                qos: Qos::AtMostOnce,
                retain: false,
                id: 0,
                topic: name("a/b"),
                payload: b"x",
            },
        ),
        (
            "subscribe",
            Packet::Subscribe {
                no_local: false,
                qos: Qos::AtLeastOnce,
                retain_as_published: false,
                retain_handling: 0,
                id: 0x1234,
                topic: name("sensors/+"),
            },
        ),
        ("pingreq", Packet::Pingreq { id: 0x1234 }),
        ("sleepreq", Packet::Sleepreq { retain_aliases: true, id: 0x1234, duration_s: 60 }),
        (
            "connack",
            Packet::Connack {
                session_present: false,
                id: 0x1234,
                reason: 0,
                session_expiry_s: Some(120),
                keep_alive_s: Some(60),
                client_id: "",
            },
        ),
        (
            "connack-auth",
            Packet::Connack {
                session_present: false,
                id: 0x1234,
                reason: 0,
                session_expiry_s: None,
                keep_alive_s: None,
                client_id: "id42",
            },
        ),
        ("suback", Packet::Suback { id: 0x1234, alias: Some(Topic::Session(42)), reason: Some(0) }),
        ("pingresp", Packet::Pingresp { id: 0x1234, remaining: Some(7) }),
        ("sleepresp", Packet::Sleepresp { id: 0x1234, duration_s: Some(60), reason: Some(0) }),
    ];
    let frames = frames();
    assert_eq!(frames.len(), expected.len());
    for (name, packet) in expected {
        let frame = &frames[name];
        assert_eq!(decode(frame), Ok((packet, frame.len())), "{name}");
    }
}
