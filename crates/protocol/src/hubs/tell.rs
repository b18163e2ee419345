//! `tell`: made up, as the least that passes messages on. It shows what a protocol consists of here, and is a floor to compare
//! others with: a message is one datagram to the hub and one from it, with six bytes and the topic before the payload.
//!
//! ```text
//!   client ─ HELLO name, filters ─► hub     repeated until WELCOME comes
//!   client ─ MESSAGE ─────────────► hub     at QoS 1 repeated until HEARD comes, one at a time
//!   hub ──── MESSAGE ─────────────► who has a filter for its topic, once and unheard
//!   client ─ BYE ─────────────────► hub
//!
//!   | kind | flags | identifier, 2 B | lines; of MESSAGE: length of the topic, 2 B, topic, payload |
//! ```
//!
//! What it does not do: give a hub up. One that has lost its memory is told the filters again when a client connects again.

use std::collections::{BTreeMap, VecDeque};

use mqttlab_mqtt::{Qos, topic};
use mqttlab_units::Instant;

use crate::hub::{
    Envelope, Head, Hub, HubKind, HubProtocol, HubSession, Member, Message, MessageHead, ToClient,
};
use crate::session::{Admission, Arrived, Receipt, Session, Step, Token};
use crate::settings::{Of, Setting, Settings};

/// The protocol.
#[derive(Debug)]
pub(super) struct Tell;

impl HubProtocol for Tell {
    fn name(&self) -> &'static str {
        "tell"
    }

    fn words(&self) -> &'static str {
        "Made up, as the least that passes messages on: a floor to compare protocols with."
    }

    fn settings(&self) -> &'static [Setting] {
        &[REPEAT]
    }

    fn qos_max(&self) -> Qos {
        Qos::AtLeastOnce
    }

    fn read<'a>(&self, datagram: &'a [u8]) -> Option<Head<'a>> {
        let (&[number, flags, high, low], rest) = datagram.split_first_chunk()?;
        let kind = KINDS.get(usize::from(number))?;
        let qos = if flags & HEARD_OF != 0 { Qos::AtLeastOnce } else { Qos::AtMostOnce };
        let (id, dup) = (u16::from_be_bytes([high, low]), flags & AGAIN != 0);
        let head = Head { kind, id, qos, dup, text: "", topic: None, bytes: 4, id_bytes: 2, topic_bytes: 0 };
        if !kind.is_message() {
            return Some(Head { text: std::str::from_utf8(rest).ok()?, bytes: datagram.len(), ..head });
        }
        let (&length, rest) = rest.split_first_chunk()?;
        let topic = std::str::from_utf8(rest.get(..usize::from(u16::from_be_bytes(length)))?).ok()?;
        let topic_bytes = 2 + topic.len();
        Some(Head { topic: Some(topic), bytes: 4 + topic_bytes, topic_bytes, ..head })
    }

    fn write(&self, head: &MessageHead<'_>, out: &mut Vec<u8>) {
        let Envelope { id, qos, dup } = head.envelope;
        let flags = if qos == Qos::AtMostOnce { 0 } else { HEARD_OF };
        out.extend([MESSAGE, flags | if dup { AGAIN } else { 0 }]);
        out.extend(id.to_be_bytes().into_iter().chain((head.topic.len() as u16).to_be_bytes()));
        out.extend_from_slice(head.topic.as_bytes());
    }

    fn client(&self, member: Member) -> Box<dyn HubSession> {
        Box::new(TellSession {
            hello: format!("{}\n{}", member.client_id, member.filters.join("\n")),
            settings: member.settings,
            ..TellSession::default()
        })
    }

    fn hub(&self, _: &Settings) -> Box<dyn Hub> {
        Box::new(TellHub::default())
    }
}

/// A client.
#[derive(Debug, Default)]
struct TellSession {
    hello: String,
    settings: Settings,
    online: bool,
    /// What is to be answered, with its identifier, and when it was last sent.
    exchange: Option<(What, u16)>,
    sent: Instant,
    waiting: VecDeque<Token>,
    last_id: u16,
    steps: VecDeque<Step<Vec<u8>, Envelope>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Hello,
    Message(Token),
}

impl Session for TellSession {
    type Packet = Vec<u8>;
    type Envelope = Envelope;
    type Received = Box<[u8]>;

