//! A protocol made up to show the seams: datagrams, one message in flight, repeated until it is heard.
//!
//! ```text
//!   client ─ Hello ─► hub        repeated until Welcome comes
//!   client ─ Say ───► hub        at QoS 1 repeated until Heard comes, one at a time
//!   hub ──── Say ───► everybody else
//!   client ─ Bye ───► hub
//! ```

use std::collections::{BTreeMap, VecDeque};

use mqttlab_client::{Admission, Arrived, Receipt, Session, Step, Token};
use mqttlab_mqtt::Qos;
use mqttlab_units::{Duration, Instant};

/// What crosses the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram {
    Hello,
    Welcome,
    Bye,
    Heard(u16),
    Say(Saying),
}

/// A message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saying {
    pub id: u16,
    pub qos: Qos,
    pub publisher: u32,
    pub sequence: u32,
}

/// What is said about a message beside the message itself.
#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    pub id: u16,
    pub qos: Qos,
}

/// A client's session.
#[derive(Default)]
pub struct Tell {
    state: State,
    /// When Hello or the message in flight was last sent.
    sent: Instant,
    in_flight: Option<(Token, u16)>,
    waiting: VecDeque<Token>,
    last_id: u16,
    steps: VecDeque<Step<Datagram, Envelope>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Offline,
    Greeting,
    Online,
}

impl Session for Tell {
    type Packet = Datagram;
    type Envelope = Envelope;
    type Received = Datagram;
    const NOT_ACCEPTED: &'static str = "no Welcome in time";

    fn opened(&mut self, now: Instant) {
        self.state = State::Greeting;
        self.send(now, Step::Connect(Datagram::Hello));
    }

    fn closed(&mut self, _: Instant) {
        self.state = State::Offline;
    }

    fn tick(&mut self, now: Instant) {
        match (self.state, self.in_flight) {
            (State::Greeting, _) => self.send(now, Step::Send(Datagram::Hello)),
            (State::Online, Some((message, id))) => self.say(now, message, id),
            _ => {}
        }
    }

    /// Everybody hears everything.
    fn subscribe(&mut self, _: Instant) {
        self.steps.push_back(Step::Subscribed);
    }

    fn disconnect(&mut self, now: Instant) {
        self.send(now, Step::Send(Datagram::Bye));
        self.state = State::Offline;
    }

    fn publish(&mut self, now: Instant, message: Token, _: Option<u32>, qos: Qos) -> Admission {
        match qos {
            Qos::AtMostOnce if self.state == State::Online => {
                let envelope = Envelope { id: 0, qos };
                self.steps.push_back(Step::Publish { message, envelope, settled: true });
                Admission::Sent
            }
            Qos::AtLeastOnce => {
                self.waiting.push_back(message);
                self.say_next(now);
                if self.waiting.is_empty() { Admission::Sent } else { Admission::Waiting }
            }
            Qos::AtMostOnce | Qos::ExactlyOnce => Admission::Refused,
        }
    }

    fn arrived(&mut self, _: Instant, _: Arrived) -> Option<Receipt> {
        (self.state == State::Online).then_some(Receipt::Deliver)
    }

    fn received(&mut self, now: Instant, datagram: Datagram) {
        match datagram {
            Datagram::Welcome if self.state == State::Greeting => {
                self.state = State::Online;
                self.steps.push_back(Step::Connected { resumed: false });
                self.say_next(now);
            }
            Datagram::Heard(heard) if self.in_flight.is_some_and(|(_, id)| id == heard) => {
                let (message, _) = self.in_flight.take().expect("it was just seen");
                self.steps.push_back(Step::Acknowledged(message));
                self.say_next(now);
            }
            // What was repeated may be answered twice.
            _ => {}
        }
    }

    fn poll(&mut self) -> Option<Step<Datagram, Envelope>> {
        self.steps.pop_front()
    }

    fn next_deadline(&self) -> Option<Instant> {
        let awaits = self.state == State::Greeting || self.state == State::Online && self.in_flight.is_some();
        awaits.then(|| self.sent + REPEAT)
    }

    fn is_online(&self) -> bool {
        self.state == State::Online
    }

    fn has_room(&self, qos: Qos) -> bool {
        self.is_online() && (qos == Qos::AtMostOnce || self.in_flight.is_none())
    }

    fn unacknowledged(&self) -> usize {
        self.waiting.len() + usize::from(self.in_flight.is_some())
    }
}

impl Tell {
    fn send(&mut self, now: Instant, step: Step<Datagram, Envelope>) {
        self.sent = now;
        self.steps.push_back(step);
    }

    fn say(&mut self, now: Instant, message: Token, id: u16) {
        let envelope = Envelope { id, qos: Qos::AtLeastOnce };
        self.send(now, Step::Publish { message, envelope, settled: false });
    }

    fn say_next(&mut self, now: Instant) {
        if self.state != State::Online || self.in_flight.is_some() {
            return;
        }
        if let Some(message) = self.waiting.pop_front() {
            self.last_id += 1;
            self.in_flight = Some((message, self.last_id));
            self.say(now, message, self.last_id);
        }
    }
}

/// The server: answers, and passes on what is new.
#[derive(Default)]
pub struct Hub {
    /// The last identifier of each client that is there.
    clients: BTreeMap<u32, u16>,
    /// Repetitions that were not passed on.
    pub repetitions: u32,
}

impl Hub {
    /// A datagram came from a client; what to send to whom.
    pub fn handle(&mut self, from: u32, datagram: Datagram) -> Vec<(u32, Datagram)> {
        let saying = match datagram {
            Datagram::Hello => {
                self.clients.entry(from).or_default();
                return vec![(from, Datagram::Welcome)];
            }
            Datagram::Say(saying) => saying,
            Datagram::Bye => {
                self.clients.remove(&from);
                return Vec::new();
            }
            Datagram::Welcome | Datagram::Heard(_) => return Vec::new(),
        };
        let mut answers = Vec::new();
        if saying.qos == Qos::AtLeastOnce {
            answers.push((from, Datagram::Heard(saying.id)));
            if self.clients.insert(from, saying.id) == Some(saying.id) {
                self.repetitions += 1;
                return answers;
            }
        }
        let passed_on = Datagram::Say(Saying { qos: Qos::AtMostOnce, ..saying });
        answers.extend(self.clients.keys().filter(|client| **client != from).map(|to| (*to, passed_on)));
        answers
    }
}

const REPEAT: Duration = Duration::from_ms(50);
