//! Random streams derived by name.
//!
//! A [`Seed`] is turned into another by a name (`seed.derive("radio/up/loss")`), so that each knob has its own
//! dice and turning one does not reshuffle another's. A [`Dice`] is SplitMix64 (Steele, Lea, Flood 2014), whose
//! n-th draw is a hash of seed and n: cheap to make, cheap to keep a million of, the same on every machine.

use std::f64::consts::TAU;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Duration, Ratio};

/// What a random stream grows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Seed(pub u64);

/// A stream of random draws.
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
}

impl Seed {
    /// The seed of the stream called `name`, unrelated to that of any other name.
    pub fn derive(self, name: &str) -> Seed {
        // FNV-1a over the name, then two rounds of mixing with the parent, so that neither short names
        // nor consecutive seeds are correlated.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Seed(mix(mix(hash).wrapping_add(self.0.rotate_left(32))))
    }

    /// The seed of the `index`-th of many streams alike.
    pub fn index(self, index: u64) -> Seed {
        Seed(mix(self.0 ^ mix(index.wrapping_add(GOLDEN))))
    }

    /// The dice of this stream.
    pub fn dice(self) -> Dice {
        Dice { state: self.0 }
    }
}

impl Dice {
    /// 64 uniform random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Uniform in [0, 1), with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `0..bound` (Lemire's multiplication; the bias below 2^-32 is left in for bounds below 2^32).
    ///
    /// # Panics
    /// When `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a draw below 0 was asked for");
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether an event of this probability happens. Always takes one draw, so that changing a probability
    /// does not shift the stream.
    pub fn chance(&mut self, probability: Ratio) -> bool {
        let draw = self.bits();
        probability.threshold().is_none_or(|threshold| draw < threshold)
    }

    /// Exponentially distributed with the given mean.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        Duration::from_ns((-(1.0 - self.uniform()).ln() * mean.as_ns() as f64) as u64)
    }

    /// Standard normal (Box and Muller 1958). Takes two draws.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (TAU * self.uniform()).cos()
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of SplitMix64 (variant 13 of Stafford's mixers).
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_known_by_its_name() {
        let seed = Seed(7);
        assert_eq!(seed.derive("up/loss").dice().bits(), seed.derive("up/loss").dice().bits());
        assert_ne!(seed.derive("up/loss").dice().bits(), seed.derive("up/delay").dice().bits());
        assert_ne!(seed.derive("up/loss").dice().bits(), Seed(8).derive("up/loss").dice().bits());
    }

    #[test]
    fn splitmix64_matches_its_reference_vector() {
        // First outputs of the reference implementation for seed 1234567.
        let mut dice = Seed(1_234_567).dice();
        assert_eq!(dice.bits(), 6_457_827_717_110_365_317);
        assert_eq!(dice.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn chance_is_within_binomial_bounds() {
        let mut dice = Seed(1).dice();
        let tenth = Ratio::new(1, 10).unwrap();
        let hits = (0..100_000).filter(|_| dice.chance(tenth)).count() as f64;
        // Five standard deviations of a binomial with n = 100 000, p = 0.1.
        assert!((hits - 10_000.0).abs() < 5.0 * 94.9, "{hits}");
    }

    #[test]
    fn normal_has_mean_zero_and_variance_one() {
        let mut dice = Seed(2).dice();
        let draws: Vec<f64> = (0..100_000).map(|_| dice.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e5;
        assert!(mean.abs() < 5.0 / 1e5_f64.sqrt(), "{mean}");
        assert!((variance - 1.0).abs() < 5.0 * (2.0 / 1e5_f64).sqrt(), "{variance}");
    }

    #[test]
    fn zero_never_happens_and_one_always_does() {
        let mut dice = Seed(3).dice();
        assert!((0..1000).all(|_| !dice.chance(Ratio::ZERO) && dice.chance(Ratio::ONE)));
    }
}
