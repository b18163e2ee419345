//! CUBIC (RFC 9438): the window grows along a cubic that is flat where the last loss was.
//!
//! What it does not model: HyStart's early exit from slow start.

use mqttlab_units::{Duration, Instant};

/// Windows here are in segments, as in the RFC.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cubic {
    /// W_max: the window at the last loss.
    window_max: f64,
    /// When this stretch of congestion avoidance began.
    epoch: Option<Instant>,
    /// K: seconds from the epoch until the curve is back at W_max.
    inflection_s: f64,
    /// W_est: what Reno would have.
    reno: f64,
    /// Growth that does not make a whole segment yet.
    fraction: f64,
}

impl Cubic {
    /// By how many whole segments the window grows for `acked` units (§4.2–4.5).
    pub fn growth(&mut self, window: u64, smss: u64, acked: u64, now: Instant, srtt: Duration) -> u64 {
        let window = window as f64 / smss as f64 + self.fraction;
        let acked = acked as f64 / smss as f64;
        let epoch = *self.epoch.get_or_insert(now);
        if epoch == now && self.reno == 0.0 {
            self.begin(window);
        }
        let elapsed_s = now.checked_since(epoch).unwrap_or_default().as_s_f64();
        // Until Reno is back where the loss was, it grows slower than one segment a round trip (§4.3).
        let slope = if self.reno < self.window_max { 3.0 * (1.0 - BETA) / (1.0 + BETA) } else { 1.0 };
        self.reno += slope * acked / window;
        let increase = if self.curve(elapsed_s) < self.reno {
            (self.reno - window).max(0.0)
        } else {
            let target = self.curve(elapsed_s + srtt.as_s_f64()).clamp(window, 1.5 * window);
            (target - window) / window * acked
        };
        // Never faster than slow start.
        self.fraction += increase.min(acked);
        let whole = self.fraction.floor();
        self.fraction -= whole;
        whole as u64
    }

    /// The threshold after a loss, in units (§4.6), with fast convergence (§4.7).
    pub fn reduced(&mut self, window: u64, smss: u64) -> u64 {
        let segments = window as f64 / smss as f64;
        let yields = segments < self.window_max;
        self.window_max = if yields { segments * (1.0 + BETA) / 2.0 } else { segments };
        (self.epoch, self.reno, self.fraction) = (None, 0.0, 0.0);
        (segments * BETA * smss as f64) as u64
    }

    /// Time in which nothing was sent does not count (§5.8).
    pub fn pause(&mut self, idle: Duration) {
        self.epoch = self.epoch.map(|epoch| epoch + idle);
    }

    fn begin(&mut self, window: f64) {
        self.reno = window;
        if window < self.window_max {
            self.inflection_s = ((self.window_max - window) / C).cbrt();
        } else {
            self.inflection_s = 0.0;
            self.window_max = window;
        }
    }

    /// W_cubic, eq. 1.
    fn curve(&self, at_s: f64) -> f64 {
        C * (at_s - self.inflection_s).powi(3) + self.window_max
    }
}

const C: f64 = 0.4;
const BETA: f64 = 0.7;

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs congestion avoidance from `window` with one acknowledgement per segment; the window after `seconds`.
    fn run(cubic: &mut Cubic, mut window: u64, rtt: Duration, seconds: u64) -> u64 {
        let mut now = Instant::from_ns(1);
        while now < Instant::from_ns(1) + Duration::from_s(seconds) {
            let acknowledgements = window;
            for _ in 0..acknowledgements {
                window += cubic.growth(window, 1, 1, now, rtt);
            }
            now += rtt;
        }
        window
    }

    #[test]
    fn rfc9438_4_2_is_back_at_the_old_window_after_k_seconds() {
        let mut cubic = Cubic::default();
        let window = cubic.reduced(1000, 1);
        assert_eq!(window, 700);
        // K = cbrt(1000 * 0.3 / 0.4) = 9.09 s.
        let after = run(&mut cubic, window, Duration::from_ms(100), 9);
        assert!((985..=1002).contains(&after), "{after}");
        let later = run(&mut cubic.clone(), after, Duration::from_ms(100), 9);
        assert!(later >= after);
    }

    #[test]
    fn rfc9438_4_3_is_no_slower_than_reno_on_short_paths() {
        let mut cubic = Cubic::default();
        let window = cubic.reduced(20, 1);
        // Reno with beta 0.7 grows by 0.53 segments in each of 100 round trips until 20, then by one.
        let after = run(&mut cubic, window, Duration::from_ms(1), 1);
        assert!(after > 500, "{after}");
    }

    #[test]
    fn rfc9438_4_7_yields_when_losses_come_below_the_old_maximum() {
        let mut cubic = Cubic::default();
        cubic.reduced(100, 1);
        cubic.reduced(80, 1);
        assert!((cubic.window_max - 68.0).abs() < 1e-9);
    }
}
