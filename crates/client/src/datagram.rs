//! A client's datagrams in bytes, whatever it speaks: each is one packet.

use mqttlab_mqttsn::{self as mqttsn_packets, Packet as SnPacket};
use mqttlab_plan::Group;
use mqttlab_rows::{DatagramAccount, Sent};

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
        Packet::Mqtt(_) | Packet::ZeroMq(_) => unreachable!("a stream's packets do not come here"),
    }
}

/// Appends a message with this payload.
///
/// # Panics
/// As [`encode`] does.
pub fn encode_message(envelope: Envelope, row: &Sent, payload: &[u8], out: &mut Vec<u8>) {
    match envelope {
        Envelope::MqttSn(mqttsn::Envelope { topic, id, qos, dup }) => {
            let (retain, message) = (row.retain, payload);
            put(&SnPacket::<&str, _>::Publish { dup, qos, retain, topic, id, message }, out);
        }
        Envelope::Mqtt(_) | Envelope::ZeroMq => unreachable!("a stream's messages do not come here"),
    }
}

/// Reads a datagram.
///
/// # Errors
/// It is no packet.
pub fn decode(bytes: &[u8]) -> Result<(DatagramAccount<'_>, Heard<'_>), Loss> {
    let packet = mqttsn_packets::packet::decode(bytes)?.packet;
    let no_packet = || Loss::broken("the gateway sent a datagram that is no packet");
    let (account, payload) = DatagramAccount::read(bytes).ok_or_else(no_packet)?;
    if account.kind.is_message() {
        return Ok((account, Heard::Message(payload)));
    }
    Ok((account, Heard::Packet(Received::MqttSn(packet.map(Box::from, |_| ())))))
}

fn put<S: AsRef<str>, M: AsRef<[u8]>>(packet: &SnPacket<S, M>, out: &mut Vec<u8>) {
    if let Err(too_long) = mqttsn_packets::encode::encode(packet, out) {
        unreachable!("the plan was checked, and yet a packet has {} B", too_long.0);
    }
}
