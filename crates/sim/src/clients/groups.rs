//! Who the clients are: their groups, and what a group's plan means for each of them. It never changes.

use std::io;
use std::sync::Arc;

use mqttlab_client::mqtt::{self, Subscribed};
use mqttlab_client::protocol::Sessions;
use mqttlab_client::zeromq;
use mqttlab_client::{ClientNumber, GroupFacts, GroupNumber, Who, sign};
use mqttlab_mqtt::alias::TopicNaming;
use mqttlab_mqtt::{Kind, Qos, SubscriptionOptions, Version, encode};
use mqttlab_plan::zeromq::prefix;
use mqttlab_plan::{
    ClientCredentials, Endpoint, Group, MessageNumber, PayloadMaker, PayloadSizes, Publish, RosterTopic,
    SaidPlaces, SubscriptionChanges,
};
use mqttlab_recording::identity::Identity;
use mqttlab_units::{GeoPoint, Instant, Seed};
use mqttlab_zmtp::frame;

use crate::hosts::stream::StreamPacket;
use crate::ids::{ClientId, GroupId, HostId, IdTable, ServerId};
use crate::message_tokens;
use crate::topics::SimTopics;

/// The groups of a plan, and who is in them.
pub(crate) struct Groups {
    subscriptions: SubscriptionChanges,
    groups: IdTable<GroupId, (Group, SimulatedGroup)>,
    members: IdTable<ClientId, GroupMember>,
}

#[derive(Clone, Copy)]
struct GroupMember {
    group: GroupId,
    /// Its number in its group.
    index: u32,
}

/// What a group's plan means for its clients in a simulation, worked out once.
pub(crate) struct SimulatedGroup {
    pub(crate) facts: Arc<GroupFacts>,
    pub(crate) version: Version,
    pub(crate) sessions: Sessions,
    /// By content.
    pub(crate) publications: Box<[SimulatedPublication]>,
    /// The server that keeps its messages: behind proxies the one that these pass on to.
    pub(crate) serving: ServerId,
    /// Where they connect to, as an HTTP request says it.
    pub(crate) address: Box<str>,
    /// The port of that.
    pub(crate) port: u16,
}

/// What a publication means for its messages.
pub(crate) struct SimulatedPublication {
    sizes: PayloadSizes,
    /// Where its publishers say that they are, where they do.
    places: Option<SaidPlaces>,
    /// Makes the bytes of its messages, where they are kept.
    payloads: Option<PayloadMaker>,
}

impl SimulatedPublication {
    /// The size of a message of the `client`-th client of the group.
    pub(crate) fn payload_bytes(&self, client: u32, sequence: u64) -> u32 {
        self.sizes.of_message(MessageNumber { client, sequence }).0 as u32
    }
}

impl SimulatedGroup {
    fn of(group: &Group, there: (ServerId, &Endpoint), topics: &[RosterTopic], run: Seed) -> SimulatedGroup {
        let (serving, endpoint) = there;
        let publication = |(number, publish): (usize, &Publish)| SimulatedPublication {
            sizes: PayloadSizes::of(publish, group.payload_seed(run, number)),
            places: SaidPlaces::of(&publish.payload, group.payload_seed(run, number)),
            payloads: None,
        };
        SimulatedGroup {
            facts: Arc::new(GroupFacts::of(group)),
            version: group.version(),
            sessions: Sessions::of(group, topics),
            publications: group.contents().enumerate().map(publication).collect(),
            serving,
            address: endpoint.socket_address().to_string().into(),
            port: endpoint.port,
        }
    }
}

