//! The segments of one direction that wait for an acknowledgment, for round-trip samples and bytes in flight.

use std::collections::VecDeque;

use mqttlab_units::Instant;

use super::sequence::after;

/// Beyond this many the acknowledgments are evidently not being captured.
const SEGMENTS_MAX: usize = 10_000;

#[derive(Debug, Clone, Copy)]
struct UnacknowledgedSegment {
    start: u32,
    end: u32,
    time: Instant,
}

/// A segment that an acknowledgment covers exactly.
pub(super) struct AcknowledgedSegment {
    /// When its oldest copy was sent.
    pub(super) sent: Instant,
    /// Whether it was sent more than once.
    pub(super) resent: bool,
}

/// Segments in the order in which they were sent, which is that of their sequence numbers as long as nothing is
/// sent twice.
#[derive(Debug, Default)]
pub(super) struct Unacknowledged {
    segments: VecDeque<UnacknowledgedSegment>,
    /// How many segments start below the one before them. While there are none, an acknowledgment removes a
    /// prefix and nothing else has to be looked at.
    disordered: u32,
}

impl Unacknowledged {
    pub(super) fn push(&mut self, start: u32, end: u32, time: Instant) {
        if self.segments.len() >= SEGMENTS_MAX {
            return;
        }
        if self.segments.back().is_some_and(|last| after(last.end, start)) {
            self.disordered += 1;
        }
        if self.segments.capacity() == 0 {
            // Most connections never have more than one under way.
            self.segments.reserve_exact(1);
        }
        self.segments.push_back(UnacknowledgedSegment { start, end, time });
    }

    /// Removes what `ack` covers.
    pub(super) fn acknowledge(&mut self, ack: u32) -> Option<AcknowledgedSegment> {
        let mut acked: Option<AcknowledgedSegment> = None;
        let mut note = |segment: &UnacknowledgedSegment| {
            if segment.end == ack {
                match &mut acked {
                    Some(acked) => acked.resent = true,
                    None => acked = Some(AcknowledgedSegment { sent: segment.time, resent: false }),
                }
            }
        };
        if self.disordered == 0 {
            while let Some(front) = self.segments.front()
                && !after(front.end, ack)
            {
                note(front);
                self.segments.pop_front();
            }
            if let Some(front) = self.segments.front_mut() {
                trim(front, ack);
            }
            return acked;
        }
        self.segments.retain_mut(|segment| {
            if !after(segment.end, ack) {
                note(segment);
                return false;
            }
            trim(segment, ack);
            true
        });
        if self.segments.len() < 2 {
            self.disordered = 0;
        }
        acked
    }

    /// From the lowest to the highest byte that waits.
    pub(super) fn span(&self) -> Option<u32> {
        let first = self.segments.front()?;
        let (mut low, mut high) = (first.start, first.end);
        if self.disordered == 0 {
            high = self.segments.back().map_or(high, |last| last.end);
        } else {
            for segment in &self.segments {
                low = if after(low, segment.start) { segment.start } else { low };
                high = if after(segment.end, high) { segment.end } else { high };
            }
        }
        Some(high.wrapping_sub(low)).filter(|&bytes| bytes > 0 && bytes < 2_000_000_000)
    }
}

/// A segment that is acknowledged in part waits with the rest of it.
fn trim(segment: &mut UnacknowledgedSegment, ack: u32) {
    if after(ack, segment.start) {
        segment.start = ack;
    }
}
