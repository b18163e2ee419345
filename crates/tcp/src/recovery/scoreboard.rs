//! What is in flight, segment by segment: sent when, selectively acknowledged, lost, sent again.
//!
//! ```text
//!  ISS = 0         SND.UNA                                     SND.NXT
//!     ├──────────────┼────────┬────────┬────────┬────────┬────────┤
//!       acknowledged   LOST     SACKED   LOST,             sent
//!                                        RESENT
//! ```
//!
//! Amounts are in the congestion window's unit. After Linux (`tcp_packets_in_flight`):
//! in flight = outstanding − sacked − lost + resent. Without SACK, duplicate acknowledgements count as SACKs of
//! unknown segments (`dupack_inflation`), which is RFC 6582's inflated window seen from the other side.

use std::collections::VecDeque;

use mqttlab_units::{Duration, Instant};

use crate::congestion::WindowUnit;
use crate::sequence::Seq;

/// A segment that is not acknowledged yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentSegment {
    /// Position of its first byte.
    pub start: u64,
    /// When it was last sent.
    pub at: Instant,
    /// Bytes in sequence space, the FIN included.
    pub length: u16,
    marks: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    /// ISS: the number of position 0.
    pub initial: Seq,
    /// SND.UNA: everything before it is acknowledged.
    pub una: u64,
    /// SND.NXT: what is sent next for the first time.
    pub next: u64,
    segments: VecDeque<SentSegment>,
    unit: WindowUnit,
    outstanding: u64,
    sacked: u64,
    lost: u64,
    resent: u64,
    /// Units that duplicate acknowledgements say have arrived, without SACK.
    pub dupack_inflation: u64,
    /// Segments marked lost and not yet sent again.
    waiting: u32,
    sacked_segments: u32,
    /// Where the last segment that was ever selectively acknowledged ends.
    sacked_end: u64,
}

/// What an acknowledgement or its SACK blocks have newly delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    pub units: u64,
    /// When the oldest and the youngest of those that were sent once were sent. What lies behind a hole has waited
    /// for the hole to be filled, and its round trip is none of the network's: a cumulative acknowledgement that
    /// covers a segment that was sent again measures nothing.
    pub once_sent: Option<(Instant, Instant)>,
    /// Whether a cumulative acknowledgement covers a segment that was sent again.
    resent: bool,
    /// Whether a cumulative acknowledgement covers a whole segment, and not only the first part of one.
    pub whole: bool,
    /// Last transmission and end of the one sent last (RFC 8985 §6.2 step 2), and whether it had been sent again. What came only
    /// late, after it had been sent again, does not count.
    pub latest: Option<(Instant, u64, bool)>,
    /// Last transmission of the one of these that was looked at last, and whether it had been sent again.
    pub looked_at_last: Option<(Instant, bool)>,
    /// Beginning and end of the first that was never sent again.
    pub original: Option<(u64, u64)>,
}

impl SentSegment {
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    pub fn has(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    /// Whether it carried PSH, or one of those that were merged into it.
    pub fn was_pushed(&self) -> bool {
        self.has(PUSHED)
    }

    /// Whether it was sent more than once.
    pub fn was_resent(&self) -> bool {
        self.has(EVER_RESENT)
    }
}

impl Delivered {
    fn add(&mut self, segment: &SentSegment, units: u64, selectively: bool, is_late: bool) {
        self.units += units;
        let resent = segment.has(EVER_RESENT);
        self.resent |= resent && !selectively;
        if self.resent {
            self.once_sent = None;
        } else if !resent {
            let oldest = self.once_sent.map_or(segment.at, |(at, _)| at.min(segment.at));
            self.once_sent = Some((oldest, segment.at));
        }
        if !resent && self.original.is_none_or(|(start, _)| segment.start < start) {
            self.original = Some((segment.start, segment.end()));
        }
        if is_late {
            return;
        }
        let key = (segment.at, segment.end());
        if self.latest.is_none_or(|(at, end, _)| (at, end) < key) {
            self.latest = Some((segment.at, segment.end(), resent));
        }
        self.looked_at_last = Some((segment.at, resent));
    }

