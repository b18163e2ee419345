//! A histogram of times that several threads fill while another reads it.
//!
//! Its ranges are those of a [`Histogram`], 64 for each doubling: a quantile is at most 1.6 % above the value it stands for.
//! Counting is one relaxed atomic addition. The maximum is exact.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mqttlab_units::{Duration, Histogram};
use serde_json::{Value, json};

type Ranges = Histogram<6>;

/// Times counted by size.
pub struct AtomicHistogram {
    buckets: Box<[AtomicU64]>,
    max_ns: AtomicU64,
}

/// A histogram as it was at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramSnapshot {
    counts: Ranges,
    max_ns: u64,
}

impl Default for AtomicHistogram {
    fn default() -> Self {
        let buckets = (0..Ranges::RANGES).map(|_| AtomicU64::new(0)).collect();
        AtomicHistogram { buckets, max_ns: AtomicU64::new(0) }
    }
}

impl AtomicHistogram {
    /// Counts one time.
    pub fn count(&self, time: Duration) {
        self.buckets[Ranges::range_of(time.as_ns()) as usize].fetch_add(1, Relaxed);
        // Most values are not a new maximum, and a load costs less than a contended exchange.
        if time.as_ns() > self.max_ns.load(Relaxed) {
            self.max_ns.fetch_max(time.as_ns(), Relaxed);
        }
    }

    /// What was counted so far.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let counts = Ranges::of_counts(self.buckets.iter().map(|bucket| bucket.load(Relaxed)));
        HistogramSnapshot { counts, max_ns: self.max_ns.load(Relaxed) }
    }
}

impl HistogramSnapshot {
    /// How many times were counted.
    pub fn len(&self) -> u64 {
        self.counts.len()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The largest time; zero when there is none. Of a difference, the largest since the histogram began.
    pub fn max(&self) -> Duration {
        Duration::from_ns(self.max_ns)
    }

    /// The time that `percent` of all counted times do not exceed, up to 1.6 % too large; `None` when nothing
    /// was counted.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        self.counts.percentile(percent).map(|end| Duration::from_ns(end.min(self.max_ns)))
    }

    /// The last time of each range that is not empty, and how many times are in it.
    pub fn ranges(&self) -> impl Iterator<Item = (Duration, u64)> {
        self.counts.ranges().map(|(_, end, count)| (Duration::from_ns(end.min(self.max_ns)), count))
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
        self.counts.add(&other.counts);
        self.max_ns = self.max_ns.max(other.max_ns);
        self
    }

    /// What was counted after `earlier`, which must be of the same histogram.
    pub fn since(&self, earlier: &HistogramSnapshot) -> HistogramSnapshot {
        HistogramSnapshot { counts: self.counts.since(&earlier.counts), max_ns: self.max_ns }
    }
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
