//! Packet types, flags and return codes.

use std::fmt;

use mqttlab_mqtt::Qos;

use crate::numbered::numbered;

numbered! {
    /// Packet types of MQTT-SN 1.2 (§5.2.2).
    Kind:
    Advertise = 0x00, "ADVERTISE";
    Searchgw = 0x01, "SEARCHGW";
    Gwinfo = 0x02, "GWINFO";
    Connect = 0x04, "CONNECT";
    Connack = 0x05, "CONNACK";
    Willtopicreq = 0x06, "WILLTOPICREQ";
    Willtopic = 0x07, "WILLTOPIC";
    Willmsgreq = 0x08, "WILLMSGREQ";
    Willmsg = 0x09, "WILLMSG";
    Register = 0x0a, "REGISTER";
    Regack = 0x0b, "REGACK";
    Publish = 0x0c, "PUBLISH";
    Puback = 0x0d, "PUBACK";
    Pubcomp = 0x0e, "PUBCOMP";
    Pubrec = 0x0f, "PUBREC";
    Pubrel = 0x10, "PUBREL";
    Subscribe = 0x12, "SUBSCRIBE";
    Suback = 0x13, "SUBACK";
    Unsubscribe = 0x14, "UNSUBSCRIBE";
    Unsuback = 0x15, "UNSUBACK";
    Pingreq = 0x16, "PINGREQ";
    Pingresp = 0x17, "PINGRESP";
    Disconnect = 0x18, "DISCONNECT";
    Willtopicupd = 0x1a, "WILLTOPICUPD";
    Willtopicresp = 0x1b, "WILLTOPICRESP";
    Willmsgupd = 0x1c, "WILLMSGUPD";
    Willmsgresp = 0x1d, "WILLMSGRESP";
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Quality of service of a PUBLISH, which knows one more than MQTT (§5.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PublishQos {
    /// QoS −1: no connection is needed, nothing is answered; predefined and short topics only (§6.8).
    WithoutConnection,
    /// QoS 0, 1 or 2.
    Level(Qos),
}

impl PublishQos {
    /// As a broker is told: QoS −1 is published at QoS 0.
    pub const fn level(self) -> Qos {
        match self {
            PublishQos::WithoutConnection => Qos::AtMostOnce,
            PublishQos::Level(qos) => qos,
        }
    }
}

/// What an answer says (§5.3.10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReturnCode {
    /// Accepted.
    #[default]
    Accepted,
    /// Rejected: congestion. To be tried again after T_WAIT.
    Congestion,
    /// Rejected: invalid topic identifier.
    InvalidTopic,
    /// Rejected: not supported.
    NotSupported,
    /// A number that the specification reserves.
    Reserved(u8),
}

impl ReturnCode {
    /// What this number says.
    pub const fn from_number(number: u8) -> ReturnCode {
        match number {
            0 => ReturnCode::Accepted,
            1 => ReturnCode::Congestion,
            2 => ReturnCode::InvalidTopic,
            3 => ReturnCode::NotSupported,
            other => ReturnCode::Reserved(other),
        }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        match self {
            ReturnCode::Accepted => 0,
            ReturnCode::Congestion => 1,
            ReturnCode::InvalidTopic => 2,
            ReturnCode::NotSupported => 3,
            ReturnCode::Reserved(other) => other,
        }
    }

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            ReturnCode::Accepted => "accepted",
            ReturnCode::Congestion => "rejected: congestion",
            ReturnCode::InvalidTopic => "rejected: invalid topic id",
            ReturnCode::NotSupported => "rejected: not supported",
            ReturnCode::Reserved(_) => "a reserved return code",
        }
    }
}

/// Why a datagram is no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It ends too early.
    Short,
    /// Its length field says something else than its length.
    Length {
        /// What it says.
        says: usize,
        /// What there is.
        has: usize,
    },
    /// A type that is reserved.
    Kind(u8),
    /// Flags that have no meaning together.
    Flags(u8),
    /// Another protocol identifier than this version's.
    Protocol(u8),
    /// A text that is no UTF-8.
    Text,
    /// A topic that may not be named.
    Topic,
    /// An identifier that may not be zero.
    Id,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Short => write!(f, "the datagram ends inside a field"),
            Malformed::Length { says, has } => {
                write!(f, "the length field says {says}, but there are {has} B")
            }
            Malformed::Kind(kind) => write!(f, "packet type 0x{kind:02x} is reserved"),
            Malformed::Flags(flags) => write!(f, "flags 0x{flags:02x} are not allowed here"),
            Malformed::Protocol(protocol) => {
                write!(f, "protocol identifier 0x{protocol:02x} is another version's")
            }
            Malformed::Text => write!(f, "a text is not UTF-8"),
            Malformed::Topic => write!(f, "a topic is empty or of the wrong type"),
            Malformed::Id => write!(f, "an identifier is zero"),
        }
    }
}

impl std::error::Error for Malformed {}

/// The bits of the flags octet (§5.3.4).
pub(crate) mod flag {
    pub(crate) const DUP: u8 = 0x80;
    pub(crate) const QOS: u8 = 0x60;
    pub(crate) const QOS_SHIFT: u8 = 5;
    pub(crate) const RETAIN: u8 = 0x10;
    pub(crate) const WILL: u8 = 0x08;
    pub(crate) const CLEAN: u8 = 0x04;
    pub(crate) const TOPIC: u8 = 0x03;
}
