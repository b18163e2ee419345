//! Packets of MQTT-SN 2.0, committee specification draft 01 of 14 August 2026, decoded.
//!
//! The length field is that of 1.2; types, flags and fields are others: packets that are acknowledged have a packet
//! identifier, topics in PUBLISH may be named, and sleeping is a request of its own. What is protected (§3.1.28) stays as
//! it is. There is no session of this version here.

use mqttlab_mqtt::Qos;

use crate::kind::Malformed;
use crate::numbered::numbered;

numbered! {
    /// Packet types of MQTT-SN 2.0.
    Kind:
    Connect = 0x01, "CONNECT";
    Connack = 0x02, "CONNACK";
    Publish = 0x03, "PUBLISH";
    Puback = 0x04, "PUBACK";
    Pubrec = 0x05, "PUBREC";
    Pubrel = 0x06, "PUBREL";
    Pubcomp = 0x07, "PUBCOMP";
    Subscribe = 0x08, "SUBSCRIBE";
    Suback = 0x09, "SUBACK";
    Unsubscribe = 0x0a, "UNSUBSCRIBE";
    Unsuback = 0x0b, "UNSUBACK";
    Pingreq = 0x0c, "PINGREQ";
    Pingresp = 0x0d, "PINGRESP";
    Disconnect = 0x0e, "DISCONNECT";
    Auth = 0x0f, "AUTH";
    Register = 0x10, "REGISTER";
    Regack = 0x11, "REGACK";
    Pubwos = 0x12, "PUBWOS";
    Sleepreq = 0x13, "SLEEPREQ";
    Sleepresp = 0x14, "SLEEPRESP";
    Wakeup = 0x15, "WAKEUP";
    Advertise = 0x16, "ADVERTISE";
    Searchgw = 0x17, "SEARCHGW";
    Gwinfo = 0x18, "GWINFO";
    Forwarder = 0xfc, "Forwarder-Encapsulation";
    Connection = 0xfe, "Connection-Encapsulation";
    Protection = 0xff, "Protection-Encapsulation";
}

/// What a packet calls its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Topic<'a> {
    Predefined(u16),
    Session(u16),
    Name(&'a str),
}

/// A packet of MQTT-SN 2.0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Packet<'a> {
    Connect {
        clean_start: bool,
        id: u16,
        keep_alive_s: u16,
        packet_max: u16,
        client_id: &'a str,
    },
    Connack {
        session_present: bool,
        id: u16,
        reason: u8,
        session_expiry_s: Option<u32>,
        keep_alive_s: Option<u16>,
        client_id: &'a str,
    },
    Publish {
        dup: bool,
        qos: Qos,
        retain: bool,
        id: u16,
        topic: Topic<'a>,
        payload: &'a [u8],
    },
    /// Without a session; what QoS −1 was.
    Pubwos {
        retain: bool,
        topic: Topic<'a>,
        payload: &'a [u8],
    },
    /// PUBACK, PUBREC, PUBREL, PUBCOMP or UNSUBACK.
    Acknowledgement {
        kind: Kind,
        id: u16,
        reason: Option<u8>,
    },
    Subscribe {
        no_local: bool,
        qos: Qos,
        retain_as_published: bool,
        retain_handling: u8,
        id: u16,
        topic: Topic<'a>,
    },
    Suback {
        id: u16,
        alias: Option<Topic<'a>>,
        reason: Option<u8>,
    },
    Unsubscribe {
        id: u16,
        topic: Topic<'a>,
    },
    Register {
        id: u16,
        name: &'a str,
    },
    Pingreq {
        id: u16,
    },
    /// How many messages are left for a client that was awake, where the gateway says it.
    Pingresp {
        id: u16,
        remaining: Option<u8>,
    },
    Sleepreq {
        retain_aliases: bool,
        id: u16,
        duration_s: u32,
    },
    Sleepresp {
        id: u16,
        duration_s: Option<u32>,
        reason: Option<u8>,
    },
    Wakeup,
    Disconnect {
        id: Option<u16>,
        reason: Option<u8>,
        session_expiry_s: Option<u32>,
        text: &'a str,
    },
    Auth {
        id: u16,
        reason: u8,
        method: &'a str,
        data: &'a [u8],
    },
    Advertise {
        gateway: u8,
        duration_s: u16,
    },
    Searchgw {
        network: &'a [u8],
    },
    Gwinfo {
        gateway: u8,
        address: &'a [u8],
    },
    /// A packet of the client that is named, whatever its address.
    Connection {
        client_id: &'a str,
        packet: &'a [u8],
    },
    /// A packet that a forwarder passes on.
    Forwarder {
        client: &'a [u8],
        packet: &'a [u8],
    },
    /// What is not looked into: REGACK and what is protected.
    Opaque {
        kind: Kind,
        body: &'a [u8],
    },
}

