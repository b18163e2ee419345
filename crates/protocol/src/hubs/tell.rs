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
use mqttlab_units::{Duration, Instant};

use crate::hub::{
    Envelope, Head, Hub, HubKind, HubProtocol, HubSession, Member, Message, MessageHead, ToClient,
};
use crate::settings::{Of, Setting, Settings};
use crate::stop_and_wait::{Answer, Speaker, StopAndWait};

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
        Box::new(StopAndWait::new(Client(member)))
    }

    fn hub(&self, _: &Settings) -> Box<dyn Hub> {
        Box::new(TellHub::default())
    }
}

/// What a client says.
#[derive(Debug)]
struct Client(Member);

impl Speaker for Client {
    fn hello(&self, id: u16) -> Vec<u8> {
        let lines = format!("{}\n{}", self.0.client_id, self.0.filters.join("\n"));
        packet(HELLO, id, &lines)
    }

    fn bye(&self) -> Vec<u8> {
        packet(BYE, 0, "")
    }

    fn answer(&self, datagram: &[u8]) -> Option<Answer> {
        let head = Tell.read(datagram)?;
        match head.kind.number {
            WELCOME => Some(Answer::Accepted),
            HEARD => Some(Answer::Heard(head.id)),
            _ => None,
        }
    }

    fn repeat(&self) -> Duration {
        self.0.settings.duration(&REPEAT)
    }

    fn not_accepted(&self) -> &'static str {
        "no WELCOME in time"
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
        let envelope = Envelope { id: 0, qos: Qos::AtMostOnce, dup: false };
        let payload_bytes = message.map_or(0, Message::bytes);
        let head = Tell.head(&MessageHead { envelope, topic, payload_bytes });
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
const REPEAT: Setting = Setting {
    name: "repeat_ns",
    of: Of::Client,
    default: 1_000_000_000,
    min: 1_000_000,
    max: 3_600_000_000_000,
    words: "Time until what was not answered is sent again.",
};