    fn not_accepted(&self) -> &'static str {
        "no WELCOME in time"
    }

    fn opened(&mut self, now: Instant) {
        self.begin(now, What::Hello);
    }

    fn closed(&mut self, _: Instant) {
        self.online = false;
        // Of which nobody has heard goes first when there is a hub again.
        if let Some((What::Message(message), _)) = self.exchange.take() {
            self.waiting.push_front(message);
        }
    }

    fn tick(&mut self, now: Instant) {
        if let (Some((what, id)), true) = (self.exchange, self.next_deadline().is_some_and(|at| at <= now)) {
            self.send(now, what, id, true);
        }
    }

    /// HELLO has said to what.
    fn subscribe(&mut self, _: Instant) {
        self.steps.push_back(Step::Subscribed);
    }

    fn disconnect(&mut self, _: Instant) {
        self.online = false;
        self.steps.extend([Step::Send(packet(BYE, 0, "")), Step::Close]);
    }

    fn publish(&mut self, now: Instant, message: Token, _: Option<u32>, qos: Qos) -> Admission {
        match qos {
            Qos::AtMostOnce if self.online => {
                let envelope = Envelope { id: 0, qos, dup: false };
                self.steps.push_back(Step::Publish { message, envelope, settled: true });
                Admission::Sent
            }
            Qos::AtLeastOnce if self.waiting.len() < WAITING_MAX => {
                self.waiting.push_back(message);
                self.next(now);
                if self.waiting.is_empty() { Admission::Sent } else { Admission::Waiting }
            }
            _ => Admission::Refused,
        }
    }

    fn arrived(&mut self, _: Instant, _: Arrived) -> Option<Receipt> {
        Some(Receipt::Deliver)
    }

    /// What was repeated may be answered twice.
    fn received(&mut self, now: Instant, datagram: Box<[u8]>) {
        let Some(head) = Tell.read(&datagram) else { return };
        match (head.kind.number, self.exchange) {
            (WELCOME, Some((What::Hello, _))) => {
                self.online = true;
                self.steps.push_back(Step::Connected { resumed: false });
            }
            (HEARD, Some((What::Message(message), id))) if head.id == id => {
                self.steps.push_back(Step::Acknowledged(message));
            }
            _ => return,
        }
        self.exchange = None;
        self.next(now);
    }

    fn poll(&mut self) -> Option<Step<Vec<u8>, Envelope>> {
        self.steps.pop_front()
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.exchange.map(|_| self.sent + self.settings.duration(&REPEAT))
    }

    fn is_online(&self) -> bool {
        self.online
    }

    fn has_room(&self, qos: Qos) -> bool {
        self.online && (qos == Qos::AtMostOnce || self.exchange.is_none())
    }

    fn unacknowledged(&self) -> usize {
        self.waiting.len() + usize::from(matches!(self.exchange, Some((What::Message(_), _))))
    }
}

impl TellSession {
    fn next(&mut self, now: Instant) {
        if self.online && self.exchange.is_none() {
            let next = self.waiting.pop_front();
            next.into_iter().for_each(|message| self.begin(now, What::Message(message)));
        }
    }

    fn begin(&mut self, now: Instant, what: What) {
        self.last_id = self.last_id.checked_add(1).unwrap_or(1);
        self.exchange = Some((what, self.last_id));
        self.send(now, what, self.last_id, false);
    }

    fn send(&mut self, now: Instant, what: What, id: u16, dup: bool) {
        self.sent = now;
        self.steps.push_back(match what {
            What::Hello if dup => Step::Send(packet(HELLO, id, &self.hello)),
            What::Hello => Step::Connect(packet(HELLO, id, &self.hello)),
            What::Message(message) => {
                let envelope = Envelope { id, qos: Qos::AtLeastOnce, dup };
                Step::Publish { message, envelope, settled: false }
            }
        });
    }
}

/// The server: answers, and passes on what is new.
#[derive(Debug, Default)]
struct TellHub {
    /// Filters of those who are there, and the identifier of the last message of each.
    peers: BTreeMap<u32, (Vec<String>, u16)>,
    sent: VecDeque<ToClient>,
}

impl Hub for TellHub {
    fn handle(&mut self, _: Instant, from: u32, head: &Head<'_>, message: Option<&Message>) {
        let answer = |kind, id| ToClient { to: from, head: packet(kind, id, ""), message: None };
        match head.kind.number {
            HELLO => {
                let filters = head.text.lines().skip(1).map(str::to_owned).collect();
                self.peers.insert(from, (filters, 0));
                self.sent.push_back(answer(WELCOME, head.id));
            }
            BYE => drop(self.peers.remove(&from)),
            MESSAGE => {
                if head.qos == Qos::AtLeastOnce {
                    self.sent.push_back(answer(HEARD, head.id));
                    let (_, last) = self.peers.entry(from).or_default();
                    if std::mem::replace(last, head.id) == head.id {
                        return;
                    }
                }
                self.pass_on(head.topic.unwrap_or_default(), message);
            }
            _ => {}
        }
    }

    fn poll(&mut self) -> Option<ToClient> {
        self.sent.pop_front()
    }
}

impl TellHub {
    fn pass_on(&mut self, topic: &str, message: Option<&Message>) {
        let (mut head, payload_bytes) = (Vec::new(), message.map_or(0, Message::bytes));
        let envelope = Envelope { id: 0, qos: Qos::AtMostOnce, dup: false };
        Tell.write(&MessageHead { envelope, topic, payload_bytes }, &mut head);
        let wants = |filters: &[String]| filters.iter().any(|filter| topic::matches(filter, topic));
        for (&to, _) in self.peers.iter().filter(|(_, (filters, _))| wants(filters)) {
            self.sent.push_back(ToClient { to, head: head.clone(), message: message.cloned() });
        }
    }
}

/// A packet that is no message.
fn packet(kind: u8, id: u16, text: &str) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    [&[kind, 0, high, low], text.as_bytes()].concat()
}

const fn kind(number: u8, name: &'static str) -> HubKind {
    HubKind { protocol: "tell", name, number }
}

static KINDS: [HubKind; 5] = [
    kind(HELLO, "HELLO"),
    kind(WELCOME, "WELCOME"),
    kind(HEARD, "HEARD"),
    kind(MESSAGE, "MESSAGE"),
    kind(BYE, "BYE"),
];
const HELLO: u8 = 0;
const WELCOME: u8 = 1;
const HEARD: u8 = 2;
const MESSAGE: u8 = 3;
const BYE: u8 = 4;
/// Flags of a MESSAGE: it is to be heard of; it was sent before.
const HEARD_OF: u8 = 1;
const AGAIN: u8 = 2;
const WAITING_MAX: usize = 1_000;
const REPEAT: Setting = Setting {
    name: "repeat_ns",
    of: Of::Client,
    default: 1_000_000_000,
    min: 1_000_000,
    max: 3_600_000_000_000,
    words: "Time until what was not answered is sent again.",
};
