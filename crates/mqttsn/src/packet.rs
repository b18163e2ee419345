//! Packets of MQTT-SN 1.2 (§5.4), and their decoding.
//!
//! Strict: one datagram is one packet, perhaps behind the headers of forwarders (§5.5), and its length field says its
//! length. A packet of up to 255 B may have either form of the length field.

use mqttlab_mqtt::{Qos, topic};

use crate::kind::{Kind, Malformed, PublishQos, ReturnCode, flag};

/// A packet. `S` stands for its texts, `M` for a message's payload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Packet<S, M> {
    /// A gateway says that it is there, and when it will say so again.
    Advertise {
        gateway: u8,
        duration_s: u16,
    },
    /// Who is a gateway?
    Searchgw {
        radius: u8,
    },
    /// This one is; the address only where a client says it for a gateway.
    Gwinfo {
        gateway: u8,
        address: Vec<u8>,
    },
    Connect {
        will: bool,
        clean: bool,
        duration_s: u16,
        client_id: S,
    },
    Connack {
        code: ReturnCode,
    },
    Willtopicreq,
    /// `None` deletes the will.
    Willtopic {
        will: Option<WillTopic<S>>,
    },
    Willmsgreq,
    Willmsg {
        message: M,
    },
    Register {
        topic_id: u16,
        id: u16,
        name: S,
    },
    Regack {
        topic_id: u16,
        id: u16,
        code: ReturnCode,
    },
    Publish {
        dup: bool,
        qos: PublishQos,
        retain: bool,
        topic: Topic,
        id: u16,
        message: M,
    },
    Puback {
        topic_id: u16,
        id: u16,
        code: ReturnCode,
    },
    Pubcomp {
        id: u16,
    },
    Pubrec {
        id: u16,
    },
    Pubrel {
        id: u16,
    },
    Subscribe {
        dup: bool,
        qos: Qos,
        id: u16,
        filter: Filter<S>,
    },
    Suback {
        qos: Qos,
        topic_id: u16,
        id: u16,
        code: ReturnCode,
    },
    Unsubscribe {
        id: u16,
        filter: Filter<S>,
    },
    Unsuback {
        id: u16,
    },
    /// With a client identifier a sleeping client says that it is awake.
    Pingreq {
        client_id: Option<S>,
    },
    Pingresp,
    /// With a duration a client says that it sleeps.
    Disconnect {
        duration_s: Option<u16>,
    },
    /// `None` deletes the will.
    Willtopicupd {
        will: Option<WillTopic<S>>,
    },
    Willtopicresp {
        code: ReturnCode,
    },
    Willmsgupd {
        message: M,
    },
    Willmsgresp {
        code: ReturnCode,
    },
}

/// The topic of a will, and how it is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WillTopic<S> {
    /// Quality of service.
    pub qos: Qos,
    /// Whether it is retained.
    pub retain: bool,
    /// The topic.
    pub topic: S,
}

/// What a PUBLISH calls its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// By what was agreed on with REGISTER or SUBACK.
    Registered(u16),
    /// By what both sides know beforehand.
    Predefined(u16),
    /// By its name, which has two octets.
    Short([u8; 2]),
}

impl Topic {
    /// As the field of a packet has it.
    pub const fn number(self) -> u16 {
        match self {
            Topic::Registered(id) | Topic::Predefined(id) => id,
            Topic::Short(name) => u16::from_be_bytes(name),
        }
    }

    /// The short topic of this name, where it is one (§3.2: "exactly two octets").
    pub fn short(name: &str) -> Option<Topic> {
        let bytes: [u8; 2] = name.as_bytes().try_into().ok()?;
        topic::is_name(name).then_some(Topic::Short(bytes))
    }

    /// The name of a short topic.
    pub fn short_name(&self) -> Option<&str> {
        match self {
            Topic::Short(name) => std::str::from_utf8(name).ok(),
            Topic::Registered(_) | Topic::Predefined(_) => None,
        }
    }
}

