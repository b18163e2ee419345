//! Datagrams on our own wire, of MQTT-SN: each is one packet, which is complete when its frame
//! arrives.
//!
//! A message at QoS 0 or −1 whose datagram a link dropped is lost by that: nobody sends it again.
//!
//! Connections are pairs of addresses; their numbers are counted from [`FIRST`], apart from TCP's.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write;

use mqttlab_recording::identity::{self, SequenceEnd};
use mqttlab_recording::{
    ControlPacketRow, DatagramAccount, Dropped, Frame, FrameFate, LossCause, PacketKind, SeenBy, Towards,
};
use mqttlab_units::Instant;

use super::Names;
use crate::segment::{SocketEndpoint, UdpHeader};

/// Datagrams of servers, and the packets in them.
#[derive(Default)]
pub(super) struct RecordedDatagrams {
    /// Where servers listen.
    ports: Vec<u16>,
    /// Clients by identifier.
    clients: Names,
    connections: HashMap<[(String, u16); 2], RecordedConversation>,
    /// By frame number: those that have more links to cross.
    under_way: BTreeMap<u64, SentDatagram>,
    ready: VecDeque<SentDatagram>,
    dropped: Vec<Dropped>,
    name: String,
}

#[derive(Clone, Copy, Default)]
struct RecordedConversation {
    number: u32,
    client: Option<u32>,
    /// Bytes to the server, and from it.
    positions: [u64; 2],
}

/// Where a datagram belongs: its connection, and how many bytes its sender had sent there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DatagramPlace {
    pub(super) connection: u32,
    pub(super) start: u64,
}

/// A packet that was sent.
#[derive(Clone, Debug)]
pub(super) struct SentDatagram {
    connection: u32,
    towards: Towards,
    client: Option<u32>,
    kind: PacketKind,
    qos: Option<u8>,
    dup: bool,
    retain: bool,
    id: u16,
    reason: Option<u8>,
    topic: Option<String>,
    publisher: Option<u32>,
    sequence: Option<u32>,
    start: u64,
    bytes: u32,
    /// Of fixed header, topic, identifier and payload.
    parts: [u32; 4],
    sent: Instant,
    complete: Option<Instant>,
}

impl RecordedDatagrams {
    pub(super) fn new(ports: Vec<u16>) -> RecordedDatagrams {
        RecordedDatagrams { ports, ..RecordedDatagrams::default() }
    }

    pub(super) fn introduce(&mut self, clients: Names) {
        self.clients = clients;
    }

    /// A datagram on its first link: its place, and what it carries, as the `mqtt` column names it; `None` for what is
    /// nothing of what is spoken there.
    pub(super) fn sent(
        &mut self,
        frame: &Frame,
        datagram: &UdpHeader,
        payload: &[u8],
    ) -> Option<(DatagramPlace, &str)> {
        let ports = [datagram.destination.port, datagram.source.port];
        let towards = match ports.map(|port| self.ports.contains(&port)) {
            [true, _] => Towards::Broker,
            [false, true] => Towards::Client,
            [false, false] => return None,
        };
        let (account, message) = DatagramAccount::read(payload)?;
        let seen = self.seen(frame, datagram, (towards, payload.len() as u32), (&account, message));
        self.name.clear();
        write!(self.name, "{account}").expect("a string takes all");
        let place = seen.place();
        self.pass(frame, seen);
        Some((place, &self.name))
    }

    /// A frame on a later link, or a copy: the place of the datagram in it.
    pub(super) fn passed_on(&mut self, frame: &Frame) -> Option<DatagramPlace> {
        let seen = self.under_way.remove(&frame.frame)?;
        let place = seen.place();
        self.pass(frame, seen);
        Some(place)
    }

    /// The recording ends: what is under way has not arrived.
    pub(super) fn end(&mut self) {
        self.ready.extend(std::mem::take(&mut self.under_way).into_values());
    }

    /// The next packet that has arrived, or will not.
    pub(super) fn poll(&mut self) -> Option<SentDatagram> {
        self.ready.pop_front()
    }

    /// The messages that were lost with their datagrams.
    pub(super) fn dropped(&self) -> &[Dropped] {
        &self.dropped
    }