impl Groups {
    /// With the server that keeps each group's messages, and where the group connects to. `topics` are the roster's.
    pub(crate) fn new(
        groups: Vec<Group>,
        there: &[(ServerId, Endpoint)],
        topics: &[RosterTopic],
        subscriptions: SubscriptionChanges,
        run: Seed,
    ) -> Groups {
        let count = groups.iter().map(|group| group.count as usize).sum();
        let mut members = IdTable::with_capacity(count);
        for (number, group) in groups.iter().enumerate() {
            for index in 0..group.count {
                members.push(GroupMember { group: GroupId(number as u32), index });
            }
        }
        let with_facts = |(group, (serving, endpoint)): (Group, &(ServerId, Endpoint))| {
            let facts = SimulatedGroup::of(&group, (*serving, endpoint), topics, run);
            (group, facts)
        };
        Groups { subscriptions, groups: groups.into_iter().zip(there).map(with_facts).collect(), members }
    }

    /// From now on [`write_payload`](Self::write_payload) writes.
    ///
    /// # Errors
    /// A payload's file cannot be read.
    pub(crate) fn keep_payloads(&mut self, run: Seed) -> io::Result<()> {
        for id in self.groups.ids() {
            let (group, facts) = &mut self.groups[id];
            let publications = group.contents().zip(facts.publications.iter_mut());
            for (number, (publish, facts)) in publications.enumerate() {
                let seed = group.payload_seed(run, number);
                facts.payloads = Some(PayloadMaker::new(publish, seed, STARTED_UNIX_NS)?);
            }
        }
        Ok(())
    }

    /// Every client, in order.
    pub(crate) fn clients(&self) -> impl Iterator<Item = ClientId> + use<> {
        self.members.ids()
    }

    /// How many clients there are.
    pub(crate) fn client_count(&self) -> usize {
        self.members.len()
    }

