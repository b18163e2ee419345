//! What goes into a broker, and what comes out.

use mqttlab_units::{Duration, Instant};

use crate::kind::{Qos, SubscriptionOptions, Version};
use crate::outbox::Refill;

/// A connection, by a number that the shell chooses and may use again once the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u32);

/// A topic name, by a number that the broker gives: 0, 1, 2 in the order in which it hears of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicId(pub u32);

/// A session, by a number that the broker gives and uses again when the session has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub u32);

/// A look into a session, for whoever watches or debugs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionInfo<'a> {
    /// The client identifier.
    pub client: &'a str,
    /// Its connection, if it has one.
    pub connection: Option<ConnectionId>,
    /// How many subscriptions it has.
    pub subscriptions: usize,
    /// QoS 1 and 2 messages that are sent and not acknowledged.
    pub in_flight: usize,
    /// Messages that wait behind these.
    pub waiting: usize,
    /// QoS 2 messages of the client whose PUBREL has not come.
    pub held: usize,
    /// How many messages may be in flight on this connection.
    pub window: u16,
}

/// What a broker is configured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerOptions {
    /// Unacknowledged QoS 1 and 2 messages towards one client; 0 for no limit but the protocol's 65535.
    pub max_inflight: u16,
    /// Messages that wait behind these for one client; 0 for no limit. While the client is away, those in flight
    /// count too.
    pub max_queued: u32,
    /// Keep QoS 0 messages too for clients that are away and have a session.
    pub queue_qos0: bool,
    /// Repeat what has not been acknowledged for this long, as MQTT 3.1 had it, and not only when a client comes back.
    pub retry: Option<Duration>,
    /// How often it looks for clients that have been silent for too long, by a clock of whole seconds; `None`: at any time.
    pub looks_every: Option<Duration>,
    /// How acknowledgements make room.
    pub refill: Refill,
    /// What becomes of a client's QoS 1 and 2 messages beyond `max_inflight`, before MQTT 5.
    pub excess: Excess,
    /// What an MQTT 5 client is told of how many topic aliases it may give.
    pub topic_alias_maximum: u16,
}

/// What becomes of QoS 1 and 2 messages that a client sends beyond [`BrokerOptions::max_inflight`]. An MQTT 5 client is told
/// how many it may send, and keeps to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// They are taken as the others are.
    Taken,
    /// They are acknowledged and forwarded to nobody, as by Mosquitto 2.0.11.
    Dropped,
}

impl Default for BrokerOptions {
    fn default() -> Self {
        BrokerOptions::MOSQUITTO
    }
}

impl BrokerOptions {
    /// Mosquitto's: 20 in flight and 1000 queued, of QoS 1 and 2, repeated when the client comes back; 10 topic aliases.
    pub const MOSQUITTO: BrokerOptions = BrokerOptions {
        max_inflight: 20,
        max_queued: 1000,
        queue_qos0: false,
        retry: None,
        // Mosquitto 2.0: more than five whole seconds after it looked last (`keepalive.c`).
        looks_every: Some(Duration::from_s(6)),
        refill: Refill::Bounded,
        excess: Excess::Taken,
        topic_alias_maximum: 10,
    };

    /// When a client is left that was last heard at this instant: after one and a half keep-alive intervals ([MQTT-3.1.2-22]), when the
    /// broker looks.
    pub(super) fn silence_ends(&self, heard: Instant, keep_alive: Duration) -> Option<Instant> {
        let allowed = Duration::from_ns(keep_alive.as_ns() / 2 * 3);
        // Zero switches keep-alive off (§3.1.2.10).
        if allowed.is_zero() {
            return None;
        }
        let Some(every) = self.looks_every else { return Some(heard + allowed) };
        // More than so many of its seconds, none of which it knows a part of.
        let seconds = heard.as_ns() / SECOND_NS + allowed.as_ns() / SECOND_NS + 1;
        Some(Instant::from_ns((seconds * SECOND_NS).next_multiple_of(every.as_ns())))
    }

    pub(super) fn window(&self) -> u16 {
        if self.max_inflight == 0 { u16::MAX } else { self.max_inflight }
    }

    pub(super) fn queue(&self) -> u32 {
        if self.max_queued == 0 { u32::MAX } else { self.max_queued }
    }

