//! Packets on their way in: read from the socket, decoded, handed to their client.

use std::io;
use std::os::fd::AsFd;

use mqttlab_client::mqtt;
use mqttlab_client::protocol::{AnySession, Received as Said};
use mqttlab_client::{Arriving, Delivery, Loss, PacketId, State, Surroundings, Who};
use mqttlab_mqtt::client::Input;
use mqttlab_mqtt::packet::{self, Packet, Publish};
use mqttlab_mqtt::terms::ServerTerms;
use mqttlab_mqtt::{Kind, Qos, Version, reason};
use mqttlab_recording::identity;
use mqttlab_recording::{EventKind, Identified, Received};
use mqttlab_system::poller::Ready;
use mqttlab_system::sockets;
use mqttlab_units::Instant;

use super::Client;
use super::connection::{ClientConnection, RelayedBytes};
use super::own_packets;
use super::packet_stream::RawPacket;
use super::poll_pause;
use super::turn::ClientTurn;

/// A PUBLISH that has just come, in the buffer that it was read into.
struct ArrivingPublish<'a> {
    publish: Publish<'a>,
    /// Of a large message only the beginning is here; it says who it is.
    payload: &'a [u8],
    payload_bytes: u32,
}

/// What comes on a client's socket in its turn: the way from bytes, through the layers of its connection, to packets.
pub(super) struct ClientReader<'r, 't> {
    pub(super) turn: &'r mut ClientTurn<'t>,
    /// Messages that the client has received and must acknowledge, by QoS.
    answered: [u32; 3],
}

/// Who sent a message, as far as it is known.
pub(super) struct MessageOrigin {
    pub(super) publisher: Option<u32>,
    pub(super) sequence: u32,
    pub(super) intended: Option<Instant>,
    pub(super) identified: Identified,
}

impl ClientTurn<'_> {
    /// A client's socket has something to read, or room, or an end.
    pub(super) fn react(&mut self, client: &mut Client, ready: Ready) {
        if ready.writable && client.is_opening() {
            self.finish_opening(client);
        }
        if !client.connection().is_reading {
            client.connection_mut().has_unread_end |= ready.ended;
        }
        let is_opening_layers =
            client.connection().layered.as_ref().is_some_and(|layered| layered.is_opening());
        let reads = ready.readable && client.connection().is_reading;
        if reads && (client.is_open() || is_opening_layers) {
            let mut reading = ClientReader { turn: self, answered: [0; 3] };
            let outcome = reading.receive(client, ready.ended);
            let answered = reading.answered;
            if let Err(loss) = outcome {
                client.lose(self, &loss);
            }
            let server = self.shared.plan.server_of(self.shared.group(client.who().group));
            let window = server.broker().map_or(0, |broker| broker.settings.max_inflight);
            let is_near =
                |qos: Qos| poll_pause::nears_window(qos, answered[usize::from(qos.level())], window);
            *self.hurried |= is_near(Qos::AtLeastOnce) || is_near(Qos::ExactlyOnce);
        }
        if client.facts().is_back_to_back() {
            let offered = client.publish_due(self);
            self.note_pace(client, offered);
        }
        client.flush(self);
        self.set_timer(client);
    }

    fn finish_opening(&mut self, client: &mut Client) {
        let Some(socket) = &client.connection().socket else { return };
        match sockets::take_error(socket.as_fd()) {
            Ok(()) if client.connection().layered.is_some() => self.open_layers(client),
            Ok(()) => client.opened(self),
            // Of a connection that was there already.
            Err(_) if client.connection().layered.as_ref().is_some_and(|layered| layered.is_opening()) => {
                client.lose(self, &Loss::broken(client.connection().closed_by_broker()));
            }
            Err(error) => {
                let server = self.shared.group(client.who().group).connects_to;
                let is_refused = error.kind() == io::ErrorKind::ConnectionRefused;
                // Where an event has ended the server, nothing else is to be expected.
                let begun = match client.snapshot().state {
                    State::Opening { since } | State::Open { since } => since,
                    _ => self.now(),
                };
                let is_wrong = is_refused && !self.shared.control.was_server_down(server, begun);
                self.tally.turned_away += u64::from(is_wrong);
                client.lose(self, &Loss::broken(format!("cannot connect: {error}")));
            }
        }
    }
}

impl ClientReader<'_, '_> {
    fn receive(&mut self, client: &mut Client, ended: bool) -> Result<(), Loss> {
        if client.connection().is_datagrams() {
            return self.receive_datagrams(client);
        }
        let mut buffer = std::mem::take(self.turn.buffer);
        let outcome = self.receive_into(client, &mut buffer, ended);
        *self.turn.buffer = buffer;
        outcome
    }

