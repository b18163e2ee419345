//! What a plan lets happen in the course of a run, in the order of time: which is due, and when the next one is.

use mqttlab_units::{Duration, Instant};

/// Things with their times since publishing began.
pub(crate) struct DueList<T> {
    all: Vec<(Duration, T)>,
    /// How many have been taken.
    taken: usize,
}

impl<T> DueList<T> {
    /// All of them, in the order of time.
    pub(crate) fn new(all: impl IntoIterator<Item = (Duration, T)>) -> DueList<T> {
        DueList { all: all.into_iter().collect(), taken: 0 }
    }

    /// When the next one is due, once it is known when publishing begins.
    pub(crate) fn next_at(&self, publish_from: Option<Instant>) -> Option<Instant> {
        let (at, _) = self.all.get(self.taken)?;
        Some(publish_from? + *at)
    }

    /// Takes the next one, if it is due by now.
    pub(crate) fn take_due(&mut self, publish_from: Option<Instant>, now: Instant) -> Option<&T> {
        self.next_at(publish_from).filter(|at| *at <= now)?;
        self.taken += 1;
        Some(&self.all[self.taken - 1].1)
    }

    /// How many have been taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_taken_once_in_its_time_after_publishing_has_begun() {
        let [one, two] = [1, 2].map(Duration::from_ms);
        let at = |ms| Instant::ZERO + Duration::from_ms(ms);
        let mut list = DueList::new([(one, 'a'), (one, 'b'), (two, 'c')]);
        assert_eq!((list.next_at(None), list.take_due(None, at(9))), (None, None));
        let from = Some(at(10));
        assert_eq!((list.next_at(from), list.take_due(from, at(10))), (Some(at(11)), None));
        assert_eq!(list.take_due(from, at(11)), Some(&'a'));
        assert_eq!(list.take_due(from, at(11)), Some(&'b'));
        assert_eq!((list.next_at(from), list.taken()), (Some(at(12)), 2));
        assert_eq!(list.take_due(from, at(11)), None);
        assert_eq!(list.take_due(from, at(20)), Some(&'c'));
        assert_eq!((list.next_at(from), list.taken()), (None, 3));
    }
}
