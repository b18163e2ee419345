//! Messages without an identity, found again by their content.
//!
//! Equal topic, size and first bytes make a queue. A receiver gets the messages of a queue in their order (MQTT 5 §4.6
//! promises it for each publisher), so that its n-th delivery is the n-th message since it subscribed. Where contents
//! differ every queue holds one message, and the content alone decides. Each server has queues of its own.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use mqttlab_recording::{Identified, NumberMap, NumberSet};
use mqttlab_units::{Duration, Instant};

use super::message::{CountedMessage, SeenPublish};

/// Messages that may still be delivered.
#[derive(Default)]
pub struct ContentQueues {
    queues: NumberMap<u64, ContentQueue>,
    /// The queues of the messages, oldest first.
    order: VecDeque<u64>,
    /// Clients of which packets were not captured.
    distrusted: NumberSet<u32>,
    /// What brokers refused, which none delivers.
    refused: NumberSet<(u32, u32)>,
}

#[derive(Default)]
struct ContentQueue {
    /// How many messages have left at the front.
    gone: u64,
    messages: VecDeque<(CountedMessage, Instant)>,
    /// The place of the next message, counted from the first ever, for receivers that have had one.
    next: NumberMap<u32, u64>,
}

impl ContentQueues {
    /// A message reaches a server.
    pub fn put(&mut self, publish: &SeenPublish<'_>, message: CountedMessage, server: u32) {
        let key = queue(key(publish), server);
        self.queues.entry(key).or_default().messages.push_back((message, publish.complete));
        self.order.push_back(key);
        if self.order.len() > WAITING_MAX {
            self.forget_oldest();
        }
    }

    /// Packets of a client were not captured: its equal messages cannot be told apart by counting.
    pub fn distrust(&mut self, client: u32) {
        self.distrusted.insert(client);
    }

    /// A broker refused a message.
    pub fn refuse(&mut self, message: CountedMessage) {
        self.refused.insert((message.publisher, message.sequence));
    }

    /// The message that a client publishes to a server again.
    pub fn again(&self, publish: &SeenPublish<'_>, server: u32) -> Option<CountedMessage> {
        let (message, _) = self.queues.get(&queue(key(publish), server))?.messages.back()?;
        (message.publisher == publish.client).then_some(*message)
    }

    /// The message that a client receives, which has been subscribed since then: one that was published to its server, the
    /// first of these, else one of another server's, whose content tells it apart and which was published a moment ago.
    pub fn match_delivery(
        &mut self,
        publish: &SeenPublish<'_>,
        since: Instant,
        servers: impl Iterator<Item = u32>,
    ) -> Option<(CountedMessage, Identified)> {
        let key = key(publish);
        let mut again = None;
        for (place, server) in servers.enumerate() {
            match self.match_at(publish, since, (queue(key, server), place == 0)) {
                Some((message, identified, false)) => return Some((message, identified)),
                Some((message, identified, true)) => again = again.or(Some((message, identified))),
                None => {}
            }
        }
        again
    }

    /// Whether a client has still to get a message with this content from its server; of the store any may come.
    pub fn owes(&self, publish: &SeenPublish<'_>, since: Instant, server: u32) -> bool {
        let Some(queue) = self.queues.get(&queue(key(publish), server)) else { return false };
        let had = queue.next.get(&publish.client).copied().unwrap_or_default();
        let subscribed = queue.gone + queue.messages.partition_point(|&(_, at)| at < since) as u64;
        publish.retain || had.max(subscribed) < queue.gone + queue.messages.len() as u64
    }

