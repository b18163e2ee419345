//! Clients in virtual time: `crates/client` over simulated TCP, or over datagrams. Packets are lengths, and reading the clock
//! takes no time.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use mqttlab_client::Surroundings as _;
use mqttlab_client::protocol::{AnySession, Envelope, Packet as Said, Received as Heard};
use mqttlab_client::{
    Arriving, Body, Books, ClientNumber, Connection, Delivery, Loss, MessageFacts, Offered, PacketId, Rows,
    Transport, Who,
};
use mqttlab_client::{mqtt, mqttsn, zeromq};
use mqttlab_mqtt::alias::{TopicAliases, TopicNaming};
use mqttlab_mqtt::client::Input;
use mqttlab_mqtt::{Kind, Qos};
use mqttlab_mqttsn::{Packet as SnSaid, Topic};
use mqttlab_plan::zeromq::socket_type;
use mqttlab_recording::identity::{self, Identity};
use mqttlab_recording::{
    Acknowledged, Dropped, EventKind, Identified, Payload, PayloadSource, PositionSample, Received, Sent,
    Unsent,
};
use mqttlab_run::MessageFigures;
use mqttlab_units::{Duration, Instant, OptionalInstant};
use mqttlab_zmtp::command::Command;
use mqttlab_zmtp::greeting::{self, Greeting};
use mqttlab_zmtp::{Kind as Frames, SocketType};

use crate::clients::surroundings::SimSurroundings;
use crate::hosts::datagrams::{DatagramPacket, MessageContent, SimDatagram};
use crate::hosts::layers::Tickets;
use crate::hosts::stream::StreamPacket;
use crate::ids::{ClientId, ConversationId, Side, TcpConnectionId};
use crate::message_tokens;

/// A client.
pub(crate) type Client = mqttlab_client::Client<AnySession, ClientSocket>;

/// A client's end of its connection, and its timer.
pub(crate) struct ClientSocket {
    /// From the beginning of opening to the end.
    pub(crate) id: Option<TcpConnectionId>,
    /// For when its client's timer is on the agenda.
    pub(crate) alarm: OptionalInstant,
    /// What it can resume a session of TLS with.
    tickets: Tickets,
    /// What it calls topics, where it gives aliases.
    pub(crate) aliases: Option<Box<TopicAliases>>,
    /// Whether its program reads.
    pub(crate) is_reading: bool,
    /// Whether its connection has ended, and its program has not read that.
    pub(crate) has_unread_end: bool,
    /// Instead of a connection.
    pub(crate) datagrams: Option<Box<DatagramSocket>>,
}

/// A client's socket for datagrams.
#[derive(Default)]
pub(crate) struct DatagramSocket {
    /// While it is open.
    pub(crate) conversation: Option<ConversationId>,
    /// What was put and not sent, with the positions where it ends.
    waiting: VecDeque<(DatagramPacket, u64)>,
    end: u64,
    sent: u64,
    /// What has come and was not read.
    pub(crate) come: VecDeque<Rc<SimDatagram>>,
}

impl ClientSocket {
    pub(crate) fn new(over_datagrams: bool, aliases: Option<Box<TopicAliases>>) -> ClientSocket {
        ClientSocket {
            id: None,
            alarm: OptionalInstant::NONE,
            tickets: Tickets::default(),
            aliases,
            is_reading: true,
            has_unread_end: false,
            datagrams: over_datagrams.then(Box::default),
        }
    }

    /// Whether it needs no opening and has no end.
    pub(crate) fn is_datagrams(&self) -> bool {
        self.datagrams.is_some()
    }

    /// Puts a packet behind what is to be sent.
    fn put_datagram(&mut self, packet: DatagramPacket) {
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.put(packet);
        }
    }
}

impl DatagramSocket {
    /// Puts a packet behind what is to be sent, and says where it ends.
    fn put(&mut self, packet: DatagramPacket) -> u64 {
        self.end += u64::from(packet.bytes());
        self.waiting.push_back((packet, self.end));
        self.end
    }
}

