//! MQTT control packets found in a stream of bytes: 3.1, 3.1.1 and 5, without holding their payloads.
//!
//! This is a witness, not an endpoint: it frames packets, splits their lengths and keeps the first bytes of a
//! payload (where messages carry their identity), and it goes on where an endpoint would close the connection.
//! After missing bytes, or in a stream whose start was not captured, it searches for the next packet.
//!
//! What it does not model: sessions, topic trees, payloads beyond their first [`PAYLOAD_HEAD_MAX`] bytes, MQTT
//! over WebSocket or TLS.

mod framer;
mod layout;
mod resync;

use std::sync::Arc;

use crate::reassembly::Sighting;

pub use framer::{Context, Framer, FramerCounts, Unseen};
pub use layout::session_expiry;
pub(crate) use resync::starts_as_connect;

/// How many bytes of a PUBLISH payload are kept.
pub const PAYLOAD_HEAD_MAX: usize = 80;

/// A control packet type (MQTT 5 §2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Connection request.
    Connect = 1,
    /// Connect acknowledgment.
    Connack = 2,
    /// Publish message.
    Publish = 3,
    /// Publish acknowledgment (QoS 1).
    Puback = 4,
    /// Publish received (QoS 2, part 1).
    Pubrec = 5,
    /// Publish release (QoS 2, part 2).
    Pubrel = 6,
    /// Publish complete (QoS 2, part 3).
    Pubcomp = 7,
    /// Subscribe request.
    Subscribe = 8,
    /// Subscribe acknowledgment.
    Suback = 9,
    /// Unsubscribe request.
    Unsubscribe = 10,
    /// Unsubscribe acknowledgment.
    Unsuback = 11,
    /// Ping request.
    Pingreq = 12,
    /// Ping response.
    Pingresp = 13,
    /// Disconnect notification.
    Disconnect = 14,
    /// Authentication exchange (MQTT 5).
    Auth = 15,
}

impl Kind {
    /// All types, in the order of their numbers.
    pub const ALL: [Kind; 15] = [
        Kind::Connect,
        Kind::Connack,
        Kind::Publish,
        Kind::Puback,
        Kind::Pubrec,
        Kind::Pubrel,
        Kind::Pubcomp,
        Kind::Subscribe,
        Kind::Suback,
        Kind::Unsubscribe,
        Kind::Unsuback,
        Kind::Pingreq,
        Kind::Pingresp,
        Kind::Disconnect,
        Kind::Auth,
    ];

    /// The type in the upper half of a fixed header's first byte; `None` for the reserved number 0.
    pub fn from_first_byte(byte: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(byte >> 4).wrapping_sub(1)).copied()
    }

    /// The name in the specification.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Connect => "CONNECT",
            Kind::Connack => "CONNACK",
            Kind::Publish => "PUBLISH",
            Kind::Puback => "PUBACK",
            Kind::Pubrec => "PUBREC",
            Kind::Pubrel => "PUBREL",
            Kind::Pubcomp => "PUBCOMP",
            Kind::Subscribe => "SUBSCRIBE",
            Kind::Suback => "SUBACK",
            Kind::Unsubscribe => "UNSUBSCRIBE",
            Kind::Unsuback => "UNSUBACK",
            Kind::Pingreq => "PINGREQ",
            Kind::Pingresp => "PINGRESP",
            Kind::Disconnect => "DISCONNECT",
            Kind::Auth => "AUTH",
        }
    }
}

/// Where the bytes of a packet go; their sum is its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lengths {
    /// First byte and remaining length, bytes.
    pub fixed_header: u32,
    /// Topic of a PUBLISH with its two-byte length, bytes.
    pub topic: u32,
    /// Packet identifier, bytes.
    pub id: u32,
    /// Properties with their length field (MQTT 5), bytes.
    pub properties: u32,
    /// Application payload of a PUBLISH; everything else of other packets, bytes.
    pub payload: u32,
}

impl Lengths {
    /// The whole packet in bytes.
    pub const fn total(&self) -> u64 {
        self.fixed_header as u64
            + self.topic as u64
            + self.id as u64
            + self.properties as u64
            + self.payload as u64
    }
}

