//! Topic names by number: those that somebody publishes to of their own accord first, as in the roster, then those
//! that come up.

use std::collections::BTreeMap;

use mqttlab_mqtt::broker::Broker;
use mqttlab_plan::Roster;

#[derive(Default)]
pub(crate) struct Topics {
    names: Vec<String>,
    numbers: BTreeMap<String, u32>,
    /// How many of them the broker knows.
    introduced: usize,
}

impl Topics {
    pub(crate) fn of(roster: &Roster) -> Topics {
        let mut topics = Topics::default();
        roster.topics().iter().for_each(|topic| {
            topics.number(&topic.name);
        });
        topics
    }

    /// The number of a topic, a new one if it has none.
    pub(crate) fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    pub(crate) fn name(&self, number: u32) -> &str {
        &self.names[number as usize]
    }

    /// Tells the broker the topics that it does not know, so that it numbers them alike.
    pub(crate) fn introduce(&mut self, broker: &mut Broker) {
        while let Some(name) = self.names.get(self.introduced) {
            let number = broker.topic(name).0 as usize;
            assert_eq!(
                number, self.introduced,
                "the broker numbers topics in the order in which it hears of them"
            );
            self.introduced += 1;
        }
    }
}
