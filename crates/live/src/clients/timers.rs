//! When each client of a worker wants to be looked at next.
//!
//! A heap with at most one valid entry for each client. A deadline that moves away leaves its entry: the client is
//! looked at too early, does nothing, and says anew. So a keep-alive that every packet postpones costs nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use mqttlab_units::Instant;

pub(super) struct ClientTimers {
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
    /// The instant of each client's valid entry.
    earliest: Vec<Option<Instant>>,
}

impl ClientTimers {
    /// For clients numbered from 0 to below `clients`.
    pub(super) fn new(clients: usize) -> ClientTimers {
        ClientTimers { heap: BinaryHeap::with_capacity(2 * clients), earliest: vec![None; clients] }
    }

    /// Makes sure that `client` is looked at no later than `at`.
    pub(super) fn no_later_than(&mut self, client: u32, at: Instant) {
        let earliest = &mut self.earliest[client as usize];
        if earliest.is_none_or(|earliest| at < earliest) {
            *earliest = Some(at);
            self.heap.push(Reverse((at, client)));
        }
    }

    /// The next entry's instant. It may be one that no longer matters.
    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the next client that wants to be looked at by `now`.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        while self.next().is_some_and(|at| at <= now) {
            let Reverse((at, client)) = self.heap.pop().expect("it was just seen");
            if self.earliest[client as usize] == Some(at) {
                self.earliest[client as usize] = None;
                return Some(client);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_come_in_order_of_their_deadlines_and_once_each() {
        let at = Instant::from_ns;
        let mut timers = ClientTimers::new(3);
        timers.no_later_than(0, at(30));
        timers.no_later_than(1, at(20));
        timers.no_later_than(0, at(10));
        timers.no_later_than(0, at(40));
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(
            (timers.pop_due(at(25)), timers.pop_due(at(25)), timers.pop_due(at(25))),
            (Some(0), Some(1), None)
        );
        assert_eq!(timers.pop_due(at(100)), None);
        assert_eq!(timers.next(), None);
    }
}
