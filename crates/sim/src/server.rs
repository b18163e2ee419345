//! The broker's host: packets wait for the broker, the broker takes its time, and what it says goes to its sockets.
//!
//! ```text
//!   packet ──► inbox ──► service (per packet) ──► session machines ──► outbox (per copy) ──► socket
//! ```
//!
//! One packet is served at a time, as in a broker of one thread. Each packet that it sends is a write of its own, as
//! Mosquitto does it, so that Nagle's algorithm sees what it would see.

use std::collections::VecDeque;

use mqttlab_mqtt::broker::{Broker, BrokerOptions, ConnectionId, Input, Output, TopicId, Will};
use mqttlab_mqtt::outbox::Refill;
use mqttlab_mqtt::{Kind, Qos, Version, encode};
use mqttlab_plan::{Plan, ServiceTime, qos};
use mqttlab_units::{Dice, Duration, Instant, Seed};

use crate::connection::Side;
use crate::message;
use crate::stream::Packet;
use crate::world::{Event, World};

/// The broker, and what waits for it.
pub(crate) struct Server {
    pub(crate) broker: Broker,
    inbox: VecDeque<Request>,
    outbox: VecDeque<(Instant, Response)>,
    service: ServiceTime,
    dice: Dice,
    /// The client of each session that there is or was, by the session's number.
    pub(crate) session_clients: Vec<u32>,
    /// The connection that it has written to last.
    pub(crate) wrote_to: Option<u32>,
    /// For when it is on the agenda.
    alarm: Option<Instant>,
    /// When it has done with the request at the head of the inbox, once it has begun.
    done: Option<Instant>,
}

/// Something that a socket has for the broker. Places are used again, numbers are not.
#[derive(Clone, Copy)]
struct Request {
    place: u32,
    number: u32,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Packet(Packet),
    Closed,
}

/// Something that the broker writes.
#[derive(Clone, Copy)]
struct Response {
    place: u32,
    number: u32,
    /// A packet and its length; `None` closes the connection.
    packet: Option<(Packet, usize)>,
}

impl Server {
    pub(crate) fn new(plan: &Plan, seed: Seed) -> Server {
        let settings = &plan.broker.settings;
        let options = BrokerOptions {
            max_inflight: settings.max_inflight.min(u16::MAX.into()) as u16,
            max_queued: settings.max_queued,
            // Mosquitto's fault, and a live run's too: more are in flight than its configuration says.
            refill: Refill::ByPlace,
            ..BrokerOptions::default()
        };
        Server {
            broker: Broker::new(options),
            inbox: VecDeque::new(),
            outbox: VecDeque::new(),
            service: plan.broker.service,
            session_clients: Vec::new(),
            dice: seed.derive("broker/service").dice(),
            wrote_to: None,
            alarm: None,
            done: None,
        }
    }

    /// When it has something to do next.
    fn next_deadline(&self) -> Option<Instant> {
        let sending = self.outbox.front().map(|(at, _)| *at);
        [sending.or(self.done), self.broker.next_deadline()].into_iter().flatten().min()
    }

    /// Begins with the next request, once everything before has been sent.
    fn begin(&mut self, now: Instant) {
        if self.done.is_none() && self.outbox.is_empty() && !self.inbox.is_empty() {
            let time = self.time(self.service.per_packet);
            self.done = Some(now + time);
        }
    }

    /// A service time around its mean.
    fn time(&mut self, mean: Duration) -> Duration {
        if mean.is_zero() || self.service.jitter.is_zero() {
            return mean;
        }
        let factor = 1.0 + self.service.jitter.as_f64() * self.dice.normal();
        Duration::from_ns((mean.as_ns() as f64 * factor.max(0.0)) as u64)
    }
}

impl World {
    /// A packet has come to the broker's socket.
    pub(crate) fn request(&mut self, place: u32, packet: Packet) {
        self.ask(place, What::Packet(packet));
    }

    /// A connection has ended at the broker's socket.
    pub(crate) fn request_closed(&mut self, place: u32) {
        self.ask(place, What::Closed);
    }

    fn ask(&mut self, place: u32, what: What) {
        let connection = self.connections.get(place);
        connection.unserved += 1;
        let number = connection.number;
        self.server.inbox.push_back(Request { place, number, what });
        self.server.begin(self.now);
        self.set_server_alarm();
    }

