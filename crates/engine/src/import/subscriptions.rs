//! Who should receive what, as the SUBSCRIBE packets say.
//!
//! A message is expected by everyone whose filter matches its topic and was granted when it reaches the broker. Of a
//! shared subscription (MQTT 5 §4.8.2) nothing is expected of anybody in particular. A client whose SUBSCRIBE was not
//! captured is taken for a subscriber to a topic from the first message of it that it receives.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use mqttlab_mqtt::TopicTree;
use mqttlab_mqtt::topic::{is_filter, matches, share};
use mqttlab_recording::{GivenUp, Topic};
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
    /// When subscriptions to a topic were given up, by topic and client.
    given_up: BTreeMap<(u32, u32), Instant>,
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

    /// A client gives a subscription up, or does not get it.
    pub fn unsubscribe(&mut self, client: u32, filter: &str, at: Instant) {
        if let Some(held) = self.of_client.get_mut(&client) {
            held.retain(|known| known.filter != filter);
            self.tree.remove(filter, |&holder| holder == client);
            self.changed();
            self.give_up(client, filter, at);
        }
    }

    /// Notes the topics that a client has heard of by this filter and by no other.
    fn give_up(&mut self, client: u32, filter: &str, at: Instant) {
        let expecting: HashSet<u32> = self
            .sets
            .iter()
            .filter(|(set, _)| set.binary_search(&client).is_ok())
            .map(|(_, &set)| set)
            .collect();
        let held = self.of_client.get(&client).map_or(&[][..], Vec::as_slice);
        for (number, topic) in self.topics.iter().enumerate() {
            let elsewhere = || held.iter().any(|held| held.granted && matches(&held.filter, &topic.name));
            if expecting.contains(&topic.receivers) && matches(filter, &topic.name) && !elsewhere() {
                self.given_up.insert((number as u32, client), at);
            }
        }
    }

    /// A client's session is over, and with it the subscriptions that it asked for before a time. Says whether there
    /// were any.
    pub fn forget(&mut self, client: u32, before: Instant) -> bool {
        let Some(held) = self.of_client.get_mut(&client) else { return false };
        let over: Vec<Held> = held.extract_if(.., |held| held.since < before).collect();
        for held in &over {
            self.tree.remove(&held.filter, |&holder| holder == client);
        }
        if !over.is_empty() {
            self.changed();
        }
        !over.is_empty()
    }

    /// A message reached a client, so that what it asked for and fits was granted.
    pub fn prove(&mut self, client: u32, topic: &str) {
        let asked = self.of_client.get(&client).into_iter().flatten();
        let proved: Vec<String> = asked
            .filter(|held| !held.granted && matches(inner(&held.filter), topic))
            .map(|held| held.filter.clone())
            .collect();
        for filter in proved {
            self.grant(client, &filter);
        }
    }

    /// Since when a client is subscribed to a topic; `None` when it is not.
    pub fn since(&mut self, client: u32, topic: &Arc<str>) -> Option<Instant> {
        let key = (client, Arc::clone(topic));
        if !self.covered.contains_key(&key) {
            self.prove(client, topic);
        }
        let held = self.of_client.get(&client)?;
        *self.covered.entry(key).or_insert_with(|| {
            let covers = |held: &&Held| matches(inner(&held.filter), topic);
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

    /// When somebody first asked for a subscription of which nobody knows whether it was granted.
    pub fn unanswered(&self) -> Option<Instant> {
        self.of_client.values().flatten().filter(|held| !held.granted).map(|held| held.since).min()
    }

    /// What was given up by UNSUBSCRIBE.
    pub fn given_up(&self) -> Vec<GivenUp> {
        let rows = self.given_up.iter();
        rows.map(|(&(topic, client), at)| GivenUp { topic, client, at_ns: at.as_ns() }).collect()
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

/// The filter of a shared subscription without its share's name.
fn inner(filter: &str) -> &str {
    share(filter).map_or(filter, |(_, inner)| inner)
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
        subscriptions.unsubscribe(3, "a/+", at(5));
        assert_eq!(receivers(&mut subscriptions, "a/b"), [1]);
        assert!(subscriptions.forget(1, at(9)) && !subscriptions.forget(1, at(9)));
        assert_eq!(subscriptions.given_up(), [GivenUp { topic: 0, client: 3, at_ns: 5 }]);
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
