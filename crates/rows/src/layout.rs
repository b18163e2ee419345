//! Who is who in a recording: names behind the indices, and who should receive what.
//!
//! A recording stores it before its first row, so that it can be read without the program that knew, whatever killed that.

use std::collections::BTreeMap;

use mqttlab_units::Duration;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Names behind the indices, and who should receive what. `layout.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// The version of the recording's schema. Filled in when the layout is written.
    pub schema_version: u32,
    /// The recording's identifier, a ULID. Filled in when the recording is begun, and kept; recordings of schema
    /// version 1 have none.
    #[serde(default)]
    pub run_id: String,
    /// Who makes the recording: `live`, `simulator` or `import`. For the reader's eyes; no metric asks.
    pub producer: String,
    /// The run's seed.
    pub seed: u64,
    /// The machine it was made on. Filled in when the layout is written, unless it is given.
    pub machine: Value,
    /// The instant 0 of every time column, in nanoseconds since 1970-01-01T00:00:00Z. Where it is 0 it is filled in
    /// when the recording is begun, and stays 0 when the machine's clock cannot be right.
    pub started_unix_ns: u64,
    /// Host names; rows refer to them by index.
    pub hosts: Vec<String>,
    /// Link names; rows refer to them by index.
    pub links: Vec<String>,
    /// Clients; a publisher or subscriber in a row is an index into them.
    pub clients: Vec<Client>,
    /// Topics; rows refer to them by index.
    pub topics: Vec<Topic>,
    /// Sets of clients that share the same subscriptions, referred to by topics.
    pub receivers: Vec<Vec<u32>>,
    /// Messages intended before this belong to the warm-up. Nanoseconds since the start of the run.
    pub warm_up_end_ns: u64,
    /// Messages intended from here on belong to the cool-down; `u64::MAX` when there is none. Nanoseconds since
    /// the start of the run.
    pub measurement_end_ns: u64,
    /// After how long a delivery is late, by group: of the publisher's and the receiver's the shorter. Other groups say nothing. Layouts of
    /// earlier commits have one number, which is not read: what is completed from their spools has no late delivery.
    #[serde(default, deserialize_with = "by_group")]
    pub late_after_ns: BTreeMap<String, u64>,
    /// Whether the producer writes down every message that is dropped, as the simulator does. What is not written down
    /// as dropped is then still owed.
    #[serde(default)]
    pub drops_are_complete: bool,
    /// Whether the evidence does not say when things happened, so that nothing took any known time.
    #[serde(default)]
    pub is_untimed: bool,
    /// Who subscribes to what is not known of everybody from here on: a message without a known receiver may have some.
    /// Nanoseconds since the start of the run; `None`: it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receivers_known_until_ns: Option<u64>,
    /// Whether a message without a topic had one that the evidence does not hold, so that its receivers are not known.
    #[serde(default)]
    pub topics_may_be_missing: bool,
    /// Subscriptions that were given up while their sessions went on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<GivenUp>,
    /// Clients that should have the messages of a topic for a time, because events change their subscriptions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_receivers: Vec<ChangedReceiver>,
    /// Clients that ask for Retain As Published (MQTT 5 §3.8.3.1): RETAIN does not tell their live deliveries from copies of the store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub as_published: Vec<AsPublished>,
    /// Whether clients should have messages of a topic that they publish themselves, where that is otherwise than of others' messages:
    /// a subscription with No Local brings none (MQTT 5 §3.8.3.1). In the order of clients and topics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_receivers: Vec<ChangedReceiver>,
    /// By client: how many QoS 2 messages of it may be in flight before its broker acknowledges more and drops them, as Mosquitto
    /// does before MQTT 5; 0: any number. Empty where no broker is known to do so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inflight_limits: Vec<u16>,
    /// By topic: seconds after which no message that still waits at its broker is sent (MQTT 5 §3.3.2.3.3); 0: some may be. Empty where
    /// no broker is known to drop them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expiries_s: Vec<u32>,
    /// Shared subscriptions, as far as their members are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Share>,
    /// Of messages only sums and a sample are kept; `None`: a row of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<SummaryRule>,
}

/// When rows of messages are added up, and how many of them are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummaryRule {
    /// Rows of so many bytes are added up at once.
    pub fold_bytes: u64,
    /// So many rows are kept at most.
    pub rows_most: u64,
}

/// Whether a client should have the messages of a topic, as its subscriptions change. Its changes are performed one after another,
/// each when the one before was answered: events `subscribe` and `unsubscribe`, `suback` and `unsuback` with a detail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangedReceiver {
    /// Index into [`Layout::topics`].
    pub topic: u32,
    /// Index into [`Layout::clients`].
    pub client: u32,
    /// Whether it should before the first change.
    pub at_first: bool,
    /// The changes of the client, by number, by each of which that becomes otherwise.
    pub flips: Vec<u32>,
}

impl ChangedReceiver {
    /// Whether it should at no time.
    pub fn never(&self) -> bool {
        !self.at_first && self.flips.is_empty()
    }
}

/// Clients that should have a message, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receivers<'a> {
    all: &'a [u32],
    /// One of them, that should not.
    without: Option<u32>,
}

impl<'a> Receivers<'a> {
    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = u32> + 'a {
        self.all.iter().copied().filter(move |client| Some(*client) != self.without)
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.all.len() - usize::from(self.without.is_some())
    }

    /// Whether nobody should have it.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether a client should have it.
    pub fn contains(self, client: u32) -> bool {
        Some(client) != self.without && self.all.binary_search(&client).is_ok()
    }
}

/// A client some of whose subscriptions ask for Retain As Published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AsPublished {
    /// Index into [`Layout::clients`].
    pub client: u32,
    /// Whether it may be sent what the broker has stored.
    pub is_sent_stored: bool,
}

/// A shared subscription: each message goes to one of its members (MQTT 5 §4.8.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Its filter, `$share/NAME/FILTER`.
    pub filter: String,
    /// Indices into [`Layout::topics`], in order: what belongs to it.
    pub topics: Vec<u32>,
    /// Whoever has it, in the order of their numbers.
    pub members: Vec<ShareMember>,
    /// Whether its broker chooses once for each message, and holds none at QoS 0 for a member that is away, as Mosquitto does. Others
    /// may give it to another member later.
    pub is_final: bool,
}

/// A client that has a shared subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareMember {
    /// Index into [`Layout::clients`].
    pub client: u32,
    /// The quality of service that it asked for, where the evidence says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<u8>,
}

/// A client has given up its last subscription to a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenUp {
    /// Index into [`Layout::topics`].
    pub topic: u32,
    /// Index into [`Layout::clients`].
    pub client: u32,
    /// When, the last time. Nanoseconds since the start of the run.
    pub at_ns: u64,
}

/// A client. What it measures is in `clients.parquet`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Its name, which is also its MQTT client identifier.
    pub name: String,
    /// The scenario's group that it belongs to.
    pub group: String,
    /// The host that it lives on.
    pub host: u16,
    /// What is known about its session; `None` where the events do not tell when it is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// Whether it is a program, known by its frames alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_program: bool,
}

/// A client's session at the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// How long it outlives its connection; `None`: for ever.
    pub expiry_ns: Option<u64>,
}

/// A topic that messages are published to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topic {
    /// The topic name.
    pub name: String,
    /// Index into [`Layout::receivers`]: the clients to whose subscriptions the topic belongs.
    pub receivers: u32,
    /// How many shared subscriptions it belongs to: a delivery for each is expected, but of nobody in particular.
    #[serde(default)]
    pub shares: u32,
    /// Whether some of the receivers get a copy that a relay makes.
    #[serde(default)]
    pub relayed: bool,
}

impl Layout {
    /// The clients that should receive what `publisher` publishes to `topic`. Unknown topics have none.
    pub fn receivers_of(&self, topic: u32, publisher: u32) -> Receivers<'_> {
        let own = self.own_receivers.binary_search_by_key(&(publisher, topic), |own| (own.client, own.topic));
        let is_left_out = own.is_ok_and(|own| self.own_receivers[own].never());
        let without = is_left_out.then_some(publisher);
        let all = self.subscribers_of(topic);
        Receivers { all, without: without.filter(|client| all.binary_search(client).is_ok()) }
    }

    /// The clients to whose subscriptions `topic` belongs, in order.
    pub fn subscribers_of(&self, topic: u32) -> &[u32] {
        let set = self.topics.get(topic as usize).map(|topic| topic.receivers as usize);
        set.and_then(|set| self.receivers.get(set)).map_or(&[], Vec::as_slice)
    }

    /// How many shared subscriptions `topic` belongs to.
    pub fn shares_of(&self, topic: u32) -> u32 {
        self.topics.get(topic as usize).map_or(0, |topic| topic.shares)
    }

    /// After how many nanoseconds a delivery between these two clients is late; `None`: it never is.
    pub fn late_after(&self, publisher: Option<u32>, subscriber: u32) -> Option<u64> {
        if self.late_after_ns.is_empty() {
            return None;
        }
        let of = |client: u32| self.late_after_ns.get(&self.clients.get(client as usize)?.group).copied();
        publisher.and_then(of).into_iter().chain(of(subscriber)).min()
    }

    /// Whether relays make copies of what is published to `topic`.
    pub fn is_relayed(&self, topic: u32) -> bool {
        self.topics.get(topic as usize).is_some_and(|topic| topic.relayed)
    }

    /// How many QoS 2 messages of a client its broker takes at once without dropping any; `None`: any number, or not known.
    pub fn inflight_limit(&self, client: u32) -> Option<usize> {
        self.inflight_limits.get(client as usize).copied().filter(|&limit| limit > 0).map(usize::from)
    }

    /// How long a message of a topic may wait at its broker and still be sent; `None`: for ever, or not known.
    pub fn expiry(&self, topic: u32) -> Option<Duration> {
        let expiry_s = self.expiries_s.get(topic as usize).copied().filter(|&expiry_s| expiry_s > 0);
        expiry_s.map(|expiry_s| Duration::from_s(expiry_s.into()))
    }

    /// The name of a topic, or an empty one.
    pub fn topic_name(&self, topic: u32) -> &str {
        self.topics.get(topic as usize).map_or("", |topic| &topic.name)
    }
}

fn by_group<'de, D: Deserializer<'de>>(written: D) -> Result<BTreeMap<String, u64>, D::Error> {
    let value = Value::deserialize(written)?;
    if value.is_object() {
        serde_json::from_value(value).map_err(D::Error::custom)
    } else {
        Ok(BTreeMap::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_late_by_the_shorter_of_what_its_two_groups_say() {
        let client = |group: &str| Client {
            name: group.into(),
            group: group.into(),
            host: 0,
            session: None,
            is_program: false,
        };
        let clients = ["alarms", "images", "silent", "viewer"].map(client).into();
        let said = [("alarms", 1), ("images", 30), ("viewer", 10)].map(|(group, ns)| (group.to_string(), ns));
        let layout = Layout { clients, late_after_ns: said.into(), ..Layout::default() };
        let late = |publisher, subscriber| layout.late_after(publisher, subscriber);
        assert_eq!(
            [late(Some(0), 3), late(Some(1), 3), late(Some(2), 3), late(None, 3)],
            [1, 10, 10, 10].map(Some)
        );
        assert_eq!([late(Some(0), 2), late(Some(2), 2), late(None, 2)], [Some(1), None, None]);
        assert_eq!(Layout::default().late_after(Some(0), 3), None);
    }

    #[test]
    fn a_layout_of_an_earlier_commit_is_read() {
        let mut written = serde_json::to_value(Layout::default()).unwrap();
        for value in [serde_json::json!(500), Value::Null, serde_json::json!({})] {
            written["late_after_ns"] = value;
            assert_eq!(serde_json::from_value::<Layout>(written.clone()).unwrap(), Layout::default());
        }
    }

    #[test]
    fn a_publisher_with_no_local_is_no_receiver_of_its_own_messages_and_of_others() {
        let own = |client, flips: &[u32]| ChangedReceiver {
            topic: 0,
            client,
            at_first: false,
            flips: flips.to_vec(),
        };
        let layout = Layout {
            topics: vec![Topic { name: "a".into(), receivers: 0, shares: 0, relayed: false }],
            receivers: vec![vec![1, 3, 4]],
            own_receivers: vec![own(2, &[]), own(3, &[]), own(4, &[0])],
            ..Layout::default()
        };
        let of = |publisher| layout.receivers_of(0, publisher).iter().collect::<Vec<_>>();
        assert_eq!([of(1), of(2), of(3)], [vec![1, 3, 4], vec![1, 3, 4], vec![1, 4]]);
        assert_eq!(of(4), [1, 3, 4], "for a time");
        let third = layout.receivers_of(0, 3);
        assert_eq!(
            (third.len(), third.is_empty(), third.contains(3), third.contains(4)),
            (2, false, false, true)
        );
        assert!(layout.receivers_of(9, 3).is_empty());
    }
}