    fn set_server_alarm(&mut self) {
        let Some(next) = self.server.next_deadline().map(|at| at.max(self.now)) else { return };
        if self.server.alarm.is_none_or(|alarm| next < alarm) {
            self.server.alarm = Some(next);
            self.agenda.add(next, Event::Broker);
        }
    }

    /// The broker's time has come.
    pub(crate) fn serve(&mut self, at: Instant) {
        if self.server.alarm != Some(at) {
            return;
        }
        self.server.alarm = None;
        loop {
            if let Some((_, response)) = self.server.outbox.pop_front_if(|(due, _)| *due <= self.now) {
                self.respond(&response);
            } else if self.server.done.is_some_and(|done| done <= self.now) {
                self.server.done = None;
                if let Some(request) = self.server.inbox.pop_front() {
                    self.attend(&request);
                }
            } else if self.server.broker.next_deadline().is_some_and(|deadline| deadline <= self.now) {
                self.server.broker.tick(self.now);
                self.gather();
            } else {
                break;
            }
            self.server.begin(self.now);
        }
        self.set_server_alarm();
    }

    fn attend(&mut self, request: &Request) {
        // The place may have been given to another connection since.
        let connection = self.connections.get(request.place);
        if connection.number != request.number {
            return;
        }
        connection.unserved -= 1;
        self.topics.introduce(&mut self.server.broker);
        match &request.what {
            What::Packet(packet) => self.attend_packet(request.place, packet),
            What::Closed => {
                self.server.broker.closed(self.now, ConnectionId(request.place));
                self.close_broker_end(request.place);
            }
        }
        self.gather();
        if self.connections.peek(request.place).unserved == 0 {
            self.read_left_in_socket(request.place);
        }
    }

    fn attend_packet(&mut self, place: u32, packet: &Packet) {
        let (now, connection, id) = (self.now, ConnectionId(place), packet.id);
        let input = match packet.kind {
            Kind::Connect => return self.attend_connect(place),
            Kind::Subscribe => {
                let filters = self.filters_of(self.connections.peek(place).client);
                let filters: Vec<(&str, Qos)> = filters.iter().map(|(name, qos)| (&**name, *qos)).collect();
                let input = Input::Subscribe { id, filters: &filters };
                return self.server.broker.handle(now, connection, input);
            }
            Kind::Publish => Input::Publish {
                topic: TopicId(packet.topic),
                message: packet.message,
                qos: packet.qos,
                id,
                dup: packet.dup,
                retain: packet.retain,
                empty: self.payload_bytes(packet.message) == 0,
            },
            Kind::Puback => Input::Puback { id },
            Kind::Pubrec => Input::Pubrec { id },
            Kind::Pubrel => Input::Pubrel { id },
            Kind::Pubcomp => Input::Pubcomp { id },
            Kind::Pingreq => Input::Pingreq,
            Kind::Disconnect => Input::Disconnect { with_will: false },
            _ => return,
        };
        self.server.broker.handle(now, connection, input);
    }

    fn attend_connect(&mut self, place: u32) {
        let number = self.connections.peek(place).client;
        let client = &self.clients[number as usize];
        let group = &self.plan.groups[client.group as usize];
        let mqtt = &group.mqtt;
        let version = self.groups[client.group as usize].version;
        let will = mqtt.will.as_ref().map(|will| Will {
            topic: TopicId(self.topics.number(&will.topic)),
            message: message::will(number),
            qos: qos(will.qos),
            retain: will.retain,
        });
        self.topics.introduce(&mut self.server.broker);
        let input = Input::Connect {
            client: &group.client_id(client.index),
            version,
            clean: mqtt.clean_session,
            keep_alive: Duration::from_s(mqtt.keep_alive_s.into()),
            session_expiry: mqtt.session_expiry(),
            receive_maximum: if mqtt.receive_maximum == 0 { u16::MAX } else { mqtt.receive_maximum },
            will,
        };
        self.server.broker.handle(self.now, ConnectionId(place), input);
        self.note_session(place, number);
    }

    /// Remembers whose session it is: numbers are used again.
    fn note_session(&mut self, place: u32, client: u32) {
        let Some(session) = self.server.broker.session_of(ConnectionId(place)) else { return };
        let clients = &mut self.server.session_clients;
        if clients.len() <= session.0 as usize {
            clients.resize(session.0 as usize + 1, client);
        }
        clients[session.0 as usize] = client;
    }

