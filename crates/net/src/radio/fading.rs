//! Block fading: what reflections make of the power between two stations, drawn anew after each coherence time.
//!
//! In a block the gain of a pair is constant, the same in both directions; its mean over blocks is 1. It is drawn by the
//! pair's numbers and the block's, so that no frame changes what another meets. Powers are exponentially distributed
//! where no path is stronger than the others (Rayleigh), and have a gamma distribution of shape `m` by Nakagami's law:
//! `m = 1` is Rayleigh's, more is less fading.
//!
//! What it does not model: the correlation from one block to the next, and changes within a frame, which has the gain of
//! its first bit to its last.

use mqttlab_fields::{
    AsPart, Maybe, Node, PositiveShortTime, Reader, Rule, Rules, Shape, Table, Thousandths, fields, words,
};
use mqttlab_units::{Dice, Duration, Instant, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pair::pair_seed;

/// Block fading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum FadingSpec {
    /// Powers are exponentially distributed.
    Rayleigh {
        /// How long a gain lasts.
        #[serde(rename = "coherence_ns")]
        coherence: Duration,
    },
    /// Powers have a gamma distribution.
    Nakagami {
        /// Thousandths of its shape: 1000 is Rayleigh.
        m_milli: u32,
        /// How long a gain lasts.
        #[serde(rename = "coherence_ns")]
        coherence: Duration,
    },
}

words! {
    /// Laws of fading.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FadingLaw {
        /// No path is stronger than the others.
        Rayleigh = "rayleigh",
        /// By its shape.
        Nakagami = "nakagami",
    }
}

fields! {
    /// Block fading: the power between two stations is drawn anew after each coherence time, with the same mean.
    #[derive(Debug)]
    pub struct FadingFields with rules {
        /// `rayleigh`: no path is stronger than the others; `nakagami`: by its shape `m`.
        kind: FadingLaw,
        /// How long a gain lasts.
        coherence: Duration as PositiveShortTime [1_000..],
        /// Shape of `nakagami`: 1 is `rayleigh`, more is less fading.
        // Below a half Nakagami's law is not defined.
        m: Option<u32> as Maybe<Thousandths> [500..=100_000],
    }
}

impl Rules for FadingFields {
    fn check(&mut self, _table: &Table) -> Result<(), String> {
        match (self.kind, self.m) {
            (FadingLaw::Nakagami, None) => {
                Err("has `kind = \"nakagami\"`, which needs a shape; add `m`, such as `m = 3`".into())
            }
            (FadingLaw::Rayleigh, Some(_)) => {
                let right = "write that kind, or leave `m` out";
                Err(format!("has `m`, which goes with `kind = \"nakagami\"`; {right}"))
            }
            _ => Ok(()),
        }
    }
}

/// The rule of a channel's fading.
#[derive(Debug)]
pub struct AsFading;

impl Rule for AsFading {
    type Target = FadingSpec;

    fn read(node: &Node, reader: &mut Reader) -> Option<FadingSpec> {
        let FadingFields { coherence, m, .. } = AsPart::<FadingFields>::read(node, reader)?;
        Some(m.map_or(FadingSpec::Rayleigh { coherence }, |m_milli| FadingSpec::Nakagami {
            m_milli,
            coherence,
        }))
    }

    fn shape() -> Shape {
        AsPart::<FadingFields>::shape()
    }
}

impl FadingSpec {
    /// How long a gain lasts.
    pub fn coherence(&self) -> Duration {
        match self {
            FadingSpec::Rayleigh { coherence } | FadingSpec::Nakagami { coherence, .. } => *coherence,
        }
    }
}

/// The gains of all pairs.
#[derive(Clone, Debug)]
pub(crate) struct Fading {
    coherence: Duration,
    /// Shape of the gamma distribution; `None` for Rayleigh.
    shape: Option<f64>,
    seed: Seed,
}

impl Fading {
    pub(crate) fn new(spec: &FadingSpec, seed: Seed) -> Self {
        let shape = match spec {
            FadingSpec::Rayleigh { .. } => None,
            FadingSpec::Nakagami { m_milli, .. } => Some(f64::from(*m_milli) / 1e3),
        };
        Fading { coherence: spec.coherence(), shape, seed: seed.derive("fading") }
    }

    /// How long a gain lasts.
    pub(crate) fn coherence(&self) -> Duration {
        self.coherence
    }

    /// The gain between two stations as a ratio of powers.
    pub(crate) fn gain(&self, now: Instant, one: usize, other: usize) -> f64 {
        let block = now.as_ns() / self.coherence.as_ns();
        let mut dice = pair_seed(self.seed, one, other).index(block).dice();
        match self.shape {
            None => -(1.0 - dice.uniform()).ln(),
            Some(shape) => gamma(&mut dice, shape) / shape,
        }
    }
}

