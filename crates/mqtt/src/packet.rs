//! Control packets, decoded without copying.
//!
//! [`decode`] takes a whole packet and checks it as strictly as the specification asks of a receiver. A PUBLISH that
//! is too large to be gathered first is read with [`publish_head`] from its beginning.

use crate::kind::{FixedHeader, Kind, Malformed, Qos, Version};
use crate::property::{Properties, binary, text};
use crate::topic;

/// A control packet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Packet<'a> {
    Connect(Connect<'a>),
    Connack(Connack<'a>),
    Publish(Publish<'a>),
    Puback(Acknowledgement<'a>),
    Pubrec(Acknowledgement<'a>),
    Pubrel(Acknowledgement<'a>),
    Pubcomp(Acknowledgement<'a>),
    Subscribe(Subscribe<'a>),
    Suback(Suback<'a>),
    Unsubscribe(Unsubscribe<'a>),
    Unsuback(Suback<'a>),
    Pingreq,
    Pingresp,
    Disconnect(Farewell<'a>),
    Auth(Farewell<'a>),
}

/// CONNECT (§3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect<'a> {
    /// Protocol version.
    pub version: Version,
    /// Clean session (3.x) or clean start (5).
    pub clean: bool,
    /// Keep-alive in seconds.
    pub keep_alive_s: u16,
    /// Properties (5).
    pub properties: Properties<'a>,
    /// Client identifier.
    pub client_id: &'a str,
    /// Will.
    pub will: Option<Will<'a>>,
    /// User name.
    pub username: Option<&'a str>,
    /// Password.
    pub password: Option<&'a [u8]>,
}

/// The will in a CONNECT (§3.1.3.2 to 3.1.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Will<'a> {
    /// Quality of service.
    pub qos: Qos,
    /// Retained.
    pub retain: bool,
    /// Properties (5).
    pub properties: Properties<'a>,
    /// Topic.
    pub topic: &'a str,
    /// Payload.
    pub payload: &'a [u8],
}

/// CONNACK (§3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connack<'a> {
    /// The broker has a session of this client.
    pub session_present: bool,
    /// Return code (3.x) or reason code (5); 0 accepts.
    pub code: u8,
    /// Properties (5).
    pub properties: Properties<'a>,
}

/// PUBLISH (§3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// A copy of an earlier attempt.
    pub dup: bool,
    /// Quality of service.
    pub qos: Qos,
    /// Retained.
    pub retain: bool,
    /// Topic name.
    pub topic: &'a str,
    /// Packet identifier; 0 at QoS 0.
    pub id: u16,
    /// Properties (5).
    pub properties: Properties<'a>,
    /// Application message.
    pub payload: &'a [u8],
}

/// PUBACK, PUBREC, PUBREL, PUBCOMP (§3.4 to 3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement<'a> {
    /// Packet identifier.
    pub id: u16,
    /// Reason code (5); 0 where there is none.
    pub reason: u8,
    /// Properties (5).
    pub properties: Properties<'a>,
}

/// SUBSCRIBE (§3.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// Packet identifier.
    pub id: u16,
    /// Properties (5).
    pub properties: Properties<'a>,
    /// Topic filters with their option bytes (3.x: the maximum QoS).
    pub filters: Vec<(&'a str, u8)>,
}

/// SUBACK, UNSUBACK (§3.9, 3.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suback<'a> {
    /// Packet identifier.
    pub id: u16,
    /// Properties (5).
    pub properties: Properties<'a>,
    /// One code for each filter; 0x80 and above refuse.
    pub codes: &'a [u8],
}

/// UNSUBSCRIBE (§3.10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsubscribe<'a> {
    /// Packet identifier.
    pub id: u16,
    /// Properties (5).
    pub properties: Properties<'a>,
    /// Topic filters.
    pub filters: Vec<&'a str>,
}

/// DISCONNECT and AUTH (§3.14, 3.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Farewell<'a> {
    /// Reason code; 0 where there is none.
    pub reason: u8,
    /// Properties (5).
    pub properties: Properties<'a>,
}

/// Decodes one whole packet: `body` is what follows the fixed header, `header.remaining` bytes of it.
///
/// # Errors
/// What the packet breaks, with the clause.
pub fn decode<'a>(header: FixedHeader, body: &'a [u8], version: Version) -> Result<Packet<'a>, Malformed> {
    let body = body.get(..header.remaining).ok_or(CUT)?;
    Ok(match header.kind {
        Kind::Connect => Packet::Connect(connect(body)?),
        Kind::Connack => Packet::Connack(connack(body, version)?),
        Kind::Publish => {
            let (publish, head_len) = publish_head(header, body, version)?;
            Packet::Publish(Publish { payload: &body[head_len..], ..publish })
        }
        Kind::Puback => Packet::Puback(acknowledgement(header.kind, body, version)?),
        Kind::Pubrec => Packet::Pubrec(acknowledgement(header.kind, body, version)?),
        Kind::Pubrel => Packet::Pubrel(acknowledgement(header.kind, body, version)?),
        Kind::Pubcomp => Packet::Pubcomp(acknowledgement(header.kind, body, version)?),
        Kind::Subscribe => Packet::Subscribe(subscribe(body, version)?),
        Kind::Suback => Packet::Suback(suback(header.kind, body, version)?),
        Kind::Unsubscribe => Packet::Unsubscribe(unsubscribe(body, version)?),
        Kind::Unsuback => Packet::Unsuback(suback(header.kind, body, version)?),
        Kind::Pingreq | Kind::Pingresp if !body.is_empty() => {
            return Err(Malformed("a ping with a body [§3.12]"));
        }
        Kind::Pingreq => Packet::Pingreq,
        Kind::Pingresp => Packet::Pingresp,
        Kind::Disconnect => Packet::Disconnect(farewell(header.kind, body, version)?),
        Kind::Auth if version != Version::V5 => return Err(Malformed("AUTH before MQTT 5 [§3.15]")),
        Kind::Auth => Packet::Auth(farewell(header.kind, body, version)?),
    })
}

/// Decodes the beginning of a PUBLISH from the first bytes of its body, and says how many of them precede the
/// payload, whose bytes need not be there. The payload of the result is empty.
///
/// # Errors
/// What the packet breaks; [`Malformed`] with "ends within a field" also when `body` is too short to tell.
pub fn publish_head<'a>(
    header: FixedHeader,
    body: &'a [u8],
    version: Version,
) -> Result<(Publish<'a>, usize), Malformed> {
    let qos = Qos::from_level(header.flags >> 1 & 0b11).ok_or(Malformed("QoS 3 [MQTT-3.3.1-4]"))?;
    let dup = header.flags & 0b1000 != 0;
    if dup && qos == Qos::AtMostOnce {
        return Err(Malformed("DUP at QoS 0 [MQTT-3.3.1-2]"));
    }
    let (topic, mut rest) = text(body)?;
    let mut id = 0;
    if qos != Qos::AtMostOnce {
        (id, rest) = identifier(rest)?;
    }
    let (properties, rest) = properties(rest, Kind::Publish, version)?;
    // A topic alias may stand for the name (§3.3.2.3.4).
    let aliased = properties.number(crate::property::id::TOPIC_ALIAS).is_some();
    if !(topic::is_name(topic) || topic.is_empty() && aliased) {
        return Err(Malformed("a topic name with a wildcard, or an empty one [MQTT-3.3.2-2]"));
    }
    let head_len = body.len() - rest.len();
    // `body` may go on into the next packet.
    if head_len > header.remaining {
        return Err(CUT);
    }
    let retain = header.flags & 1 != 0;
    Ok((Publish { dup, qos, retain, topic, id, properties, payload: &[] }, head_len))
}

const CUT: Malformed = Malformed("the packet ends within a field");

fn connect(body: &[u8]) -> Result<Connect<'_>, Malformed> {
    let (name, rest) = text(body)?;
    let (&[level, flags, high, low], rest) = rest.split_first_chunk::<4>().ok_or(CUT)?;
    // The level's highest bit marks a bridge of Mosquitto's, which is a client otherwise.
    let version = match (name, level & 0x7f) {
        ("MQIsdp", 3) => Version::V31,
        ("MQTT", 4) => Version::V311,
        ("MQTT", 5) => Version::V5,
        _ => return Err(Malformed("an unknown protocol name or level [MQTT-3.1.2-1]")),
    };
    if flags & 1 != 0 {
        return Err(Malformed("the reserved connect flag is set [MQTT-3.1.2-3]"));
    }
    // MQTT 5 permits a password alone (§3.1.2.9).
    if version == Version::V311 && flags & 0xc0 == 0x40 {
        return Err(Malformed("a password without a user name [3.1.1: MQTT-3.1.2-22]"));
    }
    let (properties, rest) = properties(rest, Kind::Connect, version)?;
    // Fields in their fixed order, each where its flag says so ([MQTT-3.1.3-1]).
    let (client_id, rest) = text(rest)?;
    let (will, rest) = will(flags, rest, version)?;
    let (username, rest) = optional(flags & 0x80 != 0, rest, text)?;
    let (password, rest) = optional(flags & 0x40 != 0, rest, binary)?;
    end(rest)?;
    Ok(Connect {
        version,
        clean: flags & 2 != 0,
        keep_alive_s: u16::from_be_bytes([high, low]),
        properties,
        client_id,
        will,
        username,
        password,
    })
}

