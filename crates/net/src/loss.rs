//! Which frames a channel takes: independently, in bursts of frames, or in bursts of bits.

use mqttlab_units::{Bytes, Dice, Ratio, Seed};

use crate::fate::Cause;
use crate::name::FrameName;
use crate::spec::{BitErrors, BurstLoss, LossSpec};

/// A channel that loses frames.
#[derive(Clone, Debug)]
pub(crate) enum LossModel {
    None,
    Bernoulli { probability: Ratio, seed: Seed },
    Frames(FrameChain),
    Bits(BitChain),
}

impl LossModel {
    pub(crate) fn new(spec: &LossSpec, seed: Seed) -> Self {
        match *spec {
            LossSpec::None => LossModel::None,
            LossSpec::Bernoulli { probability } => LossModel::Bernoulli { probability, seed },
            LossSpec::GilbertElliott(BurstLoss { good_to_bad, bad_to_good, loss_good, loss_bad }) => {
                LossModel::Frames(FrameChain::new([good_to_bad, bad_to_good], [loss_good, loss_bad], seed))
            }
            LossSpec::BitGilbertElliott(BitErrors { good_to_bad, bad_to_bad, error_good, error_bad }) => {
                LossModel::Bits(BitChain::new(
                    good_to_bad.as_f64(),
                    bad_to_bad.as_f64(),
                    [error_good, error_bad],
                    seed,
                ))
            }
        }
    }

    /// Another loss from now on, which is the link's `number`-th. A chain of the same kind goes on from the state that it is
    /// in; a new one has dice of its own, because those of the first may have been thrown.
    pub(crate) fn change(&mut self, spec: &LossSpec, seed: Seed, number: u64) {
        match (&mut *self, LossModel::new(spec, seed.index(number))) {
            (LossModel::Frames(chain), LossModel::Frames(FrameChain { leave, loss, .. })) => {
                (chain.leave, chain.loss) = (leave, loss);
            }
            (LossModel::Bits(chain), LossModel::Bits(BitChain { leave, survive_ln, .. })) => {
                (chain.leave, chain.survive_ln) = (leave, survive_ln);
                // The rest of a geometric sojourn is as long as a whole one.
                chain.bits_left = chain.sojourn();
            }
            // Keyed by the frames' names, which do not come twice: the stream stays.
            (_, LossModel::Bernoulli { probability, .. }) => {
                *self = LossModel::Bernoulli { probability, seed }
            }
            (_, other) => *self = other,
        }
    }

    /// What happens to the next frame, of this size and name.
    pub(crate) fn draw_loss(&mut self, frame: Bytes, name: FrameName) -> Option<Cause> {
        match self {
            LossModel::None => None,
            LossModel::Bernoulli { probability, seed } => {
                seed.index(name.dice).dice().chance(*probability).then_some(Cause::RandomLoss)
            }
            // States follow each other, so that a chain's draws go by the order of frames and not by their names.
            LossModel::Frames(chain) => chain.draw_loss(),
            LossModel::Bits(chain) => chain.draw_error(frame.bits()).then_some(Cause::BitError),
        }
    }
}

/// Gilbert and Elliott's chain with one step a frame. Starts in its stationary state.
#[derive(Clone, Debug)]
pub(crate) struct FrameChain {
    leave: [Ratio; 2],
    loss: [Ratio; 2],
    bad: bool,
    dice: Dice,
}

impl FrameChain {
    fn new(leave: [Ratio; 2], loss: [Ratio; 2], seed: Seed) -> Self {
        let mut dice = seed.dice();
        let (to_bad, to_good) = (leave[0].as_f64(), leave[1].as_f64());
        // The stationary share of the bad state is p / (p + r); multiplied out, since both may be zero.
        let bad = dice.uniform() * (to_bad + to_good) < to_bad;
        FrameChain { leave, loss, bad, dice }
    }

    /// Two draws a frame, whatever they say.
    fn draw_loss(&mut self) -> Option<Cause> {
        let state = usize::from(self.bad);
        // The frame meets the state that the last one has left; only then the state moves.
        let lost = self.dice.chance(self.loss[state]);
        if self.dice.chance(self.leave[state]) {
            self.bad = !self.bad;
        }
        lost.then_some(if state == 1 { Cause::BurstLoss } else { Cause::RandomLoss })
    }
}

/// Gilbert and Elliott's chain with one step a bit, on the timeline of the bits that occupy the channel. Sojourns
/// are drawn whole (they are geometric), and within a sojourn only the chance that all its bits survive is, so that
/// a frame costs as many draws as it sees changes of state.
#[derive(Clone, Debug)]
pub(crate) struct BitChain {
    /// Mean sojourns' parameters: chance to leave, per bit.
    leave: [f64; 2],
    /// Natural logarithm of the chance that a bit survives.
    survive_ln: [f64; 2],
    bad: bool,
    bits_left: u64,
    dice: Dice,
}

impl BitChain {
    fn new(good_to_bad: f64, bad_to_bad: f64, error: [Ratio; 2], seed: Seed) -> Self {
        let leave = [good_to_bad, 1.0 - bad_to_bad];
        let mut dice = seed.dice();
        let bad = dice.uniform() * (leave[0] + leave[1]) < leave[0];
        // ln(1 − p), exact also where p is a bit error rate of 1e-9.
        let survive_ln = [(-error[0].as_f64()).ln_1p(), (-error[1].as_f64()).ln_1p()];
        let mut chain = BitChain { leave, survive_ln, bad, bits_left: 0, dice };
        chain.bits_left = chain.sojourn();
        chain
    }

