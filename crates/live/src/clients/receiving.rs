//! Packets on their way in.

use mqttlab_mqtt::client::Input;
use mqttlab_mqtt::packet::{self, Acknowledgement, Packet, Publish};
use mqttlab_mqtt::property::id;
use mqttlab_mqtt::{Kind, Malformed, Version};
use mqttlab_recording::identity;
use mqttlab_recording::{EventKind, Identified, Received};
use mqttlab_units::Instant;

use super::client::{Client, Loss};
use super::incoming::Raw;
use super::turn::{Reception, Turn};

/// A message that has arrived, as the recording will have it, and when it was due.
pub(super) struct Message {
    row: Received,
    intended: Option<Instant>,
    /// Whether a client published it, although nothing tells which one.
    is_a_clients: bool,
}

/// A QoS 2 message that waits for its PUBREL.
pub(super) struct Held {
    id: u16,
    message: Message,
    /// Topic and payload, where the client relays.
    relayed: Option<(Box<str>, Box<[u8]>)>,
}

/// Who sent a message, as far as it can be told.
struct Origin {
    publisher: Option<u32>,
    sequence: u32,
    intended: Option<Instant>,
    identified: Identified,
}

impl Client {
    /// Takes what was read, packet by packet.
    pub(super) fn take_bytes(&mut self, turn: &mut Turn<'_>, bytes: &[u8]) -> Result<(), Loss> {
        let relays = self.plan(turn.shared).relay.is_some();
        let mut incoming = std::mem::take(&mut self.incoming);
        let result = incoming.feed(bytes, relays, |raw| self.take_packet(turn, raw));
        if result.is_ok() {
            self.incoming = incoming;
        }
        result
    }

    fn take_packet(&mut self, turn: &mut Turn<'_>, raw: Raw<'_>) -> Result<(), Loss> {
        let version = self.facts(turn.shared).version;
        let input = match raw.header.kind {
            Kind::Publish => return self.take_publish(turn, raw, version),
            _ => match packet::decode(raw.header, raw.body, version)? {
                Packet::Connack(connack) => return self.take_connack(turn, &connack),
                Packet::Puback(answer) => Input::Puback { id: answer.id, refused: refused(&answer) },
                Packet::Pubrec(answer) => Input::Pubrec { id: answer.id, refused: refused(&answer) },
                Packet::Pubrel(answer) => Input::Pubrel { id: answer.id },
                Packet::Pubcomp(answer) => Input::Pubcomp { id: answer.id },
                Packet::Suback(answer) => {
                    self.note_refusals(turn, answer.codes);
                    Input::Suback { id: answer.id }
                }
                Packet::Pingresp => Input::Pingresp,
                Packet::Disconnect(farewell) => {
                    let code = farewell.reason;
                    return Err(Loss::Broken(format!("the broker sent DISCONNECT, code 0x{code:02x}")));
                }
                _ => return Err(Loss::Broken(format!("the broker sent a {}", raw.header.kind))),
            },
        };
        self.handle(turn, input);
        self.take_doom().map_or(Ok(()), Err)
    }

    fn take_connack(&mut self, turn: &mut Turn<'_>, connack: &packet::Connack<'_>) -> Result<(), Loss> {
        let number = |id| connack.properties.number(id).and_then(|value| u16::try_from(value).ok());
        self.handle(
            turn,
            Input::Connack {
                accepted: connack.code == 0,
                session_present: connack.session_present,
                receive_maximum: number(id::RECEIVE_MAXIMUM).unwrap_or(u16::MAX),
                keep_alive_s: number(id::SERVER_KEEP_ALIVE),
            },
        );
        match connack.code {
            0 => self.take_doom().map_or(Ok(()), Err),
            code => Err(Loss::Refused { code, for_good: !PASSING_REFUSALS.contains(&code) }),
        }
    }

    fn note_refusals(&mut self, turn: &mut Turn<'_>, codes: &[u8]) {
        for code in codes.iter().filter(|code| **code >= REFUSES) {
            turn.event(EventKind::Refused, self.number, None, &format!("SUBSCRIBE: code 0x{code:02x}"));
        }
    }

    fn take_publish(&mut self, turn: &mut Turn<'_>, raw: Raw<'_>, version: Version) -> Result<(), Loss> {
        let (publish, head_len) = packet::publish_head(raw.header, raw.body, version)?;
        // Of a large message only the beginning is here; it says who it is.
        let payload = raw.body.get(head_len..).unwrap_or_default();
        let payload_bytes = (raw.header.remaining - head_len) as u32;
        turn.reception = Reception::Ignored;
        turn.answered[usize::from(publish.qos.level())] += 1;
        self.handle(turn, Input::Arrived { token: u64::from(publish.id), qos: publish.qos, id: publish.id });
        if turn.reception != Reception::Ignored {
            let message = self.read(turn, &publish, payload, payload_bytes);
            match turn.reception {
                Reception::Held => self.hold(turn, message, &publish, payload),
                _ => {
                    self.deliver(turn, message);
                    self.relay(turn, publish.topic, payload);
                }
            }
        }
        self.take_doom().map_or(Ok(()), Err)
    }

