//! Our own recordings, read by the same analyser as anybody's capture.
//!
//! ```text
//!   frame on its first link ──► Analyser (what the sender did) ──► packets, marks, round trips
//!   frame on its last link ───► StreamJoin (what had arrived when) ──► when each packet was complete
//! ```
//!
//! The emulator sees every frame at both ends of every link, so a packet's two times are both known: when its first
//! byte came to the first link, and when its last missing byte arrived at the receiver's end. The second one is the
//! moment at which the receiving stack could hand it over, whatever was lost and sent again before.
//!
//! What it does not model: frames that never came to a link, and checksums: a damaged frame counts as not arrived.

mod datagrams;
mod segments;
mod stream;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write;
use std::path::PathBuf;

use mqttlab_recording::{
    ControlPacketRow, Frame, FrameAnalyser, FrameFate, FrameHeaders, HeaderAnalyser, Layout,
    NetworkMetricRow, SeenRow,
    identity::{self, SequenceEnd},
};
use mqttlab_units::Instant;

use crate::analysis::{self, Analyser, AnalyserSettings, Analysis, Completed, ServerDirection};
use crate::control_packet::Passage;
use crate::link::LinkType;
use crate::mqtt::{CapturedPacket, Kind};
use crate::reader;
use crate::reassembly::SegmentPayload;
use crate::segment::{TransportHeader, dissect};
use datagrams::{DatagramPlace, RecordedDatagrams};

pub use segments::SegmentWitness;
pub use stream::{JoinedPacket, StreamJoin};

/// Reads the control packets beside a [`FrameWitness`], for what only they tell: messages of clients that nobody else follows.
pub trait PacketReader {
    /// Learns who is who, before the first packet.
    fn begin(&mut self, layout: &Layout);

    /// A packet, and what became of it, in the order of arrival; its client where that is known.
    fn packet(&mut self, packet: &JoinedPacket, client: Option<u32>);

