//! What all workers of a fleet read and none changes.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use mqttlab_client::mqtt::Subscribed;
use mqttlab_client::mqttsn;
use mqttlab_client::protocol::{AnySession, Sessions};
use mqttlab_client::{GroupFacts, GroupNumber, Who};
use mqttlab_mqtt::Version;
use mqttlab_plan::{
    Group, PayloadMaker, Plan, PlannedWills, PublishingChanges, SaidPlaces, SubscriptionChanges,
};
use mqttlab_recording::{DatagramAccount, Received};
use mqttlab_run::MessageFigures;
use mqttlab_system::poller::{Interest, Poller};
use mqttlab_system::sockets;
use mqttlab_units::{Duration, GeoPoint};

use super::Client;
use super::message_order::SentInOrder;
use super::own_packets::UnrecordedConnections;
use crate::control::{Control, SocketFactory};
use crate::directory::Directory;
use crate::network::tcp_states;

pub(super) struct FleetContext {
    pub(super) plan: Arc<Plan>,
    pub(super) control: Arc<Control>,
    pub(super) sockets: Arc<dyn SocketFactory>,
    pub(super) directory: Arc<Directory>,
    pub(super) order: SentInOrder,
    wills: PlannedWills,
    /// Whose packets no frame will show.
    pub(super) unrecorded: UnrecordedConnections,
    /// Whether some clients are programs, whose messages nobody here knows.
    pub(super) has_programs: bool,
    /// What events make of clients' publications.
    pub(super) publishing: PublishingChanges,
    /// And of their subscriptions.
    pub(super) subscriptions: SubscriptionChanges,
    /// The number of the first client of each group.
    pub(super) starts: Vec<u32>,
    /// The group of each client.
    group_of: Vec<u32>,
    groups: Vec<FleetGroup>,
}

/// What a group's plan means for its clients in a live run, worked out once.
pub(super) struct FleetGroup {
    pub(super) facts: Arc<GroupFacts>,
    pub(super) sessions: Sessions,
    pub(super) version: Version,
    /// By content.
    pub(super) payloads: Box<[PayloadMaker]>,
    /// By content, where its publishers say that they are, where they do.
    places: Box<[Option<SaidPlaces>]>,
    /// Index of the server that keeps its messages: behind proxies the one that these pass on to.
    pub(super) serving: usize,
}

impl FleetContext {
    /// # Errors
    /// A payload's file cannot be read.
    pub(super) fn new(
        plan: Arc<Plan>,
        sockets: Arc<dyn SocketFactory>,
        directory: Arc<Directory>,
        control: Arc<Control>,
        unrecorded: UnrecordedConnections,
    ) -> io::Result<FleetContext> {
        let groups = plan
            .groups
            .iter()
            .map(|group| FleetGroup::new(group, &directory, &plan))
            .collect::<io::Result<_>>()?;
        let order = SentInOrder::new(&plan, &directory);
        let members = plan.groups.iter().zip(0..);
        let group_of =
            members.flat_map(|(group, number)| std::iter::repeat_n(number, group.count as usize)).collect();
        let has_programs = plan.groups.iter().any(|group| group.program.is_some());
        let wills = PlannedWills::of(&plan);
        Ok(FleetContext {
            wills,
            starts: plan.client_numbers(),
            publishing: PublishingChanges::of(&plan.events),
            subscriptions: SubscriptionChanges::of(&plan.events),
            has_programs,
            group_of,
            plan,
            control,
            sockets,
            directory,
            order,
            unrecorded,
            groups,
        })
    }

    /// Whether a payload that says nothing of its publisher is that of a client's will.
    pub(super) fn is_will(&self, server: usize, topic: &str, payload: &[u8]) -> bool {
        self.wills.find(server, topic, payload, payload.len() as u32).is_some()
    }

    /// A delivery, as a will where it is one. `begin`: the first bytes of its payload.
    pub(super) fn as_will(&self, row: Received, server: usize, topic: &str, begin: &[u8]) -> Received {
        if row.publisher.is_some() || self.wills.is_empty() {
            return row;
        }
        let will = self.wills.find(server, topic, begin, row.payload_bytes);
        will.map_or(row, |client| row.with_will(client))
    }

