//! Properties of MQTT 5 (§2.2.2).

use crate::kind::{Kind, Malformed, variable_length, variable_length_len};

/// The property section of a packet: checked, not copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties<'a> {
    raw: &'a [u8],
}

/// One property's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A byte, two-byte, four-byte or variable byte integer.
    Number(u32),
    /// Binary data.
    Binary(&'a [u8]),
    /// Text.
    Text(&'a str),
    /// A pair of texts (user property).
    Pair(&'a str, &'a str),
}

/// Property identifiers that this crate itself uses.
pub mod id {
    #![allow(missing_docs)]
    pub const PAYLOAD_FORMAT_INDICATOR: u8 = 0x01;
    pub const MESSAGE_EXPIRY_INTERVAL: u8 = 0x02;
    pub const CONTENT_TYPE: u8 = 0x03;
    pub const RESPONSE_TOPIC: u8 = 0x08;
    pub const CORRELATION_DATA: u8 = 0x09;
    pub const SESSION_EXPIRY_INTERVAL: u8 = 0x11;
    pub const ASSIGNED_CLIENT_IDENTIFIER: u8 = 0x12;
    pub const SERVER_KEEP_ALIVE: u8 = 0x13;
    pub const WILL_DELAY_INTERVAL: u8 = 0x18;
    pub const RESPONSE_INFORMATION: u8 = 0x1a;
    pub const SERVER_REFERENCE: u8 = 0x1c;
    pub const REASON_STRING: u8 = 0x1f;
    pub const RECEIVE_MAXIMUM: u8 = 0x21;
    pub const TOPIC_ALIAS_MAXIMUM: u8 = 0x22;
    pub const TOPIC_ALIAS: u8 = 0x23;
    pub const MAXIMUM_QOS: u8 = 0x24;
    pub const RETAIN_AVAILABLE: u8 = 0x25;
    pub const USER_PROPERTY: u8 = 0x26;
    pub const MAXIMUM_PACKET_SIZE: u8 = 0x27;
    pub const WILDCARD_SUBSCRIPTION_AVAILABLE: u8 = 0x28;
    pub const SUBSCRIPTION_IDENTIFIER_AVAILABLE: u8 = 0x29;
    pub const SHARED_SUBSCRIPTION_AVAILABLE: u8 = 0x2a;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PropertyShape {
    Byte,
    Two,
    Four,
    Variable,
    Binary,
    Text,
    Pair,
}

/// Shape of a property and the packets that may carry it, one bit for each packet type; bit 0 stands for the will.
const fn rule(id: u8) -> Option<(PropertyShape, u32)> {
    const WILL: u32 = 1;
    const fn on(kinds: &[Kind]) -> u32 {
        let mut bits = 0;
        let mut i = 0;
        while i < kinds.len() {
            bits |= 1 << kinds[i] as u32;
            i += 1;
        }
        bits
    }
    use Kind::*;
    const REASONED: u32 = on(&[Connack, Puback, Pubrec, Pubrel, Pubcomp, Suback, Unsuback, Disconnect, Auth]);
    Some(match id {
        0x01 => (PropertyShape::Byte, on(&[Publish]) | WILL),
        0x02 => (PropertyShape::Four, on(&[Publish]) | WILL),
        0x03 => (PropertyShape::Text, on(&[Publish]) | WILL),
        0x08 => (PropertyShape::Text, on(&[Publish]) | WILL),
        0x09 => (PropertyShape::Binary, on(&[Publish]) | WILL),
        0x0b => (PropertyShape::Variable, on(&[Publish, Subscribe])),
        0x11 => (PropertyShape::Four, on(&[Connect, Connack, Disconnect])),
        0x12 => (PropertyShape::Text, on(&[Connack])),
        0x13 => (PropertyShape::Two, on(&[Connack])),
        0x15 => (PropertyShape::Text, on(&[Connect, Connack, Auth])),
        0x16 => (PropertyShape::Binary, on(&[Connect, Connack, Auth])),
        0x17 => (PropertyShape::Byte, on(&[Connect])),
        0x18 => (PropertyShape::Four, WILL),
        0x19 => (PropertyShape::Byte, on(&[Connect])),
        0x1a => (PropertyShape::Text, on(&[Connack])),
        0x1c => (PropertyShape::Text, on(&[Connack, Disconnect])),
        0x1f => (PropertyShape::Text, REASONED),
        0x21 => (PropertyShape::Two, on(&[Connect, Connack])),
        0x22 => (PropertyShape::Two, on(&[Connect, Connack])),
        0x23 => (PropertyShape::Two, on(&[Publish])),
        0x24 => (PropertyShape::Byte, on(&[Connack])),
        0x25 => (PropertyShape::Byte, on(&[Connack])),
        0x26 => (PropertyShape::Pair, REASONED | on(&[Connect, Publish, Subscribe, Unsubscribe]) | WILL),
        0x27 => (PropertyShape::Four, on(&[Connect, Connack])),
        0x28..=0x2a => (PropertyShape::Byte, on(&[Connack])),
        _ => return None,
    })
}

impl<'a> Properties<'a> {
    /// No properties.
    pub const NONE: Properties<'static> = Properties { raw: &[] };

    /// Reads a property section with its length from the front of `bytes`; the rest is the second part.
    ///
    /// # Errors
    /// A section that is cut short, an unknown identifier, one that this packet must not carry, or one that is
    /// given twice and must not be (§2.2.2.2).
    pub fn read(bytes: &'a [u8], kind: Kind) -> Result<(Self, &'a [u8]), Malformed> {
        Self::read_for(bytes, 1 << kind as u32)
    }

    /// The same for the properties of a will (§3.1.3.2).
    ///
    /// # Errors
    /// As [`Properties::read`].
    pub fn read_will(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        Self::read_for(bytes, 1)
    }

    /// What is whole at the beginning of a property section, with its length in front, of a packet that may be cut short and
    /// that may break rules: for those who watch, and cannot close the connection.
    pub fn seen(bytes: &'a [u8]) -> Self {
        Properties::seen_before(bytes).map_or(Properties::NONE, |(properties, _)| properties)
    }

    /// As [`Properties::seen`], with what follows the section. `None` where its length is cut.
    pub fn seen_before(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let Ok(Some((length, size))) = variable_length(bytes) else { return None };
        let raw = bytes.get(size..).unwrap_or_default();
        let (raw, rest) = raw.split_at(raw.len().min(length as usize));
        Some((Properties { raw }, rest))
    }

    /// The same of a section without its length.
    pub const fn seen_inside(raw: &'a [u8]) -> Self {
        Properties { raw }
    }

    fn read_for(bytes: &'a [u8], carrier: u32) -> Result<(Self, &'a [u8]), Malformed> {
        let (length, rest) = shortest(bytes)?;
        let (raw, rest) = rest.split_at_checked(length as usize).ok_or(CUT)?;
        let properties = Properties { raw };
        let mut seen = 0_u64;
        let mut left = raw;
        while !left.is_empty() {
            let (id, value, next) = next_property(left)?;
            let (_, carriers) = rule(id).ok_or(Malformed("an unknown property [§2.2.2.2]"))?;
            if carriers & carrier == 0 {
                return Err(Malformed("a property that this packet must not carry [§2.2.2.2]"));
            }
            // Subscription identifiers (0x0b) may repeat in PUBLISH, user properties everywhere.
            let repeats =
                id == self::id::USER_PROPERTY || (id == 0x0b && carrier == 1 << Kind::Publish as u32);
            if !repeats && seen & 1 << id != 0 {
                return Err(Malformed("a property that is given twice [§2.2.2.2]"));
            }
            if id == self::id::RECEIVE_MAXIMUM && value == Value::Number(0) {
                return Err(Malformed("a receive maximum of 0 [§3.1.2.11.3]"));
            }
            // Identifiers end at 0x2a, so that 64 bits hold all that were seen.
            seen |= 1 << id;
            left = next;
        }
        Ok((properties, rest))
    }

    /// Bytes of the section without its length.
    pub const fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// The properties in their order.
    pub fn iter(&self) -> impl Iterator<Item = (u8, Value<'a>)> + use<'a> {
        let mut left = self.raw;
        std::iter::from_fn(move || {
            if left.is_empty() {
                return None;
            }
            let (id, value, next) = next_property(left).ok()?;
            left = next;
            Some((id, value))
        })
    }

    /// The first number under this identifier.
    pub fn number(&self, id: u8) -> Option<u32> {
        self.iter().find_map(|(found, value)| match value {
            Value::Number(number) if found == id => Some(number),
            _ => None,
        })
    }
}

const CUT: Malformed = Malformed("the packet ends within a field");

fn next_property(bytes: &[u8]) -> Result<(u8, Value<'_>, &[u8]), Malformed> {
    let (&id, rest) = bytes.split_first().ok_or(CUT)?;
    let (shape, _) = rule(id).ok_or(Malformed("an unknown property [§2.2.2.2]"))?;
    let (value, rest) = match shape {
        PropertyShape::Byte => number(rest, 1)?,
        PropertyShape::Two => number(rest, 2)?,
        PropertyShape::Four => number(rest, 4)?,
        PropertyShape::Variable => {
            let (value, rest) = shortest(rest)?;
            (Value::Number(value), rest)
        }
        PropertyShape::Binary => {
            let (data, rest) = binary(rest)?;
            (Value::Binary(data), rest)
        }
        PropertyShape::Text => {
            let (string, rest) = text(rest)?;
            (Value::Text(string), rest)
        }
        PropertyShape::Pair => {
            let (name, rest) = text(rest)?;
            let (string, rest) = text(rest)?;
            (Value::Pair(name, string), rest)
        }
    };
    Ok((id, value, rest))
}

/// A variable byte integer in the fewest bytes, as Mosquitto 2.0.11 wants it here.
fn shortest(bytes: &[u8]) -> Result<(u32, &[u8]), Malformed> {
    let (value, length) = variable_length(bytes)?.ok_or(CUT)?;
    if length > variable_length_len(value as usize) {
        return Err(Malformed("a number in more bytes than it needs [MQTT-1.5.5-1]"));
    }
    Ok((value, &bytes[length..]))
}

fn number(bytes: &[u8], length: usize) -> Result<(Value<'_>, &[u8]), Malformed> {
    let (digits, rest) = bytes.split_at_checked(length).ok_or(CUT)?;
    let value = digits.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
    Ok((Value::Number(value), rest))
}

/// Two-byte length and that many bytes (§1.5.6).
pub(crate) fn binary(bytes: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let (length, rest) = bytes.split_first_chunk::<2>().ok_or(CUT)?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length))).ok_or(CUT)
}

/// A UTF-8 string without U+0000 (§1.5.4).
pub(crate) fn text(bytes: &[u8]) -> Result<(&str, &[u8]), Malformed> {
    let (data, rest) = binary(bytes)?;
    let string = std::str::from_utf8(data).map_err(|_| Malformed("text is not UTF-8 [MQTT-1.5.4-1]"))?;
    if data.contains(&0) {
        return Err(Malformed("text holds U+0000 [MQTT-1.5.4-2]"));
    }
    Ok((string, rest))
}
