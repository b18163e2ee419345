//! Lines of Mosquitto's log, as 1.4 to 2.0 write them with `log_type all` or `mosquitto -v` (checked against logs of 2.0.11).
//!
//! What stands before the message is the time, in whatever form `log_timestamp_format` has or the program that took the
//! line has put before it; [`super::stamps`] reads it.
//!
//! ```text
//! 1795895652: Received PUBLISH from a (d0, q1, r0, m1, 'topic', ... (7 bytes))
//! 1795895652: Sending PUBLISH to b (d0, q1, r0, m2, 'topic', ... (7 bytes))
//! 1795895652: Sending PUBACK to a (m1, rc0)
//! 1795895652: Received PUBACK from b (Mid: 2, RC:0)
//! ```

use super::broker_events::{AckKind, BrokerEvent, LoggedAck, LoggedPublish, Way};

/// Whether a message is of a packet that the broker has always written whole: where nothing is read of it, it is damaged.
pub fn is_packet(message: &str) -> bool {
    PACKETS.iter().any(|begin| message.starts_with(begin))
}

/// Splits a line into what stands before its message, and the message; `None` where it has none that is known.
pub fn split(line: &str) -> Option<(&str, &str)> {
    // A message begins the line, or behind a blank: there are few of these before it.
    let words = std::iter::once(0).chain(line.match_indices(' ').map(|(at, _)| at + 1));
    let mut begins = words.filter(|&at| MARKS.iter().any(|mark| line[at..].starts_with(mark)));
    Some(line.split_at(begins.next()?))
}

/// Whether a line is of Mosquitto's log for certain.
pub fn is_line(line: &str) -> bool {
    let Some((_, message)) = split(line) else { return false };
    (message.starts_with("mosquitto version ") && message.ends_with("ing"))
        || matches!(
            event(message),
            Some(BrokerEvent::Publish(_) | BrokerEvent::Connected { .. } | BrokerEvent::Ack(_))
        )
}

/// What a message says; `None` where that is of no use here.
pub fn event(message: &str) -> Option<BrokerEvent> {
    if let Some(detail) = message.strip_prefix('\t') {
        return Some(BrokerEvent::Detail(detail.to_owned()));
    }
    if message.starts_with("mosquitto version ") {
        return message.ends_with(" starting").then_some(BrokerEvent::Started);
    }
    let words = [
        ("Received ", " from ", Way::Received),
        ("Sending ", " to ", Way::Sent),
        ("Denied ", " from ", Way::Denied),
    ];
    for (begin, between, way) in words {
        if let Some((packet, rest)) = message.strip_prefix(begin).and_then(|rest| rest.split_once(between)) {
            return self::packet(way, packet, rest);
        }
    }
    connected(message).or_else(|| dropping(message)).or_else(|| ended(message))
}

/// A subscription that the broker has noted: `client qos filter`, behind whatever time. Only what was asked for is known to be
/// one.
pub fn granted(line: &str, client: &str, filter: &str) -> bool {
    let Some(rest) = line.strip_suffix(filter).and_then(|rest| rest.strip_suffix(' ')) else { return false };
    let Some(rest) = rest.strip_suffix(['0', '1', '2']) else { return false };
    let Some(rest) = rest.strip_suffix(' ').and_then(|rest| rest.strip_suffix(client)) else { return false };
    rest.is_empty() || rest.ends_with(' ')
}

/// A filter with its QoS, as it stands below a SUBSCRIBE.
pub fn filter(detail: &str) -> (&str, u8) {
    let Some((filter, qos)) = detail.rsplit_once(" (QoS ") else { return (detail, 0) };
    (filter, qos.bytes().next().map_or(0, |digit| digit.wrapping_sub(b'0').min(2)))
}

fn packet(way: Way, packet: &str, rest: &str) -> Option<BrokerEvent> {
    match packet {
        "PUBLISH" => publish(way, rest).map(BrokerEvent::Publish),
        "SUBSCRIBE" => Some(BrokerEvent::Subscribe(rest.to_owned())),
        "UNSUBSCRIBE" => Some(BrokerEvent::Unsubscribe(rest.to_owned())),
        "SUBACK" => Some(BrokerEvent::Suback { client: rest.to_owned(), codes: Vec::new() }),
        "DISCONNECT" if way == Way::Received => Some(BrokerEvent::Goodbye(rest.to_owned())),
        "CONNACK" => {
            let (client, codes) = rest.strip_suffix(')')?.rsplit_once(" (")?;
            let (present, code) = codes.split_once(", ")?;
            let present = Some(present == "1");
            Some(BrokerEvent::Connack { client: client.to_owned(), present, code: code.parse().ok()? })
        }
        _ => ack(way, AckKind::named(packet)?, rest).map(BrokerEvent::Ack),
    }
}