/// What a SUBSCRIBE or UNSUBSCRIBE names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter<S> {
    /// A topic's name, or a filter with wild cards.
    Name(S),
    /// A topic that both sides know beforehand.
    Predefined(u16),
    /// A topic of two octets.
    Short([u8; 2]),
}

/// Where a packet comes from that a forwarder has passed on (§5.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarded<'a> {
    /// How far the forwarder may broadcast it, 0 to 3.
    pub radius: u8,
    /// Who sent it, or shall have it, behind the forwarder.
    pub node: &'a [u8],
}

impl<S, M> Packet<S, M> {
    /// Its type.
    pub const fn kind(&self) -> Kind {
        match self {
            Packet::Advertise { .. } => Kind::Advertise,
            Packet::Searchgw { .. } => Kind::Searchgw,
            Packet::Gwinfo { .. } => Kind::Gwinfo,
            Packet::Connect { .. } => Kind::Connect,
            Packet::Connack { .. } => Kind::Connack,
            Packet::Willtopicreq => Kind::Willtopicreq,
            Packet::Willtopic { .. } => Kind::Willtopic,
            Packet::Willmsgreq => Kind::Willmsgreq,
            Packet::Willmsg { .. } => Kind::Willmsg,
            Packet::Register { .. } => Kind::Register,
            Packet::Regack { .. } => Kind::Regack,
            Packet::Publish { .. } => Kind::Publish,
            Packet::Puback { .. } => Kind::Puback,
            Packet::Pubcomp { .. } => Kind::Pubcomp,
            Packet::Pubrec { .. } => Kind::Pubrec,
            Packet::Pubrel { .. } => Kind::Pubrel,
            Packet::Subscribe { .. } => Kind::Subscribe,
            Packet::Suback { .. } => Kind::Suback,
            Packet::Unsubscribe { .. } => Kind::Unsubscribe,
            Packet::Unsuback { .. } => Kind::Unsuback,
            Packet::Pingreq { .. } => Kind::Pingreq,
            Packet::Pingresp => Kind::Pingresp,
            Packet::Disconnect { .. } => Kind::Disconnect,
            Packet::Willtopicupd { .. } => Kind::Willtopicupd,
            Packet::Willtopicresp { .. } => Kind::Willtopicresp,
            Packet::Willmsgupd { .. } => Kind::Willmsgupd,
            Packet::Willmsgresp { .. } => Kind::Willmsgresp,
        }
    }

    /// The same packet with other texts and messages.
    pub fn map<T, N>(self, mut text: impl FnMut(S) -> T, mut content: impl FnMut(M) -> N) -> Packet<T, N> {
        match self {
            Packet::Advertise { gateway, duration_s } => Packet::Advertise { gateway, duration_s },
            Packet::Searchgw { radius } => Packet::Searchgw { radius },
            Packet::Gwinfo { gateway, address } => Packet::Gwinfo { gateway, address },
            Packet::Connect { will, clean, duration_s, client_id } => {
                Packet::Connect { will, clean, duration_s, client_id: text(client_id) }
            }
            Packet::Connack { code } => Packet::Connack { code },
            Packet::Willtopicreq => Packet::Willtopicreq,
            Packet::Willtopic { will } => Packet::Willtopic { will: will.map(|will| will.map(text)) },
            Packet::Willmsgreq => Packet::Willmsgreq,
            Packet::Willmsg { message } => Packet::Willmsg { message: content(message) },
            Packet::Register { topic_id, id, name } => Packet::Register { topic_id, id, name: text(name) },
            Packet::Regack { topic_id, id, code } => Packet::Regack { topic_id, id, code },
            Packet::Publish { dup, qos, retain, topic, id, message } => {
                Packet::Publish { dup, qos, retain, topic, id, message: content(message) }
            }
            Packet::Puback { topic_id, id, code } => Packet::Puback { topic_id, id, code },
            Packet::Pubcomp { id } => Packet::Pubcomp { id },
            Packet::Pubrec { id } => Packet::Pubrec { id },
            Packet::Pubrel { id } => Packet::Pubrel { id },
            Packet::Subscribe { dup, qos, id, filter } => {
                Packet::Subscribe { dup, qos, id, filter: filter.map(text) }
            }
            Packet::Suback { qos, topic_id, id, code } => Packet::Suback { qos, topic_id, id, code },
            Packet::Unsubscribe { id, filter } => Packet::Unsubscribe { id, filter: filter.map(text) },
            Packet::Unsuback { id } => Packet::Unsuback { id },
            Packet::Pingreq { client_id } => Packet::Pingreq { client_id: client_id.map(text) },
            Packet::Pingresp => Packet::Pingresp,
            Packet::Disconnect { duration_s } => Packet::Disconnect { duration_s },
            Packet::Willtopicupd { will } => Packet::Willtopicupd { will: will.map(|will| will.map(text)) },
            Packet::Willtopicresp { code } => Packet::Willtopicresp { code },
            Packet::Willmsgupd { message } => Packet::Willmsgupd { message: content(message) },
            Packet::Willmsgresp { code } => Packet::Willmsgresp { code },
        }
    }
}

