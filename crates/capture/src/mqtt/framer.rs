//! Packets out of one direction's stream, piece by piece.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use mqttlab_mqtt::{Version, reason};
use mqttlab_units::Instant;

use super::connect;
use super::layout::{self, Fixed, FixedRead};
use super::payload_rest::RestHasher;
use super::resync::{self, Clues, ResyncCandidates};
use super::{CapturedPacket, PAYLOAD_TEXT_MAX, PacketDescriptor, PayloadHead, PayloadRest};
use crate::reassembly::{SegmentPayload, Sighting, StreamPiece};

/// Packets of a simulator's that may be under way at once in one direction.
const DESCRIBED_MAX: usize = 65_536;
/// Assumed until a packet proves otherwise.
pub(super) const DEFAULT_LEVEL: u8 = 4;

/// What both directions of a connection know together.
#[derive(Debug, Default)]
pub struct ConnectionContext {
    /// Protocol level, from the CONNECT or from a packet that only MQTT 5 allows.
    pub level: Option<u8>,
    topic: Option<Arc<str>>,
}

/// What could not be framed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FramerCounts {
    /// Bytes passed over in search of a packet.
    pub skipped_bytes: u64,
    /// Packets of which a part was seen, but not all.
    pub partial: u64,
    /// Times that framing was lost because what came could not be a control packet.
    pub impossible: u64,
}

/// A time in which packets may have passed that were not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnseenTime {
    /// When the last packet before was complete; zero where the stream's start was not captured.
    pub from: Instant,
    /// When the next one began; the last instant there is when none came.
    pub until: Instant,
}

/// One direction's decoder.
#[derive(Debug)]
pub struct MqttFramer {
    to_server: bool,
    state: FramerState,
    described: VecDeque<Described>,
    counts: FramerCounts,
    /// Whether framing was found again by searching, so that packets are believed as long as they are possible.
    resynchronised: bool,
    /// When the last packet was complete.
    heard: Instant,
    /// Since when framing is lost.
    lost: Option<Instant>,
    unseen: Vec<UnseenTime>,
    /// Topics by alias (MQTT 5 §3.3.2.3.4).
    aliases: BTreeMap<u16, Arc<str>>,
}

#[derive(Debug)]
enum FramerState {
    /// At the first byte of a packet.
    Between,
    /// Inside a fixed header.
    Header(Box<(Vec<u8>, Start)>),
    /// Inside a packet.
    Inside(Box<PartialPacket>),
    /// Framing is lost.
    Searching(Box<MqttResync>),
}

/// A packet under way of which there are no bytes.
#[derive(Clone, Copy, Debug)]
struct Described {
    descriptor: PacketDescriptor,
    first: Sighting,
    latest: Sighting,
}

#[derive(Clone, Copy, Debug)]
struct Start {
    offset: u64,
    seen: Sighting,
    latest: Sighting,
}

#[derive(Debug)]
struct PartialPacket {
    fixed: Fixed,
    start: Start,
    head: Vec<u8>,
    wanted: usize,
    /// Of a PUBLISH, since bytes have gone by that `head` does not hold.
    rest: Option<Box<RestHasher>>,
    /// Bytes after the fixed header that have gone by.
    gone: u64,
    damaged: bool,
    /// Bytes that came after a hole.
    after_hole: u64,
}

#[derive(Debug, Default)]
struct MqttResync {
    offset: u64,
    bytes: Vec<u8>,
    /// Position in `bytes` at which each piece starts, and where it was seen. The first may start before.
    pieces: Vec<(i64, Sighting)>,
    candidates: ResyncCandidates,
}

impl MqttFramer {
    /// A decoder for the stream towards or from the server. In mid-stream it first searches for a packet.
    pub fn new(to_server: bool, from_start: bool) -> Self {
        let state = if from_start { FramerState::Between } else { FramerState::Searching(Box::default()) };
        MqttFramer {
            to_server,
            state,
            described: VecDeque::new(),
            counts: FramerCounts::default(),
            resynchronised: !from_start,
            heard: Instant::ZERO,
            lost: (!from_start).then_some(Instant::ZERO),
            unseen: Vec::new(),
            aliases: BTreeMap::new(),
        }
    }

