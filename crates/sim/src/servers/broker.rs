//! A broker: packets wait for it, it takes its time, and what it says goes to its sockets.
//!
//! ```text
//!   packet ──► inbox ──► service (per packet) ──► session machines ──► outbox (per copy) ──► socket
//! ```
//!
//! One packet is served at a time, as in a broker of one thread. Each packet that it sends is a write of its own, as
//! Mosquitto does it, so that Nagle's algorithm sees what it would see; over TLS each record is, and WebSocket connections are
//! written to in passes of its loop (`mosquitto_loop.rs`). A client that sends faster than it is served
//! finds the window closed: what has come stays in the socket while enough of its packets wait.

use std::collections::VecDeque;

use mqttlab_client::mqtt;
use mqttlab_mqtt::alias::TopicNaming;
use mqttlab_mqtt::broker::{self, Broker, BrokerOptions, Excess, Input, Kept, Output, SessionId, Will};
use mqttlab_mqtt::outbox::Refill;
use mqttlab_mqtt::{Kind, Qos, Version, encode};
use mqttlab_plan::{BrokerRole, HostLimits};
use mqttlab_recording::LossCause;
use mqttlab_tcp::TcpEvent;
use mqttlab_units::{Duration, Instant, Seed};

use super::broker_answers::{
    BrokerRequestContent, BrokerResponse, Request, acknowledgement, connack, has_tls, is_opened,
    is_websocket, reading, version, wakes,
};
use super::broker_limits::BrokerLimits;
use super::broker_topics::BrokerTopics;
use super::mosquitto_loop::{LoopPasses, ReadKind, SocketReads};
use super::service::{Alarm, ServiceQueue, ServiceTimes};
use super::{End, ServerModel, ServerSnapshot, ServerSurroundings};
use crate::control::event::SimEvent;
use crate::control::event_queue::EventQueue;
use crate::hosts::packet_content::PacketContent;
use crate::hosts::stream::{StreamContent, StreamPacket};
use crate::ids::{ClientId, ServerId, Side, TcpConnectionId};
use crate::message_tokens;

/// A broker, and what waits for it.
pub(crate) struct BrokerModel {
    id: ServerId,
    broker: Broker,
    /// Whether it has a disk.
    is_persistent: bool,
    inbox: ServiceQueue<Request>,
    outbox: VecDeque<(Instant, BrokerResponse)>,
    passes: LoopPasses,
    /// The pass ends with what was served last.
    ends_pass: bool,
    /// The client of each session that there is or was, by the session's number; none of one that many share.
    session_clients: Vec<Option<ClientId>>,
    topics: BrokerTopics,
    /// The connection that it has written to last.
    wrote_to: Option<TcpConnectionId>,
    /// Messages that a full queue or socket made it drop.
    dropped: u64,
    alarm: Alarm,
    /// What its host has of memory and disk.
    limits: BrokerLimits,
}

impl BrokerModel {
    pub(crate) fn new(
        id: ServerId,
        name: &str,
        role: &BrokerRole,
        limits: Option<HostLimits>,
        seed: Seed,
    ) -> BrokerModel {
        let settings = &role.settings;
        let options = BrokerOptions {
            max_inflight: settings.max_inflight.min(u16::MAX.into()) as u16,
            max_queued: settings.max_queued,
            retry: settings.retry.map(|retry| retry.interval),
            // Mosquitto's fault, and a live run's too: more are in flight than its configuration says.
            refill: Refill::ByPlace,
            excess: Excess::Dropped,
            topic_alias_maximum: settings.topic_alias_maximum,
            ..BrokerOptions::default()
        };
        BrokerModel {
            id,
            broker: Broker::new(options),
            is_persistent: settings.persistence,
            inbox: ServiceQueue::new(ServiceTimes::new(role.service, name, seed)),
            outbox: VecDeque::new(),
            passes: LoopPasses::default(),
            ends_pass: false,
            session_clients: Vec::new(),
            topics: BrokerTopics::default(),
            wrote_to: None,
            dropped: 0,
            alarm: Alarm::new(id),
            limits: BrokerLimits::new(limits, settings.persistence),
        }
    }

