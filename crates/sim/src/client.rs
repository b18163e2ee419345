//! A client: its connection, its session, its schedule. The same machine and the same books as in a live run.

use std::collections::{BTreeMap, VecDeque};

use mqttlab_mqtt::client::{Admission, Client as Session, Input, Output, Reason};
use mqttlab_mqtt::encode::{self, ConnectFields};
use mqttlab_mqtt::{Kind, Qos};
use mqttlab_plan::{Arrivals, Arrived, qos};
use mqttlab_recording::{EventKind, Sent};
use mqttlab_units::{Dice, Duration, Instant, Seed};

use crate::groups::Groups;
use crate::ids::{ClientId, ConnectionId};
use crate::stream::Packet;
use crate::surroundings::Surroundings;

/// A client.
pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) session: Session,
    pub(crate) link: Link,
    /// For when its timer is on the agenda.
    pub(crate) alarm: Option<Instant>,
    pub(crate) arrivals: Option<Arrivals>,
    /// Messages that wait in the session for their first sending.
    pub(crate) outgoing: VecDeque<Outgoing>,
    /// Messages in the stream that the socket has not taken.
    pub(crate) unwritten: VecDeque<Unwritten>,
    /// Messages to be republished, by token.
    pub(crate) relayed: Relayed,
    /// Of each publisher, what has arrived.
    pub(crate) arrived: BTreeMap<ClientId, Arrived>,
    /// QoS 2 messages that wait for their PUBREL.
    pub(crate) held: Vec<Arriving>,
    status: Status,
    /// Attempts to connect since the last success.
    attempts: u32,
    /// Whether the broker has ever accepted it.
    accepted: bool,
    /// Whether the broker has ever accepted its subscriptions.
    subscribed: bool,
    subscribe_sent: Instant,
    dice: Dice,
}

/// Messages to be republished: the message and the topic of its copy. Places are used again once the session has done
/// with what was in them.
#[derive(Default)]
pub(crate) struct Relayed {
    places: Vec<(u64, u32)>,
    free: Vec<u32>,
}

impl Relayed {
    pub(crate) fn add(&mut self, message: u64, topic: u32) -> u64 {
        let Some(place) = self.free.pop() else {
            self.places.push((message, topic));
            return self.places.len() as u64 - 1;
        };
        self.places[place as usize] = (message, topic);
        place.into()
    }

    pub(crate) fn get(&self, place: u64) -> (u64, u32) {
        self.places[place as usize]
    }

    pub(crate) fn remove(&mut self, place: u64) {
        self.free.push(place as u32);
    }
}

/// A message that the session has and has not sent.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing {
    pub(crate) row: Sent,
    /// Whether the recording has it already.
    pub(crate) recorded: bool,
}

/// A message that the socket has not taken whole.
pub(crate) struct Unwritten {
    pub(crate) end: u64,
    pub(crate) row: Sent,
    pub(crate) recorded: bool,
}

/// A message that has come.
#[derive(Clone, Copy)]
pub(crate) struct Arriving {
    pub(crate) message: u64,
    pub(crate) topic: u32,
    pub(crate) qos: Qos,
    pub(crate) id: u16,
    pub(crate) dup: bool,
    pub(crate) retained: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// Not before this instant.
    Waiting(Instant),
    Opening {
        connection: ConnectionId,
        since: Instant,
    },
    Open {
        connection: ConnectionId,
        since: Instant,
    },
    Gone,
}

/// What the figures count a client as.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Status {
    Absent,
    Connected,
    Ready,
}

/// Why a connection ends.
pub(crate) enum Loss {
    /// It broke.
    Broken(&'static str),
    /// CONNACK says no.
    Refused,
    /// As planned.
    Graceful,
}

impl Client {
    pub(crate) fn new(id: ClientId, groups: &Groups, seed: Seed) -> Client {
        let plan = groups.group_of(id);
        let index = groups.index_of(id);
        let share = u128::from(plan.connect_over.as_ns()) * u128::from(index) / u128::from(plan.count);
        Client {
            id,
            session: Session::new(groups.facts_of(id).options),
            link: Link::Waiting(Instant::ZERO + Duration::from_ns(share as u64)),
            alarm: None,
            arrivals: None,
            outgoing: VecDeque::new(),
            unwritten: VecDeque::new(),
            relayed: Relayed::default(),
            arrived: BTreeMap::new(),
            held: Vec::new(),
            status: Status::Absent,
            attempts: 0,
            accepted: false,
            subscribed: false,
            subscribe_sent: Instant::ZERO,
            dice: seed.derive("reconnect").index(u64::from(id.0)).dice(),
        }
    }

