//! Numbers counted by size: memory is bounded however many are counted, and two of them add up.
//!
//! A number below 2^BITS has a range of its own. Above, each doubling is cut into 2^BITS ranges of equal width:
//!
//! ```text
//!   BITS   ranges for a doubling   a range's end is too large by   its middle is off by   ranges in all
//!     4              16                   6.25 % at most               3.13 %                   976
//!     6              64                   1.57 %                       0.79 %                  3,776
//!     7             128                   0.79 %                       0.40 %                  7,424
//! ```
//!
//! Only ranges in which something was counted take memory. What it does not keep: the numbers themselves, and their order.
//! Who needs their sum, least or largest exactly counts these beside it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How many numbers lie in each range, of which there are 2^`BITS` for each doubling.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram<const BITS: u32> {
    counts: BTreeMap<u32, u64>,
}

impl<const BITS: u32> Histogram<BITS> {
    /// How many ranges all numbers have.
    pub const RANGES: usize = ((u64::BITS - BITS + 1) as usize) << BITS;

    /// The number of a value's range. Ranges follow each other from 0.
    #[inline]
    pub const fn range_of(value: u64) -> u32 {
        let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
        (shift << BITS) + (value >> shift) as u32
    }

    /// The first and the last value of a range.
    pub const fn bounds(range: u32) -> (u64, u64) {
        let shift = (range >> BITS).saturating_sub(1);
        let begin = ((range - (shift << BITS)) as u64) << shift;
        (begin, begin + ((1 << shift) - 1))
    }

    /// Of numbers at once. Looking up a range takes longer than passing over some empty ones.
    pub fn of(values: impl Iterator<Item = u64>) -> Histogram<BITS> {
        let mut counts = vec![0; Self::RANGES];
        values.for_each(|value| counts[Self::range_of(value) as usize] += 1);
        Self::of_counts(counts.into_iter())
    }

    /// Of the counts of all ranges, from the first on.
    pub fn of_counts(counts: impl Iterator<Item = u64>) -> Histogram<BITS> {
        Histogram { counts: (0..).zip(counts).filter(|(_, count)| *count > 0).collect() }
    }

    /// Counts a value so often.
    pub fn count(&mut self, value: u64, times: u64) {
        if times > 0 {
            *self.counts.entry(Self::range_of(value)).or_default() += times;
        }
    }

    /// Adds what another one has counted.
    pub fn add(&mut self, other: &Histogram<BITS>) {
        for (range, count) in &other.counts {
            *self.counts.entry(*range).or_default() += count;
        }
    }

    /// What was counted after `earlier`, which must be of the same values.
    pub fn since(&self, earlier: &Histogram<BITS>) -> Histogram<BITS> {
        let before = |range| earlier.counts.get(range).copied().unwrap_or(0);
        let rest = self.counts.iter().map(|(range, count)| (*range, count - before(range)));
        Histogram { counts: rest.filter(|(_, count)| *count > 0).collect() }
    }

    /// How many values were counted.
    pub fn len(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The first and the last value of each range that is not empty, ascending, and how many values lie there.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.counts.iter().map(|(range, count)| {
            let (begin, end) = Self::bounds(*range);
            (begin, end, *count)
        })
    }

    /// The range of the value with so many values below it; `None` where there are fewer.
    pub fn at(&self, below: u64) -> Option<(u64, u64)> {
        let mut passed = 0;
        let found = self.ranges().find(|(_, _, count)| {
            passed += count;
            passed > below
        });
        found.map(|(begin, end, _)| (begin, end))
    }

    /// The end of the range of the value that `percent` of all values do not exceed; `None` when nothing was counted.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let rank = ((percent / 100.0 * self.len() as f64).ceil() as u64).max(1);
        self.at(rank - 1).map(|(_, end)| end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges_follow_each_other<const BITS: u32>() {
        let mut next = 0;
        for range in 0..Histogram::<BITS>::RANGES as u32 {
            let (begin, end) = Histogram::<BITS>::bounds(range);
            assert_eq!(begin, next);
            assert!(Histogram::<BITS>::range_of(begin) == range && Histogram::<BITS>::range_of(end) == range);
            assert!(end - begin <= begin >> BITS, "{begin} to {end}");
            next = end.wrapping_add(1);
        }
        assert_eq!(next, 0, "the last range ends with the largest number");
    }

    #[test]
    fn every_number_lies_in_one_range_which_is_as_narrow_as_the_header_says() {
        ranges_follow_each_other::<4>();
        ranges_follow_each_other::<6>();
        ranges_follow_each_other::<7>();
        let all = [Histogram::<4>::RANGES, Histogram::<6>::RANGES, Histogram::<7>::RANGES];
        assert_eq!(all, [976, 3_776, 7_424]);
    }

    #[test]
    fn percentiles_of_a_known_set() {
        let mut histogram = Histogram::<4>::default();
        (1..=100).for_each(|us| histogram.count(us * 1_000, 1));
        let [p50, p99] = [50.0, 99.0].map(|percent| histogram.percentile(percent).unwrap());
        assert!((50_000..=53_125).contains(&p50) && (99_000..=105_188).contains(&p99), "{p50} {p99}");
        assert_eq!((histogram.len(), histogram.at(100)), (100, None));
        assert_eq!(Histogram::<4>::default().percentile(50.0), None);
    }

    #[test]
    fn parts_add_up_and_a_difference_has_what_came_between() {
        let values = [0, 7, 900_000_000, 7, u64::MAX];
        let whole = Histogram::<6>::of(values.into_iter());
        let (mut first, mut rest) = (Histogram::default(), Histogram::default());
        values[..2].iter().for_each(|value| first.count(*value, 1));
        values[2..].iter().for_each(|value| rest.count(*value, 1));
        assert_eq!(whole.since(&first), rest);
        first.add(&rest);
        assert_eq!(first, whole);
    }
}
