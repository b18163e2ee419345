//! What can be said of a TCP segment from the segments before it, as seen where the capture was taken.
//!
//! The marks have the names and meanings of Wireshark 4.0's `tcp.analysis.*` fields (User's Guide §7.5, "TCP
//! Analysis"), so that two programs can be compared frame by frame. They are judgements about what a capture
//! shows, not about what happened at the sender: a segment lost before the capture point is "lost" here, and its
//! only copy that was captured is new data, not a retransmission.
//!
//! What it does not judge: multipath TCP, and bytes in flight after 10 000 unacknowledged segments.

use mqttlab_units::{Duration, Instant};

use super::sequence::after;
use super::unacknowledged::Unacknowledged;
use crate::marks::Marks;
use crate::segment::{Bits, TcpHeader};

/// What a segment turned out to be.
#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentVerdict {
    /// Its marks.
    pub marks: Marks,
    /// From the data segment that this one acknowledges exactly, to this one.
    pub ack_rtt: Option<Duration>,
    /// Whether `ack_rtt` is of a segment that was sent more than once, which says nothing of the round trip
    /// (Karn's algorithm, RFC 6298 §3).
    pub ack_rtt_ambiguous: bool,
    /// Bytes sent and not yet acknowledged, after this segment; set for segments with payload.
    pub bytes_in_flight: Option<u32>,
}

/// What is remembered of one direction of a connection.
#[derive(Debug, Default)]
pub(super) struct DirectionHistory {
    /// Sequence number of the first segment.
    pub(super) base: Option<u32>,
    /// One past the highest sequence number seen, and when that was.
    pub(super) next: Option<u32>,
    next_time: Instant,
    /// The highest sequence number that an acknowledgment may be expected for.
    highest_expected_ack: Option<u32>,
    /// Whether it has repeated itself, or has been acknowledged beyond everything seen of it, since it last
    /// acknowledged anything new. Acknowledgments that run ahead of it are then marked no more.
    stands_still: bool,
    last_ack: Option<u32>,
    last_ack_time: Instant,
    window: Option<u16>,
    window_scale: Scale,
    duplicate_acks: u32,
    /// Bytes above the acknowledgment number that its last segment reported as received.
    sacked_bytes: u32,
    last_marks: Marks,
    unacknowledged: Unacknowledged,
    /// Whether bytes in flight cannot be told, because a hole in the capture waits for an acknowledgment.
    in_flight_unknown: bool,
}

/// What is known of a direction's window scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Scale {
    /// Its SYN was not captured.
    #[default]
    Unknown,
    /// Its SYN carried no scale, or the other side's did not.
    None,
    Shift(u8),
}

const FAST_RETRANSMISSION_WITHIN: Duration = Duration::from_ms(20);
/// Out of order, unless the handshake showed a round-trip time.
const OUT_OF_ORDER_WITHIN: Duration = Duration::from_ms(3);
/// Two equal acknowledgments after the first; a third may be missing from the capture.
const FAST_RETRANSMISSION_DUPLICATES: u32 = 2;

const SYN_FIN_RST: Bits = Bits::SYN.and(Bits::FIN).and(Bits::RST);
const SYN_FIN: Bits = Bits::SYN.and(Bits::FIN);

