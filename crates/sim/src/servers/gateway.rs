//! An MQTT-SN gateway: the machine of `crates/mqttsn`, over datagrams to its clients and simulated TCP to its broker.
//!
//! ```text
//!   datagram ──► inbox ──► service (per packet) ──► Gateway ──► datagrams
//!   packet of the broker ──►                            └─────► connections: one for each client, or one for all
//! ```
//!
//! One packet is served at a time, as by a program of one thread, whether a client or the broker has sent it. What follows
//! from it leaves when it is served.
//!
//! What it does not model: forwarders; time for copies. What a broker drops on its way to an aggregating gateway is counted
//! as the broker's, and of no client.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use mqttlab_mqtt::encode::{self, ConnectFields};
use mqttlab_mqtt::{Kind, Qos, Version};
use mqttlab_mqttsn::Packet as Said;
use mqttlab_mqttsn::gateway::{Address, BrokerPacket, Cause, Gateway, Input, Link, Output};
use mqttlab_plan::GatewayRole;
use mqttlab_recording::LossCause;
use mqttlab_tcp::Event as TcpEvent;
use mqttlab_units::{Duration, Instant, Seed};

use super::service::ServiceTimes;
use super::{End, ServerLook, ServerModel, ServerSurroundings};
use crate::agenda::Agenda;
use crate::datagrams::{Content, Datagram};
use crate::event::Event;
use crate::ids::{ClientId, ConnectionId, ConversationId, Id, ServerId, Side};
use crate::message;
use crate::said;
use crate::stream::Packet;

/// A gateway, and what waits for it.
pub(crate) struct GatewayModel {
    id: ServerId,
    to: ServerId,
    gateway: Gateway<Content>,
    service: ServiceTimes,
    inbox: VecDeque<Work>,
    /// The connection of each link, by the machine's number.
    links: BTreeMap<u32, ConnectionId>,
    /// The link of each connection, by slot and generation.
    numbers: BTreeMap<(u32, u32), u32>,
    /// Clients that have connected, by their identifiers.
    members: BTreeMap<Arc<str>, ClientId>,
    /// Everybody who has spoken to it.
    peers: BTreeSet<u32>,
    /// The connection that it has written to last.
    wrote_to: Option<ConnectionId>,
    /// Messages that full buffers made it drop.
    dropped: u64,
    /// When it has done with the head of the inbox, once it has begun.
    done: Option<Instant>,
    /// For when it is on the agenda.
    alarm: Option<Instant>,
}

/// Something to be served.
enum Work {
    Datagram(Rc<Datagram>),
    Broker(ConnectionId, Packet),
    /// The broker has closed a connection, or it broke.
    Closed(ConnectionId),
}

impl GatewayModel {
    pub(crate) fn new(id: ServerId, name: &str, role: &GatewayRole, seed: Seed) -> GatewayModel {
        GatewayModel {
            id,
            to: ServerId::from_index(role.broker),
            gateway: Gateway::new(role.options(), Instant::ZERO),
            service: ServiceTimes::new(role.service, name, seed),
            inbox: VecDeque::new(),
            links: BTreeMap::new(),
            numbers: BTreeMap::new(),
            members: BTreeMap::new(),
            peers: BTreeSet::new(),
            wrote_to: None,
            dropped: 0,
            done: None,
            alarm: None,
        }
    }

    fn take_in(&mut self, around: &mut ServerSurroundings<'_>, work: Work) {
        self.inbox.push_back(work);
        self.begin(around.now());
        self.set_alarm(around.agenda);
    }

    /// Begins with the next one.
    fn begin(&mut self, now: Instant) {
        if self.done.is_none() && !self.inbox.is_empty() {
            self.done = Some(now + self.service.per_packet());
        }
    }

    fn set_alarm(&mut self, agenda: &mut Agenda<Event>) {
        let next = [self.done, self.gateway.next_deadline()].into_iter().flatten().min();
        let Some(next) = next.map(|at| at.max(agenda.now())) else { return };
        if self.alarm.is_none_or(|alarm| next < alarm) {
            self.alarm = Some(next);
            agenda.add(next, Event::Server(self.id));
        }
    }

