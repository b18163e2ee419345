//! One direction of a TCP connection as a stream of bytes, whatever order its segments came in.
//!
//! ```text
//!            delivered            hole      pending       hole     pending
//!   ├──────────────────────────┤··········├──────────┤·········├────────────┤
//!   0                         next       (kept until the hole before is filled or given up)
//! ```
//!
//! Offsets count from the first byte after the SYN, or from the first byte captured. Bytes that came twice are
//! delivered once, the first copy. A hole is given up, as a [`StreamPiece`] without data, when the receiver has
//! acknowledged it and [`HOLE_PATIENCE`] more segments did not fill it, when too much waits behind it, or at the
//! end. Memory is bounded by [`PENDING_BYTES_MAX`] and [`PENDING_MAX`], whatever the input.
//!
//! What it does not model: urgent data, and bytes before a start in mid-stream, which are counted and dropped.

use std::collections::VecDeque;

use mqttlab_units::{Instant, RangeSet};

use crate::descriptor::PacketDescriptor;

/// Bytes that may wait behind a hole.
pub const PENDING_BYTES_MAX: u64 = 4 << 20;
/// Segments that may wait behind a hole.
pub const PENDING_MAX: usize = 4_096;
/// Duplicate acknowledgments that show that a receiver lacks a hole, and not only the capture: the first may have been on
/// its way before. A selective one (RFC 2018) shows it alone.
const DUPLICATE_ACKS_MIN: u32 = 2;
/// How many segments an acknowledged hole outlives: captures swap frames, but not by much.
pub const HOLE_PATIENCE: u32 = 3;
/// The largest window there is (RFC 7323 §2.3).
const WINDOW_MAX: u32 = 1 << 30;
/// Ranges below the start that are remembered, to count each byte once.
const BEFORE_MAX: usize = 256;

/// What a segment carries, as far as the reader of the stream needs it.
#[derive(Clone, Copy, Debug)]
pub enum SegmentPayload<'a> {
    /// The captured bytes; fewer than the segment's length when the snap length cut them.
    Bytes(&'a [u8]),
    /// The MQTT packets whose first byte lies in the segment, from a simulator that moves no bytes.
    Packets(&'a [PacketDescriptor]),
}

/// Where a piece of the stream was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// When.
    pub time: Instant,
    /// In which frame, as numbered by the caller.
    pub frame: u64,
}

impl Sighting {
    /// Of what nobody has seen.
    pub const NEVER: Sighting = Sighting { time: Instant::ZERO, frame: 0 };
}

/// The next part of the stream, in order.
#[derive(Debug)]
pub enum StreamPiece<'a> {
    /// Data that was seen.
    Data {
        /// Stream offset of its first byte.
        offset: u64,
        /// How many bytes of the stream it is.
        len: u64,
        /// The bytes or the packets that start in them.
        payload: SegmentPayload<'a>,
        /// Where it was first seen.
        seen: Sighting,
    },
    /// Bytes that the capture does not have.
    Missing {
        /// Stream offset of the first of them.
        offset: u64,
        /// How many.
        len: u64,
    },
}

/// What one segment added to the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    /// Bytes of the stream that had not been seen before.
    pub new_bytes: u64,
}

#[derive(Debug)]
struct Pending {
    offset: u64,
    len: u64,
    seen: Sighting,
    data: Owned,
}

#[derive(Debug)]
enum Owned {
    Bytes(Vec<u8>),
    Packets(Vec<PacketDescriptor>),
}

/// One direction's stream.
#[derive(Debug, Default)]
pub struct Reassembler {
    /// Sequence number that `next` stands at; `None` before the first segment.
    sequence: Option<u32>,
    next: u64,
    acknowledged: u64,
    /// Behind the last byte that headers tell of, captured or not.
    reached: u64,
    /// What waits behind holes; nothing before the first hole.
    waiting: Option<Box<OutOfOrderData>>,
    /// What lies below the start, as distances from it.
    before: RangeSet,
}

/// What waits behind holes; there is something.
#[derive(Debug, Default)]
struct OutOfOrderData {
    /// What the pieces cover together.
    covered: RangeSet,
    pending: VecDeque<Pending>,
    bytes: u64,
    /// Segments since the last hole was filled or given up.
    segments: u32,
    /// Acknowledgments since then of what lies before the hole, and no more.
    duplicate_acks: u32,
}

impl Reassembler {
    /// The sender's SYN: the stream starts after it.
    pub fn start(&mut self, sequence: u32) {
        if self.sequence.is_none() {
            self.sequence = Some(sequence.wrapping_add(1));
        }
    }

    /// Offset of the next byte to be delivered.
    pub fn offset(&self) -> u64 {
        self.next
    }

