//! Topic names by number, and the messages that are retained under them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::TopicId;
use super::expiry::Expiry;
use crate::kind::Qos;
use crate::topic::matches;

#[derive(Clone, Debug, Default)]
pub(super) struct BrokerTopics {
    names: Vec<Arc<str>>,
    numbers: BTreeMap<Arc<str>, u32>,
    retained: Vec<Option<Retained>>,
    retained_count: usize,
}

/// A message that whoever subscribes is sent at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retained {
    pub(super) message: u64,
    pub(super) qos: Qos,
    pub(super) expires: Expiry,
}

impl BrokerTopics {
    /// The number of a name.
    pub(super) fn number(&mut self, name: &str) -> TopicId {
        if let Some(&number) = self.numbers.get(name) {
            return TopicId(number);
        }
        let number = self.names.len() as u32;
        let name: Arc<str> = name.into();
        self.names.push(Arc::clone(&name));
        self.retained.push(None);
        self.numbers.insert(name, number);
        TopicId(number)
    }

    pub(super) fn name(&self, topic: TopicId) -> &str {
        &self.names[topic.0 as usize]
    }

    /// Retains a message, or none. The one that was retained before.
    pub(super) fn retain(&mut self, topic: TopicId, message: Option<Retained>) -> Option<Retained> {
        let before = std::mem::replace(&mut self.retained[topic.0 as usize], message);
        self.retained_count += usize::from(message.is_some());
        self.retained_count -= usize::from(before.is_some());
        before
    }

    /// What is retained under the names that a filter matches.
    pub(super) fn retained(&self, filter: &str) -> Vec<(TopicId, Retained)> {
        if self.retained_count == 0 {
            return Vec::new();
        }
        let retained = |number: u32| Some((TopicId(number), self.retained[number as usize]?));
        // Without a wildcard it names one topic, and spares the walk through all of them.
        if !filter.contains(['+', '#']) {
            return self.numbers.get(filter).and_then(|&number| retained(number)).into_iter().collect();
        }
        let all = (0..self.names.len() as u32).filter_map(retained);
        all.filter(|(topic, _)| matches(filter, self.name(*topic))).collect()
    }

    /// Retains nothing any more, and hands it out.
    pub(super) fn forget_retained(&mut self) -> Vec<Retained> {
        self.retained_count = 0;
        self.retained.iter_mut().filter_map(Option::take).collect()
    }

    /// Topics with a retained message.
    pub(super) fn retained_count(&self) -> usize {
        self.retained_count
    }
}