impl SimSurroundings<'_> {
    /// Puts a message into the stream as frames.
    fn put_frames(&mut self, client: Who, socket: &ClientSocket, body: Body<'_, RepeatedMessage>) -> u64 {
        let Body::Own { row, content } = body else {
            unreachable!("the plan was checked: nothing is relayed over ZeroMQ")
        };
        let Some(connection) = socket.id else { return 0 };
        let message = message_tokens::token(client.into(), content, row.sequence);
        let (packet, length) = self.groups.frames(self.topics, (message, row.topic));
        self.append(connection, packet, length)
    }

    /// Puts a message into a datagram of its own, and says where it ends.
    fn put_datagram(
        &mut self,
        client: Who,
        socket: &mut ClientSocket,
        envelope: Envelope,
        body: Body<'_, RepeatedMessage>,
    ) -> u64 {
        let (Some(datagrams), Body::Own { row, content }) = (&mut socket.datagrams, body) else {
            unreachable!("the plan was checked: nothing is relayed over datagrams")
        };
        let (message, payload_bytes) =
            (message_tokens::token(client.into(), content, row.sequence), row.payload_bytes);
        let content = MessageContent { message, bytes: payload_bytes };
        datagrams.put(match envelope {
            Envelope::MqttSn(mqttsn::Envelope { topic, id, qos, dup }) => {
                let (retain, message) = (row.retain, content);
                DatagramPacket(SnSaid::Publish { dup, qos, retain, topic, id, message })
            }
            Envelope::Mqtt(_) | Envelope::ZeroMq => unreachable!("they go over streams"),
        })
    }

    /// Keeps what a message carries, where the plan wants that: what its publisher's plan makes.
    fn keep_payload(&mut self, delivery: &Delivery) {
        let row = &delivery.row;
        let (Some(publisher), Some(content)) = (row.publisher, delivery.content) else { return };
        let identity = Identity { publisher, sequence: row.sequence, intended: delivery.intended };
        let due = self.conductor.due(ClientId(publisher), row.sequence).unwrap_or_default();
        if self.groups.write_payload(&identity, content, due, self.scratch) {
            let row = Payload::of(row, PayloadSource::Made);
            self.evidence.message(|recorder| recorder.payload(&row, self.scratch));
        }
    }
}

/// A message that is repeated, and the topic that it came or is repeated under.
#[derive(Clone, Copy, Default)]
pub(crate) struct RepeatedMessage {
    message: u64,
    topic: u32,
}

impl Connection for ClientSocket {
    type Relayed = RepeatedMessage;
}

