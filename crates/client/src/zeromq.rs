//! ZeroMQ behind the session seam: the machine of `crates/zmtp`, and the packets whose content the plan says.

use std::collections::BTreeMap;
use std::sync::Arc;

use mqttlab_mqtt::Qos;
use mqttlab_plan::{Group, RosterTopic, ZeroMqPlan, zeromq};
use mqttlab_units::Instant;
use mqttlab_zmtp::client::{self, Client as Machine, ClientOptions, Input, Output, Reason};
use mqttlab_zmtp::command::{self, Command};
use mqttlab_zmtp::greeting::{self, Greeting};
use mqttlab_zmtp::{Kind, Malformed, SocketType};

use crate::session::{Admission, Arrived, Receipt, Session, Step, Token};
use crate::transport::Loss;

pub use mqttlab_zmtp::client::Send as Packet;

/// A packet that came and is no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// The peer's greeting.
    Greeting(Greeting),
    /// A command, or a subscription of ZMTP 3.0.
    Command(Command<Box<[u8]>>),
}

/// What the plan means for the sockets of a group's clients, worked out once.
#[derive(Clone, Debug)]
pub struct Sockets {
    socket: SocketType,
    high_water_mark: u32,
    subscriptions: u32,
    /// The names of the run's topics, by number.
    names: Arc<[Box<str>]>,
    /// Those that have receivers.
    received: Arc<BTreeMap<Box<str>, ()>>,
}

impl Sockets {
    /// Of a group; `topics` are the run's, by number.
    pub fn of(plan: &ZeroMqPlan, group: &Group, topics: &[RosterTopic]) -> Sockets {
        let received = topics.iter().filter(|topic| topic.deliveries > 0);
        Sockets {
            socket: zeromq::socket_type(group),
            high_water_mark: plan.high_water_mark,
            subscriptions: group.subscriptions.len() as u32,
            names: topics.iter().map(|topic| Box::from(&*topic.name)).collect(),
            received: Arc::new(received.map(|topic| (Box::from(&*topic.name), ())).collect()),
        }
    }

    /// A socket that has never been connected, of a group's client. A publisher waits for subscriptions to those of its topics
    /// that somebody in the run receives.
    pub fn session(&self, group: &Group, client: u32) -> ZeroMq {
        let published =
            group.publications.iter().flat_map(|publish| publish.topic_names(&group.name, client));
        let awaited = published.filter(|name| self.received.contains_key(&**name));
        ZeroMq {
            machine: Machine::new(ClientOptions {
                socket: self.socket,
                high_water_mark: self.high_water_mark,
                subscriptions: self.subscriptions,
                awaited: awaited.map(|name| name.into_bytes().into()).collect(),
            }),
            names: Arc::clone(&self.names),
            fault: None,
        }
    }
}

/// A PUB or SUB socket.
#[derive(Clone, Debug)]
pub struct ZeroMq {
    machine: Machine,
    names: Arc<[Box<str>]>,
    /// A message that is not allowed here.
    fault: Option<Malformed>,
}

impl Session for ZeroMq {
    type Packet = Packet;
    type Envelope = ();
    type Received = Received;