    /// Its connection, once it is open.
    pub(crate) fn connection(&self) -> Option<ConnectionId> {
        match self.link {
            Link::Open { connection, .. } => Some(connection),
            _ => None,
        }
    }

    /// Whether this is its connection, be it open or not yet.
    pub(crate) fn is_linked(&self, id: ConnectionId) -> bool {
        match self.link {
            Link::Opening { connection, .. } | Link::Open { connection, .. } => connection == id,
            Link::Waiting(_) | Link::Gone => false,
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.link == Link::Gone
    }

    /// A deadline has come, which may have been put off since.
    pub(crate) fn on_timer(&mut self, around: &mut Surroundings<'_>) {
        if self.alarm == Some(around.now()) {
            self.alarm = None;
            self.wake(around);
        }
    }

    fn wake(&mut self, around: &mut Surroundings<'_>) {
        let timeout = around.groups.group_of(self.id).reconnect.connect_timeout;
        let now = around.now();
        match self.link {
            Link::Waiting(at) if at <= now => self.connect(around),
            Link::Opening { since, .. } if now >= since + timeout => {
                self.lose(around, Loss::Broken("no TCP connection in time"));
            }
            Link::Open { since, .. } => self.tick_session(around, since + timeout),
            _ => {}
        }
        self.publish_due(around);
        self.flush(around);
        self.set_alarm(around);
    }

    fn tick_session(&mut self, around: &mut Surroundings<'_>, greeting_ends: Instant) {
        if !self.session.is_online() && !around.is_leaving() && around.now() >= greeting_ends {
            return self.lose(around, Loss::Broken("no CONNACK in time"));
        }
        if self.session.next_deadline().is_some_and(|deadline| deadline <= around.now()) {
            self.tell(around, Input::Tick);
        }
    }

    fn connect(&mut self, around: &mut Surroundings<'_>) {
        let again = self.attempts > 0 || self.accepted;
        self.attempts += 1;
        if again {
            around.event(EventKind::Reconnect, self.id, None, "");
        }
        let Some(connection) = around.open(self.id) else {
            return self.lose(around, Loss::Broken("no path leads to the broker"));
        };
        self.link = Link::Opening { connection, since: around.now() };
    }

    /// The TCP connection stands.
    pub(crate) fn opened(&mut self, around: &mut Surroundings<'_>) {
        let Link::Opening { connection, since } = self.link else { return };
        self.link = Link::Open { connection, since };
        self.tell(around, Input::Opened);
        self.flush(around);
        self.set_alarm(around);
    }

    /// The socket has room again.
    pub(crate) fn writable(&mut self, around: &mut Surroundings<'_>) {
        self.publish_due(around);
        self.flush(around);
        self.set_alarm(around);
    }

    /// Its program has taken every packet that had come.
    pub(crate) fn after_reading(&mut self, around: &mut Surroundings<'_>) {
        if around.groups.facts_of(self.id).back_to_back {
            self.publish_due(around);
        }
        self.flush(around);
        self.set_alarm(around);
    }

    /// Tells the session what happened, and does what it says.
    pub(crate) fn tell(&mut self, around: &mut Surroundings<'_>, input: Input) {
        self.session.handle(around.now(), input);
        self.settle(around);
    }

    /// Publishes a message, as far as the session takes it.
    pub(crate) fn publish(&mut self, around: &mut Surroundings<'_>, token: u64, qos: Qos) -> Admission {
        let admission = self.session.publish(around.now(), token, qos);
        match admission {
            Admission::Refused => self.unsent(around, token),
            Admission::Sent | Admission::Waiting => self.settle(around),
        }
        admission
    }

    /// Does what the session says.
    pub(crate) fn settle(&mut self, around: &mut Surroundings<'_>) {
        while let Some(output) = self.session.poll() {
            self.perform(around, output);
        }
    }

    fn perform(&mut self, around: &mut Surroundings<'_>, output: Output) {
        match output {
            Output::SendConnect => self.send_connect(around),
            Output::SendPublish { token, id, qos, dup } => self.send_publish(around, token, id, qos, dup),
            Output::SendPuback { id } => self.acknowledge(around, Kind::Puback, id),
            Output::SendPubrec { id } => self.acknowledge(around, Kind::Pubrec, id),
            Output::SendPubrel { id } => self.acknowledge(around, Kind::Pubrel, id),
            Output::SendPubcomp { id } => self.acknowledge(around, Kind::Pubcomp, id),
            Output::SendSubscribe { id } => self.send_subscribe(around, id),
            Output::SendPingreq => {
                self.append(around, Packet::bare(Kind::Pingreq, 0), encode::BARE_LEN);
            }
            Output::SendDisconnect => {
                self.append(around, Packet::bare(Kind::Disconnect, 0), encode::BARE_LEN);
            }
            Output::Connected { session_present } => self.connected(around, session_present),
            Output::Subscribed => self.subscribed(around),
            Output::Release { id } => self.release(around, id),
            Output::Acknowledged { token } => self.acknowledged(around, token),
            Output::Refused { token } => self.refused(around, token),
            Output::Close(reason) => self.close(around, reason),
        }
    }

    fn acknowledge(&mut self, around: &mut Surroundings<'_>, kind: Kind, id: u16) {
        self.append(around, Packet::bare(kind, id), encode::ACKNOWLEDGEMENT_LEN);
    }

    /// Puts a packet into the client's stream, and says where it ends there.
    pub(crate) fn append(
        &mut self,
        around: &mut Surroundings<'_>,
        packet: Packet,
        length: usize,
    ) -> Option<u64> {
        let connection = self.connection()?;
        Some(around.append(connection, packet, length))
    }

    fn send_connect(&mut self, around: &mut Surroundings<'_>) {
        let group = around.groups.group_of(self.id);
        let mqtt = group.mqtt();
        let client_id = around.groups.name_of(self.id);
        let will = mqtt.will.as_ref();
        let fields = ConnectFields {
            version: around.groups.facts_of(self.id).version,
            client_id: &client_id,
            clean: mqtt.clean_session,
            keep_alive_s: mqtt.keep_alive_s,
            session_expiry_s: mqtt.session_expiry_s,
            receive_maximum: if mqtt.receive_maximum == 0 { u16::MAX } else { mqtt.receive_maximum },
            will: will.map(|will| (&*will.topic, will.payload.as_bytes(), qos(will.qos), will.retain)),
            username: mqtt.username.as_deref(),
            password: mqtt.password.as_ref().map(String::as_bytes),
        };
        around.scratch.clear();
        encode::connect(&fields, around.scratch);
        let length = around.scratch.len();
        self.append(around, Packet::bare(Kind::Connect, 0), length);
        around.event(EventKind::Connect, self.id, None, "");
    }

    fn send_subscribe(&mut self, around: &mut Surroundings<'_>, id: u16) {
        let version = around.groups.facts_of(self.id).version;
        let filters = around.groups.filters_of(self.id);
        let filters = filters.iter().map(|(filter, qos)| (filter.as_str(), *qos));
        around.scratch.clear();
        encode::subscribe(id, filters, version, around.scratch);
        let length = around.scratch.len();
        self.append(around, Packet::bare(Kind::Subscribe, id), length);
        self.subscribe_sent = around.now();
        around.event(EventKind::Subscribe, self.id, None, "");
    }

    fn connected(&mut self, around: &mut Surroundings<'_>, session_present: bool) {
        let Link::Open { since, .. } = self.link else { return };
        self.attempts = 0;
        self.accepted = true;
        if !session_present {
            // Their PUBREL will never come.
            self.held.clear();
        }
        let known = session_present && self.subscribed;
        let detail = if session_present { "session present" } else { "" };
        let took = Some(around.now().since(since));
        around.event(EventKind::Connack, self.id, took, detail);
        self.set_status(around, Status::Connected);
        if around.groups.group_of(self.id).subscriptions.is_empty() || known {
            self.set_status(around, Status::Ready);
        } else {
            self.session.handle(around.now(), Input::Subscribe);
        }
    }

    fn subscribed(&mut self, around: &mut Surroundings<'_>) {
        self.subscribed = true;
        let took = Some(around.now().since(self.subscribe_sent));
        around.event(EventKind::Suback, self.id, took, "");
        self.set_status(around, Status::Ready);
    }

    fn close(&mut self, around: &mut Surroundings<'_>, reason: Reason) {
        let loss = match reason {
            // The broker closes the connection when it has read the DISCONNECT ([MQTT-3.14.4-1]).
            Reason::Asked => return,
            Reason::Refused => Loss::Refused,
            Reason::ConnectTimeout => Loss::Broken("no CONNACK in time"),
            Reason::KeepAliveTimeout => Loss::Broken("no PINGRESP in time"),
            Reason::ProtocolError => Loss::Broken("a packet that is not allowed here"),
        };
        self.lose(around, loss);
    }

    /// Disconnects; what is in the stream still goes out.
    pub(crate) fn leave(&mut self, around: &mut Surroundings<'_>) {
        self.stop_publishing(around);
        match self.link {
            Link::Open { .. } => {
                self.tell(around, Input::Disconnect);
                self.flush(around);
            }
            _ => self.lose(around, Loss::Graceful),
        }
        self.set_alarm(around);
    }

    /// The simulation is over, whatever is still open.
    pub(crate) fn end(&mut self, around: &mut Surroundings<'_>) {
        self.session.handle(around.now(), Input::Closed);
        self.forget_stream(around);
    }

    /// The connection is over.
    pub(crate) fn lose(&mut self, around: &mut Surroundings<'_>, loss: Loss) {
        let (was, link) = (self.status, self.link);
        if link == Link::Gone {
            return;
        }
        self.link = Link::Gone;
        self.set_status(around, Status::Absent);
        self.forget_stream(around);
        let now = around.now();
        self.session.handle(now, Input::Closed);
        if let Some(wait) = self.wait_after(around, &loss) {
            self.link = Link::Waiting(now + wait);
        }
        match (&loss, link) {
            (Loss::Broken(how), _) if was > Status::Absent => {
                around.tally.disconnects += 1;
                around.event(EventKind::Disconnect, self.id, None, how);
            }
            (Loss::Broken(how), _) => around.event(EventKind::Note, self.id, None, how),
            (Loss::Refused, _) => around.event(EventKind::Refused, self.id, None, "CONNECT"),
            (Loss::Graceful, Link::Open { .. }) => around.event(EventKind::Close, self.id, None, ""),
            (Loss::Graceful, _) => {}
        }
        around.tally.gone += u32::from(self.is_gone());
        if self.is_gone() && !matches!(loss, Loss::Graceful) {
            around.tally.failed += 1;
            // What this session holds will not be acknowledged, so that it is not waited for.
            around.tally.unacknowledged -= self.session.unacknowledged() as i64;
        }
        if let Link::Open { connection, .. } | Link::Opening { connection, .. } = link {
            around.close(connection);
        }
        self.set_alarm(around);
    }

    /// How long to wait before the next attempt, if there is to be one.
    fn wait_after(&mut self, around: &Surroundings<'_>, loss: &Loss) -> Option<Duration> {
        let policy = &around.groups.group_of(self.id).reconnect;
        if matches!(loss, Loss::Graceful | Loss::Refused) || around.is_leaving() || !policy.enabled {
            return None;
        }
        let doublings = self.attempts.saturating_sub(1).min(32);
        let wait_ns = policy.initial.as_ns().saturating_mul(1 << doublings).min(policy.maximum.as_ns());
        let jitter = policy.jitter.as_f64() * (2.0 * self.dice.uniform() - 1.0);
        Some(Duration::from_ns((wait_ns as f64 * (1.0 + jitter)) as u64))
    }

    fn set_status(&mut self, around: &mut Surroundings<'_>, after: Status) {
        let before = std::mem::replace(&mut self.status, after);
        let change = |least: Status| i32::from(after >= least) - i32::from(before >= least);
        around.tally.connected += change(Status::Connected);
        around.tally.ready += change(Status::Ready);
    }

    /// Makes sure that the client is woken in time.
    pub(crate) fn set_alarm(&mut self, around: &mut Surroundings<'_>) {
        let timeout = around.groups.group_of(self.id).reconnect.connect_timeout;
        let connection = match self.link {
            Link::Waiting(at) => Some(at),
            Link::Opening { since, .. } => Some(since + timeout),
            Link::Open { since, .. } if !self.session.is_online() && !around.is_leaving() => {
                Some(since + timeout)
            }
            Link::Open { .. } => self.session.next_deadline(),
            Link::Gone => None,
        };
        let next = [connection, self.next_publish(around)].into_iter().flatten().min();
        let Some(next) = next.map(|at| at.max(around.now())) else { return };
        if self.alarm.is_none_or(|alarm| next < alarm) {
            self.alarm = Some(next);
            around.wake_at(self.id, next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_remembers_no_more_messages_than_its_session_holds() {
        let mut relayed = Relayed::default();
        let first = relayed.add(7, 1);
        for message in 0..1_000 {
            let place = relayed.add(message, 2);
            assert_eq!((relayed.get(place), relayed.get(first)), ((message, 2), (7, 1)));
            relayed.remove(place);
        }
        assert_eq!(relayed.places.len(), 2);
    }
}