impl Transport<AnySession, ClientSocket> for SimSurroundings<'_> {
    fn open(&mut self, client: Who, socket: &mut ClientSocket) -> Result<(), Loss> {
        if let Some(datagrams) = &mut socket.datagrams {
            let conversation = self.open_conversation(client.into()).map_err(Loss::broken)?;
            datagrams.conversation = Some(conversation);
            return Ok(());
        }
        socket.id = Some(self.connect(client.into(), socket.tickets).map_err(Loss::broken)?);
        Ok(())
    }

    fn not_opened(&self, socket: &ClientSocket) -> &'static str {
        let layered = socket.id.and_then(|id| self.transport.connection(id).layered.as_ref());
        mqttlab_client::not_opened(layered.and_then(|layered| layered.waits_for()))
    }

    fn put(&mut self, client: Who, socket: &mut ClientSocket, packet: Said) {
        let group = self.groups.group_of(client.into());
        let packet = match packet {
            Said::Mqtt(packet) => Ok(packet),
            Said::ZeroMq(packet) => Err(packet),
            Said::MqttSn(packet) => {
                let name = |topic| self.topics.name(topic).to_owned();
                let message = message_tokens::will(client.into());
                let content = |bytes: Vec<u8>| MessageContent { message, bytes: bytes.len() as u32 };
                let packet = mqttsn::packet(group, client.index, packet, name).map(Arc::from, content);
                return socket.put_datagram(DatagramPacket(packet));
            }
        };
        let Some(connection) = socket.id else { return };
        self.scratch.clear();
        let (packet, length) = match packet {
            Ok(packet) => self.groups.control(client, packet, self.scratch),
            Err(packet) => self.groups.command(self.topics, client, packet, self.scratch),
        };
        self.append(connection, packet, length);
        if packet.kind == Kind::Disconnect {
            self.transport.connection_mut(connection).say_farewell(Side::Client);
        }
    }

    fn put_message(
        &mut self,
        client: Who,
        socket: &mut ClientSocket,
        envelope: Envelope,
        body: Body<'_, RepeatedMessage>,
    ) -> u64 {
        let mqtt::Envelope { id, qos, dup } = match envelope {
            Envelope::Mqtt(envelope) => envelope,
            Envelope::MqttSn(_) => {
                return self.put_datagram(client, socket, envelope, body);
            }
            Envelope::ZeroMq => return self.put_frames(client, socket, body),
        };
        let Some(connection) = socket.id else { return 0 };
        let (message, topic, retain) = match body {
            Body::Own { row, content } => {
                (message_tokens::token(client.into(), content, row.sequence), row.topic, row.retain)
            }
            Body::Relayed(relayed) => (relayed.message, relayed.topic, false),
        };
        let version = self.groups.facts_of(client.into()).version;
        let naming = match (&mut socket.aliases, body) {
            (Some(aliases), Body::Own { .. }) => aliases.name(topic),
            _ => TopicNaming::Name,
        };
        let (packet, length) =
            self.groups.publication(self.topics, (message, topic), (naming, qos, id.0), version);
        self.append(connection, StreamPacket { dup, retain, ..packet }, length)
    }

    fn end(&self, socket: &ClientSocket) -> u64 {
        match &socket.datagrams {
            Some(datagrams) => datagrams.end,
            None => {
                socket.id.map(|id| self.stream(id)).map_or(0, |stream| stream.accepted() + stream.waiting())
            }
        }
    }

    fn written(&self, socket: &ClientSocket) -> u64 {
        match &socket.datagrams {
            Some(datagrams) => datagrams.sent,
            None => socket.id.map_or(0, |id| self.stream(id).accepted()),
        }
    }

    fn write(&mut self, socket: &mut ClientSocket) -> Result<(), Loss> {
        if let Some(datagrams) = &mut socket.datagrams
            && let Some(conversation) = datagrams.conversation
        {
            while let Some((packet, end)) = datagrams.waiting.pop_front() {
                self.send_datagram(conversation, packet);
                datagrams.sent = end;
            }
        }
        if let Some(connection) = socket.id
            && SimSurroundings::write(self, connection)
        {
            self.transmit(connection);
        }
        Ok(())
    }

    fn close(&mut self, _: Who, socket: &mut ClientSocket) {
        socket.has_unread_end = false;
        if let Some(datagrams) = &mut socket.datagrams
            && let Some(conversation) = std::mem::take(&mut **datagrams).conversation
        {
            self.transport.close_conversation(conversation);
        }
        if let Some(connection) = socket.id.take() {
            let layered = self.transport.connection(connection).layered.as_ref();
            socket.tickets = layered.map(|layered| layered.tickets()).unwrap_or_default();
            SimSurroundings::close(self, connection);
        }
    }

    fn vanish(&mut self, client: Who, socket: &mut ClientSocket) {
        if let Some(connection) = socket.id.take() {
            self.transport.connection_mut(connection).silence(self.agenda.now());
        }
        // What holds datagrams has nobody who waits for an end.
        Transport::<AnySession, ClientSocket>::close(self, client, socket);
    }

    fn rename(&mut self, client: Who, relayed: &mut RepeatedMessage, suffix: &str) -> bool {
        let copy = format!("{}{suffix}", self.topics.name(relayed.topic));
        // The longest topic (MQTT 5 §1.5.4): where copies of copies, each with a longer topic, end.
        let fits = copy.len() <= usize::from(u16::MAX);
        if fits {
            relayed.topic = self.topics.number(self.groups.facts_of(client.into()).serving, &copy);
        }
        fits
    }
}

impl Rows for SimSurroundings<'_> {
    fn sent(&mut self, row: &Sent) {
        self.evidence.message(|recorder| recorder.sent(row));
    }

    fn acknowledged(&mut self, row: &Acknowledged) {
        self.evidence.message(|recorder| recorder.acknowledged(row));
    }

    fn unsent(&mut self, row: &Unsent) {
        self.group_counts(ClientId(row.publisher)).unsent += 1;
        self.evidence.message(|recorder| recorder.unsent(row));
    }

    fn dropped(&mut self, row: &Dropped) {
        self.evidence.message(|recorder| recorder.dropped(row));
    }

    fn received(&mut self, row: &Received) {
        self.evidence.message(|recorder| recorder.received(row));
    }

    fn event(&mut self, kind: EventKind, client: ClientNumber, took: Option<Duration>, detail: &str) {
        self.evidence.event(self.agenda.now(), kind, Some(client.into()), took, detail);
    }
}