    fn receive_into(&mut self, client: &mut Client, buffer: &mut [u8], ended: bool) -> Result<(), Loss> {
        while let Some(socket) = &client.connection().socket {
            let count = match sockets::read(socket.as_fd(), buffer) {
                Ok(Some(0)) | Err(_) if self.turn.leaving => return Err(Loss::Farewell),
                Ok(Some(0)) => return Err(Loss::broken(client.connection().closed_by_broker())),
                Ok(Some(count)) => count,
                Ok(None) => return Ok(()),
                Err(_) if client.is_opening() => {
                    return Err(Loss::broken(client.connection().closed_by_broker()));
                }
                Err(error) => return Err(Loss::broken(error.to_string())),
            };
            // Read after the bytes were: nothing may seem to arrive before another thread has sent it.
            self.turn.read_clock();
            self.turn.tally.heard(self.turn.shared.group(client.who().group), self.turn.now);
            if client.is_listening(self.turn) {
                self.handle_bytes(client, &buffer[..count])?;
            }
            // Less than asked for is all there was; what comes later is announced anew.
            if count < buffer.len() && !ended {
                return Ok(());
            }
        }
        Ok(())
    }

    fn handle_bytes(&mut self, client: &mut Client, bytes: &[u8]) -> Result<(), Loss> {
        match client.connection().layered {
            Some(_) => self.unseal(client, bytes),
            None => self.handle_packets(client, bytes),
        }
    }

    /// Takes what was read, packet by packet.
    pub(super) fn handle_packets(&mut self, client: &mut Client, bytes: &[u8]) -> Result<(), Loss> {
        if let AnySession::ZeroMq(_) = client.session() {
            return self.handle_frames(client, bytes);
        }
        let whole = client.facts().relay.is_some() || self.turn.shared.plan.recording.payloads;
        let mut incoming = std::mem::take(&mut client.connection_mut().incoming);
        incoming.feed(bytes, whole, |raw| self.handle_packet(client, raw))?;
        client.connection_mut().incoming = incoming;
        Ok(())
    }

    fn handle_packet(&mut self, client: &mut Client, raw: RawPacket<'_>) -> Result<(), Loss> {
        let version = self.turn.shared.facts(client.who().group).version;
        if raw.header.kind == Kind::Publish {
            return self.handle_publish(client, raw, version);
        }
        self.note_read(client, raw, version, "");
        let input = match packet::decode(raw.header, raw.body, version)? {
            Packet::Connack(connack) => return self.handle_connack(client, &connack, version),
            Packet::Puback(answer) => Input::Puback { id: answer.id, code: answer.reason },
            Packet::Pubrec(answer) => Input::Pubrec { id: answer.id, code: answer.reason },
            Packet::Pubrel(answer) => Input::Pubrel { id: answer.id },
            Packet::Pubcomp(answer) => Input::Pubcomp { id: answer.id },
            Packet::Suback(answer) => {
                self.note_refusals(client, ("SUBSCRIBE", Kind::Suback, version), answer.codes);
                Input::Suback { id: answer.id }
            }
            Packet::Unsuback(answer) => {
                self.note_refusals(client, ("UNSUBSCRIBE", Kind::Unsuback, version), answer.codes);
                Input::Unsuback { id: answer.id }
            }
            Packet::Pingresp => Input::Pingresp,
            Packet::Disconnect(farewell) => {
                let code = reason::in_words(Kind::Disconnect, version, farewell.reason);
                return Err(Loss::broken(format!("the broker sent DISCONNECT, {code}")));
            }
            _ => return Err(Loss::broken(format!("the broker sent a {}", raw.header.kind))),
        };
        client.packet(self.turn, Said::Mqtt(input))
    }

    fn handle_publish(
        &mut self,
        client: &mut Client,
        raw: RawPacket<'_>,
        version: Version,
    ) -> Result<(), Loss> {
        let (publish, head_len) = packet::publish_head(raw.header, raw.body, version)?;
        let maximum = mqtt::topic_alias_maximum(self.turn.shared.group(client.who().group));
        let name = client.connection_mut().received_aliases.resolve(&publish, maximum)?;
        let publish = Publish { topic: name.as_deref().unwrap_or(publish.topic), ..publish };
        self.note_read(client, raw, version, publish.topic);
        let payload = raw.body.get(head_len..).unwrap_or_default();
        let payload_bytes = (raw.header.remaining - head_len) as u32;
        self.answered[usize::from(publish.qos.level())] += 1;
        client.message(self.turn, &ArrivingPublish { publish, payload, payload_bytes })
    }

    /// Notes a packet that was read, where that is wanted; of a message with its topic.
    fn note_read(&mut self, client: &mut Client, raw: RawPacket<'_>, version: Version, topic: &str) {
        if let Some(own) = &mut client.connection_mut().own_packets {
            let facts = own_packets::mqtt::of(raw.header, raw.body, version).map(|facts| facts.on(topic));
            own.read(facts, raw.header.packet_len() as u64, self.turn.now, self.turn.sink);
        }
    }

