//! Messages of clients that are programs, as the emulator's frames show them.
//!
//! ```text
//!   FrameWitness ──packet, when it had arrived──► ProgramReader ──► Matcher: published beside delivered
//!                                                      └──► events: who connected and subscribed, and when
//! ```
//!
//! A program keeps no books that the engine could read. What it publishes is sent when the first byte of its PUBLISH comes to the
//! first link, and what it receives is received when the last byte comes to its host: latencies lack the program's own time on
//! both sides. When it meant to publish is not known, nor what it gave up before it wrote.
//!
//! Messages of the engine's own clients are passed over where they stay among themselves; where a program receives one, the
//! message says who it is (`identity`). What own clients receive of programs is found here, too.
//!
//! What it does not know: connections that ended without a DISCONNECT, until the client comes back; messages of own clients too
//! small to say who they are.

use std::collections::HashMap;

use mqttlab_capture::mqtt::{CapturedPacket, Kind};
use mqttlab_capture::{JoinedPacket, PacketReader, ServerDirection};
use mqttlab_mqtt::topic::matches;
use mqttlab_mqtt::{Version, reason};
use mqttlab_recording::{
    ChangedReceiver, Event, EventKind, Identified, Layout, PositionSample, Received, SeenRow, Sent, Session,
    Topic, identity,
};
use mqttlab_units::{Duration, Instant};

use crate::body;
use crate::matcher::{MatchedRow, Matcher};
use crate::message::SeenPublish;
use crate::positions;

/// Follows the clients of a live recording that are programs. Without any it finds nothing.
#[derive(Default)]
pub struct ProgramReader {
    /// Whether a client is a program, by number.
    is_program: Vec<bool>,
    matcher: Option<Matcher>,
    connections: HashMap<u32, ProgramConnection>,
    /// The connection that a client uses, or used last.
    current: HashMap<u32, u32>,
    /// SUBSCRIBEs without an answer, by client and packet identifier: when they were sent, and their filters.
    subscribing: HashMap<(u32, u16), (Instant, Vec<String>)>,
    /// What programs were granted.
    granted: Vec<(u32, String)>,
    expiry: HashMap<u32, Option<Duration>>,
    /// What programs have received of own clients.
    received: Vec<Received>,
    events: Vec<(Event, String)>,
    /// Where programs have said that they are.
    positions: Vec<PositionSample>,
}

/// A connection of a client's.
struct ProgramConnection {
    asked: Instant,
    said_goodbye: bool,
}

impl ProgramReader {
    /// A reader that knows nobody.
    pub fn new() -> ProgramReader {
        ProgramReader::default()
    }

    fn is_program(&self, client: u32) -> bool {
        self.is_program.get(client as usize).copied().unwrap_or_default()
    }

    fn push_event(&mut self, at: Instant, kind: EventKind, client: u32, took: Option<Duration>, words: &str) {
        if self.is_program(client) {
            self.events.push((Event { at, kind, client: Some(client), took }, words.to_owned()));
        }
    }

    fn publish(&mut self, seen: &JoinedPacket, client: u32) {
        let Some(matcher) = &mut self.matcher else { return };
        let JoinedPacket { packet, connection, direction, .. } = seen;
        let Some(topic) = &packet.topic else { return };
        let is_program = |client: u32| self.is_program.get(client as usize).copied().unwrap_or_default();
        let first = packet.first.time;
        let publish =
            SeenPublish::of(packet, client, *connection, topic, [first, seen.complete.unwrap_or(first)]);
        if *direction == ServerDirection::ToServer {
            if is_program(client) {
                let publisher = matcher.published(&publish).publisher;
                let at = packet.first.time;
                self.positions.extend(positions::position_of(packet, *direction, [client, publisher], at));
            }
            return;
        }
        // What did not arrive is not a delivery.
        let Some(complete) = seen.complete else { return };
        let clients = self.is_program.len() as u32;
        let own = identity::find(publish.head).filter(|identity| identity.publisher < clients);
        match own.filter(|identity| !is_program(identity.publisher)) {
            Some(identity) if is_program(client) => self.received.push(Received {
                subscriber: client,
                publisher: Some(identity.publisher),
                sequence: identity.sequence,
                qos: packet.qos,
                dup: packet.dup,
                retained: packet.retain,
                payload_bytes: packet.lengths.payload,
                received: complete,
                identified: Identified::Payload,
            }),
            // Among themselves; their own books have it.
            Some(_) => {}
            None => {
                matcher.delivered(&publish);
            }
        }
    }