impl mqttlab_client::Surroundings for SimSurroundings<'_> {
    fn now(&self) -> Instant {
        self.agenda.now()
    }

    fn is_leaving(&self) -> bool {
        self.conductor.is_leaving()
    }

    fn books(&mut self) -> &mut Books {
        self.books
    }

    fn message(&self, client: Who, content: usize, index: u64, sequence: u64) -> Option<MessageFacts> {
        let (topics, facts) = (self.roster.published(client.number.0), self.groups.facts_of(client.into()));
        let publish = self.groups.group_of(client.into()).content(content);
        let place = facts.facts.publications[content].topic_place(publish.topic_index(client.index, index));
        Some(MessageFacts {
            topic: topics[place],
            payload_bytes: facts.publications[content].payload_bytes(client.index, sequence),
            quality: publish.quality(client.index, index),
        })
    }

    fn topic_name(&self, topic: u32) -> &str {
        self.roster.topics().get(topic as usize).map_or("", |topic| &topic.name)
    }

    fn subscription_change(&self, client: Who, number: u32) -> Option<(String, bool)> {
        let id = client.into();
        let (filter, qos) = self.groups.subscribed(id).change(self.groups.group_of(id), number)?;
        Some((filter, qos.is_some()))
    }

    fn has_subscriptions(&self, client: Who, changes: u32) -> bool {
        let id = client.into();
        !self.groups.subscribed(id).filters(self.groups.group_of(id), changes).is_empty()
    }

    fn deliveries(&self, row: &Sent) -> u32 {
        self.roster.deliveries(row.topic, row.publisher)
    }

    /// A back-to-back client writes before it makes more.
    fn is_turn_over(&self, offered: Offered) -> bool {
        offered.messages >= MESSAGES_A_TURN
    }

    fn offered(&mut self, row: &Sent, _: Duration) {
        self.group_counts(ClientId(row.publisher)).offered += 1;
        self.conductor.offered(ClientId(row.publisher), row.sequence, row.intended);
    }

    /// Messages say who they are, however small they are.
    fn admitted(&mut self, row: &Sent, content: usize) {
        if let Some(place) = self.groups.place_said(ClientId(row.publisher), content, row.sequence) {
            let row = PositionSample::said(row.sent, row.publisher, place);
            self.evidence.message(|recorder| recorder.position(&row));
        }
    }

    fn rest(&mut self, client: Who, asleep: bool) {
        self.transport.set_asleep(self.agenda.now(), self.groups.host_of(client.into()), asleep);
    }

    fn delivered(&mut self, delivery: &Delivery, first: bool) {
        let row = &delivery.row;
        self.keep_payload(delivery);
        self.group_counts(ClientId(row.subscriber)).delivered += u64::from(first);
        if let Some(publisher) = row.publisher.filter(|_| first) {
            let message = (ClientId(publisher), row.sequence);
            let latency = self.conductor.delivered(row.received, ClientId(row.subscriber), message);
            latency.into_iter().for_each(|latency| self.figures.latency(latency));
            let (groups, roster, topics) = (self.groups, self.roster, &*self.topics);
            self.figures.message(|| {
                let place = groups.topic_place_of(ClientId(publisher), row.sequence.into());
                let topic = place.map_or("", |place| topics.name(roster.published(publisher)[place]));
                let names = [publisher, row.subscriber].map(|client| {
                    let client = ClientId(client);
                    groups.group_of(client).client_id(groups.index_of(client))
                });
                MessageFigures::of(row, latency, topic, names.each_ref().map(String::as_str))
            });
        }
    }
}

impl<'a> Arriving<ClientSocket, SimSurroundings<'a>> for StreamPacket {
    fn qos(&self) -> Qos {
        self.qos
    }

    fn id(&self) -> PacketId {
        PacketId(self.id)
    }

    fn identify(&self, client: Who, _: &mut ClientSocket, around: &mut SimSurroundings<'a>) -> Delivery {
        let content = MessageContent { message: self.message, bytes: self.payload_bytes };
        identified(client, (content, self.qos), (self.dup, self.retain), around.now())
    }

    fn copy_to(&self, relayed: &mut RepeatedMessage) {
        *relayed = RepeatedMessage { message: message_tokens::copy(self.message), topic: self.topic };
    }
}

/// A client's program reads a datagram.
///
/// # Errors
/// The connection must end.
pub(crate) fn take_datagram(
    client: &mut Client,
    around: &mut SimSurroundings<'_>,
    datagram: &SimDatagram,
) -> Result<(), Loss> {
    if datagram.packet.message().is_some() {
        return client.message(around, datagram);
    }
    let packet = datagram.packet.0.clone().map(|text| Box::from(&*text), |_| ());
    client.packet(around, Heard::MqttSn(packet))
}

impl<'a> Arriving<ClientSocket, SimSurroundings<'a>> for SimDatagram {
    fn qos(&self) -> Qos {
        self.packet.account().qos.and_then(Qos::from_level).unwrap_or(Qos::AtMostOnce)
    }