    /// When it has something to do next.
    fn next_deadline(&self) -> Option<Instant> {
        let sending = self.outbox.front().map(|(at, _)| *at);
        let times = [sending.or(self.inbox.done()), self.broker.next_deadline(), self.passes.due()];
        times.into_iter().flatten().min()
    }

    /// Begins with the next request, once everything before has been sent.
    fn begin(&mut self, around: &mut ServerSurroundings<'_>) {
        if self.outbox.is_empty() {
            if std::mem::take(&mut self.ends_pass) {
                self.end_pass(around);
            }
            self.limits
                .choose(around.now(), &self.broker, &mut self.inbox, |request| request.connection.slot);
            self.inbox.begin(around.now());
        }
    }

    /// Writes to each WebSocket connection that has something to be written: packet after packet, up to one that it does not write
    /// whole.
    fn end_pass(&mut self, around: &mut ServerSurroundings<'_>) {
        for (id, step) in self.passes.begin_opening() {
            if around.transport.connections().is_current(id) {
                self.proceed(around, id, step);
            }
        }
        for id in self.passes.begin_writing() {
            if !around.transport.connections().is_current(id) {
                continue;
            }
            while self.write_part(around, id) {
                if around.transport.connection(id).streams[Side::Server as usize].is_within_packet() {
                    self.passes.queue_write(id, around.now());
                    break;
                }
            }
            self.tell_backlog(around, id);
        }
        let takes = self.inbox.per_packet();
        self.passes.end(around.now(), takes);
    }

    /// Reads what has come, unless enough waits to be served.
    fn read_if_served(&mut self, around: &mut ServerSurroundings<'_>, id: TcpConnectionId) {
        if around.transport.connection(id).unserved < UNSERVED_MAX {
            self.read_socket(around, id);
        }
    }

    /// Reads what it had left in the socket.
    fn read_socket(&mut self, around: &mut ServerSurroundings<'_>, id: TcpConnectionId) {
        let end = (id, Side::Server);
        let readable = around.transport.connection(id).ends[Side::Server as usize].readable();
        let Some(offset) = around.read_socket(end) else { return };
        if !is_opened(around, id) {
            return self.hear_steps(around, id, offset);
        }
        let reading = reading(around, id);
        let mut turns = SocketReads::new(reading, offset.saturating_sub(readable));
        let mut last: Option<(StreamPacket, ReadKind)> = None;
        while let Some(packet) = around.transport.take_packet(around.evidence, around.topics, end, offset) {
            let turn = turns.next(packet.end);
            // What follows in the same read decides whether the pass ends with it.
            if let Some((before, ends)) = last.replace((packet, turn)) {
                let turn = if turns.is_same_read() { ReadKind::Goes } else { ends };
                self.request(
                    around,
                    Request { connection: id, what: BrokerRequestContent::Packet(before), turn },
                );
            }
        }
        let has_none = last.is_none();
        if let Some((packet, turn)) = last {
            if packet.end < offset {
                self.passes.leave_data();
            }
            self.request(
                around,
                Request { connection: id, what: BrokerRequestContent::Packet(packet), turn },
            );
        }
        // A part of a packet is read in a pass, too.
        if has_none && self.inbox.len() == 0 && self.passes.is_waiting() {
            self.end_pass(around);
            self.set_alarm(around.agenda);
        }
        let (begun, to_come) = around.transport.connection(end.0).begun(end.1, offset);
        self.limits.set_begun(id, begun);
        // What is left of a large packet: Mosquitto's reading sets the time of the last packet (`packet__read`).
        if to_come > LIFE_SIGN_BYTES {
            self.broker.heard(around.agenda.now(), broker::ConnectionId(id.slot));
        }
    }

