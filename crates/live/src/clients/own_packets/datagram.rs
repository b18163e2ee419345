//! What a client knows of a packet in a datagram.

use mqttlab_recording::{DatagramAccount, OwnPacket};

use super::{PacketFacts, message_of};

/// Of a packet with this account; of a message with its payload and the name of its topic, where that is known.
pub(crate) fn of<'a>(
    account: &DatagramAccount<'_>,
    payload: &[u8],
    topic: Option<&'a str>,
) -> PacketFacts<'a> {
    let header_bytes = account.fixed_header_bytes as u8;
    let facts =
        PacketFacts::of(account.kind.protocol(), OwnPacket::NAMED, header_bytes, account.payload_bytes);
    let row = OwnPacket {
        packet_id: account.id,
        packet_id_bytes: account.packet_id_bytes as u8,
        reason: account.reason.map(u16::from),
        topic_bytes: account.topic_bytes,
        ..facts.row
    };
    let name = Some(account.kind.name());
    let Some(qos) = account.qos else { return PacketFacts { row, name, topic: None } };
    let (publisher, sequence) = message_of(payload, true);
    let (dup, retain, is_message) = (account.dup, account.retain, true);
    PacketFacts { row: OwnPacket { qos, dup, retain, publisher, sequence, is_message, ..row }, name, topic }
}