    fn id(&self) -> PacketId {
        PacketId(self.packet.account().id)
    }

    fn alias(&self) -> Option<Topic> {
        self.packet.account().alias
    }

    fn identify(&self, client: Who, _: &mut ClientSocket, around: &mut SimSurroundings<'a>) -> Delivery {
        let account = self.packet.account();
        let content = self.packet.message().expect("only messages are asked");
        identified(client, (content, Arriving::qos(self)), (account.dup, account.retain), around.now())
    }

    /// Nobody relays over datagrams; the plan was checked.
    fn copy_to(&self, _: &mut RepeatedMessage) {}
}

/// A delivery of a message: what a live client could read off the payload.
fn identified(
    client: Who,
    (content, qos): (MessageContent, Qos),
    (dup, retained): (bool, bool),
    now: Instant,
) -> Delivery {
    let origin = message_tokens::origin(content.message);
    let identified = match origin {
        None => Identified::Unknown,
        // What it could only tell by the order.
        Some(_) if content.bytes < identity::BYTES_MIN as u32 => Identified::Order,
        Some(_) => Identified::Payload,
    };
    let row = Received {
        subscriber: client.number.0,
        publisher: origin.map(|(publisher, _)| publisher.0),
        sequence: origin.map_or(0, |(_, sequence)| sequence),
        qos: qos.level(),
        dup,
        retained,
        payload_bytes: content.bytes,
        received: now,
        identified,
    };
    // A will has no count.
    let owner = message_tokens::owner(content.message).0;
    let row = if origin.is_none() { row.with_will(Some(owner)) } else { row };
    // Their times are remembered by their publishers; see `DueTimes`.
    let number = origin.map(|_| message_tokens::content(content.message));
    Delivery { row, intended: None, content: number, is_a_clients: false }
}

/// What a packet of ZMTP tells a client's socket, but for messages.
fn zmtp_input(around: &SimSurroundings<'_>, client: ClientId, kind: Frames, packet: &StreamPacket) -> Heard {
    let prefix = || around.topics.name(packet.topic).as_bytes().into();
    let peer = match socket_type(around.groups.group_of(client)) {
        SocketType::Pub | SocketType::Xpub => SocketType::Xsub,
        SocketType::Sub | SocketType::Xsub => SocketType::Xpub,
    };
    let command = match kind {
        Frames::Greeting => {
            return Heard::ZeroMq(zeromq::Received::Greeting(Greeting { minor: greeting::MINOR }));
        }
        Frames::Ready => Command::Ready { socket: Some(peer), client: None },
        Frames::Subscribe => Command::Subscribe(prefix()),
        Frames::Cancel => Command::Cancel(prefix()),
        Frames::Pong => Command::Pong,
        Frames::Error => Command::Error(Box::default()),
        Frames::Ping | Frames::Message | Frames::Command => Command::Other,
    };
    Heard::ZeroMq(zeromq::Received::Command(command))
}

/// What a packet tells a client's session, but for messages. `None`: nothing.
pub(crate) fn input(around: &SimSurroundings<'_>, client: ClientId, packet: &StreamPacket) -> Option<Heard> {
    if let Some(kind) = packet.kind.zeromq() {
        return Some(zmtp_input(around, client, kind, packet));
    }
    let id = packet.id;
    Some(Heard::Mqtt(match packet.kind.mqtt()? {
        Kind::Connack => Input::Connack {
            accepted: true,
            session_present: packet.session_present,
            receive_maximum: packet.receive_maximum,
            keep_alive_s: None,
        },
        Kind::Puback => Input::Puback { id, code: 0 },
        Kind::Pubrec => Input::Pubrec { id, code: 0 },
        Kind::Pubrel => Input::Pubrel { id },
        Kind::Pubcomp => Input::Pubcomp { id },
        Kind::Suback => Input::Suback { id },
        Kind::Unsuback => Input::Unsuback { id },
        Kind::Pingresp => Input::Pingresp,
        // A broker sends nothing else but DISCONNECT, which no client here waits for.
        _ => return None,
    }))
}

impl From<Who> for ClientId {
    fn from(client: Who) -> ClientId {
        client.number.into()
    }
}

impl From<ClientNumber> for ClientId {
    fn from(client: ClientNumber) -> ClientId {
        ClientId(client.0)
    }
}

/// Messages that a client offers before it writes.
const MESSAGES_A_TURN: u32 = 1024;
