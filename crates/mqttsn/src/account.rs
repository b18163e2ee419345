//! What a recording says of a packet: its identifier, its return code, and what its bytes are.

use crate::encode;
use crate::kind::ReturnCode;
use crate::packet::Packet;

/// What a packet's bytes are. Their sum is its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Length and type; of a PUBLISH the flags, too.
    pub fixed_header: u32,
    /// Of a PUBLISH: what it calls its topic.
    pub topic: u32,
    /// The identifier. A PUBLISH has the field at every QoS.
    pub id: u32,
    /// Of a PUBLISH the message, of other packets everything else.
    pub payload: u32,
}

impl<S, M> Packet<S, M> {
    /// Its identifier, which is 0 in a PUBLISH of QoS 0 and −1; `None` where its type has none.
    pub const fn id(&self) -> Option<u16> {
        match self {
            Packet::Register { id, .. }
            | Packet::Regack { id, .. }
            | Packet::Publish { id, .. }
            | Packet::Puback { id, .. }
            | Packet::Pubcomp { id }
            | Packet::Pubrec { id }
            | Packet::Pubrel { id }
            | Packet::Subscribe { id, .. }
            | Packet::Suback { id, .. }
            | Packet::Unsubscribe { id, .. }
            | Packet::Unsuback { id } => Some(*id),
            _ => None,
        }
    }

    /// What it says of what it answers; `None` where its type says nothing.
    pub const fn code(&self) -> Option<ReturnCode> {
        match self {
            Packet::Connack { code }
            | Packet::Regack { code, .. }
            | Packet::Puback { code, .. }
            | Packet::Suback { code, .. }
            | Packet::Willtopicresp { code }
            | Packet::Willmsgresp { code } => Some(*code),
            _ => None,
        }
    }

    /// What the bytes of this packet are, of which there are so many; `message` is the length of a message.
    pub fn parts(&self, bytes: u32, message: impl Fn(&M) -> usize) -> Parts {
        // Beyond 255 B the length field takes three octets (§5.2.1).
        let header = if bytes > encode::SHORT_MAX as u32 { 4 } else { 2 };
        let id = if self.id().is_some() { 2 } else { 0 };
        match self {
            Packet::Publish { message: content, .. } => {
                let (topic, payload) = (2, message(content) as u32);
                Parts { fixed_header: bytes - topic - id - payload, topic, id, payload }
            }
            _ => Parts { fixed_header: header, topic: 0, id, payload: bytes - header - id },
        }
    }
}

#[cfg(test)]
mod tests {
    use mqttlab_mqtt::Qos;

    use super::*;
    use crate::kind::PublishQos;
    use crate::packet::Topic;

    #[test]
    fn a_packets_parts_are_its_length() {
        let publish = |qos, id, message: &'static [u8]| Packet::<&str, &[u8]>::Publish {
            dup: false,
            qos: PublishQos::Level(qos),
            retain: false,
            topic: Topic::Registered(3),
            id,
            message,
        };
        let all: [Packet<&str, &[u8]>; 5] = [
            publish(Qos::AtMostOnce, 0, b"x"),
            publish(Qos::AtLeastOnce, 7, &[0; 300]),
            Packet::Register { topic_id: 0, id: 8, name: "a/b" },
            Packet::Pingreq { client_id: Some("c") },
            Packet::Connack { code: ReturnCode::Congestion },
        ];
        for packet in all {
            let mut bytes = Vec::new();
            let length = encode::encode(&packet, &mut bytes).expect("it is short") as u32;
            let Parts { fixed_header, topic, id, payload } = packet.parts(length, |message| message.len());
            assert_eq!(fixed_header + topic + id + payload, length, "{packet:?}");
        }
    }
}
