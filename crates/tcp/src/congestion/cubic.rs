//! CUBIC (RFC 9438): the window grows along a cubic that is flat where the last loss was.
//!
//! Counted in whole segments, as in Linux (`tcp_cubic.c`): the curve is rounded towards its origin, and the window grows
//! by one segment each time so many are acknowledged. With the windows of a few segments that MQTT has on lossy paths,
//! that is far from the RFC's real numbers: one segment below the old window, the target is the old window at once.
//!
//! Slow start ends early when acknowledgements say that a queue builds up (HyStart: Ha and Rhee, "Taming the elephants",
//! 2011), as Linux has it: from sixteen segments on, by the round trips or by the length of a train of acknowledgements.
//!
//! What it does not model: pacing, which would lengthen the train.

use mqttlab_units::{Duration, Instant};

use super::{AckedUnits, Controller, Measured, Window};

#[derive(Clone, Debug, Default)]
pub(crate) struct Cubic {
    /// W_max: the window at the last loss.
    w_max: u64,
    /// From the first growth behind slow start on, where few connections come.
    epoch: Option<Box<CubicEpoch>>,
    /// Segments acknowledged that have not yet grown the window (Linux `snd_cwnd_cnt`).
    ack_count: u64,
    /// Least round trip since the last timeout, those right after a loss left out (Linux `delay_min`).
    rtt_min: Option<Duration>,
    hystart: HyStart,
}

/// What is watched while in slow start, anew in each round trip.
#[derive(Clone, Debug, Default)]
struct HyStart {
    round_start: Instant,
    /// The latest acknowledgement of the train (Linux `last_ack`).
    train: Instant,
    /// Position whose acknowledgement ends the round.
    round_end: u64,
    /// Least round trip of this round, and the number of its samples, eight at most.
    round_rtt_min: Option<Duration>,
    samples: u8,
    /// The end has been found; not looked for again before a timeout.
    found: bool,
}

/// Congestion avoidance from one loss to the next (RFC 9438 §4.2: it begins at `epoch_start`).
#[derive(Clone, Debug)]
struct CubicEpoch {
    start: Instant,
    /// The window at the flat part of the curve (Linux `bic_origin_point`), and K: seconds until it is reached.
    origin_point: u64,
    k_s: f64,
    /// W_est: the window that Reno would have (§4.3), and the acknowledged segments that have not yet grown it.
    w_est: u64,
    w_est_ack_count: u64,
    /// So many segments acknowledged grow the window by one (Linux `cnt`).
    acks_per_segment: u64,
    /// The window for which that was worked out, and when.
    updated: (u64, Instant),
}

impl Controller for Cubic {
    fn on_ack(&mut self, window: &mut Window, ack: &AckedUnits) {
        let units = window.slow_start(ack);
        if units == 0 {
            return;
        }
        // The curve is in segments, whatever the window counts.
        let (cwnd, acked) = (window.cwnd / window.smss, units.div_ceil(window.smss));
        window.cwnd += window.smss * self.growth(cwnd, acked, ack.now);
    }

    fn on_start(&mut self, now: Instant, next: u64) {
        self.hystart.begin_round(now, next);
    }

    /// `cubictcp_acked`.
    fn on_round_trip(&mut self, window: &mut Window, measured: &Measured) {
        // Round trips right after a loss say nothing of the path.
        let epoch = self.epoch.as_ref();
        if epoch.is_some_and(|epoch| measured.now.since(epoch.start) < AFTER_LOSS) {
            return;
        }
        let rtt_min = self.rtt_min.map_or(measured.rtt, |least| least.min(measured.rtt));
        self.rtt_min = Some(rtt_min);
        if window.in_slow_start() && !self.hystart.found {
            let large = window.cwnd / window.smss >= HYSTART_LOW_WINDOW;
            if self.hystart.has_ended(large, rtt_min, measured) {
                window.ssthresh = window.cwnd;
            }
        }
    }

