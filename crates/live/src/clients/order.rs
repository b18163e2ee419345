//! Messages too small to say who they are, told apart by their order.
//!
//! The n-th message that a subscriber receives on a topic is the n-th that the topic's one publisher sent to it.
//! A publisher writes down what it sends, a subscriber counts what it receives.
//!
//! What it cannot see: a lost QoS 0 message. From then on that subscriber's messages are matched to earlier ones,
//! and the loss shows at the end. A topic with several publishers is not told apart at all.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use mqttlab_plan::Plan;
use mqttlab_recording::identity;
use mqttlab_units::Instant;

use crate::directory::Directory;

/// One sent message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) publisher: u32,
    pub(super) sequence: u32,
    pub(super) intended: Instant,
}

/// What publishers of small messages have sent, by topic.
pub(super) struct SentInOrder {
    /// Topic name to log and publisher.
    topics: BTreeMap<String, (u32, usize)>,
    logs: Vec<Mutex<Vec<(u32, Instant)>>>,
}

/// What one subscriber has received on such topics.
#[derive(Default)]
pub(super) struct ReceivedInOrder {
    counts: HashMap<usize, usize>,
    /// The place of the message last received under a packet identifier.
    places: HashMap<(usize, u16), usize>,
}

impl SentInOrder {
    /// For the topics of a plan whose messages are too small and whose publisher is alone.
    pub(super) fn new(plan: &Plan, directory: &Directory) -> SentInOrder {
        let mut publishers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut small = Vec::new();
        for (group, start) in plan.groups.iter().zip(plan.client_numbers()) {
            let Some(publish) = &group.publish else { continue };
            let is_small = publish.payload.size().0 < identity::BYTES_MIN as u64;
            for client in start..start + group.count {
                for &topic in directory.published(client) {
                    publishers.entry(topic).or_default().push(client);
                    small.extend(is_small.then_some(topic));
                }
            }
        }
        small.sort_unstable();
        small.dedup();
        let alone = small.into_iter().filter_map(|topic| match publishers[&topic][..] {
            [publisher] => Some((directory.layout().topic_name(topic).to_owned(), publisher)),
            _ => None,
        });
        let topics: BTreeMap<_, _> =
            alone.enumerate().map(|(log, (name, publisher))| (name, (publisher, log))).collect();
        let logs = topics.values().map(|_| Mutex::default()).collect();
        SentInOrder { topics, logs }
    }

    /// Notes that the topic's publisher has handed a message to its session.
    pub(super) fn sent(&self, topic: &str, sequence: u32, intended: Instant) {
        if let Some((_, log)) = self.topics.get(topic) {
            self.logs[*log].lock().expect("no thread panics with it").push((sequence, intended));
        }
    }

    /// Who the message is that `subscriber` has now received on `topic`, if its order tells. `repeated` is the
    /// packet identifier of a message that may have come before under the same one.
    pub(super) fn received(
        &self,
        subscriber: &mut ReceivedInOrder,
        topic: &str,
        id: Option<u16>,
        dup: bool,
    ) -> Option<Known> {
        let &(publisher, log) = self.topics.get(topic)?;
        let place = subscriber.place(log, id, dup);
        let sent = self.logs[log].lock().expect("no thread panics with it");
        sent.get(place).map(|&(sequence, intended)| Known { publisher, sequence, intended })
    }
}

impl ReceivedInOrder {
    fn place(&mut self, log: usize, id: Option<u16>, dup: bool) -> usize {
        if let Some(place) = id.filter(|_| dup).and_then(|id| self.places.get(&(log, id))) {
            return *place;
        }
        let count = self.counts.entry(log).or_default();
        let place = *count;
        *count += 1;
        if let Some(id) = id {
            self.places.insert((log, id), place);
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent() -> SentInOrder {
        let topics = BTreeMap::from([("a".to_owned(), (7, 0))]);
        let sent = SentInOrder { topics, logs: vec![Mutex::default()] };
        sent.sent("a", 10, Instant::from_ns(1));
        sent.sent("a", 12, Instant::from_ns(2));
        sent.sent("b", 13, Instant::from_ns(3));
        sent
    }

    #[test]
    fn the_nth_message_received_is_the_nth_sent() {
        let (sent, mut subscriber) = (sent(), ReceivedInOrder::default());
        let known = |sequence, ns| Some(Known { publisher: 7, sequence, intended: Instant::from_ns(ns) });
        assert_eq!(sent.received(&mut subscriber, "a", None, false), known(10, 1));
        assert_eq!(sent.received(&mut subscriber, "b", None, false), None);
        assert_eq!(sent.received(&mut subscriber, "a", None, false), known(12, 2));
        assert_eq!(sent.received(&mut subscriber, "a", None, false), None);
    }

    #[test]
    fn a_repetition_under_the_same_identifier_is_the_same_message() {
        let (sent, mut subscriber) = (sent(), ReceivedInOrder::default());
        let first = sent.received(&mut subscriber, "a", Some(4), false);
        assert_eq!(sent.received(&mut subscriber, "a", Some(4), true), first);
        assert_eq!(sent.received(&mut subscriber, "a", Some(5), true).unwrap().sequence, 12);
    }
}
