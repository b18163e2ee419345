//! Whether a mean is known well enough, and which part of a run came before its steady state.
//!
//! Latencies are gathered into batches in the order of delivery. When there are too many batches, neighbours are
//! joined, so that a run of any length keeps between [`BATCHES_MIN`] and twice as many. The initial transient is
//! cut where the rest has the least standard error (MSER: K. P. White, "An effective truncation heuristic for bias
//! reduction in simulation output", Simulation 69(6), 1997). What is left is joined into [`SAMPLES`] batch means, and
//! the confidence interval of their mean follows Student's law (A. M. Law, "Simulation Modeling and Analysis", 5th
//! ed., §9.5.3).
//!
//! What it does not know: means that do not settle. They keep it from stopping, and the plan's duration ends the run.

use mqttlab_units::Instant;

/// A mean being learned.
#[derive(Clone, Debug, Default)]
pub(crate) struct SteadyState {
    batches: Vec<Batch>,
    /// Values in a full batch.
    size: u64,
    /// Only full batches are judged; the last one may be filling.
    filling: Batch,
}

#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    count: u64,
    sum: f64,
    /// When its first message was due.
    began: Option<Instant>,
}

/// What is known of a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) mean: f64,
    /// Half the width of the 95 % confidence interval, as a part of the mean.
    pub(crate) relative_accuracy: f64,
    /// When the first message after the transient was due; `None` when there was no transient.
    pub(crate) steady_from: Option<Instant>,
}

impl SteadyState {
    /// A value, and when its message was due. Says whether a batch is full, so that it is worth asking.
    pub(crate) fn add(&mut self, due: Instant, value: f64) -> bool {
        self.size = self.size.max(FIRST_SIZE);
        self.filling.began.get_or_insert(due);
        self.filling.count += 1;
        self.filling.sum += value;
        if self.filling.count < self.size {
            return false;
        }
        self.batches.push(std::mem::take(&mut self.filling));
        if self.batches.len() >= 2 * BATCHES_MIN {
            self.batches = self.batches.chunks_exact(2).map(join).collect();
            self.size *= 2;
        }
        true
    }

    /// The mean, without the transient if that is to be cut; `None` while there are too few values.
    pub(crate) fn estimate(&self, cut_transient: bool) -> Option<Estimate> {
        if self.batches.len() < BATCHES_MIN {
            return None;
        }
        let means: Vec<f64> = self.batches.iter().map(Batch::mean).collect();
        let cut = if cut_transient { transient(&means) } else { 0 };
        let rest = &self.batches[cut..];
        let each = rest.len() / SAMPLES;
        // The newest are left out where they do not fill a sample.
        let samples: Vec<f64> =
            rest[..each * SAMPLES].chunks_exact(each).map(|part| join(part).mean()).collect();
        let mean = samples.iter().sum::<f64>() / SAMPLES as f64;
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        let error = (squares / (SAMPLES - 1) as f64 / SAMPLES as f64).sqrt();
        let steady_from = (cut > 0).then(|| rest[0].began).flatten();
        // Neighbours that are alike make the interval too narrow: the batches are too short to say.
        let dependent = lag_one_correlation(&samples, mean) > CORRELATION_MAX;
        let relative_accuracy =
            if dependent { f64::INFINITY } else { STUDENT_975 * error / mean.max(f64::MIN_POSITIVE) };
        Some(Estimate { mean, relative_accuracy, steady_from })
    }
}

impl Batch {
    fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }
}

fn join(parts: &[Batch]) -> Batch {
    Batch {
        count: parts.iter().map(|batch| batch.count).sum(),
        sum: parts.iter().map(|batch| batch.sum).sum(),
        began: parts.first().and_then(|batch| batch.began),
    }
}

/// How many means at the front make the rest's standard error larger; at most half of them.
fn transient(means: &[f64]) -> usize {
    let n = means.len();
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for place in (0..n).rev() {
        sum += means[place];
        squares += means[place] * means[place];
        let count = (n - place) as f64;
        let spread = (squares - sum * sum / count).max(0.0) / (count * count);
        // The longest rest among equals.
        if place <= n / 2 && spread <= best.0 {
            best = (spread, place);
        }
    }
    best.1
}

fn lag_one_correlation(samples: &[f64], mean: f64) -> f64 {
    let products: f64 = samples.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    if squares == 0.0 { 0.0 } else { products / squares }
}

/// Batches that are kept at least, once there are so many.
const BATCHES_MIN: usize = 64;
/// Values in a batch at first.
const FIRST_SIZE: u64 = 16;
/// Batch means from which the interval is computed.
const SAMPLES: usize = 20;
/// Student's t for 97.5 % and 19 degrees of freedom.
const STUDENT_975: f64 = 2.093;
/// Of independent samples the coefficient is normal with a deviation of 0.22.
const CORRELATION_MAX: f64 = 0.45;

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_units::Seed;

    fn fed(count: u64, value: impl Fn(u64, f64) -> f64) -> SteadyState {
        let mut steady = SteadyState::default();
        let mut dice = Seed(3).dice();
        for i in 0..count {
            let noise = dice.normal();
            steady.add(Instant::from_ns(i), value(i, noise));
        }
        steady
    }

    #[test]
    fn the_interval_of_independent_values_is_as_wide_as_it_should_be() {
        let steady = fed(40_000, |_, noise| 10.0 + noise);
        let estimate = steady.estimate(false).unwrap();
        // 1.96 / sqrt(40 000) / 10 = 0.00098; an estimate from 20 samples varies by a third.
        assert!((0.0004..0.002).contains(&estimate.relative_accuracy), "{estimate:?}");
        assert!((estimate.mean - 10.0).abs() < 0.03, "{estimate:?}");
    }

    #[test]
    fn a_transient_is_cut_where_it_ends() {
        let steady = fed(50_000, |i, noise| 10.0 + noise + if i < 5_000 { 30.0 } else { 0.0 });
        let estimate = steady.estimate(true).unwrap();
        let from = estimate.steady_from.unwrap().as_ns();
        assert!((4_900..6_500).contains(&from), "{from}");
        assert!((estimate.mean - 10.0).abs() < 0.05, "{estimate:?}");
        assert!(steady.estimate(false).unwrap().mean > 12.0);
    }

    #[test]
    fn a_steady_run_has_hardly_a_transient() {
        let steady = fed(50_000, |_, noise| 10.0 + noise);
        let from = steady.estimate(true).unwrap().steady_from.map_or(0, Instant::as_ns);
        assert!(from < 25_000, "{from}");
    }

    #[test]
    fn a_mean_that_wanders_is_not_said_to_be_known() {
        let steady = fed(50_000, |i, noise| 10.0 + 5.0 * (i as f64 / 10_000.0).sin() + noise);
        assert_eq!(steady.estimate(false).unwrap().relative_accuracy, f64::INFINITY);
    }

    #[test]
    fn few_values_say_nothing() {
        assert_eq!(fed(1_000, |_, noise| noise).estimate(true), None);
    }
}
