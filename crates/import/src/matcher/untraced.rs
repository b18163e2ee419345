//! Deliveries whose messages were not seen before them: behind a hole in the publisher's stream, or in a capture whose clock is behind.

use std::sync::Arc;

use mqttlab_capture::mqtt::PayloadRest;
use mqttlab_recording::{Identified, Received};
use mqttlab_units::Instant;

use super::super::clocks::RepeatedContent;
use super::super::content_queues::{self, TracedMessage};
use super::super::delays;
use super::super::message::{CountedMessage, ForwardedSize, SeenPublish};
use super::{MatchedRow, Matcher, Slot, of_message};

/// What is known of a delivery whose message was not.
#[derive(Clone)]
pub(super) struct UntracedDelivery {
    pub(super) key: u64,
    connection: u32,
    topic: Arc<str>,
    head: Box<[u8]>,
    rest: PayloadRest,
    is_whole: bool,
    since: Instant,
    /// The message of which it is a second copy, unless another one before it was not captured.
    copy_of: Option<TracedMessage>,
    /// The message of this content that was published later, where another capture's clock may be behind.
    early: Option<CountedMessage>,
}

impl Matcher {
    /// A delivery whose message did not turn out to have been published before it.
    pub(super) fn given_up(&mut self, row: Received, untraced: &UntracedDelivery) -> Received {
        if let Some(early) = untraced.early.filter(|&message| self.clocks.holds(message, row.subscriber)) {
            return of_message(&row, early, Identified::Payload);
        }
        let trusted = |copied: &&TracedMessage| {
            copied.identified == Identified::Payload
                || self.waiting.trusts(copied.message.publisher, row.subscriber)
        };
        if let Some(copied) = untraced.copy_of.as_ref().filter(trusted) {
            return of_message(&row, copied.message, copied.identified);
        }
        self.traced.foreign += 1;
        if untraced.is_whole {
            self.strangers.foreign(&untraced.topic, (&untraced.head, untraced.rest), row.received);
        }
        self.clocks.give_up(untraced.key, untraced.connection, row.received);
        row
    }

    /// No more packets come: what has not been traced is foreign.
    pub fn finish(&mut self) {
        self.over = true;
        self.settle_clocks(None);
    }

    /// A receiver, or all of them, will not get what they are owed.
    pub(super) fn settle_clocks(&mut self, receiver: Option<u32>) {
        let (subscriptions, waiting) = (&mut self.subscriptions, &self.waiting);
        self.clocks.settle(receiver, |content| {
            let taker = subscriptions.taker(content.receiver, &content.topic);
            waiting.count_owed(content.content, (taker, content.since), content.server)
        });
    }

    /// A message turns out to have been published: deliveries of it may have been seen before.
    pub(super) fn trace_again(&mut self, published: &SeenPublish<'_>, message: CountedMessage) {
        if self.clocks.are_several() {
            self.clocks.published(content_queues::key(published), published.connection, published.first);
        }
        if self.untraced.is_empty() {
            return;
        }
        let numbers = match published.is_whole {
            true => self.untraced.get(&content_queues::key(published)).cloned().unwrap_or_default(),
            // What was captured in part fits other contents, too.
            false => self.untraced.values().flatten().copied().collect(),
        };
        let mut rows = std::mem::take(&mut self.rows);
        for number in numbers {
            let (slot, _) = &mut rows[(number - self.gone) as usize];
            let Slot::Untraced(row, untraced) = slot else { continue };
            if untraced.topic != *published.topic
                && delays::inner(published.topic) != Some(Arc::clone(&untraced.topic))
            {
                continue;
            }
            if let Some(lead) = published.first.checked_since(row.received).filter(|lead| !lead.is_zero()) {
                let content = RepeatedContent {
                    content: untraced.key,
                    topic: Arc::clone(&untraced.topic),
                    receiver: row.subscriber,
                    server: self.servers.of(published.client),
                    since: untraced.since,
                };
                let connections = [untraced.connection, published.connection];
                if !row.retained
                    && untraced.early.is_none()
                    && self.clocks.note_early(message, connections, content, lead)
                {
                    untraced.early = Some(message);
                }
                continue;
            }
            let key = untraced.key;
            let copy = untraced.publish(row);
            let traced = self.trace(&copy, untraced.since).filter(|traced| !traced.is_unexplained);
            let Some(TracedMessage { message, identified, window, .. }) = traced else { continue };
            let row = of_message(row, message, identified);
            self.forget_untraced(key, number);
            *slot = match window {
                Some(window) => Slot::Undecided(row, window),
                None => Slot::Row(MatchedRow::Received(row)),
            };
        }
        self.rows = rows;
    }

    pub(super) fn forget_untraced(&mut self, key: u64, number: u64) {
        if let Some(numbers) = self.untraced.get_mut(&key) {
            numbers.retain(|&other| other != number);
            if numbers.is_empty() {
                self.untraced.remove(&key);
            }
        }
    }
}

