//! One client: its connection, its session, its schedule.
//!
//! ```text
//!            connect            established            CONNACK
//!   Waiting ─────────► Opening ─────────────► Open ─────────────► ... online ─► SUBACK ─► ready
//!      ▲                  │ refused, timeout    │ lost
//!      └──── backoff ─────┴─────────────────────┴──────► Gone (no reconnect, refused for good, farewell)
//! ```
//!
//! The session machine decides what is sent; this file moves bytes and keeps the books. How messages go out is in
//! `publishing`, what happens to packets that come in is in `receiving`.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use mqttlab_mqtt::client::{Client as Session, Input, Output, Reason};
use mqttlab_mqtt::encode::{self, ConnectFields};
use mqttlab_mqtt::{Kind, Qos};
use mqttlab_plan::{Arrivals, Arrived, Group, qos};
use mqttlab_recording::{EventKind, Sent};
use mqttlab_units::{Dice, Duration, Instant};

use super::epoll::Ready;
use super::incoming::Incoming;
use super::messages::Messages;
use super::order::ReceivedInOrder;
use super::outbox::Outbox;
use super::pace;
use super::receiving::Held;
use super::shared::{GroupFacts, Shared};
use super::socket;
use super::turn::{Reception, Turn};

pub(super) struct Client {
    /// Its number in the run.
    pub(super) number: u32,
    /// Its place among its worker's.
    pub(super) slot: u32,
    group: usize,
    /// Its number in its group.
    pub(super) index: u32,
    connection: Connection,
    pub(super) session: Session,
    pub(super) outbox: Outbox,
    pub(super) incoming: Incoming,
    pub(super) messages: Messages,
    /// Messages in the outbox that the socket has not taken, with the stream's position behind them.
    pub(super) unwritten: VecDeque<Unwritten>,
    pub(super) arrivals: Option<Arrivals>,
    /// Of each publisher, what has arrived.
    pub(super) arrived: HashMap<u32, Arrived>,
    pub(super) order: ReceivedInOrder,
    /// QoS 2 messages that wait for their PUBREL.
    pub(super) held: Vec<Held>,
    standing: Standing,
    /// Attempts to connect since the last success.
    attempts: u32,
    /// Whether the broker has ever accepted this client.
    accepted: bool,
    /// Whether the broker has ever accepted this client's subscriptions.
    subscribed: bool,
    subscribe_sent: Instant,
    dice: Dice,
    /// The session wants the connection to end.
    doomed: Option<Loss>,
}

pub(super) struct Unwritten {
    pub(super) end: u64,
    pub(super) token: u64,
    pub(super) row: Sent,
    /// Whether the recording already has the message, without the time of writing.
    pub(super) said: bool,
}

enum Connection {
    /// Not before this instant.
    Waiting(Instant),
    Opening {
        socket: OwnedFd,
        since: Instant,
    },
    Open {
        socket: OwnedFd,
        since: Instant,
    },
    Gone,
}

/// What the figures count this client as.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Standing {
    Absent,
    Connected,
    Ready,
}

/// Why a connection ends.
pub(super) enum Loss {
    /// The transport, or bytes that are not MQTT.
    Broken(String),
    /// CONNACK says no; whether trying again is of no use.
    Refused { code: u8, for_good: bool },
    /// As planned.
    Farewell,
}

impl Client {
    pub(super) fn new(shared: &Shared, group: usize, index: u32, slot: u32, start: Instant) -> Client {
        let plan = shared.group(group);
        let number = shared.starts[group] + index;
        let share = u128::from(plan.connect_over.as_ns()) * u128::from(index) / u128::from(plan.count);
        Client {
            number,
            slot,
            group,
            index,
            connection: Connection::Waiting(start + Duration::from_ns(share as u64)),
            session: Session::new(shared.groups[group].options),
            outbox: Outbox::default(),
            incoming: Incoming::default(),
            messages: Messages::default(),
            unwritten: VecDeque::new(),
            arrivals: None,
            arrived: HashMap::new(),
            order: ReceivedInOrder::default(),
            held: Vec::new(),
            standing: Standing::Absent,
            attempts: 0,
            accepted: false,
            subscribed: false,
            subscribe_sent: Instant::ZERO,
            dice: shared.plan.seed.derive("reconnect").index(u64::from(number)).dice(),
            doomed: None,
        }
    }

