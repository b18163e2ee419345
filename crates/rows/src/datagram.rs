//! What a packet in a datagram is, whoever has seen it: the client that sent it, a capture, or a simulation, which has no
//! payloads. A datagram is one packet.

use std::fmt;

use mqttlab_mqttsn::packet::{self, Packet};
use mqttlab_mqttsn::{PublishQos, ReturnCode, Topic};
use mqttlab_net::DatagramFacts;

use crate::packet_kind::PacketKind;

/// What a packet says of itself. Its parts are bytes, whose sum is its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramAccount<'a> {
    /// What it is.
    pub kind: PacketKind,
    /// What its kind is told by on the wire.
    pub number: u8,
    /// Its identifier; 0: none.
    pub id: u16,
    /// Quality of service of a message.
    pub qos: Option<u8>,
    /// Whether it is published at QoS −1, without a connection that could have said whose it is.
    pub without_connection: bool,
    /// DUP of a message.
    pub dup: bool,
    /// RETAIN of a message.
    pub retain: bool,
    /// Return code.
    pub reason: Option<u8>,
    /// The topic of a message, where the packet has its name.
    pub topic: Option<&'a str>,
    /// What the packet calls it, where it has more than names.
    pub alias: Option<Topic>,
    /// How its client calls itself, where it says so.
    pub client_id: Option<&'a str>,
    /// All that follows is not.
    pub fixed_header_bytes: u32,
    /// What a message calls its topic.
    pub topic_bytes: u32,
    /// The identifier.
    pub packet_id_bytes: u32,
    /// Of a message its payload, of other packets everything else.
    pub payload_bytes: u32,
}

impl<'a> DatagramAccount<'a> {
    /// Reads a datagram: what its packet says, and the payload of a message. `None`: it is no packet of MQTT-SN.
    pub fn read(datagram: &'a [u8]) -> Option<(DatagramAccount<'a>, &'a [u8])> {
        let packet = packet::decode(datagram).ok()?.packet;
        let account = account(&packet, datagram.len() as u32, |message| message.len());
        Some(match packet {
            Packet::Connect { client_id, .. } => {
                (DatagramAccount { client_id: Some(client_id), ..account }, &[])
            }
            Packet::Publish { topic, message, .. } => {
                // Topic and identifier stand before the message (MQTT-SN 1.2, §5.4.12).
                let at = datagram.len() - message.len() - 4;
                let name = topic.short_name().and_then(|_| std::str::from_utf8(&datagram[at..at + 2]).ok());
                (DatagramAccount { topic: name, ..account }, message)
            }
            _ => (account, &[]),
        })
    }

    /// Of a packet with so many bytes; `length` is that of a message.
    pub fn of_packet<S: AsRef<str>, M>(
        packet: &'a Packet<S, M>,
        bytes: u32,
        length: impl Fn(&M) -> usize,
    ) -> DatagramAccount<'a> {
        let account = account(packet, bytes, length);
        match packet {
            Packet::Connect { client_id, .. } => {
                DatagramAccount { client_id: Some(client_id.as_ref()), ..account }
            }
            Packet::Publish { topic, .. } => DatagramAccount { topic: topic.short_name(), ..account },
            _ => account,
        }
    }

    /// By what the dice that its datagram meets are named.
    pub fn facts(&self) -> DatagramFacts {
        DatagramFacts { kind: self.number, id: self.id }
    }
}

/// Of a packet of MQTT-SN, but for names that it has.
fn account<S, M>(
    packet: &Packet<S, M>,
    bytes: u32,
    length: impl Fn(&M) -> usize,
) -> DatagramAccount<'static> {
    let parts = packet.parts(bytes, length);
    let account = DatagramAccount {
        kind: packet.kind().into(),
        number: packet.kind() as u8,
        id: packet.id().unwrap_or(0),
        qos: None,
        without_connection: false,
        dup: false,
        retain: false,
        reason: packet.code().map(ReturnCode::number),
        topic: None,
        alias: None,
        client_id: None,
        fixed_header_bytes: parts.fixed_header,
        topic_bytes: parts.topic,
        packet_id_bytes: parts.id,
        payload_bytes: parts.payload,
    };
    match packet {
        Packet::Publish { dup, qos, retain, topic, .. } => DatagramAccount {
            alias: Some(*topic),
            qos: Some(qos.level().level()),
            without_connection: *qos == PublishQos::WithoutConnection,
            dup: *dup,
            retain: *retain,
            ..account
        },
        _ => account,
    }
}

/// As a column of a recording names it: `PUBLISH(1,7)`, `PUBACK(7)`, `PINGREQ`.
impl fmt::Display for DatagramAccount<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.name();
        match (self.qos, Some(self.id).filter(|id| *id != 0)) {
            (Some(qos), Some(id)) => write!(f, "{kind}({qos},{id})"),
            (Some(qos), None) => write!(f, "{kind}({qos})"),
            (None, Some(id)) => write!(f, "{kind}({id})"),
            (None, None) => f.write_str(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use mqttlab_mqtt::Qos;
    use mqttlab_mqttsn::encode;

    use super::*;

    #[test]
    fn an_account_is_the_same_of_bytes_and_of_a_packet_and_its_parts_are_the_length() {
        let publish = |topic, message: &'static [u8]| Packet::<&str, &[u8]>::Publish {
            dup: true,
            qos: PublishQos::Level(Qos::AtLeastOnce),
            retain: true,
            topic,
            id: 7,
            message,
        };
        for (packet, words, name) in [
            (publish(Topic::Registered(3), &[0; 300]), "PUBLISH(1,7)", None),
            (publish(Topic::short("ab").unwrap(), b"message"), "PUBLISH(1,7)", Some("ab")),
            (Packet::Register { topic_id: 0, id: 8, name: "a/b" }, "REGISTER(8)", None),
            (
                Packet::Connect { will: false, clean: true, duration_s: 9, client_id: "me" },
                "CONNECT",
                Some("me"),
            ),
            (Packet::Connack { code: ReturnCode::Congestion }, "CONNACK", None),
        ] {
            let mut bytes = Vec::new();
            encode::encode(&packet, &mut bytes).unwrap();
            let (read, message) = DatagramAccount::read(&bytes).unwrap();
            let told = DatagramAccount::of_packet(&packet, bytes.len() as u32, |message| message.len());
            assert_eq!((read, read.to_string().as_str(), read.topic.or(read.client_id)), (told, words, name));
            assert!(read.qos.is_none() || message.len() as u32 == read.payload_bytes);
            let [header, topic] = [read.fixed_header_bytes, read.topic_bytes];
            assert_eq!(header + topic + read.packet_id_bytes + read.payload_bytes, bytes.len() as u32);
        }
        assert!(DatagramAccount::read(b"none of it").is_none());
    }
}
