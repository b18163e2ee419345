//! What a client knows of the packets on its connection, where no frame of it is recorded.
//!
//! ```text
//!   put ──► waiting ──► the socket has taken its last byte ──► row, with that time
//!   read ─────────────────────────────────────────────────────► row, with the time of the read
//! ```
//!
//! Connections whose frames are recorded have none of this: there a packet costs one comparison, and no packet is in a
//! recording twice.
//!
//! What a packet is, a file here says: [`mqtt`], [`zeromq`], and for whatever goes over datagrams [`datagram`].
//!
//! What it does not model: packets of which the socket has not taken the last byte when the connection ends; nobody knows how
//! much of them has left. Datagrams that an ICMP error kept back are not among its rows.

pub(super) mod datagram;
pub(super) mod mqtt;
pub(super) mod zeromq;

use std::collections::VecDeque;

use mqttlab_plan::{Group, NetworkKind, Plan};
use mqttlab_recording::identity::{self, SequenceEnd};
use mqttlab_recording::{OwnPacket, PacketProtocol, Sink, Towards};
use mqttlab_units::Instant;

/// Which connections no frame will show.
#[derive(Clone, Debug, Default)]
pub struct UnrecordedConnections {
    /// None has frames.
    all: bool,
    /// Servers by index whose own host's clients nobody listens to.
    beside: Vec<usize>,
}

impl UnrecordedConnections {
    /// In a run where somebody listens to the clients beside these servers.
    pub fn of(plan: &Plan, heard: &[usize]) -> UnrecordedConnections {
        // Whoever does not want packets does not want these either.
        if !plan.recording.packets {
            return UnrecordedConnections::default();
        }
        let is_silent = |server: &usize| plan.has_clients_beside(*server) && !heard.contains(server);
        UnrecordedConnections {
            all: plan.network.kind != NetworkKind::Emulated,
            beside: (0..plan.servers.len()).filter(is_silent).collect(),
        }
    }

    /// Whether this client's connections are among them.
    pub(super) fn holds(&self, plan: &Plan, group: &Group, client: u32) -> bool {
        let server = group.connects_to;
        let is_beside = || group.host_of(client) == plan.servers[server].host;
        self.all || self.beside.contains(&server) && is_beside()
    }
}

/// The packets of one client's connections.
pub(super) struct OwnPackets {
    client: u32,
    /// Connections that were opened.
    connections: u32,
    /// Bytes of packets that were put, and that were read.
    put: u64,
    read: u64,
    /// What the socket has not taken, and what travels beside these one behind the other, from a place on.
    waiting: VecDeque<UnwrittenPacket>,
    beside: String,
    from: usize,
}

/// What a packet is. Whose it is, where it lies and when it went is not its own to say.
pub(super) struct PacketFacts<'a> {
    row: OwnPacket,
    /// The name of its kind, where that has no number.
    name: Option<&'static str>,
    /// Of a message, where it is known.
    topic: Option<&'a str>,
}

/// A packet that was put.
struct UnwrittenPacket {
    row: OwnPacket,
    /// Bytes of what travels beside it.
    beside: usize,
    /// Where it ends in what is to be sent.
    end: u64,
    is_refused: bool,
}

impl PacketFacts<'_> {
    /// Of a packet that is its header and a payload so far.
    fn of(
        protocol: PacketProtocol,
        kind: u8,
        fixed_header_bytes: u8,
        payload_bytes: u32,
    ) -> PacketFacts<'static> {
        let row = OwnPacket {
            client: 0,
            connection: 0,
            towards: Towards::Broker,
            kind,
            qos: 0,
            dup: false,
            retain: false,
            packet_id: 0,
            reason: None,
            publisher: None,
            sequence: None,
            start: 0,
            fixed_header_bytes,
            topic_bytes: 0,
            packet_id_bytes: 0,
            property_bytes: 0,
            payload_bytes,
            at: Instant::ZERO,
            protocol,
            is_message: false,
        };
        PacketFacts { row, name: None, topic: None }
    }

    /// With the topic of a message whose packet has an alias instead of its name.
    pub(super) fn on<'a>(self, topic: &'a str) -> PacketFacts<'a>
    where
        Self: 'a,
    {
        match self.topic {
            Some("") => PacketFacts { topic: Some(topic), ..self },
            _ => self,
        }
    }

    /// Appends what travels beside it; returns how much that is.
    fn write_beside(&self, out: &mut String) -> usize {
        let start = out.len();
        if let Some(name) = self.name {
            out.push_str(name);
            if self.topic.is_some() {
                out.push('\n');
            }
        }
        out.push_str(self.topic.unwrap_or_default());
        out.len() - start
    }
}

