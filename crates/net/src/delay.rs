//! How long a frame propagates: the laws of delay.
//!
//! A law gives a standardised draw with mean 0 and, but for the uniform one, standard deviation 1; the delay is
//! `mean + jitter * draw`, cut at zero as netem cuts it. `pareto` and `paretonormal` are the laws that netem's
//! tables hold (iproute2's `paretodist` and `paretonormal` programs): a Pareto variable with shape 3 shifted to
//! mean 0 and scaled to standard deviation 1, and a mixture of a quarter normal and three quarters Pareto.
//!
//! Correlation is a first-order autoregression on the normal scale (a Gaussian copula): the law of each delay stays
//! what it was, unlike under netem's blend of neighbouring draws, which narrows it.

use mqttlab_units::{Duration, Seed};

use crate::name::FrameName;
use crate::spec::{DelayLaw, DelaySpec};

/// The delays of one link, frame by frame.
#[derive(Clone, Debug)]
pub(crate) struct Delay {
    spec: DelaySpec,
    seed: Seed,
    correlation: f64,
    last: f64,
}

/// Shape of the Pareto law in netem's table.
const PARETO_SHAPE: f64 = 3.0;

impl Delay {
    pub(crate) fn new(spec: DelaySpec, seed: Seed) -> Self {
        let correlation = spec.correlation.as_f64();
        // Stationary from the first frame on, so that the law does not depend on how long the link has run.
        let last = seed.dice().normal();
        Delay { spec, seed, correlation, last }
    }

    /// Another delay from now on. The correlation with the last frame's stays: it is on the normal scale, whatever the law.
    pub(crate) fn change(&mut self, spec: DelaySpec) {
        self.correlation = spec.correlation.as_f64();
        self.spec = spec;
    }

    /// The next frame's propagation delay. A constant delay draws nothing.
    pub(crate) fn draw(&mut self, name: FrameName) -> Duration {
        if self.spec.is_constant() {
            return self.spec.mean;
        }
        let standard = standardised(self.spec.law, self.next_normal(name));
        let ns = self.spec.mean.as_ns() as f64 + self.spec.jitter.as_ns() as f64 * standard;
        // What is cut raises the mean above the one that was set, as with netem.
        Duration::from_ns(ns.round().max(0.0) as u64)
    }

    fn next_normal(&mut self, name: FrameName) -> f64 {
        let fresh = self.seed.index(name.dice).dice().normal();
        let rho = self.correlation;
        // The second factor keeps the variance at 1, whatever the correlation.
        self.last = rho * self.last + (1.0 - rho * rho).sqrt() * fresh;
        self.last
    }
}

/// The law's quantile of the probability that a standard normal variable is below `normal`.
fn standardised(law: DelayLaw, normal: f64) -> f64 {
    match law {
        DelayLaw::Constant => 0.0,
        // On (−1, 1): the jitter is the half-width, as in netem where it has no table (`tabledist`).
        DelayLaw::Uniform => 2.0 * normal_cdf(normal) - 1.0,
        DelayLaw::Normal => normal,
        DelayLaw::Pareto => pareto(normal),
        DelayLaw::Paretonormal => 0.25 * normal + 0.75 * pareto(normal),
    }
}

/// Pareto with shape 3 and scale 1 has mean 3/2 and variance 3/4.
fn pareto(normal: f64) -> f64 {
    // Far out in floating point nothing survives, and the draw would be infinite.
    let survival = normal_cdf(-normal).max(f64::MIN_POSITIVE);
    let mean = PARETO_SHAPE / (PARETO_SHAPE - 1.0);
    let variance = PARETO_SHAPE / ((PARETO_SHAPE - 1.0).powi(2) * (PARETO_SHAPE - 2.0));
    (survival.powf(-1.0 / PARETO_SHAPE) - mean) / variance.sqrt()
}

/// The standard normal distribution function, by the complementary error function of Numerical Recipes' Chebyshev
/// fit (relative error below 1.2e-7 everywhere).
fn normal_cdf(x: f64) -> f64 {
    0.5 * erfc(-x / std::f64::consts::SQRT_2)
}

