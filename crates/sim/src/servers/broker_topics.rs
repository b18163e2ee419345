//! What a broker knows the topics of a simulation by: it numbers them in the order in which it hears of them.

use mqttlab_mqtt::broker::{Broker, TopicId};

use crate::ids::ServerId;
use crate::topics::SimTopics;

/// The numbers of topics, both ways.
#[derive(Default)]
pub(super) struct BrokerTopics {
    /// What the broker knows each topic of the simulation by; of other servers' topics nothing.
    ids: Vec<Option<TopicId>>,
    /// The topic of the simulation, by the broker's number.
    numbers: Vec<u32>,
}

impl BrokerTopics {
    /// Tells the broker those of its topics that it does not know, in the order in which they came up.
    pub(super) fn introduce(&mut self, broker: &mut Broker, server: ServerId, topics: &SimTopics) {
        for number in self.ids.len() as u32..topics.len() {
            let known = (topics.server(number) == server).then(|| broker.topic(topics.name(number)));
            if let Some(TopicId(place)) = known {
                assert_eq!(
                    place as usize,
                    self.numbers.len(),
                    "a broker numbers topics in the order in which it hears of them"
                );
                self.numbers.push(number);
            }
            self.ids.push(known);
        }
    }

    /// What the broker knows a topic by that a client of it has named.
    pub(super) fn id(&self, number: u32) -> TopicId {
        self.ids[number as usize].expect("a client names topics of its own server")
    }

    /// The topic of the simulation that the broker means.
    pub(super) fn number(&self, id: TopicId) -> u32 {
        self.numbers[id.0 as usize]
    }
}
