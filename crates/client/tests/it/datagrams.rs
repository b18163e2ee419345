//! The seams with nothing of MQTT and TCP behind them: every protocol around a hub, its clients performed in simulated time over a
//! lossy link of `crates/net`, and in real time over UDP sockets. Transport and surroundings are this test's own: those of
//! simulator and live runs are two others.

// The shells that perform clients have what the pure crate may not have: a clock and sockets.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use mqttlab_client::protocol::{AnySession, Envelope, Packet, Received as Heard};
use mqttlab_client::{
    Arriving, Body, Books, Client, ClientNumber, Connection, Delivery, GroupFacts, GroupNumber, Loss,
    MessageFacts, Offered, PacketId, Rows, Surroundings, Transport, Who,
};
use mqttlab_evidence::{Acknowledged, EventKind, Identified, Received, Sent, Unsent};
use mqttlab_mqtt::Qos;
use mqttlab_net::{Fate, FrameName, Link, LinkSpec};
use mqttlab_protocol::{HUB_PROTOCOLS, Head, Hub, HubProtocol, Member, Message, MessageHead, Of, Settings};
use mqttlab_units::{Bytes, Duration, Instant, Seed};
use serde_json::json;

/// What carries datagrams from clients to the hub.
trait Network {
    fn now(&self) -> Instant;
    fn send(&mut self, from: u32, datagram: Vec<u8>);
}

/// A client's datagrams that are not sent.
struct Outbox {
    protocol: &'static dyn HubProtocol,
    client: u32,
    waiting: Vec<Vec<u8>>,
    end: u64,
    written: u64,
}

impl Outbox {
    fn of(protocol: &'static dyn HubProtocol, client: u32) -> Outbox {
        Outbox { protocol, client, waiting: Vec::new(), end: 0, written: 0 }
    }

    fn put(&mut self, datagram: Vec<u8>) -> u64 {
        self.waiting.push(datagram);
        self.end += 1;
        self.end
    }
}

impl Connection for Outbox {
    /// Nobody relays here.
    type Relayed = ();
}

/// A client's surroundings on any network.
struct Around<N> {
    network: N,
    now: Instant,
    leaving: bool,
    books: Books,
    acknowledged: u32,
}

impl<N> Around<N> {
    fn on(network: N) -> Around<N> {
        Around { network, now: Instant::ZERO, leaving: false, books: Books::default(), acknowledged: 0 }
    }
}

impl<N> Rows for Around<N> {
    fn sent(&mut self, _: &Sent) {}
    fn acknowledged(&mut self, _: &Acknowledged) {
        self.acknowledged += 1;
    }
    fn unsent(&mut self, _: &Unsent) {}
    fn received(&mut self, _: &Received) {}
    fn event(&mut self, _: EventKind, _: ClientNumber, _: Option<Duration>, _: &str) {}
}

impl<N: Network> Surroundings for Around<N> {
    fn now(&self) -> Instant {
        self.now
    }
    fn read_clock(&mut self) -> Instant {
        self.now = self.network.now();
        self.now
    }
    fn is_leaving(&self) -> bool {
        self.leaving
    }
    fn books(&mut self) -> &mut Books {
        &mut self.books
    }
    fn message(&self, _: Who, _: u64) -> Option<MessageFacts> {
        Some(MessageFacts { topic: 0, payload_bytes: 100 })
    }
    fn deliveries(&self, _: u32) -> u32 {
        1
    }
    fn is_turn_over(&self, _: Offered) -> bool {
        false
    }
    fn offered(&mut self, _: &Sent, _: Duration) {}
    fn admitted(&mut self, _: &Sent) {}
    fn rest(&mut self, _: Who, _: bool) {}

    fn delivered(&mut self, _: &Delivery, _: bool) {}
}

impl<N: Network> Transport<AnySession, Outbox> for Around<N> {
    fn open(&mut self, _: Who, _: &mut Outbox) -> Result<(), Loss> {
        Ok(())
    }
    fn not_opened(&self, _: &Outbox) -> &'static str {
        "no socket in time"
    }
    fn put(&mut self, _: Who, outbox: &mut Outbox, packet: Packet) {
        let Packet::Hub(head) = packet else { unreachable!("nothing else is spoken here") };
        outbox.put(head);
    }
    fn put_message(&mut self, _: Who, outbox: &mut Outbox, envelope: Envelope, body: Body<'_, ()>) -> u64 {
        let (Envelope::Hub(envelope), Body::Own(&Sent { publisher, sequence, .. })) = (envelope, body) else {
            unreachable!("nothing else is spoken here, and nothing is relayed")
        };
        let mut datagram = Vec::new();
        let head = MessageHead { envelope, topic: TOPIC, payload_bytes: PAYLOAD_BYTES };
        outbox.protocol.write(&head, &mut datagram);
        datagram.extend(publisher.to_be_bytes().into_iter().chain(sequence.to_be_bytes()));
        outbox.put(datagram)
    }
    fn end(&self, outbox: &Outbox) -> u64 {
        outbox.end
    }
    fn written(&self, outbox: &Outbox) -> u64 {
        outbox.written
    }
    /// A datagram leaves whole, or not at all.
    fn write(&mut self, outbox: &mut Outbox) -> Result<(), Loss> {
        for datagram in outbox.waiting.drain(..) {
            self.network.send(outbox.client, datagram);
            outbox.written += 1;
        }
        Ok(())
    }
    fn close(&mut self, _: Who, outbox: &mut Outbox) {
        *outbox = Outbox::of(outbox.protocol, outbox.client);
    }
    fn rename(&mut self, _: Who, _: &mut (), _: &str) -> bool {
        false
    }
}

