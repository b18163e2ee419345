//! CUBIC (RFC 9438): the window grows along a cubic that is flat where the last loss was.
//!
//! Counted in whole segments, as in Linux (`tcp_cubic.c`): the curve is rounded towards its origin, and the window grows
//! by one segment each time so many are acknowledged. With the windows of a few segments that MQTT has on lossy paths,
//! that is far from the RFC's real numbers: one segment below the old window, the target is the old window at once.
//!
//! What it does not model: HyStart's early exit from slow start.

use mqttlab_units::{Duration, Instant};

#[derive(Clone, Debug, Default)]
pub(crate) struct Cubic {
    /// W_max: the window at the last loss.
    window_max: u64,
    stretch: Option<Stretch>,
    /// Segments acknowledged that have not yet grown the window.
    credit: u64,
}

/// A stretch of congestion avoidance, from one loss to the next.
#[derive(Clone, Debug)]
struct Stretch {
    began: Instant,
    /// The window at the flat part of the curve, and K: seconds until it is reached.
    origin: u64,
    inflection_s: f64,
    /// The window that Reno would have (§4.3), and the acknowledged segments that have not yet grown it.
    reno: u64,
    reno_credit: u64,
    /// So many segments acknowledged grow the window by one.
    interval: u64,
    /// The window for which that was worked out, and when.
    reckoned: (u64, Instant),
}

impl Cubic {
    /// By how many segments a window of so many grows for `acked` more (§4.2 to §4.5); `rtt` is the least seen.
    pub fn growth(&mut self, window: u64, acked: u64, now: Instant, rtt: Duration) -> u64 {
        let interval = self.interval(window, acked, now, rtt);
        let mut grown = 0;
        // Credit from a longer interval is spent gently.
        if self.credit >= interval {
            self.credit = 0;
            grown = 1;
        }
        self.credit += acked;
        grown += self.credit / interval;
        self.credit %= interval;
        grown
    }

    /// The threshold after a loss (§4.6), with fast convergence (§4.7).
    pub fn reduced(&mut self, window: u64) -> u64 {
        let yields = window < self.window_max;
        self.window_max = if yields { window * (SCALE + BETA) / (2 * SCALE) } else { window };
        (self.stretch, self.credit) = (None, 0);
        window * BETA / SCALE
    }

    /// A timeout: nothing of the past is to be trusted.
    pub fn forget(&mut self) {
        *self = Cubic::default();
    }

    /// Time in which nothing was sent does not count (§5.8).
    pub fn pause(&mut self, idle: Duration) {
        if let Some(stretch) = &mut self.stretch {
            stretch.began += idle;
        }
    }

    fn interval(&mut self, window: u64, acked: u64, now: Instant, rtt: Duration) -> u64 {
        let first = self.window_max == 0;
        let stretch = match &mut self.stretch {
            Some(stretch) => {
                stretch.reno_credit += acked;
                stretch
            }
            none => none.insert(Stretch::begin(window, self.window_max, acked, now)),
        };
        let (reckoned_for, at) = stretch.reckoned;
        let fresh = stretch.interval > 0 && reckoned_for == window && now.since(at) <= RECKON_EVERY;
        if !fresh {
            stretch.reckon(window, now, rtt, first);
        }
        stretch.interval
    }
}

impl Stretch {
    fn begin(window: u64, window_max: u64, acked: u64, now: Instant) -> Stretch {
        let below = window_max.saturating_sub(window);
        Stretch {
            began: now,
            origin: window.max(window_max),
            inflection_s: (below as f64 / C).cbrt(),
            reno: window,
            reno_credit: acked,
            interval: 0,
            reckoned: (window, now),
        }
    }

    fn reckon(&mut self, window: u64, now: Instant, rtt: Duration, first: bool) {
        self.reckoned = (window, now);
        // A pause may have moved the beginning past the present.
        let at_s = (now.checked_since(self.began).unwrap_or_default() + rtt).as_s_f64();
        let distance = (C * (at_s - self.inflection_s).abs().powi(3)) as u64;
        let target = if at_s < self.inflection_s {
            self.origin.saturating_sub(distance)
        } else {
            self.origin + distance
        };
        self.interval = if target > window { window / (target - window) } else { 100 * window };
        if first {
            // Nothing is known of the path yet: 5 % a round trip at least.
            self.interval = self.interval.min(20);
        }
        self.keep_up_with_reno(window);
        // Never faster than one segment for two (§4.4).
        self.interval = self.interval.max(2);
    }

    /// No slower than Reno would be with the same reduction (§4.3).
    fn keep_up_with_reno(&mut self, window: u64) {
        loop {
            // (1 + beta) / (3 (1 - beta)) windows acknowledged grow it by one, where the loss was and beyond one does.
            let eighths = if self.reno < self.origin { RENO_EIGHTHS } else { 8 };
            let step = (window * eighths / 8).max(1);
            if self.reno_credit <= step {
                break;
            }
            self.reno_credit -= step;
            self.reno += 1;
        }
        if self.reno > window {
            self.interval = self.interval.min(window / (self.reno - window));
        }
    }
}

const C: f64 = 0.4;
/// beta is 717/1024, 0.7.
const BETA: u64 = 717;
const SCALE: u64 = 1024;
const RENO_EIGHTHS: u64 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);
/// With the same window, Linux works the interval out anew after so long.
const RECKON_EVERY: Duration = Duration::from_us(31_250);

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
        assert_eq!(cubic.window_max, 68);
    }

    #[test]
    fn small_windows_reach_for_the_old_one_at_once() {
        let mut cubic = Cubic::default();
        assert_eq!(cubic.reduced(7), 4);
        cubic.window_max = 5;
        // K is 1.4 s, but 0.9 segments below the origin are none: one more after four acknowledged.
        let grown: Vec<u64> =
            (1..=4).map(|n| cubic.growth(4, 1, Instant::from_ns(n), Duration::from_ms(40))).collect();
        assert_eq!(grown, [0, 0, 0, 1]);
    }
}