    fn serve(&mut self, around: &mut ServerSurroundings<'_>, work: Work) {
        match work {
            Work::Datagram(datagram) => self.hear_client(around, &datagram),
            Work::Broker(connection, packet) => {
                if let Some(link) = self.link_at(connection)
                    && let Some(packet) = heard(around, &packet)
                {
                    self.handle(around, Input::Broker(link, packet));
                }
            }
            Work::Closed(connection) => {
                if let Some(link) = self.link_at(connection) {
                    self.forget(link);
                    self.handle(around, Input::Closed(link));
                }
            }
        }
    }

    fn hear_client(&mut self, around: &mut ServerSurroundings<'_>, datagram: &Datagram) {
        let ConversationId(peer) = datagram.conversation;
        self.peers.insert(peer);
        if let Said::Connect { client_id, .. } = &datagram.packet {
            let client = around.transport.conversation(datagram.conversation).client;
            self.members.insert(Arc::clone(client_id), client);
        }
        let from = Address { peer, node: None };
        self.handle(around, Input::Packet { from, packet: datagram.packet.clone() });
    }

    fn handle(&mut self, around: &mut ServerSurroundings<'_>, input: Input<Content>) {
        self.gateway.handle(around.now(), input);
        self.drain(around);
    }

    /// Does what the machine says.
    fn drain(&mut self, around: &mut ServerSurroundings<'_>) {
        while let Some(output) = self.gateway.poll() {
            match output {
                Output::Send { to, packet } => around.answer(ConversationId(to.peer), packet),
                Output::Broadcast(packet) => {
                    for peer in &self.peers {
                        around.answer(ConversationId(*peer), packet.clone());
                    }
                }
                Output::Open(link) => self.open(around, link),
                Output::Broker(link, packet) => self.tell_broker(around, link, packet),
                Output::Close(link) => {
                    if let Some(connection) = self.forget(link) {
                        around.close((connection, Side::Client));
                    }
                }
                Output::Dropped { client_id, message, cause } => {
                    self.note_dropped(around, client_id.as_ref(), message, cause);
                }
            }
        }
    }

    fn open(&mut self, around: &mut ServerSurroundings<'_>, link: Link) {
        let client = self.gateway.client_of(link).and_then(|name| self.members.get(name)).copied();
        match around.connect(self.id, client, self.to) {
            Some(connection) => {
                around.transport.connection_mut(connection).said = Some(Box::default());
                self.links.insert(link.0, connection);
                self.numbers.insert(key(connection), link.0);
            }
            None => self.gateway.handle(around.now(), Input::Closed(link)),
        }
    }

    fn link_at(&self, connection: ConnectionId) -> Option<Link> {
        self.numbers.get(&key(connection)).map(|link| Link(*link))
    }

    fn forget(&mut self, link: Link) -> Option<ConnectionId> {
        let connection = self.links.remove(&link.0)?;
        self.numbers.remove(&key(connection));
        Some(connection)
    }

    fn tell_broker(
        &mut self,
        around: &mut ServerSurroundings<'_>,
        link: Link,
        packet: BrokerPacket<Content>,
    ) {
        let Some(connection) = self.links.get(&link.0).copied() else { return };
        let Some((packet, length)) = self.control_packet(around, connection, packet) else { return };
        around.transport.append(connection, Side::Client, packet, length);
        self.write(around, connection);
    }

