//! What a client is configured with, what happens to it, and what it says.

use mqttlab_mqtt::Qos;
use mqttlab_units::Duration;

use crate::kind::{PublishQos, ReturnCode};
use crate::packet::Topic;

/// What a client is configured with. Times are named as in §7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Ask for a new session at every connection.
    pub clean: bool,
    /// Whether there is a will; the shell knows which.
    pub will: bool,
    /// Publish at QoS −1, without ever connecting.
    pub without_connection: bool,
    /// Keep-alive interval; zero switches it off.
    pub keep_alive: Duration,
    /// T_retry: how long to wait for an answer before a packet is sent again.
    pub retry: Duration,
    /// N_retry: how often it is sent again before the gateway is given up.
    pub retries: u32,
    /// T_WAIT: how long to wait after "rejected: congestion".
    pub wait: Duration,
    /// Messages that wait in the client.
    pub max_queued: u32,
    /// How many subscriptions there are; the shell knows which.
    pub subscriptions: u32,
    /// Deliver a QoS 2 message when its PUBREL comes, and not already when its PUBLISH does.
    pub deliver_on_release: bool,
    /// Look for a gateway before connecting.
    pub search: Option<Search>,
    /// Sleep while there is nothing to do.
    pub sleep: Option<Sleep>,
}

/// How to look for a gateway (§6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// How far SEARCHGW is broadcast.
    pub radius: u8,
    /// How long to wait before it, so that not everybody asks at once; drawn by the shell up to T_SEARCHGW.
    pub delay: Duration,
}

/// How a client sleeps (§6.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// How long the gateway shall wait for the next sign of life.
    pub duration_s: u16,
    /// From one awakening to the next.
    pub every: Duration,
    /// How long to stay active without anything to do.
    pub linger: Duration,
    /// Keep what is published until the next awakening, instead of waking up for it.
    pub publish_when_awake: bool,
}

/// The topic of a message to be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A topic by the shell's number, to be registered.
    Named(u32),
    /// A predefined or short topic.
    Known(Topic),
}

/// What a client knows a topic identifier to stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A topic that it has registered.
    Own(u32),
    /// The topic of one of its subscriptions.
    Subscription(u32),
    /// A topic that the gateway has named.
    Named(Box<str>),
}

/// Something that happened to a client. Packets are what the shell has decoded; PUBLISH has a verb of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Input<'a> {
    /// The transport is there.
    Opened,
    /// The transport is gone.
    Closed,
    /// The application subscribes.
    Subscribe,
    /// The application says goodbye.
    Disconnect,
    /// Time has passed.
    Tick,
    Advertise,
    Gwinfo,
    Connack {
        code: ReturnCode,
    },
    Willtopicreq,
    Willmsgreq,
    Register {
        topic_id: u16,
        id: u16,
        name: &'a str,
    },
    Regack {
        topic_id: u16,
        id: u16,
        code: ReturnCode,
    },
    Puback {
        topic_id: u16,
        id: u16,
        code: ReturnCode,
    },
    Pubrec {
        id: u16,
    },
    Pubrel {
        id: u16,
    },
    Pubcomp {
        id: u16,
    },
    Suback {
        topic_id: u16,
        id: u16,
        code: ReturnCode,
    },
    /// A gateway does not ask for signs of life often, but may (§5.4.19).
    Pingreq,
    Pingresp,
    Disconnected,
}

/// A packet to be sent, but for PUBLISH. The shell fills in what it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Send {
    Searchgw {
        radius: u8,
    },
    Connect {
        clean: bool,
        will: bool,
    },
    Willtopic,
    Willmsg,
    Register {
        topic: u32,
        id: u16,
    },
    Regack {
        topic_id: u16,
        id: u16,
    },
    Puback {
        topic_id: u16,
        id: u16,
        code: ReturnCode,
    },
    Pubrec {
        id: u16,
    },
    Pubrel {
        id: u16,
    },
    Pubcomp {
        id: u16,
    },
    /// The subscription by its place in the plan.
    Subscribe {
        subscription: u32,
        id: u16,
        dup: bool,
    },
    /// With the client's identifier when it has just woken up.
    Pingreq {
        awake: bool,
    },
    Pingresp,
    Disconnect {
        duration_s: Option<u16>,
    },
}

/// Something that the shell must do or know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Output {
    Send(Send),
    Publish {
        token: u32,
        qos: PublishQos,
        dup: bool,
        topic: Topic,
        id: u16,
    },
    /// The gateway accepted.
    Connected,
    /// All subscriptions were answered.
    Subscribed,
    /// The gateway will not have a subscription.
    SubscriptionRefused {
        subscription: u32,
        code: ReturnCode,
    },
    /// A message that was held is for the application now.
    Release {
        id: u16,
    },
    /// The last acknowledgement of a message of QoS 1 or 2.
    Acknowledged {
        token: u32,
    },
    /// A message that the gateway refused, or has no name for.
    Refused {
        token: u32,
        qos: Qos,
    },
    /// It sleeps now, or does not any more.
    Asleep(bool),
    /// It is at an end with this gateway.
    Close(Reason),
}

/// Why a client gives a gateway up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The application wanted it.
    Asked,
    /// CONNECT was refused.
    Refused(ReturnCode),
    /// A packet was not answered, N_retry times.
    Unanswered(&'static str),
    /// The gateway sent DISCONNECT: it does not know the client.
    Forgotten,
}

/// What becomes of a PUBLISH that has come.
pub use mqttlab_mqtt::client::{Admission, Receipt};
