//! MQTT behind the session seam: the machine of `crates/mqtt`, and the packets whose content the plan says.

use std::sync::Arc;

use mqttlab_mqtt::alias::TopicAliases;
use mqttlab_mqtt::client::{Client as Machine, ClientOptions, Input, Output, Reason};
use mqttlab_mqtt::encode::{self, ConnectFields};
use mqttlab_mqtt::{Kind, Malformed, Qos, SubscriptionOptions, Version};
use mqttlab_plan::{ClientCredentials, Group, SubscriptionChanges, Text, TopicPattern, qos};
use mqttlab_units::Instant;

use crate::facts::Who;
use crate::session::{Admission, Arrived, PacketId, Receipt, Session, Step, Token};
use crate::transport::Loss;

/// A session of MQTT 3.1, 3.1.1 or 5.
#[derive(Clone, Debug)]
pub struct Mqtt {
    machine: Machine,
    /// Changes of subscriptions that were answered.
    changes: u32,
}

/// A control packet that a client sends, but for PUBLISH. What the plan says of a client is the transport's to fill in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// CONNECT.
    Connect,
    /// SUBSCRIBE.
    Subscribe {
        /// Packet identifier.
        id: PacketId,
        /// How many changes of its subscriptions the client has made: what it subscribes to is what it has after them.
        changes: u32,
    },
    /// SUBSCRIBE or UNSUBSCRIBE with one filter.
    ChangeSubscription {
        /// Packet identifier.
        id: PacketId,
        /// Which of the client's changes.
        change: u32,
        /// Whether it subscribes.
        subscribes: bool,
    },
    /// PUBACK, PUBREC, PUBREL or PUBCOMP.
    Answer {
        /// Which of them.
        kind: Kind,
        /// Packet identifier.
        id: PacketId,
    },
    /// PINGREQ or DISCONNECT, which consist of their kind alone.
    Bare(Kind),
}

/// What a PUBLISH says beside topic and payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Packet identifier, 0 at QoS 0.
    pub id: PacketId,
    /// Quality of service.
    pub qos: Qos,
    /// Whether it repeats an earlier one.
    pub dup: bool,
}

impl Mqtt {
    /// A session that has never been connected.
    pub fn new(options: impl Into<Arc<ClientOptions>>) -> Mqtt {
        Mqtt { machine: Machine::new(options), changes: 0 }
    }
}

impl Session for Mqtt {
    type Packet = Packet;
    type Envelope = Envelope;
    type Received = Input;

