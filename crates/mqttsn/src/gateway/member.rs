//! One client, as the gateway knows it: its state, what is on its way to it, and what it has asked for.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use mqttlab_mqtt::{Kind, Qos, topic};
use mqttlab_units::{Duration, Instant};

use super::interface::{Address, BrokerPacket, Cause, Counters, GatewayOptions, Link, Mode, Output, Will};
use super::registry::Registry;
use crate::kind::{PublishQos, ReturnCode};
use crate::packet::{Packet, Topic};

/// What a client may touch of its gateway.
pub(super) struct Around<'a, M> {
    pub(super) now: Instant,
    pub(super) options: &'a GatewayOptions,
    pub(super) counters: &'a mut Counters,
    pub(super) out: &'a mut VecDeque<Output<M>>,
}

impl<M> Around<'_, M> {
    pub(super) fn send(&mut self, to: &Address, packet: Packet<Arc<str>, M>) {
        self.out.push_back(Output::Send { to: to.clone(), packet });
    }

    pub(super) fn send_to_broker(&mut self, link: Link, packet: BrokerPacket<M>) {
        self.out.push_back(Output::Broker(link, packet));
    }

    pub(super) fn drop(&mut self, client_id: Option<&Arc<str>>, message: M, cause: Cause) {
        self.counters.dropped += 1;
        self.out.push_back(Output::Dropped { client_id: client_id.cloned(), message, cause });
    }
}

/// Where a client is (§6.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberState {
    /// It has asked to connect, and was not answered: its will, or the broker, is awaited.
    Connecting(ConnectStage),
    Active,
    Asleep,
    /// A sleeper that has asked for what was kept.
    Awake,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectStage {
    WillTopic,
    WillMessage,
    Broker,
}

/// A message to a client.
#[derive(Clone, Debug)]
pub(super) struct Down<M> {
    pub(super) topic: Arc<str>,
    pub(super) qos: Qos,
    pub(super) retain: bool,
    pub(super) dup: bool,
    pub(super) id: u16,
    pub(super) message: M,
}

/// A message of QoS 1 or 2 that the client has not acknowledged.
#[derive(Debug)]
struct Flying<M> {
    down: Down<M>,
    /// What its topic was called in PUBLISH; none when the client has it, and what is sent is PUBREL.
    named: Option<Topic>,
    sent: Instant,
    repeated: u32,
}

/// A REGISTER that the client has not answered.
#[derive(Debug)]
struct Registering {
    topic_id: u16,
    id: u16,
    name: Arc<str>,
    sent: Instant,
    repeated: u32,
}

/// The message of QoS 1 or 2 that the client has sent last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Up {
    pub(super) id: u16,
    pub(super) topic_id: u16,
    pub(super) qos: Qos,
    /// Whether PUBACK or PUBREC was sent.
    pub(super) answered: bool,
}

impl Up {
    /// PUBACK or PUBREC.
    pub(super) fn answer<M>(&self) -> Packet<Arc<str>, M> {
        let Up { id, topic_id, qos, .. } = *self;
        match qos {
            Qos::ExactlyOnce => Packet::Pubrec { id },
            _ => Packet::Puback { topic_id, id, code: ReturnCode::Accepted },
        }
    }
}

/// A client.
#[derive(Debug)]
pub(super) struct GatewayMember<M> {
    pub(super) address: Address,
    pub(super) client_id: Arc<str>,
    pub(super) state: MemberState,
    pub(super) clean: bool,
    /// Its own connection to the broker, where it has one.
    pub(super) link: Option<Link>,
    /// Keep-alive, or how long it sleeps.
    pub(super) duration: Duration,
    /// Keep-alive as it was connected with.
    pub(super) keep_alive: Duration,
    pub(super) heard: Instant,
    /// When something was sent on its link.
    pub(super) last_told: Instant,
    pub(super) will_topic: Option<crate::packet::WillTopic<Arc<str>>>,
    pub(super) will: Option<Will<M>>,
    pub(super) topics: Registry,
    /// Nothing came since it was accepted: another CONNECT is the same one, sent again.
    pub(super) fresh: bool,
    pub(super) up: Option<Up>,
    /// Subscriptions that the broker has not answered, by identifier: what SUBACK will say the topic is.
    pub(super) subscribing: BTreeMap<u16, u16>,
    /// PINGREQs that were passed on to the broker.
    pub(super) pings: u32,
    queue: VecDeque<Down<M>>,
    flying: VecDeque<Flying<M>>,
    registering: Option<Registering>,
    last_id: u16,
    /// What it stands under in the gateway's list of deadlines.
    pub(super) due: Option<Instant>,
}

