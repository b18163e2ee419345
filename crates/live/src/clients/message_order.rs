//! Messages too small to say who they are, told apart by their order.
//!
//! A publisher writes down what it sends, a subscriber counts what it receives: the message that it receives on a topic is
//! the next one that the topic's one publisher sent, or, where messages were lost or come once more, the nearest one whose
//! number ends as the payload says. What the one relay of such a topic sends on keeps the order.
//!
//! What it cannot see: losses and copies of empty messages, whose n-th is taken for the n-th that was sent; and 128 losses
//! in a row of messages of 1 B. A topic with several publishers is not told apart at all.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;

use mqttlab_mqtt::topic::matches;
use mqttlab_plan::{Plan, Publish};
use mqttlab_recording::identity::{self, SequenceEnd};
use mqttlab_units::Instant;

use crate::directory::Directory;

/// One sent message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentMessage {
    pub(super) publisher: u32,
    pub(super) sequence: u32,
    pub(super) intended: Instant,
}

/// What publishers of small messages have sent, by topic.
pub(super) struct SentInOrder {
    /// By server and topic name, those of relays' copies included.
    topics: Vec<BTreeMap<String, TopicLog>>,
    logs: Vec<Mutex<Vec<(u32, Instant)>>>,
    /// Topics of small messages with several publishers, by server.
    shared: Vec<BTreeSet<String>>,
}

/// Where the messages of a topic are told apart.
#[derive(Clone, Copy)]
struct TopicLog {
    publisher: u32,
    /// Its publisher's log.
    log: usize,
    /// What a subscriber counts it under: a copy is counted apart from the original.
    count: usize,
}

/// What one subscriber has received on such topics.
#[derive(Default)]
pub(super) struct ReceivedInOrder {
    /// The place of the message that is expected next.
    next: HashMap<usize, usize>,
    /// The place of the message last received under a packet identifier.
    places: HashMap<(usize, u16), usize>,
}

impl SentInOrder {
    /// For the topics of a plan whose messages are too small and whose publisher is alone.
    pub(super) fn new(plan: &Plan, directory: &Directory) -> SentInOrder {
        let small = small_topics(plan, directory);
        let mut shared = vec![BTreeSet::new(); plan.servers.len()];
        for (topic, _) in small.iter().filter(|(_, publishers)| publishers.len() > 1) {
            let (server, name) = directory.topic(*topic);
            shared[server].insert(name.to_owned());
        }
        let alone: Vec<(u32, u32)> = small
            .into_iter()
            .filter_map(|(topic, publishers)| <[u32; 1]>::try_from(publishers).ok().map(|[one]| (topic, one)))
            .collect();
        let mut topics = vec![BTreeMap::new(); plan.servers.len()];
        for (log, &(topic, publisher)) in alone.iter().enumerate() {
            let (server, name) = directory.topic(topic);
            topics[server].insert(name.to_owned(), TopicLog { publisher, log, count: log });
        }
        let logs = alone.iter().map(|_| Mutex::default()).collect();
        let mut counted = alone.len();
        topics
            .iter_mut()
            .enumerate()
            .for_each(|(server, topics)| add_copies(plan, server, topics, &mut counted));
        SentInOrder { topics, logs, shared }
    }

    /// Whether a small message on a topic comes from one of several publishers, and cannot be told from theirs.
    pub(super) fn is_shared(&self, server: usize, topic: &str) -> bool {
        self.shared[server].contains(topic)
    }

    /// Notes that the topic's publisher has handed a message to its session.
    pub(super) fn sent(&self, server: usize, topic: &str, sequence: u32, intended: Instant) {
        if let Some(entry) = self.topics[server].get(topic) {
            self.logs[entry.log].lock().expect("no thread panics with it").push((sequence, intended));
        }
    }