    fn handle_connack(
        &mut self,
        client: &mut Client,
        connack: &packet::Connack<'_>,
        version: Version,
    ) -> Result<(), Loss> {
        let terms = ServerTerms::of(connack.properties);
        // Before the session hears of it: it repeats messages at once.
        if let Some(aliases) = &mut client.connection_mut().aliases {
            aliases.begin(terms.topic_alias_maximum.unwrap_or(0));
        }
        let input = Input::Connack {
            accepted: connack.code == 0,
            session_present: connack.session_present,
            receive_maximum: terms.receive_maximum.unwrap_or(u16::MAX),
            keep_alive_s: terms.keep_alive_s,
        };
        client.connection_mut().terms = terms.limits_messages().then(|| Box::new(terms));
        client.packet(self.turn, Said::Mqtt(input))?;
        match connack.code {
            0 => Ok(()),
            code => Err(Loss::Refused {
                how: format!("CONNECT: {}", reason::in_words(Kind::Connack, version, code)).into(),
                for_good: !PASSING_REFUSALS.contains(&code),
            }),
        }
    }

    /// Notes what was not granted of what a packet asked for.
    fn note_refusals(
        &mut self,
        client: &Client,
        (asked, kind, version): (&str, Kind, Version),
        codes: &[u8],
    ) {
        for &code in codes.iter().filter(|code| **code >= reason::REFUSED) {
            let detail = format!("{asked}: {}", reason::in_words(kind, version, code));
            self.turn.record(EventKind::Refused, client.who().number, None, &detail);
        }
    }
}

impl<'t> Arriving<ClientConnection, ClientTurn<'t>> for ArrivingPublish<'_> {
    fn qos(&self) -> Qos {
        self.publish.qos
    }

    fn id(&self) -> PacketId {
        PacketId(self.publish.id)
    }

    fn identify(
        &self,
        client: Who,
        connection: &mut ClientConnection,
        turn: &mut ClientTurn<'t>,
    ) -> Delivery {
        let server = turn.shared.facts(client.group).serving;
        let Publish { topic, dup, id, .. } = self.publish;
        let origin = MessageOrigin::find(self.payload, (topic, id, dup), server, connection, turn);
        let row = Received {
            subscriber: client.number.0,
            publisher: origin.publisher,
            sequence: origin.sequence,
            qos: self.publish.qos.level(),
            dup: self.publish.dup,
            retained: self.publish.retain,
            payload_bytes: self.payload_bytes,
            received: turn.now,
            identified: origin.identified,
        };
        let row = turn.shared.as_will(row, server, topic, self.payload);
        turn.keep_payload(&row, self.payload);
        // The topic is looked up only where nothing else traces the message: every delivery comes this way.
        let untraced = origin.publisher.is_none() && self.is_small();
        let is_a_clients = untraced && turn.shared.order.is_shared(server, self.publish.topic);
        Delivery { row, intended: origin.intended, content: None, is_a_clients }
    }

    fn copy_to(&self, relayed: &mut RelayedBytes) {
        relayed.topic.clear();
        relayed.topic.push_str(self.publish.topic);
        relayed.payload.clear();
        relayed.payload.extend_from_slice(self.payload);
    }
}

impl ArrivingPublish<'_> {
    /// Whether it has no room to say who it is.
    fn is_small(&self) -> bool {
        self.payload.len() < identity::BYTES_MIN
    }
}

impl MessageOrigin {
    /// Of a message with this payload, or its beginning, by topic, identifier and DUP where it is too small to say.
    pub(super) fn find(
        payload: &[u8],
        (topic, id, dup): (&str, u16, bool),
        server: usize,
        connection: &mut ClientConnection,
        turn: &ClientTurn<'_>,
    ) -> MessageOrigin {
        let clients = *turn.shared.starts.last().expect("there is an end");
        if let Some(identity) = identity::find(payload).filter(|identity| identity.publisher < clients) {
            return MessageOrigin {
                publisher: Some(identity.publisher),
                sequence: identity.sequence,
                intended: identity.intended,
                identified: Identified::Payload,
            };
        }
        let id = (id != 0).then_some(id);
        let is_small = payload.len() < identity::BYTES_MIN;
        let known = (is_small && !turn.shared.is_will(server, topic, payload))
            .then(|| turn.shared.order.received(&mut connection.order, server, topic, payload, (id, dup)));
        match known.flatten() {
            Some(known) => MessageOrigin {
                publisher: Some(known.publisher),
                sequence: known.sequence,
                intended: Some(known.intended),
                identified: Identified::Order,
            },
            None => MessageOrigin {
                publisher: None,
                sequence: 0,
                intended: None,
                identified: Identified::Unknown,
            },
        }
    }
}

/// Refusals of CONNECT that may pass: server unavailable (3.x: 3), and in MQTT 5 unspecified, unavailable, busy,
/// quota exceeded, connection rate exceeded.
const PASSING_REFUSALS: [u8; 6] = [3, 0x80, 0x88, 0x89, 0x97, 0x9f];