    /// Whether a sequence number lies in front of the stream's first byte, and of the SYN before it.
    pub fn is_before_start(&self, sequence: u32) -> bool {
        let Some(expected) = self.sequence else { return false };
        let back = u64::from(expected.wrapping_sub(sequence));
        // Of a long stream all numbers are its own.
        self.next < u64::from(WINDOW_MAX) && back > self.next + 1 && back < 1 << 31
    }

    /// Takes `len` bytes of the stream at `sequence` and hands on what is in order now.
    pub fn push(
        &mut self,
        sequence: u32,
        len: u32,
        payload: SegmentPayload<'_>,
        seen: Sighting,
        sink: &mut dyn FnMut(StreamPiece<'_>),
    ) -> Pushed {
        // What the snap length cut off is a hole until another copy fills it.
        let len = match payload {
            SegmentPayload::Bytes(bytes) => u64::from(len).min(bytes.len() as u64),
            SegmentPayload::Packets(_) => u64::from(len),
        };
        if len == 0 {
            return Pushed::default();
        }
        let expected = *self.sequence.get_or_insert(sequence);
        let ahead = i64::from(sequence.wrapping_sub(expected) as i32);
        let mut pushed = Pushed::default();
        let skip = (-ahead).max(0) as u64;
        if skip > self.next {
            pushed.new_bytes += self.count_before(skip - self.next, len);
        }
        if skip < len {
            let start = self.next + ahead.max(0) as u64;
            let part = slice(payload, skip, len - skip);
            pushed.new_bytes += self.accept(start, len - skip, part, seen, sink);
        }
        if let Some(waiting) = &mut self.waiting {
            waiting.segments = waiting.segments.saturating_add(1);
            self.give_up_if_due(sink);
        }
        pushed
    }

    /// A segment's header says that the stream was sent up to here, whether or not its bytes were captured.
    pub fn reached(&mut self, sequence: u32) {
        let Some(expected) = self.sequence else { return };
        let ahead = sequence.wrapping_sub(expected);
        // No window is larger (RFC 7323 §2.3): such a number is not of this stream.
        if ahead <= WINDOW_MAX {
            self.reached = self.reached.max(self.next + u64::from(ahead));
        }
    }

    /// Whether something waits behind a hole, which an acknowledgment may give up.
    pub fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// The receiver has acknowledged everything below `ack`, and selectively something `behind` a hole there.
    pub fn acknowledge(&mut self, ack: u32, behind: bool, sink: &mut dyn FnMut(StreamPiece<'_>)) {
        let Some(expected) = self.sequence else { return };
        let ahead = ack.wrapping_sub(expected) as i32;
        if ahead > 0 {
            self.acknowledged = self.acknowledged.max(self.next + ahead as u64);
            self.give_up_if_due(sink);
        } else if ahead == 0
            && let Some(waiting) = &mut self.waiting
        {
            let shown = if behind { DUPLICATE_ACKS_MIN } else { 1 };
            waiting.duplicate_acks = waiting.duplicate_acks.saturating_add(shown);
        }
    }

    /// The capture is over: everything that waits is delivered, its holes as missing. A hole behind the last
    /// byte is reported too, when the receiver has acknowledged it.
    ///
    /// A hole of which the receiver says that it lacks it is a loss of the network that was not repaired. Neither the hole
    /// nor what waits behind it has reached the program at the receiver.
    pub fn finish(&mut self, sink: &mut dyn FnMut(StreamPiece<'_>)) {
        while let Some(hole) = self.hole() {
            if self.is_lacking(hole) {
                self.waiting = None;
                return;
            }
            self.skip(hole, sink);
        }
        // An acknowledged FIN takes one number, and no control packet is that short.
        let acknowledged = self.acknowledged.min(self.next + u64::from(WINDOW_MAX));
        // What a receiver that acknowledges has not acknowledged may have been lost on the way.
        let end = if self.acknowledged > 0 { acknowledged } else { self.reached };
        if end > self.next + 1 {
            self.skip(end - self.next, sink);
        }
    }

    /// Whether the receiver has answered what waits behind a hole with duplicate acknowledgments (RFC 5681 §3.2), and has
    /// never acknowledged the hole.
    fn is_lacking(&self, hole: u64) -> bool {
        let answers = self.waiting.as_ref().map_or(0, |waiting| waiting.duplicate_acks);
        answers >= DUPLICATE_ACKS_MIN && self.acknowledged < self.next + hole
    }

    /// How many bytes are missing before what waits, if anything does.
    fn hole(&self) -> Option<u64> {
        self.waiting.as_ref()?.pending.front().map(|first| first.offset - self.next)
    }

    fn accept(
        &mut self,
        start: u64,
        len: u64,
        payload: SegmentPayload<'_>,
        seen: Sighting,
        sink: &mut dyn FnMut(StreamPiece<'_>),
    ) -> u64 {
        if start == self.next && self.waiting.is_none() {
            self.deliver(len, payload, seen, sink);
            return len;
        }
        let added = self.store(start, len, payload, seen);
        self.drain(sink);
        added
    }

    /// Keeps those parts that no pending piece has yet.
    fn store(&mut self, start: u64, len: u64, payload: SegmentPayload<'_>, seen: Sighting) -> u64 {
        let waiting = self.waiting.get_or_insert_default();
        let mut added = 0;
        for gap in waiting.covered.gaps(start..start + len) {
            let len = gap.end - gap.start;
            let data = slice(payload, gap.start - start, len).to_owned();
            let index = waiting.pending.partition_point(|pending| pending.offset < gap.start);
            waiting.pending.insert(index, Pending { offset: gap.start, len, seen, data });
            added += len;
        }
        waiting.covered.insert(start..start + len);
        waiting.bytes += added;
        added
    }

    fn drain(&mut self, sink: &mut dyn FnMut(StreamPiece<'_>)) {
        while let Some(waiting) = &mut self.waiting {
            if waiting.pending.front().is_none_or(|first| first.offset > self.next) {
                break;
            }
            let Some(piece) = waiting.pending.pop_front() else { break };
            waiting.bytes -= piece.len;
            waiting.covered.take_from(piece.offset);
            let payload = match &piece.data {
                Owned::Bytes(bytes) => SegmentPayload::Bytes(bytes),
                Owned::Packets(packets) => SegmentPayload::Packets(packets),
            };
            self.deliver(piece.len, payload, piece.seen, sink);
        }
        if self.waiting.as_ref().is_some_and(|waiting| waiting.pending.is_empty()) {
            self.waiting = None;
        }
    }

    fn deliver(
        &mut self,
        len: u64,
        payload: SegmentPayload<'_>,
        seen: Sighting,
        sink: &mut dyn FnMut(StreamPiece<'_>),
    ) {
        sink(StreamPiece::Data { offset: self.next, len, payload, seen });
        self.advance(len);
    }

    fn give_up_if_due(&mut self, sink: &mut dyn FnMut(StreamPiece<'_>)) {
        while let (Some(waiting), Some(hole)) = (&self.waiting, self.hole()) {
            let received = self.acknowledged >= self.next + hole && waiting.segments > HOLE_PATIENCE;
            let overfull = waiting.bytes > PENDING_BYTES_MAX || waiting.pending.len() > PENDING_MAX;
            if !received && !overfull {
                return;
            }
            self.skip(hole, sink);
        }
    }

    fn skip(&mut self, hole: u64, sink: &mut dyn FnMut(StreamPiece<'_>)) {
        if hole > 0 {
            sink(StreamPiece::Missing { offset: self.next, len: hole });
            self.advance(hole);
        }
        self.drain(sink);
    }

    fn advance(&mut self, len: u64) {
        self.next += len;
        self.sequence = self.sequence.map(|sequence| sequence.wrapping_add(len as u32));
        if let Some(waiting) = &mut self.waiting {
            waiting.segments = 0;
            waiting.duplicate_acks = 0;
        }
    }

    /// Counts what lies `back` bytes before the start of the stream, each byte once.
    fn count_before(&mut self, back: u64, len: u64) -> u64 {
        // A distance counts from the start downwards: the first byte before it has distance 0.
        let bytes = back.saturating_sub(len)..back;
        let fresh = self.before.gaps(bytes.clone()).map(|gap| gap.end - gap.start).sum();
        if fresh > 0 && self.before.len() < BEFORE_MAX {
            self.before.insert(bytes);
        }
        fresh
    }
}

impl SegmentPayload<'_> {
    fn to_owned(self) -> Owned {
        match self {
            SegmentPayload::Bytes(bytes) => Owned::Bytes(bytes.to_vec()),
            SegmentPayload::Packets(packets) => Owned::Packets(packets.to_vec()),
        }
    }
}

/// The part of `len` bytes from `skip` on. Packet descriptors carry stream offsets of their own, and one that is
/// out of a part's range is ignored by the decoder, so they need no cutting.
fn slice(payload: SegmentPayload<'_>, skip: u64, len: u64) -> SegmentPayload<'_> {
    match payload {
        SegmentPayload::Bytes(bytes) => SegmentPayload::Bytes(&bytes[skip as usize..(skip + len) as usize]),
        packets => packets,
    }
}
