//! A client: its connection, its session, its schedule. The same machine and the same books as in a live run.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use mqttlab_mqtt::client::{Admission, Client as Session, ClientOptions, Input, Output, Reason};
use mqttlab_mqtt::encode::{self, ConnectFields};
use mqttlab_mqtt::{Kind, Qos, Version};
use mqttlab_plan::{Arrival, Arrivals, Arrived, Group, qos};
use mqttlab_recording::{EventKind, Sent};
use mqttlab_tcp::Profile;
use mqttlab_units::{Dice, Duration, Instant, Seed};

use crate::connection::{Opening, Side};
use crate::stream::Packet;
use crate::world::{Event, World};

/// A client.
pub(crate) struct Client {
    pub(crate) group: u32,
    /// Its number in its group.
    pub(crate) index: u32,
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
    pub(crate) arrived: BTreeMap<u32, Arrived>,
    /// QoS 2 messages that wait for their PUBREL.
    pub(crate) held: Vec<Arriving>,
    /// When its last messages were due, the latest one's number last.
    pub(crate) intended: VecDeque<Instant>,
    pub(crate) offered: u32,
    standing: Standing,
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
    pub(crate) said: bool,
}

/// A message that the socket has not taken whole.
pub(crate) struct Unwritten {
    pub(crate) end: u64,
    pub(crate) row: Sent,
    pub(crate) said: bool,
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
        connection: u32,
        since: Instant,
    },
    Open {
        connection: u32,
        since: Instant,
    },
    Gone,
}

/// What the figures count a client as.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Standing {
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
    Farewell,
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
    pub(crate) fn of(group: &Group) -> GroupFacts {
        let publish = group.publish.as_ref();
        GroupFacts {
            version: group.mqtt.version.version(),
            options: group.session_options(),
            payload_bytes: publish.map_or(0, |publish| publish.payload.size().0 as u32),
            publish_qos: publish.map_or(Qos::AtMostOnce, |publish| qos(publish.qos)),
            back_to_back: publish.is_some_and(|publish| publish.arrival == Arrival::BackToBack),
            relay_qos: group.relay.as_ref().map_or(Qos::AtMostOnce, |relay| qos(relay.qos)),
        }
    }
}

impl Client {
    pub(crate) fn new(
        number: u32,
        group: u32,
        index: u32,
        plan: &Group,
        facts: &GroupFacts,
        seed: Seed,
    ) -> Client {
        let share = u128::from(plan.connect_over.as_ns()) * u128::from(index) / u128::from(plan.count);
        Client {
            group,
            index,
            session: Session::new(facts.options),
            link: Link::Waiting(Instant::ZERO + Duration::from_ns(share as u64)),
            alarm: None,
            arrivals: None,
            outgoing: VecDeque::new(),
            unwritten: VecDeque::new(),
            relayed: Relayed::default(),
            arrived: BTreeMap::new(),
            held: Vec::new(),
            intended: VecDeque::new(),
            offered: 0,
            standing: Standing::Absent,
            attempts: 0,
            accepted: false,
            subscribed: false,
            subscribe_sent: Instant::ZERO,
            dice: seed.derive("reconnect").index(u64::from(number)).dice(),
        }
    }

    /// Its connection, once it is open.
    pub(crate) fn connection(&self) -> Option<u32> {
        match self.link {
            Link::Open { connection, .. } => Some(connection),
            _ => None,
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.link == Link::Gone
    }
}

impl World {
    /// A client's deadline may have come.
    pub(crate) fn wake(&mut self, number: u32) {
        let timeout = self.group_of(number).reconnect.connect_timeout;
        let now = self.now;
        match self.clients[number as usize].link {
            Link::Waiting(at) if at <= now => self.connect(number),
            Link::Opening { since, .. } if now >= since + timeout => {
                self.lose(number, Loss::Broken("no TCP connection in time"));
            }
            Link::Open { since, .. } => self.tick_session(number, since + timeout),
            _ => {}
        }
        self.publish_due(number);
        self.flush(number);
        self.set_alarm(number);
    }