    /// What opens a WebSocket connection waits for passes of the loop, and begins none.
    fn hear_steps(&mut self, around: &mut ServerSurroundings<'_>, id: TcpConnectionId, offset: u64) {
        let (end, has_tls) = ((id, Side::Server), has_tls(around, id));
        while let Some(packet) = around.transport.take_packet(around.evidence, around.topics, end, offset) {
            if let StreamContent::Step(step) = packet.carries {
                self.passes.queue_step(id, step, has_tls, around.now());
            }
        }
        self.set_alarm(around.agenda);
    }

    fn request(&mut self, around: &mut ServerSurroundings<'_>, request: Request) {
        around.transport.connection_mut(request.connection).unserved += 1;
        self.inbox.push(request);
        self.begin(around);
        self.set_alarm(around.agenda);
    }

    fn set_alarm(&mut self, agenda: &mut EventQueue<SimEvent>) {
        self.alarm.set(self.next_deadline(), agenda);
    }

    fn attend(&mut self, around: &mut ServerSurroundings<'_>, request: &Request) {
        let id = request.connection;
        match request.turn {
            ReadKind::Goes => {}
            ReadKind::Ends => self.ends_pass = true,
            ReadKind::Late => self.end_pass(around),
        }
        // The slot may have been given to another connection since.
        if !around.transport.connections().is_current(id) {
            return;
        }
        around.transport.connection_mut(id).unserved -= 1;
        self.topics.introduce(&mut self.broker, self.id, around.topics);
        match &request.what {
            BrokerRequestContent::Packet(packet) => {
                self.limits.set_handled(id, packet.end - packet.start);
                self.attend_packet(around, id, packet);
            }
            BrokerRequestContent::Closed => {
                self.limits.forget_socket(id);
                self.passes.forget_steps(id);
                self.broker.closed(around.agenda.now(), broker::ConnectionId(id.slot));
                around.transport.close(around.agenda, around.evidence, id, Side::Server);
            }
        }
        self.gather(around);
        if around.transport.connection(id).unserved == 0 {
            self.read_socket(around, id);
        }
    }

    fn attend_packet(
        &mut self,
        around: &mut ServerSurroundings<'_>,
        id: TcpConnectionId,
        packet: &StreamPacket,
    ) {
        let (now, socket) = (around.agenda.now(), broker::ConnectionId(id.slot));
        match packet.carries {
            StreamContent::Packet => {}
            StreamContent::Step(step) => return self.proceed(around, id, step),
            StreamContent::Farewell => return,
        }
        self.limits.hold(around, packet);
        // Clients of other protocols have servers of their own: the plan was checked.
        let Some(kind) = packet.kind.mqtt() else { return };
        let input = match kind {
            Kind::Connect => return self.attend_connect(around, id),
            Kind::Subscribe | Kind::Unsubscribe if around.transport.connection(id).said.is_some() => {
                return self.attend_said(around, id, packet.id);
            }
            Kind::Subscribe => {
                let Some(client) = around.client_at(id) else { return };
                let filters = around.groups.filters_of(client, packet);
                let filters = filters.iter().filter_map(|(name, wanted)| Some((&**name, (*wanted)?)));
                let filters: Vec<(&str, _)> = filters.collect();
                let input = Input::Subscribe { id: packet.id, filters: &filters };
                return self.broker.handle(now, socket, input);
            }
            Kind::Unsubscribe => {
                let Some(client) = around.client_at(id) else { return };
                let filters = around.groups.filters_of(client, packet);
                let filters: Vec<&str> = filters.iter().map(|(name, _)| &**name).collect();
                return self.broker.handle(
                    now,
                    socket,
                    Input::Unsubscribe { id: packet.id, filters: &filters },
                );
            }
            Kind::Publish => Input::Publish {
                topic: self.topics.id(packet.topic),
                message: packet.message,
                qos: packet.qos,
                id: packet.id,
                dup: packet.dup,
                retain: packet.retain,
                empty: around.groups.payload_bytes(packet.message) == 0,
                expiry_s: around.groups.expiry_s(packet.message),
            },
            Kind::Puback => Input::Puback { id: packet.id },
            Kind::Pubrec => Input::Pubrec { id: packet.id },
            Kind::Pubrel => Input::Pubrel { id: packet.id },
            Kind::Pubcomp => Input::Pubcomp { id: packet.id },
            Kind::Pingreq => Input::Pingreq,
            Kind::Disconnect => Input::Disconnect { with_will: false },
            _ => return,
        };
        self.broker.handle(now, socket, input);
    }

