//! What is due when. Equal times come in the order in which they were made, so that a run is the same every time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use mqttlab_units::Instant;

/// A queue of things that are due.
pub(crate) struct Agenda<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    made: u64,
}

struct Entry<T> {
    at: Instant,
    made: u64,
    what: T,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Agenda { heap: BinaryHeap::new(), made: 0 }
    }
}

impl<T> Agenda<T> {
    /// Something is due then.
    pub(crate) fn add(&mut self, at: Instant, what: T) {
        self.heap.push(Reverse(Entry { at, made: self.made, what }));
        self.made += 1;
    }

    /// When the next thing is due.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// The next thing, whenever it is due.
    pub(crate) fn take(&mut self) -> Option<(Instant, T)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.made).cmp(&(other.at, other.made))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_the_order_in_which_they_were_made() {
        let mut agenda = Agenda::default();
        for (at, what) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd')] {
            agenda.add(Instant::from_ns(at), what);
        }
        assert_eq!(agenda.next_deadline(), Some(Instant::from_ns(3)));
        let order: String = std::iter::from_fn(|| agenda.take()).map(|(_, what)| what).collect();
        assert_eq!(order, "bdac");
    }
}
