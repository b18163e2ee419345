//! Equal contents told apart by their order, where that is certain.
//!
//! A receiver gets the messages of one publisher, topic and QoS in their order (MQTT 5 §4.6). So its next delivery of a content
//! is the next message with it, as long as none is missing. Whether one is missing shows later:
//!
//! ```text
//!   published      A   A   A          A   A
//!   delivered    ──A─────A───A──────────A─────── end     window: from the first message that is owed until none is
//!                  └ even: certain ┘    └ one is owed: ambiguous, both
//! ```
//!
//! A *window* begins with a message that is owed while no other one is, and ends when as many have been delivered as were
//! published. Then each delivery is certain. A window that does not end is ambiguous from its first delivery on: which of its
//! messages did not arrive cannot be told, and so neither can the others' latencies. So is a window in which messages of several
//! publishers or QoS were owed at once, whose order MQTT does not promise, and one after which second copies came.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The deliveries of a window share what is known of it.
#[derive(Clone, Debug)]
pub struct OrderWindow(Arc<AtomicU8>);

impl OrderWindow {
    fn new() -> OrderWindow {
        OrderWindow(Arc::new(AtomicU8::new(OPEN)))
    }

    /// Whether what comes may still decide it.
    pub fn is_undecided(&self) -> bool {
        matches!(self.get(), OPEN | EVEN)
    }

    /// Whether it is certain which delivery is of which message, by what has come so far.
    pub fn is_certain(&self) -> bool {
        matches!(self.get(), EVEN | CERTAIN)
    }

    fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, state: u8) {
        self.0.store(state, Ordering::Relaxed);
    }

    fn change(&self, from: u8, to: u8) {
        if self.get() == from {
            self.set(to);
        }
    }
}

/// What one receiver has had of the messages with one content.
#[derive(Default)]
pub struct ReceiverOrder {
    /// The place of its next message.
    pub next: u64,
    window: Option<OrderWindow>,
    /// Whether messages of the window are owed.
    is_open: bool,
    /// Messages of the window that have come.
    taken: u64,
    /// Second copies since it began.
    copies: u64,
    /// How many second copies of each message its subscriptions bring, if they bring any.
    copies_each: u64,
    /// How many of the messages that were published again have come again.
    pub repeats: u64,
}

impl ReceiverOrder {
    /// The next delivery is of the message at this place; `owed` are owed from there on. `is_mixed`: their order is not promised.
    /// Says what it depends on whether that is so; `None`: it is certain.
    pub fn take(&mut self, place: u64, owed: u64, is_mixed: bool) -> Option<OrderWindow> {
        if self.is_open && place > self.next {
            // Messages of the window were passed over.
            self.doubt();
            self.is_open = false;
        }
        let mut in_doubt = is_mixed;
        if !self.is_open {
            if let Some(window) = self.window.take() {
                window.change(EVEN, CERTAIN);
            }
            // What comes may be a second copy that is due.
            in_doubt |= self.copies < self.copies_each * self.taken;
            self.window = (owed > 1 || in_doubt).then(OrderWindow::new);
            (self.taken, self.copies) = (0, 0);
        }
        if in_doubt {
            self.doubt();
        }
        (self.next, self.taken, self.is_open) = (place + 1, self.taken + 1, owed > 1);
        if let Some(window) = self.window.as_ref().filter(|_| !self.is_open) {
            window.change(OPEN, EVEN);
        }
        self.window.clone()
    }

    /// A delivery came while no message is owed: a second copy. `each`: how many of every message the receiver's subscriptions
    /// may bring.
    pub fn copy(&mut self, each: u64) -> Option<OrderWindow> {
        self.copies += 1;
        self.copies_each = each;
        // The copies may have come between the messages.
        if self.taken > 1 {
            self.doubt();
        }
        self.window.clone()
    }

    fn doubt(&self) {
        if let Some(window) = &self.window {
            window.set(AMBIGUOUS);
        }
    }
}

/// Messages are owed.
const OPEN: u8 = 0;
/// As many came as were published; second copies may follow.
const EVEN: u8 = 1;
/// None followed.
const CERTAIN: u8 = 2;
const AMBIGUOUS: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn certain(window: &Option<OrderWindow>) -> bool {
        window.as_ref().is_none_or(OrderWindow::is_certain)
    }

    #[test]
    fn a_window_is_certain_once_as_many_came_as_were_published() {
        let mut order = ReceiverOrder::default();
        assert!(order.take(0, 1, false).is_none(), "one alone was owed");
        let first = order.take(1, 2, false);
        assert!(!certain(&first));
        let second = order.take(2, 1, false);
        assert!(certain(&first) && certain(&second) && first.unwrap().is_undecided());
        order.take(3, 1, false);
        assert!(!second.unwrap().is_undecided(), "no second copy came");
    }

    #[test]
    fn a_window_in_which_one_stays_owed_is_ambiguous_until_it_was_passed_over() {
        let mut order = ReceiverOrder::default();
        let shifted: Vec<_> = (0..5).map(|place| order.take(place, 2, false)).collect();
        assert!(shifted.iter().all(|window| !certain(window)));
        assert!(order.take(8, 1, false).is_none(), "another content has shown what is lost");
        assert!(shifted.iter().all(|window| !window.as_ref().unwrap().is_undecided()));
    }

    #[test]
    fn second_copies_leave_single_messages_certain_and_several_not() {
        let mut order = ReceiverOrder::default();
        assert!(order.take(0, 1, false).is_none() && order.copy(1).is_none());
        let both = [order.take(1, 2, false), order.take(2, 1, false)];
        order.copy(1);
        assert!(!both.iter().any(certain));
        order.copy(1);
        assert!(order.take(3, 1, false).is_none(), "as many copies came as messages");
        assert!(!certain(&order.take(4, 1, false)), "it may be the second copy of the last one");
    }

    #[test]
    fn the_order_of_several_publishers_is_not_promised() {
        let mut order = ReceiverOrder::default();
        let both = [order.take(0, 2, true), order.take(1, 1, false)];
        assert!(!both.iter().any(certain));
    }
}
