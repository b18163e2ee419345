//! Log-normal shadowing: what stands between two stations, in decibels that are normally distributed.
//!
//! Each pair of stations has a gain of its own, the same in both directions, drawn by the pair's numbers. Where stations
//! move it may change with the way that both have gone: its correlation falls as `exp(-way / decorrelation)`
//! (Gudmundson, *Correlation model for shadow fading in mobile radio systems*, Electronics Letters 1991). It is a first-order
//! recursion over steps of a tenth of that distance, and constant within a step, so that a gain follows from the way
//! alone and not from who asks.
//!
//! What it does not model: pairs that share an obstacle. Gains of different pairs are independent.

use std::collections::BTreeMap;

use mqttlab_fields::{Gain, Length, Maybe, fields};
use mqttlab_units::{Dice, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pair::pair_seed;

fields! {
    /// Log-normal shadowing: a gain for each pair of stations, in decibels normally distributed.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct ShadowingSpec {
        /// Standard deviation.
        // The bound keeps slips out, such as 6000 dB.
        sigma_mdb / "sigma": u32 as Gain<u32> [1..=20_000],
        /// Where stations move, the way of both together over which the correlation of a pair's gain falls to 1/e; left
        /// out: a pair keeps its gain.
        decorrelation_mm / "decorrelation": Option<u64> as Maybe<Length> [100..=1_000_000_000],
    }
}

/// The gains of all pairs.
#[derive(Clone, Debug)]
pub(crate) struct Shadowing {
    sigma_db: f64,
    decorrelation_m: Option<f64>,
    seed: Seed,
    /// How far each pair's recursion is; empty where pairs keep their gains.
    pairs: BTreeMap<(usize, usize), Recursion>,
}

#[derive(Clone, Debug)]
struct Recursion {
    step: u64,
    /// In standard deviations.
    value: f64,
    dice: Dice,
}

/// Steps of the recursion in a decorrelation distance.
const STEPS: f64 = 10.0;

impl Shadowing {
    pub(crate) fn new(spec: &ShadowingSpec, seed: Seed) -> Self {
        Shadowing {
            sigma_db: f64::from(spec.sigma_mdb) / 1e3,
            decorrelation_m: spec.decorrelation_mm.map(|mm| mm as f64 / 1e3),
            seed: seed.derive("shadowing"),
            pairs: BTreeMap::new(),
        }
    }

    /// The gain between two stations as a ratio of powers, after a way of both together that never gets shorter.
    pub(crate) fn gain(&mut self, one: usize, other: usize, way_m: f64) -> f64 {
        let seed = pair_seed(self.seed, one, other);
        let deviations = match self.decorrelation_m {
            None => seed.dice().normal(),
            Some(distance_m) => {
                let pair = self.pairs.entry((one.min(other), one.max(other)));
                let step = (way_m / distance_m * STEPS) as u64;
                pair.or_insert_with(|| Recursion::new(seed)).advance(step)
            }
        };
        10_f64.powf(self.sigma_db * deviations / 10.0)
    }
}

impl Recursion {
    fn new(seed: Seed) -> Self {
        let mut dice = seed.dice();
        Recursion { step: 0, value: dice.normal(), dice }
    }

    fn advance(&mut self, step: u64) -> f64 {
        let kept = (-1.0 / STEPS).exp();
        // The variance stays 1.
        let fresh = (1.0 - kept * kept).sqrt();
        while self.step < step {
            self.step += 1;
            self.value = kept * self.value + fresh * self.dice.normal();
        }
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::super::kolmogorov::{distance, normal_below};
    use super::*;

    fn shadowing(decorrelation_m: Option<u64>) -> Shadowing {
        let spec = ShadowingSpec { sigma_mdb: 6_000, decorrelation_mm: decorrelation_m.map(|m| m * 1_000) };
        Shadowing::new(&spec, Seed(5))
    }

    fn decibels(ratio: f64) -> f64 {
        10.0 * ratio.log10()
    }

    #[test]
    fn gains_of_pairs_are_normal_in_decibels() {
        let mut shadowing = shadowing(None);
        let pairs = (0..200).flat_map(|a| (a + 1..200).map(move |b| (a, b)));
        let gains: Vec<f64> = pairs.map(|(a, b)| decibels(shadowing.gain(a, b, 0.0))).collect();
        let count = gains.len() as f64;
        let mean = gains.iter().sum::<f64>() / count;
        let variance = gains.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>() / count;
        // Five standard errors of a mean and a variance of 19 900 normal draws.
        assert!(mean.abs() < 5.0 * 6.0 / count.sqrt(), "{mean}");
        assert!((variance - 36.0).abs() < 5.0 * 36.0 * (2.0 / count).sqrt(), "{variance}");
        // Kolmogorov and Smirnov: 1.63 / sqrt(n) is passed once in a hundred seeds; the seed is fixed.
        let apart = distance(gains, |gain| normal_below(gain / 6.0));
        assert!(apart < 1.63 / count.sqrt(), "{apart}");
    }

    #[test]
    fn a_pair_has_one_gain_in_both_directions_whoever_is_asked_for_first() {
        let (mut one, mut other) = (shadowing(Some(20)), shadowing(Some(20)));
        let first = one.gain(3, 8, 55.0);
        for way_m in 0..50 {
            other.gain(1, 2, way_m.into());
            other.gain(8, 3, way_m.into());
        }
        assert_eq!(other.gain(8, 3, 55.0), first);
        assert_ne!(other.gain(3, 7, 55.0), first);
    }

    #[test]
    fn without_a_distance_a_pair_keeps_its_gain() {
        let mut shadowing = shadowing(None);
        assert_eq!(shadowing.gain(0, 1, 0.0), shadowing.gain(1, 0, 5_000.0));
    }

    #[test]
    fn the_correlation_falls_exponentially_with_the_way() {
        let mut shadowing = shadowing(Some(20));
        let pairs: Vec<usize> = (1..20_000).collect();
        let mut gains_at = |way_m: f64| -> Vec<f64> {
            pairs.iter().map(|other| decibels(shadowing.gain(0, *other, way_m)) / 6.0).collect()
        };
        let start = gains_at(0.0);
        for way_m in [10.0, 20.0, 40.0] {
            let now = gains_at(way_m);
            let count = now.len() as f64;
            let product = start.iter().zip(&now).map(|(a, b)| a * b).sum::<f64>() / count;
            let expected = (-way_m / 20.0).exp();
            // The product of two normals of correlation r has variance 1 + r².
            let error = ((1.0 + expected * expected) / count).sqrt();
            assert!((product - expected).abs() < 5.0 * error, "{way_m} m: {product}");
            let variance = now.iter().map(|gain| gain * gain).sum::<f64>() / count;
            assert!((variance - 1.0).abs() < 5.0 * (2.0 / count).sqrt(), "{way_m} m: {variance}");
        }
    }
}