/// A packet whose bytes are not there: what a simulator says of the packets in its segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketDescriptor {
    /// Stream offset of its first byte, counted from the first byte after the SYN.
    pub offset: u64,
    /// Its type.
    pub kind: Kind,
    /// Quality of service of a PUBLISH.
    pub qos: u8,
    /// Whether a PUBLISH is sent again.
    pub dup: bool,
    /// Whether a PUBLISH is to be retained.
    pub retain: bool,
    /// Packet identifier.
    pub id: Option<u16>,
    /// Its size in parts.
    pub lengths: Lengths,
    /// The producer's own number for the message; handed on in [`Packet::message`].
    pub message: u64,
}

impl PacketDescriptor {
    /// Stream offset after its last byte.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.lengths.total())
    }

    /// The packet, seen whole between these two.
    pub(crate) fn seen(&self, first: Sighting, complete: Sighting) -> Packet {
        Packet {
            kind: self.kind,
            qos: self.qos,
            dup: self.dup,
            retain: self.retain,
            id: self.id,
            lengths: self.lengths,
            start: self.offset,
            end: self.end(),
            first,
            complete,
            level: framer::DEFAULT_LEVEL,
            topic: None,
            topic_alias: None,
            payload_head: PayloadHead::new(&[]),
            connect: None,
            body: None,
            damaged: false,
            message: self.message,
        }
    }
}

/// What a CONNECT says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connect {
    /// Protocol level: 3 is MQTT 3.1, 4 is 3.1.1, 5 is 5.
    pub level: u8,
    /// Connect flags as on the wire.
    pub flags: u8,
    /// Keep alive in seconds.
    pub keep_alive_s: u16,
    /// Client identifier; bytes that are not UTF-8 are replaced.
    pub client_id: String,
    /// How long the session is to outlive its connection, in seconds; 0 where MQTT 5 does not say, `None` before MQTT 5.
    pub session_expiry_s: Option<u32>,
}

/// The first bytes of a payload.
#[derive(Clone, Copy)]
pub struct PayloadHead {
    bytes: [u8; PAYLOAD_HEAD_MAX],
    len: u8,
}

/// A control packet that was seen whole.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Its type.
    pub kind: Kind,
    /// Quality of service of a PUBLISH, 0 for other types.
    pub qos: u8,
    /// Whether a PUBLISH is sent again.
    pub dup: bool,
    /// Whether a PUBLISH is to be retained.
    pub retain: bool,
    /// Packet identifier.
    pub id: Option<u16>,
    /// Its size in parts.
    pub lengths: Lengths,
    /// Stream offset of its first byte.
    pub start: u64,
    /// Stream offset after its last byte.
    pub end: u64,
    /// Where its first byte was first seen.
    pub first: Sighting,
    /// The segment after which all its bytes had been seen.
    pub complete: Sighting,
    /// Protocol level in force, as far as known: 3, 4 or 5.
    pub level: u8,
    /// Topic of a PUBLISH, also where an alias stands for it; absent when it is not UTF-8, or what the alias stands
    /// for was not captured.
    pub topic: Option<Arc<str>>,
    /// The alias that stands for the topic, or will (MQTT 5 §3.3.2.3.4).
    pub topic_alias: Option<u16>,
    /// First bytes of a PUBLISH payload.
    pub payload_head: PayloadHead,
    /// What a CONNECT says.
    pub connect: Option<Box<Connect>>,
    /// The first 512 bytes after the fixed header of a CONNACK, SUBSCRIBE, SUBACK, UNSUBSCRIBE or DISCONNECT.
    pub body: Option<Box<[u8]>>,
    /// Whether bytes in its middle are missing from the capture.
    pub damaged: bool,
    /// [`PacketDescriptor::message`], or 0.
    pub message: u64,
}

impl PayloadHead {
    fn new(bytes: &[u8]) -> Self {
        let mut head =
            PayloadHead { bytes: [0; PAYLOAD_HEAD_MAX], len: bytes.len().min(PAYLOAD_HEAD_MAX) as u8 };
        head.bytes[..usize::from(head.len)].copy_from_slice(&bytes[..usize::from(head.len)]);
        head
    }

    /// The bytes kept.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl std::fmt::Debug for PayloadHead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.as_slice().escape_ascii())
    }
}
