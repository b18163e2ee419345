//! How late a client is: with the instant at which it should act, not with what acting takes.
//!
//! Messages that are due in one instant are handed over one after another, and the thousandth waits for those before
//! it on any machine. That wait is the burst's own. It is in the message's latency, which counts from the intended
//! time, and says nothing of whether the client came in time.

use mqttlab_units::{Duration, Instant};

/// A client's punctuality, message by message.
#[derive(Default)]
pub(crate) struct Punctuality {
    last: Option<Handed>,
}

/// A message that was handed over.
#[derive(Clone, Copy)]
struct Handed {
    intended: Instant,
    at: Instant,
    late: Duration,
}

impl Punctuality {
    /// A message is handed over at `now`, in the order of the schedule: how late the client is with it, without what
    /// handing over messages of the same intended time took. Never more than from `intended` to `now`.
    pub(crate) fn handed(&mut self, intended: Instant, now: Instant) -> Duration {
        let late = match self.last.filter(|last| last.intended == intended) {
            None => now.since(intended),
            Some(last) => {
                let step = now.since(last.at);
                // Longer than a message takes: others had their turn, or the thread had no processor.
                if step < MESSAGE_TAKES { last.late } else { last.late + step }
            }
        };
        self.last = Some(Handed { intended, at: now, late });
        late
    }
}

/// Handing over one message takes one to ten microseconds; what takes more than this is lateness.
const MESSAGE_TAKES: Duration = Duration::from_us(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Instant {
        Instant::from_ns(us * 1000)
    }

    /// How late a client is with messages, in microseconds, of pairs of intended and handed over.
    fn late(messages: &[(u64, u64)]) -> Vec<u64> {
        let mut punctuality = Punctuality::default();
        messages.iter().map(|&(due, at)| punctuality.handed(us(due), us(at)).as_ns() / 1000).collect()
    }

    #[test]
    fn what_a_burst_takes_is_no_lateness() {
        let burst: Vec<_> = (0..1000).map(|place| (5_000, 5_030 + place * 2)).collect();
        assert_eq!(late(&burst), vec![30; 1000]);
    }

    #[test]
    fn a_burst_that_begins_late_is_late_as_a_whole() {
        assert_eq!(late(&[(0, 8_000), (0, 8_002), (0, 8_004)]), [8_000; 3]);
    }

    #[test]
    fn a_pause_within_a_burst_is_lateness_of_all_that_follows() {
        assert_eq!(late(&[(0, 10), (0, 12), (0, 712), (0, 714)]), [10, 10, 710, 710]);
    }

    #[test]
    fn a_client_that_is_offered_more_than_it_can_hand_over_is_late() {
        // Every microsecond one that takes two: each has an intended time of its own.
        let rate: Vec<_> = (0..1000).map(|place| (place, place * 2)).collect();
        assert_eq!(late(&rate)[999], 999);
        // So is a burst that is due while the one before it is still being handed over.
        let bursts: Vec<_> = (0..1000).map(|place| (place / 500 * 400, place * 2)).collect();
        assert_eq!((late(&bursts)[499], late(&bursts)[500], late(&bursts)[999]), (0, 600, 600));
    }
}
