//! The congestion window: how far it is used, and the algorithm that steers it.
//!
//! The window counts *units*, segments or bytes as the profile says; `smss` is one full segment in units. Which segments
//! are lost, and when, is recovery's business; it tells the [`Controller`] what happened.
//!
//! | event | who | window (`cwnd`) | threshold (`ssthresh`) |
//! |---|---|---|---|
//! | the connection stands | [`Controller::on_start`] | initial | none |
//! | a round trip is measured | [`Controller::on_round_trip`] | | may end slow start |
//! | new data acknowledged, window in use | [`Controller::on_ack`] | grows | |
//! | a loss is found | [`Controller::on_loss`] | up to the recovery: rate reduction, or at once | falls |
//! | retransmission timeout | [`Controller::on_rto`] | one segment | |
//! | nothing was in the network | [`Controller::on_pause`] | | |
//! | the connection was idle | here (RFC 5681 §4.1) | halves for each RTO, to the initial one | remembers ¾ of it |
//! | the loss was none | here (RFC 4015) | as before | as before |
//!
//! An algorithm is a file with a [`Controller`], and a line in `algorithms!` (besides its `mod`).
//!
//! What it does not model: pacing, delivery rate samples.

mod cubic;
mod new_reno;

use mqttlab_fields::words;
use mqttlab_units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an algorithm decides. It sees the window in units of the profile and may keep state of its own.
pub(crate) trait Controller {
    /// New data was acknowledged, not in fast recovery.
    fn on_ack(&mut self, window: &mut Window, ack: &AckedUnits);

    /// A loss was found, for the first time since the last recovery; `flight` is what was outstanding. Sets the
    /// threshold, to be raised to two segments at least (RFC 5681 eq. 4).
    fn on_loss(&mut self, window: &mut Window, flight: u64);

    /// The retransmission timer ran out (RFC 5681 §3.1): slow start begins anew from one segment. What is sent next is at
    /// `next`.
    fn on_rto(&mut self, window: &mut Window, now: Instant, next: u64);

    /// The handshake is over; what is sent next is at `next`.
    fn on_start(&mut self, _now: Instant, _next: u64) {}

    /// A round trip was measured.
    fn on_round_trip(&mut self, _window: &mut Window, _measured: &Measured) {}

    /// Something leaves, after nothing was in the network for so long.
    fn on_pause(&mut self, _idle: Duration, _now: Instant) {}
}

/// The window that is steered, in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Congestion window.
    pub cwnd: u64,
    /// Slow start threshold; `u64::MAX` before the first loss.
    pub ssthresh: u64,
    /// One full segment.
    pub smss: u64,
}

/// An acknowledgement of new data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckedUnits {
    pub now: Instant,
    /// Units acknowledged.
    pub units: u64,
    /// Whether the window was what stopped the sender: one that is not used must not grow (RFC 7661 §3, Linux).
    pub cwnd_limited: bool,
}

/// A round trip, as measured by an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub now: Instant,
    /// Of the youngest segment that it covers.
    pub rtt: Duration,
    /// SND.UNA and SND.NXT.
    pub una: u64,
    pub next: u64,
}

/// What the congestion window counts: a small segment fills a window of segments as much as a large one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowUnit {
    /// Segments, whatever their size (Linux).
    Segments,
    /// Bytes (RFC 5681, the BSDs, lwIP).
    Bytes,
}

words! {
    /// Congestion control algorithms that a scenario may name. The simulator has those that are
    /// [modelled](CongestionControl::is_modelled).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum CongestionControl {
        /// RFC 5681 with NewReno (RFC 6582).
        Reno = "reno",
        /// CUBIC (RFC 9438).
        Cubic = "cubic",
        /// BBR; live runs only.
        Bbr = "bbr",
    }
}

/// Declares the algorithms that are modelled, and hands events to the one that is in force without a pointer.
macro_rules! algorithms {
    ($($name:ident: $controller:ty;)+) => {
        #[derive(Clone, Debug)]
        enum Algorithm {
            $($name($controller),)+
        }

        impl Algorithm {
            fn new(choice: CongestionControl) -> Option<Algorithm> {
                match choice {
                    $(CongestionControl::$name => Some(Algorithm::$name(Default::default())),)+
                    #[allow(unreachable_patterns, reason = "until all that a scenario may name are modelled")]
                    _ => None,
                }
            }
        }

        impl Controller for Algorithm {
            fn on_ack(&mut self, window: &mut Window, ack: &AckedUnits) {
                match self {
                    $(Algorithm::$name(controller) => controller.on_ack(window, ack),)+
                }
            }

            fn on_loss(&mut self, window: &mut Window, flight: u64) {
                match self {
                    $(Algorithm::$name(controller) => controller.on_loss(window, flight),)+
                }
            }

            fn on_rto(&mut self, window: &mut Window, now: Instant, next: u64) {
                match self {
                    $(Algorithm::$name(controller) => controller.on_rto(window, now, next),)+
                }
            }

            fn on_start(&mut self, now: Instant, next: u64) {
                match self {
                    $(Algorithm::$name(controller) => controller.on_start(now, next),)+
                }
            }

            fn on_round_trip(&mut self, window: &mut Window, measured: &Measured) {
                match self {
                    $(Algorithm::$name(controller) => controller.on_round_trip(window, measured),)+
                }
            }

            fn on_pause(&mut self, idle: Duration, now: Instant) {
                match self {
                    $(Algorithm::$name(controller) => controller.on_pause(idle, now),)+
                }
            }
        }
    };
}

