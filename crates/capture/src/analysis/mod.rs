//! Follows every TCP connection through a stream of segments.
//!
//! [`Analyser::segment`] takes one segment at a time, from a file, from the emulator or from the simulator, and
//! answers with what it turned out to be: marks, round trips, and the MQTT packets that it completed. Sums are
//! kept for each direction of each connection and for everything.
//!
//! A connection is between two endpoints from one SYN to the next (see [`reuse`]). Its server is the end with a broker port, else
//! the one that did not send the SYN, else the one with the lower port. Its streams are decoded as MQTT when it has
//! a broker port, when the client's first bytes are a CONNECT, in however many segments, and when another connection to the
//! same address and port began so.
//!
//! Memory is bounded by [`MemoryLimits`]: connections beyond them are finished early, oldest activity first, and the
//! sums of old ones are kept only in the total.

mod connection;
mod exchanges;
mod first_bytes;
mod flags;
mod protocol;
mod reuse;
mod rows;
mod sequence;
mod unacknowledged;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use mqttlab_recording::FoldedHash;
use mqttlab_units::{Duration, Instant};

use crate::layers::{KeyLog, Unread};
use crate::marks::Marks;
use crate::metrics::MetricTally;
use crate::mqtt::CapturedPacket;
use crate::reader::CapturedFrame;
use crate::reassembly::SegmentPayload;
use crate::segment::{Bits, SocketEndpoint, TcpHeader, TransportHeader, dissect};
use connection::{Brokers, ConnectionFollower, SegmentFindings};

pub use connection::AnalysedConnection;
pub use flags::SegmentVerdict;
pub use protocol::ConnectionProtocol;
pub use rows::{rows, towards};
pub use sequence::after;

/// Towards the server or from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServerDirection {
    /// From the client.
    ToServer = 0,
    /// From the server.
    FromServer = 1,
}

impl ServerDirection {
    /// Both, in the order of their numbers.
    pub const BOTH: [ServerDirection; 2] = [ServerDirection::ToServer, ServerDirection::FromServer];

    /// The other one.
    pub const fn opposite(self) -> ServerDirection {
        match self {
            ServerDirection::ToServer => ServerDirection::FromServer,
            ServerDirection::FromServer => ServerDirection::ToServer,
        }
    }
}

/// How a capture is to be read.
#[derive(Clone, Debug)]
pub struct AnalyserSettings {
    /// Ports that brokers listen on.
    pub broker_ports: Vec<u16>,
    /// Secrets of TLS connections.
    pub key_log: Arc<KeyLog>,
    /// Bounds on memory.
    pub limits: MemoryLimits,
    /// Whether packets of ZeroMQ are handed on, too.
    pub reads_zeromq: bool,
}

/// Bounds on memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLimits {
    /// Connections followed at once.
    pub open_max: usize,
    /// Finished connections whose own sums are kept.
    pub finished_max: usize,
}

impl Default for AnalyserSettings {
    fn default() -> Self {
        AnalyserSettings {
            broker_ports: vec![1883],
            key_log: Arc::default(),
            limits: MemoryLimits { open_max: 65_536, finished_max: 10_000 },
            reads_zeromq: false,
        }
    }
}

/// What a segment turned out to be.
#[derive(Debug)]
pub struct Annotations<'a> {
    /// The frame's number, from 1.
    pub frame: u64,
    /// Which connection, numbered from 0 in order of appearance.
    pub connection: u64,
    /// Which direction of it.
    pub direction: ServerDirection,
    /// Whether it is of an earlier connection between the same ends, by its numbers: it tells nothing of this one.
    pub is_stale: bool,
    /// Marks, round trip and bytes in flight.
    pub verdict: SegmentVerdict,
    /// SYN to the acknowledgment that completed the handshake, once known.
    pub initial_rtt: Option<Duration>,
    /// Payload bytes that had not been seen before.
    pub new_bytes: u64,
    /// The client and the server that a preamble names, where it names any: those behind the proxies at the ends.
    pub named_ends: [Option<SocketEndpoint>; 2],
    /// MQTT packets of which the last missing byte came with this segment, in either direction: an acknowledgment
    /// can prove that bytes before them were never captured, and a SYN that an earlier connection is over.
    pub packets: &'a [Completed],
}