fn erfc(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    let poly = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
        -1.265_512_23,
    ];
    let exponent = poly.iter().fold(0.0, |sum, coefficient| sum * t + coefficient);
    let tail = t * (-x * x + exponent).exp();
    if x >= 0.0 { tail } else { 2.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_units::Ratio;

    fn delays(law: DelayLaw, correlation: Ratio, count: usize) -> Vec<f64> {
        let spec = DelaySpec {
            law,
            mean: Duration::from_ms(100),
            jitter: Duration::from_ms(10),
            correlation,
            keep_order: false,
        };
        let mut delay = Delay::new(spec, Seed(11));
        (0..count).map(|n| delay.draw(FrameName::nth(n as u64)).as_s_f64() * 1e3).collect()
    }

    fn moments(samples: &[f64]) -> (f64, f64) {
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / samples.len() as f64;
        (mean, variance.sqrt())
    }

    /// Kolmogorov's distance between samples and a distribution function.
    fn distance(mut samples: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
        samples.sort_by(f64::total_cmp);
        let n = samples.len() as f64;
        samples
            .iter()
            .enumerate()
            .map(|(i, x)| (cdf(*x) - i as f64 / n).abs().max(((i + 1) as f64 / n - cdf(*x)).abs()))
            .fold(0.0, f64::max)
    }

    // 1.95 / sqrt(n) is the 0.1 % point of Kolmogorov's statistic.
    const POINT_1_PERCENT: f64 = 1.95;
    const SAMPLES: usize = 50_000;

    fn follows(law: DelayLaw, cdf: impl Fn(f64) -> f64) {
        let d = distance(delays(law, Ratio::ZERO, SAMPLES), cdf);
        assert!(d < POINT_1_PERCENT / (SAMPLES as f64).sqrt(), "{law:?}: {d}");
    }

    #[test]
    fn a_uniform_delay_follows_its_law() {
        follows(DelayLaw::Uniform, |x| ((x - 90.0) / 20.0).clamp(0.0, 1.0));
    }

    #[test]
    fn a_normal_delay_follows_its_law() {
        follows(DelayLaw::Normal, |x| normal_cdf((x - 100.0) / 10.0));
    }

    #[test]
    fn a_pareto_delay_follows_its_law() {
        // x = 100 + 10 (y - 1.5) / sqrt(0.75) with P(Y > y) = y^-3.
        follows(DelayLaw::Pareto, |x| 1.0 - (1.5 + (x - 100.0) / 10.0 * 0.75_f64.sqrt()).max(1.0).powi(-3));
    }

    #[test]
    fn the_normal_distribution_function_has_its_tabulated_values() {
        for (x, value) in [(0.0, 0.5), (1.0, 0.841_344_746), (1.959_963_985, 0.975), (-3.0, 0.001_349_898)] {
            assert!((normal_cdf(x) - value).abs() < 1e-7, "{x}");
        }
    }

    #[test]
    fn correlation_joins_neighbours_and_leaves_the_law_alone() {
        let samples = delays(DelayLaw::Normal, Ratio::new(3, 4).unwrap(), 200_000);
        let (mean, deviation) = moments(&samples);
        assert!((mean - 100.0).abs() < 0.5, "{mean}");
        assert!((deviation - 10.0).abs() < 0.2, "{deviation}");
        let products = samples.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>();
        let lag1 = products / (samples.len() - 1) as f64 / deviation.powi(2);
        assert!((lag1 - 0.75).abs() < 0.02, "{lag1}");
    }

    #[test]
    fn no_law_gives_a_negative_delay() {
        let spec = DelaySpec {
            law: DelayLaw::Normal,
            mean: Duration::from_ms(1),
            jitter: Duration::from_ms(10),
            correlation: Ratio::ZERO,
            keep_order: false,
        };
        let mut delay = Delay::new(spec, Seed(1));
        let zeros = (0..10_000).filter(|&n| delay.draw(FrameName::nth(n)).is_zero()).count();
        // A normal variable is below -0.1 with probability 0.460; five standard deviations either side.
        assert!((4350..4850).contains(&zeros), "{zeros}");
    }
}
