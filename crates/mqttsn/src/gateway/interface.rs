//! What a gateway is configured with, what happens to it, and what it says.

use std::sync::Arc;

use mqttlab_mqtt::{Kind, Qos};
use mqttlab_units::Duration;

use crate::packet::Packet;

/// What a gateway is configured with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayOptions {
    /// GwId of ADVERTISE and GWINFO.
    pub id: u8,
    /// How clients reach the broker.
    pub mode: Mode,
    /// Client identifier of the gateway's own connection: all of an aggregating gateway, QoS −1 of a transparent one.
    pub client_id: Arc<str>,
    /// Keep-alive interval of that connection; zero switches it off.
    pub keep_alive: Duration,
    /// T_retry towards clients, and from one attempt to reach the broker to the next.
    pub retry: Duration,
    /// N_retry towards clients.
    pub retries: u32,
    /// Unacknowledged messages of QoS 1 and 2 towards one client; 0 for no limit.
    pub window: u32,
    /// Messages that are kept for one client, asleep or slow.
    pub buffer: u32,
    /// Clients at once; to more it says "rejected: congestion".
    pub clients_max: u32,
    /// Unacknowledged messages on the gateway's own connection; 0 for 65535.
    pub broker_window: u16,
    /// Messages that wait for that connection.
    pub broker_queue: u32,
    /// Acknowledge a repeated PUBLISH of QoS 1 again instead of publishing it twice.
    pub filter_duplicates: bool,
    /// From one ADVERTISE to the next.
    pub advertise: Option<Duration>,
    /// Topics that both sides know beforehand.
    pub predefined: Arc<[(u16, Arc<str>)]>,
}

/// How clients reach the broker (§3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Each over a connection of its own; acknowledgements are the broker's.
    Transparent,
    /// All over one connection, which the gateway has a session on.
    Aggregating,
}

/// Where a client's packets come from: a peer of the gateway's socket, and a node behind it where that is a forwarder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// The shell's number for it.
    pub peer: u32,
    /// The wireless node, by the octets that the forwarder gives.
    pub node: Option<Arc<[u8]>>,
}

/// A connection to the broker. The gateway's own is [`Link::OWN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link(pub u32);

impl Link {
    /// The gateway's own connection.
    pub const OWN: Link = Link(0);
}

/// A packet of MQTT 3.1.1, between gateway and broker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BrokerPacket<M> {
    Connect {
        client_id: Arc<str>,
        clean: bool,
        keep_alive_s: u16,
        will: Option<Will<M>>,
    },
    Connack {
        code: u8,
        session_present: bool,
    },
    Publish {
        dup: bool,
        qos: Qos,
        retain: bool,
        topic: Arc<str>,
        id: u16,
        message: M,
    },
    /// PUBACK, PUBREC, PUBREL, PUBCOMP or UNSUBACK.
    Acknowledgement {
        kind: Kind,
        id: u16,
    },
    Subscribe {
        id: u16,
        filter: Arc<str>,
        qos: Qos,
    },
    Suback {
        id: u16,
        code: u8,
    },
    Unsubscribe {
        id: u16,
        filter: Arc<str>,
    },
    Pingreq,
    Pingresp,
    Disconnect,
}

/// What is published when a client is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Will<M> {
    /// Topic.
    pub topic: Arc<str>,
    /// Quality of service.
    pub qos: Qos,
    /// Retained.
    pub retain: bool,
    /// Payload.
    pub message: M,
}

/// Something that happened to a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<M> {
    /// A packet came from a client.
    Packet {
        /// From where.
        from: Address,
        /// What.
        packet: Packet<Arc<str>, M>,
    },
    /// A connection to the broker is open.
    Opened(Link),
    /// The broker says something.
    Broker(Link, BrokerPacket<M>),
    /// A connection to the broker is over, or could not be opened.
    Closed(Link),
    /// Time has passed.
    Tick,
}

/// Something that the shell must do or know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<M> {
    /// Send a packet to a client.
    Send {
        /// To where.
        to: Address,
        /// What.
        packet: Packet<Arc<str>, M>,
    },
    /// Send a packet to everybody who can hear the gateway.
    Broadcast(Packet<Arc<str>, M>),
    /// Open a connection to the broker.
    Open(Link),
    /// Say something to the broker.
    Broker(Link, BrokerPacket<M>),
    /// Close a connection to the broker.
    Close(Link),
    /// A message will not reach a client, or the broker.
    Dropped {
        /// The client that would have got it; `None` on the way to the broker.
        client_id: Option<Arc<str>>,
        /// Which.
        message: M,
        /// Why.
        cause: Cause,
    },
}

/// Why a gateway drops a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Too many wait for the client, or for the broker.
    BufferFull,
    /// The client was given up.
    ClientLost,
    /// The client will not have the topic.
    TopicRefused,
    /// The client published to a topic identifier that the gateway does not know.
    UnknownTopic,
}

/// What a gateway has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent again to clients.
    pub repeated: u64,
    /// Repetitions of clients that were not passed on.
    pub duplicates: u64,
    /// REGISTER packets sent, the first time.
    pub registered: u64,
    /// Messages that were kept for sleepers.
    pub kept: u64,
    /// Messages dropped.
    pub dropped: u64,
    /// Clients given up.
    pub lost: u64,
    /// The most messages that waited for one client.
    pub queue_max: u64,
}
