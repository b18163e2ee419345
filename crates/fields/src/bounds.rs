//! Bounds of values.

use std::ops::{Bound as Edge, RangeBounds};

use crate::place::{Place, Step};

/// A bound that a value of a type breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The field, by its name in a plan.
    pub place: Place,
    /// What it is, in the least unit.
    pub amount: i128,
    /// What it must be.
    pub limit: Limit,
}

impl Broken {
    /// The same, found below a step.
    #[must_use]
    pub fn below(mut self, step: impl Into<Step>) -> Broken {
        self.place.0.insert(0, step.into());
        self
    }
}

/// Bounds of a value, in its least unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The least.
    pub least: Option<i128>,
    /// The most.
    pub most: Option<i128>,
    /// What it must be less than.
    pub below: Option<i128>,
}

/// A bound that a value breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// It must be as much, or more.
    Least(i128),
    /// It must be as much, or less.
    Most(i128),
    /// It must be less.
    Below(i128),
}

impl Bounds {
    /// The bounds of a range.
    pub fn of<T: Copy + Into<i128>>(range: impl RangeBounds<T>) -> Bounds {
        let least = match range.start_bound() {
            Edge::Included(least) => Some((*least).into()),
            Edge::Excluded(_) | Edge::Unbounded => None,
        };
        let (most, below) = match range.end_bound() {
            Edge::Included(most) => (Some((*most).into()), None),
            Edge::Excluded(below) => (None, Some((*below).into())),
            Edge::Unbounded => (None, None),
        };
        Bounds { least, most, below }
    }

    /// The bound that an amount breaks.
    pub(crate) fn broken_by(self, amount: i128) -> Option<Limit> {
        let Bounds { least, most, below } = self;
        let least = least.filter(|least| amount < *least).map(Limit::Least);
        let most = most.filter(|most| amount > *most).map(Limit::Most);
        least.or(most).or(below.filter(|below| amount >= *below).map(Limit::Below))
    }
}
