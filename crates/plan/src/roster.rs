//! Who is who in a run: the numbers of clients and topics, and who should receive what.
//!
//! Worked out from the plan before anything starts, because the recording stores it before its first row, and
//! because a message's expected deliveries are counted when it is sent. The live run and the simulator number alike.
//!
//! What it does not know: which member of a shared subscription (`$share/...`) the broker chooses. Nothing is
//! expected of any of them; one delivery is expected of all of them together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mqttlab_units::{Bytes, Seed};

use crate::arrivals::publication_seed;
use crate::own_messages::own_receivers;
use crate::topic::fill;
use crate::{
    ChangedReceiver, Endpoint, Group, NetworkKind, Plan, PlannedShare, PlannedSubscriptions, Protocol,
    ProtocolVersion, Publish, Replay, ReplayTable, ReplayedMessage, Role, Server,
};

/// Numbers behind names.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    topics: Vec<RosterTopic>,
    receivers: Vec<Vec<u32>>,
    /// By server and name.
    numbers: BTreeMap<(usize, String), u32>,
    shares: Vec<PlannedShare>,
    /// For each client the topics it publishes to, those of a publication in the order of `{topic}`.
    published: Vec<Vec<u32>>,
    own: Vec<ChangedReceiver>,
}

/// A topic of a server: two servers may have topics of one name, which have nothing to do with each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RosterTopic {
    /// Index of the server.
    pub server: usize,
    /// The topic name.
    pub name: String,
    /// Index into [`Roster::receivers`].
    pub receivers: u32,
    /// How many deliveries a message causes: one for each receiver, and one for each shared subscription. Of a publisher with No
    /// Local see [`Roster::deliveries`].
    pub deliveries: u32,
    /// The shared subscriptions that it belongs to: indices into [`Roster::shares`].
    pub shares: Vec<u32>,
    /// Whether a relay makes copies of its messages.
    pub relayed: bool,
}

impl Roster {
    /// Everybody in a plan.
    pub fn of(plan: &Plan) -> Roster {
        let mut roster = Roster::default();
        for group in &plan.groups {
            for client in 0..group.count {
                let topics = roster.published_by(group, plan.serving(group), client);
                roster.published.push(topics);
            }
        }
        roster.find_receivers(&PlannedSubscriptions::of(plan));
        roster.own = own_receivers(plan, &roster.topics, &roster.published);
        roster
    }

    /// Where No Local makes it otherwise than for others' messages: whether a client should have its own. In the order of clients and
    /// topics.
    pub fn own_receivers(&self) -> &[ChangedReceiver] {
        &self.own
    }

    /// How many deliveries a message to a topic causes: one for each receiver, and one for each shared subscription.
    pub fn deliveries(&self, topic: u32, publisher: u32) -> u32 {
        let own = self.own.binary_search_by_key(&(publisher, topic), |own| (own.client, own.topic));
        let is_left_out = own.is_ok_and(|own| self.own[own].never());
        self.topics[topic as usize].deliveries - u32::from(is_left_out)
    }

    /// The topics that somebody publishes to of their own accord, by number.
    pub fn topics(&self) -> &[RosterTopic] {
        &self.topics
    }

    /// Sets of clients that topics have for receivers.
    pub fn receivers(&self) -> &[Vec<u32>] {
        &self.receivers
    }

    /// Shared subscriptions.
    pub fn shares(&self) -> &[PlannedShare] {
        &self.shares
    }

    /// The topics that `client` publishes to: publication by publication, in the order of `{topic}`.
    pub fn published(&self, client: u32) -> &[u32] {
        &self.published[client as usize]
    }

    fn published_by(&mut self, group: &Group, serving: usize, client: u32) -> Vec<u32> {
        let names = group.publications.iter().flat_map(|publish| publish.topic_names(&group.name, client));
        names.map(|name| self.number(serving, name)).collect()
    }

    fn number(&mut self, server: usize, name: String) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry((server, name.clone())).or_insert_with(|| {
            self.topics.push(RosterTopic {
                server,
                name,
                receivers: 0,
                deliveries: 0,
                shares: Vec::new(),
                relayed: false,
            });
            next
        })
    }

    fn find_receivers(&mut self, subscriptions: &PlannedSubscriptions<'_>) {
        let mut sets: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        for topic in &mut self.topics {
            let audience = subscriptions.audience(topic.server, &topic.name);
            topic.deliveries = (audience.clients.len() + audience.shares.len()) as u32;
            (topic.shares, topic.relayed) = (audience.shares.into_iter().collect(), audience.relayed);
            let next = sets.len() as u32;
            topic.receivers = *sets.entry(audience.clients.into_iter().collect()).or_insert(next);
        }
        self.shares = subscriptions.shares().to_vec();
        self.receivers = vec![Vec::new(); sets.len()];
        for (set, index) in sets {
            self.receivers[index as usize] = set;
        }
    }
}

