//! Lines of EMQX's log at level debug, and of its traces: `mqtt_packet_received` and `mqtt_packet_sent` with the packet.
//!
//! Written after EMQX 5.0 to 5.8 (`emqx_packet:format`, `emqx_logger_textfmt`, `emqx_logger_jsonfmt`, and the manual's "Logs"
//! and "Log Trace"), which order the fields differently. What does not matter is passed over.
//!
//! ```text
//! 2023-01-30T16:39:24.889361+08:00 [debug] msg: mqtt_packet_received, …, clientid: a, packet: PUBLISH(Q1, R0, D0,
//!     Topic=t, PacketId=2, Payload=hello), tag: MQTT
//! ```
//!
//! With its payload a message is told from others of its topic. A payload that is hidden or cut is none.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::broker_events::{AckKind, BrokerEvent, LoggedAck, LoggedPublish, Way};
use super::stamps::{Stamp, stamp};

/// Whether a line is of EMQX's log for certain.
pub fn is_line(line: &str) -> bool {
    line.contains("msg: mqtt_packet_")
        || line.contains("\"msg\":\"mqtt_packet_")
        || (line.contains("] ") && line.contains("mfa: emqx_"))
        || line.contains("\"mfa\":\"emqx_")
}

/// The time of a line with a packet, and what it says.
pub fn read(line: &str, utc_offset_s: i64) -> Option<(Option<Stamp>, Vec<BrokerEvent>)> {
    if line.starts_with('{') {
        return read_json(line, utc_offset_s);
    }
    if line.contains("msg: emqx_connection_terminated") || line.contains("msg: terminate,") {
        let client = field(line, "clientid: ")?;
        let how = field(line, "reason: ").unwrap_or("closed").to_owned();
        return Some((time(line, utc_offset_s), vec![BrokerEvent::Ended { client: client.to_owned(), how }]));
    }
    let way = way(line, "msg: mqtt_packet_")?;
    let (_, packet) = line.split_once("packet: ")?;
    let client = field(line, "clientid: ").unwrap_or_default();
    Some((time(line, utc_offset_s), events(way, client, packet)))
}

fn read_json(line: &str, utc_offset_s: i64) -> Option<(Option<Stamp>, Vec<BrokerEvent>)> {
    if !line.contains("mqtt_packet_") {
        return None;
    }
    let value: Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let way = way(text("msg")?, "mqtt_packet_")?;
    let at = match value.get("time") {
        Some(Value::String(text)) => stamp(text, utc_offset_s),
        Some(Value::Number(number)) => stamp(&number.to_string(), utc_offset_s),
        _ => None,
    };
    Some((at, events(way, text("clientid").unwrap_or_default(), text("packet")?)))
}

fn way(text: &str, before: &str) -> Option<Way> {
    let (_, rest) = text.split_once(before)?;
    match rest {
        rest if rest.starts_with("received") => Some(Way::Received),
        rest if rest.starts_with("sent") => Some(Way::Sent),
        _ => None,
    }
}

fn time(line: &str, utc_offset_s: i64) -> Option<Stamp> {
    stamp(&line[..line.find('[')?], utc_offset_s)
}

/// The value of a field of the line, up to the next one.
fn field<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let (_, rest) = line.split_once(name)?;
    Some(&rest[..rest.find(", ").unwrap_or(rest.len())])
}

