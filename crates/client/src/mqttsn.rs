//! MQTT-SN behind the session seam: the machine of `crates/mqttsn`, and the packets whose content the plan says.

use std::collections::BTreeMap;
use std::sync::Arc;

use mqttlab_mqtt::Qos;
use mqttlab_mqttsn::client::{Client as Machine, ClientOptions, Input, Meaning, Output, Reason, Subject};
use mqttlab_mqttsn::packet::WillTopic;
use mqttlab_mqttsn::{Filter, PublishQos, Topic};
use mqttlab_plan::{Group, MqttSnPlan, qos};
use mqttlab_units::Instant;

use crate::session::{Admission, Arrived, PacketId, Receipt, Session, Step, Token};
use crate::transport::Loss;

pub use mqttlab_mqttsn::Malformed;
pub use mqttlab_mqttsn::client::Send as Packet;

/// A packet that came, without the payload of a PUBLISH, which has a way of its own.
pub type Received = mqttlab_mqttsn::Packet<Box<str>, ()>;

/// A session of MQTT-SN 1.2.
#[derive(Clone, Debug)]
pub struct MqttSn {
    machine: Machine,
    /// Which of the run's topics need no registration, and what they are called instead.
    known: Arc<BTreeMap<u32, Topic>>,
}

/// What a PUBLISH says beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// What it calls its topic.
    pub topic: Topic,
    /// Identifier, 0 at QoS 0 and −1.
    pub id: u16,
    /// Quality of service.
    pub qos: PublishQos,
    /// Whether it repeats an earlier one.
    pub dup: bool,
}

impl MqttSn {
    /// A session that has never been connected. `known` are the topics by number that are predefined or short.
    pub fn new(options: ClientOptions, known: Arc<BTreeMap<u32, Topic>>) -> MqttSn {
        MqttSn { machine: Machine::new(options), known }
    }

    /// What the session knows the topic of a PUBLISH by, where that was agreed on.
    pub fn meaning(&self, topic: Topic) -> Option<&Meaning> {
        match topic {
            Topic::Registered(id) => self.machine.meaning(id),
            Topic::Predefined(_) | Topic::Short(_) => None,
        }
    }
}

/// The topics, of those numbered in order, that clients of this plan do not register.
pub fn known_topics<'a>(plan: &MqttSnPlan, names: impl Iterator<Item = &'a str>) -> BTreeMap<u32, Topic> {
    let known = |name: &str| {
        let short = Topic::short(name).filter(|_| plan.short_topics);
        plan.predefined(name).map(Topic::Predefined).or(short)
    };
    (0..).zip(names).filter_map(|(number, name)| Some((number, known(name)?))).collect()
}

impl Session for MqttSn {
    type Packet = Packet;
    type Envelope = Envelope;
    type Received = Received;

    fn not_accepted(&self) -> &'static str {
        "no CONNACK in time"
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

    fn disconnect(&mut self, now: Instant) {
        self.machine.handle(now, Input::Disconnect);
    }

    fn publish(&mut self, now: Instant, message: Token, topic: Option<u32>, qos: Qos) -> Admission {
        // What is relayed has a topic without a number, which cannot be registered.
        let Some(number) = topic else { return Admission::Refused };
        let subject = self.known.get(&number).map_or(Subject::Named(number), |topic| Subject::Known(*topic));
        self.machine.publish(now, message.0, subject, qos)
    }

    fn arrived(&mut self, now: Instant, message: Arrived) -> Option<Receipt> {
        let topic = message.alias?;
        self.machine.arrived(now, topic, PublishQos::Level(message.qos), message.id.0)
    }

    fn received(&mut self, now: Instant, packet: Received) {
        if let Some(input) = input(&packet) {
            self.machine.handle(now, input);
        }
    }

