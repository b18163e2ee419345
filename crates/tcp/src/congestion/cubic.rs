//! CUBIC (RFC 9438): the window grows along a cubic that is flat where the last loss was.
//!
//! Counted in whole segments, as in Linux (`tcp_cubic.c`): the curve is rounded towards its origin, and the window grows
//! by one segment each time so many are acknowledged. With the windows of a few segments that MQTT has on lossy paths,
//! that is far from the RFC's real numbers: one segment below the old window, the target is the old window at once.
//!
//! What it does not model: HyStart's early exit from slow start.

use mqttlab_units::{Duration, Instant};

use super::{Acked, Controller, Window};

#[derive(Clone, Debug, Default)]
pub(crate) struct Cubic {
    /// W_max: the window at the last loss.
    w_max: u64,
    epoch: Option<Epoch>,
    /// Segments acknowledged that have not yet grown the window (Linux `snd_cwnd_cnt`).
    ack_count: u64,
}

/// Congestion avoidance from one loss to the next (RFC 9438 §4.2: it begins at `epoch_start`).
#[derive(Clone, Debug)]
struct Epoch {
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
    fn on_ack(&mut self, window: &mut Window, ack: &Acked) {
        let units = window.slow_start(ack);
        if units == 0 {
            return;
        }
        // The curve is in segments, whatever the window counts.
        let (cwnd, acked) = (window.cwnd / window.smss, units.div_ceil(window.smss));
        window.cwnd += window.smss * self.growth(cwnd, acked, ack.now, ack.rtt_min);
    }

    fn on_loss(&mut self, window: &mut Window, _flight: u64) {
        window.ssthresh = window.smss * self.reduced(window.cwnd / window.smss);
    }

    fn on_rto(&mut self, window: &mut Window) {
        // Nothing of the past is to be trusted (§4.8; Linux forgets W_max, too: `bictcp_reset`).
        *self = Cubic::default();
        window.cwnd = window.smss;
    }

    /// Time in which nothing was sent does not count (§5.8).
    fn on_idle(&mut self, idle: Duration) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start += idle;
        }
    }
}

impl Cubic {
    /// By how many segments a window of so many grows for `acked` more (§4.2 to §4.5); `rtt` is the least seen.
    fn growth(&mut self, window: u64, acked: u64, now: Instant, rtt: Duration) -> u64 {
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
            none => none.insert(Epoch::begin(window, self.w_max, acked, now)),
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

impl Epoch {
    fn begin(window: u64, w_max: u64, acked: u64, now: Instant) -> Epoch {
        let below = w_max.saturating_sub(window);
        Epoch {
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
        // A pause may have moved the start of the epoch past the present.
        let at_s = (now.checked_since(self.start).unwrap_or_default() + rtt).as_s_f64();
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
            // alpha = 3 (1 − beta) / (1 + beta): so many windows acknowledged grow W_est by one until it is where the loss
            // was; beyond, one does.
            let eighths = if self.w_est < self.origin_point { RENO_EIGHTHS } else { 8 };
            let step = (window * eighths / 8).max(1);
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
/// With the same window, Linux updates the curve after so long (HZ / 32).
const UPDATE_INTERVAL: Duration = Duration::from_us(31_250);

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs congestion avoidance from `window` with one acknowledgement per segment; the window after `seconds`.
    fn run(cubic: &mut Cubic, mut window: u64, rtt: Duration, seconds: u64) -> u64 {
        let mut now = Instant::from_ns(1);
        while now < Instant::from_ns(1) + Duration::from_s(seconds) {
            let acknowledgements = window;
            for _ in 0..acknowledgements {
                window += cubic.growth(window, 1, now, rtt);
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
        let grown: Vec<u64> =
            (1..=4).map(|n| cubic.growth(4, 1, Instant::from_ns(n), Duration::from_ms(40))).collect();
        assert_eq!(grown, [0, 0, 0, 1]);
    }
}