/// What a packet says: `PUBLISH(Q1, R0, D0, Topic=t, PacketId=2, Payload=hello), tag: MQTT`.
fn events(way: Way, client: &str, packet: &str) -> Vec<BrokerEvent> {
    let Some((kind, rest)) = packet.split_once('(') else { return Vec::new() };
    let named = |name: &str| value(rest, name);
    let number = |name: &str| named(name).and_then(|text| text.parse().ok());
    let owned = client.to_owned();
    match (kind, way) {
        ("CONNECT", Way::Received) => {
            let id = named("ClientId=").filter(|id| !id.is_empty()).unwrap_or(client);
            if id.is_empty() {
                return Vec::new();
            }
            let clean = named("CleanStart=") == Some("true");
            let level = number("ProtoVsn=").map(|level: u32| level as u8);
            vec![BrokerEvent::Connected { client: id.to_owned(), clean, level }]
        }
        _ if client.is_empty() => Vec::new(),
        ("CONNACK", Way::Sent) => {
            let present = number("AckFlags=").map(|flags: u32| flags & 1 == 1);
            vec![BrokerEvent::Connack { client: owned, present, code: number("ReasonCode=").unwrap_or(0) }]
        }
        ("PUBLISH", _) => publish(way, client, rest).map(BrokerEvent::Publish).into_iter().collect(),
        ("SUBSCRIBE", Way::Received) => asked(BrokerEvent::Subscribe(owned), rest),
        ("UNSUBSCRIBE", Way::Received) => asked(BrokerEvent::Unsubscribe(owned), rest),
        ("SUBACK", Way::Sent) => {
            let codes = rest.split_once("ReasonCodes=[").and_then(|(_, rest)| rest.split_once(']'));
            let codes = codes.map_or("", |(codes, _)| codes);
            let codes = codes.split(',').filter_map(|code| code.trim().parse().ok()).collect();
            vec![BrokerEvent::Suback { client: owned, codes }]
        }
        ("DISCONNECT", Way::Received) => {
            let how = "closed".to_owned();
            vec![BrokerEvent::Goodbye(owned.clone()), BrokerEvent::Ended { client: owned, how }]
        }
        (kind, _) => {
            let ack = AckKind::named(kind).zip(number("PacketId=")).map(|(kind, id)| {
                let code = number("ReasonCode=").unwrap_or(0);
                BrokerEvent::Ack(LoggedAck { way, client: owned, kind, id, code })
            });
            ack.into_iter().collect()
        }
    }
}

/// The value of a field of the packet, up to the next one or the packet's end.
fn value<'l>(rest: &'l str, name: &str) -> Option<&'l str> {
    let (_, rest) = rest.split_once(name)?;
    Some(rest[..rest.find([',', ')']).unwrap_or(rest.len())].trim())
}

/// `Q1, R0, D0, Topic=t, PacketId=2, Payload(text)=hello), …`
fn publish(way: Way, client: &str, rest: &str) -> Option<LoggedPublish> {
    let (flags, rest) = rest.split_once(", Topic=")?;
    let flag = |name: char| flags.split(", ").find_map(|flag| flag.strip_prefix(name));
    let (topic, rest) = rest.split_once(", PacketId=")?;
    let id = rest[..rest.find([',', ')']).unwrap_or(rest.len())].parse().unwrap_or(0);
    let payload = rest.split_once(", Payload").and_then(|(_, rest)| payload(rest));
    Some(LoggedPublish {
        way,
        client: client.to_owned(),
        dup: flag('D')? == "1",
        qos: flag('Q')?.parse().ok().filter(|&qos| qos < 3)?,
        retain: flag('R')? == "1",
        id,
        topic: topic.to_owned(),
        bytes: payload.map(|(_, bytes)| bytes),
        content: payload.map(|(content, _)| content),
    })
}

