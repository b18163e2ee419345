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

use crate::{ChangedRate, RateStage};

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
    /// So many messages per nanosecond from `begins` until `staged_from`, and from then on by stages, but for what events make of
    /// it. The first message is due at the count `place`.
    pub(crate) fn new(
        rate: f64,
        stages: &[RateStage],
        (begins, staged_from): (Instant, Instant),
        place: f64,
        changes: &[(Instant, Option<ChangedRate>)],
    ) -> Rates {
        let per_ns = |interval: Option<u64>| interval.map_or(0.0, |ns| 1.0 / ns as f64);
        let first = (staged_from.since(begins), rate, rate);
        let staged = stages
            .iter()
            .map(|stage| (stage.length, per_ns(stage.from_interval_ns), per_ns(stage.to_interval_ns)));
        let (mut at, mut last) = (begins, rate);
        let mut pieces = Vec::with_capacity(stages.len() + 2);
        for (length, from, to) in std::iter::once(first).chain(staged) {
            pieces.push(Piece { begins: at, length: Some(length), from, to, before: 0.0 });
            (at, last) = (at + length, to);
        }
        pieces.push(Piece { begins: at, length: None, from: last, to: last, before: 0.0 });
        if !changes.is_empty() {
            pieces = changed(&pieces, changes);
        }
        let mut before = 0.0;
        for piece in &mut pieces {
            piece.before = before;
            before += piece.messages().unwrap_or_default();
        }
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

/// The same pieces with other rates from each change on; with their own where it says `None`. Changes are in order, and the
/// last one of an instant counts.
fn changed(own: &[Piece], changes: &[(Instant, Option<ChangedRate>)]) -> Vec<Piece> {
    let per_ns = |rate: &ChangedRate| rate.interval_ns.map_or(0.0, |ns| 1.0 / ns as f64);
    let mut pieces = Vec::with_capacity(own.len() + changes.len());
    let begins = [(own[0].begins, None)];
    let mut spans = begins.iter().chain(changes).peekable();
    let mut place = 0;
    while let Some((from, rate)) = spans.next() {
        let until = spans.peek().map(|(at, _)| *at);
        if until == Some(*from) {
            continue;
        }
        if let Some(rate) = rate.as_ref().map(per_ns) {
            let length = until.map(|until| until.since(*from));
            pieces.push(Piece { begins: *from, length, from: rate, to: rate, before: 0.0 });
            continue;
        }
        while own[place].ends().is_some_and(|ends| ends <= *from) {
            place += 1;
        }
        let within = own[place..].iter().take_while(|piece| until.is_none_or(|until| piece.begins < until));
        pieces.extend(within.map(|piece| piece.cut(*from, until)));
    }
    pieces
}

impl Piece {
    /// What is due in it; `None` of the last one.
    fn messages(&self) -> Option<f64> {
        self.length.map(|length| (self.from + self.to) / 2.0 * length.as_ns() as f64)
    }

    fn is_over_before(&self, count: f64) -> bool {
        self.messages().is_some_and(|messages| count - self.before > messages)
    }

    fn ends(&self) -> Option<Instant> {
        self.length.map(|length| self.begins + length)
    }

    /// The part of it between two instants.
    fn cut(&self, from: Instant, until: Option<Instant>) -> Piece {
        let begins = self.begins.max(from);
        let ends = [self.ends(), until].into_iter().flatten().min();
        let rate = |at: Instant| match self.length {
            Some(length) if !length.is_zero() => {
                let share = at.since(self.begins).as_ns() as f64 / length.as_ns() as f64;
                self.from + (self.to - self.from) * share
            }
            _ => self.from,
        };
        let to = ends.map_or(self.to, rate);
        Piece { begins, length: ends.map(|ends| ends.since(begins)), from: rate(begins), to, before: 0.0 }
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