    /// The next time in which packets may have passed unseen, once it is over.
    pub fn unseen(&mut self) -> Option<UnseenTime> {
        self.unseen.pop()
    }

    /// What could not be framed so far.
    pub fn counts(&self) -> FramerCounts {
        self.counts
    }

    /// Takes the next piece of the stream and appends the packets that it completes.
    pub fn feed(
        &mut self,
        context: &mut ConnectionContext,
        piece: &StreamPiece<'_>,
        packets: &mut Vec<CapturedPacket>,
    ) {
        match *piece {
            StreamPiece::Missing { offset, len } => self.miss(context, offset, len, packets),
            StreamPiece::Data { offset, payload: SegmentPayload::Bytes(bytes), seen, .. } => {
                self.absorb(context, offset, bytes, seen, packets);
                self.decode(context, packets);
            }
            StreamPiece::Data { offset, len, payload: SegmentPayload::Packets(descriptors), seen } => {
                self.describe(offset, len, descriptors, seen, packets);
            }
        }
    }

    /// No more will come.
    pub fn finish(&mut self, context: &mut ConnectionContext, packets: &mut Vec<CapturedPacket>) {
        self.decode(context, packets);
        if matches!(self.state, FramerState::Header(_) | FramerState::Inside(_)) {
            self.counts.partial += 1;
        }
        self.counts.partial += self.described.len() as u64;
        self.described.clear();
        if let FramerState::Searching(search) = &self.state {
            self.counts.skipped_bytes += search.bytes.len() as u64;
        }
        if let Some(from) = self.lost.take() {
            self.unseen.push(UnseenTime { from, until: Instant::from_ns(u64::MAX) });
        }
        self.state = FramerState::Between;
    }

    fn absorb(
        &mut self,
        context: &mut ConnectionContext,
        mut offset: u64,
        mut bytes: &[u8],
        seen: Sighting,
        packets: &mut Vec<CapturedPacket>,
    ) {
        while !bytes.is_empty() {
            if let FramerState::Searching(search) = &mut self.state {
                search.push(offset, bytes, seen);
                return;
            }
            let used = self.step(context, offset, bytes, seen, packets);
            offset += used as u64;
            bytes = &bytes[used..];
        }
    }

    /// Consumes bytes up to the next change of state; may consume none when framing is lost.
    fn step(
        &mut self,
        context: &mut ConnectionContext,
        offset: u64,
        bytes: &[u8],
        seen: Sighting,
        packets: &mut Vec<CapturedPacket>,
    ) -> usize {
        match &mut self.state {
            FramerState::Between => {
                let start = Start { offset, seen, latest: seen };
                self.header(context, bytes, 0, bytes.len(), start, packets)
            }
            FramerState::Header(begun) => {
                let (begun, start) = &mut **begun;
                let before = begun.len();
                let mut joined = std::mem::take(begun);
                joined.extend_from_slice(&bytes[..bytes.len().min(5)]);
                let start = Start { latest: later(start.latest, seen), ..*start };
                self.header(context, &joined, before, bytes.len(), start, packets)
            }
            FramerState::Inside(partial) => {
                partial.start.latest = later(partial.start.latest, seen);
                let used = partial.consume(bytes, context.level.unwrap_or(DEFAULT_LEVEL));
                match used {
                    Some(used) => {
                        if partial.is_whole() {
                            self.complete(context, packets);
                        }
                        used
                    }
                    None => {
                        self.counts.skipped_bytes += u64::from(partial.fixed.header_len) + partial.gone;
                        self.counts.impossible += 1;
                        self.search();
                        0
                    }
                }
            }
            FramerState::Searching(_) => 0,
        }
    }

