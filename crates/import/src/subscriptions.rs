//! Who should receive what, as the SUBSCRIBE packets say.
//!
//! A message is expected by everyone whose filter matches its topic and was granted when it reaches the broker, and who is at
//! that broker, which [`ObservedServers`] tells in the end. Of a
//! shared subscription (MQTT 5 §4.8.2) one delivery is expected, of no member in particular ([`ObservedShares`]). A client whose SUBSCRIBE was not
//! captured is taken for a subscriber to a topic from the first message of it that it receives.
//!
//! Behind a hole in a stream a message is known only later, when its receivers may have left: subscriptions that are over
//! are remembered with their times.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use mqttlab_mqtt::topic::{is_filter, matches, share};
use mqttlab_mqtt::{SubscriptionOptions, TopicTree, conventions};
use mqttlab_recording::{GivenUp, NumberMap, Share, ShareMember, Topic};
use mqttlab_units::Instant;

use super::content_queues::taker_of_share;
use super::servers::{Brokers, ObservedServers};
use super::shares::{ObservedShare, ObservedShares};
use super::subscription_options::ObservedOptions;

/// Everybody's subscriptions, and the topics that messages were published to.
#[derive(Default)]
pub struct ObservedSubscriptions {
    tree: TopicTree<u32>,
    of_client: NumberMap<u32, Vec<HeldSubscription>>,
    sets: BTreeMap<Arc<[u32]>, u32>,
    /// The same sets by number.
    receivers: Vec<Arc<[u32]>>,
    /// Topics; their receivers may be at any server.
    topics: Vec<Topic>,
    /// The server that each topic's messages were published to.
    servers: Vec<u32>,
    numbers: NumberMap<(Arc<str>, u32, u32, u32), u32>,
    /// What holds until somebody subscribes or leaves.
    current: NumberMap<(Arc<str>, u32), u32>,
    covered: NumberMap<(u32, Arc<str>), Option<Instant>>,
    /// By client and topic, who takes messages for it.
    takers: NumberMap<(u32, Arc<str>), u32>,
    /// When subscriptions to a topic were given up, by topic and client.
    given_up: BTreeMap<(u32, u32), Instant>,
    shares: ObservedShares,
    /// Sets of shared subscriptions, and the one of each topic.
    share_sets: Vec<Vec<u32>>,
    share_set_of: Vec<u32>,
    /// Topics that the broker may deliver under other names, with their receivers if it does not.
    delayed: BTreeMap<u32, u32>,
    /// Whether it does.
    delays: bool,
    /// Subscriptions that are over, oldest first.
    past: VecDeque<Past>,
    /// When a subscription last began or ended.
    changed_at: Instant,
    options: ObservedOptions,
    /// Clients whose level says what a SUBSCRIBE of MQTT 3 cannot.
    bridges: HashSet<u32>,
}

struct HeldSubscription {
    filter: String,
    no_local: bool,
    qos: u8,
    since: Instant,
    /// Since when messages are expected; `None`: the broker has not said that it may.
    granted: Option<Instant>,
}

/// A subscription from its grant to its end.
struct Past {
    client: u32,
    filter: String,
    no_local: bool,
    qos: u8,
    granted: Instant,
    until: Instant,
}

impl ObservedSubscriptions {
    /// A client asks for a subscription: messages may come from now on. Filters that MQTT does not allow are passed
    /// over.
    pub fn ask(&mut self, client: u32, filter: &str, options: SubscriptionOptions, at: Instant) {
        if !is_filter(filter) {
            return;
        }
        let options = if self.bridges.contains(&client) { of_bridge(options) } else { options };
        self.options.note(client, filter, options);
        let no_local = options.no_local;
        let held = self.of_client.entry(client).or_default();
        if let Some(known) = held.iter_mut().find(|known| known.filter == filter) {
            // Mosquitto does not replace the option, although it should ([MQTT-3.8.4-3]): nothing is expected either way.
            known.no_local |= no_local;
            known.qos = options.qos.level();
            return;
        }
        let qos = options.qos.level();
        held.push(HeldSubscription { filter: filter.to_owned(), no_local, qos, since: at, granted: None });
        self.changed(at);
    }

