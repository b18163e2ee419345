//! ZeroMQ: packets of a connection in and out as frames.

use mqttlab_client::protocol::Received as Said;
use mqttlab_client::zeromq::Received as Heard;
use mqttlab_client::{Arriving, Body, Delivery, Loss, PacketId, Who};
use mqttlab_mqtt::Qos;
use mqttlab_recording::{Received, identity};
use mqttlab_zmtp::frame;
use mqttlab_zmtp::stream::{Message, Raw};
use mqttlab_zmtp::{Kind, command, command::Command, greeting};

use super::Client;
use super::connection::{ClientConnection, RelayedBytes};
use super::own_packets;
use super::reading::{ClientReader, MessageOrigin};
use super::turn::ClientTurn;
use super::writing::write_payload;

impl ClientReader<'_, '_> {
    /// Takes what was read, packet by packet.
    pub(super) fn handle_frames(&mut self, client: &mut Client, bytes: &[u8]) -> Result<(), Loss> {
        let whole = self.turn.shared.plan.recording.payloads;
        let publishes = !client.facts().publications.is_empty();
        let mut frames = client.connection_mut().frames.take().unwrap_or_default();
        let outcome = frames.feed(bytes, whole, |raw| {
            self.note_frames(client, &raw, publishes);
            match raw {
                Raw::Greeting(greeting) => client.packet(self.turn, Said::ZeroMq(Heard::Greeting(greeting))),
                Raw::Command(command, _) => {
                    client.packet(self.turn, Said::ZeroMq(Heard::Command(command.map(Box::from))))
                }
                // What a subscriber of ZMTP 3.0 says is a message of one frame.
                Raw::Message(message) if publishes && message.frames == 1 => {
                    let command = match command::subscription(message.topic) {
                        Some((true, prefix)) => Command::Subscribe(prefix.into()),
                        Some((false, prefix)) => Command::Cancel(prefix.into()),
                        None => Command::Other,
                    };
                    client.packet(self.turn, Said::ZeroMq(Heard::Command(command)))
                }
                Raw::Message(message) => client.message(self.turn, &message),
            }
        });
        // A connection that has ended meanwhile begins with a greeting again.
        if outcome.is_ok() {
            client.connection_mut().frames = Some(frames);
        }
        outcome
    }

    /// Notes a packet that was read, where that is wanted. What a publisher hears in one frame is a subscription.
    fn note_frames(&mut self, client: &mut Client, raw: &Raw<'_>, publishes: bool) {
        let Some(own) = &mut client.connection_mut().own_packets else { return };
        let (facts, bytes) = match raw {
            Raw::Greeting(_) => {
                (own_packets::zeromq::of_command(Kind::Greeting, greeting::BYTES), greeting::BYTES as u64)
            }
            Raw::Command(command, bytes) => {
                (own_packets::zeromq::of_command(command.kind(), *bytes), *bytes as u64)
            }
            Raw::Message(message) if publishes && message.frames == 1 => {
                let kind = match command::subscription(message.topic) {
                    Some((true, _)) => Kind::Subscribe,
                    Some((false, _)) => Kind::Cancel,
                    None => Kind::Command,
                };
                (own_packets::zeromq::of_command(kind, message.len as usize), message.len)
            }
            Raw::Message(message) => (own_packets::zeromq::of_message(message), message.len),
        };
        own.read(Some(facts), bytes, self.turn.now, self.turn.sink);
    }
}

impl ClientTurn<'_> {
    /// A message as two frames: its topic, and its payload.
    pub(super) fn put_frames(
        &mut self,
        client: Who,
        connection: &mut ClientConnection,
        body: Body<'_, RelayedBytes>,
    ) -> u64 {
        let Body::Own { row, content } = body else {
            unreachable!("the plan was checked: nothing is relayed over ZeroMQ")
        };
        let topic = self.shared.directory.layout().topic_name(row.topic);
        let ClientConnection { outbox, own_packets: own, .. } = connection;
        let bytes = outbox.bytes();
        let start = bytes.len();
        frame::message_header(topic.len(), true, bytes);
        bytes.extend_from_slice(topic.as_bytes());
        frame::message_header(row.payload_bytes as usize, false, bytes);
        let head = bytes.len();
        let payloads = &self.shared.facts(client.group).payloads[usize::from(content)];
        write_payload(payloads, client.index, row, outbox);
        let end = outbox.end();
        if let Some(own) = own {
            let (topic, payload_bytes) = (topic.as_bytes(), u64::from(row.payload_bytes));
            let bytes = &outbox.bytes()[start..];
            let payload = &bytes[head - start..];
            let len = (head - start) as u64 + payload_bytes;
            let message = Message { topic, payload, payload_bytes, frames: 2, bytes, len };
            own.put(Some(own_packets::zeromq::of_message(&message)), end);
        }
        end
    }
}

impl<'t> Arriving<ClientConnection, ClientTurn<'t>> for Message<'_> {
    fn qos(&self) -> Qos {
        Qos::AtMostOnce
    }

    fn id(&self) -> PacketId {
        PacketId(0)
    }

    fn identify(
        &self,
        client: Who,
        connection: &mut ClientConnection,
        turn: &mut ClientTurn<'t>,
    ) -> Delivery {
        let server = turn.shared.facts(client.group).serving;
        let topic = std::str::from_utf8(self.topic).unwrap_or_default();
        let origin = MessageOrigin::find(self.payload, (topic, 0, false), server, connection, turn);
        let row = Received {
            subscriber: client.number.0,
            publisher: origin.publisher,
            sequence: origin.sequence,
            qos: 0,
            dup: false,
            retained: false,
            payload_bytes: self.payload_bytes as u32,
            received: turn.now,
            identified: origin.identified,
        };
        turn.keep_payload(&row, self.payload);
        let untraced = origin.publisher.is_none() && self.payload.len() < identity::BYTES_MIN;
        let is_a_clients = untraced && turn.shared.order.is_shared(server, topic);
        Delivery { row, intended: origin.intended, content: None, is_a_clients }
    }

    /// Nobody relays over ZeroMQ; the plan was checked.
    fn copy_to(&self, _: &mut RelayedBytes) {}
}
