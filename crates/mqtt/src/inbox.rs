//! QoS 2 messages on their way into one side of a session (§4.3.3): those whose PUBREL has not come.

use std::collections::VecDeque;

/// QoS 2 messages that have come and whose PUBREL has not: what comes again under these identifiers is a duplicate.
#[derive(Clone, Debug)]
pub struct Inbox<T = u64> {
    /// In the order of identifiers, which is nearly always that of their coming and going.
    unreleased: VecDeque<(u16, T)>,
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        Inbox { unreleased: VecDeque::new() }
    }
}

impl<T> Inbox<T> {
    /// A QoS 2 PUBLISH came: whether it is the first under its identifier. The token is kept with it.
    pub fn receive(&mut self, id: u16, token: T) -> bool {
        match self.unreleased.binary_search_by_key(&id, |(unreleased, _)| *unreleased) {
            Ok(_) => false,
            Err(gap) => {
                self.unreleased.insert(gap, (id, token));
                true
            }
        }
    }

    /// Whether a message under this identifier has come and is not released.
    pub fn has(&self, id: u16) -> bool {
        self.unreleased.binary_search_by_key(&id, |(unreleased, _)| *unreleased).is_ok()
    }

    /// PUBREL came: the identifier is free again. The token of its message, if there was one.
    pub fn release(&mut self, id: u16) -> Option<T> {
        let place = self.unreleased.binary_search_by_key(&id, |(unreleased, _)| *unreleased).ok()?;
        self.unreleased.remove(place).map(|(_, token)| token)
    }

    /// Forgets those of which this is so, and hands them out.
    pub fn take_if(&mut self, mut is_taken: impl FnMut(&T) -> bool) -> Vec<T> {
        let (taken, left) = self.unreleased.drain(..).partition(|(_, token)| is_taken(token));
        self.unreleased = left;
        let taken: VecDeque<(u16, T)> = taken;
        taken.into_iter().map(|(_, token)| token).collect()
    }

    /// The session is new.
    pub fn clear(&mut self) {
        self.unreleased.clear();
    }

    /// Forgets everything, and hands it out.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.unreleased.drain(..).map(|(_, token)| token)
    }

    /// Messages that have come and are not released.
    pub fn len(&self) -> usize {
        self.unreleased.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.unreleased.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inbox_knows_identifiers_in_any_order() {
        let mut inbox = Inbox::default();
        for id in [65_535, 1, 3, 2] {
            assert!(inbox.receive(id, u64::from(id)));
        }
        assert!(!inbox.receive(3, 9));
        assert_eq!((inbox.release(3), inbox.release(3), inbox.len()), (Some(3), None, 3));
        assert_eq!(inbox.drain().collect::<Vec<_>>(), [1, 2, 65_535]);
        assert!(inbox.is_empty());
    }
}