    /// A packet to the broker and its length. What it says beside that waits at the connection.
    fn control_packet(
        &self,
        around: &mut ServerSurroundings<'_>,
        connection: ConnectionId,
        packet: BrokerPacket<Content>,
    ) -> Option<(Packet, usize)> {
        let mut bytes = Vec::new();
        let (packet, says) = match packet {
            BrokerPacket::Publish { dup, qos, retain, topic, id, message } => {
                let topic = around.topics.number(self.to, &topic);
                let what = (message.message, topic);
                let (packet, length) = around.groups.publication(around.topics, what, qos, id, Version::V311);
                return Some((Packet { dup, retain, ..packet }, length));
            }
            BrokerPacket::Acknowledgement { kind, id } => {
                return Some((Packet::bare(kind, id), encode::ACKNOWLEDGEMENT_LEN));
            }
            BrokerPacket::Pingreq => return Some((Packet::bare(Kind::Pingreq, 0), encode::BARE_LEN)),
            BrokerPacket::Disconnect => return Some((Packet::bare(Kind::Disconnect, 0), encode::BARE_LEN)),
            BrokerPacket::Connect { client_id, clean, keep_alive_s, will } => {
                let message = will.as_ref().map_or(Vec::new(), |will| vec![0; will.message.bytes as usize]);
                encode::connect(
                    &ConnectFields {
                        version: Version::V311,
                        client_id: &client_id,
                        clean,
                        keep_alive_s,
                        session_expiry_s: 0,
                        receive_maximum: u16::MAX,
                        will: will.as_ref().map(|will| (&*will.topic, &message[..], will.qos, will.retain)),
                        username: None,
                        password: None,
                    },
                    &mut bytes,
                );
                let will = will.map(|will| said::Will {
                    topic: around.topics.number(self.to, &will.topic),
                    qos: will.qos,
                    retain: will.retain,
                    message: will.message.message,
                });
                let keep_alive = Duration::from_s(keep_alive_s.into());
                let says = said::Content::Connect { client_id, clean, keep_alive, will };
                (Packet::bare(Kind::Connect, 0), says)
            }
            BrokerPacket::Subscribe { id, filter, qos } => {
                encode::subscribe(id, std::iter::once((&*filter, qos)), Version::V311, &mut bytes);
                (Packet::bare(Kind::Subscribe, id), said::Content::Subscribe { filter, qos })
            }
            BrokerPacket::Unsubscribe { id, filter } => {
                encode::unsubscribe(id, std::iter::once(&*filter), Version::V311, &mut bytes);
                (Packet::bare(Kind::Unsubscribe, id), said::Content::Unsubscribe { filter })
            }
            // What only brokers say.
            BrokerPacket::Connack { .. } | BrokerPacket::Suback { .. } | BrokerPacket::Pingresp => {
                return None;
            }
        };
        let waiting = around.transport.connection_mut(connection).said.as_mut();
        waiting.expect("the gateway has opened it").push_back(says);
        Some((packet, bytes.len()))
    }

    /// Hands what waits to the socket. Before the connection stands TCP keeps it.
    fn write(&mut self, around: &mut ServerSurroundings<'_>, id: ConnectionId) {
        // One thread writes to all of its sockets.
        let apart = self.wrote_to.replace(id) != Some(id);
        if around.transport.write(around.agenda.now(), id, Side::Client, apart) {
            around.transport.transmit(around.agenda, around.evidence, id, Side::Client);
        }
    }

    fn note_dropped(
        &mut self,
        around: &mut ServerSurroundings<'_>,
        client_id: Option<&Arc<str>>,
        content: Content,
        cause: Cause,
    ) {
        let cause = match cause {
            Cause::BufferFull => LossCause::QueueFull,
            Cause::ClientLost => LossCause::SessionEnded,
            Cause::TopicRefused | Cause::UnknownTopic => LossCause::UnknownTopic,
        };
        self.dropped += u64::from(cause == LossCause::QueueFull);
        let subscriber = client_id.and_then(|name| self.members.get(name)).copied();
        if client_id.is_some() && subscriber.is_none() {
            return;
        }
        // A later message may still come to a receiver that has not got this one.
        if message::origin(content.message).is_some() {
            around.evidence.dropped(around.agenda.now(), content.message, subscriber, cause);
        }
    }