fn will(flags: u8, rest: &[u8], version: Version) -> Result<(Option<Will<'_>>, &[u8]), Malformed> {
    let qos = Qos::from_level(flags >> 3 & 0b11).ok_or(Malformed("a will with QoS 3 [MQTT-3.1.2-12]"))?;
    if flags & 4 == 0 {
        let unused = qos == Qos::AtMostOnce && flags & 0x20 == 0;
        return if unused {
            Ok((None, rest))
        } else {
            Err(Malformed("will flags without a will [MQTT-3.1.2-11, MQTT-3.1.2-13]"))
        };
    }
    let (properties, rest) = match version {
        Version::V5 => Properties::read_will(rest)?,
        _ => (Properties::NONE, rest),
    };
    let (topic, rest) = text(rest)?;
    let (payload, rest) = binary(rest)?;
    Ok((Some(Will { qos, retain: flags & 0x20 != 0, properties, topic, payload }), rest))
}

type Reader<'a, T> = fn(&'a [u8]) -> Result<(T, &'a [u8]), Malformed>;

fn optional<'a, T>(
    present: bool,
    rest: &'a [u8],
    read: Reader<'a, T>,
) -> Result<(Option<T>, &'a [u8]), Malformed> {
    if !present {
        return Ok((None, rest));
    }
    let (value, rest) = read(rest)?;
    Ok((Some(value), rest))
}