    /// The session delivers what has just arrived, or what was held under this identifier.
    pub(super) fn deliver_or_release(&mut self, turn: &mut Turn<'_>, id: u64) {
        let Some(index) = self.held.iter().position(|held| u64::from(held.id) == id) else {
            turn.reception = Reception::Delivered;
            return;
        };
        let held = self.held.remove(index);
        self.deliver(turn, held.message);
        if let Some((topic, payload)) = held.relayed {
            self.relay(turn, &topic, &payload);
        }
    }

    fn hold(&mut self, turn: &Turn<'_>, message: Message, publish: &Publish<'_>, payload: &[u8]) {
        let relays = self.plan(turn.shared).relay.is_some();
        let relayed = relays.then(|| (publish.topic.into(), payload.into()));
        self.held.push(Held { id: publish.id, message, relayed });
    }

    fn deliver(&mut self, turn: &mut Turn<'_>, message: Message) {
        let Message { row, intended, is_a_clients } = message;
        let first = match row.publisher {
            Some(publisher) => {
                self.arrived.entry(publisher).or_default().note(row.sequence, row.dup || row.retained)
            }
            // Where it is no message of a client's, but a will or from elsewhere, nothing waits for it.
            None => is_a_clients,
        };
        turn.tally.delivered += u64::from(first);
        turn.tally.foreign += u64::from(row.publisher.is_none() && !is_a_clients);
        if let Some(latency) = intended.and_then(|intended| turn.now.checked_since(intended)) {
            turn.shared.control.figures.latency.count(latency);
        }
        turn.sink.received(&Received { received: turn.now, ..row });
    }

    fn read(
        &mut self,
        turn: &Turn<'_>,
        publish: &Publish<'_>,
        payload: &[u8],
        payload_bytes: u32,
    ) -> Message {
        let origin = self.origin(turn, publish, payload);
        let row = Received {
            subscriber: self.number,
            publisher: origin.publisher,
            sequence: origin.sequence,
            qos: publish.qos.level(),
            dup: publish.dup,
            retained: publish.retain,
            payload_bytes,
            received: turn.now,
            identified: origin.identified,
        };
        // The topic is looked up only where nothing else traces the message: every delivery comes this way.
        let untraced = origin.publisher.is_none() && payload.len() < identity::BYTES_MIN;
        let is_a_clients = untraced && turn.shared.order.is_shared(publish.topic);
        Message { row, intended: origin.intended, is_a_clients }
    }

    fn origin(&mut self, turn: &Turn<'_>, publish: &Publish<'_>, payload: &[u8]) -> Origin {
        let clients = *turn.shared.starts.last().expect("there is an end");
        if let Some(identity) = identity::find(payload).filter(|identity| identity.publisher < clients) {
            return Origin {
                publisher: Some(identity.publisher),
                sequence: identity.sequence,
                intended: identity.intended,
                identified: Identified::Payload,
            };
        }
        let small = payload.len() < identity::BYTES_MIN;
        let id = (publish.id != 0).then_some(publish.id);
        let known =
            small.then(|| turn.shared.order.received(&mut self.order, publish.topic, id, publish.dup));
        match known.flatten() {
            Some(known) => Origin {
                publisher: Some(known.publisher),
                sequence: known.sequence,
                intended: Some(known.intended),
                identified: Identified::Order,
            },
            None => Origin { publisher: None, sequence: 0, intended: None, identified: Identified::Unknown },
        }
    }
}

impl From<Malformed> for Loss {
    fn from(malformed: Malformed) -> Loss {
        Loss::Broken(malformed.to_string())
    }
}

fn refused(answer: &Acknowledgement<'_>) -> bool {
    answer.reason >= REFUSES
}

/// Codes from here on refuse (MQTT 3.1.1 §3.9.3, MQTT 5 §2.4).
const REFUSES: u8 = 0x80;
/// Refusals of CONNECT that may pass: server unavailable (3.x: 3), and in MQTT 5 unspecified, unavailable, busy,
/// quota exceeded, connection rate exceeded.
const PASSING_REFUSALS: [u8; 6] = [3, 0x80, 0x88, 0x89, 0x97, 0x9f];
