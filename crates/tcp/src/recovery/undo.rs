//! What shows that a recovery was needless, so that its reduction is taken back (RFC 4015).
//!
//! | sign | clause |
//! |---|---|
//! | an echo older than the first repetition | RFC 3522 §3.2 |
//! | a D-SACK for each repetition since the recovery began | RFC 3708 §3.2, Linux `tcp_try_undo_dsack` |

use super::scoreboard::SentSegment;
use super::{Recovery, RecoveryPhase};
use crate::context::{Effects, EndpointContext};
use crate::segment::Segment;
use crate::sequence::Seq;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    /// SND.UNA when the reduction was made that can be taken back (Linux `undo_marker`).
    marker: Option<u64>,
    /// Repetitions since then that no D-SACK has told of; `None` before the first (Linux `undo_retrans`).
    repetitions: Option<u32>,
    /// Timestamp of the first repetition of this recovery (RFC 3522 `RetransmitTS`).
    pub retransmit_ts: Option<u32>,
}

impl Undo {
    /// The window is reduced, with so many repetitions under way, which may still cause a D-SACK.
    pub fn begin(&mut self, una: u64, under_way: u32) {
        (self.marker, self.repetitions) = (Some(una), (under_way > 0).then_some(under_way));
    }

    /// Nothing can be taken back any more.
    pub fn forget(&mut self) {
        (self.marker, self.repetitions) = (None, None);
    }

    /// A segment was sent again.
    pub fn on_repetition(&mut self, timestamp: u32) {
        self.retransmit_ts.get_or_insert(timestamp);
        self.repetitions = Some(self.repetitions.unwrap_or(0).saturating_add(1));
    }

    /// So many segments that end at `end` came twice.
    pub fn on_duplicates(&mut self, end: u64, segments: u32) {
        if self.marker.is_some_and(|marker| end > marker) {
            self.repetitions = self.repetitions.map(|repetitions| repetitions.saturating_sub(segments));
        }
    }

    /// Whether every repetition came twice.
    pub fn is_needless(&self) -> bool {
        self.marker.is_some() && self.repetitions == Some(0)
    }

    /// Whether what is acknowledged was only late: the echo is older than the first repetition, or nothing was repeated yet
    /// (Linux `tcp_packet_delayed`).
    pub fn is_late(&self, echo: Option<u32>) -> bool {
        let is_older = |resent| echo.is_some_and(|echo| echo.wrapping_sub(resent) > 1 << 31);
        self.marker.is_some() && self.retransmit_ts.is_none_or(is_older)
    }
}

impl Recovery {
    /// Takes a D-SACK (RFC 2883 §4), if it tells of segments that we have sent twice.
    fn on_d_sack(&mut self, cx: &EndpointContext, fx: &Effects, segment: &Segment, ack: u64) {
        if !cx.terms.sack || !cx.profile.undo {
            return;
        }
        let Some((start, end)) = repeated(segment, self.flight.initial, ack) else { return };
        let segments = (end - start).div_ceil(u64::from(cx.payload_max())).min(u32::MAX.into()) as u32;
        self.duplicated = self.duplicated.saturating_add(segments);
        // The network has made the copy (`tcp_dsack_seen`).
        if u64::from(self.duplicated) > fx.counters.retransmissions {
            return;
        }
        // A tail loss probe is sent by a timer, and says nothing of the reordering window.
        if cx.profile.rack && !self.probe.ends_at(end) {
            self.rack.on_needless_repetition(self.flight.una, self.flight.next);
        }
        self.undo.on_duplicates(end, segments);
    }

    /// Takes a needless reduction back: the acknowledgement that advances echoes what is older than the first repetition (Eifel
    /// detection, RFC 3522 §3.2), or D-SACKs have told of each repetition (RFC 3708 §3.2), also after the recovery's end.
    /// `advanced_from` is where SND.UNA was, if it has moved.
    pub(super) fn undo_if_spurious(
        &mut self,
        cx: &EndpointContext,
        fx: &mut Effects,
        segment: &Segment,
        ack: u64,
        advanced_from: Option<u64>,
    ) {
        // First, for it may be the last repetition that it tells of.
        self.on_d_sack(cx, fx, segment, ack);
        self.holds = false;
        if !cx.profile.undo {
            return;
        }
        let (advanced, phase) = (advanced_from.is_some(), self.phase);
        let echo = segment.timestamps.filter(|_| cx.terms.timestamps).map(|stamps| stamps.echo);
        let by_echo = advanced && phase != RecoveryPhase::Open && self.undo.is_late(echo);
        let is_partial = phase == RecoveryPhase::Fast && self.flight.una < self.point;
        if let Some(una) = advanced_from.filter(|_| by_echo && is_partial) {
            // The hole was filled by an original that came late (`tcp_try_undo_partial`).
            self.see_reordering(cx, una);
            self.holds = self.flight.resent() > 0;
            if self.holds {
                return;
            }
        }
        // After a timeout only an acknowledgement that advances is asked (`tcp_process_loss`).
        let by_duplicates = self.undo.is_needless() && (advanced || phase != RecoveryPhase::Timeout);
        if !by_echo && !by_duplicates {
            return;
        }
        if !by_echo && phase != RecoveryPhase::Timeout {
            // `tcp_try_undo_dsack`: the wider reordering window has proved itself for another recovery.
            self.rack.on_recovery_end(true);
        }
        // By D-SACKs, and at its end, a fast recovery ends, but what is marked stays so, and may begin another
        // (`tcp_try_undo_dsack`, `tcp_try_undo_recovery`).
        self.undo_reduction(fx, by_echo && is_partial || phase == RecoveryPhase::Timeout);
    }

    /// Window and threshold are as before the last reduction; `unmark` when nothing is lost after all.
    pub(super) fn undo_reduction(&mut self, fx: &mut Effects, unmark: bool) {
        fx.counters.undone += 1;
        if unmark {
            self.flight.undo_loss_marks();
        }
        self.congestion.undo();
        self.undo.forget();
        self.rack.look_again();
        if self.phase != RecoveryPhase::Open {
            self.enter(RecoveryPhase::Open, self.flight.next);
        }
    }
}

/// Beginning and end of what a D-SACK tells of (RFC 2883 §4): the first block, if it lies below the acknowledgement, or within the
/// second block.
fn repeated(segment: &Segment, initial: Seq, ack: u64) -> Option<(u64, u64)> {
    let mut blocks = segment.sack.iter().map(|(start, end)| {
        let place = |seq: Seq| seq.position(initial, ack);
        place(start).zip(place(end))
    });
    let (start, end) = blocks.next()??;
    let within_second = blocks.next().flatten().is_some_and(|second| second.0 <= start && end <= second.1);
    (start < end && (start < ack || within_second)).then_some((start, end))
}

/// Whether an acknowledgement of a segment that was sent again is its original's: it echoes what is older than the repetition
/// (`tcp_skb_spurious_retrans`).
pub(crate) fn is_original(cx: &EndpointContext, segment: &Segment, sent: &SentSegment) -> bool {
    let stamps = segment.timestamps.filter(|_| cx.terms.timestamps);
    stamps.is_some_and(|stamps| stamps.echo.wrapping_sub(cx.timestamp_at(sent.at)) > 1 << 31)
}
