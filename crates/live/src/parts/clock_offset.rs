//! How far two machines' clocks are apart, from questions and answers between them (NTP, RFC 5905 §8).
//!
//! ```text
//!   asks      sent ─────┐                ┌──► back        by its own clock
//!   answers             └─► received ─ answered           by the other's
//! ```
//!
//! Neither way takes less than no time, so that the offset lies within half of the round trip around its estimate, however
//! unequal the two ways are. Of many rounds the one with the shortest round trip is the best.
//!
//! What it does not model: clocks that run at another rate within one exchange, which takes a fraction of a second.

use serde::{Deserialize, Serialize};

/// One question and its answer: what the clocks said, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockExchange {
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) answered: u64,
    pub(super) back: u64,
}

/// How far the other clock is ahead of one's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClockOffset {
    /// The other clock less one's own.
    pub(super) offset_ns: i64,
    /// How far the truth may be from it, either way.
    pub(super) bound_ns: u64,
    /// Questions that were answered.
    pub(super) rounds: u32,
    /// When it was found, by one's own clock.
    pub(super) own_ns: u64,
}

impl ClockOffset {
    /// The best that these rounds tell; `None` without any.
    pub(super) fn of(rounds: &[ClockExchange]) -> Option<ClockOffset> {
        let best = rounds.iter().min_by_key(|round| round.round_trip())?;
        let ahead = |other: u64, own: u64| i128::from(other) - i128::from(own);
        // The middle of what is possible: it was received after it was sent, and came back after it was answered.
        let twice = ahead(best.received, best.sent) + ahead(best.answered, best.back);
        Some(ClockOffset {
            offset_ns: (twice.div_euclid(2)) as i64,
            bound_ns: best.round_trip().div_ceil(2),
            rounds: rounds.len() as u32,
            own_ns: best.back,
        })
    }
}

impl ClockExchange {
    /// Without the time that the other side took to answer.
    fn round_trip(&self) -> u64 {
        self.back.saturating_sub(self.sent).saturating_sub(self.answered.saturating_sub(self.received))
    }
}

/// How a clock's offset went on between two exchanges, taken to have changed evenly.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockDrift {
    began: ClockOffset,
    ended: ClockOffset,
}

impl ClockDrift {
    pub(super) fn between(began: ClockOffset, ended: ClockOffset) -> ClockDrift {
        ClockDrift { began, ended }
    }

    /// How much the offset grew.
    pub(super) fn grown_ns(&self) -> i64 {
        self.ended.offset_ns - self.began.offset_ns
    }

    /// How much the offset had grown when the clock said so.
    pub(super) fn at(&self, own_ns: i64) -> i64 {
        let length = i128::from(self.ended.own_ns) - i128::from(self.began.own_ns);
        if length <= 0 {
            return 0;
        }
        let passed = (i128::from(own_ns) - i128::from(self.began.own_ns)).clamp(0, length);
        (i128::from(self.grown_ns()) * passed / length) as i64
    }

    /// How far times may be off that were corrected by it.
    pub(super) fn bound_ns(&self) -> u64 {
        self.began.bound_ns.max(self.ended.bound_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round over ways that take so long, between clocks that are `offset` apart.
    fn round(sent: u64, offset: i64, there: u64, back: u64) -> ClockExchange {
        let received = (sent + there).saturating_add_signed(offset);
        let answered = received + 50;
        ClockExchange { sent, received, answered, back: sent + there + 50 + back }
    }

    #[test]
    fn the_offset_lies_within_its_bound_however_unequal_the_ways_are() {
        for offset in [0, 7_000_000_000_000, -900_000_000] {
            for (there, back) in [(10, 10), (0, 30_000), (30_000, 0), (1_000, 3)] {
                let found = ClockOffset::of(&[round(1_000_000_000, offset, there, back)]).unwrap();
                assert!(found.offset_ns.abs_diff(offset) <= found.bound_ns, "{found:?} of {offset}");
                assert_eq!(found.bound_ns, (there + back).div_ceil(2), "what the answer took is not in it");
            }
        }
    }

    #[test]
    fn the_shortest_round_trip_decides() {
        let rounds =
            [round(1_000, 500, 90_000, 10), round(200_000, 500, 20, 20), round(300_000, 500, 10, 70_000)];
        let found = ClockOffset::of(&rounds).unwrap();
        assert_eq!((found.offset_ns, found.bound_ns, found.rounds), (500, 20, 3));
        assert_eq!(ClockOffset::of(&[]), None);
    }

    #[test]
    fn a_clock_that_drifts_is_corrected_between_the_exchanges_and_not_beyond() {
        let at = |own_ns, offset_ns| ClockOffset { offset_ns, bound_ns: 5, rounds: 1, own_ns };
        let drift = ClockDrift::between(at(1_000, 100), at(11_000, 140));
        let grown: Vec<i64> = [-5, 1_000, 6_000, 11_000, 99_000].map(|ns| drift.at(ns)).into();
        assert_eq!(grown, [0, 0, 20, 40, 40]);
        assert_eq!(ClockDrift::between(at(5, 1), at(5, 3)).at(7), 0, "no time has passed");
    }
}