    /// A client opens what lies between TCP and its packets: says what follows.
    fn proceed(&mut self, around: &mut ServerSurroundings<'_>, id: TcpConnectionId, step: u8) {
        for said in around.transport.connection(id).following(Side::Server, Some(step)) {
            around.transport.connection_mut(id).append_step(Side::Server, said);
            self.write(around, id);
        }
    }

    /// A gateway's packet, whose content waits at its connection.
    fn attend_said(&mut self, around: &mut ServerSurroundings<'_>, id: TcpConnectionId, packet: u16) {
        let (now, socket) = (around.agenda.now(), broker::ConnectionId(id.slot));
        let said = around.transport.connection_mut(id).said.as_mut().and_then(|waiting| waiting.pop_front());
        match said {
            Some(PacketContent::Subscribe { filter, qos }) => {
                let filters = [(&*filter, qos.into())];
                self.broker.handle(now, socket, Input::Subscribe { id: packet, filters: &filters });
            }
            Some(PacketContent::Unsubscribe { filter }) => {
                self.broker.handle(now, socket, Input::Unsubscribe { id: packet, filters: &[&*filter] });
            }
            Some(PacketContent::Connect { client_id, clean, keep_alive, will }) => {
                self.topics.introduce(&mut self.broker, self.id, around.topics);
                let will = will.map(|will| Will {
                    topic: self.topics.id(will.topic),
                    message: will.message,
                    qos: will.qos,
                    retain: will.retain,
                    empty: around.groups.payload_bytes(will.message) == 0,
                });
                let input = Input::Connect {
                    client: &client_id,
                    version: Version::V311,
                    clean,
                    keep_alive,
                    session_expiry: clean.then_some(Duration::ZERO),
                    receive_maximum: u16::MAX,
                    will,
                };
                self.broker.handle(now, socket, input);
                self.note_session(socket, around.client_at(id));
            }
            None => {}
        }
    }

    fn attend_connect(&mut self, around: &mut ServerSurroundings<'_>, id: TcpConnectionId) {
        if around.transport.connection(id).said.is_some() {
            return self.attend_said(around, id, 0);
        }
        let Some(client) = around.client_at(id) else { return };
        let (group, who) = (around.groups.group_of(client), around.groups.credentials_of(client));
        let fields = mqtt::connect_fields(group, &who);
        let will_topic = fields.will.map(|(topic, ..)| around.topics.number(self.id, topic));
        self.topics.introduce(&mut self.broker, self.id, around.topics);
        let will = fields.will.zip(will_topic).map(|((_, payload, qos, retain), topic)| Will {
            topic: self.topics.id(topic),
            message: message_tokens::will(client),
            qos,
            retain,
            empty: payload.is_empty(),
        });
        let input = Input::Connect {
            client: fields.client_id,
            version: fields.version,
            clean: fields.clean,
            keep_alive: Duration::from_s(fields.keep_alive_s.into()),
            session_expiry: fields.session_expiry(),
            receive_maximum: fields.receive_maximum(),
            will,
        };
        let socket = broker::ConnectionId(id.slot);
        self.broker.handle(around.agenda.now(), socket, input);
        self.note_session(socket, Some(client));
    }

    /// Remembers whose session it is: numbers are used again.
    fn note_session(&mut self, socket: broker::ConnectionId, client: Option<ClientId>) {
        let Some(session) = self.broker.session_of(socket) else { return };
        let clients = &mut self.session_clients;
        if clients.len() <= session.0 as usize {
            clients.resize(session.0 as usize + 1, client);
        }
        clients[session.0 as usize] = client;
    }