/// Decodes the packet at the beginning of `bytes`, and says how long it is: a datagram may hold several.
///
/// # Errors
/// It is no packet.
pub fn decode(bytes: &[u8]) -> Result<(Packet<'_>, usize), Malformed> {
    let (header, length, kind) = match *bytes {
        [1, high, low, kind, ..] => (4, usize::from(u16::from_be_bytes([high, low])), kind),
        [1, ..] | [] | [_] => return Err(Malformed::Short),
        [length, kind, ..] => (2, length.into(), kind),
    };
    let kind = Kind::from_number(kind).ok_or(Malformed::Kind(kind))?;
    let body = bytes.get(header..length).ok_or(Malformed::Length { says: length, has: bytes.len() })?;
    let mut fields = Fields(body);
    let packet = fields.packet(kind)?;
    match fields.0 {
        [] => Ok((packet, length)),
        rest => Err(Malformed::Length { says: length, has: length - rest.len() }),
    }
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn packet(&mut self, kind: Kind) -> Result<Packet<'a>, Malformed> {
        Ok(match kind {
            Kind::Connect => self.connect()?,
            Kind::Connack => self.connack()?,
            Kind::Publish => self.publish()?,
            Kind::Pubwos => {
                let flags = self.flags(0x13)?;
                let topic = self.topic(flags)?;
                Packet::Pubwos { retain: flags & RETAIN != 0, topic, payload: self.rest() }
            }
            Kind::Puback | Kind::Pubrec | Kind::Pubrel | Kind::Pubcomp | Kind::Unsuback => {
                Packet::Acknowledgement { kind, id: self.id()?, reason: self.reason()? }
            }
            Kind::Subscribe => self.subscribe()?,
            Kind::Suback => {
                let flags = self.flags(0x07)?;
                let id = self.id()?;
                let alias = if flags & 0x04 != 0 { Some(self.alias(flags)?) } else { None };
                Packet::Suback { id, alias, reason: self.reason()? }
            }
            Kind::Unsubscribe => {
                let flags = self.flags(0x03)?;
                Packet::Unsubscribe { id: self.id()?, topic: self.filter(flags)? }
            }
            Kind::Register => {
                self.flags(0)?;
                Packet::Register { id: self.id()?, name: self.text()? }
            }
            Kind::Pingreq => Packet::Pingreq { id: self.id()? },
            Kind::Pingresp => Packet::Pingresp { id: self.id()?, remaining: self.reason()? },
            Kind::Sleepreq => {
                let flags = self.flags(0x01)?;
                Packet::Sleepreq { retain_aliases: flags != 0, id: self.id()?, duration_s: self.long()? }
            }
            Kind::Sleepresp => {
                let flags = self.flags(0x01)?;
                let id = self.id()?;
                let duration_s = if flags != 0 { Some(self.long()?) } else { None };
                Packet::Sleepresp { id, duration_s, reason: self.reason()? }
            }
            Kind::Wakeup => Packet::Wakeup,
            Kind::Disconnect => self.disconnect()?,
            Kind::Auth => {
                let (id, reason, length) = (self.id()?, self.octet()?, self.octet()?);
                Packet::Auth { id, reason, method: self.text_of(length.into())?, data: self.rest() }
            }
            Kind::Advertise => Packet::Advertise { gateway: self.octet()?, duration_s: self.number()? },
            Kind::Searchgw => Packet::Searchgw { network: self.rest() },
            Kind::Gwinfo => Packet::Gwinfo { gateway: self.octet()?, address: self.rest() },
            Kind::Connection => {
                let length = self.number()?;
                Packet::Connection { client_id: self.text_of(length.into())?, packet: self.rest() }
            }
            Kind::Forwarder => {
                let length = self.octet()?;
                Packet::Forwarder { client: self.bytes(length.into())?, packet: self.rest() }
            }
            Kind::Regack | Kind::Protection => Packet::Opaque { kind, body: self.rest() },
        })
    }

    fn connect(&mut self) -> Result<Packet<'a>, Malformed> {
        // Will, session expiry and authentication bring fields of their own, which are not read.
        let flags = self.flags(0x61)?;
        let id = self.id()?;
        match self.octet()? {
            PROTOCOL_VERSION => {}
            other => return Err(Malformed::Protocol(other)),
        }
        let (keep_alive_s, packet_max) = (self.number()?, self.number()?);
        Ok(Packet::Connect {
            clean_start: flags & 0x01 != 0,
            id,
            keep_alive_s,
            packet_max,
            client_id: self.text()?,
        })
    }

    fn connack(&mut self) -> Result<Packet<'a>, Malformed> {
        let flags = self.flags(0x0f)?;
        let (id, reason) = (self.id()?, self.octet()?);
        let session_expiry_s = if flags & 0x02 != 0 { Some(self.long()?) } else { None };
        let keep_alive_s = if flags & 0x04 != 0 { Some(self.number()?) } else { None };
        if flags & 0x08 != 0 {
            let method = self.octet()?;
            self.text_of(method.into())?;
            let data = self.number()?;
            self.bytes(data.into())?;
        }
        let session_present = flags & 0x01 != 0;
        Ok(Packet::Connack {
            session_present,
            id,
            reason,
            session_expiry_s,
            keep_alive_s,
            client_id: self.text()?,
        })
    }

    fn publish(&mut self) -> Result<Packet<'a>, Malformed> {
        let flags = self.flags(0xf3)?;
        let qos = qos(flags)?;
        // There is nothing to acknowledge at QoS 0, and no identifier either.
        let id = if qos == Qos::AtMostOnce { 0 } else { self.id()? };
        let topic = self.topic(flags)?;
        let (dup, retain) = (flags & DUP != 0, flags & RETAIN != 0);
        Ok(Packet::Publish { dup, qos, retain, id, topic, payload: self.rest() })
    }

    fn subscribe(&mut self) -> Result<Packet<'a>, Malformed> {
        let flags = self.octet()?;
        Ok(Packet::Subscribe {
            no_local: flags & DUP != 0,
            qos: qos(flags)?,
            retain_as_published: flags & RETAIN != 0,
            retain_handling: flags >> 2 & 0x03,
            id: self.id()?,
            topic: self.filter(flags)?,
        })
    }

    fn disconnect(&mut self) -> Result<Packet<'a>, Malformed> {
        let flags = self.flags(0x07)?;
        let id = if flags & 0x01 != 0 { Some(self.id()?) } else { None };
        let reason = if flags & 0x04 != 0 { Some(self.octet()?) } else { None };
        let session_expiry_s = if flags & 0x02 != 0 { Some(self.long()?) } else { None };
        Ok(Packet::Disconnect { id, reason, session_expiry_s, text: self.text()? })
    }

    /// Of a packet in which something follows the topic: a name has a length.
    fn topic(&mut self, flags: u8) -> Result<Topic<'a>, Malformed> {
        if flags & TOPIC != NAME {
            return self.alias(flags);
        }
        let length = self.number()?;
        Ok(Topic::Name(self.text_of(length.into())?))
    }

    /// Of a packet that ends with the topic.
    fn filter(&mut self, flags: u8) -> Result<Topic<'a>, Malformed> {
        if flags & TOPIC == NAME { Ok(Topic::Name(self.text()?)) } else { self.alias(flags) }
    }

    fn alias(&mut self, flags: u8) -> Result<Topic<'a>, Malformed> {
        match (flags & TOPIC, self.number()?) {
            (_, 0) => Err(Malformed::Topic),
            (PREDEFINED, alias) => Ok(Topic::Predefined(alias)),
            (SESSION, alias) => Ok(Topic::Session(alias)),
            _ => Err(Malformed::Flags(flags)),
        }
    }

    /// The flags, of which no others than these may be set.
    fn flags(&mut self, allowed: u8) -> Result<u8, Malformed> {
        match self.octet()? {
            flags if flags & !allowed == 0 => Ok(flags),
            flags => Err(Malformed::Flags(flags)),
        }
    }

    fn octet(&mut self) -> Result<u8, Malformed> {
        Ok(self.bytes(1)?[0])
    }

    fn number(&mut self) -> Result<u16, Malformed> {
        let bytes = self.bytes(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn long(&mut self) -> Result<u32, Malformed> {
        let bytes = self.bytes(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn id(&mut self) -> Result<u16, Malformed> {
        match self.number()? {
            0 => Err(Malformed::Id),
            id => Ok(id),
        }
    }

    fn reason(&mut self) -> Result<Option<u8>, Malformed> {
        if self.0.is_empty() { Ok(None) } else { self.octet().map(Some) }
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn text_of(&mut self, count: usize) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes(count)?).map_err(|_| Malformed::Text)
    }

    fn text(&mut self) -> Result<&'a str, Malformed> {
        self.text_of(self.0.len())
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

fn qos(flags: u8) -> Result<Qos, Malformed> {
    Qos::from_level(flags >> 5 & 0x03).ok_or(Malformed::Flags(flags))
}

const PROTOCOL_VERSION: u8 = 0x02;
const DUP: u8 = 0x80;
const RETAIN: u8 = 0x10;
const TOPIC: u8 = 0x03;
const PREDEFINED: u8 = 0x01;
const SESSION: u8 = 0x00;
const NAME: u8 = 0x03;