    fn on_loss(&mut self, window: &mut Window, _flight: u64) {
        window.ssthresh = window.smss * self.reduced(window.cwnd / window.smss);
    }

    fn on_rto(&mut self, window: &mut Window, now: Instant, next: u64) {
        // Nothing of the past is to be trusted (§4.8; Linux forgets W_max, too: `bictcp_reset`).
        *self = Cubic::default();
        self.on_start(now, next);
        window.cwnd = window.smss;
    }

    /// Time in which nothing was in the network does not count (§5.8; `cubictcp_cwnd_event`). The last acknowledgements may
    /// have come in it, so that the epoch would begin after `now`.
    fn on_pause(&mut self, idle: Duration, now: Instant) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + idle).min(now);
        }
    }
}

impl Cubic {
    /// By how many segments a window of so many grows for `acked` more (§4.2 to §4.5).
    fn growth(&mut self, window: u64, acked: u64, now: Instant) -> u64 {
        let rtt = self.rtt_min.unwrap_or_default();
        let acks_per_segment = self.acks_per_segment(window, acked, now, rtt);
        let mut grown = 0;
        // What was counted while the curve was flatter grows it by one at most (Linux `tcp_cong_avoid_ai`).
        if self.ack_count >= acks_per_segment {
            self.ack_count = 0;
            grown = 1;
        }
        self.ack_count += acked;
        grown += self.ack_count / acks_per_segment;
        self.ack_count %= acks_per_segment;
        grown
    }

    /// The threshold after a loss (§4.6), with fast convergence (§4.7): who loses below its old maximum makes room for a
    /// flow that has come since.
    fn reduced(&mut self, window: u64) -> u64 {
        let makes_room = window < self.w_max;
        self.w_max = if makes_room { window * (SCALE + BETA) / (2 * SCALE) } else { window };
        (self.epoch, self.ack_count) = (None, 0);
        window * BETA / SCALE
    }

    fn acks_per_segment(&mut self, window: u64, acked: u64, now: Instant, rtt: Duration) -> u64 {
        let first = self.w_max == 0;
        let epoch = match &mut self.epoch {
            Some(epoch) => {
                epoch.w_est_ack_count += acked;
                epoch
            }
            none => none.insert(Box::new(CubicEpoch::begin(window, self.w_max, acked, now))),
        };
        let (updated_for, at) = epoch.updated;
        let is_fresh =
            epoch.acks_per_segment > 0 && updated_for == window && now.since(at) <= UPDATE_INTERVAL;
        if !is_fresh {
            epoch.update(window, now, rtt, first);
        }
        epoch.acks_per_segment
    }
}

impl HyStart {
    fn begin_round(&mut self, now: Instant, next: u64) {
        *self = HyStart { round_start: now, train: now, round_end: next, ..HyStart::default() };
    }

    /// `hystart_update`: acknowledgements that follow each other closely for half of the least round trip, or a round whose
    /// least round trip is an eighth longer than the least of all. Of a window that is not `large` only the round is kept.
    fn has_ended(&mut self, large: bool, rtt_min: Duration, measured: &Measured) -> bool {
        if measured.una > self.round_end {
            self.begin_round(measured.now, measured.next);
        }
        if !large {
            return false;
        }
        if measured.now.since(self.train) <= ACK_DELTA {
            self.train = measured.now;
            let length = measured.now.since(self.round_start);
            self.found = length.as_ns() > (rtt_min + ACK_DELAY).as_ns() / 2;
        }
        let round_rtt_min = self.round_rtt_min.map_or(measured.rtt, |least| least.min(measured.rtt));
        self.round_rtt_min = Some(round_rtt_min);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else {
            let longer = Duration::from_ns(rtt_min.as_ns() / 8).clamp(DELAY_MIN, DELAY_MAX);
            self.found |= round_rtt_min > rtt_min + longer;
        }
        self.found
    }
}