/// `a (d0, q1, r0, m1, 'topic', ... (7 bytes))`
fn publish(way: Way, rest: &str) -> Option<LoggedPublish> {
    let at = rest.match_indices(" (d").map(|(at, _)| at).find(|&at| flags(&rest[at + 2..]).is_some())?;
    let (dup, qos, retain, id, behind) = flags(&rest[at + 2..])?;
    let (topic, size) = behind.strip_prefix('\'')?.rsplit_once("', ... (")?;
    Some(LoggedPublish {
        way,
        client: rest[..at].to_owned(),
        dup,
        qos,
        retain,
        id,
        topic: topic.to_owned(),
        bytes: Some(size.strip_suffix(" bytes))")?.parse().ok()?),
        content: None,
    })
}

/// `d0, q1, r0, m1, ` and what is behind.
fn flags(text: &str) -> Option<(bool, u8, bool, u32, &str)> {
    let mut parts = text.splitn(5, ", ");
    let dup = parts.next()?.strip_prefix('d')?;
    let qos: u8 = parts.next()?.strip_prefix('q')?.parse().ok()?;
    let retain = parts.next()?.strip_prefix('r')?;
    let id = parts.next()?.strip_prefix('m')?.parse().ok()?;
    (matches!(dup, "0" | "1") && matches!(retain, "0" | "1") && qos < 3).then_some((
        dup == "1",
        qos,
        retain == "1",
        id,
        parts.next()?,
    ))
}

/// `a (m1, rc0)` of what is sent, `a (Mid: 1, RC:0)` of what is received; the code is missing where there is none.
fn ack(way: Way, kind: AckKind, rest: &str) -> Option<LoggedAck> {
    let (client, numbers) = rest.strip_suffix(')')?.rsplit_once(" (")?;
    let (id, code) = numbers.split_once(", ").unwrap_or((numbers, ""));
    let digits = |text: &str| text.trim_start_matches(|one: char| !one.is_ascii_digit()).parse().ok();
    Some(LoggedAck { way, client: client.to_owned(), kind, id: digits(id)?, code: digits(code).unwrap_or(0) })
}

/// `New client connected from 10.0.0.2:50784 as a (p5, c1, k60, u'user').`
fn connected(message: &str) -> Option<BrokerEvent> {
    let (_, rest) = message.strip_prefix("New client connected from ")?.split_once(" as ")?;
    let (client, facts) = rest.rsplit_once(" (")?;
    let number = |name: char| {
        let fact = facts.split([',', ')']).map(str::trim).find_map(|fact| fact.strip_prefix(name))?;
        fact.parse::<u8>().ok()
    };
    // It counts protocols: 1 is MQTT 3.1, 2 is 3.1.1.
    let level = number('p').map(|level| if level < 3 { level + 2 } else { level });
    Some(BrokerEvent::Connected { client: client.to_owned(), clean: number('c')? == 1, level })
}

fn dropping(message: &str) -> Option<BrokerEvent> {
    let client = message.strip_prefix("Outgoing messages are being dropped for client ")?;
    Some(BrokerEvent::Dropping(client.strip_suffix('.').unwrap_or(client).to_owned()))
}

fn ended(message: &str) -> Option<BrokerEvent> {
    for (begin, end, how) in ENDS {
        let Some(rest) = message.strip_prefix(begin) else { continue };
        let Some((client, behind)) = rest.rsplit_once(end) else { continue };
        let how = match how {
            "" => behind.trim_matches(['.', ':', ' ']).to_owned(),
            how => how.to_owned(),
        };
        return Some(BrokerEvent::Ended { client: without_address(client).to_owned(), how });
    }
    None
}

/// Later versions write `client [10.0.0.2:50784]`.
fn without_address(client: &str) -> &str {
    client.strip_suffix(']').and_then(|rest| rest.rsplit_once(" [")).map_or(client, |(client, _)| client)
}

