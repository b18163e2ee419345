//! A broker, as a machine: sessions, subscriptions, retained messages, queues.
//!
//! ```text
//!   Publish ──► topic tree ──► each receiver's outbox: in flight (window), waiting (limit) ──► Publish
//!                  └─ retained                             └─ beyond the limit: Dropped
//! ```
//!
//! The shell owns connections and bytes: it tells the machine what packets came, and sends what [`Broker::poll`]
//! says. Messages are tokens, topics are numbers that the machine gives ([`Broker::topic`]). Where the specification
//! leaves a choice it is that of Mosquitto 2.0, as measured:
//!
//! - a QoS 2 message is forwarded when its PUBREL comes;
//! - copies go out before the acknowledgement, retained messages after the SUBACK;
//! - overlapping subscriptions cause a copy each with MQTT 5, and one before, at the QoS of the narrowest filter, although
//!   the highest was to decide ([MQTT-3.3.5-1] of 3.1.1); members of a shared subscription take turns, be they there or not;
//! - 20 messages are in flight to a client, 1000 wait behind them or, without a connection, 1000 are kept in all; the receive
//!   maximum of an MQTT 5 client, larger or smaller, takes the place of the 20;
//! - a packet that has no place here, or a filter that is none, closes the connection.
//!
//! Where else Mosquitto 2.0 departs from the specification the machine does not: repetition keeps to the receive maximum
//! ([MQTT-3.3.4-9]), a client that takes its own session over leaves a will behind ([MQTT-3.1.2-8]), and one of 3.1.1 gets a
//! copy by its filter beside one by a shared subscription (§4.8.2 of MQTT 5).
//!
//! Contract: `handle`, then drain `poll` until `None`; call [`Broker::tick`] at `next_deadline`, which is a peek and
//! may be earlier than what happens then. Once every topic, session and queue has been as long as it gets, a message
//! allocates nothing.
//!
//! What it does not model: access control, what a broker publishes itself below `$SYS`, subscription identifiers,
//! will delay, bridges, packet sizes, the time that any of it takes. Topic aliases are the shell's,
//! which names topics ([`crate::alias`]): the broker says how many a client may give, and like Mosquitto 2.0 gives none itself.

mod delivery;
mod expiry;
mod holds;
mod interface;
mod lifecycle;
mod outputs;
mod persistence;
mod receive_quota;
mod session;
mod sessions;
mod subscriptions;
mod topics;

use mqttlab_units::Instant;

use expiry::Expiry;
pub use interface::{
    BrokerOptions, Cause, ConnectionId, Excess, Input, Output, SessionId, SessionInfo, TopicId, Will,
};
use outputs::BrokerOutputs;
pub use persistence::Kept;
use session::ReceivedPublish;
use sessions::BrokerSessions;
use subscriptions::BrokerSubscriptions;
use topics::BrokerTopics;

/// A broker.
#[derive(Clone, Debug)]
pub struct Broker {
    options: BrokerOptions,
    topics: BrokerTopics,
    sessions: BrokerSessions,
    subscriptions: BrokerSubscriptions,
    /// When it last wrote everything to its disk.
    written: Instant,
    out: BrokerOutputs,
}

impl Broker {
    /// A broker that nobody has connected to.
    pub fn new(options: BrokerOptions) -> Self {
        Broker {
            options,
            topics: BrokerTopics::default(),
            sessions: BrokerSessions::default(),
            subscriptions: BrokerSubscriptions::default(),
            written: Instant::ZERO,
            out: BrokerOutputs::default(),
        }
    }

    /// The number of a topic name.
    pub fn topic(&mut self, name: &str) -> TopicId {
        self.topics.number(name)
    }

    /// The client identifier of a session; `None` when it has ended.
    pub fn client(&self, session: SessionId) -> Option<&str> {
        self.sessions.client(session.0)
    }

    /// The session that a connection belongs to; `None` before its CONNECT and after its end.
    pub fn session_of(&self, connection: ConnectionId) -> Option<SessionId> {
        self.sessions.at(connection).map(SessionId)
    }

