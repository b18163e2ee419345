//! Datagrams on their way in: read from the socket, decoded, handed to their client.

use std::os::fd::AsFd;

use mqttlab_client::datagram::{self, Heard};
use mqttlab_client::{Arriving, Delivery, Loss, PacketId, Surroundings as _, Who};
use mqttlab_mqtt::Qos;
use mqttlab_mqttsn::Topic;
use mqttlab_recording::{DatagramAccount, Received};
use mqttlab_system::sockets;

use super::Client;
use super::connection::{ClientConnection, RelayedBytes};
use super::datagrams::is_passing;
use super::own_packets;
use super::reading::{ClientReader, MessageOrigin};
use super::turn::ClientTurn;

/// A message that has just come.
struct ArrivingDatagram<'a> {
    account: DatagramAccount<'a>,
    payload: &'a [u8],
    /// The name of its topic, where only its order can tell which message it is.
    topic: &'a str,
}

impl ClientReader<'_, '_> {
    /// Takes every datagram that has come.
    pub(super) fn receive_datagrams(&mut self, client: &mut Client) -> Result<(), Loss> {
        let mut buffer = std::mem::take(self.turn.buffer);
        let mut outcome = Ok(());
        while let Some(socket) = &client.connection().socket {
            let count = match sockets::read(socket.as_fd(), &mut buffer) {
                Ok(Some(count)) => count,
                Ok(None) => break,
                Err(error) if is_passing(&error) => continue,
                Err(error) => {
                    outcome = Err(Loss::broken(error.to_string()));
                    break;
                }
            };
            self.turn.read_clock();
            self.turn.tally.heard(self.turn.shared.group(client.who().group), self.turn.now);
            if client.is_listening(self.turn) {
                outcome = self.handle_datagram(client, &buffer[..count]);
            }
            if outcome.is_err() {
                break;
            }
        }
        *self.turn.buffer = buffer;
        outcome
    }

    fn handle_datagram(&mut self, client: &mut Client, bytes: &[u8]) -> Result<(), Loss> {
        if client.connection().datagrams.is_none() {
            return Ok(());
        }
        let (account, heard) = datagram::decode(bytes)?;
        self.note_datagram(client, &account, &heard, bytes.len());
        let payload = match heard {
            Heard::Packet(packet) => return client.packet(self.turn, packet),
            Heard::Message(payload) => payload,
        };
        let small = payload.len() < mqttlab_recording::identity::BYTES_MIN;
        let name = if small { self.turn.shared.topic_name(client, &account) } else { None };
        let topic = name.as_deref().unwrap_or_default();
        client.message(self.turn, &ArrivingDatagram { account, payload, topic })
    }

    /// Notes a packet of so many bytes that was read, where that is wanted.
    fn note_datagram(
        &mut self,
        client: &mut Client,
        account: &DatagramAccount<'_>,
        heard: &Heard<'_>,
        bytes: usize,
    ) {
        if client.connection().own_packets.is_none() {
            return;
        }
        let (topic, payload) = match heard {
            Heard::Message(payload) => (self.turn.shared.topic_name(client, account), *payload),
            Heard::Packet(_) => (None, &[][..]),
        };
        let facts = own_packets::datagram::of(account, payload, topic.as_deref());
        if let Some(own) = &mut client.connection_mut().own_packets {
            own.read(Some(facts), bytes as u64, self.turn.now, self.turn.sink);
        }
    }
}

impl<'t> Arriving<ClientConnection, ClientTurn<'t>> for ArrivingDatagram<'_> {
    fn qos(&self) -> Qos {
        self.account.qos.and_then(Qos::from_level).unwrap_or(Qos::AtMostOnce)
    }

    fn id(&self) -> PacketId {
        PacketId(self.account.id)
    }

    fn alias(&self) -> Option<Topic> {
        self.account.alias
    }

    fn identify(
        &self,
        client: Who,
        connection: &mut ClientConnection,
        turn: &mut ClientTurn<'t>,
    ) -> Delivery {
        let DatagramAccount { dup, retain, id, .. } = self.account;
        let server = turn.shared.facts(client.group).serving;
        let origin = MessageOrigin::find(self.payload, (self.topic, id, dup), server, connection, turn);
        let row = Received {
            subscriber: client.number.0,
            publisher: origin.publisher,
            sequence: origin.sequence,
            qos: Arriving::<ClientConnection, ClientTurn<'t>>::qos(self).level(),
            dup,
            retained: retain,
            payload_bytes: self.payload.len() as u32,
            received: turn.now,
            identified: origin.identified,
        };
        let row = turn.shared.as_will(row, server, self.topic, self.payload);
        turn.keep_payload(&row, self.payload);
        let untraced = origin.publisher.is_none() && !self.topic.is_empty();
        let is_a_clients = untraced && turn.shared.order.is_shared(server, self.topic);
        Delivery { row, intended: origin.intended, content: None, is_a_clients }
    }

    /// Nobody relays over datagrams; the plan was checked.
    fn copy_to(&self, _: &mut RelayedBytes) {}
}
