//! A histogram of times that several threads fill while another reads it.
//!
//! Log-linear: every power of two is cut into 64 equal buckets, so that a quantile is at most 1.6 % above the
//! value it stands for, from a nanosecond to centuries. Counting is one relaxed atomic addition.
//! What it does not keep: the values themselves, nor an order among them. The maximum is exact.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mqttlab_units::Duration;
use serde_json::{Value, json};

/// Times counted by size.
pub struct AtomicHistogram {
    buckets: Box<[AtomicU64]>,
    max_ns: AtomicU64,
}

/// A histogram as it was at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramSnapshot {
    counts: Vec<u64>,
    max_ns: u64,
}

impl Default for AtomicHistogram {
    fn default() -> Self {
        let buckets = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        AtomicHistogram { buckets, max_ns: AtomicU64::new(0) }
    }
}

impl AtomicHistogram {
    /// Counts one time.
    pub fn count(&self, time: Duration) {
        self.buckets[bucket(time.as_ns())].fetch_add(1, Relaxed);
        // Most values are not a new maximum, and a load costs less than a contended exchange.
        if time.as_ns() > self.max_ns.load(Relaxed) {
            self.max_ns.fetch_max(time.as_ns(), Relaxed);
        }
    }

    /// What was counted so far.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let counts = self.buckets.iter().map(|bucket| bucket.load(Relaxed)).collect();
        HistogramSnapshot { counts, max_ns: self.max_ns.load(Relaxed) }
    }
}

impl HistogramSnapshot {
    /// How many times were counted.
    pub fn len(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The largest time; zero when there is none. Of a difference, the largest since the histogram began.
    pub fn max(&self) -> Duration {
        Duration::from_ns(self.max_ns)
    }

    /// The time that `percent` of all counted times do not exceed, up to 1.6 % too large; `None` when nothing
    /// was counted.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        let total = self.len();
        let rank = ((percent / 100.0 * total as f64).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(Duration::from_ns(upper_bound(index).min(self.max_ns)));
            }
        }
        None
    }

    /// The upper bound of each bucket that is not empty, and how many times are in it.
    pub fn each(&self, mut see: impl FnMut(Duration, u64)) {
        for (index, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            see(Duration::from_ns(upper_bound(index).min(self.max_ns)), count);
        }
    }

    /// As `run.json` holds it.
    pub fn summary(&self) -> Value {
        let ns = |percent| self.percentile(percent).map(Duration::as_ns);
        json!({
            "count": self.len(),
            "p50_ns": ns(50.0),
            "p90_ns": ns(90.0),
            "p99_ns": ns(99.0),
            "p999_ns": ns(99.9),
            "max_ns": (!self.is_empty()).then(|| self.max().as_ns()),
        })
    }

    /// What this and another have counted.
    pub fn and(mut self, other: &HistogramSnapshot) -> HistogramSnapshot {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
        self.max_ns = self.max_ns.max(other.max_ns);
        self
    }

    /// What was counted after `earlier`, which must be of the same histogram.
    pub fn since(&self, earlier: &HistogramSnapshot) -> HistogramSnapshot {
        let before = earlier.counts.iter().chain(std::iter::repeat(&0));
        let counts = self.counts.iter().zip(before).map(|(now, before)| now - before).collect();
        HistogramSnapshot { counts, max_ns: self.max_ns }
    }
}

const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;
const BUCKETS: usize = ((64 - SUB_BITS + 1) as usize) << SUB_BITS;

fn bucket(ns: u64) -> usize {
    if ns < SUB {
        return ns as usize;
    }
    let octave = ns.ilog2() - SUB_BITS;
    (((u64::from(octave) + 1) << SUB_BITS) + ((ns >> octave) - SUB)) as usize
}

fn upper_bound(bucket: usize) -> u64 {
    let (octave, sub) = ((bucket as u64) >> SUB_BITS, (bucket as u64) & (SUB - 1));
    if octave == 0 {
        return sub;
    }
    let width = 1u64 << (octave - 1);
    ((SUB + sub) << (octave - 1)).saturating_add(width - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_never_below_its_value_and_at_most_1_6_percent_above() {
        for ns in [0, 1, 63, 64, 65, 1000, 123_456_789, u64::MAX / 3] {
            let histogram = AtomicHistogram::default();
            histogram.count(Duration::from_ns(ns));
            histogram.count(Duration::from_ns(u64::MAX));
            let found = histogram.snapshot().percentile(50.0).unwrap().as_ns();
            assert!(found >= ns && found - ns <= ns / 64, "{found} for {ns}");
        }
    }

    #[test]
    fn percentiles_of_a_known_set() {
        let histogram = AtomicHistogram::default();
        (1..=100).for_each(|us| histogram.count(Duration::from_us(us)));
        let all = histogram.snapshot();
        assert_eq!((all.len(), all.max()), (100, Duration::from_us(100)));
        let p99 = all.percentile(99.0).unwrap();
        assert!(p99 >= Duration::from_us(99) && p99 <= Duration::from_us(100), "{p99}");
        assert_eq!(HistogramSnapshot::default().percentile(50.0), None);
    }

    #[test]
    fn a_difference_holds_what_came_between() {
        let histogram = AtomicHistogram::default();
        histogram.count(Duration::from_ms(900));
        let before = histogram.snapshot();
        histogram.count(Duration::from_ns(7));
        let between = histogram.snapshot().since(&before);
        assert_eq!(between.len(), 1);
        assert_eq!(between.percentile(99.0), Some(Duration::from_ns(7)));
    }
}
