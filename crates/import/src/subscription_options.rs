//! What clients ask for with their subscriptions beside a QoS (MQTT 5 §3.8.3.1): who does not get its own messages, and whose
//! deliveries have RETAIN as it was published.

use std::collections::BTreeMap;

use mqttlab_mqtt::topic::share;
use mqttlab_mqtt::{RetainHandling, SubscriptionOptions};
use mqttlab_recording::{AsPublished, ChangedReceiver};

/// What SUBSCRIBE packets asked for, by client.
#[derive(Default)]
pub struct ObservedOptions {
    /// By client that asked for anything.
    of: BTreeMap<u32, ClientOptions>,
    /// Clients that publish to topics that they subscribe to: whether they should get their own messages.
    own: BTreeMap<(u32, u32), bool>,
}

#[derive(Default)]
struct ClientOptions {
    no_local: bool,
    as_published: bool,
    /// Whether something stored may have been sent.
    is_sent_stored: bool,
}

impl ObservedOptions {
    /// A client asked for a subscription.
    pub fn note(&mut self, client: u32, filter: &str, options: SubscriptionOptions) {
        let known = self.of.entry(client).or_default();
        known.no_local |= options.no_local;
        known.as_published |= options.retain_as_published;
        known.is_sent_stored |= share(filter).is_none() && options.retain_handling != RetainHandling::Never;
    }

    /// Whether a client ever asked for No Local.
    pub fn has_no_local(&self, client: u32) -> bool {
        self.of.get(&client).is_some_and(|known| known.no_local)
    }

    /// Notes whether a client should get a message of its own to a topic. Answers whether the topic's number stands for that: it does
    /// not where the client should have got earlier ones.
    pub fn note_own(&mut self, client: u32, topic: u32, wanted: bool) -> bool {
        let known = *self.own.entry((client, topic)).or_insert(wanted);
        wanted || !known
    }

    /// Those who do not get what they publish themselves.
    pub fn own_receivers(&self) -> Vec<ChangedReceiver> {
        let left_out = self.own.iter().filter(|(_, wanted)| !**wanted);
        let row = |(client, topic): (u32, u32)| ChangedReceiver {
            client,
            topic,
            at_first: false,
            flips: Vec::new(),
        };
        left_out.map(|(&key, _)| row(key)).collect()
    }

    /// Those whose deliveries have RETAIN as it was published.
    pub fn as_published(&self) -> Vec<AsPublished> {
        let asked = self.of.iter().filter(|(_, known)| known.as_published);
        asked.map(|(&client, known)| AsPublished { client, is_sent_stored: known.is_sent_stored }).collect()
    }
}
