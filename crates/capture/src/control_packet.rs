//! A control packet as a row of a recording, whoever made its capture.

use mqttlab_recording::{ControlPacketRow, SeenBy};
use mqttlab_units::Instant;

use crate::analysis::ServerDirection;
use crate::analysis::towards;
use crate::mqtt::CapturedPacket;

/// Where and when a control packet was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The connection's number.
    pub connection: u32,
    /// Which way it went.
    pub direction: ServerDirection,
    /// The client at the connection's end, when it is known.
    pub client: Option<u32>,
    /// When its first byte was first sent.
    pub first_sent: Instant,
    /// When its last missing byte had arrived, if it had.
    pub complete: Option<Instant>,
    /// Segments that carried a byte of it until then.
    pub segments: u32,
}

impl Passage {
    /// The row of the packet. Its message is not told by the packet alone, and empty.
    pub fn row_of<'a>(&self, packet: &'a CapturedPacket) -> ControlPacketRow<'a> {
        ControlPacketRow {
            connection: self.connection,
            seen_by: SeenBy::Capture,
            transport: packet.kind.protocol().transport(),
            protocol: packet.kind.protocol().as_str(),
            direction: towards(self.direction),
            client: self.client,
            kind: packet.kind.name(),
            qos: packet.kind.is_message().then_some(packet.qos),
            dup: packet.dup,
            retain: packet.retain,
            packet_id: packet.id,
            reason: packet.reason,
            topic: packet.topic.as_deref(),
            publisher: None,
            sequence: None,
            stream_start: packet.start,
            stream_end: packet.end,
            fixed_header_bytes: packet.lengths.fixed_header,
            topic_bytes: packet.lengths.topic,
            packet_id_bytes: packet.lengths.id,
            property_bytes: packet.lengths.properties,
            payload_bytes: packet.lengths.payload,
            first_sent_ns: Some(self.first_sent.as_ns()),
            complete_ns: self.complete.map(Instant::as_ns),
            segments: Some(self.segments),
            written_ns: None,
            read_ns: None,
        }
    }
}