/// A message that has come.
struct Said<'a>(Head<'a>, &'a [u8]);

impl<N> Arriving<Outbox, Around<N>> for Said<'_> {
    fn qos(&self) -> Qos {
        self.0.qos
    }
    fn id(&self) -> PacketId {
        PacketId(self.0.id)
    }
    fn identify(&self, who: Who, _: &mut Outbox, around: &mut Around<N>) -> Delivery {
        let number = |at: usize| u32::from_be_bytes(self.1[at..at + 4].try_into().unwrap());
        let row = Received {
            subscriber: who.number.0,
            publisher: Some(number(0)),
            sequence: number(4),
            qos: self.0.qos.level(),
            dup: false,
            retained: false,
            payload_bytes: self.1.len() as u32,
            received: around.now,
            identified: Identified::Payload,
        };
        Delivery { row, intended: None, is_a_clients: true }
    }
    fn copy_to(&self, (): &mut ()) {}
}

type Talker = Client<AnySession, Outbox>;

/// One client that publishes every 100 ms from 1 s to 2 s, and one that hears it.
fn talkers(protocol: &'static dyn HubProtocol) -> [Talker; 2] {
    let client = |number: u32, filters: Vec<String>, facts: GroupFacts| {
        let who = Who { number: ClientNumber(number), group: GroupNumber(number), index: 0 };
        let settings = Settings::new(protocol.settings(), Of::Client, &BTreeMap::new()).unwrap();
        let session = protocol.client(Member { client_id: format!("client-{number}"), filters, settings });
        let outbox = Outbox::of(protocol, number);
        Client::new(who, Arc::new(facts), AnySession::Hub(session), outbox, Seed(1), Instant::ZERO)
    };
    let publishing = crate::world::publishing(protocol.qos_max().min(Qos::AtLeastOnce));
    [client(0, vec![], publishing), client(1, vec!["+/b".into()], crate::world::facts())]
}

fn hub(protocol: &'static dyn HubProtocol) -> Box<dyn Hub> {
    protocol.hub(&Settings::new(protocol.settings(), Of::Hub, &BTreeMap::new()).unwrap())
}

/// Lets the hub hear a datagram; what it sends to whom.
fn told(
    protocol: &'static dyn HubProtocol,
    hub: &mut dyn Hub,
    now: Instant,
    (from, datagram): (u32, &[u8]),
) -> Vec<(u32, Vec<u8>)> {
    let head = protocol.read(datagram).unwrap();
    let message = head.kind.is_message().then(|| Message::Payload(Arc::from(&datagram[head.bytes..])));
    hub.handle(now, from, &head, message.as_ref());
    let mut answers = Vec::new();
    while let Some(mut sent) = hub.poll() {
        if let Some(Message::Payload(payload)) = sent.message {
            sent.head.extend_from_slice(&payload);
        }
        answers.push((sent.to, sent.head));
    }
    answers
}

fn begin<N: Network>(around: &mut Around<N>, talkers: &mut [Talker; 2]) {
    talkers[0].begin(around, crate::world::every(100));
}

/// Gives a client its turn: datagrams need no opening.
fn wake<N: Network>(around: &mut Around<N>, talker: &mut Talker) {
    talker.wake(around);
    if talker.is_opening() {
        talker.opened(around);
    }
    talker.flush(around);
}

fn hear<N: Network>(around: &mut Around<N>, talker: &mut Talker, datagram: &[u8]) {
    let head = talker.connection().protocol.read(datagram).unwrap();
    let outcome = match head.kind.is_message() {
        true => talker.message(around, &Said(head, &datagram[head.bytes..])),
        false => talker.packet(around, Heard::Hub(datagram.into())),
    };
    outcome.unwrap();
    talker.flush(around);
}

fn is_done<N>(around: &Around<N>) -> bool {
    let books = &around.books;
    books.offered == 10 && books.delivered == 10 && books.unacknowledged == 0
}

/// Simulated: a link that loses, and what is under way by the time of its arrival.
struct Simulated {
    now: Instant,
    up: Link,
    under_way: BTreeMap<(Instant, u64), Hop>,
    sent: u64,
    lost: u64,
}

enum Hop {
    ToHub(u32, Vec<u8>),
    ToClient(u32, Vec<u8>),
}

impl Network for Simulated {
    fn now(&self) -> Instant {
        self.now
    }
    fn send(&mut self, from: u32, datagram: Vec<u8>) {
        self.sent += 1;
        match self.up.offer(self.now, Bytes(128), FrameName::nth(self.sent)) {
            Fate::Delivered(delivery) => {
                self.under_way.insert((delivery.at, self.sent), Hop::ToHub(from, datagram));
            }
            Fate::Dropped { .. } => self.lost += 1,
        }
    }
}