    /// Who the message is that `subscriber` has now received on a server's `topic`, if its order and its small `payload`
    /// tell. With DUP it may have come before under the same packet identifier.
    pub(super) fn received(
        &self,
        subscriber: &mut ReceivedInOrder,
        server: usize,
        topic: &str,
        payload: &[u8],
        (id, dup): (Option<u16>, bool),
    ) -> Option<SentMessage> {
        let &TopicLog { publisher, log, count } = self.topics[server].get(topic)?;
        let sent = self.logs[log].lock().expect("no thread panics with it");
        let expected = subscriber.expected(count, id.filter(|_| dup));
        let place = if payload.is_empty() {
            expected
        } else {
            SequenceEnd::of(payload)?.place(expected, sent.len(), |place| sent[place].0)?
        };
        subscriber.took(count, id, place);
        sent.get(place).map(|&(sequence, intended)| SentMessage { publisher, sequence, intended })
    }
}

/// How many topics there are whose messages somebody receives and nothing tells whose they are: they are too small to say
/// it, and have several publishers.
pub(crate) fn ambiguous_topics(plan: &Plan, directory: &Directory) -> u64 {
    let small = small_topics(plan, directory);
    let is_ambiguous = |(topic, publishers): &(&u32, &Vec<u32>)| {
        publishers.len() > 1 && directory.topics()[**topic as usize].deliveries > 0
    };
    small.iter().filter(is_ambiguous).count() as u64
}

/// The publishers of topics on which one of them has messages that are too small to say whose they are.
fn small_topics(plan: &Plan, directory: &Directory) -> BTreeMap<u32, Vec<u32>> {
    let mut publishers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut small = BTreeSet::new();
    for (group, start) in plan.groups.iter().zip(plan.client_numbers()) {
        for client in start..start + group.count {
            let mut topics = directory.published(client).iter();
            for (number, publish) in group.publications.iter().enumerate() {
                let contents = group.contents().enumerate();
                let contents = contents.filter(|(content, _)| group.publication_of(*content) == Some(number));
                let contents: Vec<&Publish> = contents.map(|(_, publish)| publish).collect();
                for (place, &topic) in (0..).zip(topics.by_ref().take(publish.topics as usize)) {
                    let sizes = contents.iter().filter_map(|it| it.least_bytes(client - start, place));
                    // Of a table that is replayed it may have no message to this topic.
                    let Some(least) = sizes.min() else { continue };
                    let publishers = publishers.entry(topic).or_default();
                    // Two of its publications may have one topic.
                    if publishers.last() != Some(&client) {
                        publishers.push(client);
                    }
                    small.extend((least.0 < identity::BYTES_MIN as u64).then_some(topic));
                }
            }
        }
    }
    publishers.retain(|topic, _| small.contains(topic));
    publishers
}

/// Adds the topics of copies that exactly one relaying client makes, and of copies of these.
fn add_copies(plan: &Plan, server: usize, topics: &mut BTreeMap<String, TopicLog>, counted: &mut usize) {
    let mut fresh: Vec<(String, TopicLog)> =
        topics.iter().map(|(name, entry)| (name.clone(), *entry)).collect();
    for _ in 0..RELAY_ROUNDS {
        let mut copies = Vec::new();
        for (name, entry) in &fresh {
            let [suffix] = relays_of(plan, server, name)[..] else { continue };
            let copy = format!("{name}{suffix}");
            if !topics.contains_key(&copy) {
                let entry = TopicLog { count: *counted, ..*entry };
                *counted += 1;
                topics.insert(copy.clone(), entry);
                copies.push((copy, entry));
            }
        }
        fresh = copies;
    }
}