    /// Hands out what it has found, after the last packet. Topics and receivers are added to the layout.
    fn messages(&mut self, layout: &mut Layout, emit: &mut dyn FnMut(SeenRow<'_>));
}

/// Reads the frames of a recording: follows TCP, decodes MQTT, and joins each packet to its arrival.
pub struct FrameWitness {
    headers: HeaderAnalyser,
    analyser: Option<Analyser>,
    streams: Streams,
    /// What goes over UDP.
    datagrams: RecordedDatagrams,
    packets: Vec<Completed>,
    mqtt: String,
    marks: String,
    /// The place of the datagram before, if that was one.
    datagram: Option<DatagramPlace>,
    /// What the frame before this one carried.
    latest: Option<CarriedRange>,
    analysis: Option<Analysis>,
    /// Where secrets of TLS connections are, if there are any.
    key_log: Option<PathBuf>,
    reader: Option<Box<dyn PacketReader>>,
}

/// Who sends what, and what of it has arrived.
#[derive(Default)]
struct Streams {
    join: StreamJoin,
    clients: Names,
    /// Clients that are programs and have not connected by their names, with their hosts.
    programs: Vec<(u16, u32)>,
    client_of: HashMap<u32, u32>,
    under_way: BTreeMap<u64, CarriedRange>,
    /// Packets of connections whose clients have not said their names, by connection.
    nameless: BTreeMap<u32, Vec<JoinedPacket>>,
    /// Packets that have waited for that.
    named: VecDeque<JoinedPacket>,
    /// Whether nobody will say a name any more.
    is_over: bool,
}

/// Clients by their identifiers. Several may have one, and take each other's session over: then their hosts tell them apart.
#[derive(Clone, Default)]
struct Names {
    holders: HashMap<String, Vec<(u16, u32)>>,
}

impl Names {
    fn add(&mut self, name: &str, host: u16, client: u32) {
        self.holders.entry(name.to_owned()).or_default().push((host, client));
    }

    fn has(&self, name: &str) -> bool {
        self.holders.contains_key(name)
    }

    /// Who has this name; nobody for certain where several have it on the host that it comes from.
    fn named(&self, name: &str, from_host: Option<u16>) -> Option<u32> {
        let holders = self.holders.get(name)?;
        if let [(_, client)] = holders[..] {
            return Some(client);
        }
        let mut here = holders.iter().filter(|(host, _)| Some(*host) == from_host);
        here.next().filter(|_| here.next().is_none()).map(|(_, client)| *client)
    }
}

/// What a frame that has more links to cross carries: bytes from `start` to `end` of a stream, or none.
#[derive(Clone, Copy)]
struct CarriedRange {
    connection: u32,
    direction: ServerDirection,
    start: u64,
    end: u64,
}

impl FrameWitness {
    /// A witness that has seen nothing, for brokers that listen on these ports.
    pub fn new(broker_ports: Vec<u16>) -> Self {
        FrameWitness {
            headers: HeaderAnalyser::default(),
            datagrams: RecordedDatagrams::new(broker_ports.clone()),
            analyser: Some(Analyser::new(AnalyserSettings {
                broker_ports,
                reads_zeromq: true,
                ..AnalyserSettings::default()
            })),
            streams: Streams::default(),
            packets: Vec::new(),
            mqtt: String::new(),
            marks: String::new(),
            datagram: None,
            latest: None,
            analysis: None,
            key_log: None,
            reader: None,
        }
    }

    /// The same, with somebody beside it who reads the packets.
    #[must_use]
    pub fn with_reader(self, reader: Box<dyn PacketReader>) -> Self {
        FrameWitness { reader: Some(reader), ..self }
    }

    /// The same, with the secrets of TLS connections that this file has when the reading begins; it need not be there.
    #[must_use]
    pub fn with_key_log(self, file: PathBuf) -> Self {
        FrameWitness { key_log: Some(file), ..self }
    }

    /// A frame on its first link: what the sender did. `None` when it does not carry TCP.
    fn sent(&mut self, frame: &Frame, bytes: &[u8]) -> Option<SegmentFacts> {
        let analyser = self.analyser.as_mut()?;
        let captured = reader::CapturedFrame {
            time: frame.entered,
            is_timed: true,
            interface: 0,
            link_type: LinkType::RAW,
            original_len: frame.frame_bytes,
            data: bytes,
        };
        let (segment, payload) = match dissect(&captured) {
            TransportHeader::Tcp(segment, payload) => (segment, payload),
            other => {
                self.mqtt.clear();
                self.datagram = None;
                if let TransportHeader::Udp(datagram, payload) = other
                    && let Some((place, name)) = self.datagrams.sent(frame, &datagram, payload)
                {
                    self.datagram = Some(place);
                    self.mqtt.push_str(name);
                }
                analyser.other_frame(frame.entered, frame.frame_bytes);
                return None;
            }
        };
        let annotations = analyser.segment(&segment, SegmentPayload::Bytes(payload));
        let verdict = annotations.verdict;
        self.marks.clear();
        write!(self.marks, "{}", verdict.marks).expect("a string takes all");
        self.packets.clear();
        self.packets.extend_from_slice(annotations.packets);
        Some(SegmentFacts {
            connection: annotations.connection as u32,
            direction: annotations.direction,
            ack_rtt_ns: verdict.ack_rtt.filter(|_| !verdict.ack_rtt_ambiguous).map(|rtt| rtt.as_ns()),
        })
    }

    /// A frame that its sender did not send here: it comes from an earlier link, or is a copy that this link made.
    fn passed_on(&mut self, frame: &Frame, bytes: &[u8]) -> FrameHeaders<'_> {
        let copy = frame.fate == FrameFate::Duplicated;
        if let Some(place) = self.datagrams.passed_on(frame) {
            let headers = self.headers.passed_on(bytes);
            let (connection, stream_offset) = (Some(place.connection), Some(place.start));
            return FrameHeaders { connection, stream_offset, ..headers };
        }
        // A copy is told right after what it copies, and has a number of its own from there on.
        let carried = if copy { self.latest } else { self.streams.under_way.get(&frame.frame).copied() };
        if let Some(carried) = carried {
            self.streams.arrive(frame, carried);
            if copy {
                self.streams.send_on(frame, carried);
            }
        }
        self.latest = carried;
        let headers = self.headers.passed_on(bytes);
        // The numbers are those of its first link: its ports may be another connection's by now.
        FrameHeaders {
            connection: carried.map(|carried| carried.connection),
            stream_offset: carried.filter(|carried| carried.end > carried.start).map(|carried| carried.start),
            ..headers
        }
    }

    /// Names the packets that the last segment, from this host, completed at its sender, and waits for their arrival.
    fn expect_packets(&mut self, from_host: Option<u16>) {
        self.mqtt.clear();
        for completed in self.packets.drain(..) {
            let blank = if self.mqtt.is_empty() { "" } else { " " };
            write!(self.mqtt, "{blank}{}", PacketName(&completed.packet)).expect("a string takes all");
            self.streams.expect(completed, from_host);
        }
    }
}

impl Streams {
    fn expect(&mut self, completed: Completed, from_host: Option<u16>) {
        let connection = completed.connection as u32;
        if let Some(connect) = &completed.packet.connect
            && let Some(client) = self.client(&connect.client_id, from_host)
        {
            self.client_of.insert(connection, client);
            self.named.extend(self.nameless.remove(&connection).unwrap_or_default());
        }
        self.join.expect(connection, completed.direction, completed.packet);
    }

