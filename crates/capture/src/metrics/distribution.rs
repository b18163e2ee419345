//! Samples summed up in bounded memory, mergeable.

use std::collections::BTreeMap;

/// Samples that are kept as they are; beyond this, a histogram takes over.
pub const EXACT_MAX: usize = 8_192;
/// Buckets per doubling: a histogram's values are within 1/256 of the samples'.
const SUB_BUCKET_BITS: u32 = 7;

/// How integer samples (nanoseconds, bytes, packets) are distributed.
///
/// Count, mean, minimum and maximum are always exact. Quantiles are exact up to [`EXACT_MAX`] samples, then within
/// 0.4 % of their value. Two distributions can be merged, which two means of percentiles cannot.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
    samples: Samples,
}

#[derive(Clone, Debug)]
enum Samples {
    Exact(Vec<u64>),
    Histogram(BTreeMap<u32, u64>),
}

impl Default for Samples {
    fn default() -> Self {
        Samples::Exact(Vec::new())
    }
}

impl Distribution {
    /// Takes a sample.
    pub fn record(&mut self, sample: u64) {
        self.min = if self.count == 0 { sample } else { self.min.min(sample) };
        self.max = self.max.max(sample);
        self.count += 1;
        self.sum += u128::from(sample);
        match &mut self.samples {
            Samples::Exact(samples) if samples.len() < EXACT_MAX => samples.push(sample),
            Samples::Exact(_) => *self.histogram().entry(bucket(sample)).or_insert(0) += 1,
            Samples::Histogram(buckets) => *buckets.entry(bucket(sample)).or_insert(0) += 1,
        }
    }

    /// Takes all samples of another distribution.
    pub fn merge(&mut self, other: &Distribution) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
        match (&mut self.samples, &other.samples) {
            (Samples::Exact(ours), Samples::Exact(theirs)) if ours.len() + theirs.len() <= EXACT_MAX => {
                ours.extend_from_slice(theirs);
            }
            (_, Samples::Exact(theirs)) => {
                let buckets = self.histogram();
                theirs.iter().for_each(|&sample| *buckets.entry(bucket(sample)).or_insert(0) += 1);
            }
            (_, Samples::Histogram(theirs)) => {
                let buckets = self.histogram();
                theirs.iter().for_each(|(&index, &count)| *buckets.entry(index).or_insert(0) += count);
            }
        }
    }

    fn histogram(&mut self) -> &mut BTreeMap<u32, u64> {
        if let Samples::Exact(samples) = &self.samples {
            let mut buckets = BTreeMap::new();
            samples.iter().for_each(|&sample| *buckets.entry(bucket(sample)).or_insert(0) += 1);
            self.samples = Samples::Histogram(buckets);
        }
        match &mut self.samples {
            Samples::Histogram(buckets) => buckets,
            Samples::Exact(_) => unreachable!("the samples were just turned into a histogram"),
        }
    }

    /// How many samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Their arithmetic mean.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The smallest.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The quantile `q` (0.5 is the median), interpolated linearly between the two nearest ranks.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        match &self.samples {
            Samples::Exact(samples) => {
                let mut sorted = samples.clone();
                sorted.sort_unstable();
                Some(interpolate(&sorted, q))
            }
            Samples::Histogram(buckets) => {
                let rank = (q.clamp(0.0, 1.0) * (self.count - 1) as f64).round() as u64;
                let mut passed = 0;
                let found = buckets.iter().find(|(_, count)| {
                    passed += **count;
                    passed > rank
                });
                let middle = found.map_or(self.max as f64, |(&index, _)| bucket_middle(index));
                Some(middle.clamp(self.min as f64, self.max as f64))
            }
        }
    }
}

/// The quantile `q` of sorted samples, interpolated linearly between the two nearest ranks.
///
/// # Panics
/// When there are no samples.
pub fn interpolate(sorted: &[u64], q: f64) -> f64 {
    let rank = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = sorted[rank.floor() as usize] as f64;
    let above = sorted[rank.ceil() as usize] as f64;
    below + (above - below) * rank.fract()
}

/// Log-linear: the position of the highest bit, then the bits that follow it.
fn bucket(sample: u64) -> u32 {
    let high = 63 - (sample | 1).leading_zeros();
    if high < SUB_BUCKET_BITS {
        return sample as u32;
    }
    let shift = high - SUB_BUCKET_BITS;
    ((shift + 1) << SUB_BUCKET_BITS) + ((sample >> shift) as u32 & ((1 << SUB_BUCKET_BITS) - 1))
}

fn bucket_middle(index: u32) -> f64 {
    let row = index >> SUB_BUCKET_BITS;
    if row == 0 {
        return f64::from(index);
    }
    let mantissa = (1 << SUB_BUCKET_BITS) + (index & ((1 << SUB_BUCKET_BITS) - 1));
    (f64::from(mantissa) + 0.5) * f64::from(row - 1).exp2() - 0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_between_ranks() {
        let mut distribution = Distribution::default();
        [40, 10, 20, 30].into_iter().for_each(|sample| distribution.record(sample));
        assert_eq!(distribution.quantile(0.5), Some(25.0));
        assert_eq!(distribution.quantile(0.95), Some(38.5));
        assert_eq!(distribution.mean(), Some(25.0));
    }

    #[test]
    fn beyond_the_exact_samples_quantiles_stay_within_half_a_percent() {
        let mut distribution = Distribution::default();
        let count = 2 * EXACT_MAX as u64;
        (0..count).for_each(|index| distribution.record(1_000 + index * 17));
        for q in [0.0, 0.1, 0.5, 0.9, 0.99, 1.0] {
            let exact = 1_000.0 + q * (count - 1) as f64 * 17.0;
            let found = distribution.quantile(q).unwrap();
            assert!((found / exact - 1.0).abs() < 0.005, "{q}: {found} for {exact}");
        }
    }

    #[test]
    fn merging_is_like_recording_everything_in_one() {
        let (mut one, mut left, mut right) =
            (Distribution::default(), Distribution::default(), Distribution::default());
        for sample in 0..(EXACT_MAX as u64 + 10) {
            one.record(sample * 3);
            if sample % 2 == 0 { left.record(sample * 3) } else { right.record(sample * 3) }
        }
        left.merge(&right);
        assert_eq!(
            (left.count(), left.sum(), left.min(), left.max()),
            (one.count(), one.sum(), one.min(), one.max())
        );
        assert_eq!(left.quantile(0.75), one.quantile(0.75));
    }
}
