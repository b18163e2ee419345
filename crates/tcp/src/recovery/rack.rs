//! RACK (RFC 8985 §6): a segment is lost when one that was sent later has been delivered, and time enough has gone by.
//!
//! How much time that is adapts (§6.2 step 4): none before reordering was seen, once three segments or a recovery speak for a loss;
//! a quarter of the least round trip afterwards, and a quarter more for each round trip in which a D-SACK shows that it was too
//! little, until 16 recoveries had none.

use mqttlab_units::{Duration, Instant};

use super::scoreboard::{Delivered, Scoreboard};

#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// The latest delivered segment: when it was sent, and its end (`RACK.xmit_ts`, `RACK.end_seq`).
    latest: (Instant, u64),
    /// Its round trip (`RACK.rtt`).
    rtt: Duration,
    /// Something was delivered since losses were last looked for (Linux `rack.advanced`).
    advanced: bool,
    /// A segment that was sent once came after one that was sent later (`RACK.reordering_seen`).
    reordering_seen: bool,
    /// By how many segments at most (Linux `reordering`).
    degree: u16,
    /// Quarters of the least round trip (`RACK.reo_wnd_mult`).
    quarters: u8,
    /// Recoveries without D-SACK until that is one again (`RACK.reo_wnd_persist`).
    persist: u8,
    /// SND.NXT when it last grew: it grows once in a round trip (`RACK.dsack_round`).
    round: Option<u64>,
}

impl Default for Rack {
    fn default() -> Rack {
        Rack {
            latest: (Instant::ZERO, 0),
            rtt: Duration::ZERO,
            advanced: false,
            reordering_seen: false,
            degree: DEGREE,
            quarters: 1,
            persist: 0,
            round: None,
        }
    }
}

impl Rack {
    /// §6.2 step 3: by so many segments.
    pub fn see_reordering(&mut self, segments: u64) {
        self.reordering_seen = true;
        self.degree = self.degree.max(segments.min(DEGREE_MAX) as u16);
    }

    /// By how many segments they come out of order at most (Linux `reordering`).
    pub fn degree(&self) -> u16 {
        self.degree
    }

    /// Whether segments come far out of order, so that they are delivered well before they are acknowledged.
    pub fn reorders_far(&self) -> bool {
        self.degree > DEGREE
    }

    /// The retransmission timer ran out although three segments or more were reported: perhaps they are not reordered so far
    /// (`tcp_enter_loss`).
    pub fn forget_degree(&mut self) {
        self.degree = DEGREE;
    }

    /// Losses must be looked for again, whatever was delivered.
    pub fn look_again(&mut self) {
        self.advanced = true;
    }

    /// Whether losses must be looked for; asked once.
    pub fn take_advanced(&mut self) -> bool {
        std::mem::take(&mut self.advanced)
    }

    /// §6.2 step 4: a D-SACK shows that the window was too short. One without reordering has another reason (Linux).
    pub fn on_needless_repetition(&mut self, una: u64, next: u64) {
        if self.reordering_seen && self.round.is_none_or(|round| una >= round) {
            self.round = Some(next);
            self.quarters = self.quarters.saturating_add(1);
            self.persist = PERSIST;
        }
    }

    /// §6.2 step 4: a recovery ends; `needless` when D-SACKs have shown that (Linux).
    pub fn on_recovery_end(&mut self, needless: bool) {
        self.persist =
            if needless { (self.persist + 1).min(PERSIST) } else { self.persist.saturating_sub(1) };
        if self.persist == 0 {
            self.quarters = 1;
        }
    }

    /// §6.2 step 4: how long a segment may be overtaken. `sure` when a recovery goes on, or three segments speak for a loss.
    pub fn reordering_window(&self, sure: bool, rtt_min: Duration, srtt: Duration) -> Duration {
        if sure && !self.reordering_seen {
            return Duration::ZERO;
        }
        // However often D-SACKs have widened it, never more than an SRTT (§6.2 step 4).
        Duration::from_ns(rtt_min.as_ns() / 4 * u64::from(self.quarters)).min(srtt)
    }

    /// Round trip of the latest delivery.
    pub fn rtt(&self) -> Duration {
        self.rtt
    }

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
            self.advanced = true;
            self.rtt = now.since(last.0);
        }
        // Segments of one burst have one time of sending: the later in the stream counts (`RACK_sent_after`).
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

/// §6.2 step 4.
const PERSIST: u8 = 16;
/// `tcp_reordering` and `tcp_max_reordering`.
const DEGREE: u16 = 3;
const DEGREE_MAX: u64 = 300;

#[cfg(test)]
mod tests {
    use super::*;

    fn window(rack: &Rack, sure: bool) -> u64 {
        rack.reordering_window(sure, Duration::from_ms(40), Duration::from_ms(100)).as_ns() / 1_000_000
    }

    #[test]
    fn rfc8985_6_2_step_4_there_is_no_patience_in_a_recovery_before_reordering_was_seen() {
        let mut rack = Rack::default();
        assert_eq!((window(&rack, true), window(&rack, false)), (0, 10));
        rack.see_reordering(1);
        assert_eq!((window(&rack, true), window(&rack, false)), (10, 10));
    }

    #[test]
    fn rfc8985_6_2_step_4_the_window_grows_once_in_a_round_trip_up_to_the_smoothed_one() {
        let mut rack = Rack::default();
        rack.on_needless_repetition(100, 200);
        assert_eq!(window(&rack, false), 10, "a D-SACK without reordering");
        rack.see_reordering(1);
        for (una, next, ms) in [(100, 200, 20), (150, 250, 20), (200, 300, 30), (300, 400, 40)] {
            rack.on_needless_repetition(una, next);
            assert_eq!(window(&rack, true), ms, "una {una}");
        }
        (4..400).for_each(|round| rack.on_needless_repetition(100 * round, 100 * (round + 1)));
        assert_eq!(window(&rack, true), 100);
    }

    #[test]
    fn rfc8985_6_2_step_4_sixteen_recoveries_without_d_sack_reset_it() {
        let mut rack = Rack::default();
        rack.see_reordering(1);
        rack.on_needless_repetition(100, 200);
        (0..15).for_each(|_| rack.on_recovery_end(false));
        assert_eq!(window(&rack, true), 20);
        rack.on_recovery_end(false);
        assert_eq!(window(&rack, true), 10);
    }
}