    /// The next packet whose end is known, and its client where that is known.
    fn poll(&mut self) -> Option<(JoinedPacket, Option<u32>)> {
        loop {
            let waited = self.named.pop_front();
            let is_over = waited.is_some() || self.is_over;
            let joined = waited.or_else(|| self.join.poll())?;
            let client = self.client_of.get(&joined.connection).copied();
            if client.is_some() || is_over || !precedes_the_name(&joined.packet) {
                return Some((joined, client));
            }
            self.nameless.entry(joined.connection).or_default().push(joined);
        }
    }

    /// Nobody will say a name any more.
    fn stop_waiting(&mut self) {
        self.named.extend(std::mem::take(&mut self.nameless).into_values().flatten());
        self.is_over = true;
    }

    /// Who connects. A program may call itself as it likes: then it is one of its host's whom nobody has heard of.
    fn client(&mut self, name: &str, from_host: Option<u16>) -> Option<u32> {
        if let Some(client) = self.clients.named(name, from_host) {
            self.programs.retain(|(_, program)| *program != client);
            return Some(client);
        }
        if self.clients.has(name) {
            return None;
        }
        let place = self.programs.iter().position(|(host, _)| Some(*host) == from_host)?;
        let (host, client) = self.programs.remove(place);
        // When it comes back it is known by this name.
        self.clients.add(name, host, client);
        Some(client)
    }

    /// A segment sets out on its first link.
    fn enter_first_link(&mut self, frame: &Frame, carried: CarriedRange) {
        if carried.end > carried.start {
            self.join.sent(carried.connection, carried.direction, carried.start..carried.end);
        }
        self.arrive(frame, carried);
        self.send_on(frame, carried);
    }

    /// A frame has more links to cross.
    fn send_on(&mut self, frame: &Frame, carried: CarriedRange) {
        if frame.hop + 1 < frame.hops && frame.fate != FrameFate::Dropped {
            if self.under_way.len() >= UNDER_WAY_MAX {
                self.under_way.pop_first();
            }
            self.under_way.insert(frame.frame, carried);
        }
    }

    /// What the frame carries has arrived, if this was its last link.
    fn arrive(&mut self, frame: &Frame, carried: CarriedRange) {
        let whole =
            carried.end > carried.start && matches!(frame.fate, FrameFate::Delivered | FrameFate::Duplicated);
        if let Some(delivered) = frame.delivered.filter(|_| whole && frame.hop + 1 >= frame.hops) {
            self.join.arrived(carried.connection, carried.direction, carried.start..carried.end, delivered);
        }
    }
}

/// What the analyser said of a segment.
struct SegmentFacts {
    connection: u32,
    direction: ServerDirection,
    ack_rtt_ns: Option<u64>,
}

impl FrameAnalyser for FrameWitness {
    fn begin(&mut self, layout: &Layout) {
        for (client, number) in layout.clients.iter().zip(0..) {
            self.streams.clients.add(&client.name, client.host, number);
        }
        let clients = layout.clients.iter().zip(0..);
        let programs = clients.filter(|(client, _)| client.is_program);
        self.streams.programs = programs.map(|(client, number)| (client.host, number)).collect();
        self.datagrams.introduce(self.streams.clients.clone());
        // Without secrets what is in TLS is counted and not read, as in a capture.
        let secrets = self.key_log.take().and_then(|file| std::fs::read(file).ok());
        if let (Some(analyser), Some(secrets)) = (&mut self.analyser, secrets) {
            analyser.add_secrets(&secrets);
        }
        if let Some(reader) = &mut self.reader {
            reader.begin(layout);
        }
    }