    fn not_accepted(&self) -> &'static str {
        "no READY in time"
    }

    fn opened(&mut self, now: Instant) {
        self.machine.handle(now, Input::Opened);
    }

    fn closed(&mut self, now: Instant) {
        self.machine.handle(now, Input::Closed);
    }

    fn tick(&mut self, _: Instant) {}

    fn subscribe(&mut self, now: Instant) {
        self.machine.handle(now, Input::Subscribe);
    }

    fn disconnect(&mut self, now: Instant) {
        self.machine.handle(now, Input::Disconnect);
    }

    fn publish(&mut self, _: Instant, message: Token, topic: Option<u32>, _: Qos) -> Admission {
        let name = topic.and_then(|topic| self.names.get(topic as usize));
        let Some(name) = name else { return Admission::Refused };
        match self.machine.publish(message.0, name.as_bytes()) {
            client::Admission::Sent => Admission::Sent,
            client::Admission::Waiting => Admission::Waiting,
            // libzmq drops either without a word; a recording has them as not sent.
            client::Admission::Filtered | client::Admission::Full => Admission::Refused,
        }
    }

    fn arrived(&mut self, _: Instant, _: Arrived) -> Option<Receipt> {
        match self.machine.arrived() {
            Ok(true) => Some(Receipt::Deliver),
            Ok(false) => None,
            Err(malformed) => {
                self.fault = Some(malformed);
                None
            }
        }
    }

    fn received(&mut self, now: Instant, packet: Received) {
        match packet {
            Received::Greeting(greeting) => self.machine.handle(now, Input::Greeting(greeting)),
            Received::Command(command) => {
                self.machine.handle(now, Input::Command(borrowed(&command)));
            }
        }
    }

    fn written(&mut self, now: Instant, messages: usize) {
        self.machine.handle(now, Input::Taken(messages as u64));
    }

    fn poll(&mut self) -> Option<Step<Packet, ()>> {
        if let Some(fault) = self.fault.take() {
            return Some(Step::Fail(in_words(fault)));
        }
        Some(match self.machine.poll()? {
            Output::Send(Packet::Greeting) => Step::Connect(Packet::Greeting),
            // The first of several stands for all.
            Output::Send(packet @ Packet::Subscribe { subscription: 0, .. }) => Step::Subscribe(packet),
            Output::Send(packet) => Step::Send(packet),
            Output::Message { token } => Step::Publish { message: Token(token), envelope: (), settled: true },
            Output::Connected => Step::Connected { resumed: false },
            Output::Subscribed => Step::Subscribed,
            Output::Close => Step::Close,
            Output::Fail(Reason::Malformed(malformed)) => Step::Fail(in_words(malformed)),
            Output::Fail(Reason::Refused) => Step::Fail("the peer sent ERROR"),
        })
    }

    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    fn is_online(&self) -> bool {
        self.machine.is_online()
    }

    fn has_room(&self, _: Qos) -> bool {
        self.machine.has_room()
    }

    fn unacknowledged(&self) -> usize {
        0
    }
}

impl From<Malformed> for Loss {
    fn from(malformed: Malformed) -> Loss {
        Loss::broken(malformed.to_string())
    }
}

/// Appends a packet that a client sends, with what the plan says of the client.
pub fn encode(group: &Group, client: u32, packet: Packet, out: &mut Vec<u8>) {
    match packet {
        Packet::Greeting => greeting::encode(out),
        Packet::Ready => command::ready(zeromq::socket_type(group), Some(&group.client_id(client)), out),
        Packet::Subscribe { subscription, minor } => {
            let filter = filter(group, client, subscription);
            command::subscribe(true, zeromq::prefix(&filter).as_bytes(), minor, out);
        }
        Packet::Ping => command::ping(out),
        Packet::Pong(context) => command::pong(context.as_bytes(), out),
    }
}

/// A client's subscription, by number.
pub fn filter(group: &Group, client: u32, subscription: u32) -> String {
    group.subscriptions[subscription as usize].filter.fill(&group.name, client, 0)
}

/// The kind of a packet that a client sends.
pub fn kind(packet: Packet) -> Kind {
    match packet {
        Packet::Greeting => Kind::Greeting,
        Packet::Ready => Kind::Ready,
        Packet::Subscribe { .. } => Kind::Subscribe,
        Packet::Ping => Kind::Ping,
        Packet::Pong(_) => Kind::Pong,
    }
}

fn borrowed(command: &Command<Box<[u8]>>) -> Command<&[u8]> {
    match command {
        Command::Ready { socket, client } => Command::Ready { socket: *socket, client: client.as_deref() },
        Command::Error(reason) => Command::Error(reason),
        Command::Subscribe(prefix) => Command::Subscribe(prefix),
        Command::Cancel(prefix) => Command::Cancel(prefix),
        Command::Ping { context } => Command::Ping { context },
        Command::Pong => Command::Pong,
        Command::Other => Command::Other,
    }
}

fn in_words(malformed: Malformed) -> &'static str {
    match malformed {
        Malformed::SocketType => "the peer's socket is of a type that does not suit",
        Malformed::OutOfPlace(_) => "a packet that is not allowed here",
        _ => "bytes that are no packet",
    }
}