    fn not_accepted(&self) -> &'static str {
        NO_CONNACK
    }

    fn opened(&mut self, now: Instant) {
        self.machine.handle(now, Input::Opened);
    }

    fn closed(&mut self, now: Instant) {
        self.machine.handle(now, Input::Closed);
    }

    fn tick(&mut self, now: Instant) {
        self.machine.handle(now, Input::Tick);
    }

    fn subscribe(&mut self, now: Instant) {
        self.machine.handle(now, Input::Subscribe);
    }

    fn change_subscription(&mut self, now: Instant, change: u32, subscribes: bool) {
        self.changes = change;
        self.machine.handle(now, Input::ChangeSubscription { subscribes });
    }

    fn disconnect(&mut self, now: Instant) {
        self.machine.handle(now, Input::Disconnect);
    }

    fn publish(&mut self, now: Instant, message: Token, _: Option<u32>, qos: Qos) -> Admission {
        self.machine.publish(now, message.0.into(), qos)
    }

    fn arrived(&mut self, now: Instant, message: Arrived) -> Option<Receipt> {
        self.machine.arrived(now, message.qos, message.id.0)
    }

    fn received(&mut self, now: Instant, packet: Input) {
        self.machine.handle(now, packet);
    }

    fn poll(&mut self) -> Option<Step<Packet, Envelope>> {
        loop {
            if let Some(step) = step(self.machine.poll()?, &mut self.changes) {
                return Some(step);
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.machine.next_deadline()
    }

    fn is_online(&self) -> bool {
        self.machine.is_online()
    }

    fn has_room(&self, qos: Qos) -> bool {
        match qos {
            // QoS 0 knows no window.
            Qos::AtMostOnce => self.machine.is_online(),
            Qos::AtLeastOnce | Qos::ExactlyOnce => self.machine.has_room(),
        }
    }

    fn unacknowledged(&self) -> usize {
        self.machine.unacknowledged()
    }
}

/// What the machine says, as a client's life knows it. `None` where there is nothing to do.
fn step(output: Output, changes: &mut u32) -> Option<Step<Packet, Envelope>> {
    let answer = |kind, id| Step::Send(Packet::Answer { kind, id: PacketId(id) });
    let message = |token: u64| Token(token as u32);
    Some(match output {
        Output::SendConnect => Step::Connect(Packet::Connect),
        Output::SendPublish { token, id, qos, dup } => Step::Publish {
            message: message(token),
            envelope: Envelope { id: PacketId(id), qos, dup },
            settled: qos == Qos::AtMostOnce,
        },
        Output::SendPuback { id } => answer(Kind::Puback, id),
        Output::SendPubrec { id } => answer(Kind::Pubrec, id),
        Output::SendPubrel { id } => answer(Kind::Pubrel, id),
        Output::SendPubcomp { id } => answer(Kind::Pubcomp, id),
        Output::SendSubscribe { id } => {
            Step::Subscribe(Packet::Subscribe { id: PacketId(id), changes: *changes })
        }
        Output::SendChange { id, subscribes } => Step::ChangeSubscription(Packet::ChangeSubscription {
            id: PacketId(id),
            change: *changes,
            subscribes,
        }),
        Output::SendPingreq => Step::Send(Packet::Bare(Kind::Pingreq)),
        Output::SendDisconnect => Step::Send(Packet::Bare(Kind::Disconnect)),
        Output::Connected { session_present } => Step::Connected { resumed: session_present },
        Output::Subscribed => Step::Subscribed,
        Output::SubscriptionChanged => {
            *changes += 1;
            Step::SubscriptionChanged
        }
        Output::Release { id } => Step::Release(PacketId(id)),
        Output::Acknowledged { token } => Step::Acknowledged(message(token)),
        Output::NoSubscribers { token } => Step::NoSubscribers(message(token)),
        Output::Refused { token, by, code } => Step::Refused(message(token), Some((by, code))),
        Output::Close(reason) => Step::Fail(match reason {
            // The broker closes the connection when it has read DISCONNECT (MQTT 5 §3.14.4). A refusal's code is known
            // to whoever read it, and ends the connection with it.
            Reason::Asked | Reason::Refused => return None,
            Reason::SessionPresent => {
                "CONNACK: a session is present, although the client asked for a new one"
            }
            Reason::ConnectTimeout => NO_CONNACK,
            Reason::KeepAliveTimeout => "no PINGRESP in time",
            Reason::ProtocolError => "a packet that is not allowed here",
        }),
    })
}

impl From<Malformed> for Loss {
    fn from(malformed: Malformed) -> Loss {
        Loss::broken(malformed.to_string())
    }
}

/// What a client puts into CONNECT, for those who encode it and for brokers that get no bytes. Fields that its version does not
/// have are as if they were not set.
///
/// # Panics
/// For a group that does not speak MQTT.
pub fn connect_fields<'a>(group: &'a Group, who: &'a ClientCredentials) -> ConnectFields<'a> {
    let mqtt = group.mqtt().expect("the group speaks MQTT");
    let will = mqtt.will.as_ref();
    let is_v5 = mqtt.version.version() == Version::V5;
    ConnectFields {
        version: mqtt.version.version(),
        client_id: &who.client_id,
        clean: mqtt.clean_session,
        keep_alive_s: mqtt.keep_alive_s,
        session_expiry_s: if is_v5 { mqtt.session_expiry_s } else { 0 },
        receive_maximum: if is_v5 && mqtt.receive_maximum > 0 { mqtt.receive_maximum } else { u16::MAX },
        topic_alias_maximum: topic_alias_maximum(group),
        will: will.map(|will| (&*will.topic, will.payload.as_bytes(), qos(will.qos), will.retain)),
        username: who.username.as_ref().map(Text::as_str),
        password: who.password.as_ref().map(|password| password.as_str().as_bytes()),
    }
}

/// The topic aliases of a client's connections, where it gives any.
pub fn topic_aliases(group: &Group) -> Option<Box<TopicAliases>> {
    let most = group.mqtt().filter(|mqtt| mqtt.version.version() == Version::V5)?.topic_aliases;
    (most > 0).then(|| Box::new(TopicAliases::new(most)))
}

/// How many aliases the broker may give on the way to a client.
pub fn topic_alias_maximum(group: &Group) -> u16 {
    let mqtt = group.mqtt().filter(|mqtt| mqtt.version.version() == Version::V5);
    mqtt.map_or(0, |mqtt| mqtt.topic_alias_maximum)
}

/// Appends a client's CONNECT.
///
/// # Panics
/// For a group that does not speak MQTT.
pub fn encode_connect(group: &Group, client: u32, out: &mut Vec<u8>) {
    encode::connect(&connect_fields(group, &group.credentials(client)), out);
}

/// Appends a client's SUBSCRIBE, to what it has after so many changes.
pub fn encode_subscribe(group: &Group, of: &Subscribed<'_>, id: PacketId, changes: u32, out: &mut Vec<u8>) {
    let filters = of.filters(group, changes);
    let filters = filters.iter().map(|(filter, options)| (filter.as_str(), *options));
    encode::subscribe(id.0, filters, group.version(), out);
}

/// Appends a client's SUBSCRIBE or UNSUBSCRIBE with one filter.
pub fn encode_change(group: &Group, of: &Subscribed<'_>, id: PacketId, change: u32, out: &mut Vec<u8>) {
    let Some((filter, wanted)) = of.change(group, change) else { return };
    match wanted {
        Some(wanted) => encode::subscribe(id.0, std::iter::once((&*filter, wanted)), group.version(), out),
        None => encode::unsubscribe(id.0, std::iter::once(&*filter), group.version(), out),
    }
}

/// What a client subscribes to, as events change it.
#[derive(Clone, Copy, Debug)]
pub struct Subscribed<'a> {
    /// The changes of the run.
    pub changes: &'a SubscriptionChanges,
    /// The client.
    pub who: Who,
}

impl Subscribed<'_> {
    /// The filters after so many changes.
    pub fn filters(&self, group: &Group, changes: u32) -> Vec<(String, SubscriptionOptions)> {
        let filters = self.changes.filters(group, self.who.number.0, changes);
        let filled = |(filter, options): (&TopicPattern, _)| (self.fill(group, filter), options);
        filters.into_iter().map(filled).collect()
    }

    /// A change: its filter, and the options; none where it unsubscribes.
    pub fn change(&self, group: &Group, number: u32) -> Option<(String, Option<SubscriptionOptions>)> {
        let change = self.changes.change(self.who.number.0, number)?;
        Some((self.fill(group, &change.filter), change.options(group)))
    }

    fn fill(&self, group: &Group, filter: &TopicPattern) -> String {
        filter.fill(&group.name, self.who.index, 0)
    }
}

const NO_CONNACK: &str = "no CONNACK in time";
