//! Where the parts of a packet lie, from its first bytes.

use std::sync::Arc;

use mqttlab_mqtt::property::{Properties, Value, id};

pub(super) use super::numbers::{Varint, be16, variable_length};
use super::{Kind, Lengths, PAYLOAD_HEAD_MAX, PAYLOAD_TEXT_MAX, connect};

/// Bytes of a packet after its fixed header that are worth keeping, properties of any length included up to here.
const HEAD_MAX: usize = 128 * 1024;
/// Other packets than PUBLISH are kept this far.
const CONTROL_HEAD_MAX: usize = 512;
/// A CONNECT is kept this far: identifier and will, which stand before a password that may be long.
const CONNECT_MAX: usize = 8 * 1024;

/// A fixed header (MQTT 5 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fixed {
    pub(super) kind: Kind,
    pub(super) flags: u8,
    pub(super) header_len: u8,
    pub(super) remaining: u32,
}

/// A fixed header read from bytes that may end too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FixedRead {
    Whole(Fixed),
    TooShort,
    Invalid,
}

impl Fixed {
    pub(super) fn read(bytes: &[u8]) -> FixedRead {
        let Some(&first) = bytes.first() else { return FixedRead::TooShort };
        let Some(kind) = Kind::from_number(first >> 4) else { return FixedRead::Invalid };
        match variable_length(&bytes[1..]) {
            Varint::Value(remaining, length) => {
                FixedRead::Whole(Fixed { kind, flags: first & 0x0f, header_len: 1 + length, remaining })
            }
            Varint::TooShort => FixedRead::TooShort,
            Varint::Invalid => FixedRead::Invalid,
        }
    }

    pub(super) fn qos(&self) -> u8 {
        if self.kind == Kind::Publish { self.flags >> 1 & 3 } else { 0 }
    }

    pub(super) fn total(&self) -> u64 {
        u64::from(self.header_len) + u64::from(self.remaining)
    }

    fn publish_id_len(&self) -> usize {
        if self.qos() > 0 { 2 } else { 0 }
    }

    /// How many bytes after the fixed header are wanted, as far as the `head` seen so far tells; `None` when it
    /// contradicts the remaining length.
    pub(super) fn wanted(&self, head: &[u8], level: u8) -> Option<usize> {
        let remaining = self.remaining as usize;
        match self.kind {
            Kind::Publish => {}
            Kind::Connect => return Some(remaining.min(CONNECT_MAX)),
            _ => return Some(remaining.min(CONTROL_HEAD_MAX)),
        }
        if remaining < 2 {
            return None;
        }
        let Some(topic_len) = be16(head, 0) else { return Some(2) };
        let id_end = 2 + usize::from(topic_len) + self.publish_id_len();
        if id_end > remaining {
            return None;
        }
        let payload_at = if level < 5 {
            id_end
        } else {
            match head.get(id_end..).map_or(Varint::TooShort, variable_length) {
                Varint::Value(length, size) => id_end + usize::from(size) + length as usize,
                Varint::TooShort => return Some((head.len() + 1).max(id_end + 1).min(remaining)),
                Varint::Invalid => return None,
            }
        };
        if payload_at > remaining {
            return None;
        }
        let is_text =
            remaining - payload_at <= PAYLOAD_TEXT_MAX && head.get(payload_at).is_some_and(begins_text);
        let payload_max = if is_text { PAYLOAD_TEXT_MAX } else { PAYLOAD_HEAD_MAX };
        Some(remaining.min(payload_at + payload_max).min(HEAD_MAX))
    }
}

/// Whether a payload that begins so may be a JSON object or an NMEA sentence.
pub(super) fn begins_text(first: &u8) -> bool {
    matches!(first, b'{' | b'$')
}

/// The parts of a packet and what is read from them.
pub(super) struct PacketLayout {
    pub(super) lengths: Lengths,
    pub(super) id: Option<u16>,
    pub(super) topic: std::ops::Range<usize>,
    pub(super) properties: std::ops::Range<usize>,
    pub(super) payload: std::ops::Range<usize>,
}

