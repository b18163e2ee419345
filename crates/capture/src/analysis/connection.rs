//! One connection: both directions' judgements, streams, packets and sums.

mod preamble;
mod sides;

use std::collections::{BTreeMap, HashSet};

use mqttlab_recording::FoldedHash;
use mqttlab_units::{Duration, Instant};

use super::exchanges::{answered, requested};
use super::first_bytes::Undecided;
use super::flags::{self, DirectionHistory, SegmentVerdict};
use super::protocol::{self, ConnectionProtocol};
use super::sequence;
use super::{AnalyserSettings, Annotations, CaptureGap, Completed, ServerDirection};
use crate::layers::{
    ConnectionLayers, KeyLog, Opened, OpenedBytes, Preamble, PreambleReader, TlsFacts, WebSocketOpening,
    begun_as_websocket,
};
use crate::marks::Marks;
use crate::metrics::{Exchange, MetricTally};
use crate::mqtt::{
    CapturedPacket, ConnectionContext, Kind, MqttFramer, SeenConnect, UnseenTime, may_start_as_connect,
    starts_as_connect,
};
use crate::reassembly::{Reassembler, SegmentPayload, Sighting, StreamPiece};
use crate::segment::{Bits, SocketEndpoint, TcpHeader};
use crate::zmtp;
use sides::sides;

/// A connection and what was counted of it.
#[derive(Clone, Debug)]
pub struct AnalysedConnection {
    /// Numbered from 0 in order of appearance.
    pub number: u64,
    /// The end that opened it, as far as can be told.
    pub client: SocketEndpoint,
    /// The other end.
    pub server: SocketEndpoint,
    /// What its streams carry; what is [`ConnectionProtocol::Mqtt`] was decoded.
    pub protocol: ConnectionProtocol,
    /// What is known of its TLS, where it has any.
    pub tls: Option<Box<TlsFacts>>,
    /// Whether it is a broker's: by its port, or because it carries MQTT.
    pub is_broker_s: bool,
    /// Whether its first bytes are not in the capture: neither its SYN is, nor a CONNECT in front of all else.
    pub is_joined_late: bool,
    /// What stood before what it carries.
    pub preamble: Option<Box<Preamble>>,
    /// The first bytes of a broker's connection that do not begin as MQTT does.
    pub strange_bytes: Option<Box<[u8]>>,
    /// What its CONNECT said.
    pub connect: Option<Box<SeenConnect>>,
    /// SYN to the acknowledgment that completed the handshake.
    pub initial_rtt: Option<Duration>,
    /// What was counted, by [`ServerDirection`].
    pub directions: [MetricTally; 2],
}

/// Servers of which a CONNECT was seen.
pub(super) type Brokers = HashSet<SocketEndpoint, FoldedHash>;

/// A request waits for its answer under the direction it was sent in, its kind and its packet identifier.
type Waiting = BTreeMap<(ServerDirection, Exchange, u16), Instant>;

/// What a segment brought to light. It is kept from segment to segment for its room.
#[derive(Debug, Default)]
pub(super) struct SegmentFindings {
    pub(super) completed: Vec<Completed>,
    /// Packets that the decoder has handed on and that have not been counted yet.
    packets: Vec<CapturedPacket>,
    /// Times in which packets may have passed unseen.
    pub(super) gaps: Vec<CaptureGap>,
}

