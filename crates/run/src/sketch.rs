//! Latencies counted by size, coarsely: enough to draw how they are distributed while a run goes on.
//!
//! Logarithmic with 16 buckets for each doubling, so that a quantile is at most 6.25 % above the value it stands for.
//! What it does not keep: the values themselves. The recording has them.

use std::collections::BTreeMap;

use mqttlab_units::Duration;

/// Times counted by size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    buckets: BTreeMap<u16, u64>,
}

impl Sketch {
    /// Counts a time so often.
    pub fn count(&mut self, time: Duration, times: u64) {
        if times > 0 {
            *self.buckets.entry(bucket(time.as_ns())).or_default() += times;
        }
    }

    /// Adds what another one has counted.
    pub fn add(&mut self, other: &Sketch) {
        for (bucket, count) in &other.buckets {
            *self.buckets.entry(*bucket).or_default() += count;
        }
    }

    /// How many times were counted.
    pub fn len(&self) -> u64 {
        self.buckets.values().sum()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// The time that `percent` of all counted times do not exceed, up to 6.25 % too large; `None` when nothing was
    /// counted.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        let rank = ((percent / 100.0 * self.len() as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let reaches = |(bucket, count): (&u16, &u64)| {
            seen += count;
            (seen >= rank).then(|| upper_bound_ns(*bucket))
        };
        self.buckets.iter().find_map(reaches)
    }

    /// The upper bound of each bucket that is not empty, in nanoseconds, and how many times are in it.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        self.buckets.iter().map(|(bucket, count)| (upper_bound_ns(*bucket), *count)).collect()
    }
}

const SUB_BITS: u32 = 4;
const SUB: u64 = 1 << SUB_BITS;

fn bucket(ns: u64) -> u16 {
    if ns < SUB {
        return ns as u16;
    }
    let octave = ns.ilog2() - SUB_BITS;
    (((octave + 1) << SUB_BITS) as u64 + ((ns >> octave) - SUB)) as u16
}

fn upper_bound_ns(bucket: u16) -> u64 {
    let (octave, sub) = (u32::from(bucket) >> SUB_BITS, u64::from(bucket) & (SUB - 1));
    if octave == 0 {
        return sub;
    }
    let shift = octave - 1;
    ((SUB + sub) << shift).saturating_add((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_never_below_its_value_and_at_most_6_25_percent_above() {
        for ns in [0, 1, 15, 16, 17, 1000, 123_456_789, u64::MAX / 3, u64::MAX] {
            let mut sketch = Sketch::default();
            sketch.count(Duration::from_ns(ns), 1);
            let found = sketch.percentile_ns(50.0).unwrap();
            assert!(found >= ns && found - ns <= ns / 16, "{found} for {ns}");
        }
    }

    #[test]
    fn percentiles_of_a_known_set() {
        let mut sketch = Sketch::default();
        (1..=100).for_each(|us| sketch.count(Duration::from_us(us), 1));
        let [p50, p99] = [50.0, 99.0].map(|percent| sketch.percentile_ns(percent).unwrap());
        assert!((50_000..=53_125).contains(&p50) && (99_000..=105_188).contains(&p99), "{p50} {p99}");
        assert_eq!(sketch.buckets().iter().map(|(_, count)| count).sum::<u64>(), 100);
        assert_eq!(Sketch::default().percentile_ns(50.0), None);
    }
}