/// A draw of the gamma distribution of this shape and scale 1 (Marsaglia and Tsang 2000).
fn gamma(dice: &mut Dice, shape: f64) -> f64 {
    if shape < 1.0 {
        // Their method needs a shape of 1: one more, and a power of a uniform draw in its place.
        let factor = (1.0 - dice.uniform()).powf(1.0 / shape);
        return factor * gamma(dice, shape + 1.0);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let normal = dice.normal();
        let cube = (1.0 + c * normal).powi(3);
        let uniform = 1.0 - dice.uniform();
        if cube > 0.0 && uniform.ln() < 0.5 * normal * normal + d * (1.0 - cube + cube.ln()) {
            return d * cube;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kolmogorov::distance;
    use super::*;

    const COHERENCE: Duration = Duration::from_ms(50);
    const BLOCKS: u64 = 40_000;

    fn rayleigh() -> FadingSpec {
        FadingSpec::Rayleigh { coherence: COHERENCE }
    }

    fn nakagami(m_milli: u32) -> FadingSpec {
        FadingSpec::Nakagami { m_milli, coherence: COHERENCE }
    }

    fn at(block: u64) -> Instant {
        Instant::ZERO + COHERENCE * block
    }

    fn gains(spec: &FadingSpec) -> Vec<f64> {
        let fading = Fading::new(spec, Seed(11));
        (0..BLOCKS).map(|block| fading.gain(at(block), 0, 1)).collect()
    }

    /// The gamma distribution function of mean 1, for whole shapes: 1 - exp(-mx) sum (mx)^k / k!.
    fn gamma_below(shape: u32, value: f64) -> f64 {
        let scaled = f64::from(shape) * value;
        let mut term = 1.0;
        let mut sum = 0.0;
        for k in 0..shape {
            sum += term;
            term *= scaled / f64::from(k + 1);
        }
        1.0 - (-scaled).exp() * sum
    }

    #[test]
    fn powers_have_mean_1_and_the_variance_of_their_law() {
        for (spec, shape) in
            [(rayleigh(), 1.0), (nakagami(500), 0.5), (nakagami(1_000), 1.0), (nakagami(3_500), 3.5)]
        {
            let gains = gains(&spec);
            let count = gains.len() as f64;
            let mean = gains.iter().sum::<f64>() / count;
            let variance = gains.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>() / count;
            // A gamma distribution of shape m and mean 1 has variance 1/m, and kurtosis 3 + 6/m.
            let (mean_error, variance_error) =
                ((1.0 / shape / count).sqrt(), 1.0 / shape * ((2.0 + 6.0 / shape) / count).sqrt());
            assert!((mean - 1.0).abs() < 5.0 * mean_error, "{spec:?}: {mean}");
            assert!((variance - 1.0 / shape).abs() < 5.0 * variance_error, "{spec:?}: {variance}");
        }
    }

    #[test]
    fn powers_follow_their_law_by_kolmogorov_and_smirnov() {
        for (spec, shape) in [(rayleigh(), 1), (nakagami(1_000), 1), (nakagami(3_000), 3)] {
            let apart = distance(gains(&spec), |gain| gamma_below(shape, gain));
            // Passed once in a hundred seeds; the seed is fixed.
            assert!(apart < 1.63 / (BLOCKS as f64).sqrt(), "{spec:?}: {apart}");
        }
        // The square of a normal draw is a gamma draw of shape 1/2.
        let apart = distance(gains(&nakagami(500)), |gain| {
            2.0 * super::super::kolmogorov::normal_below(gain.sqrt()) - 1.0
        });
        assert!(apart < 1.63 / (BLOCKS as f64).sqrt(), "{apart}");
    }

    #[test]
    fn a_gain_lasts_for_the_coherence_time_and_is_then_another() {
        let fading = Fading::new(&rayleigh(), Seed(11));
        // Sampled t and t + lag, with t uniform: 1 - lag / coherence of all pairs lie in one block.
        for (lag_ms, expected) in [(0, 1.0), (10, 0.8), (25, 0.5), (50, 0.0), (75, 0.0)] {
            let lag = Duration::from_ms(lag_ms);
            let pairs = (0..200_000_u64).map(|n| {
                let start = Instant::from_ns(n * 7_001_000);
                (fading.gain(start, 0, 1), fading.gain(start + lag, 0, 1))
            });
            let (count, product) =
                pairs.fold((0.0, 0.0), |(n, sum), (a, b)| (n + 1.0, sum + (a - 1.0) * (b - 1.0)));
            // Seven samples in a block: 28 000 blocks; the fourth moment of an exponential about its mean is 9.
            let error = (9.0_f64 / 28_000.0).sqrt();
            assert!((product / count - expected).abs() < 5.0 * error, "{lag_ms} ms: {}", product / count);
        }
        assert_eq!(fading.gain(at(3), 0, 1), fading.gain(at(4) - Duration::from_ns(1), 1, 0));
    }

    #[test]
    fn a_gain_does_not_depend_on_what_was_asked_before() {
        let (one, other) = (Fading::new(&nakagami(2_000), Seed(1)), Fading::new(&nakagami(2_000), Seed(1)));
        let forwards: Vec<f64> = (0..100).map(|block| one.gain(at(block), 2, 5)).collect();
        let mut backwards: Vec<f64> = (0..100).rev().map(|block| other.gain(at(block), 5, 2)).collect();
        backwards.reverse();
        assert_eq!(forwards, backwards);
        assert_ne!(forwards[0], Fading::new(&nakagami(2_000), Seed(2)).gain(at(0), 2, 5));
    }
}
