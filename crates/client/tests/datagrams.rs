//! The seams with nothing of MQTT and TCP behind them: a toy protocol over datagrams, its clients performed in simulated
//! time over a lossy link of `crates/net`, and in real time over UDP sockets.

// The shells that perform clients have what the pure crate may not have: a clock and sockets.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

mod tell;
mod world;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use mqttlab_client::{
    Arriving, Body, Books, Client, ClientNumber, Connection, Delivery, GroupFacts, GroupNumber, Loss,
    MessageFacts, Offered, PacketId, Rows, Surroundings, Transport, Who,
};
use mqttlab_evidence::{Acknowledged, EventKind, Identified, Received, Sent, Unsent};
use mqttlab_mqtt::Qos;
use mqttlab_net::{Fate, FrameName, Link, LinkSpec};
use mqttlab_units::{Bytes, Duration, Instant, Seed};
use serde_json::json;
use tell::{Datagram, Envelope, Hub, Saying, Tell};

/// What carries datagrams from clients to the hub.
trait Network {
    fn now(&self) -> Instant;
    fn send(&mut self, from: u32, datagram: Datagram);
}

/// A client's datagrams that are not sent.
#[derive(Default)]
struct Outbox {
    client: u32,
    waiting: Vec<Datagram>,
    end: u64,
    written: u64,
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

impl<N: Network> Transport<Tell, Outbox> for Around<N> {
    fn open(&mut self, _: Who, _: &mut Outbox) -> Result<(), Loss> {
        Ok(())
    }
    fn not_opened(&self, _: &Outbox) -> &'static str {
        "no socket in time"
    }
    fn put(&mut self, _: Who, outbox: &mut Outbox, datagram: Datagram) {
        outbox.waiting.push(datagram);
        outbox.end += 1;
    }
    fn put_message(
        &mut self,
        who: Who,
        outbox: &mut Outbox,
        Envelope { id, qos }: Envelope,
        body: Body<'_, ()>,
    ) -> u64 {
        let Body::Own(&Sent { publisher, sequence, .. }) = body else { return outbox.end };
        self.put(who, outbox, Datagram::Say(Saying { id, qos, publisher, sequence }));
        outbox.end
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
        *outbox = Outbox { client: outbox.client, ..Outbox::default() };
    }
    fn rename(&mut self, _: Who, _: &mut (), _: &str) -> bool {
        false
    }
}

impl<N> Arriving<Outbox, Around<N>> for Saying {
    fn qos(&self) -> Qos {
        self.qos
    }
    fn id(&self) -> PacketId {
        PacketId(self.id)
    }
    fn identify(&self, who: Who, _: &mut Outbox, around: &mut Around<N>) -> Delivery {
        let row = Received {
            subscriber: who.number.0,
            publisher: Some(self.publisher),
            sequence: self.sequence,
            qos: self.qos.level(),
            dup: false,
            retained: false,
            payload_bytes: 100,
            received: around.now,
            identified: Identified::Payload,
        };
        Delivery { row, intended: None, is_a_clients: true }
    }
    fn copy_to(&self, (): &mut ()) {}
}

type Talker = Client<Tell, Outbox>;

/// One client that publishes every 100 ms from 1 s to 2 s, and one that hears it.
fn talkers() -> [Talker; 2] {
    let client = |number, facts: GroupFacts| {
        let who = Who { number: ClientNumber(number), group: GroupNumber(number), index: 0 };
        let outbox = Outbox { client: number, ..Outbox::default() };
        Client::new(who, Arc::new(facts), Tell::default(), outbox, Seed(1), Instant::ZERO)
    };
    [client(0, world::publishing(Qos::AtLeastOnce)), client(1, world::facts())]
}

fn begin<N: Network>(around: &mut Around<N>, talkers: &mut [Talker; 2]) {
    talkers[0].begin(around, world::every(100));
}

/// Gives a client its turn: datagrams need no opening.
fn wake<N: Network>(around: &mut Around<N>, talker: &mut Talker) {
    talker.wake(around);
    if talker.is_opening() {
        talker.opened(around);
    }
    talker.flush(around);
}