    fn connect(&mut self, seen: &JoinedPacket, client: u32) {
        let Some(connect) = &seen.packet.connect else { return };
        let at = seen.packet.first.time;
        if let Some(matcher) = &mut self.matcher {
            matcher.subscriptions.connect(client, connect.is_bridge && connect.level < 5);
            matcher.wills.announce(client, seen.connection, connect, at);
        }
        let before =
            self.current.insert(client, seen.connection).and_then(|number| self.connections.get(&number));
        if before.is_some_and(|before| !before.said_goodbye) {
            self.push_event(
                at,
                EventKind::Disconnect,
                client,
                None,
                "it had connected before, and came again",
            );
            self.push_event(at, EventKind::Reconnect, client, None, "");
        }
        self.connections.insert(seen.connection, ProgramConnection { asked: at, said_goodbye: false });
        let expiry = match connect.session_expiry_s {
            Some(u32::MAX) => None,
            Some(expiry_s) => Some(Duration::from_s(expiry_s.into())),
            None => (connect.flags & CLEAN != 0).then_some(Duration::ZERO),
        };
        self.expiry.insert(client, expiry);
        self.push_event(at, EventKind::Connect, client, None, &connect.client_id);
    }

    fn connack(&mut self, seen: &JoinedPacket, client: u32, at: Instant) {
        let (Some(matcher), Some(connection)) = (&mut self.matcher, self.connections.get(&seen.connection))
        else {
            return;
        };
        let (body, asked) = (bytes(&seen.packet), connection.asked);
        match seen.packet.reason {
            Some(0) => {
                let present = body::session_present(body);
                if !present {
                    matcher.forget(client, Some(seen.connection));
                    matcher.subscriptions.forget(client, asked, asked);
                }
                let words = if present { "session present" } else { "" };
                self.push_event(at, EventKind::Connack, client, at.checked_since(asked), words);
            }
            Some(code) => {
                let code = reason::in_words(Kind::Connack, Version::from_level(seen.packet.level), code);
                let words = format!("CONNECT: {code}");
                self.push_event(at, EventKind::Refused, client, None, &words);
            }
            None => {}
        }
    }

    fn subscribe(&mut self, packet: &CapturedPacket, client: u32) {
        let Some(matcher) = &mut self.matcher else { return };
        let at = packet.first.time;
        let asked = body::subscriptions(bytes(packet), packet.level);
        asked.iter().for_each(|(filter, options)| matcher.subscriptions.ask(client, filter, *options, at));
        let filters: Vec<String> = asked.into_iter().map(|(filter, _)| filter).collect();
        let words = filters.join(" ");
        if let Some(id) = packet.id {
            self.subscribing.insert((client, id), (at, filters));
        }
        self.push_event(at, EventKind::Subscribe, client, None, &words);
    }

    fn suback(&mut self, packet: &CapturedPacket, client: u32, at: Instant) {
        let asked = packet.id.and_then(|id| self.subscribing.remove(&(client, id)));
        let (Some(matcher), Some((asked, filters))) = (&mut self.matcher, asked) else { return };
        let codes = reason::codes(bytes(packet), Version::from_level(packet.level));
        for (filter, code) in filters.into_iter().zip(codes.iter().copied().chain(std::iter::repeat(0))) {
            if code < reason::REFUSED {
                matcher.subscriptions.grant(client, &filter, at);
                self.granted.push((client, filter));
            } else {
                matcher.subscriptions.unsubscribe(client, &filter, at);
            }
        }
        self.push_event(at, EventKind::Suback, client, at.checked_since(asked), "");
    }

    /// Adds programs to the receivers of own clients' topics that they have subscribed to.
    fn add_to_receivers(&self, layout: &mut Layout) {
        for number in 0..layout.topics.len() {
            let name = &layout.topics[number].name;
            let subscribed = self
                .granted
                .iter()
                .filter(|(client, filter)| self.is_program(*client) && matches(filter, name));
            let mut receivers: Vec<u32> = subscribed.map(|(client, _)| *client).collect();
            if !receivers.is_empty() {
                receivers.extend_from_slice(layout.subscribers_of(number as u32));
                receivers.sort_unstable();
                receivers.dedup();
                layout.topics[number].receivers = layout.receivers.len() as u32;
                layout.receivers.push(receivers);
            }
        }
    }
}

impl PacketReader for ProgramReader {
    fn begin(&mut self, layout: &Layout) {
        self.is_program = layout.clients.iter().map(|client| client.is_program).collect();
        // At QoS 2 a message counts as delivered at its PUBREL, as programs of the usual libraries have it.
        self.matcher = self.is_program.contains(&true).then(|| Matcher::new(true));
    }

