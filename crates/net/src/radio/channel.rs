//! Gilbert and Elliott's channel in time, seen at the ends of frames.
//!
//! Good and bad states last exponentially long, so the state is a Markov chain in continuous time. Seen only at
//! some moments, it needs no sojourns drawn: after a time t it is bad with probability
//! `p + (was bad - p) exp(-t / tau)`, where p is the bad share of the time and tau = (1 - p) times the mean bad
//! state.

use mqttlab_units::{Dice, Instant, Ratio, Seed};

use super::spec::ChannelSpec;

/// What all receivers' channels have in common.
#[derive(Clone, Debug)]
pub(crate) struct ChannelLaw {
    share_bad: f64,
    memory_ns: f64,
    loss_bad: Ratio,
}

/// The channel at one receiver.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    bad: bool,
    seen: Instant,
    dice: Dice,
}

impl ChannelLaw {
    pub(crate) fn new(spec: &ChannelSpec) -> Self {
        let share_bad = spec.bad.as_f64();
        ChannelLaw {
            share_bad,
            memory_ns: (1.0 - share_bad) * spec.mean_bad.as_ns() as f64,
            loss_bad: spec.loss_bad,
        }
    }
}

impl Channel {
    /// In its stationary state.
    pub(crate) fn new(law: &ChannelLaw, seed: Seed) -> Self {
        let mut dice = seed.dice();
        Channel { bad: dice.uniform() < law.share_bad, seen: Instant::ZERO, dice }
    }

    /// Whether a frame that ends now is lost. Two draws a frame.
    pub(crate) fn draw_loss(&mut self, now: Instant, law: &ChannelLaw) -> bool {
        let passed_ns = now.since(self.seen).as_ns() as f64;
        // Without memory (always bad) the chain forgets at once.
        let memory = if law.memory_ns > 0.0 { (-passed_ns / law.memory_ns).exp() } else { 0.0 };
        let was_bad = if self.bad { 1.0 } else { 0.0 };
        self.bad = self.dice.uniform() < law.share_bad + (was_bad - law.share_bad) * memory;
        self.seen = now;
        // Drawn in the good state, too, so that later draws are the same whatever this frame met.
        self.dice.chance(law.loss_bad) && self.bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_units::Duration;

    fn losses(interval: Duration, count: usize) -> Vec<bool> {
        let law = ChannelLaw::new(&ChannelSpec {
            mean_bad: Duration::from_ms(20),
            bad: Ratio::new(1, 10).unwrap(),
            loss_bad: Ratio::new(1, 2).unwrap(),
        });
        let mut channel = Channel::new(&law, Seed(3));
        let mut now = Instant::ZERO;
        let mut next = || {
            now += interval;
            channel.draw_loss(now, &law)
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn the_channel_takes_its_share_of_frames() {
        for interval_ms in [1, 10, 100] {
            let lost = losses(Duration::from_ms(interval_ms), 400_000).iter().filter(|lost| **lost).count();
            // 10 % bad, half of these lost. Correlated neighbours widen 5 standard deviations of a binomial by at
            // most sqrt(2 * 18): 5 * 36^.5 * 138.
            assert!((lost as f64 - 20_000.0).abs() < 4_200.0, "{interval_ms} ms: {lost}");
        }
    }

    #[test]
    fn losses_come_in_bursts_as_long_as_the_bad_state() {
        // P(lost now and t later) = 1/4 p (p + (1 - p) exp(-t / 18 ms)), p = 0.1.
        let lost = losses(Duration::from_ms(6), 1_000_000);
        let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64 / 1e6;
        let expected = 0.25 * 0.1 * (0.1 + 0.9 * (-6.0_f64 / 18.0).exp());
        assert!((pairs / expected - 1.0).abs() < 0.03, "{pairs}, but {expected}");
    }
}