algorithms! {
    Reno: new_reno::NewReno;
    Cubic: cubic::Cubic;
}

impl CongestionControl {
    /// Whether an endpoint can have it.
    pub fn is_modelled(self) -> bool {
        Algorithm::new(self).is_some()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Congestion {
    pub window: Window,
    algorithm: Algorithm,
    /// The initial window.
    initial: u64,
    /// Window and threshold before the last reduction, for undoing it, unless it is to be kept.
    before: Window,
    keeps: bool,
    /// Most units in flight since `usage_end` was sent, and whether the window was what stopped the sender.
    flight_max: u64,
    limited: bool,
    usage_end: u64,
}

impl Congestion {
    /// With an initial window of so many segments (RFC 6928), of which each has `payload_max` bytes.
    pub fn new(choice: CongestionControl, unit: WindowUnit, segments: u32, payload_max: u16) -> Congestion {
        let smss = match unit {
            WindowUnit::Segments => 1,
            WindowUnit::Bytes => u64::from(payload_max),
        };
        let initial = smss * u64::from(segments.max(1));
        let window = Window { cwnd: initial, ssthresh: u64::MAX, smss };
        Congestion {
            window,
            algorithm: Algorithm::new(choice).expect("a profile's algorithm is modelled"),
            initial,
            before: window,
            keeps: false,
            flight_max: 0,
            limited: false,
            usage_end: 0,
        }
    }

    /// What a segment of so many bytes takes of the window.
    pub fn units(&self, length: u16) -> u64 {
        if self.window.smss == 1 { 1 } else { u64::from(length) }
    }

    /// Notes how far the window is used, for one flight at a time (Linux `tcp_cwnd_validate`).
    pub fn note_usage(&mut self, flight: u64, limited: bool, una: u64, next: u64) {
        // Anew with each flight, at once when the window was the limit, else by the fullest moment of the flight.
        if una >= self.usage_end || limited || !self.limited && flight > self.flight_max {
            self.flight_max = flight;
            self.limited = limited;
            self.usage_end = next;
        }
    }

    /// New data was acknowledged: the window grows, if it is used.
    pub fn on_ack(&mut self, units: u64, now: Instant) {
        // In slow start a window counts as used when half of it is (Linux `tcp_is_cwnd_limited`): it doubles in a round
        // trip, and the flight that it was needed for is one round trip old.
        let used = self.window.in_slow_start() && self.window.cwnd < 2 * self.flight_max;
        let ack = AckedUnits { now, units, cwnd_limited: used || self.limited };
        self.algorithm.on_ack(&mut self.window, &ack);
    }

    /// A loss was found: the threshold falls; what the window does is up to the recovery.
    pub fn on_loss(&mut self, flight: u64) {
        // Before the algorithm moves it: undoing needs what was there, and rate reduction RecoverFS.
        (self.before, self.keeps) = (self.window, false);
        self.algorithm.on_loss(&mut self.window, flight);
        // RFC 5681 eq. 4.
        self.window.ssthresh = self.window.ssthresh.max(2 * self.window.smss);
    }

    /// The retransmission timer ran out.
    pub fn on_rto(&mut self, now: Instant, next: u64) {
        self.algorithm.on_rto(&mut self.window, now, next);
    }

    /// The handshake is over.
    pub fn on_start(&mut self, now: Instant, next: u64) {
        self.algorithm.on_start(now, next);
    }

    /// A round trip was measured.
    pub fn on_round_trip(&mut self, measured: &Measured) {
        self.algorithm.on_round_trip(&mut self.window, measured);
    }

    /// Something leaves, after nothing was in the network for so long.
    pub fn on_pause(&mut self, idle: Duration, now: Instant) {
        self.algorithm.on_pause(idle, now);
    }

    /// Takes the last reduction back: nothing had been lost (RFC 4015).
    pub fn undo(&mut self) {
        if self.keeps {
            return;
        }
        // The window may have grown beyond in the meantime.
        self.window.cwnd = self.window.cwnd.max(self.before.cwnd);
        self.window.ssthresh = self.before.ssthresh;
    }

    /// The last reduction is not taken back any more.
    pub fn keep_reduction(&mut self) {
        self.keeps = true;
    }

    /// The window before the last reduction (RFC 6937 `RecoverFS`).
    pub fn window_before(&self) -> u64 {
        self.before.cwnd
    }

    /// The connection was idle for `idle` (RFC 5681 §4.1). Where the window `decays` it halves for each timeout of it,
    /// down to the initial one (RFC 2861).
    pub fn on_idle(&mut self, idle: Duration, timeout: Duration, decays: bool) {
        if !decays || idle <= timeout {
            return;
        }
        let window = &mut self.window;
        // RFC 5681 §4.1: the restart window is no larger than the window that there was.
        let least = window.cwnd.min(self.initial);
        let halvings = (idle.as_ns() / timeout.as_ns().max(1)).min(40);
        // The threshold remembers three quarters of what the path once carried (RFC 2861 §3).
        window.ssthresh = window.ssthresh.max(window.cwnd / 4 * 3);
        window.cwnd = (window.cwnd >> halvings).max(least);
    }
}

impl Window {
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start (RFC 5681 §3.1), for controllers that have it: grows up to the threshold by what was acknowledged, and
    /// says how much of that is left for congestion avoidance. Nothing is, where the window was not used.
    fn slow_start(&mut self, ack: &AckedUnits) -> u64 {
        if !ack.cwnd_limited {
            return 0;
        }
        // Counting bytes, one acknowledgement grows the window by one segment at most (RFC 5681 §3.1).
        let units = if self.smss > 1 { ack.units.min(self.smss) } else { ack.units };
        if !self.in_slow_start() {
            return units;
        }
        let step = units.min(self.ssthresh - self.cwnd);
        self.cwnd += step;
        units - step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(segments: u32) -> Congestion {
        Congestion::new(CongestionControl::Reno, WindowUnit::Bytes, segments, 500)
    }

    fn segments(choice: CongestionControl) -> Congestion {
        Congestion::new(choice, WindowUnit::Segments, 10, 500)
    }

    fn grown(mut congestion: Congestion, cwnd: u64, ssthresh: u64, acks: u64, units: u64) -> u64 {
        (congestion.window.cwnd, congestion.window.ssthresh, congestion.limited) = (cwnd, ssthresh, true);
        (0..acks).for_each(|_| congestion.on_ack(units, Instant::ZERO));
        congestion.window.cwnd
    }

    #[test]
    fn rfc5681_3_1_slow_start_doubles_and_avoidance_adds_one_segment_a_round_trip() {
        let reno = || segments(CongestionControl::Reno);
        assert_eq!(grown(reno(), 10, u64::MAX, 10, 1), 20);
        assert_eq!(grown(reno(), 10, 10, 10, 1), 11);
        assert_eq!(grown(reno(), 10, 15, 5, 2), 15, "what exceeds the threshold counts for avoidance");
        assert_eq!(grown(bytes(2), 5_000, 5_000, 10, 500), 5_500);
        assert_eq!(grown(bytes(2), 1_000, u64::MAX, 1, 5_000), 1_500, "one segment for each acknowledgement");
    }

    #[test]
    fn rfc7661_3_a_window_that_is_not_used_does_not_grow() {
        for choice in [CongestionControl::Reno, CongestionControl::Cubic] {
            let mut congestion = segments(choice);
            congestion.note_usage(1, false, 1, 2);
            congestion.on_ack(1, Instant::ZERO);
            assert_eq!(congestion.window.cwnd, 10);
        }
    }

    #[test]
    fn rfc5681_4_1_an_idle_window_falls_to_the_initial_one() {
        let mut congestion = segments(CongestionControl::Cubic);
        congestion.window.cwnd = 100;
        congestion.on_idle(Duration::from_ms(500), Duration::from_ms(200), true);
        assert_eq!(congestion.window.cwnd, 25);
        congestion.on_idle(Duration::from_s(60), Duration::from_ms(200), true);
        assert_eq!(congestion.window.cwnd, 10);
    }

    #[test]
    fn rfc5681_eq_4_the_threshold_is_two_segments_at_least_and_an_undone_loss_leaves_no_trace() {
        for choice in [CongestionControl::Reno, CongestionControl::Cubic] {
            let mut congestion = segments(choice);
            let before = congestion.window;
            congestion.on_loss(2);
            congestion.on_rto(Instant::ZERO, 1);
            assert!(congestion.window.ssthresh < 10 && congestion.window.cwnd == 1, "{choice:?}");
            congestion.undo();
            assert_eq!(congestion.window, before, "{choice:?}");
            congestion.window.cwnd = 2;
            congestion.on_loss(2);
            assert_eq!(congestion.window.ssthresh, 2, "{choice:?}");
        }
    }
}
