//! Whatever three clients do, and whatever their connections lose: what a naive broker would have delivered arrives.
//!
//! Packets to a client wait until it reads them, its answers until they are sent; both are lost with the connection.
//! Clients keep the receiver's part of the protocol, and repeat what the broker has not acknowledged.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mqttlab_mqtt::broker::{Broker, BrokerOptions, Cause, ConnectionId, Input, Output, TopicId};
use mqttlab_mqtt::topic::matches;
use mqttlab_mqtt::{Qos, Version};
use mqttlab_units::{Duration, Instant};
use proptest::prelude::*;
use proptest::sample::select;

const CLIENTS: [&str; 3] = ["anna", "ben", "carl"];
const TOPICS: [&str; 3] = ["a", "a/b", "c"];
/// From the narrowest to the widest.
const FILTERS: [&str; 5] = ["a", "c", "a/#", "+", "#"];

#[derive(Clone, Copy, Debug)]
enum Step {
    Connect { client: usize, clean: bool, receive_maximum: u16 },
    Disconnect { client: usize },
    Subscribe { client: usize, filter: usize, qos: Qos },
    Unsubscribe { client: usize, filter: usize },
    Publish { client: usize, topic: usize, qos: Qos },
    Read { client: usize },
    Answer { client: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let client = || 0..CLIENTS.len();
    let qos = || select(vec![Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce]);
    let filter = || 0..FILTERS.len();
    let step = prop_oneof![
        2 => (client(), prop::bool::weighted(0.1), 1..5_u16)
            .prop_map(|(client, clean, receive_maximum)| Step::Connect { client, clean, receive_maximum }),
        1 => client().prop_map(|client| Step::Disconnect { client }),
        2 => (client(), filter(), qos()).prop_map(|(client, filter, qos)| Step::Subscribe { client, filter, qos }),
        1 => (client(), filter()).prop_map(|(client, filter)| Step::Unsubscribe { client, filter }),
        8 => (client(), 0..TOPICS.len(), qos()).prop_map(|(client, topic, qos)| Step::Publish { client, topic, qos }),
        8 => client().prop_map(|client| Step::Read { client }),
        8 => client().prop_map(|client| Step::Answer { client }),
    ];
    prop::collection::vec(step, 0..250)
}

/// What the broker under test has been told, played on lists.
#[derive(Default)]
struct Naive {
    subscriptions: BTreeMap<(usize, usize), Qos>,
    held: BTreeMap<(usize, u16), (usize, u64)>,
    /// What each client is to receive at QoS 1 and 2 in its present session.
    due: [Vec<(u64, Qos)>; 3],
}

impl Naive {
    fn forget(&mut self, client: usize) {
        self.subscriptions.retain(|(subscriber, _), _| *subscriber != client);
        self.held.retain(|(publisher, _), _| *publisher != client);
        self.due[client].clear();
    }

