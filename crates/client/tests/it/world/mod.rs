//! Surroundings that write down what a client does, and a transport that takes what it is told to take.
#![allow(dead_code)]

use std::fmt::Write as _;
use std::sync::Arc;

use mqttlab_client::mqtt::{Envelope, Mqtt, Packet};
use mqttlab_client::{
    Arriving, Body, Books, Client, ClientNumber, Connection, Delivery, GroupFacts, GroupNumber, Loss,
    MessageFacts, Offered, PacketId, PublishFacts, Rows, Surroundings, Transport, Who,
};
use mqttlab_mqtt::Qos;
use mqttlab_mqtt::client::{ClientOptions, Input, Ping};
use mqttlab_plan::{
    Arrival, Arrivals, Group, Payload, Publish, PublishingChanges, PublishingTime, Reconnect, StartPhase,
    TopicPattern,
};
use mqttlab_rows::{Acknowledged, Dropped, EventKind, Identified, Received, Sent, Unsent};
use mqttlab_units::{Duration, Instant, Ratio, Seed};
use serde_json::json;

pub type TestClient = Client<Mqtt, Wire>;

pub const WHO: Who = Who { number: ClientNumber(3), group: GroupNumber(0), index: 0 };

/// A connection of so many bytes.
#[derive(Default)]
pub struct Wire {
    pub end: u64,
    pub written: u64,
}

impl Connection for Wire {
    type Relayed = String;
}

/// What happens around a client.
pub struct World {
    pub now: Instant,
    pub leaving: bool,
    pub books: Books,
    pub transcript: String,
    /// Bytes that the transport still takes.
    pub takes: u64,
    /// Whether a connection can be opened at all.
    pub opens: bool,
    /// Messages that a client may offer in a turn.
    pub turn: u32,
    /// What passes until the clock is read again.
    pub tick: Duration,
    /// How late the client was with each message.
    pub late: Vec<Duration>,
    /// How its subscriptions change: filter, and whether it subscribes. It has one at first.
    pub changes: Vec<(&'static str, bool)>,
}

impl Default for World {
    fn default() -> World {
        World {
            now: Instant::ZERO,
            leaving: false,
            books: Books::default(),
            transcript: String::new(),
            takes: u64::MAX,
            opens: true,
            turn: u32::MAX,
            tick: Duration::ZERO,
            late: Vec::new(),
            changes: Vec::new(),
        }
    }
}

impl World {
    pub fn say(&mut self, line: &str) {
        writeln!(self.transcript, "+{} {line}", self.now.as_ns() / 1_000_000).unwrap();
    }

    pub fn at(&mut self, ms: u64) -> &mut World {
        self.now = Instant::ZERO + Duration::from_ms(ms);
        self
    }

    /// What has been written down since the last time.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.transcript)
    }
}

fn ms(at: Instant) -> u64 {
    at.as_ns() / 1_000_000
}

impl Rows for World {
    fn sent(&mut self, row: &Sent) {
        let written = row.written.map_or("not written".into(), |at| format!("written at {}", ms(at)));
        self.say(&format!("row sent {}: due {}, {written}", row.sequence, ms(row.intended)));
    }

    fn acknowledged(&mut self, row: &Acknowledged) {
        self.say(&format!("row acknowledged {}", row.sequence));
    }

    fn unsent(&mut self, row: &Unsent) {
        self.say(&format!("row unsent {}", row.sequence));
    }

    fn dropped(&mut self, row: &Dropped) {
        self.say(&format!("row dropped {}: {}", row.sequence, row.cause.as_str()));
    }

    fn received(&mut self, row: &Received) {
        let who = row.publisher.map_or("?".into(), |publisher| publisher.to_string());
        self.say(&format!("row received {}/{}", who, row.sequence));
    }

    fn event(&mut self, kind: EventKind, _: ClientNumber, took: Option<Duration>, detail: &str) {
        let took = took.map_or(String::new(), |took| format!(" after {took}"));
        self.say(format!("event {}{took} {detail}", kind.as_str()).trim_end());
    }
}

impl Surroundings for World {
    fn now(&self) -> Instant {
        self.now
    }

    fn read_clock(&mut self) -> Instant {
        self.now += self.tick;
        self.now
    }

    fn is_leaving(&self) -> bool {
        self.leaving
    }

    fn books(&mut self) -> &mut Books {
        &mut self.books
    }