impl UntracedDelivery {
    /// Of a delivery; `copy_of`: the message that it may be a second copy of.
    pub(super) fn of(publish: &SeenPublish<'_>, copy_of: Option<TracedMessage>) -> UntracedDelivery {
        UntracedDelivery {
            key: content_queues::key(publish),
            connection: publish.connection,
            topic: Arc::clone(publish.topic),
            head: publish.head.into(),
            rest: publish.rest,
            is_whole: publish.is_whole,
            since: publish.since,
            copy_of,
            early: None,
        }
    }

    fn publish(&self, row: &Received) -> SeenPublish<'_> {
        SeenPublish {
            client: row.subscriber,
            connection: self.connection,
            since: self.since,
            topic: &self.topic,
            qos: row.qos,
            dup: row.dup,
            retain: row.retained,
            id: None,
            payload_bytes: row.payload_bytes,
            head: &self.head,
            rest: self.rest,
            is_whole: self.is_whole,
            first: row.received,
            complete: row.received,
            packet_bytes: 0,
            forwarded: ForwardedSize::of("", 0, 0),
            expiry_s: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_capture::SocketEndpoint;

    fn publish(connection: u32, at_ns: u64) -> SeenPublish<'static> {
        let at = Instant::from_ns(at_ns);
        SeenPublish { client: connection, connection, first: at, complete: at, ..SeenPublish::example() }
    }

    /// What a matcher says of the clocks; a publisher (0) and a receiver (1) are in captures of their own.
    fn reasons(events: &[(u32, u64)]) -> Vec<String> {
        let mut matcher = Matcher::new(true);
        let end = |port| SocketEndpoint { address: std::net::Ipv4Addr::LOCALHOST.into(), port };
        matcher.clocks.note([end(1), end(2)], 0, 0);
        matcher.clocks.note([end(1), end(3)], 1, 1);
        matched(matcher, events).0
    }

    /// The reasons, and of each delivery the message, where it has one.
    fn matched(mut matcher: Matcher, events: &[(u32, u64)]) -> (Vec<String>, Vec<Option<u32>>) {
        for &(connection, at_ns) in events {
            if connection == 0 {
                matcher.published(&publish(0, at_ns));
            } else {
                matcher.delivered(&publish(1, at_ns));
            }
        }
        matcher.finish();
        let rows: Vec<_> = std::iter::from_fn(|| matcher.poll()).collect();
        assert!(rows.len() >= events.len());
        let received = rows.iter().filter_map(|row| match row {
            MatchedRow::Received(row) => Some(row.publisher.map(|_| row.sequence)),
            _ => None,
        });
        (matcher.clocks.reasons(), received.collect())
    }

    #[test]
    fn a_clock_that_is_behind_is_found_although_contents_repeat() {
        let shifted = [(1, 5), (0, 7), (1, 15), (0, 17), (1, 25), (0, 27)];
        let found = reasons(&shifted);
        assert!(found.len() == 1 && found[0].contains("have no delivery"), "{found:?}");
        assert!(reasons(&[(1, 5), (0, 7), (1, 8), (0, 17), (1, 18)]).is_empty(), "one more came");
        assert!(!reasons(&[(1, 5), (0, 7)]).is_empty());
    }

    #[test]
    fn a_capture_that_shows_a_delivery_a_moment_before_its_message_is_out_of_order() {
        let of_one = |events: &[(u32, u64)]| matched(Matcher::new(true), events);
        let (found, received) = of_one(&[(1, 5_000), (0, 21_000)]);
        assert_eq!(received, [Some(0)], "no foreign one, so that its message is not lost");
        assert!(found.len() == 1 && found[0].contains("out of order by at least 0.000016 s"), "{found:?}");
        for before in 1..3 {
            let mut events: Vec<_> =
                (0..before).flat_map(|at_us| [(0, 100 * at_us), (1, 100 * at_us + 1)]).collect();
            events.extend([(1, 5_000), (0, 21_000), (0, 90_000), (1, 91_000)]);
            let (found, _) = of_one(&events);
            assert!(found.len() == 1 && found[0].contains("have no delivery"), "{found:?}");
        }
        // The second session begins with nothing that is owed.
        let mut matcher = Matcher::new(true);
        matcher.delivered(&publish(1, 5_000));
        matcher.published(&publish(0, 21_000));
        matcher.published(&publish(0, 90_000));
        matcher.delivered(&publish(1, 91_000));
        matcher.end_session(1, None, Instant::from_ns(95_000));
        matcher.subscriptions.forget(1, Instant::from_ns(95_000), Instant::from_ns(95_000));
        let again = SeenPublish { since: Instant::from_ns(99_000), ..publish(1, 111_000) };
        matcher.published(&publish(0, 110_000));
        matcher.delivered(&again);
        let (found, _) = matched(matcher, &[]);
        assert!(found.len() == 1 && found[0].contains("have no delivery"), "{found:?}");
        let (found, received) = of_one(&[(1, 5_000), (0, 21_000), (1, 22_000)]);
        assert_eq!((found.len(), received), (0, vec![None, Some(0)]), "one before was not captured");
        let (found, received) = of_one(&[(1, 5_000), (0, 20_000_000)]);
        assert_eq!((found.len(), received), (0, vec![None]), "no capture is out of order by so much");
    }
}
