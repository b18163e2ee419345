//! Clients, a gateway and a broker of a few lines, with lossy datagrams between the first two.

use std::collections::BTreeMap;
use std::sync::Arc;

use mqttlab_mqtt::topic::matches;
use mqttlab_mqtt::{Kind, Qos};
use mqttlab_mqttsn::client::{self, Admission, Client, ClientOptions, Meaning, Receipt, Send, Subject};
use mqttlab_mqttsn::gateway::{self, Address, BrokerPacket, Gateway, GatewayOptions, Link};
use mqttlab_mqttsn::{Filter, Packet, Topic};
use mqttlab_units::{Dice, Duration, Instant, Seed};

/// A message, by its number.
pub type Message = u32;
type Datagram = Packet<Arc<str>, Message>;

/// What is under way.
enum Event {
    ToGateway(usize, Datagram),
    ToClient(usize, Datagram),
    ToBroker(Link, BrokerPacket<Message>),
    FromBroker(Link, BrokerPacket<Message>),
    Opened(Link),
}

/// A client with what it publishes to and subscribes to.
pub struct Member {
    pub client: Client,
    pub topics: Vec<&'static str>,
    pub filters: Vec<(&'static str, Qos)>,
    /// Messages that it has got, in order.
    pub got: Vec<Message>,
    held: BTreeMap<u16, Message>,
    pub acknowledged: Vec<Message>,
    pub closed: Option<client::Reason>,
}

/// Everything.
pub struct World {
    pub now: Instant,
    pub members: Vec<Member>,
    pub gateway: Gateway<Message>,
    options: GatewayOptions,
    broker: Broker,
    under_way: BTreeMap<(Instant, u64), Event>,
    count: u64,
    loss_percent: u64,
    dice: Dice,
    /// Datagrams between clients and gateway, and of these the lost ones.
    pub datagrams: u64,
    pub lost: u64,
}

impl World {
    pub fn new(options: GatewayOptions, loss_percent: u64, seed: u64) -> World {
        World {
            now: Instant::ZERO,
            members: Vec::new(),
            gateway: Gateway::new(options.clone(), Instant::ZERO),
            options,
            broker: Broker::default(),
            under_way: BTreeMap::new(),
            count: 0,
            loss_percent,
            dice: Seed(seed).dice(),
            datagrams: 0,
            lost: 0,
        }
    }