    fn message(&self, _: Who, content: usize, _: u64, _: u64) -> Option<MessageFacts> {
        Some(MessageFacts { topic: content as u32, payload_bytes: MESSAGE_BYTES as u32, quality: None })
    }

    fn topic_name(&self, _: u32) -> &str {
        "t"
    }

    fn subscription_change(&self, _: Who, number: u32) -> Option<(String, bool)> {
        self.changes.get(number as usize).map(|(filter, subscribes)| ((*filter).to_owned(), *subscribes))
    }

    fn has_subscriptions(&self, _: Who, changes: u32) -> bool {
        let changes = &self.changes[..changes as usize];
        changes.iter().map(|(_, subscribes)| if *subscribes { 1 } else { -1 }).sum::<i32>() > -1
    }

    fn deliveries(&self, _: &Sent) -> u32 {
        2
    }

    fn is_turn_over(&self, offered: Offered) -> bool {
        offered.messages >= self.turn
    }

    fn offered(&mut self, _: &Sent, late: Duration) {
        self.late.push(late);
    }

    fn admitted(&mut self, row: &Sent, _: usize) {
        self.say(&format!("admitted {}", row.sequence));
    }

    fn rest(&mut self, _: Who, _: bool) {}

    fn delivered(&mut self, delivery: &Delivery, first: bool) {
        self.say(&format!("delivered {}, first {first}", delivery.row.sequence));
    }
}

impl Transport<Mqtt, Wire> for World {
    fn open(&mut self, _: Who, _: &mut Wire) -> Result<(), Loss> {
        self.say("open");
        if self.opens { Ok(()) } else { Err(Loss::broken("there is no way")) }
    }

    fn not_opened(&self, _: &Wire) -> &'static str {
        "no connection in time"
    }

    fn put(&mut self, _: Who, wire: &mut Wire, packet: Packet) {
        self.say(&format!("put {packet:?}"));
        wire.end += PACKET_BYTES;
    }

    fn put_message(
        &mut self,
        _: Who,
        wire: &mut Wire,
        Envelope { id, qos, dup }: Envelope,
        body: Body<'_, String>,
    ) -> u64 {
        let what = match body {
            Body::Own { row, .. } => format!("own {}", row.sequence),
            Body::Relayed(topic) => format!("relayed {topic}"),
        };
        self.say(&format!("put {what}: id {}, QoS {}{}", id.0, qos.level(), if dup { ", DUP" } else { "" }));
        wire.end += MESSAGE_BYTES;
        wire.end
    }

    fn end(&self, wire: &Wire) -> u64 {
        wire.end
    }

    fn written(&self, wire: &Wire) -> u64 {
        wire.written
    }

    fn write(&mut self, wire: &mut Wire) -> Result<(), Loss> {
        let taken = (wire.end - wire.written).min(self.takes);
        wire.written += taken;
        self.takes -= taken;
        Ok(())
    }

    fn close(&mut self, _: Who, wire: &mut Wire) {
        self.say("close");
        *wire = Wire::default();
    }

    fn vanish(&mut self, _: Who, wire: &mut Wire) {
        self.say("vanish");
        *wire = Wire::default();
    }

    fn rename(&mut self, _: Who, topic: &mut String, suffix: &str) -> bool {
        topic.push_str(suffix);
        topic.len() <= 20
    }
}

/// A message that has come.
pub struct Message {
    pub qos: Qos,
    pub id: u16,
    /// Publisher and sequence.
    pub origin: Option<(u32, u32)>,
    pub dup: bool,
    /// Whether it is known to come from one of the run's clients, though not from which.
    pub is_a_clients: bool,
}

impl Message {
    pub fn of(publisher: u32, sequence: u32, qos: Qos) -> Message {
        Message { qos, id: 7, origin: Some((publisher, sequence)), dup: false, is_a_clients: false }
    }
}

impl Arriving<Wire, World> for Message {
    fn qos(&self) -> Qos {
        self.qos
    }

    fn id(&self) -> PacketId {
        PacketId(self.id)
    }

    fn identify(&self, who: Who, _: &mut Wire, world: &mut World) -> Delivery {
        let row = Received {
            subscriber: who.number.0,
            publisher: self.origin.map(|(publisher, _)| publisher),
            sequence: self.origin.map_or(0, |(_, sequence)| sequence),
            qos: self.qos.level(),
            dup: self.dup,
            retained: false,
            payload_bytes: MESSAGE_BYTES as u32,
            received: world.now,
            identified: Identified::Payload,
        };
        Delivery { row, intended: None, content: None, is_a_clients: self.is_a_clients }
    }