    fn tick_session(&mut self, number: u32, greeting_ends: Instant) {
        let session = &self.clients[number as usize].session;
        if !session.is_online() && !self.leaving && self.now >= greeting_ends {
            return self.lose(number, Loss::Broken("no CONNACK in time"));
        }
        if session.next_deadline().is_some_and(|deadline| deadline <= self.now) {
            self.tell(number, Input::Tick);
        }
    }

    fn connect(&mut self, number: u32) {
        let client = &mut self.clients[number as usize];
        let again = client.attempts > 0 || client.accepted;
        client.attempts += 1;
        let index = client.index;
        if again {
            self.evidence.event(self.now, EventKind::Reconnect, Some(number), None, "");
        }
        let group = self.group_of(number);
        let (from, to) = (group.host_of(index), self.plan.broker.host);
        let nodelay = [group.tcp_nodelay, self.plan.broker.settings.tcp_nodelay];
        let paths = [self.wire.path(from, to), self.wire.path(to, from)];
        let [Some(up), Some(down)] = paths else {
            return self.lose(number, Loss::Broken("no path leads to the broker"));
        };
        let connection = self.connections.add(Opening {
            client: number,
            profiles: self.profiles_between(from, to, up),
            broker_port: self.plan.broker.port,
            nodelay,
            hosts: [from as u16, to as u16],
            paths: [up, down],
        });
        self.clients[number as usize].link = Link::Opening { connection, since: self.now };
        self.connections.get(connection).ends[Side::Client as usize].open(self.now);
        self.drain(connection, Side::Client);
    }

    /// The TCP of both ends. Over a loopback device both are the broker's host's, with the device's large packets.
    fn profiles_between(&self, from: usize, to: usize, path: usize) -> [Arc<Profile>; 2] {
        if self.wire.is_loopback(path) {
            return [(); 2].map(|()| Arc::clone(&self.loopback_profile));
        }
        [from, to].map(|host| Arc::clone(&self.profiles[host]))
    }

    /// The TCP connection stands.
    pub(crate) fn opened(&mut self, number: u32) {
        let client = &mut self.clients[number as usize];
        let Link::Opening { connection, since } = client.link else { return };
        client.link = Link::Open { connection, since };
        self.tell(number, Input::Opened);
        self.flush(number);
        self.set_alarm(number);
    }

    /// Tells the session what happened, and does what it says.
    pub(crate) fn tell(&mut self, number: u32, input: Input) {
        let now = self.now;
        self.clients[number as usize].session.handle(now, input);
        self.settle(number);
    }

    /// Publishes a message, as far as the session takes it.
    pub(crate) fn publish(&mut self, number: u32, token: u64, qos: Qos) -> Admission {
        let now = self.now;
        let admission = self.clients[number as usize].session.publish(now, token, qos);
        match admission {
            Admission::Refused => self.unsent(number, token),
            Admission::Sent | Admission::Waiting => self.settle(number),
        }
        admission
    }

    /// Does what the session says.
    pub(crate) fn settle(&mut self, number: u32) {
        while let Some(output) = self.clients[number as usize].session.poll() {
            self.perform(number, output);
        }
    }

    fn perform(&mut self, number: u32, output: Output) {
        match output {
            Output::SendConnect => self.send_connect(number),
            Output::SendPublish { token, id, qos, dup } => self.send_publish(number, token, id, qos, dup),
            Output::SendPuback { id } => self.answer(number, Kind::Puback, id),
            Output::SendPubrec { id } => self.answer(number, Kind::Pubrec, id),
            Output::SendPubrel { id } => self.answer(number, Kind::Pubrel, id),
            Output::SendPubcomp { id } => self.answer(number, Kind::Pubcomp, id),
            Output::SendSubscribe { id } => self.send_subscribe(number, id),
            Output::SendPingreq => self.append(number, Packet::bare(Kind::Pingreq, 0), encode::BARE_LEN),
            Output::SendDisconnect => {
                self.append(number, Packet::bare(Kind::Disconnect, 0), encode::BARE_LEN);
            }
            Output::Connected { session_present } => self.connected(number, session_present),
            Output::Subscribed => self.subscribed(number),
            Output::Release { id } => self.release(number, id),
            Output::Acknowledged { token } => self.acknowledged(number, token),
            Output::Refused { token } => self.refused(number, token),
            Output::Close(reason) => self.close(number, reason),
        }
    }

