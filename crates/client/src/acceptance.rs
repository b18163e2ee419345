//! What a client is to the other side: accepted, and subscribed.

use mqttlab_units::{Duration, Instant};

use crate::books::Books;

/// What the books count a client as.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(crate) enum Rank {
    Absent,
    Connected,
    Ready,
}

/// A client's rank, and its subscriptions, of which a session that is resumed still has those that were ever accepted.
pub(crate) struct Acceptance {
    rank: Rank,
    is_subscribed: bool,
    subscribe_sent: Instant,
}

impl Acceptance {
    pub(crate) fn new() -> Acceptance {
        Acceptance { rank: Rank::Absent, is_subscribed: false, subscribe_sent: Instant::ZERO }
    }

    /// What it is now.
    pub(crate) fn rank(&self) -> Rank {
        self.rank
    }

    /// The other side has accepted it. Whether it has to subscribe before it is ready: a session that is still there has
    /// its subscriptions (MQTT 5 §4.1).
    pub(crate) fn connected(&mut self, books: &mut Books, subscribes: bool, resumed: bool) -> bool {
        let has_to = subscribes && !(resumed && self.is_subscribed);
        self.change(books, if has_to { Rank::Connected } else { Rank::Ready });
        has_to
    }

    /// Its subscriptions are asked for.
    pub(crate) fn subscribes(&mut self, now: Instant) {
        self.subscribe_sent = now;
    }

    /// They were accepted; how long that took.
    pub(crate) fn subscribed(&mut self, books: &mut Books, now: Instant) -> Duration {
        self.is_subscribed = true;
        self.change(books, Rank::Ready);
        now.since(self.subscribe_sent)
    }

    /// Its connection is over; what it was before.
    pub(crate) fn lost(&mut self, books: &mut Books) -> Rank {
        self.change(books, Rank::Absent)
    }

    fn change(&mut self, books: &mut Books, after: Rank) -> Rank {
        let before = std::mem::replace(&mut self.rank, after);
        // A client that is ready is connected, too: each count has a rank from which on it counts.
        let change = |least: Rank| i32::from(after >= least) - i32::from(before >= least);
        books.connected += change(Rank::Connected);
        books.ready += change(Rank::Ready);
        before
    }
}
