//! How far a sample lies from a law, for tests.

use super::frame_errors::erfc;

/// Kolmogorov and Smirnov's distance of a sample from a distribution function.
pub(crate) fn distance(mut sample: Vec<f64>, below: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let count = sample.len() as f64;
    let apart = |(place, value): (usize, &f64)| {
        let expected = below(*value);
        (expected - place as f64 / count).max((place + 1) as f64 / count - expected)
    };
    sample.iter().enumerate().map(apart).fold(0.0, f64::max)
}

/// The standard normal distribution function.
pub(crate) fn normal_below(value: f64) -> f64 {
    let tail = 0.5 * erfc(value.abs() / std::f64::consts::SQRT_2);
    if value < 0.0 { tail } else { 1.0 - tail }
}
