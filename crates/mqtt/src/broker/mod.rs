//! A broker, as a machine: sessions, subscriptions, retained messages, queues.
//!
//! ```text
//!   Publish ──► topic tree ──► each receiver's outbox: in flight (window), waiting (limit) ──► Publish
//!                  └─ retained                             └─ beyond the limit: Dropped
//! ```
//!
//! The shell owns connections and bytes: it tells the machine what packets came, and sends what [`Broker::poll`]
//! says. Messages are tokens, topics are numbers that the machine gives ([`Broker::topic`]). Where the
//! specification leaves a choice it is Mosquitto's: a QoS 2 message is forwarded when its PUBREL comes; copies go out
//! before the acknowledgement; overlapping subscriptions cause one copy, at the highest QoS.
//!
//! Contract: `handle`, then drain `poll` until `None`; call [`Broker::tick`] at `next_deadline`, which is a peek and
//! may be earlier than what happens then.
//!
//! What it does not model: access control, `$SYS` topics, subscription identifiers and options, message expiry,
//! topic aliases, bridges, the time that any of it takes.

mod session;
mod subscriptions;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use mqttlab_units::{Duration, Instant};

use crate::kind::{Qos, Version};
use crate::outbox::Dispatch;
use session::{Delivery, Session};
use subscriptions::Subscriptions;

/// A connection, by a number that the shell chooses and may use again once the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u32);

/// A topic name, by a number that the broker gives: 0, 1, 2 in the order in which it hears of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicId(pub u32);

/// What a broker is configured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerOptions {
    /// Unacknowledged QoS 1 and 2 messages towards one client; 0 for no limit.
    pub max_inflight: u16,
    /// Messages that wait behind these for one client; 0 for no limit.
    pub max_queued: u32,
}

impl Default for BrokerOptions {
    /// Mosquitto's: 20 and 1000.
    fn default() -> Self {
        BrokerOptions { max_inflight: 20, max_queued: 1000 }
    }
}

/// A packet that has come.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Input<'a> {
    Connect {
        client: &'a str,
        version: Version,
        /// Clean session (3.x) or clean start (5).
        clean: bool,
        /// Zero switches it off.
        keep_alive: Duration,
        /// How long the session outlives its connection; `None` for ever.
        session_expiry: Option<Duration>,
        receive_maximum: u16,
        will: Option<Will>,
    },
    Subscribe {
        id: u16,
        filters: &'a [(&'a str, Qos)],
    },
    Unsubscribe {
        id: u16,
        filters: &'a [&'a str],
    },
    Publish {
        topic: TopicId,
        message: u64,
        qos: Qos,
        id: u16,
        dup: bool,
        retain: bool,
        /// Whether the payload is empty, which clears a retained message.
        empty: bool,
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
}

/// Something that the shell must do or know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Output {
    Connack {
        connection: ConnectionId,
        session_present: bool,
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
        id: u16,
        dup: bool,
        retain: bool,
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
    /// Close the transport.
    Close {
        connection: ConnectionId,
    },
    /// Too many messages wait for this client.
    Dropped {
        client: String,
        message: u64,
    },
}

/// A broker.
#[derive(Clone, Debug)]
pub struct Broker {
    options: BrokerOptions,
    /// Topic names by number.
    topics: Vec<String>,
    numbers: BTreeMap<String, u32>,
    sessions: Vec<Option<Session>>,
    vacant: Vec<u32>,
    by_client: BTreeMap<String, u32>,
    /// Session by connection.
    by_connection: Vec<Option<u32>>,
    subscriptions: Subscriptions,
    /// Message and quality of service by topic.
    retained: BTreeMap<u32, (u64, Qos)>,
    /// When a session is to be looked at: its client may have been silent too long, or gone too long.
    looks: BinaryHeap<Reverse<(Instant, u32)>>,
    ready: VecDeque<Output>,
}

/// A message with everything that its receivers must know.
#[derive(Clone, Copy, Debug)]
struct Publication {
    topic: u32,
    message: u64,
    qos: Qos,
    retain: bool,
    empty: bool,
}

impl Broker {
    /// A broker that nobody has connected to.
    pub fn new(options: BrokerOptions) -> Self {
        Broker {
            options,
            topics: Vec::new(),
            numbers: BTreeMap::new(),
            sessions: Vec::new(),
            vacant: Vec::new(),
            by_client: BTreeMap::new(),
            by_connection: Vec::new(),
            subscriptions: Subscriptions::default(),
            retained: BTreeMap::new(),
            looks: BinaryHeap::new(),
            ready: VecDeque::new(),
        }
    }

    /// The number of a topic name.
    pub fn topic(&mut self, name: &str) -> TopicId {
        if let Some(&number) = self.numbers.get(name) {
            return TopicId(number);
        }
        let number = self.topics.len() as u32;
        self.topics.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        TopicId(number)
    }

