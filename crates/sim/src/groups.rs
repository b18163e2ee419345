//! Who the clients are: their groups, and what a group's plan means for each of them. It never changes.

use mqttlab_mqtt::client::ClientOptions;
use mqttlab_mqtt::{Kind, Qos, Version, encode};
use mqttlab_plan::{Arrival, Group, qos};

use crate::ids::{ClientId, GroupId, HostId, ServerId, Table};
use crate::message;
use crate::stream::Packet;
use crate::topics::Topics;

/// The groups of a plan, and who is in them.
pub(crate) struct Groups {
    groups: Table<GroupId, (Group, GroupFacts)>,
    members: Table<ClientId, Member>,
}

#[derive(Clone, Copy)]
struct Member {
    group: GroupId,
    /// Its number in its group.
    index: u32,
}

/// What a group's plan means for its clients, worked out once.
pub(crate) struct GroupFacts {
    pub(crate) version: Version,
    pub(crate) options: ClientOptions,
    pub(crate) payload_bytes: u32,
    pub(crate) publish_qos: Qos,
    pub(crate) back_to_back: bool,
    pub(crate) relay_qos: Qos,
}

impl GroupFacts {
    fn of(group: &Group) -> GroupFacts {
        let publish = group.publish.as_ref();
        GroupFacts {
            version: group.mqtt().version.version(),
            options: group.session_options(),
            payload_bytes: publish.map_or(0, |publish| publish.payload.size().0 as u32),
            publish_qos: publish.map_or(Qos::AtMostOnce, |publish| qos(publish.qos)),
            back_to_back: publish.is_some_and(|publish| publish.arrival == Arrival::BackToBack),
            relay_qos: group.relay.as_ref().map_or(Qos::AtMostOnce, |relay| qos(relay.qos)),
        }
    }
}

impl Groups {
    pub(crate) fn new(groups: Vec<Group>) -> Groups {
        let count = groups.iter().map(|group| group.count as usize).sum();
        let mut members = Table::with_capacity(count);
        for (number, group) in groups.iter().enumerate() {
            for index in 0..group.count {
                members.push(Member { group: GroupId(number as u32), index });
            }
        }
        let with_facts = |group| {
            let facts = GroupFacts::of(&group);
            (group, facts)
        };
        Groups { groups: groups.into_iter().map(with_facts).collect(), members }
    }

    /// Every client, in order.
    pub(crate) fn clients(&self) -> impl Iterator<Item = ClientId> + use<> {
        self.members.ids()
    }

    /// How many clients there are.
    pub(crate) fn client_count(&self) -> usize {
        self.members.len()
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
    pub(crate) fn facts_of(&self, client: ClientId) -> &GroupFacts {
        &self.groups[self.members[client].group].1
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

    /// What a client subscribes to.
    pub(crate) fn filters_of(&self, client: ClientId) -> Vec<(String, Qos)> {
        let (group, index) = (self.group_of(client), self.index_of(client));
        let filled = |wanted: &mqttlab_plan::Subscription| {
            (wanted.filter.fill(&group.name, index, 0), qos(wanted.qos))
        };
        group.subscriptions.iter().map(filled).collect()
    }

    /// Size of a message.
    pub(crate) fn payload_bytes(&self, message: u64) -> u32 {
        let owner = message::owner(message);
        if message::origin(message).is_some() {
            return self.facts_of(owner).payload_bytes;
        }
        let will = self.group_of(owner).mqtt().will.as_ref();
        will.map_or(0, |will| will.payload.len() as u32)
    }

    /// A PUBLISH to be given its place in a stream, and its length.
    pub(crate) fn publication(
        &self,
        topics: &Topics,
        (message, topic): (u64, u32),
        qos: Qos,
        id: u16,
        version: Version,
    ) -> (Packet, usize) {
        let payload_bytes = self.payload_bytes(message);
        let name = topics.name(topic).len();
        let packet = Packet {
            qos,
            topic,
            message,
            topic_bytes: 2 + name as u16,
            property_bytes: u8::from(version == Version::V5),
            payload_bytes,
            ..Packet::bare(Kind::Publish, id)
        };
        (packet, encode::publish_len(name, payload_bytes as usize, qos, version))
    }
}
