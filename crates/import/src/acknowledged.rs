//! How far the receiver of a direction has acknowledged it, and which copies of repeated segments reached it.
//!
//! ```text
//!   capture point ──copy 1──✗                       receiver
//!                 ──copy 2─────────────────────────►
//!                 ◄─────────────────────────ACK────   covers the bytes: copy 2 is the one that arrived
//! ```
//!
//! An acknowledgment carries the time stamp of the copy that filled the gap (RFC 7323 §4.3), unless another segment overtook that copy:
//! Linux takes no time stamp from a segment whose own acknowledgment is an old one. Then, and without time stamps, the last copy counts
//! whose round trip is no shorter than others were. A receiver drops a copy that is older than a time stamp it has echoed (PAWS, RFC
//! 7323 §5.3). A duplicate that the receiver reports (RFC 2883) is no first arrival.
//!
//! What it does not model: data that a receiver has acknowledged selectively and dropped again (RFC 2018 §8).

use std::collections::VecDeque;
use std::ops::Range;

use mqttlab_capture::analysis::after;
use mqttlab_units::{Duration, Instant};

/// A segment with payload, at its place in the stream.
#[derive(Clone, Copy, Debug)]
pub struct SegmentCopy {
    /// Offset of its first byte.
    pub start: u64,
    /// Offset behind its last byte.
    pub end: u64,
    /// When it was captured.
    pub time: Instant,
    /// Its time stamp (RFC 7323 §3.2).
    pub stamp: Option<u32>,
    /// Whether the stream had reached beyond its first byte before.
    pub is_repeated: bool,
    /// When another capture saw it nearer to its receiver, the last one.
    pub again: Option<Instant>,
}

/// An acknowledgment of the receiver's, in offsets of the stream.
#[derive(Clone, Debug)]
pub struct Acknowledgment {
    /// Everything before this has arrived.
    pub upto: u64,
    /// When it was captured.
    pub at: Instant,
    /// The time stamp that it echoes.
    pub echo: Option<u32>,
    /// Bytes that it reports as received twice.
    pub duplicate: Option<Range<u64>>,
}

/// How the copies of repeated segments that arrived were told from the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivedCopies {
    /// By the echoed time stamp.
    pub by_time_stamp: u64,
    /// By the round trip.
    pub by_round_trip: u64,
    /// Segments between others that two captures hold, and that one of both lacks.
    pub lacking: u64,
}

/// What the receiver of one direction has acknowledged.
#[derive(Default)]
pub struct ReceiverProgress {
    /// Whether any of its acknowledgments was captured.
    is_heard: bool,
    acknowledged: u64,
    /// The latest time stamp that it has echoed.
    echoed: Option<u32>,
    /// Segments that are not acknowledged, in the order of their sending.
    copies: VecDeque<SegmentCopy>,
    /// How many of them repeat others.
    repeated: usize,
    /// Bytes that arrived by a later copy than the first, and when that was captured.
    repairs: VecDeque<(Range<u64>, Instant)>,
    /// The shortest time from a segment to its acknowledgment.
    round_trip_least: Option<Duration>,
    /// Whether segments pass a second point of capture, and how many did not since the last one that did.
    passes_two: bool,
    passed_one: u64,
}

impl ReceiverProgress {
    /// A segment passes the capture point.
    pub fn sent(&mut self, copy: SegmentCopy) {
        if copy.end <= self.acknowledged {
            return;
        }
        self.repeated += usize::from(copy.is_repeated);
        self.copies.push_back(copy);
        if self.copies.len() > COPIES_MAX
            && let Some(oldest) = self.copies.pop_front()
        {
            self.repeated -= usize::from(oldest.is_repeated);
        }
    }

    /// A copy passes another point of capture.
    pub fn seen_again(
        &mut self,
        bytes: Range<u64>,
        stamp: Option<u32>,
        at: Instant,
        arrived: &mut ArrivedCopies,
    ) {
        let is_same = |copy: &&mut SegmentCopy| {
            copy.start == bytes.start && copy.end == bytes.end && copy.stamp == stamp && copy.time <= at
        };
        if let Some(copy) = self.copies.iter_mut().rev().find(is_same) {
            copy.again = copy.again.max(Some(at));
        } else if bytes.end <= self.acknowledged {
            // A mirror port shows some frames behind their acknowledgments.
            let count = if self.passed_one > 0 { &mut self.passed_one } else { &mut arrived.lacking };
            *count = count.saturating_sub(1);
        }
    }