impl CubicEpoch {
    fn begin(window: u64, w_max: u64, acked: u64, now: Instant) -> CubicEpoch {
        let below = w_max.saturating_sub(window);
        CubicEpoch {
            start: now,
            origin_point: window.max(w_max),
            // K = cbrt((W_max − cwnd) / C) (§4.2).
            k_s: (below as f64 / C).cbrt(),
            w_est: window,
            w_est_ack_count: acked,
            acks_per_segment: 0,
            updated: (window, now),
        }
    }

    /// W_cubic(t + RTT) = C (t − K)³ + W_max (§4.2), and how many acknowledgements it takes to be there in a round trip
    /// (Linux `bictcp_update`).
    fn update(&mut self, window: u64, now: Instant, rtt: Duration, first: bool) {
        self.updated = (window, now);
        let at_s = (now.since(self.start) + rtt).as_s_f64();
        let distance = (C * (at_s - self.k_s).abs().powi(3)) as u64;
        let target = if at_s < self.k_s {
            self.origin_point.saturating_sub(distance)
        } else {
            self.origin_point + distance
        };
        self.acks_per_segment = if target > window { window / (target - window) } else { 100 * window };
        if first {
            // Nothing is known of the path yet: 5 % a round trip at least.
            self.acks_per_segment = self.acks_per_segment.min(20);
        }
        self.keep_up_with_reno(window);
        // Never faster than one segment for two (§4.4: 1.5 times the window in a round trip).
        self.acks_per_segment = self.acks_per_segment.max(2);
    }

    /// No slower than Reno would be with the same reduction (§4.3).
    fn keep_up_with_reno(&mut self, window: u64) {
        loop {
            // (1 + beta) / (3 (1 − beta)) windows acknowledged grow W_est by one. Beyond where the loss was one window would do
            // (§4.3), which Linux has not taken over.
            let step = (window * RENO_EIGHTHS / 8).max(1);
            if self.w_est_ack_count <= step {
                break;
            }
            self.w_est_ack_count -= step;
            self.w_est += 1;
        }
        if self.w_est > window {
            self.acks_per_segment = self.acks_per_segment.min(window / (self.w_est - window));
        }
    }
}

