//! The peer's window: how far it lets us send (RFC 9293 §3.8.6 and §3.10.7.4).

use crate::segment::Segment;
use crate::sequence::Seq;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeerWindow {
    /// Its right edge, as a position of our stream.
    pub edge: u64,
    /// The segment that set it (SND.WL1, SND.WL2).
    seq: Seq,
    ack: u64,
    /// The largest ever offered (RFC 1122 §4.2.3.4 `Max(SND.WND)`).
    pub largest: u64,
}

impl PeerWindow {
    /// The first window, from the segment that completed the handshake. That of a SYN is not scaled (RFC 7323 §2.2).
    pub fn begin(&mut self, segment: &Segment, scale: u8) {
        (self.edge, self.seq, self.ack) = (1, segment.seq, 1);
        self.update(segment, 1, scale);
    }

    /// Only from a segment that is newer than the last that set the window: a late one would take back what is
    /// promised.
    pub fn update(&mut self, segment: &Segment, ack: u64, scale: u8) {
        let age = segment.seq.0.wrapping_sub(self.seq.0) as i32;
        // SND.WL1 < SEG.SEQ, or equal and SND.WL2 =< SEG.ACK (RFC 9293 §3.10.7.4, fifth check).
        if age > 0 || age == 0 && ack >= self.ack {
            let window = u64::from(segment.window) << scale;
            (self.edge, self.seq, self.ack) = (ack + window, segment.seq, ack);
            self.largest = self.largest.max(window);
        }
    }

    /// Whether an acknowledgement that does not advance is newer than the last update (Linux `tcp_may_update_window`).
    pub fn is_fresh(&self, segment: &Segment, scale: u8) -> bool {
        let age = segment.seq.0.wrapping_sub(self.seq.0) as i32;
        let window = u64::from(segment.window) << scale;
        age > 0 || age == 0 && (window > self.edge.saturating_sub(self.ack) || window == 0)
    }

    /// Whether the segment leaves it as it is: one that moves it is no duplicate acknowledgement (RFC 5681 §2).
    pub fn is_unchanged_by(&self, segment: &Segment, ack: u64, scale: u8) -> bool {
        ack + (u64::from(segment.window) << scale) == self.edge
    }
}