    fn pass(&mut self, frame: &Frame, mut seen: SentDatagram) {
        let delivered = matches!(frame.fate, FrameFate::Delivered | FrameFate::Duplicated);
        if delivered && frame.hop + 1 < frame.hops {
            self.under_way.insert(frame.frame, seen);
            return;
        }
        seen.complete = frame.delivered.filter(|_| delivered);
        if !delivered {
            self.dropped.extend(seen.lost_with(frame));
        }
        self.ready.push_back(seen);
    }

    fn seen(
        &mut self,
        frame: &Frame,
        datagram: &UdpHeader,
        (towards, bytes): (Towards, u32),
        (account, message): (&DatagramAccount<'_>, &[u8]),
    ) -> SentDatagram {
        let end = |endpoint: &SocketEndpoint| (endpoint.address.to_string(), endpoint.port);
        let (client_end, server_end) = match towards {
            Towards::Broker => (&datagram.source, &datagram.destination),
            Towards::Client => (&datagram.destination, &datagram.source),
        };
        let next = FIRST + self.connections.len() as u32;
        let fresh = RecordedConversation { number: next, ..RecordedConversation::default() };
        let conversation = self.connections.entry([end(client_end), end(server_end)]).or_insert(fresh);
        if let Some(client_id) = account.client_id {
            conversation.client = self.clients.named(client_id, Some(frame.from_host));
        }
        let position = &mut conversation.positions[usize::from(towards == Towards::Client)];
        let start = *position;
        *position += u64::from(bytes);
        let identity = account.qos.and_then(|_| identity::find(message));
        let publisher = identity.map(|identity| identity.publisher);
        let end = account.qos.and_then(|_| SequenceEnd::of(message)).map(SequenceEnd::value);
        SentDatagram {
            connection: conversation.number,
            towards,
            // QoS −1 has no connection that could have said whose it is, but the message does.
            client: if account.without_connection { publisher } else { conversation.client },
            kind: account.kind,
            qos: account.qos,
            dup: account.dup,
            retain: account.retain,
            id: account.id,
            reason: account.reason,
            topic: account.topic.map(str::to_owned),
            publisher,
            sequence: identity.map(|identity| identity.sequence).or(end),
            start,
            bytes,
            parts: [
                account.fixed_header_bytes,
                account.topic_bytes,
                account.packet_id_bytes,
                account.payload_bytes,
            ],
            sent: frame.entered,
            complete: None,
        }
    }
}

impl SentDatagram {
    fn place(&self) -> DatagramPlace {
        DatagramPlace { connection: self.connection, start: self.start }
    }

    /// The message that is lost with it, if there is one: towards a gateway everybody's, from there one client's.
    fn lost_with(&self, frame: &Frame) -> Option<Dropped> {
        let (publisher, sequence) = self.publisher.zip(self.sequence).filter(|_| self.qos == Some(0))?;
        let subscriber = self.client.filter(|_| self.towards == Towards::Client);
        let is_told = self.towards == Towards::Broker || subscriber.is_some();
        let cause = frame.cause.map_or(LossCause::LinkLoss, LossCause::of_datagram);
        is_told.then_some(Dropped { publisher, sequence, subscriber, cause, at: frame.entered })
    }

    /// As the recording has it.
    pub(super) fn row(&self) -> ControlPacketRow<'_> {
        let [fixed_header_bytes, topic_bytes, packet_id_bytes, payload_bytes] = self.parts;
        ControlPacketRow {
            connection: self.connection,
            seen_by: SeenBy::Capture,
            transport: self.kind.protocol().transport(),
            protocol: self.kind.protocol().as_str(),
            direction: self.towards,
            client: self.client,
            kind: self.kind.name(),
            qos: self.qos,
            dup: self.dup,
            retain: self.retain,
            packet_id: Some(self.id).filter(|id| *id != 0),
            reason: self.reason,
            topic: self.topic.as_deref(),
            publisher: self.publisher,
            sequence: self.sequence,
            stream_start: self.start,
            stream_end: self.start + u64::from(self.bytes),
            fixed_header_bytes,
            topic_bytes,
            packet_id_bytes,
            property_bytes: 0,
            payload_bytes,
            first_sent_ns: Some(self.sent.as_ns()),
            complete_ns: self.complete.map(Instant::as_ns),
            segments: Some(1),
            written_ns: None,
            read_ns: None,
        }
    }
}

/// TCP's connections are counted from 0.
const FIRST: u32 = 1 << 31;