    /// A packet came. Packets of connections without a session, other than CONNECT, close them.
    pub fn handle(&mut self, now: Instant, connection: ConnectionId, input: Input<'_>) {
        if matches!(input, Input::Connect { .. }) {
            return self.connect(now, connection, input);
        }
        let Some(number) = self.session_at(connection) else {
            return self.ready.push_back(Output::Close { connection });
        };
        self.session(number).last_heard = now;
        match input {
            Input::Connect { .. } => {}
            Input::Subscribe { id, filters } => self.subscribe(now, number, id, filters),
            Input::Unsubscribe { id, filters } => {
                filters.iter().for_each(|filter| self.subscriptions.remove(filter, number));
                self.ready.push_back(Output::Unsuback { connection, id });
            }
            Input::Publish { topic, message, qos, id, retain, empty, .. } => {
                let publication = Publication { topic: topic.0, message, qos, retain, empty };
                self.receive(now, number, id, publication);
            }
            Input::Puback { id } => {
                self.session(number).outbox.acknowledge(id);
                self.pump(now, number);
            }
            Input::Pubrec { id } => {
                self.session(number).outbox.release(now, id);
                self.ready.push_back(Output::Pubrel { connection, id });
            }
            Input::Pubrel { id } => {
                if let Some(publication) = self.session(number).take_held(id) {
                    self.publish(now, publication);
                }
                self.ready.push_back(Output::Pubcomp { connection, id });
            }
            Input::Pubcomp { id } => {
                self.session(number).outbox.complete(id);
                self.pump(now, number);
            }
            Input::Pingreq => self.ready.push_back(Output::Pingresp { connection }),
            Input::Disconnect { with_will } => {
                if !with_will {
                    self.session(number).will = None;
                }
                self.closed(now, connection);
                self.ready.push_back(Output::Close { connection });
            }
        }
    }

    /// A connection is gone.
    pub fn closed(&mut self, now: Instant, connection: ConnectionId) {
        let Some(number) = self.session_at(connection) else { return };
        self.by_connection[connection.0 as usize] = None;
        let session = self.session(number);
        session.connection = None;
        session.outbox.disconnect();
        let (will, expiry) = (session.will.take(), session.expiry);
        if let Some(Will { topic, message, qos, retain }) = will {
            self.publish(now, Publication { topic: topic.0, message, qos, retain, empty: false });
        }
        match expiry {
            Some(expiry) if expiry.is_zero() => self.forget(number),
            Some(expiry) => {
                self.session(number).expires = Some(now + expiry);
                self.looks.push(Reverse((now + expiry, number)));
            }
            None => {}
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Instant) {
        while self.looks.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            let Some(Reverse((_, number))) = self.looks.pop() else { return };
            let Some(session) = self.sessions[number as usize].as_ref() else { continue };
            match (session.connection, session.silence_ends(), session.expires) {
                (Some(connection), Some(end), _) if end <= now => {
                    self.closed(now, connection);
                    self.ready.push_back(Output::Close { connection });
                }
                (Some(_), Some(end), _) => self.looks.push(Reverse((end, number))),
                (None, _, Some(end)) if end <= now => self.forget(number),
                _ => {}
            }
        }
    }