    /// The receiver has sent something that acknowledges.
    pub fn hear(&mut self) {
        self.is_heard = true;
    }

    /// The receiver acknowledges.
    pub fn acknowledge(&mut self, ack: &Acknowledgment, arrived: &mut ArrivedCopies) {
        if ack.upto > self.acknowledged {
            self.advance(ack, arrived);
        }
        let is_later = |echo: &u32| self.echoed.is_none_or(|echoed| after(*echo, echoed));
        self.echoed = ack.echo.filter(is_later).or(self.echoed);
    }

    fn advance(&mut self, ack: &Acknowledgment, arrived: &mut ArrivedCopies) {
        let from = std::mem::replace(&mut self.acknowledged, ack.upto);
        if self.repeated > 0 {
            self.repair(from, ack, arrived);
            self.note_single_places(ack.upto, arrived);
            self.copies.retain(|copy| copy.end > ack.upto);
            self.repeated = self.copies.iter().filter(|copy| copy.is_repeated).count();
            return;
        }
        let (mut last, mut nearer) = (None, None);
        while let Some(copy) = self.copies.pop_front_if(|copy| copy.end <= ack.upto) {
            last = Some(copy.time);
            self.note_places(&copy, arrived);
            // Nearer to the receiver a segment may have come behind a later one, which waited for it.
            nearer = nearer.max(copy.again);
            if let Some(again) = nearer {
                self.note_repair(copy.start..copy.end, again);
            }
        }
        let took = last.and_then(|last| ack.at.checked_since(last));
        self.round_trip_least = self.round_trip_least.into_iter().chain(took).min();
    }

    /// Finds the repeated copies that arrived first.
    fn repair(&mut self, from: u64, ack: &Acknowledgment, arrived: &mut ArrivedCopies) {
        let repeated: Vec<SegmentCopy> =
            self.copies.iter().filter(|copy| copy.is_repeated).copied().collect();
        for repeated in repeated {
            let bytes = repeated.start.max(from)..repeated.end.min(ack.upto);
            if bytes.is_empty() || self.repairs.iter().any(|(known, _)| *known == (bytes.start..ack.upto)) {
                continue;
            }
            let overlaps =
                |copy: &&SegmentCopy| copy.start < bytes.end && copy.end > bytes.start && copy.time <= ack.at;
            let mut copies: Vec<SegmentCopy> = self.copies.iter().filter(overlaps).copied().collect();
            let is_double = |bytes: &Range<u64>| {
                ack.duplicate
                    .as_ref()
                    .is_some_and(|twice| twice.start <= bytes.start && bytes.start < twice.end)
            };
            if is_double(&bytes) && copies.len() > 1 {
                copies.pop();
            }
            let Some(copy) = self.first_arrival(&copies, ack, bytes.start == from, arrived) else { continue };
            if copy.time > copies[0].time {
                self.note_repair(bytes.start..ack.upto, copy.again.unwrap_or(copy.time));
            }
        }
        let arrived = |copy: &&SegmentCopy| !copy.is_repeated && copy.end <= ack.upto;
        let passed = self.copies.iter().filter(arrived);
        let mut nearer = None;
        let passed = passed.filter_map(|copy| {
            nearer = nearer.max(copy.again);
            Some((copy.start..copy.end, nearer?))
        });
        let passed: Vec<_> = passed.collect();
        passed.into_iter().for_each(|(bytes, at)| self.note_repair(bytes, at));
    }

    /// A segment has arrived: of those that both points hold, one point may lack some.
    fn note_places(&mut self, copy: &SegmentCopy, arrived: &mut ArrivedCopies) {
        match copy.again {
            Some(_) => {
                arrived.lacking += std::mem::take(&mut self.passed_one);
                self.passes_two = true;
            }
            None => self.passed_one += u64::from(self.passes_two),
        }
    }

    /// The same where segments were sent again, or fill holes: what was sent once, and has arrived, passed both points.
    fn note_single_places(&mut self, upto: u64, arrived: &mut ArrivedCopies) {
        let gone: Vec<SegmentCopy> = self.copies.iter().filter(|copy| copy.end <= upto).copied().collect();
        if !self.passes_two && gone.iter().all(|copy| copy.again.is_none()) {
            return;
        }
        for copy in gone {
            let overlaps = |other: &&SegmentCopy| other.start < copy.end && other.end > copy.start;
            if self.copies.iter().filter(overlaps).count() == 1 {
                self.note_places(&copy, arrived);
            }
        }
    }

