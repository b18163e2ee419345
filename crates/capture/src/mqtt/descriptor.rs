//! What a control packet is without its bytes: its type, its flags, and the sizes of its parts.

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
    /// The producer's own number for the message; handed on in [`Packet::message`](super::Packet::message).
    pub message: u64,
}

impl PacketDescriptor {
    /// Stream offset after its last byte.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.lengths.total())
    }
}
