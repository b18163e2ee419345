//! What a client knows of what it says and hears by ZMTP.

use mqttlab_recording::{OwnPacket, PacketProtocol};
use mqttlab_zmtp::Kind;
use mqttlab_zmtp::stream::Message;

use super::{PacketFacts, message_of};

/// Of a greeting or a command with so many bytes, or of a subscription as ZMTP 3.0 has it: all of them are its content, as in
/// recordings of frames.
pub(crate) fn of_command(kind: Kind, bytes: usize) -> PacketFacts<'static> {
    let header = match kind {
        Kind::Greeting => 0,
        // The length has one byte, or eight.
        _ if bytes > SHORT_MAX => 9,
        _ => 2,
    };
    let facts =
        PacketFacts::of(PacketProtocol::ZeroMq, OwnPacket::NAMED, header, bytes as u32 - u32::from(header));
    PacketFacts { name: Some(kind.name()), ..facts }
}

/// Of a message, of whose payload the rest may be missing where it is large.
pub(crate) fn of_message<'a>(message: &Message<'a>) -> PacketFacts<'a> {
    let Message { topic, payload, payload_bytes, len, .. } = *message;
    let header = len - topic.len() as u64 - payload_bytes;
    let facts = PacketFacts::of(PacketProtocol::ZeroMq, OwnPacket::NAMED, header as u8, payload_bytes as u32);
    let (publisher, sequence) = message_of(payload, payload.len() as u64 == payload_bytes);
    let row =
        OwnPacket { publisher, sequence, topic_bytes: topic.len() as u32, is_message: true, ..facts.row };
    PacketFacts { row, name: Some(Kind::Message.name()), topic: std::str::from_utf8(topic).ok() }
}

/// Flags, a length of one byte, and a body of 255.
const SHORT_MAX: usize = 257;