fn hear<N: Network>(around: &mut Around<N>, talker: &mut Talker, datagram: Datagram) {
    let outcome = match datagram {
        Datagram::Say(saying) => talker.message(around, &saying),
        _ => talker.packet(around, datagram),
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
    hub: Hub,
    under_way: BTreeMap<(Instant, u64), Hop>,
    sent: u64,
    lost: u64,
}

enum Hop {
    ToHub(u32, Datagram),
    ToClient(u32, Datagram),
}

impl Network for Simulated {
    fn now(&self) -> Instant {
        self.now
    }
    fn send(&mut self, from: u32, datagram: Datagram) {
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
    let network = Simulated {
        now: Instant::ZERO,
        up: lossy_link(),
        hub: Hub::default(),
        under_way: BTreeMap::new(),
        sent: 0,
        lost: 0,
    };
    let (mut around, mut talkers) = (Around::on(network), talkers());
    begin(&mut around, &mut talkers);
    while !is_done(&around) {
        let deadlines = talkers.iter().filter_map(|talker| talker.next_deadline(&around));
        let arrival = around.network.under_way.keys().next().map(|(at, _)| *at);
        let next = deadlines.chain(arrival).min().expect("something is left to happen");
        around.network.now = next.max(around.network.now);
        let now = around.read_clock();
        assert!(now < Instant::ZERO + Duration::from_s(10), "it does not end");
        match around.network.under_way.first_entry().filter(|entry| entry.key().0 <= now) {
            Some(entry) => match entry.remove() {
                Hop::ToHub(from, datagram) => {
                    for (to, answer) in around.network.hub.handle(from, datagram) {
                        around.network.sent += 1;
                        let arrives = (now + Duration::from_ms(5), around.network.sent);
                        around.network.under_way.insert(arrives, Hop::ToClient(to, answer));
                    }
                }
                Hop::ToClient(to, datagram) => hear(&mut around, &mut talkers[to as usize], datagram),
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
    fn send(&mut self, from: u32, datagram: Datagram) {
        self.clients[from as usize].send(&encode(datagram)).unwrap();
    }
}

fn encode(datagram: Datagram) -> Vec<u8> {
    let (kind, id) = match datagram {
        Datagram::Hello => (0, 0),
        Datagram::Welcome => (1, 0),
        Datagram::Bye => (2, 0),
        Datagram::Heard(id) => (3, id),
        Datagram::Say(saying) => (4 + saying.qos.level(), saying.id),
    };
    let mut bytes = vec![kind];
    bytes.extend(id.to_be_bytes());
    if let Datagram::Say(Saying { publisher, sequence, .. }) = datagram {
        bytes.extend(publisher.to_be_bytes().into_iter().chain(sequence.to_be_bytes()));
    }
    bytes
}

fn decode(bytes: &[u8]) -> Datagram {
    let id = u16::from_be_bytes([bytes[1], bytes[2]]);
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    match bytes[0] {
        0 => Datagram::Hello,
        1 => Datagram::Welcome,
        2 => Datagram::Bye,
        3 => Datagram::Heard(id),
        kind => Datagram::Say(Saying {
            id,
            qos: Qos::from_level(kind - 4).unwrap(),
            publisher: number(3),
            sequence: number(7),
        }),
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

#[test]
fn live_over_udp_every_message_is_delivered_once() {
    let (clients, hub_socket, mut hub) = ([socket(), socket()], socket(), Hub::default());
    let address = hub_socket.local_addr().unwrap();
    clients.iter().for_each(|client| client.connect(address).unwrap());
    let addresses: [SocketAddr; 2] = [0, 1].map(|client: usize| clients[client].local_addr().unwrap());
    let network = Sockets { began: std::time::Instant::now(), clients, hub: hub_socket };
    let (mut around, mut talkers) = (Around::on(network), talkers());
    begin(&mut around, &mut talkers);
    let mut buffer = [0; 64];
    while !is_done(&around) {
        let now = around.read_clock();
        assert!(now < Instant::ZERO + Duration::from_s(20), "it does not end: {:?}", around.books);
        while let Ok((count, from)) = around.network.hub.recv_from(&mut buffer) {
            let from = addresses.iter().position(|address| *address == from).unwrap() as u32;
            for (to, answer) in hub.handle(from, decode(&buffer[..count])) {
                around.network.hub.send_to(&encode(answer), addresses[to as usize]).unwrap();
            }
        }
        for (number, talker) in talkers.iter_mut().enumerate() {
            while let Ok(count) = around.network.clients[number].recv(&mut buffer) {
                around.read_clock();
                hear(&mut around, talker, decode(&buffer[..count]));
            }
            if talker.next_deadline(&around).is_some_and(|deadline| deadline <= around.now()) {
                wake(&mut around, talker);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!((around.books.connected, around.books.ready, around.acknowledged), (2, 2, 10));
}