    /// Takes what the broker says into the outbox; each copy of a message takes its time.
    fn gather(&mut self, around: &mut ServerSurroundings<'_>) {
        let now = around.agenda.now();
        let mut at = self.outbox.back().map_or(now, |(at, _)| (*at).max(now));
        let mut copied = 0;
        while let Some(output) = self.broker.poll() {
            if matches!(output, Output::Publish { .. }) {
                // Many long copies may last beyond the end of time: the last ones are never sent.
                at = at.saturating_add(self.inbox.per_copy());
            }
            if let Some(response) = self.response(around, &output) {
                copied += response.packet.map_or(0, |(_, length)| length as u64);
                self.limits.note_peak(copied);
                self.outbox.push_back((at, response));
            }
        }
        self.limits.note_peak(copied);
    }

    fn response(&mut self, around: &mut ServerSurroundings<'_>, output: &Output) -> Option<BrokerResponse> {
        let (socket, packet) = match *output {
            Output::Connack { connection, session_present, receive_maximum, topic_alias_maximum, .. } => {
                let told = (receive_maximum, topic_alias_maximum);
                (connection, Some(connack(version(around, connection), session_present, told)))
            }
            Output::Suback { connection, id, ref granted } => {
                let single = encode::suback_len(version(around, connection));
                let length = single + granted.len().saturating_sub(1);
                // A gateway asks for one at a time, and passes on what it got.
                let qos = granted.first().copied().unwrap_or(Qos::AtMostOnce);
                (connection, Some((StreamPacket { qos, ..StreamPacket::bare(Kind::Suback, id) }, length)))
            }
            Output::Unsuback { connection, id } => {
                let length = encode::unsuback_len(version(around, connection));
                (connection, Some((StreamPacket::bare(Kind::Unsuback, id), length)))
            }
            Output::Publish { connection, topic, message, qos, id, dup, retain, expiry_s } => {
                let version = version(around, connection);
                let (packet, length) = around.groups.forwarded(
                    around.topics,
                    (message, self.topics.number(topic)),
                    // Mosquitto 2.0.11 gives no aliases, whatever the client's maximum is (tried).
                    (TopicNaming::Name, qos, id),
                    (version, expiry_s),
                );
                (connection, Some((StreamPacket { dup, retain, ..packet }, length)))
            }
            Output::Puback { connection, id } => (connection, acknowledgement(Kind::Puback, id)),
            Output::Pubrec { connection, id } => (connection, acknowledgement(Kind::Pubrec, id)),
            Output::Pubrel { connection, id } => (connection, acknowledgement(Kind::Pubrel, id)),
            Output::Pubcomp { connection, id } => (connection, acknowledgement(Kind::Pubcomp, id)),
            Output::Pingresp { connection } => {
                (connection, Some((StreamPacket::bare(Kind::Pingresp, 0), encode::BARE_LEN)))
            }
            Output::Close { connection } => (connection, None),
            Output::Dropped { session, message, cause } => {
                self.note_dropped(around, session, message, cause);
                return None;
            }
            Output::Discarded { message } => {
                self.dropped += 1;
                around.evidence.dropped(around.agenda.now(), message, None, LossCause::OverInflight);
                return None;
            }
            // Tokens say which message it is, and are never used again.
            Output::Released { message } => {
                self.limits.release(message);
                return None;
            }
        };
        Some(BrokerResponse { connection: around.transport.connections().at(socket.0), packet })
    }

    /// The broker has dropped a message for a session.
    fn note_dropped(
        &mut self,
        around: &mut ServerSurroundings<'_>,
        session: SessionId,
        message: u64,
        cause: broker::Cause,
    ) {
        let cause = match cause {
            broker::Cause::QueueFull => LossCause::QueueFull,
            broker::Cause::SocketFull => LossCause::SocketFull,
            broker::Cause::Away => LossCause::ConnectionLost,
            broker::Cause::Expired => LossCause::Expired,
            broker::Cause::SessionEnded => LossCause::SessionEnded,
        };
        self.dropped += u64::from(cause.is_dropped_by_server());
        // Which of those who share a session would have got it, the broker does not know.
        if let Some(client) = self.session_clients[session.0 as usize] {
            around.evidence.dropped(around.agenda.now(), message, Some(client), cause);
        }
    }