    /// Reads a fixed header of which `before` bytes came in earlier pieces; returns how many of the `fresh` ones
    /// were used.
    fn header(
        &mut self,
        context: &mut ConnectionContext,
        bytes: &[u8],
        before: usize,
        fresh: usize,
        start: Start,
        packets: &mut Vec<CapturedPacket>,
    ) -> usize {
        match Fixed::read(bytes) {
            FixedRead::Whole(fixed) if !resync::may_be(&fixed, self.to_server, context.level) => {
                self.lose(before)
            }
            FixedRead::Whole(fixed) => {
                let Some(wanted) = fixed.wanted(&[], context.level.unwrap_or(DEFAULT_LEVEL)) else {
                    return self.lose(before);
                };
                let partial = PartialPacket {
                    fixed,
                    start,
                    head: Vec::new(),
                    wanted,
                    rest: None,
                    gone: 0,
                    damaged: false,
                    after_hole: 0,
                };
                let whole = partial.is_whole();
                self.state = FramerState::Inside(Box::new(partial));
                if whole {
                    self.complete(context, packets);
                }
                usize::from(fixed.header_len) - before
            }
            FixedRead::TooShort => {
                self.state = FramerState::Header(Box::new((bytes.to_vec(), start)));
                fresh
            }
            FixedRead::Invalid => self.lose(before),
        }
    }

    /// Framing is lost; bytes of earlier pieces that looked like a header are gone.
    fn lose(&mut self, before: usize) -> usize {
        self.counts.skipped_bytes += before as u64;
        self.counts.impossible += 1;
        self.search();
        0
    }

    /// From here on packets are searched. What aliases stand for may change meanwhile.
    fn search(&mut self) {
        self.state = FramerState::Searching(Box::default());
        self.lost.get_or_insert(self.heard);
        self.aliases.clear();
    }

    fn complete(&mut self, context: &mut ConnectionContext, packets: &mut Vec<CapturedPacket>) {
        let FramerState::Inside(partial) = std::mem::replace(&mut self.state, FramerState::Between) else {
            return;
        };
        let clues = Clues { to_server: self.to_server, level: context.level, topic: None };
        if partial.damaged {
            self.counts.partial += 1;
            self.counts.skipped_bytes += partial.after_hole;
        } else if self.resynchronised && !resync::body_may_be(&partial.fixed, &partial.head, &clues) {
            self.counts.skipped_bytes += partial.fixed.total();
            self.counts.impossible += 1;
            return self.search();
        } else if let Some(level) = layout::proven_level(&partial.fixed, &partial.head) {
            context.level = Some(level);
        }
        let packet = partial.into_packet(context, &mut self.aliases);
        if let Some(from) = self.lost.take() {
            self.unseen.push(UnseenTime { from, until: packet.first.time });
        }
        self.heard = packet.complete.time;
        packets.push(packet);
    }

    fn miss(
        &mut self,
        context: &mut ConnectionContext,
        offset: u64,
        len: u64,
        packets: &mut Vec<CapturedPacket>,
    ) {
        self.decode(context, packets);
        let described = self.described.len();
        self.described.retain(|described| described.descriptor.end() <= offset);
        self.counts.partial += (described - self.described.len()) as u64;
        match &mut self.state {
            // The hole lies inside one packet: its end is still known.
            FramerState::Inside(partial) if partial.gone + len <= u64::from(partial.fixed.remaining) => {
                partial.gone += len;
                partial.damaged = true;
                partial.wanted = partial.head.len();
                if partial.is_whole() {
                    self.complete(context, packets);
                }
            }
            FramerState::Inside(_) | FramerState::Header(_) => {
                self.counts.partial += 1;
                self.search();
            }
            FramerState::Between => self.search(),
            FramerState::Searching(search) => {
                // What was gathered before the hole does not go on behind it.
                self.counts.skipped_bytes += search.bytes.len() as u64;
                self.state = FramerState::Searching(Box::default());
            }
        }
    }