    /// What one queue has for a client, and whether it had it before.
    fn match_at(
        &mut self,
        publish: &SeenPublish<'_>,
        since: Instant,
        (key, is_own): (u64, bool),
    ) -> Option<(CountedMessage, Identified, bool)> {
        let queue = self.queues.get_mut(&key)?;
        let end = queue.gone + queue.messages.len() as u64;
        // Of a packet that was cut the rest may be another message's.
        let only = end == 1 && publish.is_whole;
        let identified = if only { Identified::Payload } else { Identified::Order };
        let publisher = queue.messages.back().map(|(message, _)| message.publisher);
        let counted = |client: &u32| !self.distrusted.contains(client);
        let countable = only || counted(&publish.client) && publisher.iter().all(counted);
        if !countable {
            return None;
        }
        let recent = |at: &Instant| {
            publish.complete.checked_since(*at).is_some_and(|passed| passed < PASSED_ON_WITHIN)
        };
        let is_told = only && (publish.retain || queue.messages.back().is_some_and(|(_, at)| recent(at)));
        if !is_own && !is_told {
            return None;
        }
        // A retained message is the last of its topic, whoever has had it.
        if publish.retain {
            return queue.messages.back().map(|(message, _)| (*message, identified, false));
        }
        let subscribed = queue.gone + queue.messages.partition_point(|&(_, at)| at < since) as u64;
        let had = queue.next.get(&publish.client).copied().unwrap_or_default();
        let mut place = had.max(subscribed);
        if !self.refused.is_empty() {
            let is_refused = |(message, _): &(CountedMessage, Instant)| {
                self.refused.contains(&(message.publisher, message.sequence))
            };
            let behind = queue.messages.iter().skip((place - queue.gone) as usize);
            place += behind.take_while(|waiting| is_refused(waiting)).count() as u64;
        }
        if place >= end {
            // One message that comes twice is a duplicate; of several alike nobody can tell which.
            let again = only && had > subscribed;
            return queue.messages.back().filter(|_| again).map(|(message, _)| (*message, identified, true));
        }
        queue.next.insert(publish.client, place + 1);
        let (message, _) = queue.messages[(place - queue.gone) as usize];
        Some((message, identified, false))
    }

    fn forget_oldest(&mut self) {
        let Some(key) = self.order.pop_front() else { return };
        if let Some(queue) = self.queues.get_mut(&key) {
            queue.messages.pop_front();
            queue.gone += 1;
            if queue.messages.is_empty() {
                self.queues.remove(&key);
            }
        }
    }
}

/// What copies of a message have in common.
pub fn key(publish: &SeenPublish<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (publish.topic, publish.payload_bytes, publish.head).hash(&mut hasher);
    hasher.finish()
}