    /// The highest QoS at which a client should have the messages of a topic; `None`: it should have none.
    pub fn qos_of(&self, client: u32, topic: u32) -> Option<u8> {
        self.receivers_of(topic).binary_search(&client).ok()?;
        let name = &self.topics[topic as usize].name;
        let held = self.of_client.get(&client)?.iter();
        held.filter(|held| held.granted.is_some() && covers(&held.filter, name)).map(|held| held.qos).max()
    }

    /// A client connects, as a bridge or not: whatever it subscribes to from now on.
    pub fn connect(&mut self, client: u32, is_bridge: bool) {
        if is_bridge {
            self.bridges.insert(client);
        } else {
            self.bridges.remove(&client);
        }
    }

    /// What was asked for beside filters.
    pub fn options(&self) -> &ObservedOptions {
        &self.options
    }

    /// The broker grants a subscription that was asked for: messages are expected from now on.
    pub fn grant(&mut self, client: u32, filter: &str, at: Instant) {
        let held = self.of_client.get_mut(&client).into_iter().flatten();
        let mut asked = held.filter(|known| known.filter == filter && known.granted.is_none());
        let Some(asked) = asked.next() else { return };
        asked.granted = Some(at);
        self.shares.join(filter, client);
        // A prefix of one make is a level like any other where the broker does not know it.
        if share(filter).is_none() {
            self.tree.insert(filter, client);
        }
        self.changed(at);
    }

    /// A client gives a subscription up, or does not get it.
    pub fn unsubscribe(&mut self, client: u32, filter: &str, at: Instant) {
        if let Some(held) = self.of_client.get_mut(&client) {
            let over: Vec<HeldSubscription> = held.extract_if(.., |known| known.filter == filter).collect();
            self.end(client, over, at);
            self.changed(at);
            self.give_up(client, filter, at);
        }
    }

    /// The broker refused to end a subscription: it goes on as if it had not been given up then.
    pub fn restore(&mut self, client: u32, filter: &str, given_up: Instant) {
        let ended = |past: &Past| past.client == client && past.until == given_up && past.filter == filter;
        let past = self.past.iter().rposition(ended).and_then(|place| self.past.remove(place));
        // Of shared subscriptions none is remembered.
        let (no_local, qos, granted) = match past {
            Some(past) => (past.no_local, past.qos, past.granted),
            None if self.shares.has_had(filter, client) => (false, 0, given_up),
            None => return,
        };
        self.shares.join(filter, client);
        if share(filter).is_none() {
            self.tree.insert(filter, client);
        }
        let filter = filter.to_owned();
        self.given_up.retain(|&(_, holder), at| holder != client || *at != given_up);
        let held = HeldSubscription { filter, no_local, qos, since: granted, granted: Some(granted) };
        self.of_client.entry(client).or_default().push(held);
        self.changed(given_up);
    }

    fn end(&mut self, client: u32, over: Vec<HeldSubscription>, until: Instant) {
        for HeldSubscription { filter, no_local, qos, granted, .. } in over {
            self.tree.remove(&filter, |&holder| holder == client);
            self.shares.leave(&filter, client);
            if let Some(granted) = granted.filter(|_| share(&filter).is_none()) {
                self.past.push_back(Past { client, filter, no_local, qos, granted, until });
            }
        }
        let excess = self.past.len().saturating_sub(PAST_MAX);
        self.past.drain(..excess);
    }

    /// Notes the topics that a client has heard of by this filter and by no other.
    fn give_up(&mut self, client: u32, filter: &str, at: Instant) {
        let expecting: HashSet<u32> = self
            .sets
            .iter()
            .filter(|(set, _)| set.binary_search(&client).is_ok())
            .map(|(_, &set)| set)
            .collect();
        let held = self.of_client.get(&client).map_or(&[][..], Vec::as_slice);
        for (number, topic) in self.topics.iter().enumerate() {
            let elsewhere =
                || held.iter().any(|held| held.granted.is_some() && matches(&held.filter, &topic.name));
            if expecting.contains(&topic.receivers) && matches(filter, &topic.name) && !elsewhere() {
                self.given_up.insert((number as u32, client), at);
            }
        }
    }