    fn note_repair(&mut self, bytes: Range<u64>, at: Instant) {
        if self.repairs.len() >= REPAIRS_MAX {
            self.repairs.pop_front();
        }
        self.repairs.push_back((bytes, at));
    }

    /// The copy that the receiver got first, of those that an acknowledgment may be for. `is_next`: they begin where the last
    /// acknowledgment ends.
    fn first_arrival(
        &self,
        copies: &[SegmentCopy],
        ack: &Acknowledgment,
        is_next: bool,
        arrived: &mut ArrivedCopies,
    ) -> Option<SegmentCopy> {
        let stamped = copies.iter().map(|copy| Some((*copy, copy.stamp?))).collect::<Option<Vec<_>>>();
        let mut candidates = copies.to_vec();
        if let (Some(mut stamped), Some(echo)) = (stamped, ack.echo) {
            if let Some(echoed) = self.echoed {
                // Linux accepts what is one tick older.
                stamped.retain(|(_, stamp)| echoed.wrapping_sub(*stamp) as i32 <= 1);
            }
            let sent_by_then = stamped.iter().rev().find(|(_, stamp)| echo.wrapping_sub(*stamp) as i32 >= 0);
            // An older echo is of a segment before, where the acknowledgment is for such a one, too: the first copy needs no repair.
            let is_of_earlier = !is_next && stamped.len() == copies.len();
            let only = stamped.first().filter(|_| stamped.len() == 1);
            let first = copies.first().filter(|_| is_of_earlier);
            if let Some(copy) = sent_by_then.or(only).map(|(copy, _)| copy).or(first) {
                arrived.by_time_stamp += u64::from(copies.len() > 1);
                return Some(*copy);
            }
            // Where none is recent enough the stamps are not those of RFC 7323.
            if !stamped.is_empty() {
                candidates = stamped.into_iter().map(|(copy, _)| copy).collect();
            }
        }
        arrived.by_round_trip += u64::from(copies.len() > 1);
        let least = self.round_trip_least.unwrap_or_default();
        // Round trips vary by a little below the least one seen.
        let plausible = |copy: &&SegmentCopy| {
            ack.at.checked_since(copy.time).is_some_and(|took| took.as_ns() * 10 >= least.as_ns() * 9)
        };
        candidates.iter().rev().find(plausible).or(candidates.first()).copied()
    }

    /// Whether any acknowledgment of the receiver was captured.
    pub fn is_heard(&self) -> bool {
        self.is_heard
    }

    /// Whether the receiver has everything before an offset; then when the last copy that it needed was captured, where that was
    /// not the first one.
    pub fn arrived(&self, end: u64) -> Option<Option<Instant>> {
        let needed =
            |(bytes, at): &(Range<u64>, Instant)| Some(*at).filter(|_| bytes.start < end && end <= bytes.end);
        (end <= self.acknowledged).then(|| self.repairs.iter().filter_map(needed).max())
    }

    /// Whether something before an offset was sent again and is not acknowledged: its sender has waited for an acknowledgment in
    /// vain.
    pub fn is_stalled_before(&self, end: u64) -> bool {
        self.repeated > 0 && self.copies.iter().any(|copy| copy.is_repeated && copy.start < end)
    }
}