    /// Every group, in order.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = GroupId> + use<> {
        self.groups.ids()
    }

    /// A group's name.
    pub(crate) fn name_of_group(&self, group: GroupId) -> &str {
        &self.groups[group].0.name
    }

    /// The number of a client's group.
    pub(crate) fn number_of(&self, client: ClientId) -> GroupId {
        self.members[client].group
    }

    /// How many of them subscribe.
    pub(crate) fn subscriber_count(&self) -> usize {
        let subscribers = self.groups.iter().filter(|(_, (group, _))| !group.subscriptions.is_empty());
        subscribers.map(|(_, (group, _))| group.count as usize).sum()
    }

    /// A client's group.
    pub(crate) fn group_of(&self, client: ClientId) -> &Group {
        &self.groups[self.members[client].group].0
    }

    /// What that means for it.
    pub(crate) fn facts_of(&self, client: ClientId) -> &SimulatedGroup {
        &self.groups[self.members[client].group].1
    }

    /// A client, as `crates/client` knows it.
    pub(crate) fn who(&self, client: ClientId) -> Who {
        let GroupMember { group, index } = self.members[client];
        Who { number: ClientNumber(client.0), group: GroupNumber(group.0), index }
    }

    /// A client's number in its group.
    pub(crate) fn index_of(&self, client: ClientId) -> u32 {
        self.members[client].index
    }

    pub(crate) fn host_of(&self, client: ClientId) -> HostId {
        HostId(self.group_of(client).host_of(self.index_of(client)) as u32)
    }

    /// The server that a client connects to.
    pub(crate) fn server_of(&self, client: ClientId) -> ServerId {
        ServerId(self.group_of(client).connects_to as u32)
    }

    /// Its MQTT client identifier.
    pub(crate) fn name_of(&self, client: ClientId) -> String {
        self.group_of(client).client_id(self.index_of(client))
    }

    /// What it says of itself in CONNECT.
    pub(crate) fn credentials_of(&self, client: ClientId) -> ClientCredentials {
        self.group_of(client).credentials(self.index_of(client))
    }

    /// What a client subscribes to, as events change it.
    pub(crate) fn subscribed(&self, client: ClientId) -> Subscribed<'_> {
        Subscribed { changes: &self.subscriptions, who: self.who(client) }
    }

    /// What a client's SUBSCRIBE or UNSUBSCRIBE says: filters, and the options; none where it unsubscribes.
    pub(crate) fn filters_of(
        &self,
        client: ClientId,
        packet: &StreamPacket,
    ) -> Vec<(String, Option<SubscriptionOptions>)> {
        let (group, subscribed) = (self.group_of(client), self.subscribed(client));
        let number = packet.message as u32;
        if packet.message & ONE_CHANGE != 0 {
            return subscribed.change(group, number).into_iter().collect();
        }
        let filters = subscribed.filters(group, number);
        filters.into_iter().map(|(filter, options)| (filter, Some(options))).collect()
    }

    /// The topic of a message, as its place among its client's; `None` where a client has several publications.
    pub(crate) fn topic_place_of(&self, client: ClientId, sequence: u64) -> Option<usize> {
        let [publish] = &*self.group_of(client).publications else { return None };
        self.facts_of(client).facts.topic_place_of(publish.topic_index(self.index_of(client), sequence))
    }

    /// Where a client says that it is in one of its messages, if it does.
    pub(crate) fn place_said(&self, client: ClientId, content: usize, sequence: u32) -> Option<GeoPoint> {
        let places = self.facts_of(client).publications.get(content)?.places.as_ref()?;
        places.at(self.index_of(client), sequence.into())
    }

    /// Writes what a message carries that was due at `due` over `out`; `false` where that is not kept.
    pub(crate) fn write_payload(
        &self,
        identity: &Identity,
        content: u8,
        due: Instant,
        out: &mut Vec<u8>,
    ) -> bool {
        let client = ClientId(identity.publisher);
        let publication = self.facts_of(client).publications.get(usize::from(content));
        let Some(maker) = publication.and_then(|publication| publication.payloads.as_ref()) else {
            return false;
        };
        out.clear();
        let message = MessageNumber { client: self.index_of(client), sequence: identity.sequence.into() };
        maker.write(message, due, out);
        sign(maker, message, identity, out);
        true
    }

    /// Size of a message.
    pub(crate) fn payload_bytes(&self, message: u64) -> u32 {
        let owner = message_tokens::owner(message);
        if let Some((_, sequence)) = message_tokens::origin(message) {
            let content = usize::from(message_tokens::content(message));
            let publication = &self.facts_of(owner).publications[content];
            return publication.payload_bytes(self.index_of(owner), sequence.into());
        }
        let will = self.group_of(owner).will();
        will.map_or(0, |will| will.payload.len() as u32)
    }

    /// Seconds that a message is good for, as its publisher says.
    pub(crate) fn expiry_s(&self, message: u64) -> Option<u32> {
        if message_tokens::origin(message).is_none() || message_tokens::is_copy(message) {
            return None;
        }
        let content = usize::from(message_tokens::content(message));
        self.group_of(message_tokens::owner(message)).content(content).properties.expiry_s
    }

    /// Bytes of the properties that a message's publisher gives it. A relay's copy has none, and neither has a will.
    fn property_len(&self, message: u64) -> usize {
        if message_tokens::origin(message).is_none() || message_tokens::is_copy(message) {
            return 0;
        }
        let (owner, content) = (message_tokens::owner(message), message_tokens::content(message));
        let group = self.group_of(owner);
        group.content(usize::from(content)).properties.len(&group.name, self.index_of(owner))
    }

    /// A control packet of MQTT that is no message, to be given its place in a stream, and its length. What tells it of some
    /// is their encoding, in `scratch`.
    pub(crate) fn control(
        &self,
        client: Who,
        packet: mqtt::Packet,
        scratch: &mut Vec<u8>,
    ) -> (StreamPacket, usize) {
        let group = self.group_of(client.into());
        match packet {
            mqtt::Packet::Connect => {
                mqtt::encode_connect(group, client.index, scratch);
                (StreamPacket::bare(Kind::Connect, 0), scratch.len())
            }
            mqtt::Packet::Subscribe { id, changes } => {
                mqtt::encode_subscribe(group, &self.subscribed(client.into()), id, changes, scratch);
                let packet = StreamPacket::bare(Kind::Subscribe, id.0);
                (StreamPacket { message: changes.into(), ..packet }, scratch.len())
            }
            mqtt::Packet::ChangeSubscription { id, change, subscribes } => {
                mqtt::encode_change(group, &self.subscribed(client.into()), id, change, scratch);
                let kind = if subscribes { Kind::Subscribe } else { Kind::Unsubscribe };
                let packet = StreamPacket::bare(kind, id.0);
                (StreamPacket { message: ONE_CHANGE | u64::from(change), ..packet }, scratch.len())
            }
            mqtt::Packet::Answer { kind, id } => {
                (StreamPacket::bare(kind, id.0), encode::ACKNOWLEDGEMENT_LEN)
            }
            mqtt::Packet::Bare(kind) => (StreamPacket::bare(kind, 0), encode::BARE_LEN),
        }
    }

    /// A packet of ZMTP that is no message, likewise.
    pub(crate) fn command(
        &self,
        topics: &mut SimTopics,
        client: Who,
        packet: zeromq::Packet,
        scratch: &mut Vec<u8>,
    ) -> (StreamPacket, usize) {
        let (group, facts) = (self.group_of(client.into()), self.facts_of(client.into()));
        zeromq::encode(group, client.index, packet, scratch);
        let topic = match packet {
            zeromq::Packet::Subscribe { subscription, .. } => {
                let filter = zeromq::filter(group, client.index, subscription);
                topics.number(facts.serving, prefix(&filter))
            }
            _ => 0,
        };
        (StreamPacket { topic, ..StreamPacket::bare(zeromq::kind(packet), 0) }, scratch.len())
    }

    /// A message of ZMTP to be given its place in a stream, and its length: topic and payload, a frame each.
    pub(crate) fn frames(&self, topics: &SimTopics, (message, topic): (u64, u32)) -> (StreamPacket, usize) {
        let payload_bytes = self.payload_bytes(message);
        let name = topics.name(topic).len();
        let packet = StreamPacket {
            topic,
            message,
            topic_bytes: name as u16,
            payload_bytes,
            ..StreamPacket::bare(mqttlab_zmtp::Kind::Message, 0)
        };
        (packet, frame::len(name) + frame::len(payload_bytes as usize))
    }

    /// A PUBLISH to be given its place in a stream, and its length.
    pub(crate) fn publication(
        &self,
        topics: &SimTopics,
        (message, topic): (u64, u32),
        (naming, qos, id): (TopicNaming, Qos, u16),
        version: Version,
    ) -> (StreamPacket, usize) {
        self.forwarded(topics, (message, topic), (naming, qos, id), (version, self.expiry_s(message)))
    }

    /// The same as a broker sends it, with what is left of its expiry interval.
    pub(crate) fn forwarded(
        &self,
        topics: &SimTopics,
        (message, topic): (u64, u32),
        (naming, qos, id): (TopicNaming, Qos, u16),
        (version, expiry_s): (Version, Option<u32>),
    ) -> (StreamPacket, usize) {
        let payload_bytes = self.payload_bytes(message);
        let name = naming.name(topics.name(topic)).len();
        let properties = match version {
            Version::V5 => {
                let unsaid = self.expiry_s(message).is_some() && expiry_s.is_none();
                let expiry = if unsaid { encode::EXPIRY_LEN } else { 0 };
                naming.property_len() + self.property_len(message) - expiry
            }
            Version::V31 | Version::V311 => 0,
        };
        let packet = StreamPacket {
            qos,
            topic,
            message,
            topic_bytes: 2 + name as u16,
            property_bytes: encode::properties_len(properties, version) as u32,
            payload_bytes,
            ..StreamPacket::bare(Kind::Publish, id)
        };
        (packet, encode::publish_len(name, properties, payload_bytes as usize, qos, version))
    }
}

/// When the time of a simulation begins, for payloads that say the time: 2026-01-01T00:00:00Z, so that two simulations of
/// a plan are equal.
const STARTED_UNIX_NS: u64 = 1_767_225_600_000_000_000;
/// A packet that changes subscriptions has one filter, and the number of the change beside this.
const ONE_CHANGE: u64 = 1 << 32;
