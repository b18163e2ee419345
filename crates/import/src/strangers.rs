//! Deliveries that no message is known for, beside messages that nobody is known to receive: where size and content agree, a bridge, a
//! mount point or a rule of the broker may have changed the topic.
//!
//! Nothing is counted as delivered by that. What it does not model: messages that have receivers of their own, too.

use std::collections::BTreeMap;
use std::sync::Arc;

use mqttlab_capture::mqtt::{PayloadRest, fold, folded};
use mqttlab_mqtt::conventions;
use mqttlab_recording::NumberMap;
use mqttlab_units::Instant;

use super::message::SeenPublish;

/// Messages without a receiver, and deliveries without a message.
#[derive(Default)]
pub struct Strangers {
    unreceived: NumberMap<u64, Unreceived>,
    /// How often a delivery had the content of a message, by their topics.
    renamed: BTreeMap<[Arc<str>; 2], u64>,
    of_broker: u64,
}

/// Messages with one content.
struct Unreceived {
    topic: Arc<str>,
    since: Instant,
    count: u32,
}

impl Strangers {
    /// A message was published that nobody is known to receive.
    pub fn unreceived(&mut self, publish: &SeenPublish<'_>) {
        if publish.payload_bytes < CONTENT_MIN || !publish.is_whole {
            return;
        }
        let key = key(publish.payload_bytes, publish.head, publish.rest);
        if let Some(known) = self.unreceived.get_mut(&key) {
            known.count += 1;
        } else if self.unreceived.len() < UNRECEIVED_MAX {
            let topic = Arc::clone(publish.topic);
            self.unreceived.insert(key, Unreceived { topic, since: publish.first, count: 1 });
        }
    }

    /// A delivery has been given up as foreign.
    pub fn foreign(&mut self, topic: &Arc<str>, (head, rest): (&[u8], PayloadRest), at: Instant) {
        if conventions::is_of_broker(topic) {
            self.of_broker += 1;
            return;
        }
        if self.unreceived.is_empty() {
            return;
        }
        let Some(known) = self.unreceived.get_mut(&key(rest.captured, head, rest)) else { return };
        if known.count == 0 || at < known.since || known.topic == *topic {
            return;
        }
        known.count -= 1;
        if self.renamed.len() < RENAMED_MAX {
            *self.renamed.entry([Arc::clone(&known.topic), Arc::clone(topic)]).or_default() += 1;
        }
    }

    /// What foreign deliveries may be.
    pub fn warnings(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.of_broker > 0 {
            words.push(format!(
                "{} foreign deliveries are messages of the broker's own (such as `$SYS/`).",
                self.of_broker
            ));
        }
        let total: u64 = self.renamed.values().sum();
        if let Some(([from, to], count)) = self.renamed.iter().max_by_key(|(_, count)| **count) {
            let more = if total > *count {
                format!("; {} more with other topics", total - count)
            } else {
                String::new()
            };
            words.push(format!(
                "{count} foreign deliveries to `{to}` have the content of {count} messages to `{from}` that no client received{more}: \
                 a bridge, a mount point or a rule that rewrites topics may stand between them. They are not counted as \
                 delivered."
            ));
        }
        words
    }
}

/// Of contents that were captured whole.
fn key(payload_bytes: u32, head: &[u8], rest: PayloadRest) -> u64 {
    fold(folded(payload_bytes.into(), head), rest.digest)
}

/// Shorter contents are equal by chance.
const CONTENT_MIN: u32 = 4;
/// Contents that are remembered.
const UNRECEIVED_MAX: usize = 1 << 16;
/// Pairs of topics that are counted.
const RENAMED_MAX: usize = 1 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_with_the_content_of_messages_without_a_receiver_are_counted_once_each() {
        let mut strangers = Strangers::default();
        let publish = |head| SeenPublish {
            head,
            rest: PayloadRest::of(head),
            payload_bytes: 5,
            ..SeenPublish::example()
        };
        strangers.unreceived(&publish(b"21.50"));
        strangers.unreceived(&publish(b"21.51"));
        let to: Arc<str> = "plant/t".into();
        for head in [b"21.50", b"21.51", b"21.51", b"21.52"] {
            strangers.foreign(&to, (head, PayloadRest::of(head)), Instant::ZERO);
        }
        strangers.foreign(&"$SYS/uptime".into(), (b"21.50", PayloadRest::of(b"21.50")), Instant::ZERO);
        let words = strangers.warnings();
        assert_eq!(words[0], "1 foreign deliveries are messages of the broker's own (such as `$SYS/`).");
        assert!(
            words[1].starts_with("2 foreign deliveries to `plant/t` have the content of 2 messages to `t`"),
            "{words:?}"
        );
    }
}