    /// Data up to `offset` has come.
    fn readable(&mut self, around: &mut ServerSurroundings<'_>, end: End, offset: u64) {
        let asleep = around.transport.connection_mut(end.0).readable_to(end.1).replace(offset).is_none();
        if !around.transport.wire().has_more_at(around.now()) {
            self.read(around, end);
        } else if asleep {
            // What else comes at this very instant is there before a program can have read.
            around.agenda.add(around.now(), Event::Read { connection: end.0, side: end.1 });
        }
    }
}

impl ServerModel for GatewayModel {
    fn start(&mut self, around: &mut ServerSurroundings<'_>) {
        self.drain(around);
        self.set_alarm(around.agenda);
    }

    fn on_datagram(&mut self, around: &mut ServerSurroundings<'_>, datagram: Rc<Datagram>) {
        self.take_in(around, Work::Datagram(datagram));
    }

    fn on_tcp(&mut self, around: &mut ServerSurroundings<'_>, end: End, event: TcpEvent) {
        match event {
            TcpEvent::Connected => {
                if let Some(link) = self.link_at(end.0) {
                    self.handle(around, Input::Opened(link));
                    self.set_alarm(around.agenda);
                }
            }
            TcpEvent::Readable(offset) => self.readable(around, end, offset),
            TcpEvent::Writable(_) => self.write(around, end.0),
            TcpEvent::PeerClosed | TcpEvent::Reset | TcpEvent::TimedOut => {
                self.read(around, end);
                self.take_in(around, Work::Closed(end.0));
                around.close(end);
            }
            TcpEvent::Acknowledged(_) | TcpEvent::Closed => {}
        }
    }

    fn read(&mut self, around: &mut ServerSurroundings<'_>, end: End) {
        let (id, side) = end;
        let Some(offset) = around.transport.connection_mut(id).readable_to(side).take() else { return };
        around.transport.read(around.agenda, around.evidence, id, side);
        while let Some(packet) = around.transport.take_packet(around.evidence, around.topics, end, offset) {
            self.take_in(around, Work::Broker(id, packet));
        }
    }

    fn on_timer(&mut self, around: &mut ServerSurroundings<'_>) {
        let now = around.now();
        if self.alarm != Some(now) {
            return;
        }
        self.alarm = None;
        while self.done.is_some_and(|done| done <= now) {
            self.done = None;
            if let Some(work) = self.inbox.pop_front() {
                self.serve(around, work);
            }
            self.begin(now);
        }
        if self.gateway.next_deadline().is_some_and(|at| at <= now) {
            self.handle(around, Input::Tick);
        }
        self.set_alarm(around.agenda);
    }

    fn dropped(&self) -> u64 {
        self.dropped
    }

    fn look(&self) -> ServerLook<'_> {
        let snapshot = self.gateway.snapshot();
        let outbox = snapshot.to_clients + snapshot.to_broker;
        ServerLook { inbox: self.inbox.len(), outbox, busy_until: self.done, ..ServerLook::default() }
    }
}

fn key(id: ConnectionId) -> (u32, u32) {
    (id.slot, id.generation)
}

/// A packet of the broker, as the machine knows it; `None` for one that says nothing to a gateway.
fn heard(around: &ServerSurroundings<'_>, packet: &Packet) -> Option<BrokerPacket<Content>> {
    let id = packet.id;
    Some(match packet.kind {
        Kind::Connack => BrokerPacket::Connack { code: 0, session_present: packet.session_present },
        Kind::Publish => BrokerPacket::Publish {
            dup: packet.dup,
            qos: packet.qos,
            retain: packet.retain,
            topic: around.topics.name(packet.topic).into(),
            id,
            message: Content { message: packet.message, bytes: packet.payload_bytes },
        },
        Kind::Puback | Kind::Pubrec | Kind::Pubrel | Kind::Pubcomp | Kind::Unsuback => {
            BrokerPacket::Acknowledgement { kind: packet.kind, id }
        }
        Kind::Suback => BrokerPacket::Suback { id, code: Qos::level(packet.qos) },
        Kind::Pingresp => BrokerPacket::Pingresp,
        _ => return None,
    })
}
