//! A protocol over datagrams with a server in the middle, a *hub*: what a protocol must say so that it can be run, live and
//! simulated, and read.
//!
//! ```text
//!   client ─ head ─────────► hub          a datagram is a head, and of a message the payload behind it
//!   client ─ head, payload ► hub ─ head, payload ► who has subscribed
//! ```
//!
//! A head is bytes for everybody. A payload is bytes in live runs, and a number with a length in simulations, so that whoever
//! performs the protocol keeps it beside the head, and sessions and hubs never look into it.
//!
//! What it does not model: datagrams of several packets or messages, messages of which the payload is not the end, several
//! hubs behind one another, retained messages, wills.

use std::fmt::Debug;
use std::sync::Arc;

use mqttlab_mqtt::Qos;
use mqttlab_units::Instant;

use crate::session::Session;
use crate::settings::{Setting, Settings};

/// A protocol.
pub trait HubProtocol: Debug + Sync {
    /// As scenarios, plans and recordings call it: letters, digits and `-`.
    fn name(&self) -> &'static str;
    /// What it is for, in a sentence.
    fn words(&self) -> &'static str;
    /// What can be set of its clients and of its hub.
    fn settings(&self) -> &'static [Setting];
    /// The highest quality of service that messages can be published with.
    fn qos_max(&self) -> Qos;
    /// What a datagram says, or its head alone; `None`: it is none of this protocol.
    fn read<'a>(&self, datagram: &'a [u8]) -> Option<Head<'a>>;
    /// Appends the head of a client's message.
    fn write(&self, head: &MessageHead<'_>, out: &mut Vec<u8>);
    /// The same alone.
    fn head(&self, head: &MessageHead<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(head, &mut out);
        out
    }
    /// A client's session, which has never been connected.
    fn client(&self, member: Member) -> Box<dyn HubSession>;
    /// A hub to which nobody has spoken.
    fn hub(&self, settings: &Settings) -> Box<dyn Hub>;
}

/// A type of packet. Number 0 is the one by which a client asks to be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubKind {
    /// The protocol's name.
    pub protocol: &'static str,
    /// As the protocol writes it. What carries a message is a `MESSAGE`.
    pub name: &'static str,
    /// What tells it from its other types.
    pub number: u8,
}

impl HubKind {
    /// Whether it carries an application message.
    pub fn is_message(&self) -> bool {
        self.name == "MESSAGE"
    }
}

impl<'a> Head<'a> {
    /// How the client calls itself, where it says so.
    pub fn client_id(&self) -> Option<&'a str> {
        if self.kind.number == 0 { self.text.lines().next() } else { None }
    }
}

/// What a head says. Bytes that are neither identifier nor topic are its fixed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// Which packet it is.
    pub kind: &'static HubKind,
    /// What tells it, and what answers it, from others; 0: nothing.
    pub id: u16,
    /// Quality of service of a message.
    pub qos: Qos,
    /// Whether it repeats an earlier one.
    pub dup: bool,
    /// What else it says, in lines. Of the packet that asks to be accepted, the first is how the client calls itself.
    pub text: &'a str,
    /// The topic of a message.
    pub topic: Option<&'a str>,
    /// Length of the head.
    pub bytes: usize,
    /// Of it what the identifier takes.
    pub id_bytes: usize,
    /// Of it what the topic takes.
    pub topic_bytes: usize,
}

/// What a session says about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// What tells it from others, 0 at QoS 0.
    pub id: u16,
    /// Quality of service.
    pub qos: Qos,
    /// Whether it repeats an earlier one.
    pub dup: bool,
}

/// What the head of a client's message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHead<'a> {
    /// What the session says.
    pub envelope: Envelope,
    /// The topic.
    pub topic: &'a str,
    /// Length of the payload that follows.
    pub payload_bytes: u32,
}

/// Who a client is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// How it calls itself.
    pub client_id: String,
    /// The topic filters that it subscribes to.
    pub filters: Vec<String>,
    /// What was set.
    pub settings: Settings,
}

/// A session of any of these protocols: its packets are heads.
pub trait HubSession:
    Session<Packet = Vec<u8>, Envelope = Envelope, Received = Box<[u8]>> + Debug + Send
{
}

impl<S> HubSession for S where
    S: Session<Packet = Vec<u8>, Envelope = Envelope, Received = Box<[u8]>> + Debug + Send
{
}

/// The server. After each call what it sends is taken by [`Hub::poll`] until there is nothing.
pub trait Hub: Debug {
    /// A datagram came from a peer, by its number: two sockets of one client are two peers.
    fn handle(&mut self, now: Instant, from: u32, head: &Head<'_>, message: Option<&Message>);
    /// A deadline may have come.
    fn tick(&mut self, _: Instant) {}
    /// When to call [`Hub::tick`] at the latest; a peek.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    /// The next datagram to be sent.
    fn poll(&mut self) -> Option<ToClient>;
}

/// A datagram of the hub's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToClient {
    /// The peer.
    pub to: u32,
    /// Its head.
    pub head: Vec<u8>,
    /// The message in it.
    pub message: Option<Message>,
}

/// A message's payload, or what stands for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Live.
    Payload(Arc<[u8]>),
    /// Simulated.
    Numbered {
        /// Which.
        message: u64,
        /// How long its payload is.
        bytes: u32,
    },
}

impl Message {
    /// How long the payload is.
    pub fn bytes(&self) -> u32 {
        match self {
            Message::Payload(payload) => payload.len() as u32,
            Message::Numbered { bytes, .. } => *bytes,
        }
    }
}
