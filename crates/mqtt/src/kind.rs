//! Protocol versions, packet types and fixed headers.

use std::fmt;

/// Protocol version, as CONNECT negotiates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// MQTT 3.1, protocol name `MQIsdp`, level 3.
    V31,
    /// MQTT 3.1.1, protocol level 4.
    V311,
    /// MQTT 5.0, protocol level 5.
    V5,
}

impl Version {
    /// The protocol level byte of CONNECT.
    pub const fn level(self) -> u8 {
        match self {
            Version::V31 => 3,
            Version::V311 => 4,
            Version::V5 => 5,
        }
    }

    /// The version of a protocol level, as far as there is one: what comes after 5 is read as 5.
    pub const fn from_level(level: u8) -> Version {
        match level {
            0..=3 => Version::V31,
            4 => Version::V311,
            _ => Version::V5,
        }
    }
}

/// Quality of service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Qos {
    /// At most once.
    #[default]
    AtMostOnce = 0,
    /// At least once.
    AtLeastOnce = 1,
    /// Exactly once.
    ExactlyOnce = 2,
}

impl Qos {
    /// The level's number; `None` above 2 ([MQTT-3.3.1-4]).
    pub const fn from_level(level: u8) -> Option<Qos> {
        match level {
            0 => Some(Qos::AtMostOnce),
            1 => Some(Qos::AtLeastOnce),
            2 => Some(Qos::ExactlyOnce),
            _ => None,
        }
    }

    /// 0, 1 or 2.
    pub const fn level(self) -> u8 {
        self as u8
    }
}

/// What a subscription asks for beside its filter (MQTT 5 §3.8.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionOptions {
    /// Maximum quality of service.
    pub qos: Qos,
    /// When it is sent what was retained. Before MQTT 5 at each SUBSCRIBE.
    pub retain_handling: RetainHandling,
    /// Whether it is sent RETAIN as it was published. Before MQTT 5 never.
    pub retain_as_published: bool,
    /// Whether it is not sent what its own client publishes ([MQTT-3.8.3-3]). Before MQTT 5 never.
    pub no_local: bool,
}

impl SubscriptionOptions {
    /// The option byte.
    pub const fn byte(self) -> u8 {
        self.qos.level()
            | (self.no_local as u8) << 2
            | (self.retain_as_published as u8) << 3
            | (self.retain_handling as u8) << 4
    }

    /// What an option byte asks for. Reserved bits are left aside, a QoS of 3 is taken for 2.
    pub const fn from_byte(byte: u8) -> SubscriptionOptions {
        SubscriptionOptions {
            qos: match byte & 3 {
                0 => Qos::AtMostOnce,
                1 => Qos::AtLeastOnce,
                _ => Qos::ExactlyOnce,
            },
            no_local: byte & 4 != 0,
            retain_as_published: byte & 8 != 0,
            retain_handling: match byte >> 4 & 3 {
                0 => RetainHandling::Send,
                1 => RetainHandling::New,
                _ => RetainHandling::Never,
            },
        }
    }
}

impl From<Qos> for SubscriptionOptions {
    fn from(qos: Qos) -> SubscriptionOptions {
        SubscriptionOptions { qos, ..SubscriptionOptions::default() }
    }
}

/// When a subscription is sent what was retained (MQTT 5 §3.8.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum RetainHandling {
    /// At each SUBSCRIBE ([MQTT-3.3.1-9]).
    #[default]
    Send = 0,
    /// Only if the session did not have the subscription ([MQTT-3.3.1-10]).
    New = 1,
    /// Never ([MQTT-3.3.1-11]).
    Never = 2,
}

/// Control packet types (MQTT 5 §2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Kind {
    Connect = 1,
    Connack = 2,
    Publish = 3,
    Puback = 4,
    Pubrec = 5,
    Pubrel = 6,
    Pubcomp = 7,
    Subscribe = 8,
    Suback = 9,
    Unsubscribe = 10,
    Unsuback = 11,
    Pingreq = 12,
    Pingresp = 13,
    Disconnect = 14,
    Auth = 15,
}

