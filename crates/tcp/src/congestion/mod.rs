//! The congestion window: slow start and congestion avoidance (RFC 5681), and what a loss does to it.
//!
//! The window counts *units*, segments or bytes as the profile says; `smss` is one full segment in units. Which
//! segments are lost, and when, is [`crate::recovery`]'s business.

mod cubic;

use mqttlab_units::{Duration, Instant};

use self::cubic::Cubic;
use crate::profile::{CongestionControl, Profile, WindowUnit};

#[derive(Clone, Debug)]
pub(crate) struct Congestion {
    /// Congestion window in units.
    pub window: u64,
    /// Slow start threshold in units.
    pub threshold: u64,
    /// One full segment in units.
    smss: u64,
    /// Units acknowledged that have not yet grown the window (NewReno's congestion avoidance).
    credit: u64,
    cubic: Option<Cubic>,
    /// Window and threshold before the last reduction, for taking it back.
    before: (u64, u64),
    /// Most units in flight since `usage_end` was sent, and whether the window was what stopped the sender.
    flight_max: u64,
    limited: bool,
    usage_end: u64,
}

impl Congestion {
    pub fn new(profile: &Profile, payload_max: u16) -> Congestion {
        let smss = match profile.window_unit {
            WindowUnit::Segments => 1,
            WindowUnit::Bytes => u64::from(payload_max),
        };
        let window = smss * u64::from(profile.initial_window.max(1));
        Congestion {
            window,
            threshold: u64::MAX,
            smss,
            credit: 0,
            cubic: (profile.congestion_control == CongestionControl::Cubic).then(Cubic::default),
            before: (window, u64::MAX),
            flight_max: 0,
            limited: false,
            usage_end: 0,
        }
    }

    pub fn smss(&self) -> u64 {
        self.smss
    }

    pub fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Notes how far the window is used: a window that is not used must not grow (RFC 7661 §3, Linux).
    pub fn note_usage(&mut self, flight: u64, limited: bool, acknowledged: u64, sent: u64) {
        if acknowledged >= self.usage_end || limited || !self.limited && flight > self.flight_max {
            self.flight_max = flight;
            self.limited = limited;
            self.usage_end = sent;
        }
    }

    /// Grows the window for `acked` units (RFC 5681 §3.1; RFC 9438 §4); `rtt` is the least seen.
    pub fn grow(&mut self, acked: u64, now: Instant, rtt: Duration) {
        let used = if self.in_slow_start() { self.window < 2 * self.flight_max } else { false };
        if !(used || self.limited) {
            return;
        }
        // Counting bytes, one acknowledgement grows the window by one segment at most (RFC 5681 §3.1).
        let mut acked = if self.smss > 1 { acked.min(self.smss) } else { acked };
        if self.in_slow_start() {
            let step = acked.min(self.threshold - self.window);
            self.window += step;
            acked -= step;
        }
        if acked == 0 {
            return;
        }
        match &mut self.cubic {
            Some(cubic) => {
                let (window, acked) = (self.window / self.smss, acked.div_ceil(self.smss));
                self.window += self.smss * cubic.growth(window, acked, now, rtt);
            }
            None => self.grow_by_one_segment_a_round_trip(acked),
        }
    }

    /// A loss was found: the threshold falls; what the window does is up to the recovery.
    pub fn reduce(&mut self, flight: u64) {
        self.before = (self.window, self.threshold);
        self.credit = 0;
        self.threshold = match &mut self.cubic {
            Some(cubic) => self.smss * cubic.reduced(self.window / self.smss),
            // RFC 5681 eq. 4 halves what is in flight; counting segments, Linux halves the window.
            None if self.smss > 1 => flight / 2,
            None => self.window / 2,
        }
        .max(2 * self.smss);
    }

    /// The retransmission timer ran out (RFC 5681 §3.1): one segment, and slow start anew.
    pub fn collapse(&mut self) {
        self.window = self.smss;
        self.credit = 0;
        if let Some(cubic) = &mut self.cubic {
            cubic.forget();
        }
    }

    /// Takes the last reduction back: nothing had been lost (RFC 4015).
    pub fn restore(&mut self) {
        self.window = self.window.max(self.before.0);
        self.threshold = self.before.1;
    }

    /// The window before the last reduction, in units.
    pub fn window_before(&self) -> u64 {
        self.before.0
    }

    /// The connection was idle for `idle` (RFC 5681 §4.1): the window halves for each timeout of it, down to the
    /// initial one.
    pub fn restart(&mut self, idle: Duration, timeout: Duration, profile: &Profile) {
        if let Some(cubic) = &mut self.cubic {
            cubic.pause(idle);
        }
        if !profile.slow_start_after_idle || idle <= timeout {
            return;
        }
        let least = self.window.min(self.smss * u64::from(profile.initial_window));
        let halvings = (idle.as_ns() / timeout.as_ns().max(1)).min(40);
        // The threshold remembers three quarters of what the path once carried (RFC 2861).
        self.threshold = self.threshold.max(self.window / 4 * 3);
        self.window = (self.window >> halvings).max(least);
    }

    fn grow_by_one_segment_a_round_trip(&mut self, acked: u64) {
        self.credit += acked;
        while self.credit >= self.window {
            self.credit -= self.window;
            self.window += self.smss;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(profile: &Profile, window: u64, threshold: u64, acks: u64, acked: u64) -> u64 {
        let mut congestion = Congestion::new(profile, 500);
        (congestion.window, congestion.threshold, congestion.limited) = (window, threshold, true);
        (0..acks).for_each(|_| congestion.grow(acked, Instant::ZERO, Duration::from_ms(100)));
        congestion.window
    }

    #[test]
    fn rfc5681_3_1_slow_start_doubles_and_avoidance_adds_one_segment_a_round_trip() {
        let mut reno = Profile::linux();
        reno.congestion_control = CongestionControl::NewReno;
        assert_eq!(grown(&reno, 10, u64::MAX, 10, 1), 20);
        assert_eq!(grown(&reno, 10, 10, 10, 1), 11);
        assert_eq!(grown(&reno, 10, 15, 5, 2), 15, "what exceeds the threshold counts for avoidance");
        let netbsd = Profile::netbsd_2005();
        assert_eq!(grown(&netbsd, 5_000, 5_000, 10, 500), 5_500);
        assert_eq!(grown(&netbsd, 1_000, u64::MAX, 1, 5_000), 1_500, "one segment for each acknowledgement");
    }

    #[test]
    fn rfc7661_3_a_window_that_is_not_used_does_not_grow() {
        let mut congestion = Congestion::new(&Profile::linux(), 500);
        congestion.note_usage(1, false, 1, 2);
        congestion.grow(1, Instant::ZERO, Duration::from_ms(1));
        assert_eq!(congestion.window, 10);
    }

    #[test]
    fn rfc5681_4_1_an_idle_window_falls_to_the_initial_one() {
        let mut congestion = Congestion::new(&Profile::linux(), 500);
        congestion.window = 100;
        congestion.restart(Duration::from_ms(500), Duration::from_ms(200), &Profile::linux());
        assert_eq!(congestion.window, 25);
        congestion.restart(Duration::from_s(60), Duration::from_ms(200), &Profile::linux());
        assert_eq!(congestion.window, 10);
    }
}
