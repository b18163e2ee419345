//! The instants of a leg put in order, and the parts between them.

use crate::attribution::holds::Hold;
use crate::attribution::latency_parts::{LatencyPart, LatencyParts};
use crate::instants::MaybeInstant;

/// A part of a leg in which something named by the recording held it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldSpan {
    pub(crate) part: LatencyPart,
    pub(crate) from: i64,
    pub(crate) until: i64,
}

/// The steps of a leg, as far as they were gone through.
pub(crate) struct PartSteps<'a> {
    pub(crate) parts: LatencyParts,
    pub(crate) adjusted: i64,
    holds: &'a [Hold],
    held: &'a mut Vec<HeldSpan>,
    /// The instant of the step before, as it was put in order, and as the tables have it.
    last: i64,
    before: i64,
    received: i64,
}

impl<'a> PartSteps<'a> {
    /// What is held is put into `held`.
    pub(crate) fn from(
        begins: i64,
        received: i64,
        holds: &'a [Hold],
        held: &'a mut Vec<HeldSpan>,
    ) -> PartSteps<'a> {
        let parts = LatencyParts::default();
        PartSteps { parts, adjusted: 0, holds, held, last: begins, before: begins, received }
    }

    /// The next step: its instant, and the part that ends there. What is not known is a part of the next that is.
    #[inline]
    pub(crate) fn step(&mut self, instant: MaybeInstant, part: LatencyPart) {
        let Some(instant) = instant else { return };
        self.adjusted += (self.before - instant).max(0);
        self.before = instant;
        // Never before the last and never behind the reception: no part is negative, and all add up.
        let moved = instant.max(self.last).min(self.received.max(self.last));
        if self.holds.is_empty() {
            self.parts[part] += moved - self.last;
        } else {
            self.divide(moved, part);
        }
        self.last = moved;
    }

    /// Divides the time until the next instant among its part and what held it.
    fn divide(&mut self, until: i64, part: LatencyPart) {
        let mut at = self.last;
        while at < until {
            let holding = |hold: &&Hold| hold.holds(part);
            let place =
                self.holds.iter().position(|hold| holding(&hold) && hold.begins() <= at && at < hold.ends());
            // It holds until its end, or until one begins that counts before it.
            let others = self.holds[..place.unwrap_or(self.holds.len())].iter().filter(holding);
            let next = others.map(Hold::begins).filter(|&from| from > at).min();
            let by = place.map(|place| &self.holds[place]);
            let ends = [Some(until), next, by.map(Hold::ends)].into_iter().flatten().min().unwrap_or(until);
            self.parts[by.map_or(part, |hold| hold.part)] += ends - at;
            if let Some(hold) = by {
                self.note(HeldSpan { part: hold.part, from: at, until: ends });
            }
            at = ends;
        }
    }

    /// Keeps what was held; what goes on is one.
    fn note(&mut self, span: HeldSpan) {
        match self.held.last_mut() {
            Some(last) if last.part == span.part && last.until == span.from => last.until = span.until,
            _ => self.held.push(span),
        }
    }
}