impl Kind {
    /// The type of this number; 0 is reserved.
    pub const fn from_number(number: u8) -> Option<Kind> {
        use Kind::*;
        Some(match number {
            1 => Connect,
            2 => Connack,
            3 => Publish,
            4 => Puback,
            5 => Pubrec,
            6 => Pubrel,
            7 => Pubcomp,
            8 => Subscribe,
            9 => Suback,
            10 => Unsubscribe,
            11 => Unsuback,
            12 => Pingreq,
            13 => Pingresp,
            14 => Disconnect,
            15 => Auth,
            _ => return None,
        })
    }

    /// The name as the specification writes it.
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

    /// The flags that every packet of this type must have; `None` for PUBLISH, which uses them (§2.1.3).
    const fn reserved_flags(self) -> Option<u8> {
        match self {
            Kind::Publish => None,
            Kind::Pubrel | Kind::Subscribe | Kind::Unsubscribe => Some(0b0010),
            _ => Some(0),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The first bytes of a packet, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedHeader {
    /// Packet type.
    pub kind: Kind,
    /// The four flag bits.
    pub flags: u8,
    /// Bytes of the fixed header itself, 2 to 5.
    pub header_len: usize,
    /// Bytes that follow it.
    pub remaining: usize,
}

/// Why bytes are not a packet. The clause of the specification that they break is in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed packet: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

impl FixedHeader {
    /// Decodes the beginning of `bytes`; `None` when more bytes are needed to tell.
    ///
    /// # Errors
    /// A reserved type, reserved flags, QoS 3, or a remaining length of more than four bytes.
    pub fn peek(bytes: &[u8]) -> Result<Option<FixedHeader>, Malformed> {
        let Some(&first) = bytes.first() else { return Ok(None) };
        let kind = Kind::from_number(first >> 4).ok_or(Malformed("packet type 0 is reserved [§2.1.2]"))?;
        let flags = first & 0x0f;
        // Before the length: a wrong first byte is refused without waiting for the second.
        match kind.reserved_flags() {
            Some(reserved) if reserved != flags => {
                return Err(Malformed("reserved flags are set [MQTT-2.1.3-1; 3.1.1: MQTT-2.2.2-2]"));
            }
            None if flags & 0b0110 == 0b0110 => return Err(Malformed("QoS 3 [MQTT-3.3.1-4]")),
            _ => {}
        }
        let Some((remaining, length_len)) = variable_length(&bytes[1..])? else { return Ok(None) };
        Ok(Some(FixedHeader { kind, flags, header_len: 1 + length_len, remaining: remaining as usize }))
    }

    /// Bytes of the whole packet.
    pub const fn packet_len(&self) -> usize {
        self.header_len + self.remaining
    }
}

/// A variable byte integer (§1.5.5) at the beginning of `bytes`: its value and its length; `None` when cut short.
///
/// It may have more bytes than it needs, as for Mosquitto 2.0.11 a packet's length may in every version. Only MQTT 5 forbids to
/// write it so ([MQTT-1.5.5-1]): in its properties it is refused.
///
/// # Errors
/// More than four bytes.
pub fn variable_length(bytes: &[u8]) -> Result<Option<(u32, usize)>, Malformed> {
    let mut value = 0_u32;
    for (index, byte) in bytes.iter().take(4).enumerate() {
        value |= u32::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(Some((value, index + 1)));
        }
    }
    if bytes.len() < 4 { Ok(None) } else { Err(Malformed("a length of more than four bytes [§1.5.5]")) }
}

/// How many bytes a variable byte integer takes.
pub const fn variable_length_len(value: usize) -> usize {
    match value {
        0..=127 => 1,
        128..=16_383 => 2,
        16_384..=2_097_151 => 3,
        _ => 4,
    }
}
