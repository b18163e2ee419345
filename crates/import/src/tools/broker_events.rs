//! What a broker's log says, line by line, whatever the broker.

/// A line of a broker's log, as far as it is of use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerEvent {
    /// The broker began: connections of an earlier run are over.
    Started,
    /// A client's CONNECT was read.
    Connected {
        /// The client's identifier.
        client: String,
        /// Clean Session, or Clean Start.
        clean: bool,
        /// The protocol's level: 3, 4 or 5; `None` where the log does not say.
        level: Option<u8>,
    },
    /// CONNACK was sent.
    Connack {
        /// The client's identifier.
        client: String,
        /// Whether the broker had a session for it; `None` where the log does not say.
        present: Option<bool>,
        /// The return code or reason code.
        code: u32,
    },
    /// DISCONNECT was read.
    Goodbye(String),
    /// A connection ended, as it says.
    Ended {
        /// The client's identifier.
        client: String,
        /// How.
        how: String,
    },
    /// The filters of what follows are this client's.
    Subscribe(String),
    /// See above.
    Unsubscribe(String),
    /// Something that belongs to what was written before: a filter with its QoS, or a will's topic.
    Detail(String),
    /// The broker has noted a subscription.
    Granted {
        /// The client's identifier.
        client: String,
        /// The filter.
        filter: String,
    },
    /// SUBACK was sent.
    Suback {
        /// The client's identifier.
        client: String,
        /// The codes, a filter each; empty where the log does not say.
        codes: Vec<u32>,
    },
    /// A PUBLISH was read from, or sent to, a client.
    Publish(LoggedPublish),
    /// An acknowledgement was read from, or sent to, a client.
    Ack(LoggedAck),
    /// The broker has begun to drop messages for a client, whose queue is full.
    Dropping(String),
}

/// Which way a packet went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client.
    Received,
    /// To the client.
    Sent,
    /// From the client, and refused.
    Denied,
}

/// A PUBLISH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedPublish {
    /// Which way.
    pub way: Way,
    /// The client's identifier.
    pub client: String,
    /// DUP.
    pub dup: bool,
    /// Quality of service.
    pub qos: u8,
    /// RETAIN.
    pub retain: bool,
    /// The packet identifier; 0 at QoS 0.
    pub id: u32,
    /// The topic.
    pub topic: String,
    /// Bytes of the payload; `None` where the log does not say.
    pub bytes: Option<u32>,
    /// What stands for the payload, where the log has it.
    pub content: Option<u64>,
}

/// A PUBACK, PUBREC, PUBREL or PUBCOMP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedAck {
    /// Which way.
    pub way: Way,
    /// The client's identifier.
    pub client: String,
    /// Which packet.
    pub kind: AckKind,
    /// The packet identifier.
    pub id: u32,
    /// The reason code.
    pub code: u32,
}

/// Packets that acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckKind {
    /// PUBACK.
    Puback,
    /// PUBREC.
    Pubrec,
    /// PUBREL.
    Pubrel,
    /// PUBCOMP.
    Pubcomp,
}

impl AckKind {
    /// The packet of this name.
    pub fn named(name: &str) -> Option<AckKind> {
        Some(match name {
            "PUBACK" => AckKind::Puback,
            "PUBREC" => AckKind::Pubrec,
            "PUBREL" => AckKind::Pubrel,
            "PUBCOMP" => AckKind::Pubcomp,
            _ => return None,
        })
    }
}

/// From which code on a packet refuses (MQTT 5 §2.4).
pub const REFUSED: u32 = 0x80;
