//! Whether a client was subscribed to a topic when its broker had a message, where events change subscriptions.
//!
//! ```text
//!               UNSUBSCRIBE      UNSUBACK                       SUBSCRIBE       SUBACK
//!   should have it ───┤ not decided ├── should not have it ──────────┤ not decided ├── should have it
//! ```
//!
//! A message is at the broker some time after it was sent, and before it was acknowledged, before anybody received it, and before a
//! later one of its publisher was received. Where this time lies within one of the three, that one holds. Else nobody can tell.
//!
//! What it does not know: topics of copies that relays make.

use std::collections::HashMap;

use crate::connection_times::ConnectionTimes;
use crate::origin::SubscribeTimes;
use mqttlab_rows::{Event, EventKind, Layout};
use mqttlab_units::Instant;

/// What the subscriptions of a receiver say of a message that has not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    Expected,
    NotExpected,
    /// Its subscription was about to change.
    NotDecided,
}

/// When clients asked for the changes of their subscriptions, and when these were answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangedSubscriptions {
    /// By client, change by change.
    performed: HashMap<u32, Vec<PerformedChange>>,
    /// Of those who ask for Retain As Published, every SUBSCRIBE.
    pub(crate) times: SubscribeTimes,
    /// Every connection.
    pub(crate) connections: ConnectionTimes,
}

#[derive(Clone, Copy, Debug)]
struct PerformedChange {
    asked: Instant,
    answered: Option<Instant>,
}

impl ChangedSubscriptions {
    /// Before the first event.
    pub(crate) fn of_layout(layout: &Layout) -> ChangedSubscriptions {
        let (times, connections) = (SubscribeTimes::of(layout), ConnectionTimes::of(layout));
        ChangedSubscriptions { times, connections, ..ChangedSubscriptions::default() }
    }

    /// Takes an event of a client's into account. They come in order.
    pub(crate) fn note(&mut self, event: &Event, detail: &[u8]) {
        self.times.note(event, detail);
        self.connections.note(event, detail);
        let Some(client) = event.client.filter(|_| !detail.is_empty()) else { return };
        match event.kind {
            EventKind::Subscribe | EventKind::Unsubscribe => {
                let performed = self.performed.entry(client).or_default();
                // What is asked for again was not answered, and may have been done by then.
                if performed.last().is_none_or(|last| last.answered.is_some()) {
                    performed.push(PerformedChange { asked: event.at, answered: None });
                }
            }
            EventKind::Suback | EventKind::Unsuback => {
                if let Some(last) = self.performed.get_mut(&client).and_then(|performed| performed.last_mut())
                {
                    last.answered = last.answered.or(Some(event.at));
                }
            }
            _ => {}
        }
    }

    /// The changes of a receiver of the layout, as far as they were asked for.
    fn of(&self, client: u32, flips: &[u32]) -> Vec<PerformedChange> {
        let performed = self.performed.get(&client).map_or(&[][..], Vec::as_slice);
        flips.iter().map_while(|flip| performed.get(*flip as usize).copied()).collect()
    }
}

/// Whose subscriptions changed when, by topic and client.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceiverCoverage {
    of: HashMap<(u32, u32), CoverageSteps>,
    /// Of what they publish themselves, where No Local makes it otherwise.
    own: HashMap<(u32, u32), CoverageSteps>,
}

/// Whether it was subscribed before the first change, and the changes that made it otherwise.
type CoverageSteps = (bool, Vec<PerformedChange>);

impl ReceiverCoverage {
    pub(crate) fn new(layout: &Layout, changes: &ChangedSubscriptions) -> ReceiverCoverage {
        let entry = |row: &mqttlab_rows::ChangedReceiver| {
            ((row.topic, row.client), (row.at_first, changes.of(row.client, &row.flips)))
        };
        ReceiverCoverage {
            of: layout.changed_receivers.iter().map(entry).collect(),
            own: layout.own_receivers.iter().map(entry).collect(),
        }
    }

    /// Of a message of a topic at a client, which its broker had between two instants, or from the first one on.
    pub(crate) fn of(
        &self,
        topic: u32,
        client: u32,
        publisher: u32,
        from: Instant,
        until: Option<Instant>,
    ) -> Coverage {
        let own = self.own.get(&(topic, client)).filter(|_| client == publisher);
        let Some((at_first, changes)) = own.or_else(|| self.of.get(&(topic, client))) else {
            return Coverage::Expected;
        };
        let mut may_be = [false; 2];
        // Before the first change, and after each of them: could it have come then?
        for done in 0..=changes.len() {
            let begun =
                done.checked_sub(1).is_none_or(|last| until.is_none_or(|until| changes[last].asked <= until));
            let next = changes.get(done);
            let goes_on = next.is_none_or(|next| next.answered.is_none_or(|answered| from < answered));
            may_be[usize::from(at_first ^ (done % 2 == 1))] |= begun && goes_on;
        }
        match may_be {
            [_, false] => Coverage::NotExpected,
            [false, true] => Coverage::Expected,
            [true, true] => Coverage::NotDecided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    #[test]
    fn a_message_is_expected_while_its_receiver_is_subscribed_for_certain() {
        let mut changes = ChangedSubscriptions::default();
        for (ns, kind, detail) in [
            (5, EventKind::Suback, ""),
            (100, EventKind::Unsubscribe, "a"),
            (110, EventKind::Unsuback, "a"),
            (200, EventKind::Subscribe, "a"),
            (300, EventKind::Subscribe, "a"),
            (310, EventKind::Suback, "a"),
        ] {
            let event = Event { at: at(ns), kind, client: Some(7), took: None };
            changes.note(&event, detail.as_bytes());
        }
        let row =
            |topic, at_first| mqttlab_rows::ChangedReceiver { topic, client: 7, at_first, flips: vec![0, 1] };
        let never = mqttlab_rows::ChangedReceiver { topic: 1, client: 7, at_first: false, flips: vec![] };
        let layout = Layout {
            changed_receivers: vec![row(1, true), row(2, false)],
            own_receivers: vec![never],
            ..Layout::default()
        };
        let coverage = ReceiverCoverage::new(&layout, &changes);
        let of = |from, until: Option<u64>| coverage.of(1, 7, 3, at(from), until.map(at));
        assert_eq!(of(10, Some(20)), Coverage::Expected);
        assert_eq!(
            of(10, Some(105)),
            Coverage::NotDecided,
            "the broker may have had it after the UNSUBSCRIBE"
        );
        assert_eq!(of(105, Some(106)), Coverage::NotDecided);
        assert_eq!(of(120, Some(190)), Coverage::NotExpected);
        assert_eq!(of(120, None), Coverage::NotDecided, "nobody says when the broker had it");
        assert_eq!(of(250, Some(260)), Coverage::NotDecided, "the first SUBSCRIBE may have come");
        assert_eq!(of(310, None), Coverage::Expected);
        assert_eq!(coverage.of(2, 7, 3, at(10), Some(at(20))), Coverage::NotExpected);
        assert_eq!(coverage.of(2, 7, 3, at(120), Some(at(190))), Coverage::Expected);
        assert_eq!(coverage.of(1, 8, 3, at(120), None), Coverage::Expected, "nobody changes that");
        assert_eq!(
            coverage.of(1, 7, 7, at(10), Some(at(20))),
            Coverage::NotExpected,
            "no filter brings its own"
        );
        assert_eq!(coverage.of(2, 7, 7, at(10), Some(at(20))), Coverage::NotExpected);
    }
}