    pub(super) fn plan<'s>(&self, shared: &'s Shared) -> &'s Group {
        shared.group(self.group)
    }

    pub(super) fn facts<'s>(&self, shared: &'s Shared) -> &'s GroupFacts {
        &shared.groups[self.group]
    }

    /// Whether it has nothing left to do.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.connection, Connection::Gone)
    }

    /// The schedule is known.
    pub(super) fn begin(&mut self, turn: &mut Turn<'_>, from: Instant, until: Instant) {
        let plan = self.plan(turn.shared);
        if let Some(publish) = &plan.publish {
            self.arrivals =
                Some(Arrivals::new(plan, publish, self.index, turn.shared.plan.seed, from, until));
            turn.tally.publishing += 1;
        }
        self.set_timer(turn);
    }

    /// A deadline may have come.
    pub(super) fn wake(&mut self, turn: &mut Turn<'_>) {
        let timeout = self.plan(turn.shared).reconnect.connect_timeout;
        match &self.connection {
            Connection::Waiting(at) if *at <= turn.now => self.connect(turn),
            Connection::Opening { since, .. } if turn.now >= *since + timeout => {
                self.lose(turn, Loss::Broken("no TCP connection in time".into()));
            }
            Connection::Open { since, .. } => self.tick_session(turn, *since),
            _ => {}
        }
        self.lose_if_doomed(turn);
        self.publish_due(turn);
        self.flush(turn);
    }

    fn tick_session(&mut self, turn: &mut Turn<'_>, since: Instant) {
        let timeout = self.plan(turn.shared).reconnect.connect_timeout;
        // After a farewell the session is offline too, and nothing is due any more.
        if !self.session.is_online() && !turn.leaving && turn.now >= since + timeout {
            return self.lose(turn, Loss::Broken("no CONNACK in time".into()));
        }
        if self.session.next_deadline().is_some_and(|deadline| deadline <= turn.now) {
            self.handle(turn, Input::Tick);
        }
    }

    /// The socket has something to read, or room, or an end.
    pub(super) fn react(&mut self, turn: &mut Turn<'_>, ready: Ready) {
        if ready.writable && matches!(self.connection, Connection::Opening { .. }) {
            self.finish_opening(turn);
        }
        if ready.readable && matches!(self.connection, Connection::Open { .. }) {
            turn.answered = [0; 3];
            self.receive(turn, ready.ended);
            let window = turn.shared.plan.broker.settings.max_inflight;
            let strains = |qos: Qos| pace::strains(qos, turn.answered[usize::from(qos.level())], window);
            *turn.hurried |= strains(Qos::AtLeastOnce) || strains(Qos::ExactlyOnce);
        }
        self.lose_if_doomed(turn);
        if self.facts(turn.shared).back_to_back {
            self.publish_due(turn);
        }
        self.flush(turn);
    }

    /// Says goodbye; what is in the outbox still goes out.
    pub(super) fn leave(&mut self, turn: &mut Turn<'_>) {
        self.stop_publishing(turn);
        match self.connection {
            Connection::Open { .. } => {
                self.handle(turn, Input::Disconnect);
                self.flush(turn);
            }
            _ => self.lose(turn, Loss::Farewell),
        }
    }

    /// Ends without a word: the time for farewells is over.
    pub(super) fn abandon(&mut self, turn: &mut Turn<'_>) {
        if !self.is_gone() {
            self.lose(turn, Loss::Farewell);
        }
    }

    fn connect(&mut self, turn: &mut Turn<'_>) {
        if self.attempts > 0 || self.accepted {
            turn.event(EventKind::Reconnect, self.number, None, "");
        }
        self.attempts += 1;
        let plan = self.plan(turn.shared);
        let host = plan.host_of(self.index);
        match self.open_socket(turn, host, plan.tcp_nodelay) {
            Ok(socket) => {
                self.connection = Connection::Opening { socket, since: turn.now };
                self.set_timer(turn);
            }
            Err(error) => {
                let no_descriptor = matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
                turn.tally.no_descriptor += u64::from(no_descriptor);
                self.lose(turn, Loss::Broken(format!("cannot connect: {error}")));
            }
        }
    }

    fn open_socket(&self, turn: &Turn<'_>, host: usize, nodelay: bool) -> io::Result<OwnedFd> {
        let socket = turn.shared.sockets.socket(host)?;
        socket::set_nodelay(socket.as_fd(), nodelay)?;
        socket::connect(socket.as_fd(), turn.shared.sockets.broker_address())?;
        turn.epoll.add(&socket, self.slot)?;
        Ok(socket)
    }

    fn finish_opening(&mut self, turn: &mut Turn<'_>) {
        let Connection::Opening { socket, since } = std::mem::replace(&mut self.connection, Connection::Gone)
        else {
            return;
        };
        let result = socket::take_error(socket.as_fd());
        self.connection = Connection::Open { socket, since };
        match result {
            Ok(()) => self.handle(turn, Input::Opened),
            Err(error) => {
                turn.tally.turned_away += u64::from(error.kind() == io::ErrorKind::ConnectionRefused);
                self.lose(turn, Loss::Broken(format!("cannot connect: {error}")));
            }
        }
    }

    fn receive(&mut self, turn: &mut Turn<'_>, ended: bool) {
        let mut buffer = std::mem::take(turn.buffer);
        let loss = self.receive_into(turn, &mut buffer, ended);
        *turn.buffer = buffer;
        if let Err(loss) = loss {
            self.lose(turn, loss);
        }
    }

    fn receive_into(&mut self, turn: &mut Turn<'_>, buffer: &mut [u8], ended: bool) -> Result<(), Loss> {
        while let Connection::Open { socket, .. } = &self.connection {
            let count = match socket::read(socket.as_fd(), buffer) {
                Ok(Some(0)) | Err(_) if turn.leaving => return Err(Loss::Farewell),
                Ok(Some(0)) => return Err(Loss::Broken("the broker closed the connection".into())),
                Ok(Some(count)) => count,
                Ok(None) => return Ok(()),
                Err(error) => return Err(Loss::Broken(error.to_string())),
            };
            // Read after the bytes were: nothing may seem to arrive before another thread has sent it.
            turn.now = turn.shared.control.now();
            // Nobody is there to take what comes after a farewell; it is read so that the end behind it is seen.
            if !turn.leaving || self.session.is_online() {
                self.take_bytes(turn, &buffer[..count])?;
            }
            // Less than asked for is all there was; what comes later is announced anew.
            if count < buffer.len() && !ended {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Tells the session what happened, and does what it says.
    pub(super) fn handle(&mut self, turn: &mut Turn<'_>, input: Input) {
        self.session.handle(turn.now, input);
        while let Some(output) = self.session.poll() {
            self.perform(turn, output);
        }
    }

    fn perform(&mut self, turn: &mut Turn<'_>, output: Output) {
        match output {
            Output::SendConnect => self.send_connect(turn),
            Output::SendPublish { token, id, qos, dup } => self.send_publish(turn, token, id, qos, dup),
            Output::SendPuback { id } => self.acknowledge(Kind::Puback, id),
            Output::SendPubrec { id } => self.acknowledge(Kind::Pubrec, id),
            Output::SendPubrel { id } => self.acknowledge(Kind::Pubrel, id),
            Output::SendPubcomp { id } => self.acknowledge(Kind::Pubcomp, id),
            Output::SendSubscribe { id } => self.send_subscribe(turn, id),
            Output::SendPingreq => encode::bare(Kind::Pingreq, self.outbox.bytes()),
            Output::SendDisconnect => encode::bare(Kind::Disconnect, self.outbox.bytes()),
            Output::Connected { session_present } => self.connected(turn, session_present),
            Output::Subscribed => self.subscribed(turn),
            Output::Deliver { token } => self.deliver_or_release(turn, token),
            Output::Held { .. } => turn.reception = Reception::Held,
            Output::Suppressed { .. } => turn.reception = Reception::Ignored,
            Output::Acknowledged { token } => self.acknowledged(turn, token),
            Output::Refused { token } => self.publish_refused(turn, token),
            Output::Unsent { token } => self.unsent(turn, token),
            Output::Close(reason) => self.close(reason),
        }
    }

    fn acknowledge(&mut self, kind: Kind, id: u16) {
        encode::acknowledgement(kind, id, self.outbox.bytes());
    }

    fn send_connect(&mut self, turn: &mut Turn<'_>) {
        let plan = self.plan(turn.shared);
        let mqtt = &plan.mqtt;
        let client_id = plan.client_id(self.index);
        let will = mqtt.will.as_ref();
        let fields = ConnectFields {
            version: self.facts(turn.shared).version,
            client_id: &client_id,
            clean: mqtt.clean_session,
            keep_alive_s: mqtt.keep_alive_s,
            session_expiry_s: mqtt.session_expiry_s,
            receive_maximum: if mqtt.receive_maximum == 0 { u16::MAX } else { mqtt.receive_maximum },
            will: will.map(|will| (&*will.topic, will.payload.as_bytes(), qos(will.qos), will.retain)),
            username: mqtt.username.as_deref(),
            password: mqtt.password.as_ref().map(String::as_bytes),
        };
        encode::connect(&fields, self.outbox.bytes());
        turn.event(EventKind::Connect, self.number, None, "");
    }

    fn send_subscribe(&mut self, turn: &mut Turn<'_>, id: u16) {
        let plan = self.plan(turn.shared);
        let filters: Vec<_> = plan
            .subscriptions
            .iter()
            .map(|wanted| (wanted.filter.fill(&plan.name, self.index, 0), qos(wanted.qos)))
            .collect();
        let filters = filters.iter().map(|(filter, qos)| (filter.as_str(), *qos));
        encode::subscribe(id, filters, self.facts(turn.shared).version, self.outbox.bytes());
        self.subscribe_sent = turn.now;
        turn.event(EventKind::Subscribe, self.number, None, "");
    }

    fn connected(&mut self, turn: &mut Turn<'_>, session_present: bool) {
        let Connection::Open { since, .. } = self.connection else { return };
        self.attempts = 0;
        self.accepted = true;
        let detail = if session_present { "session present" } else { "" };
        turn.event(EventKind::Connack, self.number, Some(turn.now.since(since)), detail);
        if !session_present {
            // Their PUBREL will never come.
            self.held.clear();
        }
        self.stand(turn, Standing::Connected);
        if self.plan(turn.shared).subscriptions.is_empty() || session_present && self.subscribed {
            self.stand(turn, Standing::Ready);
        } else {
            self.session.handle(turn.now, Input::Subscribe);
        }
    }

    fn subscribed(&mut self, turn: &mut Turn<'_>) {
        self.subscribed = true;
        let took = turn.now.since(self.subscribe_sent);
        turn.event(EventKind::Suback, self.number, Some(took), "");
        self.stand(turn, Standing::Ready);
    }

    fn close(&mut self, reason: Reason) {
        let how = match reason {
            // The broker closes the connection when it has read the farewell. A refusal's code is known, and said,
            // where it was read.
            Reason::Asked | Reason::Refused => return,
            Reason::ConnectTimeout => "no CONNACK in time",
            Reason::KeepAliveTimeout => "no PINGRESP in time",
            Reason::ProtocolError => "a packet that is not allowed here",
        };
        self.doomed = Some(Loss::Broken(how.into()));
    }

    /// Whether the session wanted the connection to end: why.
    pub(super) fn take_doom(&mut self) -> Option<Loss> {
        self.doomed.take()
    }

    fn lose_if_doomed(&mut self, turn: &mut Turn<'_>) {
        if let Some(loss) = self.take_doom() {
            self.lose(turn, loss);
        }
    }

    /// Writes what there is to say, and makes sure that the client is looked at again in time.
    pub(super) fn flush(&mut self, turn: &mut Turn<'_>) {
        if let Connection::Open { socket, .. } = &self.connection {
            match self.outbox.write(socket.as_fd()) {
                Ok(_) => self.note_written(turn),
                Err(error) => {
                    self.note_written(turn);
                    self.lose(turn, Loss::Broken(error.to_string()));
                }
            }
        }
        self.set_timer(turn);
    }

    /// The connection is over.
    pub(super) fn lose(&mut self, turn: &mut Turn<'_>, loss: Loss) {
        self.note_tcp_info(turn);
        let was = self.standing;
        let was_open = matches!(self.connection, Connection::Open { .. });
        self.stand(turn, Standing::Absent);
        self.forget_stream(turn);
        self.doomed = None;
        self.session.handle(turn.now, Input::Closed);
        self.connection = match self.after(turn, &loss) {
            Some(wait) => Connection::Waiting(turn.now + wait),
            None => Connection::Gone,
        };
        match &loss {
            Loss::Broken(how) if was > Standing::Absent => {
                turn.tally.disconnects += 1;
                turn.event(EventKind::Disconnect, self.number, None, how);
            }
            Loss::Broken(how) => turn.event(EventKind::Note, self.number, None, how),
            Loss::Refused { code, .. } => {
                turn.event(EventKind::Refused, self.number, None, &format!("CONNECT: code 0x{code:02x}"));
            }
            Loss::Farewell if was_open => turn.event(EventKind::Close, self.number, None, ""),
            Loss::Farewell => {}
        }
        if self.is_gone() {
            self.give_up(turn, &loss);
        }
        self.set_timer(turn);
    }

    /// Records what the kernel has counted of the connection, while its socket is there to be asked.
    fn note_tcp_info(&self, turn: &mut Turn<'_>) {
        let (Connection::Opening { socket, .. } | Connection::Open { socket, .. }) = &self.connection else {
            return;
        };
        // A kernel that does not say leaves no event; nothing of the run depends on it.
        if let Ok(info) = socket::tcp_info(socket.as_fd()) {
            turn.now = turn.shared.control.now();
            turn.event(EventKind::TcpInfo, self.number, None, &info.to_string());
        }
    }

    /// How long to wait before the next attempt, if there is to be one.
    fn after(&mut self, turn: &Turn<'_>, loss: &Loss) -> Option<Duration> {
        let policy = &self.plan(turn.shared).reconnect;
        let for_good = matches!(loss, Loss::Farewell | Loss::Refused { for_good: true, .. });
        if for_good || turn.leaving || !policy.enabled {
            return None;
        }
        let doublings = self.attempts.saturating_sub(1).min(32);
        let wait_ns = policy.initial.as_ns().saturating_mul(1 << doublings).min(policy.maximum.as_ns());
        let jitter = policy.jitter.as_f64() * (2.0 * self.dice.uniform() - 1.0);
        Some(Duration::from_ns((wait_ns as f64 * (1.0 + jitter)) as u64))
    }

    fn give_up(&mut self, turn: &mut Turn<'_>, loss: &Loss) {
        if !matches!(loss, Loss::Farewell) {
            turn.tally.failed += 1;
            // Nobody will acknowledge what this session holds, so that nobody need wait for it.
            turn.tally.unacknowledged -= self.session.unacknowledged() as i64;
        }
    }

    fn stand(&mut self, turn: &mut Turn<'_>, standing: Standing) {
        let (before, after) = (self.standing, standing);
        turn.tally.connected +=
            i32::from(after >= Standing::Connected) - i32::from(before >= Standing::Connected);
        turn.tally.ready += i32::from(after == Standing::Ready) - i32::from(before == Standing::Ready);
        self.standing = standing;
    }

    fn set_timer(&mut self, turn: &mut Turn<'_>) {
        let timeout = self.plan(turn.shared).reconnect.connect_timeout;
        let connection = match &self.connection {
            Connection::Waiting(at) => Some(*at),
            Connection::Opening { since, .. } => Some(*since + timeout),
            Connection::Open { since, .. } if !self.session.is_online() && !turn.leaving => {
                Some(*since + timeout)
            }
            Connection::Open { .. } => self.session.next_deadline(),
            Connection::Gone => None,
        };
        for at in [connection, self.next_publish(turn)].into_iter().flatten() {
            turn.timers.no_later_than(self.slot, at);
        }
    }
}