impl<S> WillTopic<S> {
    fn map<T>(self, text: impl FnMut(S) -> T) -> WillTopic<T> {
        let mut text = text;
        WillTopic { qos: self.qos, retain: self.retain, topic: text(self.topic) }
    }
}

impl<S> Filter<S> {
    fn map<T>(self, mut text: impl FnMut(S) -> T) -> Filter<T> {
        match self {
            Filter::Name(name) => Filter::Name(text(name)),
            Filter::Predefined(id) => Filter::Predefined(id),
            Filter::Short(name) => Filter::Short(name),
        }
    }
}

/// What a datagram holds: a packet, and the forwarders that it has passed, the outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Headers of forwarders.
    pub forwarded: Vec<Forwarded<'a>>,
    /// The packet.
    pub packet: Packet<&'a str, &'a [u8]>,
}

/// Decodes a datagram.
///
/// # Errors
/// It is no packet.
pub fn decode(datagram: &[u8]) -> Result<Datagram<'_>, Malformed> {
    let mut forwarded = Vec::new();
    let mut rest = datagram;
    loop {
        let header = PacketHeader::read(rest)?;
        if header.kind != ENCAPSULATED {
            break;
        }
        // The length is that of the header alone; the packet follows (§5.5).
        let (Some(fields), Some(inner)) = (rest.get(header.bytes..header.length), rest.get(header.length..))
        else {
            return Err(Malformed::Short);
        };
        let (control, node) = fields.split_first().ok_or(Malformed::Short)?;
        // A bound, or a datagram of headers alone would be read to its end.
        if forwarded.len() == FORWARDERS_MAX {
            return Err(Malformed::Kind(ENCAPSULATED));
        }
        forwarded.push(Forwarded { radius: control & 0x03, node });
        rest = inner;
    }
    Ok(Datagram { forwarded, packet: decode_packet(rest)? })
}

/// The beginning of a packet.
struct PacketHeader {
    /// Of the length and the type together.
    bytes: usize,
    /// What the length field says.
    length: usize,
    kind: u8,
}

impl PacketHeader {
    /// §5.2.1: one octet, or 0x01 and two more.
    fn read(bytes: &[u8]) -> Result<PacketHeader, Malformed> {
        match *bytes {
            // No packet is one octet long, so that a length of 1 is free to say this.
            [1, high, low, kind, ..] => {
                Ok(PacketHeader { bytes: 4, length: u16::from_be_bytes([high, low]).into(), kind })
            }
            [1, ..] | [] | [_] => Err(Malformed::Short),
            [length, kind, ..] => Ok(PacketHeader { bytes: 2, length: length.into(), kind }),
        }
    }
}