    fn poll(&mut self) -> Option<Step<Packet, Envelope>> {
        loop {
            if let Some(step) = step(self.machine.poll()?) {
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
        self.machine.has_room(qos)
    }

    fn unacknowledged(&self) -> usize {
        self.machine.unacknowledged()
    }
}

/// What a packet tells the machine. `None`: nothing, or it is a gateway that is spoken to so.
fn input(packet: &Received) -> Option<Input<'_>> {
    use mqttlab_mqttsn::Packet as Said;
    Some(match packet {
        Said::Advertise { .. } => Input::Advertise,
        Said::Gwinfo { .. } => Input::Gwinfo,
        Said::Connack { code } => Input::Connack { code: *code },
        Said::Willtopicreq => Input::Willtopicreq,
        Said::Willmsgreq => Input::Willmsgreq,
        Said::Register { topic_id, id, name } => Input::Register { topic_id: *topic_id, id: *id, name },
        Said::Regack { topic_id, id, code } => Input::Regack { topic_id: *topic_id, id: *id, code: *code },
        Said::Puback { topic_id, id, code } => Input::Puback { topic_id: *topic_id, id: *id, code: *code },
        Said::Pubrec { id } => Input::Pubrec { id: *id },
        Said::Pubrel { id } => Input::Pubrel { id: *id },
        Said::Pubcomp { id } => Input::Pubcomp { id: *id },
        Said::Suback { topic_id, id, code, .. } => {
            Input::Suback { topic_id: *topic_id, id: *id, code: *code }
        }
        Said::Pingreq { .. } => Input::Pingreq,
        Said::Pingresp => Input::Pingresp,
        Said::Disconnect { .. } => Input::Disconnected,
        _ => return None,
    })
}

/// What the machine says, as a client's life knows it. `None` where there is nothing to do.
fn step(output: Output) -> Option<Step<Packet, Envelope>> {
    Some(match output {
        Output::Send(packet @ Packet::Connect { .. }) => Step::Connect(packet),
        // The first of several stands for all.
        Output::Send(packet @ Packet::Subscribe { subscription: 0, dup: false, .. }) => {
            Step::Subscribe(packet)
        }
        Output::Send(packet) => Step::Send(packet),
        Output::Publish { token, qos, dup, topic, id } => Step::Publish {
            message: Token(token),
            envelope: Envelope { topic, id, qos, dup },
            settled: qos.level() == Qos::AtMostOnce,
        },
        // A gateway does not say whether it still has the session, and may have been restarted.
        Output::Connected => Step::Connected { resumed: false },
        Output::Subscribed => Step::Subscribed,
        Output::SubscriptionRefused { code, .. } => Step::SubscriptionRefused(code.name()),
        Output::Release { id } => Step::Release(PacketId(id)),
        Output::Acknowledged { token } => Step::Acknowledged(Token(token)),
        Output::Refused { token, .. } => Step::Refused(Token(token), None),
        Output::Asleep(asleep) => Step::Asleep(asleep),
        Output::Close(reason) => Step::Fail(match reason {
            Reason::Asked => return None,
            Reason::Refused(code) => match code.number() {
                1 => "the gateway refused CONNECT: congestion",
                3 => "the gateway refused CONNECT: not supported",
                _ => "the gateway refused CONNECT",
            },
            Reason::Unanswered(what) => what,
            Reason::Forgotten => "the gateway sent DISCONNECT: it does not know the client",
        }),
    })
}

impl From<Malformed> for Loss {
    fn from(malformed: Malformed) -> Loss {
        Loss::broken(malformed.to_string())
    }
}

/// A packet that a client sends, with what the plan says of the client. `name` is the name of a topic by number.
///
/// # Panics
/// For a group that does not speak MQTT-SN.
pub fn packet(
    group: &Group,
    client: u32,
    packet: Packet,
    name: impl FnOnce(u32) -> String,
) -> mqttlab_mqttsn::Packet<String, Vec<u8>> {
    use mqttlab_mqttsn::Packet as Said;
    let plan = group.mqtt_sn().expect("the group speaks MQTT-SN");
    match packet {
        Packet::Searchgw { radius } => Said::Searchgw { radius },
        Packet::Connect { clean, will } => {
            Said::Connect { will, clean, duration_s: plan.keep_alive_s, client_id: group.client_id(client) }
        }
        Packet::Willtopic => Said::Willtopic {
            will: plan.will.as_ref().map(|will| WillTopic {
                qos: qos(will.qos),
                retain: will.retain,
                topic: will.topic.clone(),
            }),
        },
        Packet::Willmsg => Said::Willmsg {
            message: plan.will.as_ref().map_or(Vec::new(), |will| will.payload.clone().into_bytes()),
        },
        Packet::Register { topic, id } => Said::Register { topic_id: 0, id, name: name(topic) },
        Packet::Regack { topic_id, id } => Said::Regack { topic_id, id, code: Default::default() },
        Packet::Puback { topic_id, id, code } => Said::Puback { topic_id, id, code },
        Packet::Pubrec { id } => Said::Pubrec { id },
        Packet::Pubrel { id } => Said::Pubrel { id },
        Packet::Pubcomp { id } => Said::Pubcomp { id },
        Packet::Subscribe { subscription, id, dup } => {
            let wanted = &group.subscriptions[subscription as usize];
            let filter = filter(plan, wanted.filter.fill(&group.name, client, 0));
            Said::Subscribe { dup, qos: qos(wanted.qos), id, filter }
        }
        Packet::Pingreq { awake } => Said::Pingreq { client_id: awake.then(|| group.client_id(client)) },
        Packet::Pingresp => Said::Pingresp,
        Packet::Disconnect { duration_s } => Said::Disconnect { duration_s },
    }
}

fn filter(plan: &MqttSnPlan, name: String) -> Filter<String> {
    match (plan.predefined(&name), Topic::short(&name)) {
        (Some(id), _) => Filter::Predefined(id),
        (None, Some(Topic::Short(short))) if plan.short_topics => Filter::Short(short),
        _ => Filter::Name(name),
    }
}

/// The name of the topic of a PUBLISH that has come. `name` is the name of a topic by number.
pub fn topic_name<'a>(
    group: &Group,
    client: u32,
    session: &MqttSn,
    topic: Topic,
    name: impl FnOnce(u32) -> &'a str,
) -> Option<String> {
    if let Topic::Predefined(id) = topic {
        let topics = &group.mqtt_sn()?.predefined_topics;
        return topics.iter().find(|known| known.id == id).map(|known| known.name.clone());
    }
    if let Some(short) = topic.short_name() {
        return Some(short.to_owned());
    }
    Some(match session.meaning(topic)? {
        Meaning::Own(number) => name(*number).to_owned(),
        Meaning::Subscription(index) => {
            group.subscriptions[*index as usize].filter.fill(&group.name, client, 0)
        }
        Meaning::Named(name) => name.to_string(),
    })
}