/// Judges a segment from `forward`'s sender and remembers it.
pub(super) fn judge(
    forward: &mut DirectionHistory,
    reverse: &mut DirectionHistory,
    initial_rtt: Option<Duration>,
    segment: &TcpHeader,
) -> SegmentVerdict {
    forward.learn(reverse, segment);
    let view = View { segment, ack: acknowledgment(segment) };
    let mut marks = view.window_marks(forward, reverse);
    if view.ack != forward.last_ack {
        forward.duplicate_acks = 0;
        forward.stands_still = false;
    }
    forward.stands_still |= marks.has(Marks::DUPLICATE_ACK);
    if view.acks_unseen(reverse) {
        // With a hole in the capture the reason is known; without one, saying it once is enough.
        let without_hole = reverse.highest_expected_ack == reverse.next;
        if !(without_hole && reverse.stands_still) {
            marks.set(Marks::ACK_LOST_SEGMENT);
        }
        reverse.stands_still |= without_hole;
        reverse.highest_expected_ack = reverse.next;
    }
    if view.occupies() && !marks.has(Marks::KEEP_ALIVE) {
        marks.set(view.order_marks(forward, reverse, initial_rtt));
    }
    let mut verdict = SegmentVerdict { marks, ..SegmentVerdict::default() };
    forward.remember(&view, marks);
    // The field is read without its flag too, as Wireshark does: a client's repeated SYN, whose field is zero, makes
    // the server's SYN before it old whenever that one's number lies in the upper half of the sequence space.
    if let Some(acked) = reverse.unacknowledged.acknowledge(segment.acknowledgment) {
        verdict.ack_rtt = segment.time.checked_since(acked.sent);
        verdict.ack_rtt_ambiguous = acked.resent;
    }
    if segment.payload_len > 0 && !forward.in_flight_unknown {
        // The FIN takes up a sequence number, but is no byte in flight.
        let fin = u32::from(segment.bits.has(Bits::FIN));
        let sacked = reverse.sacked_bytes;
        let span = forward.unacknowledged.span().map(|span| span.saturating_sub(sacked + fin));
        verdict.bytes_in_flight = span.filter(|&bytes| bytes > 0);
    }
    verdict
}

fn acknowledgment(segment: &TcpHeader) -> Option<u32> {
    segment.bits.has(Bits::ACK).then_some(segment.acknowledgment)
}

impl DirectionHistory {
    fn learn(&mut self, reverse: &mut DirectionHistory, segment: &TcpHeader) {
        if self.base.is_none() {
            self.base = Some(segment.sequence);
        }
        if segment.bits.has(Bits::SYN) {
            self.window_scale = segment.options.window_scale.map_or(Scale::None, Scale::Shift);
            // Scaling is in force only when both sides offer it.
            if self.window_scale == Scale::None || reverse.window_scale == Scale::None {
                (self.window_scale, reverse.window_scale) = (Scale::None, Scale::None);
            }
        }
        if segment.bits.has(Bits::ACK) {
            reverse.in_flight_unknown = false;
        }
        let blocks = segment.options.sack().iter();
        self.sacked_bytes = blocks.fold(0, |sum, &(left, right)| sum.wrapping_add(right.wrapping_sub(left)));
    }

    fn remember(&mut self, view: &View<'_>, marks: Marks) {
        let segment = view.segment;
        let next = view.next();
        if view.occupies() {
            self.unacknowledged.push(segment.sequence, next, segment.time);
        }
        if marks.has(Marks::LOST_SEGMENT) {
            self.in_flight_unknown = true;
        }
        if !marks.has(Marks::ZERO_WINDOW_PROBE) {
            if self.next.is_none_or(|highest| after(next, highest)) {
                self.next = Some(next);
                self.next_time = segment.time;
            }
            if self.highest_expected_ack.is_none_or(|highest| highest == segment.sequence) {
                self.highest_expected_ack = self.next;
            }
        }
        self.window = Some(segment.window);
        self.last_ack = view.ack;
        self.last_ack_time = segment.time;
        self.last_marks = marks;
    }

    /// The right edge of the window that this side offers, when its scale is known.
    fn window_edge(&self) -> Option<u32> {
        let shift = match self.window_scale {
            Scale::Unknown => return None,
            Scale::None => 0,
            Scale::Shift(shift) => shift,
        };
        Some(self.last_ack?.wrapping_add(u32::from(self.window?) << shift))
    }
}

/// A segment and what of it is asked again and again.
struct View<'a> {
    segment: &'a TcpHeader,
    ack: Option<u32>,
}