fn decode_packet(bytes: &[u8]) -> Result<Packet<&str, &[u8]>, Malformed> {
    let header = PacketHeader::read(bytes)?;
    if header.length != bytes.len() {
        return Err(Malformed::Length { says: header.length, has: bytes.len() });
    }
    let kind = Kind::from_number(header.kind).ok_or(Malformed::Kind(header.kind))?;
    let mut fields = PacketFields(&bytes[header.bytes..]);
    let packet = fields.packet(kind)?;
    // What is variable takes everything that is left.
    match fields.0 {
        [] => Ok(packet),
        _ => Err(Malformed::Length { says: header.length, has: bytes.len() - fields.0.len() }),
    }
}

/// What of a packet has not been read.
struct PacketFields<'a>(&'a [u8]);

impl<'a> PacketFields<'a> {
    fn packet(&mut self, kind: Kind) -> Result<Packet<&'a str, &'a [u8]>, Malformed> {
        Ok(match kind {
            Kind::Advertise => Packet::Advertise { gateway: self.octet()?, duration_s: self.number()? },
            Kind::Searchgw => Packet::Searchgw { radius: self.octet()? },
            Kind::Gwinfo => Packet::Gwinfo { gateway: self.octet()?, address: self.rest().to_vec() },
            Kind::Connect => self.connect()?,
            Kind::Connack => Packet::Connack { code: self.code()? },
            Kind::Willtopicreq => Packet::Willtopicreq,
            Kind::Willtopic => Packet::Willtopic { will: self.will_topic()? },
            Kind::Willmsgreq => Packet::Willmsgreq,
            Kind::Willmsg => Packet::Willmsg { message: self.rest() },
            Kind::Register => self.register()?,
            Kind::Regack => {
                Packet::Regack { topic_id: self.number()?, id: self.number()?, code: self.code()? }
            }
            Kind::Publish => self.publish()?,
            Kind::Puback => {
                Packet::Puback { topic_id: self.number()?, id: self.number()?, code: self.code()? }
            }
            Kind::Pubcomp => Packet::Pubcomp { id: self.id()? },
            Kind::Pubrec => Packet::Pubrec { id: self.id()? },
            Kind::Pubrel => Packet::Pubrel { id: self.id()? },
            Kind::Subscribe => {
                let flags = self.octet()?;
                let (dup, qos, id) = (flags & flag::DUP != 0, level(flags)?, self.id()?);
                Packet::Subscribe { dup, qos, id, filter: self.filter(flags)? }
            }
            Kind::Suback => {
                let qos = level(self.octet()?)?;
                Packet::Suback { qos, topic_id: self.number()?, id: self.number()?, code: self.code()? }
            }
            Kind::Unsubscribe => {
                let flags = self.octet()?;
                Packet::Unsubscribe { id: self.id()?, filter: self.filter(flags)? }
            }
            Kind::Unsuback => Packet::Unsuback { id: self.id()? },
            Kind::Pingreq => {
                // With its identifier a sleeper says that it is awake; without one it is a sign of life (§5.4.19).
                let client_id = self.text()?;
                Packet::Pingreq { client_id: Some(client_id).filter(|id| !id.is_empty()) }
            }
            Kind::Pingresp => Packet::Pingresp,
            // Only who wants to sleep gives a duration (§5.4.21).
            Kind::Disconnect if self.0.is_empty() => Packet::Disconnect { duration_s: None },
            Kind::Disconnect => Packet::Disconnect { duration_s: Some(self.number()?) },
            Kind::Willtopicupd => Packet::Willtopicupd { will: self.will_topic()? },
            Kind::Willtopicresp => Packet::Willtopicresp { code: self.code()? },
            Kind::Willmsgupd => Packet::Willmsgupd { message: self.rest() },
            Kind::Willmsgresp => Packet::Willmsgresp { code: self.code()? },
        })
    }

    fn connect(&mut self) -> Result<Packet<&'a str, &'a [u8]>, Malformed> {
        let flags = self.octet()?;
        // Before what follows, which another version may have in another order.
        match self.octet()? {
            PROTOCOL_ID => {}
            other => return Err(Malformed::Protocol(other)),
        }
        let (will, clean) = (flags & flag::WILL != 0, flags & flag::CLEAN != 0);
        Ok(Packet::Connect { will, clean, duration_s: self.number()?, client_id: self.text()? })
    }