/// Segments of one direction that are remembered while they are not acknowledged; the oldest is forgotten first.
const COPIES_MAX: usize = 8192;
/// Repairs of one direction that are remembered; the oldest is forgotten first.
const REPAIRS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    fn copy(bytes: Range<u64>, ms: u64, stamp: Option<u32>, is_repeated: bool) -> SegmentCopy {
        SegmentCopy { start: bytes.start, end: bytes.end, time: at(ms), stamp, is_repeated, again: None }
    }

    fn ack(upto: u64, ms: u64, echo: Option<u32>) -> Acknowledgment {
        Acknowledgment { upto, at: at(ms), echo, duplicate: None }
    }

    /// Three copies of ten bytes, at 0, 200 and 600 ms, and an acknowledgment.
    fn after_three(stamped: bool, ack: &Acknowledgment) -> (Option<Option<Instant>>, ArrivedCopies) {
        let (mut receiver, mut arrived) = (ReceiverProgress::default(), ArrivedCopies::default());
        receiver.sent(copy(0..5, 0, stamped.then_some(90), false));
        receiver.acknowledge(
            &Acknowledgment { upto: 5, at: at(50), echo: Some(90), duplicate: None },
            &mut arrived,
        );
        for (ms, stamp) in [(100, 100), (300, 300), (700, 700)] {
            receiver.sent(copy(5..15, ms, stamped.then_some(stamp), ms > 100));
        }
        assert!(receiver.is_stalled_before(15) && !receiver.is_stalled_before(5));
        receiver.acknowledge(ack, &mut arrived);
        (receiver.arrived(15), arrived)
    }

    #[test]
    fn the_echoed_time_stamp_says_which_copy_arrived() {
        let by_stamp = |echo| after_three(true, &ack(15, 760, Some(echo)));
        let one = ArrivedCopies { by_time_stamp: 1, ..ArrivedCopies::default() };
        assert_eq!(by_stamp(700), (Some(Some(at(700))), one));
        assert_eq!(by_stamp(300).0, Some(Some(at(300))), "a late acknowledgment of the second");
        assert_eq!(by_stamp(100).0, Some(None), "of the first");
        let by_round_trip = ArrivedCopies { by_round_trip: 1, ..ArrivedCopies::default() };
        assert_eq!(by_stamp(90), (Some(Some(at(700))), by_round_trip), "of none: the hole begins with them");
    }

    #[test]
    fn an_older_echo_is_of_a_segment_before_that_is_acknowledged_with_them() {
        let (mut receiver, mut arrived) = (ReceiverProgress::default(), ArrivedCopies::default());
        receiver.sent(copy(0..5, 0, Some(90), false));
        receiver.sent(copy(5..15, 100, Some(100), false));
        receiver.sent(copy(5..15, 300, Some(300), true));
        receiver.acknowledge(&ack(15, 360, Some(90)), &mut arrived);
        assert_eq!((receiver.arrived(15), arrived.by_time_stamp), (Some(None), 1));
    }

    #[test]
    fn a_copy_that_is_older_than_an_echo_before_was_dropped_wherever_the_last_echo_is_from() {
        let (mut receiver, mut arrived) = (ReceiverProgress::default(), ArrivedCopies::default());
        // The second of three segments is lost, and the first one arrives when it is sent again. The copy of the second is overtaken by
        // a segment with a later acknowledgment, so that Linux echoes the first one's stamp once more.
        for (bytes, ms, is_repeated) in [(0..10, 0, false), (10..20, 1, false), (20..30, 50, false)] {
            receiver.sent(copy(bytes, ms, Some(ms as u32), is_repeated));
        }
        receiver.sent(copy(0..10, 120, Some(120), true));
        receiver.sent(copy(10..20, 170, Some(170), true));
        receiver.acknowledge(&ack(10, 234, Some(120)), &mut arrived);
        receiver.acknowledge(&ack(30, 285, Some(120)), &mut arrived);
        let arrival = [10, 20, 30].map(|end| receiver.arrived(end));
        assert_eq!(arrival, [Some(Some(at(120))), Some(Some(at(170))), Some(Some(at(170)))]);
        assert_eq!((arrived.by_time_stamp, arrived.by_round_trip), (2, 0));
    }

    #[test]
    fn without_time_stamps_it_is_the_last_copy_with_a_plausible_round_trip() {
        let at_ms = |ms| after_three(false, &ack(15, ms, None));
        assert_eq!(at_ms(760).0, Some(Some(at(700))));
        assert_eq!(at_ms(710).0, Some(Some(at(300))), "10 ms, where 50 ms are the least");
        assert_eq!(at_ms(310).0, Some(None), "of the first copy");
        assert_eq!(at_ms(760).1.by_time_stamp, 0);
    }

    #[test]
    fn a_copy_that_the_receiver_reports_as_a_duplicate_was_not_the_first() {
        let twice = Acknowledgment { duplicate: Some(5..15), ..ack(15, 760, Some(700)) };
        assert_eq!(after_three(true, &twice).0, Some(Some(at(300))));
    }

    #[test]
    fn bytes_behind_a_repeated_segment_arrive_with_it_and_bytes_before_it_do_not_wait() {
        let (mut receiver, mut arrived) = (ReceiverProgress::default(), ArrivedCopies::default());
        for (bytes, ms) in [(0..10, 0), (10..20, 1), (20..30, 2)] {
            receiver.sent(copy(bytes, ms, Some(ms as u32), false));
        }
        receiver.sent(copy(10..20, 250, Some(250), true));
        receiver.acknowledge(&ack(30, 300, Some(250)), &mut arrived);
        let arrival = |end| receiver.arrived(end);
        assert_eq!(
            [arrival(10), arrival(20), arrival(30)],
            [Some(None), Some(Some(at(250))), Some(Some(at(250)))]
        );
        assert_eq!(arrival(31), None);
    }

    #[test]
    fn a_copy_that_another_capture_saw_nearer_to_its_receiver_arrived_then() {
        let (mut receiver, mut arrived) = (ReceiverProgress::default(), ArrivedCopies::default());
        receiver.sent(copy(0..10, 0, Some(1), false));
        receiver.sent(copy(10..20, 5, Some(2), false));
        receiver.seen_again(0..10, Some(1), at(40), &mut arrived);
        receiver.seen_again(0..10, Some(1), at(60), &mut arrived);
        receiver.seen_again(10..20, Some(9), at(70), &mut arrived);
        receiver.acknowledge(&ack(20, 100, Some(2)), &mut arrived);
        receiver.sent(copy(20..30, 110, Some(3), false));
        receiver.acknowledge(&ack(30, 120, Some(3)), &mut arrived);
        let arrival = |end| receiver.arrived(end);
        assert_eq!(
            [arrival(10), arrival(20), arrival(30)],
            [Some(Some(at(60))), Some(Some(at(60))), Some(None)],
            "what is behind it waits for it"
        );
    }

    #[test]
    fn bytes_that_overtook_others_on_the_way_to_the_nearer_capture_arrived_with_those() {
        let (mut receiver, mut arrived) = (ReceiverProgress::default(), ArrivedCopies::default());
        receiver.sent(copy(0..10, 0, Some(1), false));
        receiver.sent(copy(10..15, 0, Some(1), false));
        receiver.seen_again(10..15, Some(1), at(40), &mut arrived);
        receiver.seen_again(0..10, Some(1), at(60), &mut arrived);
        receiver.acknowledge(&ack(15, 60, Some(1)), &mut arrived);
        assert_eq!(receiver.arrived(15), Some(Some(at(60))));
    }

    #[test]
    fn a_segment_that_one_of_two_captures_lacks_is_counted_between_others_that_both_hold() {
        let (mut receiver, mut arrived) = (ReceiverProgress::default(), ArrivedCopies::default());
        let mut lacking = Vec::new();
        for (number, is_at_both) in [false, true, false, true, false].into_iter().enumerate() {
            let (start, ms) = (number as u64 * 10, number as u64 * 100);
            receiver.sent(copy(start..start + 10, ms, Some(ms as u32), false));
            if is_at_both {
                receiver.seen_again(start..start + 10, Some(ms as u32), at(ms + 20), &mut arrived);
            }
            receiver.acknowledge(&ack(start + 10, ms + 40, Some(ms as u32)), &mut arrived);
            lacking.push(arrived.lacking);
        }
        assert_eq!(
            lacking,
            [0, 0, 0, 1, 1],
            "before the second capture begins and after its end none is missing"
        );
    }

    #[test]
    fn a_segment_that_the_first_capture_lacks_fills_a_hole_at_the_second_and_is_counted() {
        let (mut receiver, mut arrived) = (ReceiverProgress::default(), ArrivedCopies::default());
        for (start, ms) in [(0, 0), (20, 2)] {
            receiver.sent(copy(start..start + 10, ms, Some(ms as u32), false));
            receiver.seen_again(start..start + 10, Some(ms as u32), at(ms + 20), &mut arrived);
        }
        receiver.sent(copy(10..20, 21, Some(1), true));
        receiver.acknowledge(&ack(30, 40, Some(2)), &mut arrived);
        receiver.sent(copy(30..40, 50, Some(50), false));
        receiver.seen_again(30..40, Some(50), at(70), &mut arrived);
        receiver.acknowledge(&ack(40, 90, Some(50)), &mut arrived);
        assert_eq!(arrived.lacking, 1);
        // One that was lost behind the first point and sent again passed the second point once.
        receiver.sent(copy(40..50, 100, Some(100), false));
        receiver.sent(copy(40..50, 300, Some(300), true));
        receiver.seen_again(40..50, Some(300), at(320), &mut arrived);
        receiver.acknowledge(&ack(50, 340, Some(300)), &mut arrived);
        assert_eq!(arrived.lacking, 1);
    }
}
