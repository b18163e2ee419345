//! The retransmission timeout that a sender following RFC 6298 would compute from the captured round trips.

use mqttlab_units::Duration;

/// Smoothed round-trip time, its variation and the timeout that follows (RFC 6298 §2).
#[derive(Clone, Copy, Debug)]
pub struct RttEstimator {
    state: Option<(Duration, Duration)>,
    backoff: u32,
    floor: Duration,
}

/// Before the first sample (RFC 6298 §2.1).
const INITIAL: Duration = Duration::from_s(1);
/// RFC 6298 §2.5 allows an upper bound of at least 60 s; Linux has 120 s.
const CEILING: Duration = Duration::from_s(120);
/// 2^7 s is beyond the ceiling.
const BACKOFF_MAX: u32 = 7;

impl RttEstimator {
    /// An estimator whose timeout never falls below `floor`: 1 s by RFC 6298 §2.4, 200 ms in Linux.
    pub const fn new(floor: Duration) -> Self {
        RttEstimator { state: None, backoff: 0, floor }
    }

    /// Takes a round trip of a segment that was sent once.
    pub fn sample(&mut self, rtt: Duration) {
        self.backoff = 0;
        let rtt = rtt.as_ns();
        self.state = Some(match self.state {
            None => (Duration::from_ns(rtt), Duration::from_ns(rtt / 2)),
            Some((smoothed, variation)) => {
                let (smoothed, variation) = (smoothed.as_ns(), variation.as_ns());
                let variation = variation - variation / 4 + smoothed.abs_diff(rtt) / 4;
                (Duration::from_ns(smoothed - smoothed / 8 + rtt / 8), Duration::from_ns(variation))
            }
        });
    }

    /// A timer ran out: the timeout doubles until the next sample (RFC 6298 §5.5).
    pub fn timed_out(&mut self) {
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
    }

    /// The smoothed round-trip time.
    pub fn smoothed(&self) -> Option<Duration> {
        self.state.map(|(smoothed, _)| smoothed)
    }

    /// The retransmission timeout. Linux bounds four variations, not their sum with the round trip, from below;
    /// so does this.
    pub fn timeout(&self) -> Duration {
        let base = match self.state {
            None => INITIAL,
            Some((smoothed, variation)) => Duration::from_ns(
                smoothed.as_ns().saturating_add(variation.as_ns().saturating_mul(4).max(self.floor.as_ns())),
            ),
        };
        Duration::from_ns((base.as_ns().saturating_mul(1 << self.backoff)).min(CEILING.as_ns()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_sets_the_variation_to_half_of_it() {
        let mut estimator = RttEstimator::new(Duration::ZERO);
        estimator.sample(Duration::from_ms(100));
        assert_eq!(estimator.smoothed(), Some(Duration::from_ms(100)));
        assert_eq!(estimator.timeout(), Duration::from_ms(300));
    }

    #[test]
    fn a_second_sample_moves_by_an_eighth_and_a_quarter() {
        let mut estimator = RttEstimator::new(Duration::ZERO);
        estimator.sample(Duration::from_ms(80));
        estimator.sample(Duration::from_ms(160));
        // SRTT = 7/8 80 + 1/8 160 = 90; RTTVAR = 3/4 40 + 1/4 80 = 50.
        assert_eq!(estimator.smoothed(), Some(Duration::from_ms(90)));
        assert_eq!(estimator.timeout(), Duration::from_ms(290));
    }

    #[test]
    fn the_timeout_doubles_until_a_sample_arrives() {
        let mut estimator = RttEstimator::new(Duration::from_ms(200));
        estimator.sample(Duration::from_ms(8));
        let base = estimator.timeout();
        estimator.timed_out();
        estimator.timed_out();
        assert_eq!(estimator.timeout(), base * 4);
        estimator.sample(Duration::from_ms(8));
        assert!(estimator.timeout() <= base);
    }
}