/// A packet, and where it was sent.
#[derive(Clone, Debug)]
pub struct Completed {
    /// [`AnalysedConnection::number`].
    pub connection: u64,
    /// Which direction of it.
    pub direction: ServerDirection,
    /// The packet.
    pub packet: CapturedPacket,
}

/// A time in which packets may have passed that were not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureGap {
    /// [`AnalysedConnection::number`].
    pub connection: u64,
    /// Which direction of it.
    pub direction: ServerDirection,
    /// When the last packet before was complete; zero where the stream's start was not captured.
    pub from: Instant,
    /// When the next packet began, or the connection's last segment was seen.
    pub until: Instant,
}

/// Connections that are not a broker's, and frames without TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// How many connections.
    pub connections: u64,
    /// Their frames.
    pub frames: u64,
    /// Bytes of these on the link.
    pub bytes: u64,
}

/// Connections with TLS that were not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadTls {
    /// How many connections.
    pub connections: u64,
    /// The numbers of the first of them.
    pub numbers: Vec<u64>,
}

/// Everything that was counted.
#[derive(Debug, Default)]
pub struct Analysis {
    /// What both directions of the broker's connections add up to.
    pub total: MetricTally,
    /// The two directions of the broker's connections, by [`ServerDirection`].
    pub directions: [MetricTally; 2],
    /// Connections in order of appearance, those that are not a broker's among them.
    pub connections: Vec<AnalysedConnection>,
    /// Connections that are not a broker's, by their server's port and what they carry.
    pub others: BTreeMap<(u16, ConnectionProtocol), Others>,
    /// Connections to brokers' ports with what they carry.
    pub on_broker_ports: BTreeMap<ConnectionProtocol, u64>,
    /// Connections with TLS that were not read, by their server's port and why.
    pub sealed: BTreeMap<(u16, Unread), UnreadTls>,
    /// Frames that do not carry TCP.
    pub without_tcp: Others,
    /// All frames, the others' and those without TCP among them: their sizes, the first and the last.
    pub everything: MetricTally,
    /// Connections beyond [`MemoryLimits::finished_max`], which are in the sums only.
    pub connections_unlisted: u64,
    /// UDP datagrams.
    pub datagrams: u64,
}

/// Both ends of a connection, the lesser one first.
type Ends = (SocketEndpoint, SocketEndpoint);

/// Follows every connection.
pub struct Analyser {
    settings: AnalyserSettings,
    frames: u64,
    followers: Vec<Option<Box<ConnectionFollower>>>,
    vacant: Vec<usize>,
    by_ends: HashMap<Ends, usize, FoldedHash>,
    /// Where a CONNECT went: every connection there is a broker's.
    brokers: Brokers,
    /// Connections that had a segment of late, by their ports: they will have the next one.
    latest: [Option<(Ends, usize)>; LATEST],
    seen_connections: u64,
    found: SegmentFindings,
    all_frames: MetricTally,
    analysis: Analysis,
}

impl Analyser {
    /// An analyser that has seen nothing.
    pub fn new(settings: AnalyserSettings) -> Self {
        Analyser {
            settings,
            frames: 0,
            followers: Vec::new(),
            vacant: Vec::new(),
            by_ends: HashMap::default(),
            brokers: Brokers::default(),
            latest: [None; LATEST],
            seen_connections: 0,
            found: SegmentFindings::default(),
            all_frames: MetricTally::default(),
            analysis: Analysis::default(),
        }
    }