    fn frame(&mut self, frame: &Frame, bytes: &[u8]) -> FrameHeaders<'_> {
        self.streams.join.advance(frame.entered);
        if frame.hop > 0 || frame.fate == FrameFate::Duplicated {
            return self.passed_on(frame, bytes);
        }
        self.latest = None;
        let Some(seen) = self.sent(frame, bytes) else {
            let headers = self.headers.frame(frame, bytes);
            return FrameHeaders {
                connection: self.datagram.map(|place| place.connection),
                stream_offset: self.datagram.map(|place| place.start),
                mqtt: word(&self.mqtt),
                ..headers
            };
        };
        self.expect_packets(Some(frame.from_host));
        let headers = self.headers.frame(frame, bytes);
        let SegmentFacts { connection, direction, .. } = seen;
        let (start, length) = headers.stream_offset.map_or((0, 0), |start| (start, headers.payload_bytes));
        let carried = CarriedRange { connection, direction, start, end: start + u64::from(length) };
        self.latest = Some(carried);
        self.streams.enter_first_link(frame, carried);
        FrameHeaders {
            connection: Some(seen.connection),
            ack_rtt_ns: seen.ack_rtt_ns,
            mqtt: word(&self.mqtt),
            marks: word(&self.marks),
            ..headers
        }
    }

    fn control_packets(&mut self, end: bool, emit: &mut dyn FnMut(&ControlPacketRow<'_>)) {
        if end && let Some(mut analyser) = self.analyser.take() {
            self.packets.clear();
            self.packets.extend_from_slice(analyser.flush());
            self.expect_packets(None);
            self.streams.join.advance(Instant::from_ns(u64::MAX));
            self.streams.join.give_up();
            self.streams.stop_waiting();
            self.datagrams.end();
            self.analysis = Some(analyser.finish());
        }
        while let Some((joined, client)) = self.streams.poll() {
            // Programs that are clients speak MQTT.
            if let Some(reader) = self.reader.as_mut().filter(|_| joined.packet.kind.mqtt().is_some()) {
                reader.packet(&joined, client);
            }
            emit(&row(&joined, client));
        }
        while let Some(seen) = self.datagrams.poll() {
            emit(&seen.row());
        }
    }

    fn network_metrics(&mut self, emit: &mut dyn FnMut(&NetworkMetricRow<'_>)) {
        if let Some(analysis) = &self.analysis {
            let client_of = &self.streams.client_of;
            analysis::rows(analysis, |number| (number, client_of.get(&number).copied()), emit);
        }
    }

    fn messages(&mut self, layout: &mut Layout, emit: &mut dyn FnMut(SeenRow<'_>)) {
        if let Some(reader) = &mut self.reader {
            reader.messages(layout, emit);
        }
        self.datagrams.dropped().iter().for_each(|row| emit(SeenRow::Dropped(row)));
    }
}

/// A text that says something.
fn word(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// Whether it may arrive before a client of its connection has said a name: in ZMTP both ends greet at once, and a server that has
/// been greeted need not wait for the client's READY, which has the name (ZMTP 3.1, traffic).
fn precedes_the_name(packet: &CapturedPacket) -> bool {
    matches!(packet.kind.zeromq(), Some(mqttlab_zmtp::Kind::Greeting | mqttlab_zmtp::Kind::Ready))
}

fn row(joined: &JoinedPacket, client: Option<u32>) -> ControlPacketRow<'_> {
    let JoinedPacket { connection, direction, ref packet, complete, segments } = *joined;
    let is_message = packet.kind.is_message();
    let head = packet.payload_head.as_slice();
    let identity = is_message.then(|| identity::find(head)).flatten();
    let is_whole = is_message && head.len() as u64 == u64::from(packet.lengths.payload);
    let end = is_whole.then(|| SequenceEnd::of(head)).flatten();
    let passage =
        Passage { connection, direction, client, first_sent: packet.first.time, complete, segments };
    ControlPacketRow {
        publisher: identity.map(|identity| identity.publisher),
        sequence: identity.map(|identity| identity.sequence).or(end.map(SequenceEnd::value)),
        ..passage.row_of(packet)
    }
}

/// A packet as the `mqtt` column names it.
struct PacketName<'a>(&'a CapturedPacket);

impl std::fmt::Display for PacketName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let packet = self.0;
        f.write_str(packet.kind.name())?;
        let Some(kind) = packet.kind.mqtt() else { return Ok(()) };
        match (kind == Kind::Publish, packet.id) {
            (true, Some(id)) => write!(f, "({},{id})", packet.qos),
            (true, None) => write!(f, "({})", packet.qos),
            (false, Some(id)) => write!(f, "({id})"),
            (false, None) => Ok(()),
        }
    }
}

/// Frames that are remembered while under way; the oldest is forgotten first.
const UNDER_WAY_MAX: usize = 1 << 18;
