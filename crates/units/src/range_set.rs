//! Sets of positions, kept as ranges: what of a stream has come, in whatever order.
//!
//! The ranges are sorted, disjoint and apart: two that touch are one. Whoever reassembles a stream keeps a *frontier* (all
//! before it has come) and puts what lies beyond it here; [`RangeSet::take_from`] moves the frontier when a hole is filled.
//!
//! Searching is binary, inserting moves what lies behind. What it does not model: anything that belongs to a range (data,
//! times); keep that beside it, by position.

use std::collections::VecDeque;
use std::ops::Range;

/// A set of positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: VecDeque<Range<u64>>,
}

impl RangeSet {
    /// The empty set, without memory of its own.
    pub const fn new() -> RangeSet {
        RangeSet { ranges: VecDeque::new() }
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many ranges there are.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The ranges in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + '_ {
        self.ranges.iter().cloned()
    }

    /// Adds a range, and returns the one that it is part of now. An empty one adds nothing.
    pub fn insert(&mut self, range: Range<u64>) -> Range<u64> {
        if range.is_empty() {
            return range;
        }
        // Those that overlap or touch it become one with it.
        let from = self.ranges.partition_point(|known| known.end < range.start);
        let to = self.ranges.partition_point(|known| known.start <= range.end);
        if from == to {
            self.ranges.insert(from, range.clone());
            return range;
        }
        let merged = range.start.min(self.ranges[from].start)..range.end.max(self.ranges[to - 1].end);
        self.ranges[from] = merged.clone();
        self.ranges.drain(from + 1..to);
        merged
    }

    /// The range that a position lies in.
    pub fn range_at(&self, position: u64) -> Option<Range<u64>> {
        let index = self.ranges.partition_point(|known| known.end <= position);
        self.ranges.get(index).filter(|known| known.start <= position).cloned()
    }

    /// Whether all of the range is in the set.
    pub fn contains(&self, range: &Range<u64>) -> bool {
        range.is_empty() || self.range_at(range.start).is_some_and(|known| range.end <= known.end)
    }

    /// What of the range is not in the set, in order.
    pub fn gaps(&self, within: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut at = within.start;
        let mut index = self.ranges.partition_point(|known| known.end <= within.start);
        std::iter::from_fn(move || {
            while at < within.end {
                let next = self.ranges.get(index);
                let gap = at..next.map_or(within.end, |known| known.start.min(within.end));
                at = next.map_or(within.end, |known| known.end);
                index += 1;
                if !gap.is_empty() {
                    return Some(gap);
                }
            }
            None
        })
    }

    /// Takes out what continues `frontier`, and what lies before it; returns the new frontier.
    pub fn take_from(&mut self, mut frontier: u64) -> u64 {
        while let Some(first) = self.ranges.front().filter(|first| first.start <= frontier) {
            frontier = frontier.max(first.end);
            self.ranges.pop_front();
        }
        frontier
    }
}
