//! Where publishers say that they are, as captured packets have it.

use mqttlab_capture::ServerDirection;
use mqttlab_capture::mqtt::CapturedPacket;
use mqttlab_plan::find_place;
use mqttlab_recording::PositionSample;
use mqttlab_units::Instant;

/// What a packet says of its sender's place. A repetition says nothing new, and a relay passes on where `publisher` is.
pub fn position_of(
    packet: &CapturedPacket,
    direction: ServerDirection,
    [client, publisher]: [u32; 2],
    at: Instant,
) -> Option<PositionSample> {
    let is_its_own = direction == ServerDirection::ToServer && client == publisher && !packet.dup;
    let payload = packet.payload_text.as_deref().filter(|_| is_its_own)?;
    Some(PositionSample::said(at, client, find_place(payload)?))
}