impl View<'_> {
    /// Whether it takes up sequence space.
    fn occupies(&self) -> bool {
        self.segment.payload_len > 0 || self.segment.bits.any(SYN_FIN)
    }

    fn next(&self) -> u32 {
        let end = self.segment.sequence.wrapping_add(self.segment.payload_len);
        if self.segment.bits.any(SYN_FIN) { end.wrapping_add(1) } else { end }
    }

    fn plain(&self) -> bool {
        !self.segment.bits.any(SYN_FIN_RST)
    }

    /// The marks that compare a segment with what is expected next and with the windows.
    fn window_marks(&self, forward: &mut DirectionHistory, reverse: &DirectionHistory) -> Marks {
        let mut marks = Marks::default();
        let segment = self.segment;
        let expected = forward.next == Some(segment.sequence);
        if segment.payload_len == 1 && expected && reverse.window == Some(0) {
            return Marks::ZERO_WINDOW_PROBE;
        }
        if segment.window == 0 && self.plain() {
            marks.set(Marks::ZERO_WINDOW);
        }
        if !segment.bits.has(Bits::RST) && forward.next.is_some_and(|next| after(segment.sequence, next)) {
            marks.set(Marks::LOST_SEGMENT);
        }
        let one_before = forward.next.is_some_and(|next| segment.sequence == next.wrapping_sub(1));
        if segment.payload_len <= 1 && one_before && self.plain() {
            marks.set(Marks::KEEP_ALIVE);
        }
        if segment.payload_len > 0 && self.plain() {
            let end = segment.sequence.wrapping_add(segment.payload_len);
            if reverse.window_edge() == Some(end) {
                marks.set(Marks::WINDOW_FULL);
            }
        }
        if segment.payload_len == 0 && expected && self.plain() && self.ack == forward.last_ack {
            self.repeated_ack_marks(forward, reverse, &mut marks);
        }
        marks
    }

    /// The marks of a segment without data that repeats sequence and acknowledgment number.
    fn repeated_ack_marks(
        &self,
        forward: &mut DirectionHistory,
        reverse: &DirectionHistory,
        marks: &mut Marks,
    ) {
        let window = self.segment.window;
        let same_window = forward.window == Some(window);
        if window != 0 && !same_window {
            marks.set(Marks::WINDOW_UPDATE);
        }
        if window != 0 && same_window && reverse.last_marks.has(Marks::KEEP_ALIVE) {
            marks.set(Marks::KEEP_ALIVE_ACK);
        } else if window == 0 && same_window && reverse.last_marks.has(Marks::ZERO_WINDOW_PROBE) {
            marks.set(Marks::ZERO_WINDOW_PROBE_ACK);
        } else if window != 0 && same_window {
            forward.duplicate_acks += 1;
            marks.set(Marks::DUPLICATE_ACK);
        }
    }

    fn acks_unseen(&self, reverse: &DirectionHistory) -> bool {
        match (self.ack, reverse.highest_expected_ack) {
            (Some(ack), Some(highest)) => after(ack, highest),
            _ => false,
        }
    }

    /// Retransmission of some kind, out of order, or neither.
    fn order_marks(
        &self,
        forward: &DirectionHistory,
        reverse: &DirectionHistory,
        initial_rtt: Option<Duration>,
    ) -> Marks {
        let segment = self.segment;
        let end = segment.sequence.wrapping_add(segment.payload_len);
        if segment.payload_len > 0 && reverse.last_ack.is_some_and(|ack| !after(end, ack)) {
            return Marks(Marks::RETRANSMISSION.0 | Marks::SPURIOUS_RETRANSMISSION.0);
        }
        let Some(next) = forward.next else { return Marks::default() };
        // One byte below the expected number with more than that byte: it continues after a zero-window probe.
        let continues_probe = segment.payload_len > 1 && segment.sequence == next.wrapping_sub(1);
        if !after(next, segment.sequence) || continues_probe {
            return Marks::default();
        }
        if self.is_fast_retransmission(reverse) {
            return Marks(Marks::RETRANSMISSION.0 | Marks::FAST_RETRANSMISSION.0);
        }
        let threshold = initial_rtt.filter(|rtt| !rtt.is_zero()).unwrap_or(OUT_OF_ORDER_WITHIN);
        let soon = within(segment.time, forward.next_time, threshold);
        if soon && next != self.next() {
            return Marks::OUT_OF_ORDER;
        }
        Marks::RETRANSMISSION
    }

    fn is_fast_retransmission(&self, reverse: &DirectionHistory) -> bool {
        reverse.duplicate_acks >= FAST_RETRANSMISSION_DUPLICATES
            && reverse.last_ack == Some(self.segment.sequence)
            && within(self.segment.time, reverse.last_ack_time, FAST_RETRANSMISSION_WITHIN)
    }
}

/// Whether `time` is less than `limit` after `earlier`. A capture's clock may run back between frames.
fn within(time: Instant, earlier: Instant, limit: Duration) -> bool {
    time.checked_since(earlier).is_none_or(|elapsed| elapsed < limit)
}
