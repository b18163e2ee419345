//! What shows that a recovery was needless, so that its reduction is taken back (RFC 4015).
//!
//! | sign | clause |
//! |---|---|
//! | an echo older than the first repetition | RFC 3522 §3.2 |
//! | a D-SACK for each repetition since the recovery began | RFC 3708 §3.2, Linux `tcp_try_undo_dsack` |

use super::scoreboard::Sent;
use crate::context::Context;
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

/// Beginning and end of what a D-SACK tells of (RFC 2883 §4): the first block, if it lies below the acknowledgement, or within the
/// second block.
pub(crate) fn repeated(segment: &Segment, initial: Seq, ack: u64) -> Option<(u64, u64)> {
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
pub(crate) fn is_original(cx: &Context, segment: &Segment, sent: &Sent) -> bool {
    let stamps = segment.timestamps.filter(|_| cx.terms.timestamps);
    stamps.is_some_and(|stamps| stamps.echo.wrapping_sub(cx.timestamp_at(sent.at)) > 1 << 31)
}
