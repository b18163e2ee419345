//! What a control packet is without its bytes: its type, its flags, and the sizes of its parts.

use mqttlab_recording::PacketKind;

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
    pub kind: PacketKind,
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
    /// The producer's own number for the message; handed on in [`CapturedPacket::message`](super::CapturedPacket::message).
    pub message: u64,
}

impl PacketDescriptor {
    /// Stream offset after its last byte.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.lengths.total())
    }
}