    fn respond(&mut self, around: &mut ServerSurroundings<'_>, response: &BrokerResponse) {
        let id = response.connection;
        if !around.transport.connections().is_current(id) {
            return;
        }
        let Some((packet, length)) = response.packet else {
            self.limits.forget_socket(id);
            around.transport.connection_mut(id).say_farewell(Side::Server);
            self.write(around, id);
            return around.transport.close(around.agenda, around.evidence, id, Side::Server);
        };
        around.transport.connection_mut(id).append(Side::Server, packet, length);
        if is_websocket(around, id) {
            self.passes.queue_write(id, around.now());
        } else {
            self.write(around, id);
        }
        self.tell_backlog(around, id);
    }

    /// Hands what waits to a socket, as far as it takes it.
    fn write(&mut self, around: &mut ServerSurroundings<'_>, id: TcpConnectionId) {
        while self.write_part(around, id) {}
    }

    /// Hands what waits to a socket, a part where it is written in parts; `false` when it took nothing.
    fn write_part(&mut self, around: &mut ServerSurroundings<'_>, id: TcpConnectionId) -> bool {
        if around.transport.connection(id).streams[Side::Server as usize].waiting() == 0 {
            return false;
        }
        // The broker has one thread for all of its sockets.
        let apart = self.wrote_to.replace(id) != Some(id);
        let has_written = around.transport.connection_mut(id).write(around.agenda.now(), Side::Server, apart);
        if has_written {
            around.transport.transmit(around.agenda, around.evidence, id, Side::Server);
        }
        has_written
    }

    /// The program has ended, or found an empty disk: what the machine has to say is heard by nobody, but for what is lost.
    fn forget_program(&mut self, around: &mut ServerSurroundings<'_>, kept: Kept) {
        let now = around.now();
        let client = |around: &ServerSurroundings<'_>, id: TcpConnectionId| {
            around.transport.connections().is_current(id).then(|| around.client_at(id))
        };
        for (_, BrokerResponse { connection, packet }) in self.outbox.drain(..) {
            if let (Some((packet, _)), Some(client)) = (packet, client(around, connection)) {
                around.evidence.dropped_with_connection(now, client, Side::Server, &packet);
            }
        }
        for request in self.inbox.drain() {
            if let (BrokerRequestContent::Packet(packet), Some(client)) =
                (request.what, client(around, request.connection))
            {
                around.evidence.dropped_with_connection(now, client, Side::Client, &packet);
            }
        }
        self.broker.end(now, kept);
        while let Some(output) = self.broker.poll() {
            let _ = self.response(around, &output);
        }
        (self.passes, self.ends_pass, self.wrote_to) = (LoopPasses::default(), false, None);
        self.alarm.forget();
        self.limits.forget_sockets();
    }

    /// Tells the broker how much waits for a socket: it drops QoS 0 messages behind a long queue.
    fn tell_backlog(&mut self, around: &ServerSurroundings<'_>, id: TcpConnectionId) {
        let stream = &around.transport.connection(id).streams[Side::Server as usize];
        let waiting = stream.packets_waiting() as u32;
        self.broker.set_backlog(broker::ConnectionId(id.slot), waiting);
        self.limits.set_waiting(id, waiting, stream.held());
    }
}