/// Publisher and number of the message with this payload, as far as it says; of a large one the beginning is enough.
fn message_of(payload: &[u8], is_whole: bool) -> (Option<u32>, Option<u32>) {
    let identity = identity::find(payload);
    let end = if is_whole { SequenceEnd::of(payload) } else { None };
    let sequence = identity.map(|identity| identity.sequence).or(end.map(SequenceEnd::value));
    (identity.map(|identity| identity.publisher), sequence)
}

impl OwnPackets {
    pub(super) fn new(client: u32) -> OwnPackets {
        let (connections, put, read, from) = (0, 0, 0, 0);
        let (waiting, beside) = (VecDeque::new(), String::new());
        OwnPackets { client, connections, put, read, waiting, beside, from }
    }

    /// A new connection is being opened.
    pub(super) fn begin(&mut self) {
        self.connections += 1;
        (self.put, self.read, self.from) = (0, 0, 0);
        self.waiting.clear();
        self.beside.clear();
    }

    /// A packet was put that ends there in what is to be sent.
    pub(super) fn put(&mut self, facts: Option<PacketFacts<'_>>, end: u64) {
        let Some(facts) = facts else { return };
        let row = self.whose(&facts, Towards::Broker, self.put);
        self.put += row.bytes();
        let beside = facts.write_beside(&mut self.beside);
        self.waiting.push_back(UnwrittenPacket { row, beside, end, is_refused: false });
    }

    /// The kernel has refused the datagram that ends there.
    pub(super) fn refused(&mut self, end: u64) {
        if let Some(packet) = self.waiting.iter_mut().find(|packet| packet.end == end) {
            packet.is_refused = true;
        }
    }

    /// Whether the socket has to take something yet.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The socket has taken all bytes up to there.
    pub(super) fn written(&mut self, up_to: u64, now: Instant, sink: &mut Sink) {
        while let Some(packet) = self.waiting.front().filter(|packet| packet.end <= up_to) {
            let until = self.from + packet.beside;
            if !packet.is_refused {
                sink.own_packet(&OwnPacket { at: now, ..packet.row }, &self.beside[self.from..until]);
            }
            self.from = until;
            self.waiting.pop_front();
        }
        if self.waiting.is_empty() || self.from > KEEP {
            self.beside.drain(..self.from);
            self.from = 0;
        }
    }

    /// A packet was read that has so many bytes. What cannot be read ends the connection, and is no packet.
    pub(super) fn read(&mut self, facts: Option<PacketFacts<'_>>, bytes: u64, now: Instant, sink: &mut Sink) {
        let start = self.read;
        self.read += bytes;
        let Some(facts) = facts else { return };
        let row = OwnPacket { at: now, ..self.whose(&facts, Towards::Client, start) };
        let place = self.beside.len();
        facts.write_beside(&mut self.beside);
        sink.own_packet(&row, &self.beside[place..]);
        self.beside.truncate(place);
    }

    fn whose(&self, facts: &PacketFacts<'_>, towards: Towards, start: u64) -> OwnPacket {
        let connection = self.connections.saturating_sub(1);
        OwnPacket { client: self.client, connection, towards, start, ..facts.row }
    }
}

/// Bytes that are kept though they were said.
const KEEP: usize = 64 << 10;
