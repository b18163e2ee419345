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
//! What it does not model: MQTT-SN and ZeroMQ. Packets of which the socket has not taken the last byte when the connection
//! ends; nobody knows how much of them has left.

use std::collections::VecDeque;

use mqttlab_mqtt::packet::{self, Publish};
use mqttlab_mqtt::{FixedHeader, Kind, Version};
use mqttlab_plan::{Group, NetworkKind, Plan};
use mqttlab_recording::identity::{self, SequenceEnd};
use mqttlab_recording::{OwnPacket, Sink, Towards};
use mqttlab_units::Instant;

use super::incoming::Raw;

/// Which connections no frame will show.
#[derive(Clone, Debug, Default)]
pub struct Unseen {
    /// None has frames.
    all: bool,
    /// Servers by index whose own host's clients nobody listens to.
    beside: Vec<usize>,
}

impl Unseen {
    /// In a run where somebody listens to the clients beside these servers.
    pub fn of(plan: &Plan, heard: &[usize]) -> Unseen {
        // Whoever does not want packets does not want these either.
        if !plan.recording.packets {
            return Unseen::default();
        }
        let is_silent = |server: &usize| plan.has_clients_beside(*server) && !heard.contains(server);
        Unseen {
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
    version: Version,
    /// Connections that were opened.
    connections: u32,
    /// Bytes of packets that were put, and that were read.
    put: u64,
    read: u64,
    /// What the socket has not taken, and the topics of these one behind the other, from a place on.
    waiting: VecDeque<Waiting>,
    topics: String,
    from: usize,
}

/// A packet that was put.
struct Waiting {
    row: OwnPacket,
    topic_bytes: usize,
    /// Where it ends in the outbox.
    end: u64,
}

impl OwnPackets {
    pub(super) fn new(client: u32, version: Version) -> OwnPackets {
        let (connections, put, read, from) = (0, 0, 0, 0);
        let (waiting, topics) = (VecDeque::new(), String::new());
        OwnPackets { client, version, connections, put, read, waiting, topics, from }
    }

    /// A new connection is being opened.
    pub(super) fn begin(&mut self) {
        self.connections += 1;
        (self.put, self.read, self.from) = (0, 0, 0);
        self.waiting.clear();
        self.topics.clear();
    }

    /// A packet was put that begins with these bytes and ends there in the outbox.
    pub(super) fn put(&mut self, bytes: &[u8], end: u64) {
        let Ok(Some(header)) = FixedHeader::peek(bytes) else { return };
        let Some((mut row, topic)) = self.row(header, &bytes[header.header_len..], Towards::Broker) else {
            return;
        };
        row.start = self.put;
        self.put += row.bytes();
        self.topics.push_str(topic);
        self.waiting.push_back(Waiting { row, topic_bytes: topic.len(), end });
    }

    /// Whether the socket has to take something yet.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The socket has taken all bytes of the outbox up to there.
    pub(super) fn written(&mut self, up_to: u64, now: Instant, sink: &mut Sink) {
        while let Some(packet) = self.waiting.front().filter(|packet| packet.end <= up_to) {
            let until = self.from + packet.topic_bytes;
            sink.own_packet(&OwnPacket { at: now, ..packet.row }, &self.topics[self.from..until]);
            self.from = until;
            self.waiting.pop_front();
        }
        if self.waiting.is_empty() || self.from > KEEP {
            self.topics.drain(..self.from);
            self.from = 0;
        }
    }

    /// A packet was read.
    pub(super) fn read(&mut self, raw: &Raw<'_>, now: Instant, sink: &mut Sink) {
        let start = self.read;
        self.read += raw.header.packet_len() as u64;
        // What cannot be read ends the connection, and is no packet.
        if let Some((row, topic)) = self.row(raw.header, raw.body, Towards::Client) {
            sink.own_packet(&OwnPacket { start, at: now, ..row }, topic);
        }
    }

    /// A packet's row, without its place and time, and its topic.
    fn row<'a>(&self, header: FixedHeader, body: &'a [u8], towards: Towards) -> Option<(OwnPacket, &'a str)> {
        let nothing = OwnPacket {
            client: self.client,
            connection: self.connections.saturating_sub(1),
            towards,
            kind: header.kind as u8,
            qos: 0,
            dup: false,
            retain: false,
            packet_id: 0,
            reason: None,
            publisher: None,
            sequence: None,
            start: 0,
            fixed_header_bytes: header.header_len as u8,
            topic_bytes: 0,
            packet_id_bytes: 0,
            property_bytes: 0,
            payload_bytes: header.remaining as u32,
            at: Instant::ZERO,
        };
        if header.kind != Kind::Publish {
            return Some((answer(nothing, header.kind, body), ""));
        }
        let (publish, head_len) = packet::publish_head(header, body, self.version).ok()?;
        let payload = body.get(head_len..).unwrap_or_default();
        let Publish { topic, qos, dup, retain, id, .. } = publish;
        let identity = identity::find(payload);
        let is_whole = payload.len() == header.remaining - head_len;
        let end = if is_whole { SequenceEnd::of(payload) } else { None };
        let packet_id_bytes = if qos.level() > 0 { 2 } else { 0 };
        let row = OwnPacket {
            qos: qos.level(),
            dup,
            retain,
            packet_id: id,
            publisher: identity.map(|identity| identity.publisher),
            sequence: identity.map(|identity| identity.sequence).or(end.map(SequenceEnd::value)),
            topic_bytes: 2 + topic.len() as u32,
            packet_id_bytes,
            property_bytes: (head_len - 2 - topic.len()) as u32 - u32::from(packet_id_bytes),
            payload_bytes: (header.remaining - head_len) as u32,
            ..nothing
        };
        Some((row, topic))
    }
}

/// With packet identifier and reason code, where packets of the kind have them.
fn answer(row: OwnPacket, kind: Kind, body: &[u8]) -> OwnPacket {
    let reason = |place: usize| body.get(place).map(|&code| u16::from(code));
    match kind {
        Kind::Connack => OwnPacket { reason: reason(1), ..row },
        Kind::Connect | Kind::Pingreq | Kind::Pingresp => row,
        Kind::Disconnect | Kind::Auth => OwnPacket { reason: reason(0), ..row },
        _ => OwnPacket {
            packet_id: body.get(..2).map_or(0, |id| u16::from_be_bytes([id[0], id[1]])),
            packet_id_bytes: 2,
            payload_bytes: row.payload_bytes.saturating_sub(2),
            reason: match kind {
                Kind::Puback | Kind::Pubrec | Kind::Pubrel | Kind::Pubcomp => reason(2),
                _ => None,
            },
            ..row
        },
    }
}

/// Bytes of topics that are kept though they were said.
const KEEP: usize = 64 << 10;