    /// A client's session is over, and with it the subscriptions that it asked for before a time. Says whether there
    /// were any.
    pub fn forget(&mut self, client: u32, before: Instant, at: Instant) -> bool {
        let Some(held) = self.of_client.get_mut(&client) else { return false };
        let over: Vec<HeldSubscription> = held.extract_if(.., |held| held.since < before).collect();
        let any = !over.is_empty();
        self.end(client, over, at);
        if any {
            self.changed(at);
        }
        any
    }

    /// A message reached a client, so that what it asked for and fits was granted.
    pub fn prove(&mut self, client: u32, topic: &str) {
        let asked = self.of_client.get(&client).into_iter().flatten();
        let proved: Vec<(String, Instant)> = asked
            .filter(|held| held.granted.is_none() && covers(&held.filter, topic))
            .map(|held| (held.filter.clone(), held.since))
            .collect();
        for (filter, since) in proved {
            self.grant(client, &filter, since);
        }
    }

    /// Since when a client is subscribed to a topic; `None` when it is not.
    pub fn since(&mut self, client: u32, topic: &Arc<str>) -> Option<Instant> {
        let key = (client, Arc::clone(topic));
        if !self.covered.contains_key(&key) {
            self.prove(client, topic);
        }
        let held = self.of_client.get(&client)?;
        let shares = &mut self.shares;
        *self.covered.entry(key).or_insert_with(|| {
            let covering = || held.iter().filter(|held| covers(&held.filter, topic));
            if !covering().any(|held| matches(&held.filter, topic)) {
                covering().for_each(|held| shares.prove(&held.filter, topic));
            }
            covering().map(|held| held.since).min()
        })
    }

    /// Who takes the messages of a topic that reach a client: itself, or its shared subscription, where that is the only one it
    /// has them by.
    pub fn taker(&mut self, client: u32, topic: &Arc<str>) -> u32 {
        if self.shares.is_empty() {
            return client;
        }
        let (held, shares) = (self.of_client.get(&client).map_or(&[][..], Vec::as_slice), &self.shares);
        *self.takers.entry((client, Arc::clone(topic))).or_insert_with(|| {
            let mut covering = held.iter().filter(|held| covers(&held.filter, topic));
            match (covering.next(), covering.next()) {
                (Some(only), None) if !matches(&only.filter, topic) => {
                    shares.number_of(&only.filter, topic).map_or(client, taker_of_share)
                }
                _ => client,
            }
        })
    }

    /// How many second copies of a message a client's subscriptions to its topic may bring: the broker may send one for each
    /// that overlaps ([MQTT-3.3.5-1], MQTT 5 §3.3.4).
    pub fn copies_each(&self, client: u32, topic: &str) -> u64 {
        let held = self.of_client.get(&client).map_or(&[][..], Vec::as_slice);
        let covering = held.iter().filter(|held| held.granted.is_some() && covers(&held.filter, topic));
        if held.len() > 1 { (covering.count() as u64).saturating_sub(1) } else { 0 }
    }

    /// The number of a topic of a server, with those anywhere who subscribe to it when a message reaches the server.
    pub fn topic(&mut self, name: &Arc<str>, at: Instant, server: u32) -> u32 {
        if at < self.changed_at {
            let (receivers, shares) = (self.receivers_at(name, at), self.share_set(name));
            return self.topic_with(name, receivers, shares, server);
        }
        let key = (Arc::clone(name), server);
        if let Some(&number) = self.current.get(&key) {
            return number;
        }
        let mut receivers = Vec::new();
        self.tree.each_match(name, |&client| receivers.push(client));
        let shares = self.share_set(name);
        let number = self.topic_with(name, receivers, shares, server);
        self.current.insert(key, number);
        number
    }

    /// The shared subscriptions of a name, as a set with a number.
    fn share_set(&mut self, name: &str) -> u32 {
        let set = self.shares.of(name);
        let known = self.share_sets.iter().position(|known| *known == set);
        let number = known.unwrap_or(self.share_sets.len());
        if known.is_none() {
            self.share_sets.push(set);
        }
        number as u32
    }