    /// Takes a captured frame; `None` when it does not carry TCP.
    pub fn frame(&mut self, frame: &CapturedFrame<'_>) -> Option<Annotations<'_>> {
        match dissect(frame) {
            TransportHeader::Tcp(segment, payload) => {
                Some(self.segment(&segment, SegmentPayload::Bytes(payload)))
            }
            TransportHeader::Udp(..) => {
                self.analysis.datagrams += 1;
                self.other_frame(frame.time, frame.original_len);
                None
            }
            TransportHeader::Other => {
                self.other_frame(frame.time, frame.original_len);
                None
            }
        }
    }

    /// Counts a frame that does not carry TCP.
    pub fn other_frame(&mut self, time: Instant, len: u32) {
        self.frames += 1;
        self.all_frames.frame(time, len);
        self.analysis.without_tcp.frames += 1;
        self.analysis.without_tcp.bytes += u64::from(len);
    }

    /// Adds secrets of TLS connections, as a text that a program has logged: to be known before the records that they open.
    pub fn add_secrets(&mut self, text: &[u8]) {
        Arc::make_mut(&mut self.settings.key_log).add(text);
    }

    /// The next time in which packets may have passed unseen.
    pub fn gap(&mut self) -> Option<CaptureGap> {
        self.found.gaps.pop()
    }

    /// Which direction of a connection leads from one of its ends to the other; `None` where it is not followed any more.
    pub fn direction(&self, connection: u64, ends: [SocketEndpoint; 2]) -> Option<ServerDirection> {
        let slot = *self.by_ends.get(&ordered(ends[0], ends[1]))?;
        let latest = self.followers[slot].as_deref()?;
        let followers = [Some(latest), latest.predecessor.as_deref()];
        let follower = followers.into_iter().flatten().find(|follower| follower.number() == connection)?;
        Some(follower.direction_from(ends[0]))
    }

    /// Takes a TCP segment.
    pub fn segment(&mut self, segment: &TcpHeader, payload: SegmentPayload<'_>) -> Annotations<'_> {
        self.frames += 1;
        self.all_frames.frame(segment.time, segment.frame_len);
        self.found.completed.clear();
        let ends = ordered(segment.source, segment.destination);
        let (slot, reused) = self.slot(ends, segment);
        let follower = self.followers[slot].as_mut().expect("a slot in the index is occupied");
        let follower = match follower.is_of_predecessor(segment) {
            true => follower.predecessor.as_mut().expect("it has one"),
            false => follower,
        };
        follower.reclassify(&self.brokers);
        let mut annotations =
            follower.segment(self.frames, segment, payload, &self.settings.key_log, &mut self.found);
        if let Some(broker) = follower.broker() {
            self.brokers.insert(broker);
        }
        if reused {
            annotations.verdict.marks.set(Marks::REUSED_PORTS);
            follower.reused(annotations.direction);
        }
        let is_first = segment.bits.has(Bits::SYN) && !segment.bits.has(Bits::ACK);
        if let Some(over) = follower.predecessor.take_if(|_| !is_first) {
            self.finish_connection(over);
        }
        annotations.packets = &self.found.completed;
        annotations
    }

    /// Hands over the packets of the last segment, in place of which others are thrown away.
    pub fn swap_packets(&mut self, packets: &mut Vec<Completed>) {
        packets.clear();
        std::mem::swap(&mut self.found.completed, packets);
    }

    /// Ends all connections. What still waits behind holes is decoded and returned.
    pub fn flush(&mut self) -> &[Completed] {
        self.found.completed.clear();
        self.by_ends.clear();
        self.vacant.clear();
        self.latest = [None; LATEST];
        let mut open: Vec<Box<ConnectionFollower>> = self.followers.drain(..).flatten().collect();
        let earlier: Vec<_> = open.iter_mut().filter_map(|follower| follower.predecessor.take()).collect();
        open.extend(earlier);
        open.sort_by_key(|follower| follower.number());
        for follower in open {
            self.finish_connection(follower);
        }
        &self.found.completed
    }

    /// Everything that was counted, after [`Analyser::flush`].
    pub fn finish(mut self) -> Analysis {
        self.flush();
        let mut analysis = self.analysis;
        analysis.connections.sort_by_key(|connection| connection.number);
        let [to_server, from_server] = &analysis.directions;
        analysis.total.merge(to_server);
        analysis.total.merge(from_server);
        analysis.everything = self.all_frames;
        analysis
    }

    /// Where the segment's connection is followed, and whether it took over the ports of an earlier one.
    fn slot(&mut self, ends: Ends, segment: &TcpHeader) -> (usize, bool) {
        let latest = latest(&ends);
        let known = match self.latest[latest] {
            Some((latest, slot)) if latest == ends => Some(slot),
            _ => self.by_ends.get(&ends).copied(),
        };
        let (mut reused, mut begun, mut predecessor) = (false, None, None);
        if let Some(slot) = known {
            let follower = self.followers[slot].as_ref().expect("a slot in the index is occupied");
            if !(segment.bits.has(Bits::SYN) && follower.is_another(segment)) {
                self.latest[latest] = Some((ends, slot));
                return (slot, false);
            }
            reused = true;
            begun = follower.begun_again(segment).copied();
            predecessor = self.replace(ends, slot);
        }
        if self.by_ends.len() >= self.settings.limits.open_max {
            self.close_idle();
        }
        let first = begun.as_ref().unwrap_or(segment);
        let mut follower =
            ConnectionFollower::new(self.seen_connections, first, &self.settings, &self.brokers);
        if let Some(syn) = &begun {
            follower.begin_with(syn);
        }
        follower.predecessor = predecessor;
        self.seen_connections += 1;
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.followers.push(None);
            self.followers.len() - 1
        });
        self.followers[slot] = Some(Box::new(follower));
        self.by_ends.insert(ends, slot);
        self.latest[latest] = Some((ends, slot));
        (slot, reused)
    }