    /// What a client is told of them when it connects.
    pub(super) fn connack(&self, connection: ConnectionId, session_present: bool, accepted: bool) -> Output {
        let (receive_maximum, topic_alias_maximum) = (self.window(), self.topic_alias_maximum);
        Output::Connack { connection, session_present, accepted, receive_maximum, topic_alias_maximum }
    }
}

const SECOND_NS: u64 = 1_000_000_000;

/// A packet that has come.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Input<'a> {
    Connect {
        /// The client identifier; where it is empty, and may be, the broker makes one up.
        client: &'a str,
        version: Version,
        /// Clean session (3.x) or clean start (5).
        clean: bool,
        /// Zero switches it off.
        keep_alive: Duration,
        /// How long the session outlives its connection; `None` for ever.
        session_expiry: Option<Duration>,
        /// 65535 where the client has not said.
        receive_maximum: u16,
        will: Option<Will>,
    },
    Subscribe {
        id: u16,
        filters: &'a [(&'a str, SubscriptionOptions)],
    },
    Unsubscribe {
        id: u16,
        filters: &'a [&'a str],
    },
    Publish {
        topic: TopicId,
        /// What the shell knows payload and identity by. See [`Output::Released`].
        message: u64,
        qos: Qos,
        id: u16,
        dup: bool,
        retain: bool,
        /// Whether the payload is empty, which clears a retained message ([MQTT-3.3.1-6]).
        empty: bool,
        /// Seconds that the message is good for (MQTT 5 §3.3.2.3.3).
        expiry_s: Option<u32>,
    },
    Puback {
        id: u16,
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
    Pingreq,
    Disconnect {
        /// MQTT 5: the will is published nevertheless.
        with_will: bool,
    },
}

/// Published when a connection ends without a DISCONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Will {
    pub topic: TopicId,
    pub message: u64,
    pub qos: Qos,
    pub retain: bool,
    /// As of [`Input::Publish`].
    pub empty: bool,
}

/// Something that the shell must do or know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Output {
    Connack {
        connection: ConnectionId,
        session_present: bool,
        /// Otherwise the identifier was rejected, and the connection is closed next.
        accepted: bool,
        /// What an MQTT 5 client is told of how many QoS 1 and 2 messages it may send ahead: Mosquitto says as many
        /// as it would send itself.
        receive_maximum: u16,
        /// What an MQTT 5 client is told of how many topic aliases it may give; 0: none.
        topic_alias_maximum: u16,
    },
    Suback {
        connection: ConnectionId,
        id: u16,
        granted: Vec<Qos>,
    },
    Unsuback {
        connection: ConnectionId,
        id: u16,
    },
    Publish {
        connection: ConnectionId,
        topic: TopicId,
        message: u64,
        qos: Qos,
        /// 0 at QoS 0.
        id: u16,
        dup: bool,
        retain: bool,
        /// What is left of its expiry interval ([MQTT-3.3.2-6]); none in the last second, as Mosquitto has it.
        expiry_s: Option<u32>,
    },
    Puback {
        connection: ConnectionId,
        id: u16,
    },
    Pubrec {
        connection: ConnectionId,
        id: u16,
    },
    Pubrel {
        connection: ConnectionId,
        id: u16,
    },
    Pubcomp {
        connection: ConnectionId,
        id: u16,
    },
    Pingresp {
        connection: ConnectionId,
    },
    /// Close the transport. The connection's number may be used again.
    Close {
        connection: ConnectionId,
    },
    /// A message that this session will not receive.
    Dropped {
        session: SessionId,
        message: u64,
        cause: Cause,
    },
    /// A message that is acknowledged and forwarded to nobody ([`Excess::Dropped`]).
    Discarded {
        message: u64,
    },
    /// Neither a session nor a retained topic holds this message any more, and no later output names it, unless it
    /// goes in again. Every message that goes in comes out here.
    Released {
        message: u64,
    },
}

/// Why a message is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// As many wait behind the window, or for the client's return, as may ([`BrokerOptions::max_queued`]).
    QueueFull,
    /// QoS 0: as many packets wait at the socket ([`super::Broker::set_backlog`]).
    SocketFull,
    /// QoS 0, and the client is away.
    Away,
    /// It waited for longer than its expiry interval ([MQTT-3.3.2-5]).
    Expired,
    /// The session ended, and what it held with it.
    SessionEnded,
}