impl<M: Clone> GatewayMember<M> {
    pub(super) fn new(address: Address, client_id: Arc<str>, now: Instant) -> GatewayMember<M> {
        GatewayMember {
            address,
            client_id,
            state: MemberState::Connecting(ConnectStage::Broker),
            clean: true,
            link: None,
            duration: Duration::ZERO,
            keep_alive: Duration::ZERO,
            heard: now,
            last_told: now,
            will_topic: None,
            will: None,
            topics: Registry::default(),
            fresh: true,
            up: None,
            subscribing: BTreeMap::new(),
            pings: 0,
            queue: VecDeque::new(),
            flying: VecDeque::new(),
            registering: None,
            last_id: 0,
            due: None,
        }
    }

    /// Messages that are on their way to it, or wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len() + self.flying.len()
    }

    pub(super) fn next_id(&mut self) -> u16 {
        // Zero is what a PUBLISH has that nobody acknowledges (§5.4.12).
        self.last_id = self.last_id.wrapping_add(1).max(1);
        self.last_id
    }

    /// When something is to be done about it.
    pub(super) fn next_deadline(&self, options: &GatewayOptions) -> Option<Instant> {
        // A sleeper's timers stand still: it hears no repetition.
        let flying = self.flying.iter().filter(|_| self.listens());
        let flying = flying.map(|flying| flying.sent + options.retry).min();
        let registering = self.registering.as_ref().map(|asked| asked.sent + options.retry);
        [flying, registering, self.expires_at(options), self.link_ping_at()].into_iter().flatten().min()
    }

    /// Whether it hears what is sent to it now.
    fn listens(&self) -> bool {
        matches!(self.state, MemberState::Active | MemberState::Awake)
    }

    /// When it is given up if it stays silent (§7.2: 10 % more than it said, half as much again up to a minute).
    fn expires_at(&self, options: &GatewayOptions) -> Option<Instant> {
        if let MemberState::Connecting(_) = self.state {
            // As long as the client itself repeats its CONNECT.
            let patience = options.retry.as_ns() * (u64::from(options.retries) + 1);
            return Some(self.heard + Duration::from_ns(patience));
        }
        if self.duration.is_zero() {
            return None;
        }
        let share = if self.duration > Duration::from_s(60) { 10 } else { 2 };
        Some(self.heard + self.duration + Duration::from_ns(self.duration.as_ns() / share))
    }

    /// When the broker must hear of a client that may be asleep: before it has waited for half as long again as its
    /// keep-alive (MQTT 3.1.1 §3.1.2.10), and later than a client that is not asleep says something itself.
    fn link_ping_at(&self) -> Option<Instant> {
        let open = self.link.is_some() && !matches!(self.state, MemberState::Connecting(_));
        let wait = self.keep_alive + Duration::from_ns(self.keep_alive.as_ns() / 4);
        (open && !self.keep_alive.is_zero()).then(|| self.last_told + wait)
    }

    /// Time has passed; `false` when the client is to be given up.
    pub(super) fn tick(&mut self, around: &mut Around<'_, M>) -> bool {
        // Before repetitions: who has been silent too long is owed none.
        if self.expires_at(around.options).is_some_and(|at| at <= around.now) {
            return false;
        }
        if self.link_ping_at().is_some_and(|at| at <= around.now)
            && let Some(link) = self.link
        {
            self.last_told = around.now;
            around.send_to_broker(link, BrokerPacket::Pingreq);
        }
        if self.repeat(around) {
            return true;
        }
        // An active client that leaves N_retry repetitions without an answer is lost.
        if self.state != MemberState::Awake {
            return false;
        }
        // It was awake for a moment only; it will ask again.
        self.sleep(around);
        true
    }

    /// Sends again what was not acknowledged; `false` when that was done often enough.
    fn repeat(&mut self, around: &mut Around<'_, M>) -> bool {
        if !self.listens() {
            return true;
        }
        let (now, retry, retries) = (around.now, around.options.retry, around.options.retries);
        if let Some(asked) = self.registering.as_mut().filter(|asked| asked.sent + retry <= now) {
            if asked.repeated >= retries {
                return false;
            }
            (asked.sent, asked.repeated) = (now, asked.repeated + 1);
            around.counters.repeated += 1;
            let packet =
                Packet::Register { topic_id: asked.topic_id, id: asked.id, name: Arc::clone(&asked.name) };
            around.send(&self.address, packet);
        }
        for flying in self.flying.iter_mut().filter(|flying| flying.sent + retry <= now) {
            if flying.repeated >= retries {
                return false;
            }
            (flying.sent, flying.repeated) = (now, flying.repeated + 1);
            around.counters.repeated += 1;
            let packet = match flying.named {
                Some(named) => publication(&flying.down, named, true),
                // Once PUBREL was sent, PUBLISH is not repeated ([MQTT-4.3.3-6]).
                None => Packet::Pubrel { id: flying.down.id },
            };
            around.send(&self.address, packet);
        }
        true
    }

    /// WILLTOPIC, WILLMSG, or one of their updates; `true` when the client may connect now.
    pub(super) fn take_will(&mut self, around: &mut Around<'_, M>, packet: Packet<Arc<str>, M>) -> bool {
        match (packet, self.state) {
            (
                Packet::Willtopic { will: Some(topic) },
                MemberState::Connecting(ConnectStage::WillTopic | ConnectStage::WillMessage),
            ) => {
                // A repeated WILLTOPIC is taken as well: WILLMSGREQ may have been lost.
                self.will_topic = Some(topic);
                self.state = MemberState::Connecting(ConnectStage::WillMessage);
                around.send(&self.address, Packet::Willmsgreq);
            }
            // Without a topic there is no will (§5.4.7).
            (Packet::Willtopic { will: None }, MemberState::Connecting(ConnectStage::WillTopic)) => {
                (self.will_topic, self.will) = (None, None);
                return true;
            }
            (Packet::Willmsg { message }, MemberState::Connecting(ConnectStage::WillMessage)) => {
                let topic = self.will_topic.clone();
                self.will =
                    topic.map(|will| Will { topic: will.topic, qos: will.qos, retain: will.retain, message });
                return true;
            }
            (Packet::Willtopicupd { will }, MemberState::Active) => {
                // An update changes what there is (§6.4); without a message there is no will to change.
                self.will = self.will.take().zip(will).map(|(old, new)| Will {
                    topic: new.topic,
                    qos: new.qos,
                    retain: new.retain,
                    message: old.message,
                });
                around.send(&self.address, Packet::Willtopicresp { code: ReturnCode::Accepted });
            }
            (Packet::Willmsgupd { message }, MemberState::Active) => {
                if let Some(will) = &mut self.will {
                    will.message = message;
                }
                around.send(&self.address, Packet::Willmsgresp { code: ReturnCode::Accepted });
            }
            _ => {}
        }
        false
    }

    /// Whether a CONNECT from here is the last one, sent again; then it is answered again.
    pub(super) fn hears_again(&mut self, around: &mut Around<'_, M>, from: &Address) -> bool {
        // From elsewhere it is a client that has moved, or begun anew.
        if self.address != *from {
            return false;
        }
        let answer = match self.state {
            MemberState::Connecting(ConnectStage::Broker) => None,
            MemberState::Connecting(ConnectStage::WillTopic) => Some(Packet::Willtopicreq),
            MemberState::Connecting(ConnectStage::WillMessage) => Some(Packet::Willmsgreq),
            MemberState::Active if self.fresh => Some(Packet::Connack { code: ReturnCode::Accepted }),
            // The CONNECT of a sleeper is no repetition: by it the sleeper becomes active (§6.14).
            _ => return false,
        };
        self.heard = around.now;
        if let Some(packet) = answer {
            around.send(&self.address, packet);
        }
        true
    }

    /// DISCONNECT with a duration.
    pub(super) fn sleep_for(&mut self, around: &mut Around<'_, M>, seconds: u16) {
        // From now on the gateway waits for this duration, and not for the keep-alive (§6.14).
        self.duration = Duration::from_s(seconds.into());
        self.sleep(around);
        around.send(&self.address, Packet::Disconnect { duration_s: None });
    }

    /// REGISTER: the client names a topic.
    pub(super) fn name_topic(&mut self, around: &mut Around<'_, M>, id: u16, name: &Arc<str>) {
        let assigned = match topic::is_name(name) {
            true => self.topics.assign(name).ok_or(ReturnCode::Congestion),
            // A filter with wild cards is subscribed to; there is nothing to publish to.
            false => Err(ReturnCode::NotSupported),
        };
        if let Ok(topic_id) = assigned {
            // Who has named a topic knows it: no REGISTER goes back.
            self.topics.confirm(topic_id);
        }
        let code = assigned.err().unwrap_or(ReturnCode::Accepted);
        around.send(&self.address, Packet::Regack { topic_id: assigned.unwrap_or(0), id, code });
    }

    /// PINGREQ: a sleeper is awake, or a sign of life.
    pub(super) fn pingreq(&mut self, around: &mut Around<'_, M>, named: bool) {
        match self.state {
            MemberState::Asleep if named => self.wake_up(around, MemberState::Awake),
            // Its timers go on; what was lost is sent again when it is time.
            MemberState::Awake if named => self.send_queued(around),
            // A sign of life passes through a transparent gateway (§6.11).
            MemberState::Active if self.link.is_some() => {
                self.pings += 1;
                self.send_to_broker(around, BrokerPacket::Pingreq);
            }
            // Behind an aggregating gateway a client has no connection of its own to ask for.
            _ => around.send(&self.address, Packet::Pingresp),
        }
    }

    /// Takes a message for the client.
    pub(super) fn deliver(&mut self, around: &mut Around<'_, M>, down: Down<M>) {
        // The newest goes: those that wait keep their order.
        if self.queue.len() >= around.options.buffer as usize {
            self.refuse(around, down, Cause::BufferFull);
            return;
        }
        around.counters.kept += u64::from(matches!(self.state, MemberState::Asleep));
        self.queue.push_back(down);
        around.counters.queue_max = around.counters.queue_max.max(self.waiting() as u64);
        self.send_queued(around);
    }

    /// A message that the client will not get. The broker waits for an acknowledgement all the same.
    fn refuse(&mut self, around: &mut Around<'_, M>, down: Down<M>, cause: Cause) {
        let kind = match down.qos {
            Qos::AtMostOnce => None,
            Qos::AtLeastOnce => Some(Kind::Puback),
            Qos::ExactlyOnce => Some(Kind::Pubrec),
        };
        if let Some(kind) = kind {
            self.send_to_broker(around, BrokerPacket::Acknowledgement { kind, id: down.id });
        }
        around.drop(Some(&self.client_id), down.message, cause);
    }

    /// Says something on the client's own link, where it has one.
    pub(super) fn send_to_broker(&mut self, around: &mut Around<'_, M>, packet: BrokerPacket<M>) {
        if let Some(link) = self.link {
            self.last_told = around.now;
            around.send_to_broker(link, packet);
        }
    }

    /// It listens again: the PUBRELs that it has not answered come first.
    pub(super) fn wake_up(&mut self, around: &mut Around<'_, M>, state: MemberState) {
        self.state = state;
        for flying in &mut self.flying {
            (flying.sent, flying.repeated) = (around.now, 0);
            around.send(&self.address, Packet::Pubrel { id: flying.down.id });
        }
        self.send_queued(around);
    }

    /// Sends what can be sent. A sleeper that has got everything is told so.
    pub(super) fn send_queued(&mut self, around: &mut Around<'_, M>) {
        let window = if around.options.window == 0 { usize::MAX } else { around.options.window as usize };
        while self.listens() && self.registering.is_none() {
            let Some(down) = self.queue.front() else { break };
            let Some(named) = self.topics.topic(&down.topic, &around.options.predefined) else {
                let name = Arc::clone(&down.topic);
                // One REGISTER at a time (§6.10); what is behind waits, so that messages stay in order.
                self.register(around, name);
                continue;
            };
            // What is behind it waits, too: QoS 0 needs no place in the window, but keeps its order.
            if down.qos != Qos::AtMostOnce && self.flying.len() >= window {
                break;
            }
            let Some(down) = self.queue.pop_front() else { break };
            around.send(&self.address, publication(&down, named, down.dup));
            if down.qos != Qos::AtMostOnce {
                let sent = around.now;
                self.flying.push_back(Flying { down, named: Some(named), sent, repeated: 0 });
            }
        }
        // PINGRESP tells a sleeper that nothing more is kept for it (§5.4.20).
        let idle = self.queue.is_empty() && self.flying.is_empty() && self.registering.is_none();
        if self.state == MemberState::Awake && idle {
            self.state = MemberState::Asleep;
            around.send(&self.address, Packet::Pingresp);
        }
    }

    /// Tells the client what a topic will be called.
    fn register(&mut self, around: &mut Around<'_, M>, name: Arc<str>) {
        let Some(topic_id) = self.topics.assign(&name) else {
            // All identifiers are given away, and an unnamed topic cannot be published to.
            return self.drop_topic(around, &name);
        };
        let id = self.next_id();
        around.counters.registered += 1;
        around.send(&self.address, Packet::Register { topic_id, id, name: Arc::clone(&name) });
        self.registering = Some(Registering { topic_id, id, name, sent: around.now, repeated: 0 });
    }

    fn drop_topic(&mut self, around: &mut Around<'_, M>, name: &Arc<str>) {
        let (refused, kept): (VecDeque<_>, VecDeque<_>) =
            self.queue.drain(..).partition(|down| down.topic == *name);
        self.queue = kept;
        for down in refused {
            self.refuse(around, down, Cause::TopicRefused);
        }
    }

    pub(super) fn regack(&mut self, around: &mut Around<'_, M>, id: u16, code: ReturnCode) {
        let Some(asked) = self.registering.take_if(|asked| asked.id == id) else { return };
        match code {
            ReturnCode::Accepted => self.topics.confirm(asked.topic_id),
            _ => self.drop_topic(around, &asked.name),
        }
        self.send_queued(around);
    }

    /// The client acknowledges a message of QoS 1, or does not know the topic of any.
    pub(super) fn puback(&mut self, around: &mut Around<'_, M>, topic_id: u16, id: u16, code: ReturnCode) {
        // A PUBLISH of QoS 0 has the identifier 0 (§5.4.12), and is not kept.
        let place = self.flying.iter().position(|flying| flying.down.id == id && id != 0);
        let flying = place.and_then(|place| self.flying.remove(place));
        match (code, flying) {
            (ReturnCode::InvalidTopic, flying) => {
                // It has been restarted: its registrations are lost, and made again with the next message.
                self.topics.doubt(topic_id);
                if let Some(flying) = flying {
                    self.queue.push_front(Down { dup: true, ..flying.down });
                }
            }
            (ReturnCode::Accepted, Some(flying)) => {
                self.send_to_broker(
                    around,
                    BrokerPacket::Acknowledgement { kind: Kind::Puback, id: flying.down.id },
                );
            }
            (_, Some(flying)) => self.refuse(around, flying.down, Cause::TopicRefused),
            (_, None) => {}
        }
        self.send_queued(around);
    }

    pub(super) fn pubrec(&mut self, around: &mut Around<'_, M>, id: u16) {
        if around.options.mode == Mode::Transparent {
            return self.send_to_broker(around, BrokerPacket::Acknowledgement { kind: Kind::Pubrec, id });
        }
        // An aggregating gateway is the sender itself, and goes on with PUBREL.
        self.release(around, id);
    }

    /// The message is the client's: what is left is PUBREL, and its answer.
    pub(super) fn release(&mut self, around: &mut Around<'_, M>, id: u16) {
        let (sent, repeated) = (around.now, 0);
        if let Some(flying) = self.flying.iter_mut().find(|flying| flying.down.id == id) {
            (flying.named, flying.sent, flying.repeated) = (None, sent, repeated);
        } else if let Some(down) = self.fallen_asleep_over(id) {
            self.flying.push_back(Flying { down, named: None, sent, repeated });
        } else {
            // It was dropped here, or acknowledged before.
            return self.send_to_broker(around, BrokerPacket::Acknowledgement { kind: Kind::Pubcomp, id });
        }
        if self.listens() {
            around.send(&self.address, Packet::Pubrel { id });
        }
    }

    /// A message that the client has, by its PUBREC, and that was put back when it fell asleep before PUBREL.
    fn fallen_asleep_over(&mut self, id: u16) -> Option<Down<M>> {
        let place = self.queue.iter().position(|down| down.id == id && down.qos == Qos::ExactlyOnce)?;
        self.queue.remove(place)
    }

    pub(super) fn pubcomp(&mut self, around: &mut Around<'_, M>, id: u16) {
        if let Some(place) = self.flying.iter().position(|flying| flying.down.id == id) {
            self.flying.remove(place);
            self.send_to_broker(around, BrokerPacket::Acknowledgement { kind: Kind::Pubcomp, id });
        }
        self.send_queued(around);
    }

    /// It sleeps: what it has not acknowledged is kept. What has got as far as PUBREL is not published again
    /// ([MQTT-4.3.3-1] of 3.1.1): the client may have passed it on, and would not know it any more.
    pub(super) fn sleep(&mut self, _: &mut Around<'_, M>) {
        self.state = MemberState::Asleep;
        self.registering = None;
        let (published, released) = self.flying.drain(..).partition(|flying| flying.named.is_some());
        self.flying = released;
        let published: VecDeque<Flying<M>> = published;
        for flying in published.into_iter().rev() {
            self.queue.push_front(Down { dup: true, ..flying.down });
        }
    }

    /// It starts anew: nothing that was for it is, and nothing is left of its will (§6.3).
    pub(super) fn forget(&mut self, around: &mut Around<'_, M>) {
        let messages = self.flying.drain(..).map(|flying| flying.down).chain(self.queue.drain(..));
        for down in messages {
            around.drop(Some(&self.client_id), down.message, Cause::ClientLost);
        }
        self.topics = Registry::default();
        (self.will_topic, self.will) = (None, None);
        self.registering = None;
        self.up = None;
        self.subscribing.clear();
    }
}

fn publication<M: Clone>(down: &Down<M>, topic: Topic, dup: bool) -> Packet<Arc<str>, M> {
    Packet::Publish {
        // QoS 0 has neither DUP ([MQTT-3.3.1-2]) nor an identifier (§5.4.12).
        dup: dup && down.qos != Qos::AtMostOnce,
        qos: PublishQos::Level(down.qos),
        retain: down.retain,
        topic,
        id: if down.qos == Qos::AtMostOnce { 0 } else { down.id },
        message: down.message.clone(),
    }
}
