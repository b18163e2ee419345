//! Who should receive what, as the SUBSCRIBE packets say.
//!
//! A message is expected by everyone whose filter matches its topic and was granted when it reaches the broker. Of a
//! shared subscription (MQTT 5 §4.8.2) nothing is expected of anybody in particular. A client whose SUBSCRIBE was not
//! captured is taken for a subscriber to a topic from the first message of it that it receives.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use mqttlab_mqtt::TopicTree;
use mqttlab_mqtt::topic::{is_filter, matches, share};
use mqttlab_recording::Topic;
use mqttlab_units::Instant;

/// Everybody's subscriptions, and the topics that messages were published to.
#[derive(Default)]
pub struct Subscriptions {
    tree: TopicTree<u32>,
    of_client: HashMap<u32, Vec<Held>>,
    sets: BTreeMap<Vec<u32>, u32>,
    topics: Vec<Topic>,
    numbers: HashMap<(Arc<str>, u32), u32>,
    /// What holds until somebody subscribes or leaves.
    current: HashMap<Arc<str>, u32>,
    covered: HashMap<(u32, Arc<str>), Option<Instant>>,
}

struct Held {
    filter: String,
    since: Instant,
    granted: bool,
}

impl Subscriptions {
    /// A client asks for a subscription: messages may come from now on. Filters that MQTT does not allow are passed
    /// over.
    pub fn ask(&mut self, client: u32, filter: &str, at: Instant) {
        let held = self.of_client.entry(client).or_default();
        if is_filter(filter) && held.iter().all(|known| known.filter != filter) {
            held.push(Held { filter: filter.to_owned(), since: at, granted: false });
            self.changed();
        }
    }

    /// The broker grants a subscription that was asked for: messages are expected from now on.
    pub fn grant(&mut self, client: u32, filter: &str) {
        let held = self.of_client.get_mut(&client).into_iter().flatten();
        let Some(asked) = held.into_iter().find(|known| known.filter == filter && !known.granted) else {
            return;
        };
        asked.granted = true;
        if share(filter).is_none() {
            self.tree.insert(filter, client);
        }
        self.changed();
    }

    /// A client gives a subscription up.
    pub fn unsubscribe(&mut self, client: u32, filter: &str) {
        if let Some(held) = self.of_client.get_mut(&client) {
            held.retain(|known| known.filter != filter);
            self.tree.remove(filter, |&holder| holder == client);
            self.changed();
        }
    }

    /// A client's session is over, and its subscriptions with it.
    pub fn forget(&mut self, client: u32) {
        for held in self.of_client.remove(&client).unwrap_or_default() {
            self.tree.remove(&held.filter, |&holder| holder == client);
            self.changed();
        }
    }

    /// Since when a client is subscribed to a topic; `None` when it is not.
    pub fn since(&mut self, client: u32, topic: &Arc<str>) -> Option<Instant> {
        let held = self.of_client.get(&client)?;
        *self.covered.entry((client, Arc::clone(topic))).or_insert_with(|| {
            let covers =
                |held: &&Held| matches(share(&held.filter).map_or(&*held.filter, |(_, inner)| inner), topic);
            held.iter().filter(covers).map(|held| held.since).min()
        })
    }

    /// The number of a topic with those who receive it now.
    pub fn topic(&mut self, name: &Arc<str>) -> u32 {
        if let Some(&number) = self.current.get(name) {
            return number;
        }
        let mut receivers = Vec::new();
        self.tree.each_match(name, |&client| receivers.push(client));
        let number = self.topic_for(name, receivers);
        self.current.insert(Arc::clone(name), number);
        number
    }

    /// The number of a topic whose message these clients should receive.
    pub fn topic_for(&mut self, name: &Arc<str>, mut receivers: Vec<u32>) -> u32 {
        receivers.sort_unstable();
        receivers.dedup();
        let next = self.sets.len() as u32;
        let set = *self.sets.entry(receivers).or_insert(next);
        let topics = &mut self.topics;
        *self.numbers.entry((Arc::clone(name), set)).or_insert_with(|| {
            topics.push(Topic { name: name.to_string(), receivers: set, shares: 0, relayed: false });
            topics.len() as u32 - 1
        })
    }

    /// Topics and sets of receivers, by number.
    pub fn into_layout(self) -> (Vec<Topic>, Vec<Vec<u32>>) {
        let mut receivers = vec![Vec::new(); self.sets.len()];
        for (set, number) in self.sets {
            receivers[number as usize] = set;
        }
        (self.topics, receivers)
    }

    fn changed(&mut self) {
        self.current.clear();
        self.covered.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receivers(subscriptions: &mut Subscriptions, topic: &str) -> Vec<u32> {
        let number = subscriptions.topic(&topic.into());
        let set = subscriptions.topics[number as usize].receivers;
        subscriptions.sets.iter().find(|(_, number)| **number == set).expect("a known set").0.clone()
    }

    #[test]
    fn a_topic_is_for_those_who_subscribe_at_the_time() {
        let mut subscriptions = Subscriptions::default();
        let at = Instant::from_ns;
        for (client, filter, asked) in [(3, "a/+", 1), (1, "a/#", 2), (1, "a/b", 3), (4, "#", 4)] {
            subscriptions.ask(client, filter, at(asked));
        }
        for (client, filter) in [(3, "a/+"), (1, "a/#"), (1, "a/b")] {
            subscriptions.grant(client, filter);
        }
        assert_eq!(receivers(&mut subscriptions, "a/b"), [1, 3]);
        assert_eq!(subscriptions.since(1, &"a/b".into()), Some(at(2)));
        subscriptions.unsubscribe(3, "a/+");
        assert_eq!(receivers(&mut subscriptions, "a/b"), [1]);
        subscriptions.forget(1);
        assert_eq!(receivers(&mut subscriptions, "a/b"), [0_u32; 0]);
        assert_eq!(subscriptions.topics.len(), 3, "one for each set of receivers");
    }

    #[test]
    fn a_shared_subscription_covers_its_topics_and_expects_nothing() {
        let mut subscriptions = Subscriptions::default();
        subscriptions.ask(3, "$share/team/a/b", Instant::ZERO);
        subscriptions.grant(3, "$share/team/a/b");
        assert_eq!(receivers(&mut subscriptions, "a/b"), [0_u32; 0]);
        assert_eq!(subscriptions.since(3, &"a/b".into()), Some(Instant::ZERO));
        assert_eq!(subscriptions.since(4, &"a/b".into()), None);
    }
}