fn lossy_link() -> Link {
    let spec: LinkSpec = serde_json::from_value(json!({
        "name": "up", "rate_bit_s": 1_000_000, "overhead_bytes": 0, "minimum_frame_bytes": 0,
        "queue": { "limit_packets": null, "limit_bytes": null, "counts_delay_line": false },
        "delay": { "law": "constant", "mean_ns": 5_000_000, "jitter_ns": 0, "correlation": [0, 1], "keep_order": true },
        "loss": { "kind": "bernoulli", "probability": [1, 4] }, "loss_at": "entry",
        "duplication": [0, 1], "corruption": [0, 1], "reordering": { "probability": [0, 1], "gap": 1 },
    }))
    .unwrap();
    Link::new(spec, Seed(1))
}

#[test]
fn simulated_over_a_lossy_link_every_message_is_delivered_once() {
    HUB_PROTOCOLS.iter().for_each(|protocol| simulated(*protocol));
}

fn simulated(protocol: &'static dyn HubProtocol) {
    let network =
        Simulated { now: Instant::ZERO, up: lossy_link(), under_way: BTreeMap::new(), sent: 0, lost: 0 };
    let (mut around, mut talkers, mut hub) = (Around::on(network), talkers(protocol), hub(protocol));
    begin(&mut around, &mut talkers);
    while !is_done(&around) {
        let deadlines = talkers.iter().filter_map(|talker| talker.next_deadline(&around));
        let arrival = around.network.under_way.keys().next().map(|(at, _)| *at);
        let next = deadlines.chain(arrival).min().expect("something is left to happen");
        around.network.now = next.max(around.network.now);
        let now = around.read_clock();
        assert!(now < Instant::ZERO + Duration::from_s(60), "it does not end");
        match around.network.under_way.first_entry().filter(|entry| entry.key().0 <= now) {
            Some(entry) => match entry.remove() {
                Hop::ToHub(from, datagram) => {
                    for (to, answer) in told(protocol, &mut *hub, now, (from, &datagram)) {
                        around.network.sent += 1;
                        let arrives = (now + Duration::from_ms(5), around.network.sent);
                        around.network.under_way.insert(arrives, Hop::ToClient(to, answer));
                    }
                }
                Hop::ToClient(to, datagram) => hear(&mut around, &mut talkers[to as usize], &datagram),
            },
            None => talkers.iter_mut().for_each(|talker| wake(&mut around, talker)),
        }
    }
    assert!(around.network.lost > 0, "the link lost nothing");
    assert_eq!((around.books.connected, around.books.ready, around.acknowledged), (2, 2, 10));
}

/// Live: a socket of each client, and the hub's.
struct Sockets {
    began: std::time::Instant,
    clients: [UdpSocket; 2],
    hub: UdpSocket,
}

impl Network for Sockets {
    fn now(&self) -> Instant {
        Instant::from_ns(self.began.elapsed().as_nanos() as u64)
    }
    fn send(&mut self, from: u32, datagram: Vec<u8>) {
        self.clients[from as usize].send(&datagram).unwrap();
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

#[test]
fn live_over_udp_every_message_is_delivered_once() {
    HUB_PROTOCOLS.iter().for_each(|protocol| live(*protocol));
}

fn live(protocol: &'static dyn HubProtocol) {
    let (clients, hub_socket, mut hub) = ([socket(), socket()], socket(), hub(protocol));
    let address = hub_socket.local_addr().unwrap();
    clients.iter().for_each(|client| client.connect(address).unwrap());
    let addresses: [SocketAddr; 2] = [0, 1].map(|client: usize| clients[client].local_addr().unwrap());
    let network = Sockets { began: std::time::Instant::now(), clients, hub: hub_socket };
    let (mut around, mut talkers) = (Around::on(network), talkers(protocol));
    begin(&mut around, &mut talkers);
    let mut buffer = [0; 256];
    while !is_done(&around) {
        let now = around.read_clock();
        assert!(now < Instant::ZERO + Duration::from_s(20), "it does not end: {:?}", around.books);
        while let Ok((count, from)) = around.network.hub.recv_from(&mut buffer) {
            let from = addresses.iter().position(|address| *address == from).unwrap() as u32;
            for (to, answer) in told(protocol, &mut *hub, now, (from, &buffer[..count])) {
                around.network.hub.send_to(&answer, addresses[to as usize]).unwrap();
            }
        }
        for (number, talker) in talkers.iter_mut().enumerate() {
            while let Ok(count) = around.network.clients[number].recv(&mut buffer) {
                around.read_clock();
                hear(&mut around, talker, &buffer[..count]);
            }
            if talker.next_deadline(&around).is_some_and(|deadline| deadline <= around.now()) {
                wake(&mut around, talker);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!((around.books.connected, around.books.ready, around.acknowledged), (2, 2, 10));
}

const TOPIC: &str = "a/b";
/// Publisher and number.
const PAYLOAD_BYTES: u32 = 8;
