//! What clients know of the packets on connections whose frames nobody records, as rows of `control_packets`.
//!
//! Live networks without an emulator have no frames. There a client says of each packet when its socket had taken it, or
//! when it had read it; no more is known of it, and no less is recorded. A connection is of one kind or the other, so that
//! nothing is there twice.
//!
//! What it does not model: programs, of which no more is known than frames show; packets of which the socket had not taken the last byte when the connection ended.

use std::path::Path;

use mqttlab_rows::{OwnPacket, SeenBy, Towards};

use crate::error::Result;
use crate::hash::NumberMap;
use crate::message_rows::for_each;
use crate::spool::Spool;
use crate::tables::ControlPacketRow;

/// Hands out the row of each.
pub(crate) fn rows(from: &Path, mut each: impl FnMut(&ControlPacketRow<'_>) -> Result<()>) -> Result<()> {
    let mut numbers = NumberMap::default();
    for_each(from, Spool::OwnPackets, |packet: OwnPacket, topic| {
        let next = FIRST + numbers.len() as u32;
        let number = *numbers.entry((packet.client, packet.connection)).or_insert(next);
        each(&row(&packet, number, &String::from_utf8_lossy(topic)))
    })
}

fn row<'a>(packet: &OwnPacket, connection: u32, beside: &'a str) -> ControlPacketRow<'a> {
    let (kind, topic) = match packet.kind {
        // What a registered topic is called is not always known.
        OwnPacket::NAMED => {
            beside.split_once('\n').map_or((beside, None), |(kind, topic)| (kind, Some(topic)))
        }
        number => (KINDS.get(usize::from(number)).copied().unwrap_or(KINDS[0]), Some(beside)),
    };
    let is_message = packet.is_message || packet.kind == PUBLISH;
    let at = |towards| (packet.towards == towards).then_some(packet.at.as_ns());
    ControlPacketRow {
        connection,
        seen_by: SeenBy::Client,
        transport: packet.protocol.transport(),
        protocol: packet.protocol.as_str(),
        direction: packet.towards,
        client: Some(packet.client),
        kind,
        qos: is_message.then_some(packet.qos),
        dup: packet.dup,
        retain: packet.retain,
        packet_id: Some(packet.packet_id).filter(|&id| id != 0),
        reason: packet.reason.and_then(|reason| u8::try_from(reason).ok()),
        topic: topic.filter(|_| is_message),
        publisher: packet.publisher,
        sequence: packet.sequence,
        stream_start: packet.start,
        stream_end: packet.start + packet.bytes(),
        fixed_header_bytes: packet.fixed_header_bytes.into(),
        topic_bytes: packet.topic_bytes,
        packet_id_bytes: packet.packet_id_bytes.into(),
        property_bytes: packet.property_bytes,
        payload_bytes: packet.payload_bytes,
        first_sent_ns: None,
        complete_ns: None,
        segments: None,
        written_ns: at(Towards::Broker),
        read_ns: at(Towards::Client),
    }
}

const PUBLISH: u8 = 3;
/// MQTT's, by number (MQTT 5 §2.1.2).
const KINDS: [&str; 16] = [
    "RESERVED",
    "CONNECT",
    "CONNACK",
    "PUBLISH",
    "PUBACK",
    "PUBREC",
    "PUBREL",
    "PUBCOMP",
    "SUBSCRIBE",
    "SUBACK",
    "UNSUBSCRIBE",
    "UNSUBACK",
    "PINGREQ",
    "PINGRESP",
    "DISCONNECT",
    "AUTH",
];
/// Captures count TCP's connections from 0, and conversations of datagrams from 2^31.
const FIRST: u32 = 1 << 30;
