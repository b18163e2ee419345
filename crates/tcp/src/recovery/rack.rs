//! RACK (RFC 8985 §6): a segment is lost when one that was sent later has been delivered, and time enough has gone by.
//!
//! What it does not model: the adaptive part of the reordering window (§6.2 step 4 with D-SACK).

use mqttlab_units::{Duration, Instant};

use super::scoreboard::{Delivered, Scoreboard};

#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    /// The latest delivered segment: when it was sent, and its end (`RACK.xmit_ts`, `RACK.end_seq`).
    latest: (Instant, u64),
    /// Its round trip (`RACK.rtt`).
    rtt: Duration,
}

impl Rack {
    /// §6.2 step 2: remembers the most recently sent of what was delivered. As in Linux (`tcp_rack_advance`) the round trip
    /// is that of the segment that was looked at last, which is not always the one that was sent last: when acknowledgements
    /// were lost, it is longer, and so is the patience with what may still come.
    pub fn update(&mut self, now: Instant, delivered: &Delivered, rtt_min: Option<Duration>) {
        let (Some((at, end, resent)), Some(last)) = (delivered.latest, delivered.looked_at_last) else {
            return;
        };
        // Too soon for the retransmission: the original was acknowledged, and when that was sent is not known any more.
        let least = rtt_min.unwrap_or_default();
        let is_too_soon = |(at, resent): (Instant, bool)| resent && now.since(at) < least;
        if !is_too_soon(last) {
            self.rtt = now.since(last.0);
        }
        if !is_too_soon((at, resent)) && (at, end) > self.latest {
            self.latest = (at, end);
        }
    }

    /// §6.2 step 5: marks what should have come by now. Returns how long until more would have to be marked. Segments may
    /// be reordered by up to `reordering_window`.
    pub fn detect_loss(
        &self,
        flight: &mut Scoreboard,
        now: Instant,
        reordering_window: Duration,
    ) -> Option<Duration> {
        flight.mark_lost_before(self.latest, self.rtt + reordering_window, now)
    }
}