    fn answer(&mut self, number: u32, kind: Kind, id: u16) {
        self.append(number, Packet::bare(kind, id), encode::ACKNOWLEDGEMENT_LEN);
    }

    /// Puts a packet into the client's stream.
    pub(crate) fn append(&mut self, number: u32, packet: Packet, length: usize) {
        if let Some(connection) = self.clients[number as usize].connection() {
            self.connections.get(connection).streams[Side::Client as usize].append(packet, length);
        }
    }

    fn send_connect(&mut self, number: u32) {
        let client = &self.clients[number as usize];
        let group = &self.plan.groups[client.group as usize];
        let mqtt = &group.mqtt;
        let client_id = group.client_id(client.index);
        let will = mqtt.will.as_ref();
        let fields = ConnectFields {
            version: self.groups[client.group as usize].version,
            client_id: &client_id,
            clean: mqtt.clean_session,
            keep_alive_s: mqtt.keep_alive_s,
            session_expiry_s: mqtt.session_expiry_s,
            receive_maximum: if mqtt.receive_maximum == 0 { u16::MAX } else { mqtt.receive_maximum },
            will: will.map(|will| (&*will.topic, will.payload.as_bytes(), qos(will.qos), will.retain)),
            username: mqtt.username.as_deref(),
            password: mqtt.password.as_ref().map(String::as_bytes),
        };
        self.scratch.clear();
        encode::connect(&fields, &mut self.scratch);
        self.append(number, Packet::bare(Kind::Connect, 0), self.scratch.len());
        self.evidence.event(self.now, EventKind::Connect, Some(number), None, "");
    }

    fn send_subscribe(&mut self, number: u32, id: u16) {
        let client = &self.clients[number as usize];
        let version = self.groups[client.group as usize].version;
        let filters = self.filters_of(number);
        let filters = filters.iter().map(|(filter, qos)| (filter.as_str(), *qos));
        self.scratch.clear();
        encode::subscribe(id, filters, version, &mut self.scratch);
        self.append(number, Packet::bare(Kind::Subscribe, id), self.scratch.len());
        self.clients[number as usize].subscribe_sent = self.now;
        self.evidence.event(self.now, EventKind::Subscribe, Some(number), None, "");
    }

    /// What a client subscribes to.
    pub(crate) fn filters_of(&self, number: u32) -> Vec<(String, Qos)> {
        let client = &self.clients[number as usize];
        let group = &self.plan.groups[client.group as usize];
        let filled = |wanted: &mqttlab_plan::Subscription| {
            (wanted.filter.fill(&group.name, client.index, 0), qos(wanted.qos))
        };
        group.subscriptions.iter().map(filled).collect()
    }

    fn connected(&mut self, number: u32, session_present: bool) {
        let client = &mut self.clients[number as usize];
        let Link::Open { since, .. } = client.link else { return };
        client.attempts = 0;
        client.accepted = true;
        if !session_present {
            // Their PUBREL will never come.
            client.held.clear();
        }
        let known = session_present && client.subscribed;
        let detail = if session_present { "session present" } else { "" };
        let took = Some(self.now.since(since));
        self.evidence.event(self.now, EventKind::Connack, Some(number), took, detail);
        self.stand(number, Standing::Connected);
        if self.group_of(number).subscriptions.is_empty() || known {
            self.stand(number, Standing::Ready);
        } else {
            let now = self.now;
            self.clients[number as usize].session.handle(now, Input::Subscribe);
        }
    }

    fn subscribed(&mut self, number: u32) {
        let client = &mut self.clients[number as usize];
        client.subscribed = true;
        let took = Some(self.now.since(client.subscribe_sent));
        self.evidence.event(self.now, EventKind::Suback, Some(number), took, "");
        self.stand(number, Standing::Ready);
    }

    fn close(&mut self, number: u32, reason: Reason) {
        let loss = match reason {
            // The broker closes the connection when it has read the farewell.
            Reason::Asked => return,
            Reason::Refused => Loss::Refused,
            Reason::ConnectTimeout => Loss::Broken("no CONNACK in time"),
            Reason::KeepAliveTimeout => Loss::Broken("no PINGRESP in time"),
            Reason::ProtocolError => Loss::Broken("a packet that is not allowed here"),
        };
        self.lose(number, loss);
    }