/// What stands for a payload, and its size: `=hello), tag: MQTT` or `(hex)=6869)`.
fn payload(rest: &str) -> Option<(u64, u32)> {
    let (label, rest) = rest.split_once('=')?;
    let end = ENDS.iter().filter_map(|end| rest.rfind(end)).max().or_else(|| rest.rfind(')'))?;
    let text = &rest[..end];
    if text == HIDDEN || text.ends_with(" bytes)") || text.ends_with("bytes)...") {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    (label, text).hash(&mut hasher);
    let bytes = if label == "(hex)" { text.len() / 2 } else { text.len() };
    Some((hasher.finish(), u32::try_from(bytes).unwrap_or(u32::MAX)))
}

/// `PacketId=1 TopicFilters=[a/b(#{nl => 0,qos => 1,rap => 0,rh => 0}),c]), …`
fn asked(first: BrokerEvent, rest: &str) -> Vec<BrokerEvent> {
    let mut events = vec![first];
    let Some((_, list)) = rest.split_once("TopicFilters=[") else { return events };
    let mut list = &list[..list.rfind(']').unwrap_or(list.len())];
    while !list.is_empty() {
        let options = list.find("(#{");
        let end = options.and_then(|at| list[at..].find("})").map(|end| (at, at + end + 2)));
        let (filter, qos, next) = match end {
            Some((at, end)) => {
                let qos = list[at..end].split_once("qos => ").and_then(|(_, rest)| rest.chars().next());
                (&list[..at], qos.unwrap_or('0'), end)
            }
            None => {
                let end = list.find(',').unwrap_or(list.len());
                (&list[..end], '0', end)
            }
        };
        events.push(BrokerEvent::Detail(format!("{} (QoS {qos})", filter.trim())));
        list = list[next..].trim_start_matches(',');
    }
    events
}

/// What follows a packet in a line.
const ENDS: [&str; 5] = ["), tag: ", "), payload: ", "), peername: ", "), mfa: ", "), line: "];
const HIDDEN: &str = "******";

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> Vec<BrokerEvent> {
        read(line, 0).map(|(_, events)| events).unwrap_or_default()
    }

    fn published(line: &str) -> LoggedPublish {
        match told(line).pop() {
            Some(BrokerEvent::Publish(publish)) => publish,
            other => panic!("no PUBLISH: {other:?}"),
        }
    }

    #[test]
    fn fields_may_stand_in_either_order() {
        let early = published(
            "2023-01-30T16:39:24.889361+08:00 [debug] msg: mqtt_packet_received, mfa: emqx_channel:handle_in/2, line: 356, \
             peername: 127.0.0.1:62119, clientid: a, packet: PUBLISH(Q1, R0, D1, Topic=a, b, PacketId=7, Payload=x), y), \
             tag: MQTT",
        );
        let late = published(
            "2025-07-08T07:37:04.677513+00:00 [debug] tag: MQTT, clientid: b, msg: mqtt_packet_sent, peername: 127.0.0.1:2, \
             packet: PUBLISH(Q0, R0, D0, Topic=a, b, PacketId=undefined, Payload=x), y)",
        );
        assert_eq!((early.topic.as_str(), early.id, early.dup, early.qos), ("a, b", 7, true, 1));
        assert_eq!((late.way, late.id, late.client.as_str()), (Way::Sent, 0, "b"));
        assert_eq!((early.bytes, early.content), (late.bytes, late.content));
        assert_eq!(early.bytes, Some(5));
    }

    #[test]
    fn json_lines_say_the_same() {
        let line = r#"{"time":1689000000123456,"level":"debug","msg":"mqtt_packet_sent","clientid":"b","packet":"PUBLISH(Q2, R1, D0, Topic=t, PacketId=9, Payload(hex)=FF00)"}"#;
        let (at, events) = read(line, 0).unwrap();
        assert_eq!(at.map(|at| (at.at.as_ns(), at.resolution_ns)), Some((1_689_000_000_123_456_000, 1_000)));
        let Some(BrokerEvent::Publish(publish)) = events.first() else { panic!("no PUBLISH") };
        assert_eq!((publish.qos, publish.retain, publish.bytes), (2, true, Some(2)));
    }

    #[test]
    fn filters_have_their_options_and_codes_their_places() {
        let line = "2023-01-30T16:39:24.8+08:00 [debug] msg: mqtt_packet_received, clientid: a, packet: SUBSCRIBE(Q1, R0, D0, \
                    PacketId=1 TopicFilters=[t/#(#{nl => 0,qos => 2,rap => 0,rh => 0}),u(#{nl => 0,qos => 0})]), tag: MQTT";
        let filters = ["t/# (QoS 2)", "u (QoS 0)"].map(|text| BrokerEvent::Detail(text.into()));
        assert_eq!(told(line)[1..], filters);
        let line = "2023-01-30T16:39:24.8+08:00 [debug] msg: mqtt_packet_sent, clientid: a, packet: SUBACK(Q0, R0, D0, \
                    PacketId=1, ReasonCodes=[2,135]), tag: MQTT";
        assert_eq!(told(line), [BrokerEvent::Suback { client: "a".into(), codes: vec![2, 135] }]);
    }

    #[test]
    fn a_payload_that_is_hidden_stands_for_nothing() {
        let line = "2023-01-30T16:39:24.8+08:00 [debug] msg: mqtt_packet_sent, clientid: a, packet: PUBLISH(Q0, R0, D0, Topic=t, \
                    PacketId=undefined, Payload(hidden)=******), tag: MQTT";
        assert_eq!(published(line).content, None);
    }
}