/// The queue of a content at a server.
fn queue(key: u64, server: u32) -> u64 {
    // Of one server the key stays as it is; those of others are spread by the golden ratio.
    key.wrapping_add(u64::from(server).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The members of a cluster pass a message on within this.
const PASSED_ON_WITHIN: Duration = Duration::from_s(10);
/// Messages that are remembered, some 40 MiB of them; the oldest is forgotten first.
const WAITING_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(client: u32, head: &'static [u8], complete_ns: u64) -> SeenPublish<'static> {
        SeenPublish { client, head, complete: Instant::from_ns(complete_ns), ..SeenPublish::example() }
    }

    fn message(sequence: u32) -> CountedMessage {
        CountedMessage { publisher: 0, sequence }
    }

    fn taken(
        waiting: &mut ContentQueues,
        client: u32,
        head: &'static [u8],
        since_ns: u64,
    ) -> Option<(u32, Identified)> {
        let taken =
            waiting.match_delivery(&copy(client, head, 99), Instant::from_ns(since_ns), [0].into_iter());
        taken.map(|(message, identified)| (message.sequence, identified))
    }

    #[test]
    fn different_contents_are_found_in_any_order_and_a_second_copy_is_the_same_message() {
        let mut waiting = ContentQueues::default();
        waiting.put(&copy(0, b"a", 1), message(0), 0);
        waiting.put(&copy(0, b"b", 2), message(1), 0);
        assert_eq!(taken(&mut waiting, 5, b"b", 0), Some((1, Identified::Payload)));
        assert_eq!(taken(&mut waiting, 5, b"a", 0), Some((0, Identified::Payload)));
        assert_eq!(taken(&mut waiting, 5, b"a", 0), Some((0, Identified::Payload)));
        assert_eq!(taken(&mut waiting, 5, b"c", 0), None);
    }

    #[test]
    fn equal_contents_are_told_apart_by_their_order_since_the_receiver_subscribed() {
        let mut waiting = ContentQueues::default();
        for sequence in 0..4 {
            waiting.put(&copy(0, b"x", u64::from(sequence)), message(sequence), 0);
        }
        let mut next = |client, since| taken(&mut waiting, client, b"x", since).map(|(sequence, _)| sequence);
        assert_eq!([next(5, 0), next(5, 0), next(6, 3), next(6, 3)], [Some(0), Some(1), Some(3), None]);
        assert_eq!(next(5, 3), Some(3), "it has subscribed again");
    }

    #[test]
    fn what_was_cut_tells_nothing_by_its_content_and_is_not_counted_where_more_may_be_missing() {
        let mut waiting = ContentQueues::default();
        let cut = |client| SeenPublish { is_whole: false, ..copy(client, b"", 1) };
        waiting.put(&cut(0), message(0), 0);
        waiting.distrust(5);
        assert_eq!(waiting.match_delivery(&cut(5), Instant::ZERO, [0].into_iter()), None);
        assert_eq!(
            waiting.match_delivery(&cut(6), Instant::ZERO, [0].into_iter()),
            Some((message(0), Identified::Order))
        );
        assert_eq!(
            waiting.match_delivery(&cut(6), Instant::ZERO, [0].into_iter()),
            None,
            "nobody knows that it came twice"
        );
    }

    #[test]
    fn a_retained_message_is_the_last_one() {
        let mut waiting = ContentQueues::default();
        waiting.put(&copy(0, b"x", 1), message(0), 0);
        waiting.put(&copy(0, b"x", 2), message(1), 0);
        let retained = SeenPublish { retain: true, ..copy(5, b"x", 9) };
        assert_eq!(
            waiting.match_delivery(&retained, Instant::ZERO, [0].into_iter()),
            Some((message(1), Identified::Order))
        );
    }

    #[test]
    fn a_message_of_another_server_is_one_only_where_its_content_tells_it_apart() {
        let mut waiting = ContentQueues::default();
        let take = |waiting: &mut ContentQueues, publish: SeenPublish<'_>| {
            let taken = waiting.match_delivery(&publish, Instant::ZERO, [1, 0].into_iter());
            taken.map(|(message, identified)| (message.sequence, identified))
        };
        waiting.put(&copy(0, b"x", 1), message(0), 0);
        waiting.put(&copy(0, b"x", 1), message(1), 1);
        assert_eq!(
            take(&mut waiting, copy(5, b"x", 9)),
            Some((1, Identified::Payload)),
            "its own server first"
        );
        assert_eq!(take(&mut waiting, copy(5, b"x", 9)), Some((0, Identified::Payload)));
        assert_eq!(take(&mut waiting, copy(5, b"x", 9)), Some((1, Identified::Payload)), "a second copy");
        waiting.put(&copy(0, b"x", 1), message(2), 0);
        assert_eq!(take(&mut waiting, copy(6, b"x", 9)), Some((1, Identified::Payload)));
        assert_eq!(
            take(&mut waiting, copy(6, b"x", 9)),
            Some((1, Identified::Payload)),
            "not the first of two"
        );
        waiting.put(&copy(0, b"y", 1), message(3), 0);
        let late = SeenPublish { complete: Instant::from_ns(11_000_000_000), ..copy(5, b"y", 9) };
        assert_eq!(take(&mut waiting, late), None);
        assert_eq!(take(&mut waiting, SeenPublish { retain: true, ..late }), Some((3, Identified::Payload)));
    }
}