const C: f64 = 0.4;
/// beta is 717/1024, 0.7.
const BETA: u64 = 717;
const SCALE: u64 = 1024;
const RENO_EIGHTHS: u64 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);
/// `hystart_low_window`, in segments.
const HYSTART_LOW_WINDOW: u64 = 16;
/// `hystart_ack_delta_us`, and what `hystart_ack_delay` is on all but the fastest paths.
const ACK_DELTA: Duration = Duration::from_ms(2);
const ACK_DELAY: Duration = Duration::from_ms(1);
/// `HYSTART_MIN_SAMPLES`, `HYSTART_DELAY_MIN` and `HYSTART_DELAY_MAX`.
const MIN_SAMPLES: u8 = 8;
const DELAY_MIN: Duration = Duration::from_ms(4);
const DELAY_MAX: Duration = Duration::from_ms(16);
/// See `on_round_trip`.
const AFTER_LOSS: Duration = Duration::from_s(1);
/// With the same window, Linux updates the curve after so long (HZ / 32).
const UPDATE_INTERVAL: Duration = Duration::from_us(31_250);

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs congestion avoidance from `window` with one acknowledgement per segment; the window after `seconds`.
    fn run(cubic: &mut Cubic, mut window: u64, rtt: Duration, seconds: u64) -> u64 {
        let mut now = Instant::from_ns(1);
        cubic.rtt_min = Some(rtt);
        while now < Instant::from_ns(1) + Duration::from_s(seconds) {
            let acknowledgements = window;
            for _ in 0..acknowledgements {
                window += cubic.growth(window, 1, now);
            }
            now += rtt;
        }
        window
    }

    #[test]
    fn rfc9438_4_2_is_back_at_the_old_window_after_k_seconds() {
        let mut cubic = Cubic::default();
        let window = cubic.reduced(1000);
        assert_eq!(window, 700);
        // K = cbrt(1000 * 0.3 / 0.4) = 9.09 s.
        let after = run(&mut cubic, window, Duration::from_ms(100), 9);
        assert!((985..=1002).contains(&after), "{after}");
    }

    #[test]
    fn rfc9438_4_3_is_no_slower_than_reno_on_short_paths() {
        let mut cubic = Cubic::default();
        let window = cubic.reduced(20);
        // Reno with beta 0.7 grows by 0.53 segments in each of 100 round trips until 20, then by one.
        let after = run(&mut cubic, window, Duration::from_ms(1), 1);
        assert!(after > 500, "{after}");
    }

    #[test]
    fn rfc9438_4_7_yields_when_losses_come_below_the_old_maximum() {
        let mut cubic = Cubic::default();
        cubic.reduced(100);
        cubic.reduced(80);
        assert_eq!(cubic.w_max, 68);
    }

    #[test]
    fn small_windows_reach_for_the_old_one_at_once() {
        let mut cubic = Cubic::default();
        assert_eq!(cubic.reduced(7), 4);
        cubic.w_max = 5;
        // K is 1.4 s, but 0.9 segments below the origin are none: one more after four acknowledged.
        cubic.rtt_min = Some(Duration::from_ms(40));
        let grown: Vec<u64> = (1..=4).map(|n| cubic.growth(4, 1, Instant::from_ns(n))).collect();
        assert_eq!(grown, [0, 0, 0, 1]);
    }

    /// Slow start at a window of so many segments, and a round trip that is measured at an instant; whether it ends.
    fn ends_with(cubic: &mut Cubic, cwnd: u64, rtt: Duration, now: Instant) -> bool {
        let mut window = Window { cwnd, ssthresh: u64::MAX, smss: 1 };
        cubic.on_round_trip(&mut window, &Measured { now, rtt, una: 2, next: 1_000 });
        window.ssthresh == cwnd
    }

    /// Sixteen samples of a round, `apart` from each other, of round trips that `longer` lengthens, after one of 40 ms.
    fn ends(cwnd: u64, apart: Duration, longer: Duration) -> Option<u64> {
        let (mut cubic, start) = (Cubic::default(), Instant::from_ns(1));
        cubic.on_start(start, 1);
        let first = Duration::from_ms(40);
        assert!(!ends_with(&mut cubic, cwnd, first, start));
        (1..=16).find(|n| ends_with(&mut cubic, cwnd, first + longer, start + apart * *n))
    }

    #[test]
    fn slow_start_ends_when_the_least_of_nine_round_trips_is_an_eighth_longer() {
        let apart = Duration::from_ms(3);
        // The first sample of the round was the short one; the next round has none.
        assert_eq!(ends(16, apart, Duration::from_ms(6)), None);
        let mut cubic = Cubic::default();
        cubic.on_start(Instant::from_ns(1), 1);
        cubic.rtt_min = Some(Duration::from_ms(40));
        let mut at = Instant::from_ns(1);
        let mut ended = |rtt: u64| {
            at += apart;
            ends_with(&mut cubic, 16, Duration::from_ms(rtt), at)
        };
        assert!((0..8).all(|_| !ended(46)));
        assert!(ended(46), "40 ms and more than 5");
        assert!(!ended(60), "only once");
    }

    #[test]
    fn slow_start_ends_after_a_train_of_acknowledgements_of_half_a_round_trip() {
        assert_eq!(ends(16, Duration::from_ms(2), Duration::ZERO), Some(11), "more than 20.5 ms");
        assert_eq!(ends(16, Duration::from_ms(3), Duration::ZERO), None, "a gap ends the train");
        assert_eq!(ends(15, Duration::from_ms(2), Duration::ZERO), None, "the window is small");
    }
}