    /// As [`ObservedSubscriptions::topic_from`], for a message that the broker may deliver later as `inner`: to those who subscribe
    /// to that, once a delivery shows that it does.
    pub fn topic_delayed(
        &mut self,
        client: u32,
        [name, inner]: [&Arc<str>; 2],
        at: Instant,
        server: u32,
    ) -> u32 {
        let [literal, later] = [name, inner].map(|name| self.topic_from(client, name, at, server));
        let mut receivers = self.receivers_of(literal).to_vec();
        receivers.extend_from_slice(self.receivers_of(later));
        let shares = self.share_set_of[later as usize];
        let number = self.topic_with(name, receivers, shares, server);
        if number != literal {
            let undelayed = self.topics[literal as usize].receivers;
            self.delayed.insert(number, undelayed);
        }
        number
    }

    /// A delivery shows that the broker delivers such messages later.
    pub fn prove_delay(&mut self) {
        self.delays = true;
    }

    /// Whether some of a topic's messages may be expected by a client.
    pub fn has_receivers(&self, topic: u32) -> bool {
        let shares = self.share_sets.get(self.share_set_of[topic as usize] as usize);
        !self.receivers_of(topic).is_empty() || shares.is_some_and(|set| !set.is_empty())
    }

    /// As [`ObservedSubscriptions::topic`], for a message of this client.
    pub fn topic_from(&mut self, client: u32, name: &Arc<str>, at: Instant, server: u32) -> u32 {
        let topic = self.topic(name, at, server);
        let subscribes = |own: &Self| own.receivers_of(topic).binary_search(&client).is_ok();
        if !self.options.has_no_local(client) || !subscribes(self) {
            return topic;
        }
        let wanted = self.wants_own(client, name, at);
        if self.options.note_own(client, topic, wanted) {
            return topic;
        }
        let others = self.receivers_of(topic).iter().copied().filter(|&other| other != client);
        let (others, shares) = (others.collect(), self.share_set_of[topic as usize]);
        self.topic_with(name, others, shares, server)
    }

    /// Whether a subscription without No Local brings a client its own messages (MQTT 5 §3.8.3.1).
    fn wants_own(&self, client: u32, name: &str, at: Instant) -> bool {
        let wants =
            |filter: &str, no_local: bool| !no_local && share(filter).is_none() && matches(filter, name);
        let held = self.of_client.get(&client).into_iter().flatten();
        let mut held = held.filter(|held| held.granted.is_some_and(|granted| granted <= at));
        let mut past = self.past.iter().filter(|past| past.client == client);
        held.any(|held| wants(&held.filter, held.no_local))
            || past.any(|past| past.granted <= at && at < past.until && wants(&past.filter, past.no_local))
    }

    /// The name of a topic.
    pub fn topic_name(&self, topic: u32) -> &str {
        self.topics.get(topic as usize).map_or("", |topic| &topic.name)
    }

    /// Who subscribes to the messages of a topic, at whatever server.
    pub fn receivers_of(&self, topic: u32) -> &[u32] {
        &self.receivers[self.topics[topic as usize].receivers as usize]
    }

    /// Who received a topic at an earlier time.
    fn receivers_at(&self, name: &str, at: Instant) -> Vec<u32> {
        let held =
            self.of_client.iter().flat_map(|(&client, held)| held.iter().map(move |held| (client, held)));
        let present = held
            .filter(|(_, held)| held.granted.is_some_and(|granted| granted <= at))
            .filter(|(_, held)| share(&held.filter).is_none() && matches(&held.filter, name))
            .map(|(client, _)| client);
        let past = self.past.iter().filter(|past| past.granted <= at && at < past.until);
        present.chain(past.filter(|past| matches(&past.filter, name)).map(|past| past.client)).collect()
    }

    /// The number of a topic of a server whose message these clients should receive, as far as they are at its broker.
    pub fn topic_for(&mut self, name: &Arc<str>, receivers: Vec<u32>, server: u32) -> u32 {
        let none = self.share_set("");
        self.topic_with(name, receivers, none, server)
    }