    /// Says goodbye; what is in the stream still goes out.
    pub(crate) fn leave(&mut self, number: u32) {
        self.stop_publishing(number);
        match self.clients[number as usize].link {
            Link::Open { .. } => {
                self.tell(number, Input::Disconnect);
                self.flush(number);
            }
            _ => self.lose(number, Loss::Farewell),
        }
        self.set_alarm(number);
    }

    /// The connection is over.
    pub(crate) fn lose(&mut self, number: u32, loss: Loss) {
        let client = &mut self.clients[number as usize];
        let (was, link) = (client.standing, client.link);
        if link == Link::Gone {
            return;
        }
        client.link = Link::Gone;
        self.stand(number, Standing::Absent);
        self.forget_stream(number);
        let now = self.now;
        self.clients[number as usize].session.handle(now, Input::Closed);
        if let Some(wait) = self.wait_after(number, &loss) {
            self.clients[number as usize].link = Link::Waiting(now + wait);
        }
        match (&loss, link) {
            (Loss::Broken(how), _) if was > Standing::Absent => {
                self.tally.disconnects += 1;
                self.evidence.event(now, EventKind::Disconnect, Some(number), None, how);
            }
            (Loss::Broken(how), _) => self.evidence.event(now, EventKind::Note, Some(number), None, how),
            (Loss::Refused, _) => self.evidence.event(now, EventKind::Refused, Some(number), None, "CONNECT"),
            (Loss::Farewell, Link::Open { .. }) => {
                self.evidence.event(now, EventKind::Close, Some(number), None, "");
            }
            (Loss::Farewell, _) => {}
        }
        let client = &self.clients[number as usize];
        self.tally.gone += u32::from(client.is_gone());
        if client.is_gone() && !matches!(loss, Loss::Farewell) {
            self.tally.failed += 1;
            // Nobody will acknowledge what this session holds, so that nobody need wait for it.
            self.tally.unacknowledged -= client.session.unacknowledged() as i64;
        }
        if let Link::Open { connection, .. } | Link::Opening { connection, .. } = link {
            self.abandon(connection);
        }
        self.set_alarm(number);
    }

    /// How long to wait before the next attempt, if there is to be one.
    fn wait_after(&mut self, number: u32, loss: &Loss) -> Option<Duration> {
        let client = &mut self.clients[number as usize];
        let policy = &self.plan.groups[client.group as usize].reconnect;
        if matches!(loss, Loss::Farewell | Loss::Refused) || self.leaving || !policy.enabled {
            return None;
        }
        let doublings = client.attempts.saturating_sub(1).min(32);
        let wait_ns = policy.initial.as_ns().saturating_mul(1 << doublings).min(policy.maximum.as_ns());
        let jitter = policy.jitter.as_f64() * (2.0 * client.dice.uniform() - 1.0);
        Some(Duration::from_ns((wait_ns as f64 * (1.0 + jitter)) as u64))
    }

    fn stand(&mut self, number: u32, after: Standing) {
        let before = std::mem::replace(&mut self.clients[number as usize].standing, after);
        let change = |least: Standing| i32::from(after >= least) - i32::from(before >= least);
        self.tally.connected += change(Standing::Connected);
        self.tally.ready += change(Standing::Ready);
    }

    /// Makes sure that the client is looked at again in time.
    pub(crate) fn set_alarm(&mut self, number: u32) {
        let timeout = self.group_of(number).reconnect.connect_timeout;
        let client = &self.clients[number as usize];
        let connection = match client.link {
            Link::Waiting(at) => Some(at),
            Link::Opening { since, .. } => Some(since + timeout),
            Link::Open { since, .. } if !client.session.is_online() && !self.leaving => Some(since + timeout),
            Link::Open { .. } => client.session.next_deadline(),
            Link::Gone => None,
        };
        let next = [connection, self.next_publish(number)].into_iter().flatten().min();
        let client = &mut self.clients[number as usize];
        let Some(next) = next.map(|at| at.max(self.now)) else { return };
        if client.alarm.is_none_or(|alarm| next < alarm) {
            client.alarm = Some(next);
            self.agenda.add(next, Event::Client(number));
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