    /// Takes what the broker says into the outbox; each copy of a message takes its time.
    fn gather(&mut self) {
        let mut at = self.server.outbox.back().map_or(self.now, |(at, _)| (*at).max(self.now));
        while let Some(output) = self.server.broker.poll() {
            if matches!(output, Output::Publish { .. }) {
                at += self.server.time(self.server.service.per_copy);
            }
            if let Some(response) = self.response(&output) {
                self.server.outbox.push_back((at, response));
            }
        }
    }

    fn response(&mut self, output: &Output) -> Option<Response> {
        let (connection, packet) = match *output {
            Output::Connack { connection, session_present, receive_maximum, .. } => {
                let version = self.version_at(connection);
                // Only MQTT 5 can say it, in a property of three bytes (§3.2.2.3.3), and 65535 is not said.
                let says = version == Version::V5 && receive_maximum != u16::MAX;
                let receive_maximum = if says { receive_maximum } else { u16::MAX };
                let packet = Packet { session_present, receive_maximum, ..Packet::bare(Kind::Connack, 0) };
                (connection, Some((packet, encode::connack_len(version) + if says { 3 } else { 0 })))
            }
            Output::Suback { connection, id, ref granted } => {
                let single = encode::suback_len(self.version_at(connection));
                let length = single + granted.len().saturating_sub(1);
                (connection, Some((Packet::bare(Kind::Suback, id), length)))
            }
            Output::Unsuback { connection, id } => {
                (connection, Some((Packet::bare(Kind::Unsuback, id), encode::ACKNOWLEDGEMENT_LEN)))
            }
            Output::Publish { connection, topic, message, qos, id, dup, retain } => {
                let version = self.version_at(connection);
                let (packet, length) = self.publication(message, topic.0, qos, id, version);
                (connection, Some((Packet { dup, retain, ..packet }, length)))
            }
            Output::Puback { connection, id } => (connection, answer(Kind::Puback, id)),
            Output::Pubrec { connection, id } => (connection, answer(Kind::Pubrec, id)),
            Output::Pubrel { connection, id } => (connection, answer(Kind::Pubrel, id)),
            Output::Pubcomp { connection, id } => (connection, answer(Kind::Pubcomp, id)),
            Output::Pingresp { connection } => {
                (connection, Some((Packet::bare(Kind::Pingresp, 0), encode::BARE_LEN)))
            }
            Output::Close { connection } => (connection, None),
            Output::Dropped { session, message, cause } => {
                self.dropped_by_broker(session, message, cause);
                return None;
            }
            // Tokens say who a message is, and are never used again.
            Output::Released { .. } => return None,
        };
        let number = self.connections.peek(connection.0).number;
        Some(Response { place: connection.0, number, packet })
    }

    fn version_at(&self, connection: ConnectionId) -> Version {
        let client = self.connections.peek(connection.0).client;
        self.groups[self.clients[client as usize].group as usize].version
    }

    fn respond(&mut self, response: &Response) {
        if self.connections.peek(response.place).number != response.number {
            return;
        }
        let Some((packet, length)) = response.packet else {
            return self.close_broker_end(response.place);
        };
        self.connections.get(response.place).streams[Side::Broker as usize].append(packet, length);
        if self.write(response.place, Side::Broker) {
            self.drain(response.place, Side::Broker);
        }
        self.tell_backlog(response.place);
    }

    /// Tells the broker how much waits for a socket: it drops QoS 0 messages behind a long queue.
    pub(crate) fn tell_backlog(&mut self, place: u32) {
        let waiting = self.connections.peek(place).streams[Side::Broker as usize].packets_waiting();
        self.server.broker.set_backlog(ConnectionId(place), waiting as u32);
    }

    fn close_broker_end(&mut self, place: u32) {
        let now = self.now;
        self.connections.get(place).ends[Side::Broker as usize].close(now);
        self.drain(place, Side::Broker);
    }
}

fn answer(kind: Kind, id: u16) -> Option<(Packet, usize)> {
    Some((Packet::bare(kind, id), encode::ACKNOWLEDGEMENT_LEN))
}