    fn topic_with(&mut self, name: &Arc<str>, mut receivers: Vec<u32>, shares: u32, server: u32) -> u32 {
        receivers.sort_unstable();
        receivers.dedup();
        let set = match self.sets.get(&*receivers) {
            Some(&set) => set,
            None => {
                let (set, receivers) = (self.receivers.len() as u32, Arc::<[u32]>::from(receivers));
                self.receivers.push(Arc::clone(&receivers));
                self.sets.insert(receivers, set);
                set
            }
        };
        let (topics, servers) = (&mut self.topics, &mut self.servers);
        let share_set_of = &mut self.share_set_of;
        *self.numbers.entry((Arc::clone(name), set, shares, server)).or_insert_with(|| {
            topics.push(Topic { name: name.to_string(), receivers: set, shares: 0, relayed: false });
            servers.push(server);
            share_set_of.push(shares);
            topics.len() as u32 - 1
        })
    }

    /// When somebody first asked for a subscription of which nobody knows whether it was granted.
    pub fn unanswered(&self) -> Option<Instant> {
        self.of_client.values().flatten().filter(|held| held.granted.is_none()).map(|held| held.since).min()
    }

    /// What was given up by UNSUBSCRIBE.
    pub fn given_up(&self) -> Vec<GivenUp> {
        let rows = self.given_up.iter();
        rows.map(|(&(topic, client), at)| GivenUp { topic, client, at_ns: at.as_ns() }).collect()
    }

    /// What SUBSCRIBE packets of shared subscriptions leave open.
    pub fn warnings(&self) -> Vec<String> {
        self.shares.warnings()
    }

    /// Shared subscriptions with all who ever had them: those of one filter at several brokers share nothing.
    pub fn shares(&self, servers: &ObservedServers) -> Vec<Share> {
        let brokers = servers.brokers();
        let known = self.shares.proved().flat_map(|(number, share)| {
            members_by_broker(share, servers, brokers)
                .into_iter()
                .map(move |(broker, members)| (number, share, broker, members))
        });
        let row = |(number, share, broker, members): (u32, &ObservedShare, u32, Vec<u32>)| Share {
            filter: share.filter.clone(),
            topics: (0..self.topics.len() as u32)
                .filter(|&topic| brokers.of(self.servers[topic as usize]) == broker)
                .filter(|&topic| self.shares_of(topic).contains(&number))
                .collect(),
            members: members.into_iter().map(|client| ShareMember { client, qos: None }).collect(),
            // Nobody says how this broker chooses.
            is_final: false,
        };
        known.map(row).collect()
    }

    /// The shared subscriptions of a topic that its broker is known to treat as such.
    fn shares_of(&self, topic: u32) -> Vec<u32> {
        if !self.delays && self.delayed.contains_key(&topic) {
            return Vec::new();
        }
        let set = self.share_sets.get(self.share_set_of[topic as usize] as usize);
        set.into_iter().flatten().copied().filter(|&share| self.shares.is_proved(share)).collect()
    }

    /// Topics and sets of receivers, by number: of each topic those who are at the broker of its server.
    pub fn into_layout(mut self, servers: &ObservedServers) -> (Vec<Topic>, Vec<Vec<u32>>) {
        for share in self.shares(servers) {
            share.topics.iter().for_each(|&topic| self.topics[topic as usize].shares += 1);
        }
        for (&topic, &receivers) in self.delayed.iter().filter(|_| !self.delays) {
            self.topics[topic as usize].receivers = receivers;
        }
        if servers.are_several() {
            let (brokers, everyone) = (servers.brokers(), std::mem::take(&mut self.receivers));
            self.sets.clear();
            for (topic, &server) in self.topics.iter_mut().zip(&self.servers) {
                let broker = brokers.of(server);
                let own = everyone[topic.receivers as usize].iter().copied();
                let own: Arc<[u32]> =
                    own.filter(|&client| brokers.of(servers.of(client)) == broker).collect();
                let next = self.receivers.len() as u32;
                topic.receivers = *self.sets.entry(Arc::clone(&own)).or_insert(next);
                if topic.receivers == next {
                    self.receivers.push(own);
                }
            }
        }
        (self.topics, self.receivers.iter().map(|receivers| receivers.to_vec()).collect())
    }

    fn changed(&mut self, at: Instant) {
        self.changed_at = self.changed_at.max(at);
        self.current.clear();
        self.covered.clear();
        self.takers.clear();
    }
}

