//! Where a delivery with RETAIN came from: the broker's store, or its publisher by way of a live subscription.
//!
//! ```text
//!                         SUBSCRIBE            SUBACK
//!   at the broker: stored ────┤ not decided ├──────── live; again: stored
//! ```
//!
//! RETAIN tells a copy of the store from a live one ([MQTT-3.3.1-12]), unless a subscription asks for Retain As Published
//! ([MQTT-3.3.1-13]): then both have it. A copy of the store is sent because of a SUBSCRIBE. It cannot be one if the message was sent
//! after SUBACK. It cannot be the live one if the broker had the message before the SUBSCRIBE, or if a copy came before.
//! Where both may be, nobody can tell.
//!
//! What it does not know: which of a client's filters a SUBSCRIBE was for; any may bring a copy of any topic.

use std::collections::HashMap;

use mqttlab_rows::{Event, EventKind, Layout, Received, Sent};
use mqttlab_units::Instant;

/// Where a delivery came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyOrigin {
    Live,
    Stored,
    NotDecided,
}

impl CopyOrigin {
    /// What RETAIN says where no subscription asks for Retain As Published.
    pub(crate) fn of_flag(retained: bool) -> CopyOrigin {
        if retained { CopyOrigin::Stored } else { CopyOrigin::Live }
    }
}

/// When the clients that ask for Retain As Published subscribed.
#[derive(Clone, Debug, Default)]
pub(crate) struct SubscribeTimes(HashMap<u32, ClientTimes>);

#[derive(Clone, Debug, Default)]
struct ClientTimes {
    /// Whether a copy of the store may come: not to shared subscriptions, nor where none is ever asked for.
    is_sent_stored: bool,
    subscribed: Vec<SubscribeTime>,
    /// Whether the next SUBSCRIBE is the first of its session.
    begins: bool,
}

#[derive(Clone, Copy, Debug)]
struct SubscribeTime {
    asked: Instant,
    answered: Option<Instant>,
    /// Whether it is the first of its session.
    begins: bool,
}