    fn copy_to(&self, topic: &mut String) {
        topic.clear();
        topic.push('t');
    }
}

pub const OPTIONS: ClientOptions = ClientOptions {
    keep_alive: Duration::from_s(60),
    clean: false,
    max_inflight: 2,
    max_queued: 2,
    deliver_on_release: true,
    retry: None,
    ping: Ping::Sent,
    connect_timeout: Duration::from_s(5),
};

/// Clients with nothing to do.
pub fn facts() -> GroupFacts {
    GroupFacts {
        churn: None,
        reconnect: Reconnect {
            enabled: true,
            initial: Duration::from_s(1),
            maximum: Duration::from_s(3),
            jitter: Ratio::ZERO,
            connect_timeout: Duration::from_s(5),
        },
        subscribes: false,
        publications: Box::default(),
        relay: None,
        connect_over: (Duration::ZERO, 1),
    }
}

/// Clients that publish.
pub fn publishing(qos: Qos) -> GroupFacts {
    publishing_each(&[qos])
}

/// Clients with a publication of each of these.
pub fn publishing_each(levels: &[Qos]) -> GroupFacts {
    let publish = |(place, &qos)| PublishFacts {
        qos,
        retain: false,
        back_to_back: false,
        topics: (place, 1),
        publication: None,
    };
    GroupFacts { churn: None, publications: levels.iter().enumerate().map(publish).collect(), ..facts() }
}

pub fn client(facts: GroupFacts) -> TestClient {
    client_of(facts, OPTIONS)
}

pub fn client_of(facts: GroupFacts, options: ClientOptions) -> TestClient {
    Client::new(WHO, Arc::new(facts), Mqtt::new(options), Wire::default(), Seed(1), Instant::ZERO)
}

/// A client that the broker has accepted.
pub fn connected(facts: GroupFacts, world: &mut World) -> TestClient {
    let mut client = client(facts);
    client.wake(world);
    client.opened(world);
    client.flush(world);
    client.packet(world, accepted(false)).unwrap();
    client.flush(world);
    client
}

pub fn accepted(session_present: bool) -> Input {
    Input::Connack { accepted: true, session_present, receive_maximum: u16::MAX, keep_alive_s: None }
}

/// Messages due every `interval_ms` from 1 s to 2 s.
pub fn every(interval_ms: u64) -> Vec<Arrivals> {
    arrivals(Arrival::Constant { interval_ns: interval_ms * 1_000_000 })
}

pub fn arrivals(arrival: Arrival) -> Vec<Arrivals> {
    started(arrival, StartPhase::Synchronised)
}

/// Messages between 1 s and 2 s, the first of them when the phase says.
pub fn started(arrival: Arrival, start_phase: StartPhase) -> Vec<Arrivals> {
    let publish = Publish {
        topic: TopicPattern("t".into()),
        topics: 1,
        qos: 0,
        retain: false,
        properties: mqttlab_plan::MessageProperties::default(),
        payload: Payload::Fixed { bytes: MESSAGE_BYTES },
        arrival,
        start_phase,
        stages: Vec::new(),
        messages: None,
        replay: None,
    };
    let second = |s| Instant::ZERO + Duration::from_s(s);
    let time = PublishingTime { from: second(1), measured_from: second(1), until: second(2) };
    let group = Group { publications: vec![publish], ..group() };
    Arrivals::of(&group, (0, 0), Seed(5), time, &PublishingChanges::default())
}

fn group() -> Group {
    serde_json::from_value(json!({
        "name": "g", "count": 1, "host": 0, "host_step": 0, "connects_to": 0,
        "transport": { "tcp": { "nodelay": true } },
        "protocol": { "mqtt": {
            "version": "5", "client_id": "c", "keep_alive_s": 0, "clean_session": true, "session_expiry_s": 0,
            "max_inflight": 1, "max_queued": 0, "receive_maximum": 1, "deliver_on_release": true,
            "retry": null, "username": null, "password": null, "will": null,
        } },
        "reconnect": {
            "enabled": false, "initial_ns": 0, "maximum_ns": 0, "jitter": [0, 1], "connect_timeout_ns": 1,
        },
        "connect_over_ns": 0, "publish": null, "subscriptions": [], "relay": null, "late_after_ns": null,
    }))
    .unwrap()
}

pub const PACKET_BYTES: u64 = 10;
pub const MESSAGE_BYTES: u64 = 100;