    /// Searches what has been gathered until a packet is found and the rest framed, or more bytes are needed. Each
    /// round either passes a packet or ends, so rounds are bounded by bytes.
    fn decode(&mut self, context: &mut ConnectionContext, packets: &mut Vec<CapturedPacket>) {
        while let FramerState::Searching(search) = &mut self.state
            && !search.bytes.is_empty()
        {
            let clues =
                Clues { to_server: self.to_server, level: context.level, topic: context.topic.as_ref() };
            let Some(at) = search.find(&clues) else {
                self.counts.skipped_bytes += search.keep_needed();
                return;
            };
            let search = std::mem::take(search);
            self.counts.skipped_bytes += at as u64;
            self.state = FramerState::Between;
            self.resynchronised = true;
            for (offset, bytes, seen) in search.pieces_from(at) {
                self.absorb(context, offset, bytes, seen, packets);
            }
        }
    }

    fn describe(
        &mut self,
        offset: u64,
        len: u64,
        descriptors: &[PacketDescriptor],
        seen: Sighting,
        packets: &mut Vec<CapturedPacket>,
    ) {
        let end = offset + len;
        for described in &mut self.described {
            described.latest = later(described.latest, seen);
        }
        for descriptor in descriptors {
            let here = (offset..end).contains(&descriptor.offset);
            if here && self.described.is_empty() && descriptor.end() <= end {
                packets.push(descriptor.seen(seen, seen));
            } else if here && self.described.len() < DESCRIBED_MAX {
                self.described.push_back(Described { descriptor: *descriptor, first: seen, latest: seen });
            }
        }
        while let Some(&described) = self.described.front()
            && described.descriptor.end() <= end
        {
            self.described.pop_front();
            packets.push(described.into_packet());
        }
    }
}

impl PartialPacket {
    fn is_whole(&self) -> bool {
        self.gone == u64::from(self.fixed.remaining)
    }

    /// Takes bytes of this packet; `None` when they contradict its fixed header.
    fn consume(&mut self, bytes: &[u8], level: u8) -> Option<usize> {
        let available = (u64::from(self.fixed.remaining) - self.gone).min(bytes.len() as u64) as usize;
        let mut copied = 0;
        while self.head.len() < self.wanted && copied < available && !self.damaged {
            let part = (self.wanted - self.head.len()).min(available - copied);
            self.head.extend_from_slice(&bytes[copied..copied + part]);
            copied += part;
            if self.head.len() == self.wanted {
                self.wanted = self.fixed.wanted(&self.head, level)?.max(self.head.len());
            }
        }
        if copied < available && !self.damaged && self.fixed.kind == super::Kind::Publish {
            let mut rest = self.rest.take().unwrap_or_else(|| Box::new(self.rest_of_head(level)));
            rest.feed(&bytes[copied..available]);
            self.rest = Some(rest);
        }
        self.gone += available as u64;
        self.after_hole += if self.damaged { available as u64 } else { 0 };
        Some(available)
    }

    /// The digest of what `head` holds of the payload.
    fn rest_of_head(&self, level: u8) -> RestHasher {
        RestHasher::of_head(&self.head[layout::parts(&self.fixed, &self.head, level).payload])
    }