impl SubscribeTimes {
    pub(crate) fn of(layout: &Layout) -> SubscribeTimes {
        let row = |row: &mqttlab_rows::AsPublished| {
            let times =
                ClientTimes { is_sent_stored: row.is_sent_stored, begins: true, ..Default::default() };
            (row.client, times)
        };
        SubscribeTimes(layout.as_published.iter().map(row).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes an event of a client's into account. They come in order.
    pub(crate) fn note(&mut self, event: &Event, detail: &[u8]) {
        let Some(times) = event.client.and_then(|client| self.0.get_mut(&client)) else { return };
        match event.kind {
            EventKind::Connack => times.begins |= detail != SESSION_PRESENT,
            EventKind::Subscribe => {
                let begins = std::mem::take(&mut times.begins);
                times.subscribed.push(SubscribeTime { asked: event.at, answered: None, begins });
            }
            EventKind::Suback => {
                if let Some(last) = times.subscribed.last_mut() {
                    last.answered = last.answered.or(Some(event.at));
                }
            }
            _ => {}
        }
    }

    /// Where a copy came from. `precedes`: whether the broker had the message before an instant. `came`: whether a copy came before.
    pub(crate) fn origin(
        &self,
        copy: &Received,
        sent: Option<&Sent>,
        came: bool,
        precedes: impl Fn(Instant) -> bool,
    ) -> CopyOrigin {
        let Some(times) = self.0.get(&copy.subscriber).filter(|_| copy.retained) else {
            return CopyOrigin::of_flag(copy.retained);
        };
        if !times.is_sent_stored {
            return CopyOrigin::Live;
        }
        let before = times.subscribed.partition_point(|one| one.asked <= copy.received);
        let before = &times.subscribed[..before];
        // What an earlier session was owed is gone with it.
        let session = before.iter().rposition(|one| one.begins).map_or(before, |first| &before[first..]);
        let (Some(sent), Some(first)) = (sent, session.first()) else { return CopyOrigin::NotDecided };
        let may_be_stored =
            session.iter().any(|one| one.answered.is_none_or(|answered| sent.sent < answered));
        // A repetition may be one of the live copy.
        let may_be_live = (copy.dup || !came) && !precedes(first.asked);
        match (may_be_stored, may_be_live) {
            (true, true) => CopyOrigin::NotDecided,
            (true, false) => CopyOrigin::Stored,
            // Two filters of one client may bring two live copies.
            (false, _) => CopyOrigin::Live,
        }
    }
}

/// What a CONNACK's event says when the broker still had the session.
pub(crate) const SESSION_PRESENT: &[u8] = b"session present";

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_rows::{AsPublished, Identified};

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    fn copy(subscriber: u32, dup: bool, ns: u64) -> Received {
        Received {
            subscriber,
            publisher: Some(0),
            sequence: 0,
            qos: 1,
            dup,
            retained: true,
            payload_bytes: 9,
            received: at(ns),
            identified: Identified::Payload,
        }
    }

    fn sent(ns: u64) -> Sent {
        Sent {
            publisher: 0,
            sequence: 0,
            topic: 0,
            qos: 1,
            retain: true,
            payload_bytes: 9,
            intended: at(ns),
            sent: at(ns),
            written: None,
            publication: None,
        }
    }

    #[test]
    fn a_copy_is_of_the_store_only_where_it_cannot_be_the_live_one() {
        let row = |client, is_sent_stored| AsPublished { client, is_sent_stored };
        let layout = Layout { as_published: vec![row(1, true), row(2, false)], ..Layout::default() };
        let mut times = SubscribeTimes::of(&layout);
        for (ns, kind, detail) in [
            (50, EventKind::Connack, ""),
            (100, EventKind::Subscribe, ""),
            (110, EventKind::Suback, ""),
            (150, EventKind::Connack, "session present"),
            (200, EventKind::Subscribe, "a"),
            (210, EventKind::Suback, "a"),
            (250, EventKind::Connack, ""),
            (300, EventKind::Subscribe, ""),
            (310, EventKind::Suback, ""),
        ] {
            times.note(&Event { at: at(ns), kind, client: Some(1), took: None }, detail.as_bytes());
        }
        let of = |from, until: u64, came, came_at| {
            times.origin(&copy(1, false, came_at), Some(&sent(from)), came, |asked| at(until) <= asked)
        };
        assert_eq!(of(10, 20, false, 111), CopyOrigin::Stored, "it was there before the subscription");
        assert_eq!(of(10, 105, false, 111), CopyOrigin::NotDecided, "it may have come after the SUBSCRIBE");
        assert_eq!(of(105, 106, false, 111), CopyOrigin::NotDecided);
        assert_eq!(of(115, 120, false, 130), CopyOrigin::Live, "it was sent after the SUBACK");
        assert_eq!(of(115, 120, true, 220), CopyOrigin::Stored, "the live copy has come");
        assert_eq!(of(115, 120, false, 220), CopyOrigin::NotDecided, "the live copy may have been late");
        assert_eq!(of(115, 120, false, 320), CopyOrigin::Stored, "the session was another");
        assert_eq!(of(320, 330, false, 340), CopyOrigin::Live);
        assert_eq!(of(320, 330, true, 350), CopyOrigin::Live, "nothing could bring a copy of the store");
        let again = times.origin(&copy(1, true, 220), Some(&sent(115)), true, |_| false);
        assert_eq!(again, CopyOrigin::NotDecided, "either may be repeated");
        let origin =
            |subscriber| times.origin(&copy(subscriber, false, 111), Some(&sent(10)), false, |_| true);
        assert_eq!(origin(2), CopyOrigin::Live, "nothing of the store is sent to it");
        assert_eq!(origin(3), CopyOrigin::Stored, "it does not ask for Retain As Published");
        let plain = Received { retained: false, ..copy(1, false, 111) };
        assert_eq!(times.origin(&plain, Some(&sent(10)), false, |_| true), CopyOrigin::Live);
    }
}