    fn register(&mut self) -> Result<Packet<&'a str, &'a [u8]>, Malformed> {
        // The topic identifier is 0 from a client, and has no meaning then (§5.4.10).
        let (topic_id, id, name) = (self.number()?, self.id()?, self.text()?);
        if name.is_empty() {
            return Err(Malformed::Topic);
        }
        Ok(Packet::Register { topic_id, id, name })
    }

    fn publish(&mut self) -> Result<Packet<&'a str, &'a [u8]>, Malformed> {
        let flags = self.octet()?;
        let qos = match (flags & flag::QOS) >> flag::QOS_SHIFT {
            3 => PublishQos::WithoutConnection,
            level => PublishQos::Level(Qos::from_level(level).ok_or(Malformed::Flags(flags))?),
        };
        let topic = match (flags & flag::TOPIC, self.number()?) {
            (NORMAL, id) => Topic::Registered(id),
            (PREDEFINED, id) => Topic::Predefined(id),
            (SHORT, name) => Topic::Short(name.to_be_bytes()),
            // 0b11 is reserved (§5.3.4).
            _ => return Err(Malformed::Flags(flags)),
        };
        let id = self.number()?;
        // What is acknowledged must have an identifier to be acknowledged by (§5.4.12).
        if id == 0 && qos > PublishQos::Level(Qos::AtMostOnce) {
            return Err(Malformed::Id);
        }
        let (dup, retain) = (flags & flag::DUP != 0, flags & flag::RETAIN != 0);
        Ok(Packet::Publish { dup, qos, retain, topic, id, message: self.rest() })
    }

    fn filter(&mut self, flags: u8) -> Result<Filter<&'a str>, Malformed> {
        Ok(match flags & flag::TOPIC {
            NORMAL => {
                let name = self.text()?;
                if name.is_empty() {
                    return Err(Malformed::Topic);
                }
                Filter::Name(name)
            }
            PREDEFINED => Filter::Predefined(self.number()?),
            SHORT => Filter::Short(self.number()?.to_be_bytes()),
            _ => return Err(Malformed::Flags(flags)),
        })
    }

    fn will_topic(&mut self) -> Result<Option<WillTopic<&'a str>>, Malformed> {
        // Without flags and topic it deletes the will (§5.4.7).
        if self.0.is_empty() {
            return Ok(None);
        }
        let flags = self.octet()?;
        let topic = self.text()?;
        if topic.is_empty() {
            return Err(Malformed::Topic);
        }
        Ok(Some(WillTopic { qos: level(flags)?, retain: flags & flag::RETAIN != 0, topic }))
    }

    fn octet(&mut self) -> Result<u8, Malformed> {
        let (octet, rest) = self.0.split_first().ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(*octet)
    }

    fn number(&mut self) -> Result<u16, Malformed> {
        let (octets, rest) = self.0.split_first_chunk().ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(u16::from_be_bytes(*octets))
    }

    fn id(&mut self) -> Result<u16, Malformed> {
        match self.number()? {
            0 => Err(Malformed::Id),
            id => Ok(id),
        }
    }

    fn code(&mut self) -> Result<ReturnCode, Malformed> {
        // Reserved codes are kept: whatever they mean, they do not accept (§5.3.10).
        self.octet().map(ReturnCode::from_number)
    }

    fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.rest()).map_err(|_| Malformed::Text)
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

/// QoS −1 has a meaning in PUBLISH alone.
fn level(flags: u8) -> Result<Qos, Malformed> {
    Qos::from_level((flags & flag::QOS) >> flag::QOS_SHIFT).ok_or(Malformed::Flags(flags))
}

pub(crate) const PROTOCOL_ID: u8 = 0x01;
pub(crate) const ENCAPSULATED: u8 = 0xfe;
pub(crate) const NORMAL: u8 = 0;
pub(crate) const PREDEFINED: u8 = 1;
pub(crate) const SHORT: u8 = 2;
/// A packet that has passed more forwarders than this goes in a circle.
const FORWARDERS_MAX: usize = 8;
