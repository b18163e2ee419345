//! Who a client is, and what its group's plan means for it.

use mqttlab_mqtt::Qos;
use mqttlab_plan::{Arrival, Churn, Group, Publish, Reconnect, qos};
use mqttlab_units::{Duration, Instant};

/// A client's number in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientNumber(pub u32);

/// A group's place in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupNumber(pub u32);

/// Who a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// Its number in the run.
    pub number: ClientNumber,
    /// Its group.
    pub group: GroupNumber,
    /// Its number in its group.
    pub index: u32,
}

/// What a group's plan means for each of its clients, worked out once.
#[derive(Clone, Debug)]
pub struct GroupFacts {
    /// What happens after a connection is lost.
    pub reconnect: Reconnect,
    /// How they come and go, if they do.
    pub churn: Option<Churn>,
    /// Whether there is something to subscribe to.
    pub subscribes: bool,
    /// What they publish of their own accord, by publication, and behind it what events make of that.
    pub publications: Box<[PublishFacts]>,
    /// How they repeat what they receive.
    pub relay: Option<RelayFacts>,
    /// How long all clients of the group together take to open their connections, and how many they are.
    pub connect_over: (Duration, u32),
}

/// What clients publish of their own accord.
#[derive(Clone, Copy, Debug)]
pub struct PublishFacts {
    /// Quality of service; the greatest, where messages of a table have their own.
    pub qos: Qos,
    /// Whether RETAIN is set.
    pub retain: bool,
    /// Whether the next message is due as soon as there is room for it.
    pub back_to_back: bool,
    /// The place of its first topic among those of the client, and how many it has.
    pub topics: (usize, u32),
    /// Which publication it is, from 0, also where an event has changed that; `None` where the client has one.
    pub publication: Option<u16>,
}

impl PublishFacts {
    /// The topic of a message by its place in the publication: its own place among those of the client.
    pub fn topic_place(&self, index: u64) -> usize {
        let (first, count) = self.topics;
        first + (index % u64::from(count)) as usize
    }
}

/// How clients repeat what they receive.
#[derive(Clone, Debug)]
pub struct RelayFacts {
    /// Appended to the topic.
    pub suffix: Box<str>,
    /// Quality of service of the copy.
    pub qos: Qos,
}

impl GroupFacts {
    /// Of a group as the plan has it.
    pub fn of(group: &Group) -> GroupFacts {
        GroupFacts {
            reconnect: group.reconnect,
            churn: group.churn,
            // A publisher of ZeroMQ waits until others have.
            subscribes: !group.subscriptions.is_empty() || group.zeromq().is_some(),
            publications: publications(group),
            relay: group
                .relay
                .as_ref()
                .map(|relay| RelayFacts { suffix: (&*relay.topic_suffix).into(), qos: qos(relay.qos) }),
            connect_over: (group.connect_over, group.count),
        }
    }

    /// The greatest quality of service of what they publish of their own accord.
    pub fn publish_qos(&self) -> Qos {
        let levels = self.publications.iter().map(|publish| publish.qos);
        levels.max().unwrap_or(Qos::AtMostOnce)
    }

    /// Whether they have messages that are due as soon as there is room for them.
    pub fn is_back_to_back(&self) -> bool {
        self.publications.iter().any(|publish| publish.back_to_back)
    }

    /// The topic of a message by its number among all of its client, as its place among the client's topics; `None` where the
    /// client has several publications, whose messages alternate as they are due.
    pub fn topic_place_of(&self, sequence: u64) -> Option<usize> {
        let (publish, others) = self.publications.split_first()?;
        others.iter().all(|other| other.topics == publish.topics).then(|| publish.topic_place(sequence))
    }

    /// When the `index`-th client opens its connection, if the first does at `start`.
    pub fn connects_at(&self, index: u32, start: Instant) -> Instant {
        let (over, count) = self.connect_over;
        // Nanoseconds times clients do not fit 64 bits.
        let share = u128::from(over.as_ns()) * u128::from(index) / u128::from(count.max(1));
        start + Duration::from_ns(share as u64)
    }
}

fn publications(group: &Group) -> Box<[PublishFacts]> {
    let mut first = 0;
    let topics = group.publications.iter().map(|publish| {
        let topics = (first, publish.topics);
        first += publish.topics as usize;
        topics
    });
    let topics: Vec<(usize, u32)> = topics.collect();
    let facts = |(content, publish): (usize, &Publish)| {
        let publication = group.publication_of(content).unwrap_or_default();
        let topics = topics[publication];
        let back_to_back = publish.arrival == Arrival::BackToBack;
        let own = publish.replay.as_ref().is_some_and(|replay| replay.columns.qos.is_some());
        let qos = if own { Qos::ExactlyOnce } else { qos(publish.qos) };
        // A plan has no more than its bounds say.
        let publication = (group.publications.len() > 1).then_some(publication as u16);
        PublishFacts { qos, retain: publish.retain, back_to_back, topics, publication }
    };
    group.contents().enumerate().map(facts).collect()
}
