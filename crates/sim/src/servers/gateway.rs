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

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use mqttlab_mqtt::alias::TopicNaming;
use mqttlab_mqtt::encode::{self, ConnectFields};
use mqttlab_mqtt::{Kind, Qos, Version};
use mqttlab_mqttsn::Packet as Said;
use mqttlab_mqttsn::gateway::{Address, BrokerPacket, Cause, Gateway, Input, Link, Output};
use mqttlab_plan::GatewayRole;
use mqttlab_recording::LossCause;
use mqttlab_tcp::TcpEvent;
use mqttlab_units::{Duration, Instant, Seed};

use super::service::{Alarm, ServiceQueue, ServiceTimes};
use super::{End, ServerModel, ServerSnapshot, ServerSurroundings};
use crate::control::event::SimEvent;
use crate::control::event_queue::EventQueue;
use crate::hosts::datagrams::{DatagramPacket, MessageContent, SimDatagram};
use crate::hosts::packet_content;
use crate::hosts::stream::StreamPacket;
use crate::ids::{ClientId, ConversationId, Id, ServerId, Side, TcpConnectionId};
use crate::message_tokens;

/// A gateway, and what waits for it.
pub(crate) struct GatewayModel {
    id: ServerId,
    to: ServerId,
    gateway: Gateway<MessageContent>,
    inbox: ServiceQueue<Work>,
    /// The connection of each link, by the machine's number.
    links: BTreeMap<u32, TcpConnectionId>,
    /// The link of each connection, by slot and generation.
    numbers: BTreeMap<(u32, u32), u32>,
    /// Clients that have connected, by their identifiers.
    members: BTreeMap<Arc<str>, ClientId>,
    /// Everybody who has spoken to it.
    peers: BTreeSet<u32>,
    /// The end that it has written to last.
    wrote_to: Option<End>,
    /// Messages that full buffers made it drop.
    dropped: u64,
    alarm: Alarm,
}

/// Something to be served.
enum Work {
    Datagram(Rc<SimDatagram>),
    Broker(TcpConnectionId, StreamPacket),
    /// The broker has closed a connection, or it broke.
    Closed(TcpConnectionId),
}

impl GatewayModel {
    pub(crate) fn new(id: ServerId, name: &str, role: &GatewayRole, seed: Seed) -> GatewayModel {
        GatewayModel {
            id,
            to: ServerId::from_index(role.broker),
            gateway: Gateway::new(role.options(), Instant::ZERO),
            inbox: ServiceQueue::new(ServiceTimes::new(role.service, name, seed)),
            links: BTreeMap::new(),
            numbers: BTreeMap::new(),
            members: BTreeMap::new(),
            peers: BTreeSet::new(),
            wrote_to: None,
            dropped: 0,
            alarm: Alarm::new(id),
        }
    }

    fn enqueue(&mut self, around: &mut ServerSurroundings<'_>, work: Work) {
        self.inbox.push(work);
        self.inbox.begin(around.now());
        self.set_alarm(around.agenda);
    }

    fn set_alarm(&mut self, agenda: &mut EventQueue<SimEvent>) {
        let next = [self.inbox.done(), self.gateway.next_deadline()].into_iter().flatten().min();
        self.alarm.set(next, agenda);
    }

