//! Topics by number: those that clients publish to by their plan first, as in the roster, then those that come up. A topic
//! belongs to a server: two of one name at two servers have nothing to do with each other.

use std::collections::BTreeMap;

use mqttlab_plan::Roster;

use crate::hosts::stream::StreamPacket;
use crate::ids::{Id, ServerId};

#[derive(Default)]
pub(crate) struct SimTopics {
    topics: Vec<(ServerId, String)>,
    /// The numbers of each server's topics.
    numbers: Vec<BTreeMap<String, u32>>,
}

impl SimTopics {
    pub(crate) fn of(roster: &Roster) -> SimTopics {
        let mut topics = SimTopics::default();
        roster.topics().iter().for_each(|topic| {
            topics.number(ServerId::from_index(topic.server), &topic.name);
        });
        topics
    }

    /// The number of a server's topic, a new one if it has none.
    pub(crate) fn number(&mut self, server: ServerId, name: &str) -> u32 {
        if self.numbers.len() <= server.index() {
            self.numbers.resize_with(server.index() + 1, BTreeMap::new);
        }
        let numbers = &mut self.numbers[server.index()];
        if let Some(&number) = numbers.get(name) {
            return number;
        }
        let number = self.topics.len() as u32;
        self.topics.push((server, name.to_owned()));
        numbers.insert(name.to_owned(), number);
        number
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u32 {
        self.topics.len() as u32
    }

    pub(crate) fn name(&self, number: u32) -> &str {
        &self.topics[number as usize].1
    }

    pub(crate) fn server(&self, number: u32) -> ServerId {
        self.topics[number as usize].0
    }

    /// The topic of a message; of other packets nothing.
    pub(crate) fn name_of(&self, packet: &StreamPacket) -> &str {
        if packet.kind.is_message() { self.name(packet.topic) } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_servers_topics_of_one_name_are_two() {
        let mut topics = SimTopics::default();
        let [here, there] = [ServerId(1), ServerId(0)].map(|server| topics.number(server, "a"));
        assert_ne!(here, there);
        assert_eq!((topics.number(ServerId(1), "a"), topics.len()), (here, 2));
        assert_eq!((topics.name(there), topics.server(there)), ("a", ServerId(0)));
    }
}
