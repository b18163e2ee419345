//! Samples summed up in bounded memory, mergeable.

use mqttlab_units::Histogram;

/// Samples that are kept as they are; beyond this, a histogram takes over.
pub const EXACT_MAX: usize = 8_192;
/// How integer samples (nanoseconds, bytes, packets) are distributed.
///
/// Count, mean, minimum and maximum are always exact. Quantiles are exact up to [`EXACT_MAX`] samples, then within
/// 0.4 % of their value. Two distributions can be merged, which two means of percentiles cannot.
///
/// There are many of them for each connection, most of them empty or of one value: these take no memory of their own.
#[derive(Clone, Debug)]
pub struct Distribution(Samples);

#[derive(Clone, Debug)]
enum Samples {
    /// All of one value.
    Same {
        value: u64,
        count: u64,
    },
    Exact(Box<Exact>),
    Histogram(Box<SampleHistogram>),
}

/// Samples as their differences, each in as few bytes as it takes.
#[derive(Clone, Debug, Default)]
struct Exact {
    count: u32,
    latest: u64,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
struct SampleHistogram {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
    ranges: Histogram<7>,
}

/// What can be said of samples, worked out once.
#[derive(Clone, Debug)]
pub struct SampleSummary<'a> {
    /// How many samples.
    pub count: u64,
    /// Their sum.
    pub sum: u128,
    /// The smallest, 0 when there are none.
    pub min: u64,
    /// The largest, 0 when there are none.
    pub max: u64,
    ranks: Ranks<'a>,
}

#[derive(Clone, Debug)]
enum Ranks<'a> {
    Same,
    Sorted(Vec<u64>),
    Histogram(&'a SampleHistogram),
}

impl Default for Distribution {
    fn default() -> Self {
        Distribution::EMPTY
    }
}

impl Distribution {
    /// No samples.
    pub const EMPTY: Distribution = Distribution(Samples::Same { value: 0, count: 0 });

    /// Takes a sample.
    #[inline]
    pub fn record(&mut self, sample: u64) {
        match &mut self.0 {
            Samples::Same { value, count } if *value == sample || *count == 0 => {
                *value = sample;
                *count += 1;
            }
            Samples::Exact(exact) if (exact.count as usize) < EXACT_MAX => exact.push(sample),
            Samples::Histogram(histogram) => histogram.add(sample, 1),
            _ => self.record_many(sample, 1),
        }
    }

    /// Takes so many samples of one value, in the form that has room for them.
    fn record_many(&mut self, sample: u64, times: u64) {
        if let Samples::Same { value, count } = &mut self.0
            && (*count == 0 || *value == sample)
        {
            (*value, *count) = (sample, *count + times);
        } else if self.count() + times <= EXACT_MAX as u64 {
            let exact = self.exact();
            (0..times).for_each(|_| exact.push(sample));
        } else {
            self.histogram().add(sample, times);
        }
    }

    /// Takes all samples of another distribution.
    pub fn merge(&mut self, other: &Distribution) {
        match &other.0 {
            Samples::Same { count: 0, .. } => {}
            Samples::Same { value, count } => self.record_many(*value, *count),
            Samples::Exact(theirs) if self.count() + u64::from(theirs.count) <= EXACT_MAX as u64 => {
                let exact = self.exact();
                theirs.samples().for_each(|sample| exact.push(sample));
            }
            Samples::Exact(theirs) => self.histogram().add_all(theirs),
            Samples::Histogram(theirs) => self.histogram().merge(theirs),
        }
    }

    /// The samples one by one, of which there must not be too many.
    fn exact(&mut self) -> &mut Exact {
        if let Samples::Same { value, count } = self.0 {
            let mut exact = Box::<Exact>::default();
            (0..count).for_each(|_| exact.push(value));
            self.0 = Samples::Exact(exact);
        }
        match &mut self.0 {
            Samples::Exact(exact) => exact,
            _ => unreachable!("a histogram does not have few samples"),
        }
    }

    fn histogram(&mut self) -> &mut SampleHistogram {
        if !matches!(self.0, Samples::Histogram(_)) {
            let mut histogram = Box::<SampleHistogram>::default();
            match &self.0 {
                Samples::Same { value, count } => histogram.add(*value, *count),
                Samples::Exact(exact) => histogram.add_all(exact),
                Samples::Histogram(_) => {}
            }
            self.0 = Samples::Histogram(histogram);
        }
        match &mut self.0 {
            Samples::Histogram(histogram) => histogram,
            _ => unreachable!("the samples were just turned into a histogram"),
        }
    }

    /// How many samples.
    pub fn count(&self) -> u64 {
        match &self.0 {
            Samples::Same { count, .. } => *count,
            Samples::Exact(exact) => exact.count.into(),
            Samples::Histogram(histogram) => histogram.count,
        }
    }