    fn into_packet(
        self,
        context: &mut ConnectionContext,
        aliases: &mut BTreeMap<u16, Arc<str>>,
    ) -> CapturedPacket {
        let level = context.level.unwrap_or(DEFAULT_LEVEL);
        let parts = layout::parts(&self.fixed, &self.head, level);
        let publish = self.fixed.kind == super::Kind::Publish;
        let mut topic =
            if publish { layout::topic(&self.head[parts.topic.clone()], &mut context.topic) } else { None };
        let (alias, expiry_s) =
            if publish { layout::alias_and_expiry(&self.head, &parts) } else { (None, None) };
        if let Some(alias) = alias {
            match &topic {
                Some(topic) => drop(aliases.insert(alias, Arc::clone(topic))),
                None => topic = aliases.get(&alias).cloned(),
            }
        }
        let head = if publish { &self.head[parts.payload] } else { &[][..] };
        let payload_rest = match self.rest {
            Some(rest) => Some(Box::new(rest.finish())),
            None => PayloadRest::of_long(head),
        };
        let is_whole = head.len() == parts.lengths.payload as usize && !self.damaged;
        let is_text =
            is_whole && head.len() <= PAYLOAD_TEXT_MAX && head.first().is_some_and(layout::begins_text);
        let connect = match self.fixed.kind {
            super::Kind::Connect => connect::read(&self.head).map(Box::new),
            _ => None,
        };
        let reason = match publish || self.damaged {
            true => None,
            false => reason::of(self.fixed.kind, Version::from_level(level), &self.head),
        };
        let body = keeps_body(self.fixed.kind).then(|| self.head.as_slice().into());
        CapturedPacket {
            kind: self.fixed.kind.into(),
            qos: self.fixed.qos(),
            dup: publish && self.fixed.flags & 8 != 0,
            retain: publish && self.fixed.flags & 1 != 0,
            id: parts.id,
            lengths: parts.lengths,
            start: self.start.offset,
            end: self.start.offset + self.fixed.total(),
            first: self.start.seen,
            complete: self.start.latest,
            level,
            topic,
            topic_alias: alias,
            message_expiry_s: expiry_s,
            payload_head: PayloadHead::new(head),
            payload_rest,
            payload_text: is_text.then(|| head.into()),
            connect,
            reason,
            body,
            damaged: self.damaged,
            message: 0,
        }
    }
}

impl MqttResync {
    fn push(&mut self, offset: u64, bytes: &[u8], seen: Sighting) {
        if self.bytes.is_empty() {
            self.offset = offset;
            self.pieces.clear();
            self.candidates = ResyncCandidates::default();
        }
        self.pieces.push((self.bytes.len() as i64, seen));
        self.bytes.extend_from_slice(bytes);
    }

    fn find(&mut self, clues: &Clues<'_>) -> Option<usize> {
        let pieces = &self.pieces;
        let is_start = |at: usize| pieces.binary_search_by_key(&(at as i64), |(start, _)| *start).is_ok();
        self.candidates.find(&self.bytes, is_start, clues)
    }

    /// Gives up the bytes before the first that may still start a packet; returns how many these are.
    fn keep_needed(&mut self) -> u64 {
        let excess = self.candidates.needed_from(self.bytes.len());
        self.bytes.drain(..excess);
        self.candidates.shift(excess);
        self.offset += excess as u64;
        for (at, _) in &mut self.pieces {
            *at -= excess as i64;
        }
        let covering = self.pieces.iter().rposition(|(at, _)| *at <= 0).unwrap_or(0);
        self.pieces.drain(..covering);
        excess as u64
    }

    /// What has been gathered from position `from` on: stream offset, bytes, where they were seen.
    fn pieces_from(&self, from: usize) -> impl Iterator<Item = (u64, &[u8], Sighting)> {
        let ends = self.pieces.iter().skip(1).map(|(at, _)| *at as usize).chain([self.bytes.len()]);
        self.pieces.iter().zip(ends).filter(move |(_, end)| *end > from).map(move |(&(at, seen), end)| {
            let start = (at.max(0) as usize).max(from);
            (self.offset + start as u64, &self.bytes[start..end], seen)
        })
    }
}

/// Packets that say who subscribes to what, and why something was refused or ended. They are few.
fn keeps_body(kind: super::Kind) -> bool {
    use super::Kind::{Connack, Disconnect, Suback, Subscribe, Unsuback, Unsubscribe};
    matches!(kind, Connack | Subscribe | Suback | Unsubscribe | Unsuback | Disconnect)
}

/// The later of two sightings: a packet is whole when its last byte arrives, whichever byte that is.
fn later(a: Sighting, b: Sighting) -> Sighting {
    if b.frame > a.frame { b } else { a }
}

impl Described {
    fn into_packet(self) -> CapturedPacket {
        self.descriptor.seen(self.first, self.latest)
    }
}