    /// Both together, `other` from SACK blocks, which Linux looks at before what is acknowledged cumulatively.
    pub fn merge(&mut self, other: Delivered) {
        self.units += other.units;
        self.once_sent = self.once_sent.or(other.once_sent);
        if other.latest.is_some_and(|(at, end, _)| self.latest.is_none_or(|(a, e, _)| (a, e) < (at, end))) {
            self.latest = other.latest;
        }
        self.looked_at_last = self.looked_at_last.or(other.looked_at_last);
        self.original = [self.original, other.original].into_iter().flatten().min();
    }
}

impl Scoreboard {
    pub fn new(unit: WindowUnit, initial: Seq) -> Scoreboard {
        Scoreboard {
            initial,
            una: 0,
            next: 0,
            segments: VecDeque::new(),
            unit,
            outstanding: 0,
            sacked: 0,
            lost: 0,
            resent: 0,
            dupack_inflation: 0,
            waiting: 0,
            sacked_segments: 0,
            sacked_end: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// Where each of them ends.
    pub fn ends(&self) -> impl Iterator<Item = u64> {
        self.segments.iter().map(SentSegment::end)
    }

    pub fn first(&self) -> Option<&SentSegment> {
        self.segments.front()
    }

    /// Whether the first segment was sent again after what was reported now was sent, so that it cannot have been answered yet
    /// (`tcp_clean_rtx_queue`).
    pub fn was_first_resent_after(&self, delivered: &Delivered) -> bool {
        let oldest = delivered.once_sent.map(|(oldest, _)| oldest);
        self.first().zip(oldest).is_some_and(|(first, oldest)| oldest < first.at)
    }

    /// Units in the network, as far as is known ("pipe" in RFC 6675 §4).
    pub fn in_flight(&self) -> u64 {
        (self.outstanding + self.resent).saturating_sub(self.sacked + self.lost + self.dupack_inflation)
    }

    /// Units sent and not cumulatively acknowledged.
    pub fn outstanding(&self) -> u64 {
        self.outstanding
    }

    pub fn has_sacked(&self) -> bool {
        self.sacked_segments > 0
    }

    pub fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Whether a lost segment waits to be sent again.
    pub fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// How many do.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    pub fn sacked_segments(&self) -> u32 {
        self.sacked_segments
    }

    /// Where the last selectively acknowledged segment ends (Linux `tcp_highest_sack_seq`); SND.UNA where there is none.
    pub fn highest_sacked(&self) -> u64 {
        if self.has_sacked() { self.sacked_end } else { self.una }
    }

    /// Units that were sent again and are neither acknowledged nor known to be lost.
    pub fn resent(&self) -> u64 {
        self.resent
    }

    /// Notes a new segment behind all others, and whether it carries PSH; returns where it begins.
    pub fn push(&mut self, length: u16, pushed: bool, now: Instant) -> u64 {
        let start = self.next;
        self.next += u64::from(length);
        self.outstanding += weight(self.unit, length);
        if self.segments.capacity() == 0 {
            // Most connections never have more than one in flight, and there may be thousands.
            self.segments.reserve_exact(1);
        }
        self.segments.push_back(SentSegment {
            start,
            at: now,
            length,
            marks: if pushed { PUSHED } else { 0 },
        });
        start
    }

    /// Whether what was sent again is under way, or was and is still the first (Linux `tcp_any_retrans_done`).
    pub fn has_repetitions(&self) -> bool {
        self.resent > 0 || self.first().is_some_and(SentSegment::was_resent)
    }

    /// Everything before `position` has arrived. `is_late` says of a segment that was sent again whether the original has come
    /// and not the repetition.
    pub fn acknowledge(&mut self, position: u64, is_late: impl Fn(&SentSegment) -> bool) -> Delivered {
        self.una = position;
        let mut delivered = Delivered::default();
        while let Some(first) = self.segments.front().copied() {
            if first.end() > position {
                break;
            }
            self.segments.pop_front();
            self.forget(&first);
            delivered.whole = true;
            // What a SACK block reported was counted as delivered then.
            if !first.has(SACKED) {
                let late = first.was_resent() && is_late(&first);
                delivered.add(&first, weight(self.unit, first.length), false, late);
            }
        }
        self.trim_first(position);
        self.dupack_inflation = self.dupack_inflation.min(self.outstanding);
        delivered
    }

    /// The bytes from `start` up to `end` have arrived out of order (RFC 2018 §3).
    pub fn sack(&mut self, start: u64, end: u64) -> Delivered {
        let mut delivered = Delivered::default();
        let first = self.segments.partition_point(|segment| segment.start < start);
        for index in first..self.segments.len() {
            let mut segment = self.segments[index];
            // A receiver may report a part of a segment that was merged or cut; the rest is still needed (RFC 2018 §3).
            if segment.end() > end {
                break;
            }
            if segment.has(SACKED) {
                continue;
            }
            let units = weight(self.unit, segment.length);
            delivered.add(&segment, units, true, false);
            // It was not lost, or its repetition has come: either way it waits for nothing any more.
            self.unmark(&mut segment);
            segment.marks |= SACKED;
            self.sacked += units;
            self.sacked_segments += 1;
            self.sacked_end = self.sacked_end.max(segment.end());
            self.segments[index] = segment;
        }
        delivered
    }

    /// Marks as lost what has `threshold` or more selectively acknowledged segments above it (RFC 6675 `IsLost`,
    /// counted in segments as Linux does, since most segments here are small).
    pub fn mark_lost_below(&mut self, threshold: u32) {
        let mut above = 0;
        // From the end, so that one pass counts what was reported above each. What was repeated is left to the timer: its
        // repetition is younger than what lies above it.
        for index in (0..self.segments.len()).rev() {
            let segment = self.segments[index];
            if segment.has(SACKED) {
                above += 1;
            } else if above >= threshold && !segment.has(LOST | RESENT) {
                self.mark_lost(index);
            }
        }
    }

    /// Marks as lost what was sent so long before the latest delivered segment that it should have come
    /// (RFC 8985 §6.2 step 5). Returns the longest time until another would be.
    pub fn mark_lost_before(
        &mut self,
        latest: (Instant, u64),
        patience: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let mut wait = None;
        for index in 0..self.segments.len() {
            let segment = self.segments[index];
            // A repetition can be lost again, and RACK finds it, as it compares times of sending and not places.
            let known = segment.has(SACKED | JUDGED) || segment.has(LOST) && !segment.has(RESENT);
            if known || (segment.at, segment.end()) >= latest {
                continue;
            }
            match (segment.at + patience).checked_since(now) {
                Some(left) if !left.is_zero() => wait = wait.max(Some(left)),
                _ => {
                    self.mark_lost(index);
                    self.segments[index].marks |= JUDGED;
                }
            }
        }
        wait
    }

    /// Marks the first segment as lost, unless it is being sent again already.
    pub fn mark_first_lost(&mut self) {
        if self.segments.front().is_some_and(|first| !first.has(LOST | SACKED | RESENT)) {
            self.mark_lost(0);
        }
    }

    /// The retransmission timer ran out: what is not selectively acknowledged counts as lost, the first in any case, the rest
    /// if it was sent `patience` ago.
    pub fn mark_all_lost(&mut self, now: Instant, patience: Duration) {
        self.dupack_inflation = 0;
        for index in 0..self.segments.len() {
            let segment = self.segments[index];
            // What was reported stays (RFC 6675 §5.1 permits it; receivers here never drop what they reported).
            let is_recent = index > 0 && now < segment.at + patience;
            if !is_recent && !segment.has(SACKED) && (!segment.has(LOST) || segment.has(RESENT)) {
                self.mark_lost(index);
            }
        }
    }

    /// Nothing is lost after all (Linux `tcp_undo_cwnd_reduction` with `unmark_loss`). What RACK has marked it does not mark again.
    pub fn undo_loss_marks(&mut self) {
        for index in 0..self.segments.len() {
            let mut segment = self.segments[index];
            // A repetition that is under way stays counted until it is answered.
            if segment.has(LOST) && !segment.has(RESENT) {
                self.unmark(&mut segment);
                self.segments[index] = segment;
            }
        }
    }

    /// Takes the next lost segment to send again, with lost neighbours merged into it as far as `length_max`
    /// allows (RFC 9293 §3.10.8 leaves repacketising free; Linux and the BSDs do it).
    pub fn resend_lost(&mut self, length_max: u16, now: Instant) -> Option<SentSegment> {
        if self.waiting == 0 {
            return None;
        }
        let waits = |segment: &SentSegment| segment.has(LOST) && !segment.has(RESENT);
        let index = self.segments.iter().position(waits)?;
        while let Some(next) = self.segments.get(index + 1).copied() {
            let merged = u32::from(self.segments[index].length) + u32::from(next.length);
            if !waits(&next) || merged > u32::from(length_max) {
                break;
            }
            self.merge_with_next(index, merged as u16);
        }
        self.resent += weight(self.unit, self.segments[index].length);
        self.waiting -= 1;
        Some(self.resend(index, RESENT, now))
    }

    /// Takes the last segment to send again, as a tail loss probe. It is not counted as in flight twice (Linux sends it by
    /// `__tcp_retransmit_skb`, which does not count).
    pub fn resend_last(&mut self, now: Instant) -> Option<SentSegment> {
        let last = self.segments.len().checked_sub(1)?;
        Some(self.resend(last, 0, now))
    }

    fn resend(&mut self, index: usize, mark: u8, now: Instant) -> SentSegment {
        let segment = &mut self.segments[index];
        segment.marks = segment.marks & !JUDGED | EVER_RESENT | mark;
        segment.at = now;
        *segment
    }

    /// Lost, and not sent again since.
    fn mark_lost(&mut self, index: usize) {
        let mut segment = self.segments[index];
        self.unmark(&mut segment);
        segment.marks |= LOST;
        self.lost += weight(self.unit, segment.length);
        self.waiting += 1;
        self.segments[index] = segment;
    }

    fn unmark(&mut self, segment: &mut SentSegment) {
        let units = weight(self.unit, segment.length);
        self.lost -= if segment.has(LOST) { units } else { 0 };
        self.resent -= if segment.has(RESENT) { units } else { 0 };
        self.waiting -= u32::from(segment.has(LOST) && !segment.has(RESENT));
        segment.marks &= !(LOST | RESENT);
    }

    fn forget(&mut self, segment: &SentSegment) {
        let units = weight(self.unit, segment.length);
        self.unmark(&mut segment.clone());
        self.outstanding -= units;
        if segment.has(SACKED) {
            self.sacked -= units;
            self.sacked_segments -= 1;
        }
    }

    fn merge_with_next(&mut self, index: usize, merged: u16) {
        let next = self.segments.remove(index + 1).expect("there is a next segment");
        let mut segment = self.segments[index];
        // Counted anew as one: in segments, two become one unit.
        self.forget(&next);
        self.forget(&segment);
        segment.length = merged;
        segment.marks |= next.marks & (EVER_RESENT | PUSHED);
        self.outstanding += weight(self.unit, merged);
        self.segments[index] = SentSegment { marks: segment.marks & !(LOST | RESENT), ..segment };
        self.mark_lost(index);
    }

    /// An acknowledgement ended within the first segment.
    fn trim_first(&mut self, position: u64) {
        let Some(first) = self.segments.front().copied().filter(|first| first.start < position) else {
            return;
        };
        let length = (first.end() - position) as u16;
        let cut = weight(self.unit, first.length) - weight(self.unit, length);
        self.outstanding -= cut;
        self.sacked -= if first.has(SACKED) { cut } else { 0 };
        self.lost -= if first.has(LOST) { cut } else { 0 };
        self.resent -= if first.has(RESENT) { cut } else { 0 };
        self.segments[0] = SentSegment { start: position, length, ..first };
    }
}

fn weight(unit: WindowUnit, length: u16) -> u64 {
    match unit {
        WindowUnit::Segments => 1,
        WindowUnit::Bytes => u64::from(length),
    }
}

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// Sent again since it was marked lost.
const RESENT: u8 = 4;
/// Sent more than once at any time: no measure of the round trip (Karn).
const EVER_RESENT: u8 = 8;
/// Carried PSH, and does so when it is sent again, alone or merged with others (`tcp_retrans_try_collapse`).
const PUSHED: u8 = 16;
/// RACK has marked it lost. Linux takes it out of the list that RACK looks at (`tsorted_sent_queue`) until it is sent again.
const JUDGED: u8 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> Scoreboard {
        let mut board = Scoreboard::new(WindowUnit::Segments, Seq(0));
        board.next = 1;
        (0..6).for_each(|n| assert_eq!(board.push(100, true, Instant::from_ns(n)), 1 + 100 * n));
        board
    }