    /// When [`Broker::tick`] is to be called at the latest.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.looks.peek().map(|Reverse((at, _))| *at)
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.ready.pop_front()
    }

    fn session_at(&self, connection: ConnectionId) -> Option<u32> {
        self.by_connection.get(connection.0 as usize).copied().flatten()
    }

    fn session(&mut self, number: u32) -> &mut Session {
        self.sessions[number as usize].as_mut().expect("a session that is referred to is there")
    }

    fn connect(&mut self, now: Instant, connection: ConnectionId, input: Input<'_>) {
        let Input::Connect { client, version: _, clean, keep_alive, session_expiry, receive_maximum, will } =
            input
        else {
            return;
        };
        let known = self.by_client.get(client).copied();
        if let Some(older) = known.and_then(|number| self.session(number).connection) {
            // A second connection of the same client ends the first ([MQTT-3.1.4-2]).
            self.closed(now, older);
            self.ready.push_back(Output::Close { connection: older });
        }
        if clean && let Some(number) = self.by_client.get(client).copied() {
            self.forget(number);
        }
        let known = self.by_client.get(client).copied();
        let number = known.unwrap_or_else(|| self.begin(client));
        let window = self.options.window().min(receive_maximum.max(1));
        let session = self.session(number);
        (session.connection, session.expiry, session.expires) = (Some(connection), session_expiry, None);
        (session.keep_alive, session.last_heard, session.will) = (keep_alive, now, will);
        session.outbox.set_window(window);
        if let Some(end) = session.silence_ends() {
            self.looks.push(Reverse((end, number)));
        }
        let place = connection.0 as usize;
        if self.by_connection.len() <= place {
            self.by_connection.resize(place + 1, None);
        }
        self.by_connection[place] = Some(number);
        self.ready.push_back(Output::Connack { connection, session_present: known.is_some() });
        while let Some(dispatch) = self.session(number).outbox.next_repeat(now) {
            self.dispatch(connection, dispatch);
        }
        self.pump(now, number);
    }

    fn begin(&mut self, client: &str) -> u32 {
        let session = Session::new(client, self.options.window(), self.options.queue());
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.sessions.push(None);
            self.sessions.len() as u32 - 1
        });
        self.sessions[number as usize] = Some(session);
        self.by_client.insert(client.to_owned(), number);
        number
    }

    fn forget(&mut self, number: u32) {
        let Some(session) = self.sessions[number as usize].take() else { return };
        self.by_client.remove(&session.client);
        self.subscriptions.remove_all(number);
        self.vacant.push(number);
    }

    fn subscribe(&mut self, now: Instant, number: u32, id: u16, filters: &[(&str, Qos)]) {
        for (filter, qos) in filters {
            self.subscriptions.add(filter, number, *qos);
            let retained: Vec<(u32, u64, Qos)> = self
                .retained
                .iter()
                .filter(|(topic, _)| crate::topic::matches(filter, &self.topics[**topic as usize]))
                .map(|(&topic, &(message, published))| (topic, message, published.min(*qos)))
                .collect();
            for (topic, message, qos) in retained {
                self.deliver(now, number, Delivery { topic, message, retain: true }, qos);
            }
        }
        let granted = filters.iter().map(|(_, qos)| *qos).collect();
        if let Some(connection) = self.session(number).connection {
            self.ready.push_back(Output::Suback { connection, id, granted });
        }
    }

    /// A PUBLISH from a client.
    fn receive(&mut self, now: Instant, number: u32, id: u16, publication: Publication) {
        let Some(connection) = self.session(number).connection else { return };
        match publication.qos {
            Qos::AtMostOnce => self.publish(now, publication),
            Qos::AtLeastOnce => {
                self.publish(now, publication);
                self.ready.push_back(Output::Puback { connection, id });
            }
            Qos::ExactlyOnce => {
                self.session(number).hold(id, publication);
                self.ready.push_back(Output::Pubrec { connection, id });
            }
        }
    }

    /// Forwards a message to everyone who wants it.
    fn publish(&mut self, now: Instant, publication: Publication) {
        let Publication { topic, message, qos, retain, empty } = publication;
        if retain && empty {
            self.retained.remove(&topic);
        } else if retain {
            self.retained.insert(topic, (message, qos));
        }
        let audience = self.subscriptions.take_audience(topic, &self.topics[topic as usize]);
        let delivery = Delivery { topic, message, retain: false };
        for &(receiver, granted) in &audience.receivers {
            self.deliver(now, receiver, delivery, qos.min(granted));
        }
        for &share in &audience.shares {
            let online = |number: u32| {
                self.sessions[number as usize].as_ref().is_some_and(|session| session.connection.is_some())
            };
            if let Some((receiver, granted)) = self.subscriptions.next_of_share(share, online) {
                self.deliver(now, receiver, delivery, qos.min(granted));
            }
        }
        self.subscriptions.put_audience_back(topic, audience);
    }

    fn deliver(&mut self, now: Instant, number: u32, delivery: Delivery, qos: Qos) {
        let session = self.session(number);
        let Delivery { topic, message, retain } = delivery;
        if qos == Qos::AtMostOnce {
            // An absent client's QoS 0 messages are not kept, as in Mosquitto unless it is told to.
            if let Some(connection) = session.connection {
                let topic = TopicId(topic);
                self.ready.push_back(Output::Publish {
                    connection,
                    topic,
                    message,
                    qos,
                    id: 0,
                    dup: false,
                    retain,
                });
            }
            return;
        }
        if !session.outbox.push(delivery, qos) {
            let client = session.client.clone();
            return self.ready.push_back(Output::Dropped { client, message });
        }
        self.pump(now, number);
    }

    /// Sends what the window of a session lets out.
    fn pump(&mut self, now: Instant, number: u32) {
        let session = self.session(number);
        let Some(connection) = session.connection else { return };
        while let Some(dispatch) = self.session(number).outbox.next(now) {
            self.dispatch(connection, dispatch);
        }
    }

    fn dispatch(&mut self, connection: ConnectionId, dispatch: Dispatch<Delivery>) {
        self.ready.push_back(match dispatch {
            Dispatch::Publish { message: Delivery { topic, message, retain }, id, qos, dup } => {
                Output::Publish { connection, topic: TopicId(topic), message, qos, id, dup, retain }
            }
            Dispatch::Pubrel { id } => Output::Pubrel { connection, id },
        });
    }
}

impl BrokerOptions {
    fn window(&self) -> u16 {
        if self.max_inflight == 0 { u16::MAX } else { self.max_inflight }
    }

    fn queue(&self) -> u32 {
        if self.max_queued == 0 { u32::MAX } else { self.max_queued }
    }
}
