//! The properties of MQTT 5 packets, one after the other (MQTT 5 §2.2.2).

use super::numbers::{Varint, be16, variable_length};

/// Each property of a list without its length: its identifier and the bytes of its value. What cannot be read ends it.
pub(super) fn each(mut rest: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&property, value) = rest.split_first()?;
        let length = value_bytes(property, value)?;
        let (value, behind) = value.split_at_checked(length)?;
        rest = behind;
        Some((property, value))
    })
}

/// The properties that begin with their length, as far as they are there, and what follows them.
pub(super) fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let Varint::Value(length, size) = variable_length(bytes) else { return None };
    let bytes = bytes.get(usize::from(size)..)?;
    Some(bytes.split_at(bytes.len().min(length as usize)))
}

/// The largest packet that the sender of a CONNECT or CONNACK takes, among properties that begin with their length (MQTT 5 §3.2.2.3.6).
pub fn maximum_packet_bytes(bytes: &[u8]) -> Option<u32> {
    let (own, _) = split(bytes)?;
    each(own).find(|(property, _)| *property == MAXIMUM_PACKET_SIZE).and_then(|(_, value)| four(value))
}

/// A value of four bytes.
pub(super) fn four(value: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(value.try_into().ok()?))
}

fn value_bytes(property: u8, value: &[u8]) -> Option<usize> {
    let text = |at: usize| Some(2 + usize::from(be16(value, at)?));
    Some(match property {
        // Payload format, requests for information, the highest QoS, what of retained messages and filters is there.
        0x01 | 0x17 | 0x19 | 0x24 | 0x25 | 0x28..=0x2a => 1,
        // Keep-alive, receive maximum, topic alias maximum, topic alias.
        0x13 | RECEIVE_MAXIMUM | TOPIC_ALIAS_MAXIMUM | TOPIC_ALIAS => 2,
        MESSAGE_EXPIRY | SESSION_EXPIRY | WILL_DELAY | MAXIMUM_PACKET_SIZE => 4,
        // A subscription identifier.
        0x0b => match variable_length(value) {
            Varint::Value(_, size) => usize::from(size),
            Varint::TooShort | Varint::Invalid => return None,
        },
        // Types, topics, data, identifiers, authentication, information, references, reasons.
        0x03 | 0x08 | 0x09 | 0x12 | 0x15 | 0x16 | 0x1a | 0x1c | 0x1f => text(0)?,
        // A pair of texts of the user's.
        0x26 => {
            let name = text(0)?;
            name + text(name)?
        }
        _ => return None,
    })
}

/// How long a message may wait (§3.3.2.3.3).
pub(super) const MESSAGE_EXPIRY: u8 = 0x02;
/// How long a session outlives its connection (§3.1.2.11.2).
pub(super) const SESSION_EXPIRY: u8 = 0x11;
/// How long a will waits (§3.1.3.2.2).
pub(super) const WILL_DELAY: u8 = 0x18;
/// How many messages at QoS 1 and 2 may be unacknowledged (§3.1.2.11.3).
pub(super) const RECEIVE_MAXIMUM: u8 = 0x21;
/// How many aliases of topics the sender takes (§3.1.2.11.5).
pub(super) const TOPIC_ALIAS_MAXIMUM: u8 = 0x22;
/// What stands for a topic (§3.3.2.3.4).
pub(super) const TOPIC_ALIAS: u8 = 0x23;
/// The largest packet that the sender takes (§3.1.2.11.4).
pub(super) const MAXIMUM_PACKET_SIZE: u8 = 0x27;
