//! Rates that change: how many messages are due by when.
//!
//! ```text
//! rate                          ____
//!            ______           /            The count of messages is the area below. The law of arrivals says at which
//!  _________|      |        /              counts messages are due, and this says when that is.
//!                  |______/
//!  warm-up  | step | none | ramp | stays
//! ```
//!
//! What it does not know: whole messages. A stage of half a message leaves the other half to the next one.

use mqttlab_units::{Duration, Instant};

use crate::RateStage;

/// A rate over time.
#[derive(Clone, Debug)]
pub(crate) struct Rates {
    /// In order, without gaps.
    pieces: Vec<Piece>,
    /// The first one that is not over.
    present: usize,
    /// The count at which the next message is due.
    place: f64,
}

/// A time in which the rate changes evenly.
#[derive(Clone, Copy, Debug)]
struct Piece {
    begins: Instant,
    /// `None` of the last one.
    length: Option<Duration>,
    /// Messages per nanosecond at its begin.
    from: f64,
    /// At its end.
    to: f64,
    /// What was due before it.
    before: f64,
}

impl Rates {
    /// So many messages per nanosecond from `begins` until `staged_from`, and from then on by stages. The first message is due
    /// at the count `place`.
    pub(crate) fn new(
        rate: f64,
        stages: &[RateStage],
        (begins, staged_from): (Instant, Instant),
        place: f64,
    ) -> Rates {
        let per_ns = |interval: Option<u64>| interval.map_or(0.0, |ns| 1.0 / ns as f64);
        let first = (staged_from.since(begins), rate, rate);
        let staged = stages
            .iter()
            .map(|stage| (stage.length, per_ns(stage.from_interval_ns), per_ns(stage.to_interval_ns)));
        let (mut at, mut before, mut last) = (begins, 0.0, rate);
        let mut pieces = Vec::with_capacity(stages.len() + 2);
        for (length, from, to) in std::iter::once(first).chain(staged) {
            pieces.push(Piece { begins: at, length: Some(length), from, to, before });
            (at, before, last) = (at + length, before + (from + to) / 2.0 * length.as_ns() as f64, to);
        }
        pieces.push(Piece { begins: at, length: None, from: last, to: last, before });
        Rates { pieces, present: 0, place }
    }

    /// When the next message is due; `None` where none is due ever after.
    pub(crate) fn due(&mut self) -> Option<Instant> {
        while self.pieces.get(self.present)?.is_over_before(self.place) {
            self.present += 1;
        }
        self.pieces[self.present].reaches(self.place)
    }

    /// The next message is due so many messages after the last one.
    pub(crate) fn skip(&mut self, messages: f64) {
        self.place += messages;
    }
}

impl Piece {
    fn is_over_before(&self, count: f64) -> bool {
        self.length
            .is_some_and(|length| count - self.before > (self.from + self.to) / 2.0 * length.as_ns() as f64)
    }

    /// When the count is reached, if that is before long.
    fn reaches(&self, count: f64) -> Option<Instant> {
        let missing = (count - self.before).max(0.0);
        if missing == 0.0 {
            return Some(self.begins);
        }
        let change = self.length.map_or(0.0, |length| (self.to - self.from) / length.as_ns() as f64);
        // The root of from · t + change / 2 · t² = missing that has no difference of near numbers. A ramp down to nothing has
        // none left at its very end.
        let root = (self.from * self.from + 2.0 * change * missing).max(0.0).sqrt();
        let after_ns = 2.0 * missing / (self.from + root);
        (after_ns < LONGEST_NS).then(|| self.begins + Duration::from_ns(after_ns.round() as u64))
    }
}

/// 31 years: longer than any run.
const LONGEST_NS: f64 = 1e18;
