//! Messages that their topics delay: a broker delivers what is published to `$delayed/5/t` five seconds later as `t`
//! ([`conventions::DELAYING`]), if it knows the prefix.

use std::sync::Arc;

use mqttlab_mqtt::conventions;
use mqttlab_recording::NumberMap;
use mqttlab_units::{Duration, Instant};

use super::message::{CountedMessage, SeenPublish};

/// Messages with such a topic, and how late they were delivered.
#[derive(Default)]
pub struct DelayedMessages {
    /// When they are due; `None`: their topic has a point in time.
    due: NumberMap<(u32, u32), Option<Instant>>,
    deliveries: u64,
    latest: Option<Duration>,
    early: u64,
}

/// The topic under which a message is delivered later.
pub fn inner(topic: &str) -> Option<Arc<str>> {
    conventions::delayed(topic).map(|(_, inner)| inner.into())
}

impl DelayedMessages {
    /// A message was published: the name under which it is delivered later, if its topic has one.
    pub fn published(&mut self, publish: &SeenPublish<'_>, message: CountedMessage) -> Option<Arc<str>> {
        let (after_s, inner) = conventions::delayed(publish.topic)?;
        if self.due.len() < DELAYED_MAX {
            let due = after_s.map(|after_s| publish.complete + Duration::from_s(after_s.into()));
            self.due.insert((message.publisher, message.sequence), due);
        }
        Some(inner.into())
    }

    /// A message was delivered. Answers whether it was one of these, under its later name.
    pub fn delivered(&mut self, publish: &SeenPublish<'_>, message: CountedMessage) -> bool {
        let known =
            if self.due.is_empty() { None } else { self.due.get(&(message.publisher, message.sequence)) };
        let Some(due) = known.filter(|_| conventions::delayed(publish.topic).is_none()) else { return false };
        self.deliveries += 1;
        if let Some(due) = due {
            match publish.complete.checked_since(*due) {
                Some(behind) => self.latest = Some(self.latest.map_or(behind, |known| known.max(behind))),
                None => self.early += 1,
            }
        }
        true
    }

    /// What to know of their latencies.
    pub fn warning(&self) -> Option<String> {
        let (messages, deliveries) = (self.due.len(), self.deliveries);
        if messages == 0 {
            return None;
        }
        if deliveries == 0 {
            return Some(format!(
                "{messages} messages were published to topics that some brokers delay (`$delayed/`); no delivery shows that \
                 this broker does."
            ));
        }
        let behind =
            self.latest.map(|latest| format!(", at most {:.1} ms behind it", latest.as_ns() as f64 / 1e6));
        let early = if self.early > 0 { format!("; {} came before it", self.early) } else { String::new() };
        Some(format!(
            "{messages} messages were published to topics that this broker delays (`$delayed/`): their latencies contain the \
             time that the topic asks for{}{early}.",
            behind.unwrap_or_default()
        ))
    }
}

/// Messages that are remembered.
const DELAYED_MAX: usize = 1 << 16;