fn connack(body: &[u8], version: Version) -> Result<Connack<'_>, Malformed> {
    let (&[flags, code], rest) = body.split_first_chunk::<2>().ok_or(CUT)?;
    if flags & 0xfe != 0 {
        return Err(Malformed("reserved acknowledge flags are set [§3.2.2.1]"));
    }
    if flags == 1 && code != 0 {
        return Err(Malformed("a session is present and the connection refused [MQTT-3.2.2-6]"));
    }
    if version == Version::V5 && rest.is_empty() {
        // A broker without MQTT 5 answers as its own version does, which has no properties (MQTT 3.1.1, §3.2).
        return match code {
            0 => Err(Malformed(
                "CONNACK as before MQTT 5, without properties: the broker does not speak MQTT 5",
            )),
            _ => Ok(Connack { session_present: false, code, properties: Properties::default() }),
        };
    }
    let (properties, rest) = properties(rest, Kind::Connack, version)?;
    end(rest)?;
    Ok(Connack { session_present: flags == 1, code, properties })
}

fn acknowledgement(kind: Kind, body: &[u8], version: Version) -> Result<Acknowledgement<'_>, Malformed> {
    let (id, rest) = identifier(body)?;
    let Farewell { reason, properties } = farewell(kind, rest, version)?;
    Ok(Acknowledgement { id, reason, properties })
}