impl ServerModel for BrokerModel {
    fn on_tcp(&mut self, around: &mut ServerSurroundings<'_>, end: End, event: TcpEvent) {
        let (id, _) = end;
        match event {
            TcpEvent::Readable(offset) => {
                if around.reads_now(end, offset) {
                    self.read_if_served(around, id);
                }
            }
            TcpEvent::Writable(_) if is_websocket(around, id) => {
                self.passes.queue_write(id, around.now());
                self.set_alarm(around.agenda);
            }
            TcpEvent::Writable(_) => {
                self.write(around, id);
                self.tell_backlog(around, id);
            }
            TcpEvent::PeerClosed | TcpEvent::Refused | TcpEvent::Reset | TcpEvent::TimedOut => {
                self.read_socket(around, id);
                let turn = if wakes(around, end) { ReadKind::Ends } else { ReadKind::Goes };
                self.request(around, Request { connection: id, what: BrokerRequestContent::Closed, turn });
            }
            TcpEvent::Connected | TcpEvent::Acknowledged(_) | TcpEvent::Closed => {}
        }
    }

    fn read(&mut self, around: &mut ServerSurroundings<'_>, (id, _): End) {
        self.read_if_served(around, id);
    }

    fn on_timer(&mut self, around: &mut ServerSurroundings<'_>) {
        let now = around.agenda.now();
        if !self.alarm.is_due(now) {
            return;
        }
        loop {
            if let Some((_, response)) = self.outbox.pop_front_if(|(due, _)| *due <= now) {
                self.respond(around, &response);
            } else if let Some(request) = self.inbox.served(now) {
                self.attend(around, &request);
            } else if self.broker.next_deadline().is_some_and(|deadline| deadline <= now) {
                self.broker.tick(now);
                self.gather(around);
            } else if self.passes.due().is_some_and(|due| due <= now) {
                self.end_pass(around);
            } else {
                break;
            }
            self.begin(around);
        }
        self.set_alarm(around.agenda);
    }

    fn resume(&mut self, around: &mut ServerSurroundings<'_>, stood: Duration, readable: &[End]) {
        self.inbox.delay(stood);
        self.outbox.iter_mut().for_each(|(at, _)| *at = at.saturating_add(stood));
        self.passes.delay(stood);
        // Mosquitto reads its sockets before it looks who has been silent for too long.
        for (id, _) in readable {
            self.broker.heard(around.now(), broker::ConnectionId(id.slot));
        }
        self.alarm.forget();
        self.set_alarm(around.agenda);
    }

    fn is_serving(&self, id: TcpConnectionId) -> bool {
        self.inbox.in_service().is_some_and(|request| request.connection == id)
    }

    fn say_farewell(&mut self, around: &mut ServerSurroundings<'_>) {
        self.topics.introduce(&mut self.broker, self.id, around.topics);
        self.broker.publish_wills(around.now());
        self.gather(around);
        while let Some((_, response)) = self.outbox.pop_front() {
            self.respond(around, &response);
        }
    }

    fn end(&mut self, around: &mut ServerSurroundings<'_>, in_order: bool, persistence: bool) {
        let kept = match (self.is_persistent && persistence, in_order) {
            (false, _) => Kept::Nothing,
            (true, true) => Kept::Everything,
            (true, false) => Kept::Written,
        };
        self.forget_program(around, kept);
    }

    fn start_again(&mut self, around: &mut ServerSurroundings<'_>, persistence: bool) -> bool {
        if !persistence {
            self.forget_program(around, Kept::Nothing);
        }
        self.set_alarm(around.agenda);
        true
    }

    fn dropped(&self) -> u64 {
        self.dropped
    }

    fn exceeds_memory(&mut self) -> bool {
        self.limits.exceeds_memory(&self.broker)
    }

    fn snapshot(&self) -> ServerSnapshot<'_> {
        ServerSnapshot {
            inbox: self.inbox.len(),
            outbox: self.outbox.len(),
            busy_until: self.inbox.done(),
            sessions: self.broker.session_infos().collect(),
        }
    }
}

/// Bytes of a packet still to come from which on those that have come count for the keep-alive (measured with Mosquitto 2.0.11).
const LIFE_SIGN_BYTES: u64 = 1000;
/// A few milliseconds of the broker's time. Mosquitto itself reads one packet at a time.
const UNSERVED_MAX: u32 = 256;