/// What a broker makes of a bridge's subscription: its own messages do not come back, and RETAIN stays as it was published.
fn of_bridge(options: SubscriptionOptions) -> SubscriptionOptions {
    SubscriptionOptions { no_local: true, retain_as_published: true, ..options }
}

/// The members of a shared subscription at each broker.
fn members_by_broker(
    share: &ObservedShare,
    servers: &ObservedServers,
    brokers: &Brokers,
) -> BTreeMap<u32, Vec<u32>> {
    let mut members = BTreeMap::<u32, Vec<u32>>::new();
    for &client in &share.members {
        members.entry(brokers.of(servers.of(client))).or_default().push(client);
    }
    members
}

/// Whether a filter may bring messages of a topic, itself or as a shared subscription.
fn covers(filter: &str, topic: &str) -> bool {
    matches(filter, topic) || conventions::shares(filter).any(|(_, inner)| matches(inner, topic))
}

/// Subscriptions that are over and remembered; the oldest is forgotten first.
const PAST_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::super::servers::KnownBrokers;
    use super::*;
    use mqttlab_capture::SocketEndpoint;
    use mqttlab_mqtt::Qos;

    fn receivers(subscriptions: &mut ObservedSubscriptions, topic: &str) -> Vec<u32> {
        receivers_at(subscriptions, topic, 99)
    }

    fn receivers_at(subscriptions: &mut ObservedSubscriptions, topic: &str, at_ns: u64) -> Vec<u32> {
        let number = subscriptions.topic(&topic.into(), Instant::from_ns(at_ns), 0);
        subscriptions.receivers_of(number).to_vec()
    }

    #[test]
    fn a_topic_is_for_those_who_subscribe_at_the_time() {
        let mut subscriptions = ObservedSubscriptions::default();
        let at = Instant::from_ns;
        for (client, filter, asked) in [(3, "a/+", 1), (1, "a/#", 2), (1, "a/b", 3), (4, "#", 4)] {
            subscriptions.ask(client, filter, Qos::AtMostOnce.into(), at(asked));
        }
        for (client, filter) in [(3, "a/+"), (1, "a/#"), (1, "a/b")] {
            subscriptions.grant(client, filter, at(4));
        }
        assert_eq!(receivers(&mut subscriptions, "a/b"), [1, 3]);
        assert_eq!(subscriptions.since(1, &"a/b".into()), Some(at(2)));
        subscriptions.unsubscribe(3, "a/+", at(5));
        assert_eq!(receivers(&mut subscriptions, "a/b"), [1]);
        assert!(subscriptions.forget(1, at(9), at(9)) && !subscriptions.forget(1, at(9), at(9)));
        assert_eq!(subscriptions.given_up(), [GivenUp { topic: 0, client: 3, at_ns: 5 }]);
        assert_eq!(receivers(&mut subscriptions, "a/b"), [0_u32; 0]);
        assert_eq!(subscriptions.topics.len(), 3, "one for each set of receivers");
    }

    #[test]
    fn a_message_that_is_known_late_is_for_those_who_subscribed_when_it_reached_the_broker() {
        let mut subscriptions = ObservedSubscriptions::default();
        let at = Instant::from_ns;
        for (client, granted) in [(1, 10), (2, 30)] {
            subscriptions.ask(client, "a/#", Qos::AtMostOnce.into(), at(granted - 1));
            subscriptions.grant(client, "a/#", at(granted));
        }
        subscriptions.forget(1, at(u64::MAX), at(20));
        subscriptions.unsubscribe(2, "a/#", at(40));
        let mut received = |at_ns| receivers_at(&mut subscriptions, "a/b", at_ns);
        assert_eq!(
            [received(9), received(15), received(25), received(35), received(45)],
            [vec![], vec![1], vec![], vec![2], vec![]]
        );
    }

    #[test]
    fn a_subscription_that_the_broker_would_not_end_goes_on() {
        let mut subscriptions = ObservedSubscriptions::default();
        let at = Instant::from_ns;
        subscriptions.ask(1, "a/#", Qos::AtMostOnce.into(), at(1));
        subscriptions.grant(1, "a/#", at(2));
        assert_eq!(receivers_at(&mut subscriptions, "a/b", 3), [1]);
        subscriptions.unsubscribe(1, "a/#", at(5));
        subscriptions.restore(1, "a/#", at(5));
        assert_eq!((receivers_at(&mut subscriptions, "a/b", 9), subscriptions.given_up()), (vec![1], vec![]));
        assert_eq!(subscriptions.since(1, &"a/b".into()), Some(at(2)));
    }

    #[test]
    fn a_client_with_no_local_should_not_get_its_own_messages_unless_another_filter_brings_them() {
        let mut subscriptions = ObservedSubscriptions::default();
        let at = Instant::from_ns;
        let silent = SubscriptionOptions { no_local: true, ..Qos::AtMostOnce.into() };
        for (client, filter, options) in [
            (1, "a/#", silent),
            (2, "a/#", Qos::AtMostOnce.into()),
            (3, "+/b", silent),
            (3, "a/b", Qos::AtMostOnce.into()),
        ] {
            subscriptions.ask(client, filter, options, at(1));
            subscriptions.grant(client, filter, at(2));
        }
        let name: Arc<str> = "a/b".into();
        let topics = [1, 2, 3].map(|client| subscriptions.topic_from(client, &name, at(9), 0));
        assert_eq!(topics, [0, 0, 0], "one topic, whoever publishes");
        let left_out: Vec<_> =
            subscriptions.options().own_receivers().iter().map(|own| (own.client, own.topic)).collect();
        assert_eq!(left_out, [(1, 0)]);
        // A subscription that turns to No Local: what was published before was expected.
        subscriptions.unsubscribe(3, "a/b", at(10));
        subscriptions.ask(2, "a/#", silent, at(11));
        let [second, third] = [2, 3].map(|client| subscriptions.topic_from(client, &name, at(12), 0));
        assert_eq!(second, 0, "nobody noted whether the client should get its own before");
        assert_ne!(third, 0);
        assert_eq!(subscriptions.receivers_of(third), [1, 2]);
    }

    #[test]
    fn a_shared_subscription_covers_its_topics_and_expects_nothing() {
        let mut subscriptions = ObservedSubscriptions::default();
        subscriptions.ask(3, "$share/team/a/b", Qos::AtMostOnce.into(), Instant::ZERO);
        subscriptions.grant(3, "$share/team/a/b", Instant::ZERO);
        assert_eq!(receivers(&mut subscriptions, "a/b"), [0_u32; 0]);
        assert_eq!(subscriptions.since(3, &"a/b".into()), Some(Instant::ZERO));
        assert_eq!(subscriptions.since(4, &"a/b".into()), None);
        let shares = subscriptions.shares(&ObservedServers::default());
        let members = vec![ShareMember { client: 3, qos: None }];
        let filter = "$share/team/a/b".to_owned();
        assert_eq!(shares, [Share { filter, topics: vec![0], members, is_final: false }]);
    }

    #[test]
    fn a_shared_subscription_at_another_listener_of_the_broker_counts_and_at_another_broker_it_does_not() {
        for (known, expected) in
            [(KnownBrokers::One, vec![vec![3, 4]]), (KnownBrokers::Separate, vec![vec![3], vec![4]])]
        {
            let mut servers = ObservedServers::new(known);
            let end = |port| SocketEndpoint { address: std::net::Ipv4Addr::LOCALHOST.into(), port };
            [(3, 1883), (4, 8083)].into_iter().for_each(|(client, port)| servers.assign(client, end(port)));
            let mut subscriptions = ObservedSubscriptions::default();
            for client in [3, 4] {
                subscriptions.ask(client, "$share/team/t", Qos::AtMostOnce.into(), Instant::ZERO);
                subscriptions.grant(client, "$share/team/t", Instant::ZERO);
            }
            let topics = [0, 1].map(|server| subscriptions.topic(&"t".into(), Instant::from_ns(9), server));
            let shares = subscriptions.shares(&servers);
            let members =
                |share: &Share| share.members.iter().map(|member| member.client).collect::<Vec<_>>();
            assert_eq!(shares.iter().map(members).collect::<Vec<_>>(), expected);
            let (known, _) = subscriptions.into_layout(&servers);
            assert_eq!(topics.map(|topic| known[topic as usize].shares), [1, 1]);
        }
    }
}