/// A reason code and properties, each of which MQTT 5 lets a sender leave out at the end; 3.x has neither.
fn farewell(kind: Kind, body: &[u8], version: Version) -> Result<Farewell<'_>, Malformed> {
    let Some((&reason, rest)) = body.split_first() else {
        return Ok(Farewell { reason: 0, properties: Properties::NONE });
    };
    if version != Version::V5 {
        return Err(LONG);
    }
    if rest.is_empty() {
        return Ok(Farewell { reason, properties: Properties::NONE });
    }
    let (properties, rest) = Properties::read(rest, kind)?;
    end(rest)?;
    Ok(Farewell { reason, properties })
}

fn subscribe(body: &[u8], version: Version) -> Result<Subscribe<'_>, Malformed> {
    let (id, rest) = identifier(body)?;
    let (properties, mut rest) = properties(rest, Kind::Subscribe, version)?;
    let mut filters = Vec::new();
    while !rest.is_empty() {
        let (filter, after) = text(rest)?;
        let (&options, after) = after.split_first().ok_or(CUT)?;
        check_filter(filter)?;
        // MQTT 5 has No Local, Retain As Published and Retain Handling beside the QoS (§3.8.3.1); handling 3 is none.
        let allowed = if version == Version::V5 { 0b0011_1111 } else { 0b11 };
        if options & 0b11 == 0b11 || options & !allowed != 0 || options & 0x30 == 0x30 {
            return Err(Malformed("reserved subscription options [MQTT-3.8.3-5]"));
        }
        // Before MQTT 5 this bit is reserved, and refused above.
        if options & 0b100 != 0 && topic::share(filter).is_some() {
            return Err(Malformed("No Local on a shared subscription [MQTT-3.8.3-4]"));
        }
        filters.push((filter, options));
        rest = after;
    }
    if filters.is_empty() {
        return Err(Malformed("SUBSCRIBE without a filter [MQTT-3.8.3-2]"));
    }
    Ok(Subscribe { id, properties, filters })
}

fn suback(kind: Kind, body: &[u8], version: Version) -> Result<Suback<'_>, Malformed> {
    let (id, rest) = identifier(body)?;
    let (properties, codes) = properties(rest, kind, version)?;
    Ok(Suback { id, properties, codes })
}

fn unsubscribe(body: &[u8], version: Version) -> Result<Unsubscribe<'_>, Malformed> {
    let (id, rest) = identifier(body)?;
    let (properties, mut rest) = properties(rest, Kind::Unsubscribe, version)?;
    let mut filters = Vec::new();
    while !rest.is_empty() {
        let (filter, after) = text(rest)?;
        check_filter(filter)?;
        filters.push(filter);
        rest = after;
    }
    if filters.is_empty() {
        return Err(Malformed("UNSUBSCRIBE without a filter [MQTT-3.10.3-2]"));
    }
    Ok(Unsubscribe { id, properties, filters })
}

fn check_filter(filter: &str) -> Result<(), Malformed> {
    if topic::is_filter(filter) { Ok(()) } else { Err(Malformed("an invalid topic filter [MQTT-4.7.1-1]")) }
}

fn identifier(bytes: &[u8]) -> Result<(u16, &[u8]), Malformed> {
    let (digits, rest) = bytes.split_first_chunk::<2>().ok_or(CUT)?;
    match u16::from_be_bytes(*digits) {
        0 => Err(Malformed("packet identifier 0 [MQTT-2.2.1-3]")),
        id => Ok((id, rest)),
    }
}

fn properties(rest: &[u8], kind: Kind, version: Version) -> Result<(Properties<'_>, &[u8]), Malformed> {
    match version {
        Version::V5 => Properties::read(rest, kind),
        _ => Ok((Properties::NONE, rest)),
    }
}

fn end(rest: &[u8]) -> Result<(), Malformed> {
    if rest.is_empty() { Ok(()) } else { Err(LONG) }
}

const LONG: Malformed = Malformed("bytes after the last field");