    fn publish(&mut self, topic: usize, message: u64, qos: Qos) {
        for client in 0..CLIENTS.len() {
            // With MQTT 5 Mosquitto sends a copy for each.
            let granted = (0..FILTERS.len()).filter(|&filter| matches(FILTERS[filter], TOPICS[topic]));
            let granted = granted.filter_map(|filter| self.subscriptions.get(&(client, filter)));
            let copies = granted.map(|granted| qos.min(*granted)).filter(|qos| *qos != Qos::AtMostOnce);
            self.due[client].extend(copies.map(|qos| (message, qos)));
        }
    }
}

/// One end of a session, as a client of few words.
#[derive(Default)]
struct Client {
    online: bool,
    receive_maximum: usize,
    /// The widest window that its session has had: its receive maximum, or else the broker's own.
    window: usize,
    /// Packets on their way to it, and answers on their way back.
    incoming: VecDeque<Output>,
    answers: VecDeque<Input<'static>>,
    /// What it has published and the broker has not acknowledged: topic and message, `None` when PUBREC has come.
    published: BTreeMap<u16, (Qos, Option<(usize, u64)>)>,
    last_id: u16,
    unreleased: BTreeSet<u16>,
    received: Vec<(u64, Qos)>,
    /// Identifiers that the broker uses towards it, and those that it has sent on this connection.
    in_use: BTreeMap<u16, u64>,
    sent: BTreeSet<u16>,
}

struct World {
    broker: Broker,
    window: usize,
    naive: Naive,
    clients: [Client; 3],
    topics: Vec<TopicId>,
    messages: u64,
    gone_in: BTreeSet<u64>,
    released: BTreeSet<u64>,
}

impl World {
    fn new(window: u16) -> World {
        let options = BrokerOptions { max_inflight: window, max_queued: 0, ..BrokerOptions::default() };
        let mut broker = Broker::new(options);
        let topics = TOPICS.iter().map(|name| broker.topic(name)).collect();
        World {
            broker,
            window: window.into(),
            naive: Naive::default(),
            clients: Default::default(),
            topics,
            messages: 0,
            gone_in: BTreeSet::new(),
            released: BTreeSet::new(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Connect { client, clean, receive_maximum } => self.connect(client, clean, receive_maximum),
            Step::Disconnect { client } => self.disconnect(client),
            Step::Read { client } => self.read(client),
            Step::Answer { client } => self.answer(client),
            Step::Subscribe { client, .. }
            | Step::Unsubscribe { client, .. }
            | Step::Publish { client, .. }
                if !self.clients[client].online => {}
            Step::Subscribe { client, filter, qos } => {
                self.naive.subscriptions.insert((client, filter), qos);
                self.tell(client, Input::Subscribe { id: 1, filters: &[(FILTERS[filter], qos.into())] });
            }
            Step::Unsubscribe { client, filter } => {
                self.naive.subscriptions.remove(&(client, filter));
                self.tell(client, Input::Unsubscribe { id: 1, filters: &[FILTERS[filter]] });
            }
            Step::Publish { client, topic, qos } => {
                let message = self.messages;
                self.messages += 1;
                let this = &mut self.clients[client];
                let id = if qos == Qos::AtMostOnce { 0 } else { this.last_id + 1 };
                this.last_id = this.last_id.max(id);
                if id > 0 {
                    this.published.insert(id, (qos, Some((topic, message))));
                }
                self.publish(client, id, topic, message, qos, false);
            }
        }
    }

    fn connect(&mut self, client: usize, clean: bool, receive_maximum: u16) {
        self.disconnect(client);
        if clean {
            self.naive.forget(client);
            self.clients[client] = Client::default();
        }
        let this = &mut self.clients[client];
        (this.online, this.receive_maximum) = (true, receive_maximum.into());
        let window = if receive_maximum == u16::MAX { self.window } else { receive_maximum.into() };
        this.window = this.window.max(window);
        let input = Input::Connect {
            client: CLIENTS[client],
            version: Version::V5,
            clean,
            keep_alive: Duration::ZERO,
            session_expiry: None,
            receive_maximum,
            will: None,
        };
        self.tell(client, input);
        // What the broker has not acknowledged goes out again, in order ([MQTT-4.4.0-1]).
        for (id, (qos, message)) in self.clients[client].published.clone() {
            match message {
                Some((topic, message)) => self.publish(client, id, topic, message, qos, true),
                None => self.release(client, id),
            }
        }
    }

    fn disconnect(&mut self, client: usize) {
        let this = &mut self.clients[client];
        if std::mem::take(&mut this.online) {
            this.incoming.clear();
            this.answers.clear();
            this.sent.clear();
            self.broker.closed(Instant::ZERO, ConnectionId(client as u32));
            self.listen();
        }
    }

    fn publish(&mut self, client: usize, id: u16, topic: usize, message: u64, qos: Qos, dup: bool) {
        match qos {
            Qos::ExactlyOnce => drop(self.naive.held.entry((client, id)).or_insert((topic, message))),
            _ => self.naive.publish(topic, message, qos),
        }
        self.gone_in.insert(message);
        self.released.remove(&message);
        let topic = self.topics[topic];
        self.tell(
            client,
            Input::Publish { topic, message, qos, id, dup, retain: false, empty: false, expiry_s: None },
        );
    }

    fn release(&mut self, client: usize, id: u16) {
        if let Some((topic, message)) = self.naive.held.remove(&(client, id)) {
            self.naive.publish(topic, message, Qos::ExactlyOnce);
        }
        self.tell(client, Input::Pubrel { id });
    }

    fn tell(&mut self, client: usize, input: Input<'_>) {
        self.broker.handle(Instant::ZERO, ConnectionId(client as u32), input);
        self.listen();
    }

    /// Takes what the broker says onto the wires, and checks what must hold at any time.
    fn listen(&mut self) {
        while let Some(output) = self.broker.poll() {
            let client = match output {
                Output::Released { message } => {
                    assert!(self.released.insert(message), "{message} is released twice");
                    continue;
                }
                // QoS 0 for who is away, and what a session held that ends.
                Output::Dropped { cause: Cause::Away | Cause::SessionEnded, .. } => continue,
                Output::Connack { connection, .. }
                | Output::Suback { connection, .. }
                | Output::Unsuback { connection, .. }
                | Output::Puback { connection, .. }
                | Output::Pubrec { connection, .. }
                | Output::Pubrel { connection, .. }
                | Output::Pubcomp { connection, .. }
                | Output::Publish { connection, .. } => &mut self.clients[connection.0 as usize],
                other => panic!("nothing should cause {other:?}"),
            };
            assert!(client.online, "{output:?} without a connection");
            if let Output::Publish { message, qos, id, dup, .. } = output {
                assert!(!self.released.contains(&message), "{output:?} after its release");
                assert_eq!(id > 0, qos > Qos::AtMostOnce, "{output:?}");
                if id > 0 {
                    let used = client.in_use.insert(id, message);
                    assert_eq!(
                        used,
                        dup.then_some(message),
                        "[MQTT-2.2.1-2] and [MQTT-3.3.1-1] of {output:?}"
                    );
                    client.sent.insert(id);
                }
                assert!(client.in_use.len() <= client.window, "[MQTT-4.4.0-2] {output:?}");
                assert!(client.sent.len() <= client.receive_maximum, "[MQTT-3.3.4-9] {output:?}");
            }
            client.incoming.push_back(output);
        }
    }

    /// A client takes the next packet from the wire, and writes its answer.
    fn read(&mut self, client: usize) {
        let this = &mut self.clients[client];
        match this.incoming.pop_front() {
            Some(Output::Publish { message, qos: Qos::AtLeastOnce, id, .. }) => {
                this.received.push((message, Qos::AtLeastOnce));
                this.answers.push_back(Input::Puback { id });
            }
            Some(Output::Publish { message, qos: Qos::ExactlyOnce, id, .. }) => {
                if this.unreleased.insert(id) {
                    this.received.push((message, Qos::ExactlyOnce));
                }
                this.answers.push_back(Input::Pubrec { id });
            }
            Some(Output::Pubrel { id, .. }) => {
                this.unreleased.remove(&id);
                this.answers.push_back(Input::Pubcomp { id });
            }
            Some(Output::Puback { id, .. } | Output::Pubcomp { id, .. }) => {
                this.published.remove(&id);
            }
            Some(Output::Pubrec { id, .. }) => {
                if let Some((_, message)) = this.published.get_mut(&id) {
                    *message = None;
                }
                this.answers.push_back(Input::Pubrel { id });
            }
            _ => {}
        }
    }

    /// A client's next answer comes to the broker.
    fn answer(&mut self, client: usize) {
        let this = &mut self.clients[client];
        let Some(input) = this.answers.pop_front() else { return };
        match input {
            Input::Pubrel { id } => return self.release(client, id),
            Input::Puback { id } | Input::Pubcomp { id } => {
                this.in_use.remove(&id);
                this.sent.remove(&id);
            }
            _ => {}
        }
        self.tell(client, input);
    }

    /// Everybody comes back, reads and answers until nobody has anything left to say.
    fn settle(&mut self) {
        for client in 0..CLIENTS.len() {
            self.connect(client, false, 5);
        }
        while let Some(client) = self.clients.iter().position(|client| !client.incoming.is_empty()) {
            self.read(client);
            while !self.clients[client].answers.is_empty() {
                self.answer(client);
            }
        }
    }

    fn check(&self) {
        for (client, (this, due)) in self.clients.iter().zip(&self.naive.due).enumerate() {
            let name = CLIENTS[client];
            let exactly = |list: &[(u64, Qos)]| -> Vec<u64> {
                list.iter().filter(|(_, qos)| *qos == Qos::ExactlyOnce).map(|(message, _)| *message).collect()
            };
            assert_eq!(exactly(&this.received), exactly(due), "{name}: QoS 2, exactly once and in order");
            assert_eq!(firsts(&this.received), firsts(due), "{name}: at least once and in order");
            assert!(this.in_use.is_empty() && this.published.is_empty(), "{name}: all is acknowledged");
        }
        assert_eq!(self.broker.messages(), 0);
        assert_eq!(self.released, self.gone_in);
    }
}

/// Messages in the order in which they came first, at their QoS.
fn firsts(list: &[(u64, Qos)]) -> Vec<(u64, Qos)> {
    let mut seen = BTreeSet::new();
    list.iter().copied().filter(|item| seen.insert(*item)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_naive_broker_would_have_delivered_arrives(window in 1..5_u16, steps in steps()) {
        let mut world = World::new(window);
        steps.into_iter().for_each(|step| world.step(step));
        world.settle();
        world.check();
    }
}
