//! One session of any protocol, so that clients of several can stand in one table.

use std::collections::BTreeMap;
use std::sync::Arc;

use mqttlab_mqtt::Qos;
use mqttlab_mqtt::client::{ClientOptions, Input};
use mqttlab_mqttsn::Topic;
use mqttlab_mqttsn::client::{ClientOptions as SnOptions, Search};
use mqttlab_plan::{Group, Protocol, RosterTopic};
use mqttlab_units::{Duration, Instant, Seed};

use crate::facts::Who;
use crate::mqtt::{self, Mqtt};
use crate::mqttsn::{self, MqttSn};
use crate::session::{Admission, Arrived, Receipt, Session, Step, Token};
use crate::zeromq::{self, ZeroMq};

/// A session of one of the protocols.
#[derive(Debug)]
// Most clients speak MQTT, and there may be a million: theirs needs no allocation, and the other one no more room.
#[allow(missing_docs, clippy::large_enum_variant)]
pub enum AnySession {
    Mqtt(Mqtt),
    MqttSn(Box<MqttSn>),
    ZeroMq(Box<ZeroMq>),
}

/// A packet that is sent and carries no message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Packet {
    Mqtt(mqtt::Packet),
    MqttSn(mqttsn::Packet),
    ZeroMq(zeromq::Packet),
}

/// What is said about a message beside the message itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Envelope {
    Mqtt(mqtt::Envelope),
    MqttSn(mqttsn::Envelope),
    ZeroMq,
}

/// A packet that came and carries no message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Received {
    Mqtt(Input),
    MqttSn(mqttsn::Received),
    ZeroMq(zeromq::Received),
}

/// What a group's plan means for the sessions of its clients, worked out once.
#[derive(Clone, Debug)]
pub struct Sessions(SessionKind);

#[derive(Clone, Debug)]
enum SessionKind {
    Mqtt(Arc<ClientOptions>),
    MqttSn { options: SnOptions, search_radius: Option<u8>, known: Arc<BTreeMap<u32, Topic>> },
    ZeroMq { sockets: zeromq::Sockets, group: Box<Group> },
}

impl Sessions {
    /// Of a group; `topics` are the run's, by number.
    pub fn of(group: &Group, topics: &[RosterTopic]) -> Sessions {
        Sessions(match &group.protocol {
            Protocol::Mqtt(plan) => SessionKind::Mqtt(plan.options(group).into()),
            Protocol::MqttSn(plan) => SessionKind::MqttSn {
                options: plan.options(group),
                search_radius: plan.search_radius,
                known: Arc::new(mqttsn::known_topics(plan, topics.iter().map(|topic| &*topic.name))),
            },
            Protocol::ZeroMq(plan) => SessionKind::ZeroMq {
                sockets: zeromq::Sockets::of(plan, group, topics),
                group: Box::new(group.clone()),
            },
        })
    }

    /// A client's session, which has never been connected. `seed` is the run's.
    pub fn session(&self, who: Who, seed: Seed) -> AnySession {
        match &self.0 {
            SessionKind::Mqtt(options) => AnySession::Mqtt(Mqtt::new(Arc::clone(options))),
            SessionKind::ZeroMq { sockets, group } => {
                AnySession::ZeroMq(Box::new(sockets.session(group, who.index)))
            }
            SessionKind::MqttSn { options, search_radius, known } => {
                // Each waits for a time of its own, or all would search at once when a gateway starts (§6.1, §7.2).
                let mut dice = seed.derive("searchgw").index(u64::from(who.number.0)).dice();
                let delay = Duration::from_ns((dice.uniform() * T_SEARCHGW.as_ns() as f64) as u64);
                let search = search_radius.map(|radius| Search { radius, delay });
                let options = SnOptions { search, ..*options };
                AnySession::MqttSn(Box::new(MqttSn::new(options, Arc::clone(known))))
            }
        }
    }
}

/// The same call to whichever session it is.
macro_rules! each {
    ($session:expr, $inner:ident => $call:expr) => {
        match $session {
            AnySession::Mqtt($inner) => $call,
            AnySession::MqttSn($inner) => $call,
            AnySession::ZeroMq($inner) => $call,
        }
    };
}

impl Session for AnySession {
    type Packet = Packet;
    type Envelope = Envelope;
    type Received = Received;

    fn not_accepted(&self) -> &'static str {
        each!(self, session => session.not_accepted())
    }

    fn opened(&mut self, now: Instant) {
        each!(self, session => session.opened(now));
    }

    fn closed(&mut self, now: Instant) {
        each!(self, session => session.closed(now));
    }

    fn tick(&mut self, now: Instant) {
        each!(self, session => session.tick(now));
    }

    fn subscribe(&mut self, now: Instant) {
        each!(self, session => session.subscribe(now));
    }

    fn change_subscription(&mut self, now: Instant, change: u32, subscribes: bool) {
        each!(self, session => session.change_subscription(now, change, subscribes));
    }

    fn disconnect(&mut self, now: Instant) {
        each!(self, session => session.disconnect(now));
    }

    fn publish(&mut self, now: Instant, message: Token, topic: Option<u32>, qos: Qos) -> Admission {
        each!(self, session => session.publish(now, message, topic, qos))
    }

    fn arrived(&mut self, now: Instant, message: Arrived) -> Option<Receipt> {
        each!(self, session => session.arrived(now, message))
    }

    fn received(&mut self, now: Instant, packet: Received) {
        match (self, packet) {
            (AnySession::Mqtt(session), Received::Mqtt(packet)) => session.received(now, packet),
            (AnySession::MqttSn(session), Received::MqttSn(packet)) => session.received(now, packet),
            (AnySession::ZeroMq(session), Received::ZeroMq(packet)) => session.received(now, packet),
            _ => unreachable!("a client's packets are its protocol's"),
        }
    }

    fn written(&mut self, now: Instant, messages: usize) {
        each!(self, session => session.written(now, messages));
    }

    fn poll(&mut self) -> Option<Step<Packet, Envelope>> {
        Some(match self {
            AnySession::Mqtt(session) => session.poll()?.map(Packet::Mqtt, Envelope::Mqtt),
            AnySession::MqttSn(session) => session.poll()?.map(Packet::MqttSn, Envelope::MqttSn),
            AnySession::ZeroMq(session) => session.poll()?.map(Packet::ZeroMq, |()| Envelope::ZeroMq),
        })
    }

    fn next_deadline(&self) -> Option<Instant> {
        each!(self, session => session.next_deadline())
    }

    fn is_online(&self) -> bool {
        each!(self, session => session.is_online())
    }

    fn has_room(&self, qos: Qos) -> bool {
        each!(self, session => session.has_room(qos))
    }

    fn unacknowledged(&self) -> usize {
        each!(self, session => session.unacknowledged())
    }
}

/// The longest time before a client asks for a gateway (MQTT-SN 1.2, §7.2).
const T_SEARCHGW: Duration = Duration::from_s(5);
