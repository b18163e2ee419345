//! The clock, and what is due when. Equal times come in the order in which they were added, so that a run is the same
//! every time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use mqttlab_units::Instant;

/// The time that it is, and a queue of things that are due.
pub(crate) struct EventQueue<T> {
    now: Instant,
    heap: BinaryHeap<Reverse<QueuedEvent<T>>>,
    added: u64,
}

struct QueuedEvent<T> {
    at: Instant,
    added: u64,
    what: T,
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        EventQueue { now: Instant::ZERO, heap: BinaryHeap::new(), added: 0 }
    }
}

impl<T> EventQueue<T> {
    /// The time.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// Something is due then.
    pub(crate) fn add(&mut self, at: Instant, what: T) {
        self.heap.push(Reverse(QueuedEvent { at, added: self.added, what }));
        self.added += 1;
    }

    /// When the next thing is due.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// The next thing, whenever it is due: then it is now.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let Reverse(entry) = self.heap.pop()?;
        self.advance(entry.at);
        Some(entry.what)
    }

    /// Something that is not on the agenda happens.
    pub(crate) fn advance(&mut self, at: Instant) {
        assert!(at >= self.now, "time ran back from {} to {at}", self.now);
        self.now = at;
    }
}

impl<T> Ord for QueuedEvent<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.added).cmp(&(other.at, other.added))
    }
}

impl<T> PartialOrd for QueuedEvent<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for QueuedEvent<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for QueuedEvent<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_the_order_in_which_they_were_added() {
        let mut agenda = EventQueue::default();
        for (at, what) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd')] {
            agenda.add(Instant::from_ns(at), what);
        }
        assert_eq!(agenda.next_deadline(), Some(Instant::from_ns(3)));
        let order: String = std::iter::from_fn(|| agenda.pop()).collect();
        assert_eq!((order.as_str(), agenda.now()), ("bdac", Instant::from_ns(5)));
    }

    #[test]
    #[should_panic(expected = "time ran back")]
    fn time_never_runs_back() {
        let mut agenda = EventQueue::<()>::default();
        agenda.advance(Instant::from_ns(2));
        agenda.add(Instant::from_ns(1), ());
        agenda.pop();
    }
}