    /// Adds a client and opens its transport.
    pub fn add(
        &mut self,
        options: ClientOptions,
        topics: &[&'static str],
        filters: &[(&'static str, Qos)],
    ) -> usize {
        let options = ClientOptions { subscriptions: filters.len() as u32, ..options };
        self.members.push(Member {
            client: Client::new(options),
            topics: topics.to_vec(),
            filters: filters.to_vec(),
            got: Vec::new(),
            held: BTreeMap::new(),
            acknowledged: Vec::new(),
            closed: None,
        });
        let number = self.members.len() - 1;
        self.handle(number, client::Input::Opened);
        number
    }

    pub fn publish(&mut self, number: usize, topic: u32, message: Message, qos: Qos) -> Admission {
        let member = &mut self.members[number];
        let short = Topic::short(member.topics[topic as usize]);
        let subject = short.map_or(Subject::Named(topic), Subject::Known);
        let admission = member.client.publish(self.now, message, subject, qos);
        self.drain_client(number);
        admission
    }

    /// The gateway's program is started again: it has forgotten everything, and so has the broker of its connections.
    pub fn restart_gateway(&mut self) {
        self.gateway = Gateway::new(self.options.clone(), self.now);
        self.under_way.retain(|_, event| matches!(event, Event::ToGateway(..) | Event::ToClient(..)));
        self.broker = Broker { retained: std::mem::take(&mut self.broker.retained), ..Broker::default() };
        self.drain_gateway();
    }

    /// A client's device is started again: a new session that knows nothing.
    pub fn restart_client(&mut self, number: usize, options: ClientOptions) {
        let subscriptions = self.members[number].filters.len() as u32;
        self.members[number].client = Client::new(ClientOptions { subscriptions, ..options });
        self.handle(number, client::Input::Opened);
    }

    /// Lets time pass.
    pub fn run(&mut self, length: Duration) {
        let until = self.now + length;
        for steps in 0.. {
            assert!(steps < 1_000_000, "it does not end");
            self.drain_gateway();
            let deadlines = self.members.iter().filter_map(|member| member.client.next_deadline());
            let arrival = self.under_way.keys().next().map(|(at, _)| *at);
            let next = deadlines.chain(arrival).chain(self.gateway.next_deadline()).min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now = next.max(self.now);
            match self.under_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                Some(entry) => {
                    let event = entry.remove();
                    self.happen(event);
                }
                None => self.tick(),
            }
        }
        self.now = until;
    }

    fn tick(&mut self) {
        for number in 0..self.members.len() {
            if self.members[number].client.next_deadline().is_some_and(|at| at <= self.now) {
                self.handle(number, client::Input::Tick);
                let next = self.members[number].client.next_deadline();
                assert!(next.is_none_or(|at| at >= self.now), "a client's deadline lies in the past");
            }
        }
        if self.gateway.next_deadline().is_some_and(|at| at <= self.now) {
            self.gateway.handle(self.now, gateway::Input::Tick);
            assert!(
                self.gateway.next_deadline().is_none_or(|at| at > self.now),
                "its deadline stays in the past"
            );
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::ToGateway(from, packet) => {
                let from = Address { peer: from as u32, node: None };
                self.gateway.handle(self.now, gateway::Input::Packet { from, packet });
            }
            Event::ToClient(to, packet) => self.receive(to, packet),
            Event::Opened(link) => self.gateway.handle(self.now, gateway::Input::Opened(link)),
            Event::FromBroker(link, packet) => {
                self.gateway.handle(self.now, gateway::Input::Broker(link, packet));
            }
            Event::ToBroker(link, packet) => {
                for (link, packet) in self.broker.handle(link, packet) {
                    self.after(BROKER, Event::FromBroker(link, packet));
                }
            }
        }
    }

    fn after(&mut self, length: Duration, event: Event) {
        self.count += 1;
        self.under_way.insert((self.now + length, self.count), event);
    }

    fn datagram(&mut self, event: Event) {
        self.datagrams += 1;
        if self.dice.below(100) < self.loss_percent {
            self.lost += 1;
        } else {
            self.after(AIR, event);
        }
    }

    pub fn drain_gateway(&mut self) {
        while let Some(output) = self.gateway.poll() {
            match output {
                gateway::Output::Send { to, packet } => {
                    self.datagram(Event::ToClient(to.peer as usize, packet))
                }
                gateway::Output::Open(link) => self.after(BROKER, Event::Opened(link)),
                gateway::Output::Broker(link, packet) => self.after(BROKER, Event::ToBroker(link, packet)),
                gateway::Output::Close(link) => self.broker.close(link),
                gateway::Output::Broadcast(_) | gateway::Output::Dropped { .. } => {}
            }
        }
    }

    fn handle(&mut self, number: usize, input: client::Input<'_>) {
        self.members[number].client.handle(self.now, input);
        self.drain_client(number);
    }

    fn drain_client(&mut self, number: usize) {
        let mut again = false;
        while let Some(output) = self.members[number].client.poll() {
            let member = &mut self.members[number];
            match output {
                client::Output::Send(packet) => {
                    let packet = member.packet(number, packet);
                    self.datagram(Event::ToGateway(number, packet));
                }
                client::Output::Publish { token, qos, dup, topic, id } => {
                    let packet = Packet::Publish { dup, qos, retain: false, topic, id, message: token };
                    self.datagram(Event::ToGateway(number, packet));
                }
                client::Output::Connected => member.client.handle(self.now, client::Input::Subscribe),
                client::Output::Acknowledged { token } => member.acknowledged.push(token),
                client::Output::Release { id } => {
                    let message = member.held.remove(&id).expect("it was held");
                    member.got.push(message);
                }
                client::Output::Close(reason) => {
                    member.closed = Some(reason);
                    again = reason != client::Reason::Asked;
                }
                client::Output::Subscribed
                | client::Output::SubscriptionRefused { .. }
                | client::Output::Refused { .. }
                | client::Output::Asleep(_) => {}
            }
        }
        if again {
            self.handle(number, client::Input::Closed);
            self.handle(number, client::Input::Opened);
        }
    }

    fn receive(&mut self, number: usize, packet: Datagram) {
        use client::Input;
        if let Packet::Publish { qos, topic, id, message, .. } = packet {
            let member = &mut self.members[number];
            match member.client.arrived(self.now, topic, qos, id) {
                Some(Receipt::Deliver) => member.got.push(message),
                Some(Receipt::Hold) => drop(member.held.insert(id, message)),
                Some(Receipt::Duplicate) | None => {}
            }
            return self.drain_client(number);
        }
        let input = match &packet {
            Packet::Connack { code } => Input::Connack { code: *code },
            Packet::Register { topic_id, id, name } => Input::Register { topic_id: *topic_id, id: *id, name },
            Packet::Regack { topic_id, id, code } => {
                Input::Regack { topic_id: *topic_id, id: *id, code: *code }
            }
            Packet::Puback { topic_id, id, code } => {
                Input::Puback { topic_id: *topic_id, id: *id, code: *code }
            }
            Packet::Suback { topic_id, id, code, .. } => {
                Input::Suback { topic_id: *topic_id, id: *id, code: *code }
            }
            Packet::Pubrec { id } => Input::Pubrec { id: *id },
            Packet::Pubrel { id } => Input::Pubrel { id: *id },
            Packet::Pubcomp { id } => Input::Pubcomp { id: *id },
            Packet::Willtopicreq => Input::Willtopicreq,
            Packet::Willmsgreq => Input::Willmsgreq,
            Packet::Pingresp => Input::Pingresp,
            Packet::Disconnect { .. } => Input::Disconnected,
            Packet::Gwinfo { .. } => Input::Gwinfo,
            _ => return,
        };
        self.handle(number, input);
    }
}

impl Member {
    fn packet(&self, number: usize, packet: Send) -> Datagram {
        let client_id: Arc<str> = format!("client-{number}").into();
        match packet {
            Send::Searchgw { radius } => Packet::Searchgw { radius },
            Send::Connect { clean, will } => Packet::Connect { will, clean, duration_s: 60, client_id },
            Send::Willtopic => Packet::Willtopic {
                will: Some(mqttlab_mqttsn::packet::WillTopic {
                    qos: Qos::AtLeastOnce,
                    retain: false,
                    topic: "will".into(),
                }),
            },
            Send::Willmsg => Packet::Willmsg { message: WILL },
            Send::Register { topic, id } => {
                Packet::Register { topic_id: 0, id, name: self.topics[topic as usize].into() }
            }
            Send::Regack { topic_id, id } => Packet::Regack { topic_id, id, code: Default::default() },
            Send::Puback { topic_id, id, code } => Packet::Puback { topic_id, id, code },
            Send::Pubrec { id } => Packet::Pubrec { id },
            Send::Pubrel { id } => Packet::Pubrel { id },
            Send::Pubcomp { id } => Packet::Pubcomp { id },
            Send::Subscribe { subscription, id, dup } => {
                let (filter, qos) = self.filters[subscription as usize];
                Packet::Subscribe { dup, qos, id, filter: Filter::Name(filter.into()) }
            }
            Send::Pingreq { awake } => Packet::Pingreq { client_id: awake.then_some(client_id) },
            Send::Pingresp => Packet::Pingresp,
            Send::Disconnect { duration_s } => Packet::Disconnect { duration_s },
        }
    }

    /// What the client knows topic identifiers by.
    pub fn meaning(&self, topic_id: u16) -> Option<&Meaning> {
        self.client.meaning(topic_id)
    }
}

/// Who has subscribed to what, and what was retained.
#[derive(Default)]
struct Broker {
    filters: Vec<(Link, Arc<str>, Qos)>,
    retained: BTreeMap<Arc<str>, Message>,
    /// Identifiers of QoS 2 messages that are not released, by link.
    received: Vec<(Link, u16)>,
    last_id: u16,
    wills: BTreeMap<Link, gateway::Will<Message>>,
}

impl Broker {
    fn handle(&mut self, link: Link, packet: BrokerPacket<Message>) -> Vec<(Link, BrokerPacket<Message>)> {
        let answer = |kind, id| vec![(link, BrokerPacket::Acknowledgement { kind, id })];
        match packet {
            BrokerPacket::Connect { will, .. } => {
                self.close(link);
                will.map(|will| self.wills.insert(link, will));
                vec![(link, BrokerPacket::Connack { code: 0, session_present: false })]
            }
            BrokerPacket::Subscribe { id, filter, qos } => {
                self.filters.push((link, filter, qos));
                vec![(link, BrokerPacket::Suback { id, code: qos.level() })]
            }
            BrokerPacket::Publish { qos, topic, id, message, .. } => {
                let mut out = match qos {
                    Qos::AtMostOnce => Vec::new(),
                    Qos::AtLeastOnce => answer(Kind::Puback, id),
                    Qos::ExactlyOnce => answer(Kind::Pubrec, id),
                };
                if qos == Qos::ExactlyOnce && self.received.contains(&(link, id)) {
                    return out;
                }
                if qos == Qos::ExactlyOnce {
                    self.received.push((link, id));
                }
                out.extend(self.distribute(&topic, qos, message));
                out
            }
            BrokerPacket::Acknowledgement { kind: Kind::Pubrel, id } => {
                self.received.retain(|known| *known != (link, id));
                answer(Kind::Pubcomp, id)
            }
            BrokerPacket::Acknowledgement { kind: Kind::Pubrec, id } => answer(Kind::Pubrel, id),
            BrokerPacket::Pingreq => vec![(link, BrokerPacket::Pingresp)],
            _ => Vec::new(),
        }
    }

    fn distribute(
        &mut self,
        topic: &Arc<str>,
        qos: Qos,
        message: Message,
    ) -> Vec<(Link, BrokerPacket<Message>)> {
        let mut best: BTreeMap<Link, Qos> = BTreeMap::new();
        for (link, filter, granted) in &self.filters {
            if matches(filter, topic) {
                let entry = best.entry(*link).or_insert(*granted);
                *entry = (*entry).max(*granted);
            }
        }
        let mut out = Vec::new();
        for (link, granted) in best {
            self.last_id = self.last_id.wrapping_add(1).max(1);
            let (topic, qos, id) = (Arc::clone(topic), qos.min(granted), self.last_id);
            let packet = BrokerPacket::Publish { dup: false, qos, retain: false, topic, id, message };
            out.push((link, packet));
        }
        out
    }

    fn close(&mut self, link: Link) {
        self.filters.retain(|(owner, ..)| *owner != link);
        self.received.retain(|(owner, _)| *owner != link);
        self.wills.remove(&link);
    }
}

/// The message of every will.
pub const WILL: Message = 999_999;
const AIR: Duration = Duration::from_ms(20);
const BROKER: Duration = Duration::from_ms(5);
