//! Which messages of a publisher a subscriber has had before.
//!
//! A window of the last 128 numbers, because a repeated message follows close behind its first copy: it was in
//! flight when the connection broke. What is older than the window is a repetition only if its DUP flag says so.
//! The recording, which has every delivery, decides with certainty; this is for the figures of a run that goes on, and
//! for when it has settled.
//!
//! A stored message that comes again is told from a fresh one by its RETAIN flag, which counts as a DUP flag here.

/// The messages of one publisher that have arrived at one subscriber.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArrivedMessages {
    /// One past the highest number seen.
    end: u64,
    /// Bit `i` stands for the number `end - 1 - i`.
    seen: u128,
}

impl ArrivedMessages {
    /// Notes a message and says whether it is the first copy.
    pub fn note(&mut self, sequence: u32, dup: bool) -> bool {
        let sequence = u64::from(sequence);
        if sequence >= self.end {
            let ahead = sequence + 1 - self.end;
            self.seen = if ahead < 128 { self.seen << ahead | 1 } else { 1 };
            self.end = sequence + 1;
            return true;
        }
        let behind = self.end - 1 - sequence;
        if behind >= 128 {
            return !dup;
        }
        let fresh = self.seen >> behind & 1 == 0;
        self.seen |= 1 << behind;
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_is_told_from_a_latecomer() {
        let mut arrived = ArrivedMessages::default();
        for (sequence, first) in
            [(0, true), (0, false), (5, true), (3, true), (3, false), (5, false), (4, true)]
        {
            assert_eq!(arrived.note(sequence, false), first, "{sequence}");
        }
    }

    #[test]
    fn what_is_older_than_the_window_is_judged_by_its_flag() {
        let mut arrived = ArrivedMessages::default();
        assert!(arrived.note(1000, false) && arrived.note(873, false) && !arrived.note(873, false));
        assert!(arrived.note(872, false) && !arrived.note(872, true));
        assert!(arrived.note(u32::MAX, false));
    }
}