impl Group {
    /// What the payloads of its `publication`-th publication are derived from.
    pub fn payload_seed(&self, run: Seed, publication: usize) -> Seed {
        publication_seed(run.derive("payload").derive(&self.name), publication)
    }

    /// The greatest quality of service of what its clients publish of their own accord.
    pub fn publish_qos(&self) -> u8 {
        self.contents().map(|publish| publish.qos).max().unwrap_or(0)
    }

    /// What messages may be: its publications, and behind them what events make of these.
    pub fn contents(&self) -> impl Iterator<Item = &Publish> {
        self.publications.iter().chain(self.changed_publications.iter().map(|changed| &changed.publish))
    }

    /// What messages of this number are; see [`Group::contents`].
    ///
    /// # Panics
    /// When there is none.
    pub fn content(&self, number: usize) -> &Publish {
        match number.checked_sub(self.publications.len()) {
            None => &self.publications[number],
            Some(changed) => &self.changed_publications[changed].publish,
        }
    }

    /// The publication whose messages have a content, by its number.
    pub fn publication_of(&self, content: usize) -> Option<usize> {
        match content.checked_sub(self.publications.len()) {
            None => Some(content),
            Some(changed) => self.changed_publications.get(changed).map(|changed| changed.publication),
        }
    }

    /// The host of the `client`-th client of the group.
    pub fn host_of(&self, client: u32) -> usize {
        let turn = self.hosts_in_turn.map_or(client, |hosts| client % hosts.max(1));
        self.host + turn as usize * self.host_step
    }

    /// How many hosts the group's clients sit on.
    pub fn host_count(&self) -> u32 {
        if self.host_step == 0 {
            self.count.min(1)
        } else {
            self.hosts_in_turn.map_or(self.count, |hosts| hosts.min(self.count))
        }
    }
}

impl Publish {
    /// The topics that a client publishes to, in the order of `{topic}`, or of the table that it replays.
    pub fn topic_names<'a>(&'a self, group: &'a str, client: u32) -> impl Iterator<Item = String> + use<'a> {
        let replayed = self.replay.as_ref().map(Replay::topics);
        (0..self.topics).map(move |topic| match replayed.and_then(|topics| topics.get(topic as usize)) {
            Some(name) => fill(name, group, client, topic),
            None => self.topic.fill(group, client, topic),
        })
    }

    /// The table that it replays, if it does.
    pub(crate) fn replayed(&self) -> Option<Arc<ReplayTable>> {
        self.replay.as_ref()?.table.clone()
    }

    fn said(&self, client: u32, index: u64) -> Option<ReplayedMessage<'_>> {
        self.replay.as_ref()?.table.as_ref()?.message(client, index)
    }

    /// Which of its topics a client's message has, by its place in the publication.
    pub fn topic_index(&self, client: u32, index: u64) -> u64 {
        self.said(client, index).map_or(index, |said| said.topic.into())
    }

    /// The quality of service of a client's message that is replayed, and whether RETAIN is set.
    pub fn quality(&self, client: u32, index: u64) -> Option<(u8, bool)> {
        let said = self.said(client, index)?;
        Some((said.qos.unwrap_or(self.qos), said.retain.unwrap_or(self.retain)))
    }

    /// The smallest size that a client's messages to one of its topics may have, by the topic's place; `None` where it
    /// publishes none to it.
    pub fn least_bytes(&self, client: u32, topic: u32) -> Option<Bytes> {
        let least = self.payload.least();
        let Some(table) = self.replayed() else { return Some(least) };
        let replayed = table.least_size(client, topic)?;
        let said = replayed.said.map(|said| Bytes(said.into()));
        said.into_iter().chain(replayed.is_left_out.then_some(least)).min()
    }
}

impl Plan {
    /// Every client in the order of their numbers: its group, and its number in it.
    pub fn clients(&self) -> impl Iterator<Item = (&Group, u32)> {
        self.groups.iter().flat_map(|group| (0..group.count).map(move |client| (group, client)))
    }

