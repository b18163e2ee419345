//! Round-trip time and the retransmission timeout (RFC 6298), and Linux's variant of it.
//!
//! Karn's rule is kept by whoever takes the samples: only segments sent once are measured, or, with timestamps,
//! any that echo one.

use mqttlab_units::Duration;

use crate::profile::{RtoFloor, RtoPolicy};

#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    /// Smoothed round-trip time in ns, zero before the first sample.
    srtt: u64,
    /// Four deviations, in ns: what is added to the SRTT.
    variance: u64,
    /// Linux: the present mean deviation (times four) and its maximum within a window.
    deviation: u64,
    deviation_max: u64,
    /// Linux: position whose acknowledgement ends the window.
    window_end: u64,
    /// Least round-trip time seen, in ns.
    least: u64,
    /// The SYN was repeated and its round trip could not be measured.
    pub syn_was_lost: bool,
    /// Timeouts in a row.
    pub backoff: u8,
}

impl RttEstimator {
    pub fn new() -> RttEstimator {
        RttEstimator {
            srtt: 0,
            variance: 0,
            deviation: 0,
            deviation_max: 0,
            window_end: 0,
            least: u64::MAX,
            syn_was_lost: false,
            backoff: 0,
        }
    }

    /// Takes a measurement. `acknowledged` and `sent` are the positions up to which that is so.
    pub fn sample(&mut self, rtt: Duration, policy: &RtoPolicy, acknowledged: u64, sent: u64) {
        // A round trip of no time would read as "no sample yet".
        let rtt = rtt.as_ns().max(1);
        self.least = self.least.min(rtt);
        // Only a measurement takes the back-off away: an acknowledgement of a repeated segment is none (Karn).
        self.backoff = 0;
        match policy.floor {
            RtoFloor::Timeout => self.smooth(rtt),
            RtoFloor::Variance => self.smooth_as_linux(rtt, policy.min.as_ns(), acknowledged, sent),
        }
    }

    /// Notes a round trip that counts only for the least one.
    pub fn note_least(&mut self, rtt: Duration) {
        self.least = self.least.min(rtt.as_ns().max(1));
    }

    /// The smoothed round-trip time.
    pub fn srtt(&self) -> Option<Duration> {
        (self.srtt > 0).then(|| Duration::from_ns(self.srtt))
    }

    /// The least round-trip time.
    pub fn least(&self) -> Option<Duration> {
        (self.least < u64::MAX).then(|| Duration::from_ns(self.least))
    }

    /// The timeout before backing off.
    pub fn base_timeout(&self, policy: &RtoPolicy) -> Duration {
        if self.srtt == 0 {
            // The initial timeout may have been too short for this path (RFC 6298 §5.7).
            return if self.syn_was_lost { policy.initial.max(AFTER_LOST_SYN) } else { policy.initial };
        }
        let timeout = Duration::from_ns(self.srtt + self.variance);
        timeout.max(policy.min).min(policy.max)
    }

    /// The timeout now.
    pub fn timeout(&self, policy: &RtoPolicy) -> Duration {
        // RFC 6298 §5.5: doubled for each timeout, within the bound of §2.5.
        let base = self.base_timeout(policy).as_ns();
        let doubled = base.saturating_mul(1 << self.backoff.min(20));
        Duration::from_ns(doubled).min(policy.max)
    }

    /// RFC 6298 §2.2 and §2.3.
    fn smooth(&mut self, rtt: u64) {
        if self.srtt == 0 {
            self.srtt = rtt;
            self.variance = 2 * rtt;
        } else {
            // The deviation first: §2.3 wants it from the SRTT as it was. K is 4 and beta 1/4, so that one shift does
            // both.
            let error = self.srtt.abs_diff(rtt);
            self.variance = self.variance - self.variance / 4 + error;
            self.srtt = self.srtt - self.srtt / 8 + rtt / 8;
        }
    }

    /// Linux's `tcp_rtt_estimator`: falls of the RTT hardly raise the deviation, and the deviation's maximum over
    /// a window counts, which is never below the minimum RTO.
    fn smooth_as_linux(&mut self, rtt: u64, floor: u64, acknowledged: u64, sent: u64) {
        if self.srtt == 0 {
            self.srtt = rtt;
            self.deviation = 2 * rtt;
            self.variance = self.deviation.max(floor);
            self.deviation_max = self.variance;
            self.window_end = sent;
            return;
        }
        let error = self.srtt.abs_diff(rtt);
        let falls = rtt < self.srtt;
        self.srtt = if falls { self.srtt - error / 8 } else { self.srtt + error / 8 };
        let mean = self.deviation / 4;
        if error < mean {
            self.deviation -= mean - error;
        } else {
            // A finer gain where the RTT falls, or a path that becomes faster would raise the timeout.
            self.deviation += (error - mean) / if falls { 8 } else { 1 };
        }
        self.deviation_max = self.deviation_max.max(self.deviation);
        self.variance = self.variance.max(self.deviation_max);
        // Once a round trip (`rtt_seq`): what was worst before decays to what was worst in it.
        if acknowledged > self.window_end {
            self.variance -= (self.variance - self.deviation_max) / 4;
            self.window_end = sent;
            self.deviation_max = floor;
        }
    }
}

/// RFC 6298 §5.7 (Linux: `TCP_TIMEOUT_FALLBACK`).
const AFTER_LOST_SYN: Duration = Duration::from_s(3);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;

    fn ms(n: u64) -> Duration {
        Duration::from_ms(n)
    }

    #[test]
    fn rfc6298_2_2_first_sample_gives_three_round_trips() {
        let policy = Profile::named("netbsd-2005").rto;
        let mut rtt = RttEstimator::new();
        assert_eq!(rtt.timeout(&policy), Duration::from_s(3));
        rtt.sample(ms(100), &policy, 1, 1);
        assert_eq!(rtt.timeout(&policy), ms(300));
    }

    #[test]
    fn rfc6298_2_4_constant_round_trips_end_at_the_minimum() {
        let policy = Profile::named("netbsd-2005").rto;
        let mut rtt = RttEstimator::new();
        (0..200).for_each(|_| rtt.sample(ms(4), &policy, 1, 1));
        assert_eq!(rtt.timeout(&policy), ms(30));
    }

    #[test]
    fn linux_adds_the_minimum_to_the_round_trip() {
        let policy = Profile::named("linux").rto;
        let mut rtt = RttEstimator::new();
        (1..200).for_each(|n| rtt.sample(ms(40), &policy, n, n));
        assert_eq!(rtt.timeout(&policy), ms(240));
    }

    #[test]
    fn rfc6298_5_5_backs_off_by_doubling_up_to_the_maximum() {
        let policy = Profile::named("linux").rto;
        let mut rtt = RttEstimator::new();
        rtt.sample(ms(40), &policy, 1, 1);
        rtt.backoff = 3;
        assert_eq!(rtt.timeout(&policy), ms(8 * 240));
        rtt.backoff = 40;
        assert_eq!(rtt.timeout(&policy), policy.max);
    }
}