    fn close(&mut self, ends: Ends, slot: usize) {
        let Some(mut follower) = self.take_out(ends, slot) else { return };
        if let Some(earlier) = follower.predecessor.take() {
            self.finish_connection(earlier);
        }
        self.finish_connection(follower);
    }

    fn take_out(&mut self, ends: Ends, slot: usize) -> Option<Box<ConnectionFollower>> {
        self.by_ends.remove(&ends);
        self.latest[latest(&ends)] = None;
        let follower = self.followers[slot].take()?;
        self.vacant.push(slot);
        Some(follower)
    }

    /// Makes room for another connection between the same ends. Answers the one that may go on all the same.
    fn replace(&mut self, ends: Ends, slot: usize) -> Option<Box<ConnectionFollower>> {
        let mut follower = self.take_out(ends, slot)?;
        if let Some(earlier) = follower.predecessor.take() {
            // A SYN without an answer was between.
            self.finish_connection(follower);
            return Some(earlier);
        }
        if follower.may_go_on() {
            return Some(follower);
        }
        self.finish_connection(follower);
        None
    }

    /// Finishes the half of the connections that have been idle longest, so that the search for them is rare.
    fn close_idle(&mut self) {
        let mut by_age: Vec<(u64, Ends, usize)> = Vec::with_capacity(self.by_ends.len());
        for (ends, &slot) in &self.by_ends {
            if let Some(follower) = &self.followers[slot] {
                by_age.push((follower.last_frame(), *ends, slot));
            }
        }
        by_age.sort_unstable_by_key(|(frame, ..)| *frame);
        by_age.truncate(by_age.len().div_ceil(2));
        for (_, ends, slot) in by_age {
            self.close(ends, slot);
        }
    }

    fn finish_connection(&mut self, follower: Box<ConnectionFollower>) {
        let connection = follower.finish(&self.settings.key_log, &mut self.found);
        if let Some(unread) = connection.tls.as_ref().and_then(|tls| tls.unread) {
            let sealed = self.analysis.sealed.entry((connection.server.port, unread)).or_default();
            sealed.connections += 1;
            if sealed.numbers.len() < SEALED_NUMBERS {
                sealed.numbers.push(connection.number);
            }
        }
        if connection.is_broker_s {
            *self.analysis.on_broker_ports.entry(connection.protocol).or_default() += 1;
            for (sum, tally) in self.analysis.directions.iter_mut().zip(&connection.directions) {
                sum.merge(tally);
            }
        } else {
            let kind = (connection.server.port, connection.protocol);
            let others = self.analysis.others.entry(kind).or_default();
            others.connections += 1;
            for tally in &connection.directions {
                others.frames += tally.frames.count;
                others.bytes += tally.frames.sum;
            }
        }
        if self.analysis.connections.len() < self.settings.limits.finished_max {
            self.analysis.connections.push(connection);
        } else {
            self.analysis.connections_unlisted += 1;
        }
    }
}

/// Where among the latest connections one is remembered.
fn latest((one, other): &Ends) -> usize {
    usize::from(one.port ^ other.port) % LATEST
}

fn ordered(a: SocketEndpoint, b: SocketEndpoint) -> Ends {
    if a <= b { (a, b) } else { (b, a) }
}

/// Connections with TLS that are named, of each kind.
const SEALED_NUMBERS: usize = 5;
/// Connections that are found without looking them up.
const LATEST: usize = 64;
