//! A client's datagrams in bytes, whatever it speaks: each is one packet.

use mqttlab_evidence::{DatagramAccount, DatagramProtocol, Sent};
use mqttlab_mqttsn::{self as mqttsn_packets, Packet as SnPacket};
use mqttlab_plan::{Group, Protocol};
use mqttlab_protocol::MessageHead;

use crate::mqttsn;
use crate::protocol::{Envelope, Packet, Received};
use crate::transport::Loss;

/// What a datagram tells a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// A packet that is no message.
    Packet(Received),
    /// A message with this payload.
    Message(&'a [u8]),
}

/// What a group speaks over datagrams; `None`: it speaks over a stream.
pub fn protocol(group: &Group) -> Option<DatagramProtocol> {
    match &group.protocol {
        Protocol::MqttSn(_) => Some(DatagramProtocol::MqttSn),
        Protocol::Hub(hub) => Some(DatagramProtocol::Hub(hub.speaks())),
        Protocol::Mqtt(_) | Protocol::ZeroMq(_) => None,
    }
}

/// Appends a packet that is no message. `name` is the name of a topic by number.
///
/// # Panics
/// For a packet of a protocol over a stream, and for one that a plan that was checked has not.
pub fn encode(
    group: &Group,
    client: u32,
    packet: Packet,
    name: impl FnOnce(u32) -> String,
    out: &mut Vec<u8>,
) {
    match packet {
        Packet::MqttSn(packet) => put(&mqttsn::packet(group, client, packet, name), out),
        Packet::Hub(head) => out.extend_from_slice(&head),
        Packet::Mqtt(_) | Packet::ZeroMq(_) => unreachable!("a stream's packets do not come here"),
    }
}

/// Appends a message of the group's with this topic and payload.
///
/// # Panics
/// As [`encode`] does.
pub fn encode_message(
    group: &Group,
    envelope: Envelope,
    row: &Sent,
    (topic, payload): (&str, &[u8]),
    out: &mut Vec<u8>,
) {
    match envelope {
        Envelope::MqttSn(mqttsn::Envelope { topic, id, qos, dup }) => {
            let (retain, message) = (row.retain, payload);
            put(&SnPacket::<&str, _>::Publish { dup, qos, retain, topic, id, message }, out);
        }
        Envelope::Hub(envelope) => {
            let head = MessageHead { envelope, topic, payload_bytes: payload.len() as u32 };
            group.hub().expect("the group speaks it").speaks().write(&head, out);
            out.extend_from_slice(payload);
        }
        Envelope::Mqtt(_) | Envelope::ZeroMq => unreachable!("a stream's messages do not come here"),
    }
}

/// Reads a datagram.
///
/// # Errors
/// It is no packet.
pub fn decode(protocol: DatagramProtocol, bytes: &[u8]) -> Result<(DatagramAccount<'_>, Heard<'_>), Loss> {
    let read = protocol.read(bytes);
    let Some((account, payload)) = read.filter(|(account, _)| account.kind.is_message()) else {
        let received = match protocol {
            DatagramProtocol::MqttSn => {
                Received::MqttSn(mqttsn_packets::packet::decode(bytes)?.packet.map(Box::from, |_| ()))
            }
            DatagramProtocol::Hub(_) => Received::Hub(bytes.into()),
        };
        let no_packet = || Loss::broken("the hub sent a datagram that is no packet");
        return read.map(|(account, _)| (account, Heard::Packet(received))).ok_or_else(no_packet);
    };
    Ok((account, Heard::Message(payload)))
}

fn put<S: AsRef<str>, M: AsRef<[u8]>>(packet: &SnPacket<S, M>, out: &mut Vec<u8>) {
    if let Err(too_long) = mqttsn_packets::encode::encode(packet, out) {
        unreachable!("the plan was checked, and yet a packet has {} B", too_long.0);
    }
}