/// A connection being followed.
#[derive(Debug)]
pub(super) struct ConnectionFollower {
    number: u64,
    client: SocketEndpoint,
    server: SocketEndpoint,
    protocol: ConnectionProtocol,
    /// Whether the server listens on a broker's port, or is known as a broker's by another connection.
    on_broker_port: bool,
    /// The client's first bytes, as long as they may yet become a CONNECT.
    undecided: Option<Box<Undecided>>,
    /// What may stand before what it carries, and what stood there.
    preamble: Option<Box<PreambleReader>>,
    /// See [`AnalysedConnection::strange_bytes`].
    strange_bytes: Option<Box<[u8]>>,
    /// Whether the client's first bytes are a CONNECT.
    begins_with_connect: bool,
    /// Whether packets of ZMTP are wanted.
    reads_zeromq: bool,
    pub(super) ways: [DirectionState; 2],
    /// What lies between TCP and MQTT, where there is anything.
    layers: Option<Box<ConnectionLayers>>,
    context: ConnectionContext,
    connect: Option<Box<SeenConnect>>,
    pub(super) handshake: SynHandshake,
    waiting: Waiting,
    last_frame: u64,
    pub(super) last_time: Instant,
    /// Whether a FIN or an RST was seen.
    pub(super) is_ending: bool,
    /// A SYN between the same ends that came when the handshake was over.
    pub(super) repeated_syn: Option<Box<TcpHeader>>,
    /// The connection that the ends had before, until the server answers this one's SYN.
    pub(super) predecessor: Option<Box<ConnectionFollower>>,
}

/// One direction.
#[derive(Debug)]
pub(super) struct DirectionState {
    pub(super) half: DirectionHistory,
    pub(super) stream: Reassembler,
    framer: Option<MqttFramer>,
    /// Instead of it, for ZMTP.
    frames: Option<zmtp::ZmtpFramer>,
    pub(super) from_start: bool,
    publishes_in: PerSegment,
    publishes_from: PerSegment,
    tally: MetricTally,
}

/// Counts packets segment by segment; packets of one segment come in a row.
#[derive(Debug, Default)]
struct PerSegment {
    frame: u64,
    count: u64,
}

#[derive(Debug, Default)]
pub(super) struct SynHandshake {
    pub(super) syn: Option<Instant>,
    pub(super) initial_rtt: Option<Duration>,
    pub(super) synchronized: bool,
}

