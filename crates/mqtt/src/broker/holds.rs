//! How often each message is held, so that the shell can be told when nobody does any more.
//!
//! A table with open addressing: a map of the standard library that keeps an order allocates as messages come and go,
//! and one that does not is in no order that two runs share.

/// Counts by message.
#[derive(Clone, Debug, Default)]
pub(super) struct Holds {
    /// A message and its count, which is 0 in a vacant slot. Their number is a power of two, and at most three in
    /// four are taken.
    slots: Vec<(u64, u32)>,
    taken: usize,
}

impl Holds {
    /// Holds a message so many times more.
    pub(super) fn hold(&mut self, message: u64, times: u32) {
        if times == 0 {
            return;
        }
        if self.taken * 4 >= self.slots.len() * 3 {
            self.grow();
        }
        let place = self.find(message);
        let slot = &mut self.slots[place];
        self.taken += usize::from(slot.1 == 0);
        *slot = (message, slot.1 + times);
    }

    /// Holds a message once less: whether that was the last time.
    ///
    /// # Panics
    /// When it is not held.
    pub(super) fn let_go(&mut self, message: u64) -> bool {
        let place = if self.slots.is_empty() { 0 } else { self.find(message) };
        let slot = self.slots.get_mut(place).filter(|slot| slot.1 > 0).expect("only what is held is let go");
        slot.1 -= 1;
        let last = slot.1 == 0;
        if last {
            self.taken -= 1;
            self.close_up(place);
        }
        last
    }

    /// Messages that are held.
    pub(super) fn len(&self) -> usize {
        self.taken
    }

    /// The slot of a message, or the vacant one where it belongs.
    fn find(&self, message: u64) -> usize {
        let mut place = self.home(message);
        while self.slots[place].1 > 0 && self.slots[place].0 != message {
            place = self.after(place);
        }
        place
    }

    /// Moves into a slot that has become vacant what would not be found behind it.
    fn close_up(&mut self, mut vacant: usize) {
        // A vacant slot ends every search, so that what was put behind it must move up.
        let mut place = self.after(vacant);
        while self.slots[place].1 > 0 {
            let home = self.home(self.slots[place].0);
            let mask = self.slots.len() - 1;
            // Not what has its home behind the vacant slot: a search for it begins there.
            if place.wrapping_sub(home) & mask >= place.wrapping_sub(vacant) & mask {
                self.slots.swap(vacant, place);
                vacant = place;
            }
            place = self.after(place);
        }
    }

    fn grow(&mut self) {
        let wider = vec![(0, 0); (self.slots.len() * 2).max(16)];
        for (message, count) in std::mem::replace(&mut self.slots, wider) {
            if count > 0 {
                let place = self.find(message);
                self.slots[place] = (message, count);
            }
        }
    }

    /// Where a message belongs: the leading bits of a product with 2^64 divided by the golden ratio, which spreads
    /// numbers that follow one another.
    fn home(&self, message: u64) -> usize {
        let bits = self.slots.len().trailing_zeros();
        (message.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
    }

    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_are_those_of_an_ordered_map(steps in proptest::collection::vec((0_u64..40, 0_u32..4), 0..400)) {
            let mut holds = Holds::default();
            let mut counts = BTreeMap::<u64, u32>::new();
            for (message, times) in steps {
                // Of numbers far apart, and of some that belong into the same slot.
                let message = message << (message % 3 * 20);
                if times > 0 {
                    holds.hold(message, times);
                    *counts.entry(message).or_default() += times;
                } else if let Some(count) = counts.get_mut(&message) {
                    *count -= 1;
                    let last = *count == 0;
                    counts.retain(|_, count| *count > 0);
                    prop_assert_eq!(holds.let_go(message), last);
                }
                prop_assert_eq!(holds.len(), counts.len());
            }
            for (message, count) in counts {
                for left in (0..count).rev() {
                    prop_assert_eq!(holds.let_go(message), left == 0);
                }
            }
            prop_assert_eq!(holds.len(), 0);
        }
    }
}