    /// By client: how many of its QoS 2 messages may be in flight before its broker acknowledges more and drops them; 0 where it does
    /// not, or nobody knows. Mosquitto does so below MQTT 5, where nothing tells a client of the limit, and closes the
    /// connection instead where it queues nothing.
    pub fn inflight_limits(&self) -> Vec<u16> {
        let limit = |group: &Group| {
            let server = &self.servers[group.connects_to];
            match (&server.role, &group.protocol) {
                (Role::Broker(broker), Protocol::Mqtt(mqtt))
                    if server.kind == "mosquitto"
                        && mqtt.version != ProtocolVersion::V5
                        && broker.settings.max_queued > 0 =>
                {
                    u16::try_from(broker.settings.max_inflight).unwrap_or(0)
                }
                _ => 0,
            }
        };
        let limits: Vec<u16> = self.clients().map(|(group, _)| limit(group)).collect();
        if limits.iter().any(|&limit| limit > 0) { limits } else { Vec::new() }
    }

    /// The links' names by number: links, radio media, and then what frames cross that cross none of these:
    /// `direct` between hosts, `loopback` within one, where there are such frames.
    pub fn link_names(&self) -> Vec<String> {
        let media = self.network.media.iter().map(|medium| medium.name.clone());
        let links = self.network.links.iter().map(|link| link.name.clone()).chain(media);
        let direct = self.has_direct_paths().then(|| DIRECT.to_owned());
        links.chain(direct).chain(self.has_local_clients().then(|| LOOPBACK.to_owned())).collect()
    }

    /// The number of the link that stands for paths between hosts which cross nothing.
    pub fn direct_link(&self) -> usize {
        self.network.links.len() + self.network.media.len()
    }

    /// The number of the link that stands for the loopback devices of the servers' hosts.
    pub fn loopback_link(&self) -> usize {
        self.direct_link() + usize::from(self.has_direct_paths())
    }

    /// Whether clients reach their server over its host's loopback device: they run there, or everybody does.
    pub fn has_local_clients(&self) -> bool {
        self.network.kind == NetworkKind::Loopback
            || (0..self.servers.len()).any(|server| self.has_clients_beside(server))
    }

    /// Whether clients of a server run on its own host, or another server that passes on to it.
    pub fn has_clients_beside(&self, server: usize) -> bool {
        let host = self.servers[server].host;
        let groups = self.groups.iter().filter(|group| group.connects_to == server);
        let mut clients = groups.flat_map(|group| (0..group.count).map(|client| group.host_of(client)));
        let mut passing = self.servers.iter().filter(|other| other.passes_to() == Some(server));
        clients.any(|at| at == host) || passing.any(|other| other.host == host)
    }

    /// The server that a group's clients connect to.
    pub fn server_of(&self, group: &Group) -> &Server {
        &self.servers[group.connects_to]
    }

    /// Where a group's clients connect to. A proxy of ZeroMQ has an endpoint for those who publish, and one for those who
    /// subscribe.
    ///
    /// # Panics
    /// Where its server does not listen for them, which no plan that was checked has.
    pub fn endpoint_of(&self, group: &Group) -> &Endpoint {
        let server = self.server_of(group);
        match server.zeromq().is_some() && group.publications.is_empty() {
            true => &server.endpoints[1],
            false => server.endpoint_for(&group.transport).expect("the plan was checked"),
        }
    }

    /// Index of the server that a group's messages come to: the one that its clients connect to, or behind proxies and
    /// gateways the one that these pass on to.
    pub fn serving(&self, group: &Group) -> usize {
        let mut server = group.connects_to;
        // No chain is longer, unless it is a circle, which the check refuses.
        for _ in &self.servers {
            match self.servers[server].passes_to() {
                Some(next) => server = next,
                None => break,
            }
        }
        server
    }

    /// The ports that servers listen on, each once.
    pub fn server_ports(&self) -> Vec<u16> {
        let endpoints = self.servers.iter().flat_map(|server| &server.endpoints);
        endpoints.map(|endpoint| endpoint.port).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn has_direct_paths(&self) -> bool {
        match self.network.kind {
            NetworkKind::Emulated => self.network.paths.iter().any(|path| path.hops.is_empty()),
            NetworkKind::Loopback => false,
            NetworkKind::Veth | NetworkKind::External => true,
        }
    }

    /// After how many nanoseconds a delivery is late, by the names of the groups that say so.
    pub fn late_after_ns(&self) -> BTreeMap<String, u64> {
        let said = |group: &Group| Some((group.name.clone(), group.late_after?.as_ns()));
        self.groups.iter().filter_map(said).collect()
    }
}

/// The name of the link that stands for paths between hosts which cross nothing.
const DIRECT: &str = "direct";
/// The name of the link that stands for the loopback device of the broker's host.
const LOOPBACK: &str = "loopback";