impl ConnectionFollower {
    pub(super) fn new(
        number: u64,
        segment: &TcpHeader,
        settings: &AnalyserSettings,
        brokers: &Brokers,
    ) -> Self {
        let is_broker =
            |end: &SocketEndpoint| settings.broker_ports.contains(&end.port) || brokers.contains(end);
        let (client, server) = sides(segment, is_broker);
        let way = || DirectionState {
            half: DirectionHistory::default(),
            stream: Reassembler::default(),
            framer: None,
            frames: None,
            from_start: false,
            publishes_in: PerSegment::default(),
            publishes_from: PerSegment::default(),
            tally: MetricTally::default(),
        };
        let mut ways = [way(), way()];
        ways[0].tally.connections = 1;
        ConnectionFollower {
            number,
            client,
            server,
            protocol: ConnectionProtocol::Unknown,
            on_broker_port: is_broker(&server),
            undecided: None,
            preamble: None,
            strange_bytes: None,
            begins_with_connect: false,
            reads_zeromq: settings.reads_zeromq,
            ways,
            layers: None,
            context: ConnectionContext::default(),
            connect: None,
            handshake: SynHandshake::default(),
            waiting: Waiting::new(),
            last_frame: 0,
            last_time: segment.time,
            is_ending: false,
            repeated_syn: None,
            predecessor: None,
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn last_frame(&self) -> u64 {
        self.last_frame
    }

    /// Whether it is a broker's connection: by its port, or because it carries MQTT.
    pub(super) fn is_broker_s(&self) -> bool {
        self.on_broker_port || self.protocol == ConnectionProtocol::Mqtt
    }

    /// The broker at its end, if a CONNECT was seen.
    pub(super) fn broker(&self) -> Option<SocketEndpoint> {
        self.connect.as_ref().map(|_| self.server)
    }

    /// Another connection shows that its server is a broker: what it carries is looked at again.
    pub(super) fn reclassify(&mut self, brokers: &Brokers) {
        let is_open = matches!(self.protocol, ConnectionProtocol::Unknown | ConnectionProtocol::Other);
        if self.on_broker_port || !is_open || !brokers.contains(&self.server) {
            return;
        }
        self.on_broker_port = true;
        if self.protocol == ConnectionProtocol::Other {
            // What has gone by was not looked at.
            self.protocol = ConnectionProtocol::Unknown;
            self.ways.iter_mut().for_each(|way| way.from_start = false);
        }
    }

    pub(super) fn reused(&mut self, direction: ServerDirection) {
        self.ways[direction as usize].tally.mark(Marks::REUSED_PORTS);
    }

    pub(super) fn direction(&self, segment: &TcpHeader) -> ServerDirection {
        self.direction_from(segment.source)
    }

    pub(super) fn direction_from(&self, end: SocketEndpoint) -> ServerDirection {
        if end == self.client { ServerDirection::ToServer } else { ServerDirection::FromServer }
    }

    pub(super) fn segment(
        &mut self,
        frame: u64,
        segment: &TcpHeader,
        payload: SegmentPayload<'_>,
        key_log: &KeyLog,
        found: &mut SegmentFindings,
    ) -> Annotations<'static> {
        self.last_frame = frame;
        // Of several links, captures are merged by time; a recording's frames may come in another order.
        self.last_time = self.last_time.max(segment.time);
        let direction = self.direction(segment);
        let way = &mut self.ways[direction as usize];
        way.tally.frame(segment.time, segment.frame_len);
        way.tally.segment(segment);
        way.count_order(segment);
        let verdict = self.judge(direction, segment);
        let seen = Sighting { time: segment.time, frame };
        let is_stale = self.is_stale(direction, segment);
        let mut new_bytes = 0;
        if !is_stale {
            self.note_repeated_syn(segment);
            self.handshake(segment);
            self.is_ending |= segment.bits.any(Bits::FIN.and(Bits::RST));
            new_bytes = self.stream(direction, segment, (payload, seen), key_log, found);
        }
        Annotations {
            frame,
            connection: self.number,
            direction,
            is_stale,
            verdict,
            initial_rtt: self.handshake.initial_rtt,
            new_bytes,
            named_ends: self.named_ends(),
            packets: &[],
        }
    }

    fn judge(&mut self, direction: ServerDirection, segment: &TcpHeader) -> SegmentVerdict {
        let [to_server, from_server] = &mut self.ways;
        let (forward, reverse) = match direction {
            ServerDirection::ToServer => (to_server, from_server),
            ServerDirection::FromServer => (from_server, to_server),
        };
        let initial_rtt = self.handshake.initial_rtt;
        let verdict = flags::judge(&mut forward.half, &mut reverse.half, initial_rtt, segment);
        forward.tally.mark(verdict.marks);
        if let Some(bytes) = verdict.bytes_in_flight {
            forward.tally.in_flight_bytes.record(bytes.into());
        }
        if let Some(rtt) = verdict.ack_rtt {
            // A round trip is the data's, and counts in its direction, whoever shows it.
            reverse.tally.ack_rtt_ns.record(rtt.as_ns());
        }
        verdict
    }

    pub(super) fn handshake(&mut self, segment: &TcpHeader) {
        let handshake = &mut self.handshake;
        let tally = &mut self.ways[0].tally;
        if segment.bits.has(Bits::SYN) {
            if !segment.bits.has(Bits::ACK) {
                tally.connections_with_syn = 1;
                handshake.syn = Some(segment.time);
            } else {
                handshake.synchronized = true;
            }
            return;
        }
        if segment.bits.has(Bits::ACK)
            && handshake.initial_rtt.is_none()
            && let Some(syn) = handshake.syn
        {
            handshake.initial_rtt = segment.time.checked_since(syn);
            if let Some(rtt) = handshake.initial_rtt {
                tally.initial_rtt_ns.record(rtt.as_ns());
            }
            tally.handshakes += u64::from(handshake.synchronized && !segment.bits.has(Bits::RST));
        }
    }

    /// Hands the payload to this direction's stream and the acknowledgment to the other's.
    fn stream(
        &mut self,
        direction: ServerDirection,
        segment: &TcpHeader,
        (payload, seen): (SegmentPayload<'_>, Sighting),
        key_log: &KeyLog,
        found: &mut SegmentFindings,
    ) -> u64 {
        let mut sequence = segment.sequence;
        if segment.bits.has(Bits::SYN) {
            let way = &mut self.ways[direction as usize];
            way.stream.start(sequence);
            way.from_start = true;
            sequence = sequence.wrapping_add(1);
        }
        if !segment.bits.has(Bits::RST) {
            let end = sequence.wrapping_add(segment.payload_len);
            self.ways[direction as usize].stream.reached(end);
        }
        let mut new_bytes = 0;
        if segment.payload_len > 0 {
            self.hold_first(direction, sequence, payload);
            if !self.holds_first() {
                self.sniff(direction, payload);
            }
            new_bytes = self.with_stream(direction, key_log, found, |stream, sink| {
                stream.push(sequence, segment.payload_len, payload, seen, sink).new_bytes
            });
            self.decide(found);
            self.ways[direction as usize].tally.payload_bytes_unique += new_bytes;
        }
        if segment.bits.has(Bits::ACK) {
            let ack = segment.acknowledgment;
            let stream = &mut self.ways[direction.opposite() as usize].stream;
            if stream.waits() {
                let behind = segment.options.sack().iter().any(|&(from, _)| sequence::after(from, ack));
                self.with_stream(direction.opposite(), key_log, found, |stream, sink| {
                    stream.acknowledge(ack, behind, sink);
                });
            } else {
                stream.acknowledge(ack, false, &mut |_| {});
            }
        }
        new_bytes
    }

    /// The first bytes decide what a connection carries; on a broker's port it is MQTT unless they say otherwise.
    fn sniff(&mut self, direction: ServerDirection, payload: SegmentPayload<'_>) {
        if self.protocol == ConnectionProtocol::Unknown {
            self.protocol = match payload {
                SegmentPayload::Packets(_) => ConnectionProtocol::Mqtt,
                // A frame whose payload was cut away tells nothing.
                SegmentPayload::Bytes([]) => return,
                SegmentPayload::Bytes(bytes)
                    if direction == ServerDirection::ToServer && starts_as_connect(bytes) =>
                {
                    self.begins_with_connect();
                    ConnectionProtocol::Mqtt
                }
                SegmentPayload::Bytes(bytes)
                    if direction == ServerDirection::ToServer && self.waits_for_more(bytes) =>
                {
                    return;
                }
                SegmentPayload::Bytes(bytes) => self.begins_as(direction, bytes),
            };
        }
        self.read(direction);
    }

    /// Whether the client's first bytes may be a CONNECT when more of them come. At a broker's port they are taken for one, where
    /// the connection is known from its SYN on.
    fn waits_for_more(&mut self, bytes: &[u8]) -> bool {
        let is_known = self.on_broker_port && self.ways[ServerDirection::ToServer as usize].from_start;
        if self.undecided.is_none() && !is_known && may_start_as_connect(bytes) {
            self.undecided = Some(Box::default());
        }
        self.undecided.is_some()
    }

    /// A CONNECT is the first packet of a connection (MQTT-3.1.0-1): everything before it is known, whether a SYN was
    /// captured or not, and nothing of the server's came before.
    fn begins_with_connect(&mut self) {
        self.begins_with_connect = true;
        let [to_server, from_server] = &mut self.ways;
        to_server.from_start = true;
        from_server.from_start |= from_server.tally.payload_bytes_unique == 0;
    }

    /// The client's first bytes have become a CONNECT, or they cannot any more.
    fn decide(&mut self, found: &mut SegmentFindings) {
        let Some(undecided) = self.undecided.take_if(|undecided| !undecided.is_open()) else { return };
        let is_connect = undecided.is_connect();
        if self.protocol == ConnectionProtocol::Unknown {
            self.protocol = match is_connect {
                true => ConnectionProtocol::Mqtt,
                false => self.begins_as(ServerDirection::ToServer, undecided.bytes()),
            };
        }
        if is_connect {
            self.begins_with_connect();
        }
        self.read(ServerDirection::ToServer);
        let way = &mut self.ways[ServerDirection::ToServer as usize];
        let mut packets = std::mem::take(&mut found.packets);
        if let Some(framer) = way.framer.as_mut().filter(|_| self.layers.is_none()) {
            undecided.pieces().for_each(|piece| framer.feed(&mut self.context, &piece, &mut packets));
        }
        for packet in packets.drain(..) {
            self.packet(ServerDirection::ToServer, packet, found);
        }
        found.packets = packets;
    }

    /// Begins to read a direction of what is known now.
    fn read(&mut self, direction: ServerDirection) {
        let way = &mut self.ways[direction as usize];
        if self.protocol == ConnectionProtocol::Mqtt && self.layers.is_none() && way.framer.is_none() {
            way.framer = Some(MqttFramer::new(direction == ServerDirection::ToServer, way.from_start));
        }
        if self.protocol == ConnectionProtocol::ZeroMq && self.reads_zeromq && way.frames.is_none() {
            way.frames = Some(zmtp::ZmtpFramer::new(way.from_start));
        }
    }

    /// What begins so, if not with a CONNECT.
    fn begins_as(&mut self, direction: ServerDirection, bytes: &[u8]) -> ConnectionProtocol {
        let starts = [self.ways[0].from_start, self.ways[1].from_start];
        match protocol::of(bytes) {
            // What is asked for may stand in a later segment.
            asked @ (ConnectionProtocol::WebSocket | ConnectionProtocol::Http) => {
                self.layers = Some(Box::new(ConnectionLayers::websocket([true; 2])));
                asked
            }
            ConnectionProtocol::Unknown
                if !starts[direction as usize]
                    && begun_as_websocket(bytes, direction == ServerDirection::ToServer) =>
            {
                self.layers = Some(Box::new(ConnectionLayers::websocket([false; 2])));
                ConnectionProtocol::WebSocket
            }
            ConnectionProtocol::Tls => {
                self.layers = Some(Box::new(ConnectionLayers::tls()));
                ConnectionProtocol::Tls
            }
            ConnectionProtocol::Unknown if self.on_broker_port => {
                self.note_strange(direction, bytes);
                ConnectionProtocol::Mqtt
            }
            ConnectionProtocol::Unknown => ConnectionProtocol::Other,
            known => known,
        }
    }

    /// Runs `act` on a direction's stream, decoding the pieces that it hands on.
    fn decode<T>(
        &mut self,
        direction: ServerDirection,
        key_log: &KeyLog,
        found: &mut SegmentFindings,
        act: impl FnOnce(&mut Reassembler, &mut dyn FnMut(StreamPiece<'_>)) -> T,
    ) -> T {
        let mut packets = std::mem::take(&mut found.packets);
        let DirectionState { stream, framer, frames, tally, .. } = &mut self.ways[direction as usize];
        let (context, layers) = (&mut self.context, &mut self.layers);
        let undecided = self.undecided.as_mut().filter(|_| direction == ServerDirection::ToServer);
        let mut undecided = undecided.filter(|_| framer.is_none());
        let result = act(stream, &mut |piece| {
            if let StreamPiece::Missing { len, .. } = piece {
                tally.missing_bytes += len;
            }
            if let Some(undecided) = &mut undecided {
                undecided.feed(&piece);
            }
            match (layers.as_mut(), framer.as_mut()) {
                (Some(layers), _) => layers.feed(direction as usize, &piece, key_log),
                (None, Some(framer)) => framer.feed(context, &piece, &mut packets),
                (None, None) => {}
            }
            if let Some(frames) = frames {
                frames.feed(&piece, &mut packets);
            }
        });
        if self.layers.is_some() {
            self.look_inside(found, &mut packets);
        }
        self.note_unseen(direction, found);
        for packet in packets.drain(..) {
            self.packet(direction, packet, found);
        }
        found.packets = packets;
        result
    }

    /// Decodes what the layers have opened.
    fn look_inside(&mut self, found: &mut SegmentFindings, packets: &mut Vec<CapturedPacket>) {
        while let Some(opened) = self.layers.as_mut().and_then(|layers| layers.poll()) {
            let direction = ServerDirection::BOTH[opened.way];
            self.sniff_inside(direction, &opened);
            let (context, way) = (&mut self.context, &mut self.ways[opened.way]);
            let (Some(framer), Some(layers)) = (&mut way.framer, &mut self.layers) else { continue };
            let Opened { offset, seen, .. } = opened;
            let piece = match &opened.content {
                OpenedBytes::Bytes(bytes) => {
                    let (len, payload) = (bytes.len() as u64, SegmentPayload::Bytes(bytes));
                    StreamPiece::Data { offset, len, payload, seen }
                }
                OpenedBytes::Missing(len) => StreamPiece::Missing { offset, len: *len },
            };
            framer.feed(context, &piece, packets);
            packets.iter_mut().for_each(|packet| layers.carry(opened.way, packet));
            self.note_unseen(direction, found);
            for packet in packets.drain(..) {
                self.packet(direction, packet, found);
            }
        }
        match self.layers.as_ref().map(|layers| layers.opening()) {
            Some(WebSocketOpening::Refused)
                if matches!(self.protocol, ConnectionProtocol::Http | ConnectionProtocol::WebSocket) =>
            {
                self.layers = None;
            }
            Some(WebSocketOpening::Upgraded) if self.protocol == ConnectionProtocol::Http => {
                self.protocol = ConnectionProtocol::WebSocket
            }
            _ => {}
        }
    }

    /// The first bytes inside decide, as they do without layers.
    fn sniff_inside(&mut self, direction: ServerDirection, opened: &Opened) {
        let Some(layers) = &self.layers else { return };
        let (from_start, named) = (layers.is_from_start(opened.way), layers.names_mqtt());
        if let (OpenedBytes::Bytes(bytes), true) =
            (&opened.content, self.protocol != ConnectionProtocol::Mqtt)
        {
            let begins = direction == ServerDirection::ToServer
                && (starts_as_connect(bytes) || may_start_as_connect(bytes));
            if named || begins || self.on_broker_port || !from_start {
                self.protocol = ConnectionProtocol::Mqtt;
            }
        }
        let way = &mut self.ways[direction as usize];
        if self.protocol == ConnectionProtocol::Mqtt && way.framer.is_none() {
            way.framer = Some(MqttFramer::new(direction == ServerDirection::ToServer, from_start));
        }
    }

    fn note_unseen(&mut self, direction: ServerDirection, found: &mut SegmentFindings) {
        let way = &mut self.ways[direction as usize];
        let Some(framer) = &mut way.framer else { return };
        while let Some(UnseenTime { from, until }) = framer.unseen() {
            let last = way.tally.span.map_or(until, |(_, last)| last);
            found.gaps.push(CaptureGap {
                connection: self.number,
                direction,
                from,
                until: until.min(last).max(from),
            });
        }
    }

    /// Damaged packets are handed on, but the decoder counts them with those that were cut.
    fn packet(&mut self, direction: ServerDirection, packet: CapturedPacket, found: &mut SegmentFindings) {
        // What is counted here are packets of MQTT.
        let Some(kind) = packet.kind.mqtt().filter(|_| !packet.damaged) else {
            found.completed.push(Completed { connection: self.number, direction, packet });
            return;
        };
        let way = &mut self.ways[direction as usize];
        way.tally.packet(&packet, kind);
        if kind == Kind::Publish {
            way.publishes_in.count(packet.complete.frame, &mut way.tally.publish_per_segment);
            way.publishes_from.count(packet.first.frame, &mut way.tally.publish_starts_per_segment);
        }
        if let Some(connect) = &packet.connect {
            self.connect = Some(connect.clone());
        }
        self.exchange(direction, kind, &packet);
        found.completed.push(Completed { connection: self.number, direction, packet });
    }

    /// Starts waiting for an answer, or ends it. Repeated requests wait from the first.
    fn exchange(&mut self, direction: ServerDirection, kind: Kind, packet: &CapturedPacket) {
        let id = packet.id.unwrap_or(0);
        if let Some(exchange) = answered(kind) {
            let requester = direction.opposite();
            if let Some(since) = self.waiting.remove(&(requester, exchange, id))
                && let Some(elapsed) = packet.complete.time.checked_since(since)
            {
                let tally = &mut self.ways[requester as usize].tally;
                tally.exchanged_ns_mut(exchange).record(elapsed.as_ns());
                self.forget_rare(exchange);
            }
        }
        if let Some(exchange) = requested(kind, packet.qos) {
            self.waiting.entry((direction, exchange, id)).or_insert(packet.complete.time);
        }
    }

    /// Most connections wait for an answer when they begin and never again, and need no room for it any more.
    fn forget_rare(&mut self, exchange: Exchange) {
        if self.waiting.is_empty() && matches!(exchange, Exchange::Connect | Exchange::Subscribe) {
            self.waiting = Waiting::new();
        }
    }

    pub(super) fn finish(mut self, key_log: &KeyLog, found: &mut SegmentFindings) -> AnalysedConnection {
        self.end_preamble(key_log, found);
        for direction in ServerDirection::BOTH {
            self.with_stream(direction, key_log, found, |stream, sink| stream.finish(sink));
            let mut packets = Vec::new();
            let way = &mut self.ways[direction as usize];
            if let Some(framer) = &mut way.framer {
                framer.finish(&mut self.context, &mut packets);
                way.tally.skipped_bytes = framer.counts().skipped_bytes;
                way.tally.partial = framer.counts().partial;
                way.tally.impossible = framer.counts().impossible;
            }
            if let Some(layers) = &mut self.layers {
                packets.iter_mut().for_each(|packet| layers.carry(direction as usize, packet));
                way.tally.add_layers(&layers.finish(direction as usize));
            }
            if let Some(frames) = &way.frames {
                way.tally.skipped_bytes = frames.skipped_bytes;
            }
            self.note_unseen(direction, found);
            for packet in packets {
                self.packet(direction, packet, found);
            }
            let way = &mut self.ways[direction as usize];
            way.publishes_in.end(&mut way.tally.publish_per_segment);
            way.publishes_from.end(&mut way.tally.publish_starts_per_segment);
        }
        if self.undecided.is_some() && self.protocol == ConnectionProtocol::Unknown {
            self.protocol = ConnectionProtocol::Other;
        }
        let is_broker_s = self.is_broker_s();
        let [to_server, from_server] = self.ways;
        AnalysedConnection {
            number: self.number,
            client: self.client,
            server: self.server,
            protocol: self.protocol,
            tls: self.layers.as_ref().and_then(|layers| layers.secured()).map(Box::new),
            is_broker_s,
            is_joined_late: to_server.tally.connections_with_syn == 0 && !self.begins_with_connect,
            preamble: self.preamble.and_then(|reader| reader.found().cloned()).map(Box::new),
            strange_bytes: self.strange_bytes,
            connect: self.connect,
            initial_rtt: self.handshake.initial_rtt,
            directions: [to_server.tally, from_server.tally],
        }
    }
}

impl DirectionState {
    /// Where the segment lies against the highest sequence number seen, before it is remembered.
    fn count_order(&mut self, segment: &TcpHeader) {
        let Some(next) = self.half.next else { return };
        let end = segment.sequence.wrapping_add(segment.payload_len);
        self.tally.holes += u64::from(sequence::after(segment.sequence, next));
        self.tally.segments_below_highest +=
            u64::from(segment.payload_len > 0 && !sequence::after(end, next));
    }
}

impl PerSegment {
    fn count(&mut self, frame: u64, into: &mut crate::metrics::Distribution) {
        if frame != self.frame {
            self.end(into);
            self.frame = frame;
        }
        self.count += 1;
    }

    fn end(&mut self, into: &mut crate::metrics::Distribution) {
        if self.count > 0 {
            into.record(std::mem::take(&mut self.count));
        }
    }
}
