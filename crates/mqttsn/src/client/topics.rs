//! Topic identifiers, as one client knows them.

use std::collections::BTreeMap;

use super::interface::{Meaning, Subject};
use crate::packet::Topic;

/// What was agreed on with the gateway.
#[derive(Clone, Debug, Default)]
pub(super) struct TopicIds {
    /// The identifier of each topic that was registered.
    registered: BTreeMap<u32, u16>,
    /// What identifiers mean, in either direction.
    meanings: BTreeMap<u16, Meaning>,
}

impl TopicIds {
    /// What a PUBLISH calls a topic; `None` where it must be registered first.
    pub(super) fn named(&self, subject: Subject) -> Option<Topic> {
        match subject {
            Subject::Known(topic) => Some(topic),
            Subject::Named(number) => self.registered.get(&number).copied().map(Topic::Registered),
        }
    }

    /// Whether the client knows what a PUBLISH calls a topic. Predefined and short ones are the shell's.
    pub(super) fn is_known(&self, topic: Topic) -> bool {
        match topic {
            Topic::Registered(id) => self.meanings.contains_key(&id),
            Topic::Predefined(_) | Topic::Short(_) => true,
        }
    }

    pub(super) fn meaning(&self, topic_id: u16) -> Option<&Meaning> {
        self.meanings.get(&topic_id)
    }

    /// The gateway has answered REGISTER.
    pub(super) fn register(&mut self, number: u32, topic_id: u16) {
        self.registered.insert(number, topic_id);
        self.meanings.insert(topic_id, Meaning::Own(number));
    }

    /// The gateway has named a topic.
    pub(super) fn learn(&mut self, topic_id: u16, meaning: Meaning) {
        // What the client publishes to itself stays known as its own.
        self.meanings.entry(topic_id).or_insert(meaning);
    }

    /// The gateway says that it does not know an identifier.
    pub(super) fn forget(&mut self, topic_id: u16) {
        if let Some(Meaning::Own(number)) = self.meanings.get(&topic_id) {
            self.registered.remove(number);
        }
        self.meanings.remove(&topic_id);
    }

    pub(super) fn clear(&mut self) {
        self.registered.clear();
        self.meanings.clear();
    }
}