    /// A message that was delivered, in words.
    pub(super) fn message_figures(
        &self,
        publisher: u32,
        row: &Received,
        latency: Option<Duration>,
    ) -> MessageFigures {
        let place = self.topic_place_of(publisher, row.sequence.into());
        let topic = place.and_then(|place| self.directory.published(publisher).get(place));
        let topic = topic.map_or("", |topic| self.directory.topic(*topic).1);
        MessageFigures::of(row, latency, topic, [&self.name_of(publisher), &self.name_of(row.subscriber)])
    }

    /// The topic of a message, as its place among its client's; `None` where a client has several publications.
    fn topic_place_of(&self, client: u32, sequence: u64) -> Option<usize> {
        let group = self.group_of(client);
        let [publish] = &*self.plan.groups[group].publications else { return None };
        let index = publish.topic_index(client - self.starts[group], sequence);
        self.groups[group].facts.topic_place_of(index)
    }

    fn name_of(&self, client: u32) -> String {
        let group = self.group_of(client);
        self.plan.groups[group].client_id(client - self.starts[group])
    }

    /// The group of a client, by their numbers.
    pub(super) fn group_of(&self, client: u32) -> usize {
        self.group_of[client as usize] as usize
    }

    pub(super) fn group(&self, group: GroupNumber) -> &Group {
        &self.plan.groups[group.0 as usize]
    }

    /// Where a client says that it is in one of its messages, if it does.
    pub(super) fn place_said(&self, client: u32, content: usize, sequence: u32) -> Option<GeoPoint> {
        let group = self.group_of(client);
        let places = self.groups[group].places.get(content)?.as_ref()?;
        places.at(client - self.starts[group], sequence.into())
    }

    /// What a client subscribes to, as events change it.
    pub(super) fn subscribed(&self, who: Who) -> Subscribed<'_> {
        Subscribed { changes: &self.subscriptions, who }
    }

    /// The name of the topic of a message that has come, which its packet has, or its session knows.
    pub(super) fn topic_name(&self, client: &Client, account: &DatagramAccount<'_>) -> Option<String> {
        let (AnySession::MqttSn(session), Some(topic)) = (client.session(), account.alias) else {
            return account.topic.map(str::to_owned);
        };
        let name = |number| self.directory.layout().topic_name(number);
        mqttsn::topic_name(self.group(client.who().group), client.who().index, session, topic, name)
    }

    pub(super) fn facts(&self, group: GroupNumber) -> &FleetGroup {
        &self.groups[group.0 as usize]
    }

    /// A socket on its way to the client's server, which the worker's poller knows by the client's slot.
    pub(super) fn open_socket(&self, poller: &Poller, client: Who, slot: u32) -> io::Result<OwnedFd> {
        let group = self.group(client.group);
        let server = group.connects_to;
        let port = self.plan.endpoint_of(group).port;
        let address = SocketAddr::new(self.sockets.server_address(server).ip(), port);
        if group.transport == mqttlab_plan::Transport::Udp {
            let socket = self.sockets.datagram_socket(group.host_of(client.index), server)?;
            sockets::connect(socket.as_fd(), address)?;
            poller.add(&socket, slot.into(), Interest::Changes)?;
            return Ok(socket);
        }
        let socket = self.sockets.socket(group.host_of(client.index), server)?;
        sockets::set_nodelay(socket.as_fd(), group.nodelay())?;
        // Where marks are forbidden, the connection is not in `tcp_state`.
        let _ = tcp_states::mark(socket.as_fd(), client.number.0);
        sockets::connect(socket.as_fd(), address)?;
        poller.add(&socket, slot.into(), Interest::Changes)?;
        Ok(socket)
    }
}

impl FleetGroup {
    fn new(group: &Group, directory: &Directory, plan: &Plan) -> io::Result<FleetGroup> {
        let publications = || {
            let seed = |number| group.payload_seed(plan.seed, number);
            group.contents().enumerate().map(move |(number, publish)| (publish, seed(number)))
        };
        let started = directory.layout().started_unix_ns;
        let payloads = publications().map(|(publish, seed)| PayloadMaker::new(publish, seed, started));
        Ok(FleetGroup {
            facts: Arc::new(GroupFacts::of(group)),
            sessions: Sessions::of(group, directory.topics()),
            version: group.version(),
            payloads: payloads.collect::<io::Result<_>>()?,
            places: publications().map(|(publish, seed)| SaidPlaces::of(&publish.payload, seed)).collect(),
            serving: plan.serving(group),
        })
    }
}
