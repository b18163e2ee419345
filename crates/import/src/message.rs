//! What the packets that carry messages say, and how messages are counted.

use std::sync::Arc;

use mqttlab_capture::mqtt::{CapturedPacket, PayloadRest};
use mqttlab_units::Instant;

/// A message, as this recording counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedMessage {
    /// The publishing client.
    pub publisher: u32,
    /// Its count.
    pub sequence: u32,
}

/// The least that a broker has to send of a message.
#[derive(Clone, Copy, Debug)]
pub struct ForwardedSize {
    /// With the whole topic.
    pub bytes: u32,
    /// With an alias for it.
    pub aliased_bytes: u32,
}

/// A PUBLISH packet. Times are on the recording's clock.
#[derive(Clone, Copy, Debug)]
pub struct SeenPublish<'a> {
    /// The client at the connection's end: publisher or receiver.
    pub client: u32,
    /// The connection's number.
    pub connection: u32,
    /// Since when messages for the connection can have been under way, as far as the capture tells.
    pub since: Instant,
    /// The topic.
    pub topic: &'a Arc<str>,
    /// Quality of service.
    pub qos: u8,
    /// DUP flag.
    pub dup: bool,
    /// RETAIN flag.
    pub retain: bool,
    /// Packet identifier, at QoS 1 and 2.
    pub id: Option<u16>,
    /// Size of the application message.
    pub payload_bytes: u32,
    /// Its first bytes.
    pub head: &'a [u8],
    /// What was captured of the bytes behind them.
    pub rest: PayloadRest,
    /// Whether all of the topic and of the payload was captured, so that they tell messages apart.
    pub is_whole: bool,
    /// When the first byte of the packet was seen.
    pub first: Instant,
    /// When the last one was.
    pub complete: Instant,
    /// Size of the packet.
    pub packet_bytes: u64,
    /// The least of it that its broker has to forward.
    pub forwarded: ForwardedSize,
    /// How long it may wait there, in seconds.
    pub expiry_s: Option<u32>,
}

impl<'a> SeenPublish<'a> {
    /// What a packet says, seen from `first` to `complete`; `topic` is its own, or stands for one that was not captured.
    /// Messages can have been under way since the beginning.
    pub fn of(
        packet: &'a CapturedPacket,
        client: u32,
        connection: u32,
        topic: &'a Arc<str>,
        [first, complete]: [Instant; 2],
    ) -> SeenPublish<'a> {
        let (head, rest) = (packet.payload_head.as_slice(), packet.payload_rest());
        // An alias is the publisher's own.
        let alias_bytes = if packet.topic_alias.is_some() { ALIAS_BYTES } else { 0 };
        let properties = packet.lengths.properties.saturating_sub(alias_bytes);
        SeenPublish {
            client,
            connection,
            since: Instant::ZERO,
            topic,
            qos: packet.qos,
            dup: packet.dup,
            retain: packet.retain,
            id: packet.id,
            payload_bytes: packet.lengths.payload,
            head,
            rest,
            is_whole: packet.topic.is_some() && rest.captured == packet.lengths.payload,
            first,
            complete,
            packet_bytes: packet.lengths.total(),
            forwarded: ForwardedSize::of(topic, packet.lengths.payload, properties),
            expiry_s: packet.message_expiry_s,
        }
    }
}

impl ForwardedSize {
    /// Of a message of so many bytes, with properties of so many bytes that are forwarded.
    pub fn of(topic: &str, payload_bytes: u32, property_bytes: u32) -> ForwardedSize {
        // Of MQTT 5 there is the length of the properties at least.
        let rest = 2 + property_bytes.max(1) + payload_bytes;
        let [bytes, aliased_bytes] = [topic.len() as u32, ALIAS_BYTES].map(|topic| {
            let body = rest + topic;
            1 + body + 1 + u32::from(body > 127) + u32::from(body > 16_383) + u32::from(body > 2_097_151)
        });
        ForwardedSize { bytes, aliased_bytes: aliased_bytes.min(bytes) }
    }
}

/// An alias among the properties of a PUBLISH.
const ALIAS_BYTES: u32 = 3;