    fn serve(&mut self, around: &mut ServerSurroundings<'_>, work: Work) {
        match work {
            Work::Datagram(datagram) => self.hear_client(around, &datagram),
            Work::Broker(connection, packet) => {
                if let Some(link) = self.link_at(connection)
                    && let Some(packet) = broker_packet(around, &packet)
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

    fn hear_client(&mut self, around: &mut ServerSurroundings<'_>, datagram: &SimDatagram) {
        let ConversationId(peer) = datagram.conversation;
        self.peers.insert(peer);
        let packet = &datagram.packet.0;
        if let Said::Connect { client_id, .. } = packet {
            let client = around.transport.conversation(datagram.conversation).client;
            self.members.insert(Arc::clone(client_id), client);
        }
        let from = Address { peer, node: None };
        self.handle(around, Input::Packet { from, packet: packet.clone() });
    }

    fn handle(&mut self, around: &mut ServerSurroundings<'_>, input: Input<MessageContent>) {
        self.gateway.handle(around.now(), input);
        self.drain(around);
    }

    /// Does what the machine says.
    fn drain(&mut self, around: &mut ServerSurroundings<'_>) {
        while let Some(output) = self.gateway.poll() {
            match output {
                Output::Send { to, packet } => {
                    around.answer(ConversationId(to.peer), DatagramPacket(packet));
                }
                Output::Broadcast(packet) => {
                    for peer in &self.peers {
                        around.answer(ConversationId(*peer), DatagramPacket(packet.clone()));
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

    fn link_at(&self, connection: TcpConnectionId) -> Option<Link> {
        self.numbers.get(&key(connection)).map(|link| Link(*link))
    }

    fn forget(&mut self, link: Link) -> Option<TcpConnectionId> {
        let connection = self.links.remove(&link.0)?;
        self.numbers.remove(&key(connection));
        Some(connection)
    }

    fn tell_broker(
        &mut self,
        around: &mut ServerSurroundings<'_>,
        link: Link,
        packet: BrokerPacket<MessageContent>,
    ) {
        let Some(connection) = self.links.get(&link.0).copied() else { return };
        let Some((packet, length)) = self.control_packet(around, connection, packet) else { return };
        around.transport.connection_mut(connection).append(Side::Client, packet, length);
        around.write((connection, Side::Client), &mut self.wrote_to);
    }

    /// A packet to the broker and its length. What it says beside that waits at the connection.
    fn control_packet(
        &self,
        around: &mut ServerSurroundings<'_>,
        connection: TcpConnectionId,
        packet: BrokerPacket<MessageContent>,
    ) -> Option<(StreamPacket, usize)> {
        let mut bytes = Vec::new();
        let (packet, says) = match packet {
            BrokerPacket::Publish { dup, qos, retain, topic, id, message } => {
                let topic = around.topics.number(self.to, &topic);
                let what = (message.message, topic);
                let said = (TopicNaming::Name, qos, id);
                let (packet, length) = around.groups.publication(around.topics, what, said, Version::V311);
                return Some((StreamPacket { dup, retain, ..packet }, length));
            }
            BrokerPacket::Acknowledgement { kind, id } => {
                return Some((StreamPacket::bare(kind, id), encode::ACKNOWLEDGEMENT_LEN));
            }
            BrokerPacket::Pingreq => return Some(bare(Kind::Pingreq)),
            BrokerPacket::Disconnect => return Some(bare(Kind::Disconnect)),
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
                        topic_alias_maximum: 0,
                        will: will.as_ref().map(|will| (&*will.topic, &message[..], will.qos, will.retain)),
                        username: None,
                        password: None,
                    },
                    &mut bytes,
                );
                let will = will.map(|will| packet_content::GatewayWill {
                    topic: around.topics.number(self.to, &will.topic),
                    qos: will.qos,
                    retain: will.retain,
                    message: will.message.message,
                });
                let keep_alive = Duration::from_s(keep_alive_s.into());
                let says = packet_content::PacketContent::Connect { client_id, clean, keep_alive, will };
                (StreamPacket::bare(Kind::Connect, 0), says)
            }
            BrokerPacket::Subscribe { id, filter, qos } => {
                encode::subscribe(id, std::iter::once((&*filter, qos)), Version::V311, &mut bytes);
                (
                    StreamPacket::bare(Kind::Subscribe, id),
                    packet_content::PacketContent::Subscribe { filter, qos },
                )
            }
            BrokerPacket::Unsubscribe { id, filter } => {
                encode::unsubscribe(id, std::iter::once(&*filter), Version::V311, &mut bytes);
                (
                    StreamPacket::bare(Kind::Unsubscribe, id),
                    packet_content::PacketContent::Unsubscribe { filter },
                )
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

    fn note_dropped(
        &mut self,
        around: &mut ServerSurroundings<'_>,
        client_id: Option<&Arc<str>>,
        content: MessageContent,
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
        if message_tokens::origin(content.message).is_some() {
            around.evidence.dropped(around.agenda.now(), content.message, subscriber, cause);
        }
    }
}

impl ServerModel for GatewayModel {
    fn start(&mut self, around: &mut ServerSurroundings<'_>) {
        self.drain(around);
        self.set_alarm(around.agenda);
    }

    fn on_datagram(&mut self, around: &mut ServerSurroundings<'_>, datagram: Rc<SimDatagram>) {
        self.enqueue(around, Work::Datagram(datagram));
    }

    fn on_tcp(&mut self, around: &mut ServerSurroundings<'_>, end: End, event: TcpEvent) {
        match event {
            TcpEvent::Connected => {
                if let Some(link) = self.link_at(end.0) {
                    self.handle(around, Input::Opened(link));
                    self.set_alarm(around.agenda);
                }
            }
            TcpEvent::Readable(offset) => {
                if around.reads_now(end, offset) {
                    self.read(around, end);
                }
            }
            TcpEvent::Writable(_) => around.write(end, &mut self.wrote_to),
            TcpEvent::PeerClosed | TcpEvent::Refused | TcpEvent::Reset | TcpEvent::TimedOut => {
                self.read(around, end);
                self.enqueue(around, Work::Closed(end.0));
                around.close(end);
            }
            TcpEvent::Acknowledged(_) | TcpEvent::Closed => {}
        }
    }

    fn read(&mut self, around: &mut ServerSurroundings<'_>, end: End) {
        let Some(offset) = around.read_socket(end) else { return };
        while let Some(packet) = around.transport.take_packet(around.evidence, around.topics, end, offset) {
            self.enqueue(around, Work::Broker(end.0, packet));
        }
    }

    fn on_timer(&mut self, around: &mut ServerSurroundings<'_>) {
        let now = around.now();
        if !self.alarm.is_due(now) {
            return;
        }
        while let Some(work) = self.inbox.served(now) {
            self.serve(around, work);
            self.inbox.begin(now);
        }
        if self.gateway.next_deadline().is_some_and(|at| at <= now) {
            self.handle(around, Input::Tick);
        }
        self.set_alarm(around.agenda);
    }

    fn resume(&mut self, around: &mut ServerSurroundings<'_>, stood: Duration, _: &[End]) {
        self.inbox.delay(stood);
        self.alarm.forget();
        self.set_alarm(around.agenda);
    }

    fn dropped(&self) -> u64 {
        self.dropped
    }

    fn snapshot(&self) -> ServerSnapshot<'_> {
        let snapshot = self.gateway.snapshot();
        let outbox = snapshot.to_clients + snapshot.to_broker;
        ServerSnapshot {
            inbox: self.inbox.len(),
            outbox,
            busy_until: self.inbox.done(),
            ..ServerSnapshot::default()
        }
    }
}

fn key(id: TcpConnectionId) -> (u32, u32) {
    (id.slot, id.generation)
}

/// A packet of the broker, as the machine knows it; `None` for one that says nothing to a gateway.
fn broker_packet(
    around: &ServerSurroundings<'_>,
    packet: &StreamPacket,
) -> Option<BrokerPacket<MessageContent>> {
    let id = packet.id;
    let kind = packet.kind.mqtt()?;
    Some(match kind {
        Kind::Connack => BrokerPacket::Connack { code: 0, session_present: packet.session_present },
        Kind::Publish => BrokerPacket::Publish {
            dup: packet.dup,
            qos: packet.qos,
            retain: packet.retain,
            topic: around.topics.name(packet.topic).into(),
            id,
            message: MessageContent { message: packet.message, bytes: packet.payload_bytes },
        },
        Kind::Puback | Kind::Pubrec | Kind::Pubrel | Kind::Pubcomp | Kind::Unsuback => {
            BrokerPacket::Acknowledgement { kind, id }
        }
        Kind::Suback => BrokerPacket::Suback { id, code: Qos::level(packet.qos) },
        Kind::Pingresp => BrokerPacket::Pingresp,
        _ => return None,
    })
}

/// A packet without a body, and its length.
fn bare(kind: Kind) -> (StreamPacket, usize) {
    (StreamPacket::bare(kind, 0), encode::BARE_LEN)
}