/// What each relaying client that hears a topic appends to it.
fn relays_of<'p>(plan: &'p Plan, server: usize, topic: &str) -> Vec<&'p str> {
    let mut suffixes = Vec::new();
    for group in plan.groups.iter().filter(|group| plan.serving(group) == server) {
        let Some(relay) = &group.relay else { continue };
        let hears = |client: &u32| {
            let mut filters =
                group.subscriptions.iter().map(|wanted| wanted.filter.fill(&group.name, *client, 0));
            filters.any(|filter| matches(&filter, topic))
        };
        suffixes.extend((0..group.count).filter(hears).map(|_| relay.topic_suffix.as_str()));
    }
    suffixes
}

/// How often a message is copied on at most, as in the plan's audience.
const RELAY_ROUNDS: usize = 4;

impl ReceivedInOrder {
    /// Where the next message is expected: one that may be `repeated` at the place that it had.
    fn expected(&self, log: usize, repeated: Option<u16>) -> usize {
        let had = repeated.and_then(|id| self.places.get(&(log, id)));
        had.or_else(|| self.next.get(&log)).copied().unwrap_or_default()
    }

    /// A message came at this place. The next is expected behind it, or behind later ones where it came once more.
    fn took(&mut self, log: usize, id: Option<u16>, place: usize) {
        let next = self.next.entry(log).or_default();
        let again = id.is_some_and(|id| self.places.insert((log, id), place) == Some(place));
        if !again {
            *next = place + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent() -> SentInOrder {
        let entry = TopicLog { publisher: 7, log: 0, count: 0 };
        let topics = BTreeMap::from([("a".to_owned(), entry)]);
        let sent =
            SentInOrder { topics: vec![topics], logs: vec![Mutex::default()], shared: vec![BTreeSet::new()] };
        sent.sent(0, "a", 10, Instant::from_ns(1));
        sent.sent(0, "a", 12, Instant::from_ns(2));
        sent.sent(0, "b", 13, Instant::from_ns(3));
        sent
    }

    #[test]
    fn the_nth_message_received_is_the_nth_sent() {
        let (sent, mut subscriber) = (sent(), ReceivedInOrder::default());
        let known =
            |sequence, ns| Some(SentMessage { publisher: 7, sequence, intended: Instant::from_ns(ns) });
        assert_eq!(sent.received(&mut subscriber, 0, "a", b"", (None, false)), known(10, 1));
        assert_eq!(sent.received(&mut subscriber, 0, "b", b"", (None, false)), None);
        assert_eq!(sent.received(&mut subscriber, 0, "a", b"", (None, false)), known(12, 2));
        assert_eq!(sent.received(&mut subscriber, 0, "a", b"", (None, false)), None);
    }

    #[test]
    fn a_repetition_under_the_same_identifier_is_the_same_message() {
        let (sent, mut subscriber) = (sent(), ReceivedInOrder::default());
        let first = sent.received(&mut subscriber, 0, "a", b"", (Some(4), false));
        assert_eq!(sent.received(&mut subscriber, 0, "a", b"", (Some(4), true)), first);
        assert_eq!(sent.received(&mut subscriber, 0, "a", b"", (Some(5), true)).unwrap().sequence, 12);
    }

    #[test]
    fn what_was_lost_or_comes_once_more_shifts_nothing() {
        let sent = sent();
        (13..40).for_each(|sequence| sent.sent(0, "a", sequence, Instant::from_ns(sequence.into())));
        let mut subscriber = ReceivedInOrder::default();
        // 12 and 13 are lost; 14 and 15 come again with other identifiers, before what follows them.
        let arrivals = [10, 14, 15, 16, 14, 15, 17, 18, 39];
        for (id, sequence) in (1..).zip(arrivals) {
            let found = sent.received(&mut subscriber, 0, "a", &[sequence], (Some(id), false));
            assert_eq!(found.map(|known| known.sequence), Some(sequence.into()));
        }
        assert_eq!(sent.received(&mut subscriber, 0, "a", &[77], (None, false)), None, "nobody sent this");
        let again = sent.received(&mut subscriber, 0, "a", &[17], (Some(7), true));
        assert_eq!(again.map(|known| known.sequence), Some(17));
    }
}