    fn packet(&mut self, seen: &JoinedPacket, client: Option<u32>) {
        let (Some(client), true) = (client, self.matcher.is_some()) else { return };
        let packet = &seen.packet;
        let Some(kind) = packet.kind.mqtt() else { return };
        if kind == Kind::Publish {
            return self.publish(seen, client);
        }
        let Some(at) = seen.complete else { return };
        match (kind, seen.direction) {
            (Kind::Connect, ServerDirection::ToServer) => return self.connect(seen, client),
            (Kind::Connack, ServerDirection::FromServer) => return self.connack(seen, client, at),
            (Kind::Subscribe, ServerDirection::ToServer) => return self.subscribe(packet, client),
            (Kind::Suback, ServerDirection::FromServer) => return self.suback(packet, client, at),
            (Kind::Disconnect, ServerDirection::ToServer) => {
                if let Some(connection) = self.connections.get_mut(&seen.connection) {
                    connection.said_goodbye = true;
                }
                // The client leaves when it says so, not when the server has heard it.
                return self.push_event(packet.first.time, EventKind::Close, client, None, "");
            }
            _ => {}
        }
        let (Some(matcher), Some(id)) = (&mut self.matcher, packet.id) else { return };
        match (kind, seen.direction) {
            (Kind::Puback | Kind::Pubrec | Kind::Pubcomp, direction) => {
                let refusal = match direction {
                    ServerDirection::FromServer => matcher.answered(client, packet, at),
                    ServerDirection::ToServer => matcher.delivery_answered(client, packet),
                };
                if let Some(words) = refusal {
                    self.push_event(at, EventKind::Refused, client, None, &words);
                }
            }
            (Kind::Pubrel, ServerDirection::FromServer) => matcher.released(client, id, at),
            (Kind::Pubrel, ServerDirection::ToServer) => matcher.released_by(client, id, at),
            (Kind::Unsubscribe, ServerDirection::ToServer) => {
                for filter in body::filters(bytes(packet), packet.level) {
                    matcher.subscriptions.unsubscribe(client, &filter, at);
                }
            }
            _ => {}
        }
    }

    fn messages(&mut self, layout: &mut Layout, emit: &mut dyn FnMut(SeenRow<'_>)) {
        let Some(mut matcher) = self.matcher.take() else { return };
        self.add_to_receivers(layout);
        let first_topic = layout.topics.len() as u32;
        matcher.finish();
        while let Some(row) = matcher.poll() {
            match row {
                MatchedRow::Sent(row) => emit(SeenRow::Sent(&Sent { topic: first_topic + row.topic, ..row })),
                MatchedRow::Acknowledged(row) => emit(SeenRow::Acknowledged(&row)),
                MatchedRow::Received(row) if row.publisher.is_some() || self.is_foreign(&row) => {
                    emit(SeenRow::Received(&row));
                }
                MatchedRow::Received(_) => {}
                MatchedRow::Dropped(row) => emit(SeenRow::Dropped(&row)),
            }
        }
        self.received.iter().for_each(|row| emit(SeenRow::Received(row)));
        self.events.iter().for_each(|(event, words)| emit(SeenRow::Event(event, words)));
        self.positions.iter().for_each(|row| emit(SeenRow::Position(row)));
        let options = matcher.subscriptions.options();
        layout.as_published.extend(options.as_published());
        let own = options.own_receivers().into_iter();
        layout.own_receivers.extend(own.map(|own| ChangedReceiver { topic: first_topic + own.topic, ..own }));
        layout.own_receivers.sort_unstable_by_key(|own| (own.client, own.topic));
        let (topics, receivers) = matcher.subscriptions.into_layout(&matcher.servers);
        let first_set = layout.receivers.len() as u32;
        layout.topics.extend(
            // Who shares what is the plan's to say.
            topics.into_iter().map(|topic| Topic {
                receivers: first_set + topic.receivers,
                shares: 0,
                ..topic
            }),
        );
        layout.receivers.extend(receivers);
        for (number, client) in
            layout.clients.iter_mut().enumerate().filter(|(number, _)| self.is_program[*number])
        {
            let expiry = self.expiry.get(&(number as u32)).copied().unwrap_or(Some(Duration::ZERO));
            client.session = Some(Session { expiry_ns: expiry.map(|expiry| expiry.as_ns()) });
        }
    }
}

impl ProgramReader {
    /// Whether a delivery that nothing traces is nobody's. What is small may be an own client's, told by its order.
    fn is_foreign(&self, row: &Received) -> bool {
        self.is_program(row.subscriber) || row.payload_bytes as usize >= identity::BYTES_MIN
    }
}

fn bytes(packet: &CapturedPacket) -> &[u8] {
    packet.body.as_deref().unwrap_or_default()
}

/// Clean Session, or Clean Start (MQTT 5 §3.1.2.4).
const CLEAN: u8 = 2;