/// Splits a packet by its first bytes. What the bytes do not tell counts as payload.
pub(super) fn parts(fixed: &Fixed, head: &[u8], level: u8) -> PacketLayout {
    let mut lengths = Lengths { fixed_header: u32::from(fixed.header_len), ..Lengths::default() };
    let mut at = 0;
    let mut topic = 0..0;
    let mut properties = 0..0;
    if fixed.kind == Kind::Publish
        && let Some(length) = be16(head, 0)
    {
        at = 2 + usize::from(length);
        // A hole in the capture may have cut it.
        topic = if at <= head.len() { 2..at } else { 0..0 };
        lengths.topic = at as u32;
    }
    let id = has_id(fixed).then(|| be16(head, at)).flatten();
    if id.is_some() {
        lengths.id = 2;
        at += 2;
    }
    if level >= 5 {
        let before = properties_at(fixed.kind, at);
        if let Some(bytes) = head.get(before..)
            && let Varint::Value(length, size) = variable_length(bytes)
            && before + usize::from(size) + length as usize <= fixed.remaining as usize
        {
            lengths.properties = u32::from(size) + length;
            properties = before + usize::from(size)..before + usize::from(size) + length as usize;
            at += lengths.properties as usize;
        }
    }
    lengths.payload = fixed.remaining.saturating_sub(lengths.topic + lengths.id + lengths.properties);
    let payload = at.min(head.len())..head.len();
    PacketLayout { lengths, id, topic, properties, payload }
}

/// Where the properties of an MQTT 5 packet start, after the packet identifier at `at` if it has one.
fn properties_at(kind: Kind, at: usize) -> usize {
    match kind {
        Kind::Connect => 10,
        Kind::Connack => 2,
        Kind::Puback | Kind::Pubrec | Kind::Pubrel | Kind::Pubcomp => at + 1,
        Kind::Disconnect | Kind::Auth => 1,
        Kind::Pingreq | Kind::Pingresp => usize::MAX,
        Kind::Publish | Kind::Subscribe | Kind::Suback | Kind::Unsubscribe | Kind::Unsuback => at,
    }
}

fn has_id(fixed: &Fixed) -> bool {
    match fixed.kind {
        Kind::Publish => fixed.qos() > 0,
        kind => (Kind::Puback..=Kind::Unsuback).contains(&kind),
    }
}

/// The protocol level that a packet proves by its form, whatever the CONNECT said or would have said.
pub(super) fn proven_level(fixed: &Fixed, head: &[u8]) -> Option<u8> {
    match fixed.kind {
        Kind::Connect => Some(connect::read(head)?.level),
        Kind::Puback | Kind::Pubrec | Kind::Pubrel | Kind::Pubcomp if fixed.remaining > 2 => Some(5),
        Kind::Disconnect if fixed.remaining > 0 => Some(5),
        Kind::Connack if fixed.remaining > 2 => Some(5),
        Kind::Unsuback if fixed.remaining > 2 => Some(5),
        Kind::Auth => Some(5),
        _ => None,
    }
}

/// The session expiry interval among the properties of a CONNECT, CONNACK or DISCONNECT, which begin with their length
/// (MQTT 5 §2.2.2).
pub fn session_expiry(properties: &[u8]) -> Option<u32> {
    Properties::seen(properties).number(id::SESSION_EXPIRY_INTERVAL)
}

/// The topic as a string, the one before if it has not changed.
pub(super) fn topic(bytes: &[u8], last: &mut Option<Arc<str>>) -> Option<Arc<str>> {
    if let Some(last) = last
        && last.as_bytes() == bytes
    {
        return Some(Arc::clone(last));
    }
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.is_empty())?;
    *last = Some(Arc::from(text));
    last.clone()
}

/// The alias among the properties of a PUBLISH, and how long it may wait, in seconds (MQTT 5 §3.3.2.3).
pub(super) fn alias_and_expiry(head: &[u8], parts: &PacketLayout) -> (Option<u16>, Option<u32>) {
    let (mut alias, mut expiry_s) = (None, None);
    let raw = head.get(parts.properties.clone()).unwrap_or_default();
    for (property, value) in Properties::seen_inside(raw).iter() {
        match (property, value) {
            (id::TOPIC_ALIAS, Value::Number(number)) => {
                alias = u16::try_from(number).ok().filter(|&alias| alias > 0)
            }
            (id::MESSAGE_EXPIRY_INTERVAL, Value::Number(number)) => expiry_s = Some(number),
            _ => {}
        }
    }
    (alias, expiry_s)
}