    /// Whether at least one of the next `bits` bits is damaged.
    fn draw_error(&mut self, mut bits: u64) -> bool {
        let mut damaged = false;
        while bits > 0 {
            let span = bits.min(self.bits_left);
            damaged |= self.damages(span);
            bits -= span;
            self.bits_left -= span;
            if self.bits_left == 0 {
                self.bad = !self.bad;
                self.bits_left = self.sojourn();
            }
        }
        damaged
    }

    fn damages(&mut self, bits: u64) -> bool {
        let survive_ln = self.survive_ln[usize::from(self.bad)];
        // (1 − p)^n is the chance that n bits survive: one draw for all of them.
        survive_ln < 0.0 && self.dice.uniform() >= (survive_ln * bits as f64).exp()
    }

    /// Bits until the state changes, at least one: geometric with parameter `leave`.
    fn sojourn(&mut self) -> u64 {
        let leave = self.leave[usize::from(self.bad)];
        if leave <= 0.0 {
            return u64::MAX;
        }
        if leave >= 1.0 {
            return 1;
        }
        // The inverse of the geometric law, with a draw from (0, 1]: the logarithm of 0 would last for ever.
        let bits = ((1.0 - self.dice.uniform()).ln() / (-leave).ln_1p()).ceil();
        (bits.max(1.0)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(numerator: u64, denominator: u64) -> Ratio {
        Ratio::new(numerator, denominator).unwrap()
    }

    /// Whether `hits` of `n` is within five standard deviations of a binomial, widened for correlated draws.
    fn within(hits: usize, n: usize, p: f64, widening: f64) -> bool {
        (hits as f64 - n as f64 * p).abs() < 5.0 * widening * (n as f64 * p * (1.0 - p)).sqrt()
    }

    #[test]
    fn bernoulli_loss_is_within_binomial_bounds() {
        for percent in [1, 10, 30] {
            let spec = LossSpec::Bernoulli { probability: ratio(percent, 100) };
            let mut loss = LossModel::new(&spec, Seed(percent));
            let lost =
                (0..100_000).filter(|&n| loss.draw_loss(Bytes(100), FrameName::nth(n)).is_some()).count();
            assert!(within(lost, 100_000, percent as f64 / 100.0, 1.0), "{percent} %: {lost}");
        }
    }

    #[test]
    fn a_frame_chain_has_its_stationary_loss_and_burst_length() {
        let spec = LossSpec::GilbertElliott(BurstLoss {
            good_to_bad: ratio(1, 100),
            bad_to_good: ratio(1, 5),
            loss_good: Ratio::ZERO,
            loss_bad: Ratio::ONE,
        });
        let mut loss = LossModel::new(&spec, Seed(5));
        let damaged: Vec<bool> =
            (0..400_000).map(|n| loss.draw_loss(Bytes(1), FrameName::nth(n)).is_some()).collect();
        let lost = damaged.iter().filter(|s| **s).count();
        // Stationary: p / (p + r) = 1/21. Neighbours correlate by 1 - p - r = 0.79: the variance is 8.5 times larger.
        assert!(within(lost, damaged.len(), 1.0 / 21.0, 3.0), "{lost}");
        let bursts = damaged.windows(2).filter(|w| !w[0] && w[1]).count();
        let mean_burst = lost as f64 / bursts as f64;
        assert!((mean_burst - 5.0).abs() < 0.3, "{mean_burst}");
    }

    #[test]
    fn independent_bit_errors_kill_a_frame_by_its_length() {
        let spec = LossSpec::BitGilbertElliott(BitErrors {
            good_to_bad: Ratio::ZERO,
            bad_to_bad: Ratio::ZERO,
            error_good: ratio(1, 10_000),
            error_bad: Ratio::ZERO,
        });
        for bytes in [50, 200, 1000] {
            let mut loss = LossModel::new(&spec, Seed(bytes));
            let lost =
                (0..50_000).filter(|&n| loss.draw_loss(Bytes(bytes), FrameName::nth(n)).is_some()).count();
            let p = 1.0 - (1.0 - 1e-4_f64).powi(8 * bytes as i32);
            assert!(within(lost, 50_000, p, 1.0), "{bytes} B: {lost} of 50000, {p}");
        }
    }

    #[test]
    fn a_bit_chain_kills_frames_as_its_transition_matrix_says() {
        // The survival probability of n bits is the stationary row times (diag(survive) P)^n times ones.
        let (p_gb, p_bb, e_b) = (1e-4, 0.8, 0.065);
        let spec = LossSpec::BitGilbertElliott(BitErrors {
            good_to_bad: ratio(1, 10_000),
            bad_to_bad: ratio(8, 10),
            error_good: Ratio::ZERO,
            error_bad: ratio(65, 1000),
        });
        for bytes in [60_u64, 300, 1000] {
            let stationary_bad = p_gb / (p_gb + 1.0 - p_bb);
            let mut row = [1.0 - stationary_bad, stationary_bad];
            for _ in 0..8 * bytes {
                let (good, bad) = (row[0], row[1] * (1.0 - e_b));
                row = [good * (1.0 - p_gb) + bad * (1.0 - p_bb), good * p_gb + bad * p_bb];
            }
            let p = 1.0 - row[0] - row[1];
            let mut loss = LossModel::new(&spec, Seed(bytes + 1));
            let lost =
                (0..100_000).filter(|&n| loss.draw_loss(Bytes(bytes), FrameName::nth(n)).is_some()).count();
            assert!(within(lost, 100_000, p, 1.2), "{bytes} B: {lost} of 100000, {p}");
        }
    }
}