    /// Sessions, with and without a connection.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// A look into each session, in the order of their numbers.
    pub fn session_infos(&self) -> impl Iterator<Item = SessionInfo<'_>> {
        self.sessions.infos()
    }

    /// Messages that somebody holds: in flight, waiting, not released, retained, or as a will.
    pub fn messages(&self) -> usize {
        self.out.held()
    }

    /// Topics with a retained message.
    pub fn retained(&self) -> usize {
        self.topics.retained_count()
    }

    /// How many packets wait at a connection's socket. Where [`BrokerOptions::max_queued`] or more do, QoS 0 messages
    /// are dropped. A shell that does not say drops none.
    pub fn set_backlog(&mut self, connection: ConnectionId, packets: u32) {
        if let Some(number) = self.sessions.at(connection) {
            self.sessions.get(number).backlog = packets;
        }
    }

    /// A packet came. What has no place here closes the connection.
    pub fn handle(&mut self, now: Instant, connection: ConnectionId, input: Input<'_>) {
        match (self.sessions.at(connection), input) {
            (None, Input::Connect { .. }) => self.connect(now, connection, input),
            // A connection begins with one CONNECT, and has no other ([MQTT-3.1.0-1], [MQTT-3.1.0-2]).
            (None, _) | (Some(_), Input::Connect { .. }) => {
                self.hang_up(now, connection);
                self.out.decline(input);
            }
            (Some(number), input) => {
                // Every packet is a sign of life, and not PINGREQ alone ([MQTT-3.1.2-22]).
                self.sessions.get(number).heard = now;
                self.packet(now, connection, number, input);
            }
        }
    }

    /// Bytes of an unfinished packet came, enough for the broker to count the client as alive.
    pub fn heard(&mut self, now: Instant, connection: ConnectionId) {
        if let Some(number) = self.sessions.at(connection) {
            self.sessions.get(number).heard = now;
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Instant) {
        while let Some(number) = self.sessions.take_look(now) {
            // It puts the next look behind `now`, so that the loop ends.
            self.look(now, number);
        }
    }

    /// When [`Broker::tick`] is to be called at the latest.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.sessions.next_look()
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.out.poll()
    }

    fn packet(&mut self, now: Instant, connection: ConnectionId, number: u32, input: Input<'_>) {
        match input {
            Input::Connect { .. } => {}
            Input::Subscribe { id, filters } => self.subscribe(now, connection, id, filters),
            Input::Unsubscribe { id, filters } => self.unsubscribe(now, connection, id, filters),
            Input::Publish { topic, message, qos, id, retain, empty, expiry_s, .. } => {
                // DUP decides nothing: QoS 1 is new ([MQTT-4.3.2-5]), QoS 2 by its identifier ([MQTT-4.3.3-10]).
                let expires = Expiry::new(now, expiry_s);
                let publication = ReceivedPublish { topic, message, qos, retain, empty, came: now, expires };
                self.receive(now, connection, id, publication);
            }
            Input::Puback { id } => self.acknowledged(now, connection, id),
            Input::Pubrec { id } => self.recorded(now, connection, id),
            Input::Pubrel { id } => self.released(now, connection, id),
            Input::Pubcomp { id } => self.completed(now, connection, id),
            Input::Pingreq => self.out.say(Output::Pingresp { connection }),
            Input::Disconnect { with_will } => {
                // DISCONNECT takes the will away, but with reason code 0x04 ([MQTT-3.14.4-3], §3.14.2.1).
                if !with_will && let Some(will) = self.sessions.get(number).will.take() {
                    self.out.let_go(will.message);
                }
                self.hang_up(now, connection);
            }
        }
    }

    /// Ends a connection from this side.
    fn hang_up(&mut self, now: Instant, connection: ConnectionId) {
        self.closed(now, connection);
        // Behind what the end has caused: from here on the number may be used again.
        self.out.say(Output::Close { connection });
    }
}