const PACKETS: [&str; 4] = ["Received PUB", "Sending PUB", "Denied PUB", "New client connected from "];
/// How messages begin.
const MARKS: [&str; 13] = [
    "\t",
    "Received ",
    "Sending ",
    "Denied ",
    "New client connected from ",
    "New connection from ",
    "Client ",
    "Socket error on client ",
    "Bad socket read/write on client ",
    "Outgoing messages are being dropped for client ",
    "mosquitto version ",
    "No will message specified",
    "Will message specified",
];
/// How a message begins and goes on behind the client's identifier, and what it says; empty: what is behind.
const ENDS: [(&str, &str, &str); 8] = [
    ("Client ", " has exceeded timeout", "no packet within one and a half keep-alive intervals"),
    ("Client ", " already connected, closing old connection", "taken over by another connection"),
    ("Client ", " closed its connection", "closed without DISCONNECT"),
    ("Client ", " disconnected due to ", ""),
    ("Client ", " disconnected: ", ""),
    ("Client ", " disconnected", "closed"),
    ("Socket error on client ", ", disconnecting", "socket error"),
    ("Bad socket read/write on client ", ": ", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> Option<BrokerEvent> {
        split(line).and_then(|(_, message)| event(message))
    }

    #[test]
    fn a_publish_has_its_client_its_flags_its_topic_and_its_size() {
        let line =
            "1795895652: Received PUBLISH from pub 1 (d0) (d1, q2, r1, m65535, 's/r,x 'y'', ... (5 bytes))";
        let Some(BrokerEvent::Publish(publish)) = told(line) else { panic!("no PUBLISH") };
        assert_eq!((publish.client.as_str(), publish.topic.as_str()), ("pub 1 (d0)", "s/r,x 'y'"));
        assert_eq!((publish.dup, publish.qos, publish.retain, publish.id), (true, 2, true, 65_535));
        assert_eq!((publish.way, publish.bytes), (Way::Received, Some(5)));
    }

    #[test]
    fn acknowledgements_are_read_in_both_of_their_forms() {
        for (line, way, kind, id, code) in [
            ("Sending PUBACK to a (m7, rc16)", Way::Sent, AckKind::Puback, 7, 16),
            ("Received PUBACK from a (Mid: 7, RC:0)", Way::Received, AckKind::Puback, 7, 0),
            ("Received PUBREL from a (Mid: 7)", Way::Received, AckKind::Pubrel, 7, 0),
            ("Sending PUBCOMP to a (m7)", Way::Sent, AckKind::Pubcomp, 7, 0),
        ] {
            let expected = LoggedAck { way, client: "a".into(), kind, id, code };
            assert_eq!(told(line), Some(BrokerEvent::Ack(expected)), "{line}");
        }
    }

    #[test]
    fn connections_begin_and_end_in_many_words() {
        for (line, clean, level) in [
            ("New client connected from 127.0.0.1:5 as a as b (p2, c0, k60, u'x').", false, Some(4)),
            ("New client connected from 172.17.0.1 as a as b (c1, k60).", true, None),
        ] {
            let expected = BrokerEvent::Connected { client: "a as b".into(), clean, level };
            assert_eq!(told(line), Some(expected), "{line}");
        }
        for (line, how) in [
            (
                "Client a has exceeded timeout, disconnecting.",
                "no packet within one and a half keep-alive intervals",
            ),
            ("Socket error on client a, disconnecting.", "socket error"),
            ("Client a closed its connection.", "closed without DISCONNECT"),
            ("Client a disconnected due to protocol error.", "protocol error"),
            ("Client a [10.0.0.2:5] disconnected: not authorised.", "not authorised"),
            ("Client a disconnected.", "closed"),
        ] {
            let expected = BrokerEvent::Ended { client: "a".into(), how: how.into() };
            assert_eq!(told(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn a_subscription_is_granted_where_its_line_ends_so() {
        assert!(granted("1795895652: sub 1 2 s/#", "sub 1", "s/#"));
        assert!(granted("sub 1 2 s/#", "sub 1", "s/#"));
        assert!(!granted("1795895652: sub 1 2 s/#", "ub 1", "s/#"));
        assert_eq!(filter("a b (QoS 1) (QoS 2)"), ("a b (QoS 1)", 2));
    }

    #[test]
    fn what_is_cut_or_of_another_program_says_nothing() {
        for line in [
            "1795895652: Received PUBLISH from a (d0, q1, r0, m1, 'top",
            "1795895652: Received PUBLISH from a (d0, q1, r0",
            "Sending nothing",
            "",
            "time,sent",
        ] {
            assert_eq!(told(line), None, "{line}");
        }
    }
}
