//! Datagrams: a client's UDP socket, each datagram one packet of MQTT-SN.
//!
//! The kernel takes a datagram whole or not at all, and none is fragmented: what does not fit into the path's MTU is refused
//! by the kernel, and has been refused by the plan before. An ICMP error (nobody listens there) is a loss like any other;
//! the protocol's own repetition is what notices it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use mqttlab_client::protocol::Received as Said;
use mqttlab_client::{Arriving, Delivery, Loss, PacketId, Surroundings as _, Who};
use mqttlab_mqtt::Qos;
use mqttlab_mqttsn::encode::{TooLong, encode};
use mqttlab_mqttsn::packet::decode;
use mqttlab_mqttsn::{Packet, Topic};
use mqttlab_recording::Received;

use super::Client;
use super::connection::{ClientConnection, RelayedMessage};
use super::own_packets;
use super::reading::{Origin, Reading};
use super::socket;
use super::turn::Turn;

/// Datagrams that the socket has not taken.
#[derive(Default)]
pub(super) struct Datagrams {
    bytes: Vec<u8>,
    /// Lengths of those that are not written.
    waiting: VecDeque<usize>,
    /// Of `bytes`, what is written.
    start: usize,
    /// Bytes written since the socket was opened.
    written: u64,
}

impl Datagrams {
    /// Puts a packet behind what is to be sent; returns its length.
    pub(super) fn put<S: AsRef<str>, M: AsRef<[u8]>>(&mut self, packet: &Packet<S, M>) -> usize {
        let length = match encode(packet, &mut self.bytes) {
            Ok(length) => length,
            Err(TooLong(length)) => unreachable!("the plan was checked, and yet a packet has {length} B"),
        };
        self.waiting.push_back(length);
        length
    }

    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn end(&self) -> u64 {
        self.written + (self.bytes.len() - self.start) as u64
    }

    /// Sends as much as the socket takes. `refused` is told of each datagram that an earlier one's ICMP error has kept back,
    /// by where it ends.
    ///
    /// # Errors
    /// The kernel refuses a datagram for what it is.
    pub(super) fn write(&mut self, socket: BorrowedFd<'_>, mut refused: impl FnMut(u64)) -> io::Result<()> {
        while let Some(&length) = self.waiting.front() {
            let datagram = &self.bytes[self.start..self.start + length];
            match socket::write(socket, &[io::IoSlice::new(datagram)]) {
                Ok(None) => return Ok(()),
                // An answer to an earlier datagram: this one was not sent, and is lost, too.
                Ok(Some(_)) => {}
                Err(error) if is_passing(&error) => refused(self.written + length as u64),
                Err(error) => return Err(error),
            }
            self.waiting.pop_front();
            self.start += length;
            self.written += length as u64;
        }
        self.bytes.clear();
        self.start = 0;
        Ok(())
    }

    /// Forgets everything: the next socket begins anew.
    pub(super) fn clear(&mut self) {
        *self = Datagrams { bytes: std::mem::take(&mut self.bytes), ..Datagrams::default() };
        self.bytes.clear();
    }
}

/// A PUBLISH that has just come.
struct ArrivingDatagram<'a> {
    packet: &'a Packet<&'a str, &'a [u8]>,
    /// The name of its topic, where only its order can tell which message it is.
    topic: &'a str,
}

impl Reading<'_, '_> {
    /// Takes every datagram that has come.
    pub(super) fn receive_datagrams(&mut self, client: &mut Client) -> Result<(), Loss> {
        let mut buffer = std::mem::take(self.turn.buffer);
        let mut outcome = Ok(());
        while let Some(socket) = &client.connection().socket {
            let count = match socket::read(socket.as_fd(), &mut buffer) {
                Ok(Some(count)) => count,
                Ok(None) => break,
                Err(error) if is_passing(&error) => continue,
                Err(error) => {
                    outcome = Err(Loss::broken(error.to_string()));
                    break;
                }
            };
            self.turn.read_clock();
            if client.is_listening(self.turn) {
                outcome = self.take_datagram(client, &buffer[..count]);
            }
            if outcome.is_err() {
                break;
            }
        }
        *self.turn.buffer = buffer;
        outcome
    }

    fn take_datagram(&mut self, client: &mut Client, bytes: &[u8]) -> Result<(), Loss> {
        let packet = decode(bytes)?.packet;
        self.note_datagram(client, &packet, bytes.len());
        let Packet::Publish { topic, message, .. } = &packet else {
            return client.packet(self.turn, Said::MqttSn(packet.map(Box::from, |_| ())));
        };
        let small = message.len() < mqttlab_recording::identity::BYTES_MIN;
        let name = if small { self.turn.shared.topic_name(client, *topic) } else { None };
        client.message(
            self.turn,
            &ArrivingDatagram { packet: &packet, topic: name.as_deref().unwrap_or_default() },
        )
    }
}

impl Reading<'_, '_> {
    /// Notes a packet of so many bytes that was read, where that is wanted.
    fn note_datagram(&mut self, client: &mut Client, packet: &Packet<&str, &[u8]>, bytes: usize) {
        if client.connection().own_packets.is_none() {
            return;
        }
        let topic = match packet {
            Packet::Publish { topic, .. } => self.turn.shared.topic_name(client, *topic),
            _ => None,
        };
        let told = own_packets::mqttsn::of(packet, bytes, topic.as_deref());
        if let Some(own) = &mut client.connection_mut().own_packets {
            own.read(Some(told), bytes as u64, self.turn.now, self.turn.sink);
        }
    }
}

impl<'t> Arriving<ClientConnection, Turn<'t>> for ArrivingDatagram<'_> {
    fn qos(&self) -> Qos {
        match self.packet {
            Packet::Publish { qos, .. } => qos.level(),
            _ => Qos::AtMostOnce,
        }
    }

    fn id(&self) -> PacketId {
        match self.packet {
            Packet::Publish { id, .. } => PacketId(*id),
            _ => PacketId(0),
        }
    }

    fn alias(&self) -> Option<Topic> {
        match self.packet {
            Packet::Publish { topic, .. } => Some(*topic),
            _ => None,
        }
    }

    fn identify(&self, client: Who, connection: &mut ClientConnection, turn: &mut Turn<'t>) -> Delivery {
        let Packet::Publish { dup, retain, id, message, .. } = self.packet else {
            unreachable!("a message is a PUBLISH")
        };
        let server = turn.shared.facts(client.group).serving;
        let origin = Origin::find(message, (self.topic, *id, *dup), server, connection, turn);
        let row = Received {
            subscriber: client.number.0,
            publisher: origin.publisher,
            sequence: origin.sequence,
            qos: self.qos().level(),
            dup: *dup,
            retained: *retain,
            payload_bytes: message.len() as u32,
            received: turn.now,
            identified: origin.identified,
        };
        turn.keep_payload(&row, message);
        let untraced = origin.publisher.is_none() && !self.topic.is_empty();
        let is_a_clients = untraced && turn.shared.order.is_shared(server, self.topic);
        Delivery { row, intended: origin.intended, is_a_clients }
    }

    /// Nobody relays over datagrams; the plan was checked.
    fn copy_to(&self, _: &mut RelayedMessage) {}
}

/// What says nothing about this datagram: an ICMP error of an earlier one, or a queue that is full for a moment.
fn is_passing(error: &io::Error) -> bool {
    let passing = [libc::ECONNREFUSED, libc::EHOSTUNREACH, libc::ENETUNREACH, libc::ENOBUFS];
    error.raw_os_error().is_some_and(|code| passing.contains(&code))
}
