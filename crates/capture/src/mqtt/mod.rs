//! MQTT control packets found in a stream of bytes: 3.1, 3.1.1 and 5, without holding their payloads.
//!
//! This is a witness, not an endpoint: it frames packets, splits their lengths and keeps the first bytes of a
//! payload (where messages carry their identity), and it goes on where an endpoint would close the connection.
//! After missing bytes, or in a stream whose start was not captured, it searches for the next packet.
//!
//! What it does not model: sessions, topic trees, payloads beyond their first [`PAYLOAD_HEAD_MAX`] bytes: of these there is a digest ([`PayloadRest`]); short
//! texts are kept.

mod connect;
mod framer;
mod layout;
mod numbers;
mod payload_rest;
mod resync;

use std::sync::Arc;

use mqttlab_recording::PacketKind;

use crate::reassembly::Sighting;

pub use crate::descriptor::{Lengths, PacketDescriptor};
pub use framer::{ConnectionContext, FramerCounts, MqttFramer, UnseenTime};
pub use layout::session_expiry;
pub use mqttlab_mqtt::Kind;

pub use payload_rest::{PayloadRest, fold, folded};
pub(crate) use resync::{fits_packet, may_start_as_connect, starts_as_connect};

/// How many bytes of a PUBLISH payload are kept.
pub const PAYLOAD_HEAD_MAX: usize = 80;
/// Text in payloads is kept whole up to this length, for it may say where its publisher is.
pub const PAYLOAD_TEXT_MAX: usize = 1024;

impl PacketDescriptor {
    /// The packet, seen whole between these two.
    pub(crate) fn seen(&self, first: Sighting, complete: Sighting) -> CapturedPacket {
        CapturedPacket {
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
            message_expiry_s: None,
            payload_head: PayloadHead::new(&[]),
            payload_rest: None,
            payload_text: None,
            connect: None,
            reason: None,
            body: None,
            damaged: false,
            message: self.message,
        }
    }
}

/// What a CONNECT says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenConnect {
    /// Protocol level: 3 is MQTT 3.1, 4 is 3.1.1, 5 is 5.
    pub level: u8,
    /// Whether the level's highest bit marks a bridge: Mosquitto, VerneMQ and NanoMQ set it among themselves.
    pub is_bridge: bool,
    /// Connect flags as on the wire.
    pub flags: u8,
    /// Keep alive in seconds.
    pub keep_alive_s: u16,
    /// Client identifier; bytes that are not UTF-8 are replaced.
    pub client_id: String,
    /// How long the session is to outlive its connection, in seconds; 0 where MQTT 5 does not say, `None` before MQTT 5.
    pub session_expiry_s: Option<u32>,
    /// How many messages at QoS 1 and 2 it takes at once, where MQTT 5 says.
    pub receive_maximum: Option<u16>,
    /// The largest packet that it takes, where MQTT 5 says.
    pub maximum_packet_bytes: Option<u32>,
    /// Whether it takes aliases for topics.
    pub takes_aliases: bool,
    /// Its will, if it has one and all of its topic and of its first bytes was captured.
    pub will: Option<Box<SeenWill>>,
}

/// The will that a CONNECT announces: what the broker publishes for the client when its connection breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenWill {
    /// The topic.
    pub topic: Arc<str>,
    /// Size of the application message.
    pub payload_bytes: u32,
    /// Its first [`PAYLOAD_HEAD_MAX`] bytes.
    pub head: Box<[u8]>,
    /// What is behind them.
    pub rest: PayloadRest,
    /// Quality of service.
    pub qos: u8,
    /// Whether it is to be retained.
    pub retain: bool,
    /// How long it waits for the client to come back, in seconds (MQTT 5 §3.1.3.2.2).
    pub delay_s: u32,
}

/// The first bytes of a payload.
#[derive(Clone, Copy)]
pub struct PayloadHead {
    bytes: [u8; PAYLOAD_HEAD_MAX],
    len: u8,
}

/// A control packet that was seen whole.
#[derive(Clone, Debug)]
pub struct CapturedPacket {
    /// Its type. Packets of ZMTP are kept here, too: one is a message, or says whose connection it is.
    pub kind: PacketKind,
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
    /// How long a PUBLISH may wait at its broker, in seconds (MQTT 5 §3.3.2.3.3).
    pub message_expiry_s: Option<u32>,
    /// First bytes of a PUBLISH payload.
    pub payload_head: PayloadHead,
    /// How much of it was captured without a hole, and a digest of what is behind its first bytes.
    pub(crate) payload_rest: Option<Box<PayloadRest>>,
    /// The payload of a PUBLISH that may be a JSON object or an NMEA sentence, where it is no longer than
    /// [`PAYLOAD_TEXT_MAX`].
    pub payload_text: Option<Box<[u8]>>,
    /// What a CONNECT says.
    pub connect: Option<Box<SeenConnect>>,
    /// The reason code or return code of an answer ([`mqttlab_mqtt::reason::of`]).
    pub reason: Option<u8>,
    /// The first 512 bytes after the fixed header of a CONNACK, SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK or DISCONNECT.
    pub body: Option<Box<[u8]>>,
    /// Whether bytes in its middle are missing from the capture.
    pub damaged: bool,
    /// [`PacketDescriptor::message`], or 0.
    pub message: u64,
}

impl CapturedPacket {
    /// How much of its payload was captured without a hole, and a digest of what is behind its first bytes.
    pub fn payload_rest(&self) -> PayloadRest {
        self.payload_rest.as_deref().copied().unwrap_or_else(|| PayloadRest::of(self.payload_head.as_slice()))
    }
}

impl PayloadHead {
    fn new(bytes: &[u8]) -> Self {
        let mut head =
            PayloadHead { bytes: [0; PAYLOAD_HEAD_MAX], len: bytes.len().min(PAYLOAD_HEAD_MAX) as u8 };
        head.bytes[..usize::from(head.len)].copy_from_slice(&bytes[..usize::from(head.len)]);
        head
    }

    /// Others instead.
    pub(crate) fn with(self, bytes: &[u8]) -> PayloadHead {
        PayloadHead::new(bytes)
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
