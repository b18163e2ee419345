//! What a client knows of a packet of MQTT-SN: a datagram.

use mqttlab_mqttsn::{Packet, ReturnCode};
use mqttlab_recording::{OwnPacket, PacketProtocol};

use super::{Told, message_of};

/// Of a packet that has so many bytes; of a message with the name of its topic, where that is known.
pub(crate) fn of<'a, S, M: AsRef<[u8]>>(
    packet: &Packet<S, M>,
    bytes: usize,
    topic: Option<&'a str>,
) -> Told<'a> {
    let parts = packet.parts(bytes as u32, |message| message.as_ref().len());
    let header_bytes = parts.fixed_header as u8;
    let told = Told::of(PacketProtocol::MqttSn, OwnPacket::NAMED, header_bytes, parts.payload);
    let row = OwnPacket {
        packet_id: packet.id().unwrap_or(0),
        packet_id_bytes: parts.id as u8,
        reason: packet.code().map(ReturnCode::number).map(u16::from),
        topic_bytes: parts.topic,
        ..told.row
    };
    let name = Some(packet.kind().name());
    let Packet::Publish { dup, qos, retain, message, .. } = packet else {
        return Told { row, name, topic: None };
    };
    let (publisher, sequence) = message_of(message.as_ref(), true);
    let row = OwnPacket {
        qos: qos.level().level(),
        dup: *dup,
        retain: *retain,
        publisher,
        sequence,
        is_message: true,
        ..row
    };
    Told { row, name, topic }
}
