//! What a client knows of a packet of MQTT.

use mqttlab_mqtt::packet::{self, Publish};
use mqttlab_mqtt::{FixedHeader, Kind, Version, reason};
use mqttlab_recording::{OwnPacket, PacketProtocol};

use super::{PacketFacts, message_of};

/// Of the packet that begins with these bytes; `None` where they are none. A message has this topic, also where an alias stands
/// for it.
pub(crate) fn of_bytes<'a>(bytes: &'a [u8], version: Version, topic: &'a str) -> Option<PacketFacts<'a>> {
    let header = FixedHeader::peek(bytes).ok()??;
    Some(of(header, &bytes[header.header_len..], version)?.on(topic))
}

/// Of a packet with this header, of whose body the rest may be missing where it is large.
pub(crate) fn of(header: FixedHeader, body: &[u8], version: Version) -> Option<PacketFacts<'_>> {
    let (kind, header_bytes, rest) = (header.kind as u8, header.header_len as u8, header.remaining as u32);
    let facts = PacketFacts::of(PacketProtocol::Mqtt, kind, header_bytes, rest);
    if header.kind != Kind::Publish {
        return Some(PacketFacts { row: answer(facts.row, (header.kind, version), body), ..facts });
    }
    let (publish, head_len) = packet::publish_head(header, body, version).ok()?;
    let payload = body.get(head_len..).unwrap_or_default();
    let Publish { topic, qos, dup, retain, id, .. } = publish;
    let (publisher, sequence) = message_of(payload, payload.len() == header.remaining - head_len);
    let packet_id_bytes = if qos.level() > 0 { 2 } else { 0 };
    let row = OwnPacket {
        qos: qos.level(),
        dup,
        retain,
        packet_id: id,
        publisher,
        sequence,
        topic_bytes: 2 + topic.len() as u32,
        packet_id_bytes,
        property_bytes: (head_len - 2 - topic.len()) as u32 - u32::from(packet_id_bytes),
        payload_bytes: (header.remaining - head_len) as u32,
        is_message: true,
        ..facts.row
    };
    Some(PacketFacts { row, name: None, topic: Some(topic) })
}

/// With packet identifier and reason code, where packets of the kind have them.
fn answer(row: OwnPacket, (kind, version): (Kind, Version), body: &[u8]) -> OwnPacket {
    let row = OwnPacket { reason: reason::of(kind, version, body).map(u16::from), ..row };
    match kind {
        Kind::Connect | Kind::Connack | Kind::Pingreq | Kind::Pingresp | Kind::Disconnect | Kind::Auth => row,
        _ => OwnPacket {
            packet_id: body.get(..2).map_or(0, |id| u16::from_be_bytes([id[0], id[1]])),
            packet_id_bytes: 2,
            payload_bytes: row.payload_bytes.saturating_sub(2),
            ..row
        },
    }
}
