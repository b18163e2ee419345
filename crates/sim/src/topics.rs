//! Topic names by number: those that clients publish to by their plan first, as in the roster, then those that come up.

use std::collections::BTreeMap;

use mqttlab_mqtt::Kind;
use mqttlab_plan::Roster;

use crate::stream::Packet;

#[derive(Default)]
pub(crate) struct Topics {
    names: Vec<String>,
    numbers: BTreeMap<String, u32>,
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

    /// The topic of a PUBLISH; of other packets nothing.
    pub(crate) fn name_of(&self, packet: &Packet) -> &str {
        if packet.kind == Kind::Publish { self.name(packet.topic) } else { "" }
    }

    /// The names from this number on, in order.
    pub(crate) fn from(&self, number: usize) -> &[String] {
        &self.names[number..]
    }
}