    #[test]
    fn rfc6675_4_three_segments_above_make_a_loss() {
        let mut board = board();
        board.sack(101, 301);
        board.mark_lost_below(3);
        assert!(!board.has_lost());
        board.sack(301, 401);
        board.mark_lost_below(3);
        assert_eq!((board.in_flight(), board.has_waiting()), (2, true));
        let again = board.resend_lost(1460, Instant::from_ns(9)).unwrap();
        assert_eq!((again.start, again.length), (1, 100));
        assert_eq!((board.in_flight(), board.has_waiting()), (3, false));
        assert_eq!(board.acknowledge(401, |_| false).units, 1);
        assert_eq!((board.in_flight(), board.outstanding(), board.has_sacked()), (2, 2, false));
    }

    #[test]
    fn lost_neighbours_are_sent_again_as_one() {
        let mut board = board();
        board.mark_all_lost(Instant::from_ns(9), Duration::ZERO);
        assert_eq!(board.in_flight(), 0);
        let again = board.resend_lost(350, Instant::from_ns(9)).unwrap();
        assert_eq!((again.start, again.length, board.in_flight()), (1, 300, 1));
        board.acknowledge(301, |_| false);
        assert_eq!((board.in_flight(), board.outstanding()), (0, 3));
    }

    #[test]
    fn an_acknowledgement_within_a_segment_keeps_the_rest() {
        let mut board = Scoreboard::new(WindowUnit::Bytes, Seq(0));
        board.next = 1;
        board.push(100, true, Instant::ZERO);
        board.mark_all_lost(Instant::from_ns(9), Duration::ZERO);
        board.acknowledge(41, |_| false);
        assert_eq!((board.outstanding(), board.in_flight(), board.first().unwrap().start), (60, 0, 41));
        board.acknowledge(101, |_| false);
        assert_eq!((board.outstanding(), board.in_flight(), board.is_empty()), (0, 0, true));
    }
}