    /// Everything there is to say.
    pub fn summary(&self) -> SampleSummary<'_> {
        match &self.0 {
            Samples::Same { value, count } => SampleSummary {
                count: *count,
                sum: u128::from(*value) * u128::from(*count),
                min: *value,
                max: *value,
                ranks: Ranks::Same,
            },
            Samples::Exact(exact) => {
                let mut sorted: Vec<u64> = exact.samples().collect();
                sorted.sort_unstable();
                SampleSummary {
                    count: exact.count.into(),
                    sum: sorted.iter().copied().map(u128::from).sum(),
                    min: sorted[0],
                    max: sorted[sorted.len() - 1],
                    ranks: Ranks::Sorted(sorted),
                }
            }
            Samples::Histogram(histogram) => SampleSummary {
                count: histogram.count,
                sum: histogram.sum,
                min: histogram.min,
                max: histogram.max,
                ranks: Ranks::Histogram(histogram),
            },
        }
    }
}

impl Exact {
    fn push(&mut self, sample: u64) {
        let difference = sample.wrapping_sub(self.latest) as i64;
        // Small ones of either sign are short: the sign goes to the lowest bit, and seven bits to a byte.
        let mut rest = (difference << 1 ^ difference >> 63) as u64;
        while rest >= 0x80 {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
        self.latest = sample;
        self.count += 1;
    }

    fn samples(&self) -> impl Iterator<Item = u64> {
        let mut latest = 0_u64;
        self.bytes.split_inclusive(|byte| byte & 0x80 == 0).map(move |bytes| {
            let folded = bytes.iter().rev().fold(0, |rest, byte| rest << 7 | u64::from(byte & 0x7f));
            latest = latest.wrapping_add(folded >> 1 ^ (folded & 1).wrapping_neg());
            latest
        })
    }
}

impl SampleHistogram {
    fn add(&mut self, sample: u64, times: u64) {
        self.min = if self.count == 0 { sample } else { self.min.min(sample) };
        self.max = self.max.max(sample);
        self.count += times;
        self.sum += u128::from(sample) * u128::from(times);
        self.ranges.count(sample, times);
    }

    fn add_all(&mut self, exact: &Exact) {
        let (mut sum, mut min, mut max) = (0, u64::MAX, 0);
        let ranges = Histogram::of(exact.samples().inspect(|&sample| {
            sum += u128::from(sample);
            (min, max) = (min.min(sample), max.max(sample));
        }));
        self.merge(&SampleHistogram { count: exact.count.into(), sum, min, max, ranges });
    }

    fn merge(&mut self, other: &SampleHistogram) {
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
        self.ranges.add(&other.ranges);
    }
}

impl SampleSummary<'_> {
    /// The arithmetic mean.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The quantile `q` (0.5 is the median), interpolated linearly between the two nearest ranks.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        (self.count > 0).then(|| match &self.ranks {
            Ranks::Same => self.min as f64,
            Ranks::Sorted(sorted) => interpolate(sorted, q),
            Ranks::Histogram(histogram) => {
                let rank = (q.clamp(0.0, 1.0) * (self.count - 1) as f64).round() as u64;
                let middle = histogram
                    .ranges
                    .at(rank)
                    .map_or(self.max as f64, |(begin, end)| begin as f64 + (end - begin) as f64 / 2.0);
                middle.clamp(self.min as f64, self.max as f64)
            }
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_between_ranks() {
        let mut distribution = Distribution::default();
        [40, 10, 20, 30].into_iter().for_each(|sample| distribution.record(sample));
        assert_eq!(distribution.summary().quantile(0.5), Some(25.0));
        assert_eq!(distribution.summary().quantile(0.95), Some(38.5));
        assert_eq!(distribution.summary().mean(), Some(25.0));
    }

    #[test]
    fn beyond_the_exact_samples_quantiles_stay_within_half_a_percent() {
        let mut distribution = Distribution::default();
        let count = 2 * EXACT_MAX as u64;
        (0..count).for_each(|index| distribution.record(1_000 + index * 17));
        for q in [0.0, 0.1, 0.5, 0.9, 0.99, 1.0] {
            let exact = 1_000.0 + q * (count - 1) as f64 * 17.0;
            let found = distribution.summary().quantile(q).unwrap();
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
        let (left, one) = (left.summary(), one.summary());
        assert_eq!((left.count, left.sum, left.min, left.max), (one.count, one.sum, one.min, one.max));
        assert_eq!(left.quantile(0.75), one.quantile(0.75));
    }

    #[test]
    fn samples_of_any_size_come_back() {
        let samples = [0, u64::MAX, 1, u64::MAX / 2, u64::MAX / 2, 127, 128, 1 << 40];
        let mut distribution = Distribution::default();
        samples.into_iter().for_each(|sample| distribution.record(sample));
        let Samples::Exact(exact) = &distribution.0 else { panic!("there are few") };
        assert_eq!(exact.samples().collect::<Vec<_>>(), samples);
        assert_eq!(distribution.summary().sum, samples.into_iter().map(u128::from).sum());
    }

    #[test]
    fn samples_of_one_value_are_like_any_others() {
        let count = EXACT_MAX as u64 + 1;
        let (mut same, mut merged) = (Distribution::default(), Distribution::default());
        (0..count).for_each(|_| same.record(300));
        merged.record(500);
        merged.merge(&same);
        assert!(matches!(same.0, Samples::Same { .. }) && matches!(merged.0, Samples::Histogram(_)));
        assert_eq!((merged.count(), merged.summary().max), (count + 1, 500));
        let median = merged.summary().quantile(0.5).unwrap();
        assert!((median / 300.0 - 1.0).abs() < 0.004, "{median}");
    }
}
