//! The protocols of control packets.

use crate::record::Field;

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketProtocol {
    /// MQTT 3.1, 3.1.1 or 5.
    Mqtt,
    /// MQTT-SN.
    MqttSn,
    /// ZMTP.
    ZeroMq,
}

impl PacketProtocol {
    /// The word that stands in the column.
    pub fn as_str(self) -> &'static str {
        match self {
            PacketProtocol::Mqtt => "mqtt",
            PacketProtocol::MqttSn => "mqtt-sn",
            PacketProtocol::ZeroMq => "zeromq",
        }
    }

    /// What carries it.
    pub const fn transport(self) -> &'static str {
        match self {
            PacketProtocol::Mqtt | PacketProtocol::ZeroMq => "tcp",
            PacketProtocol::MqttSn => "udp",
        }
    }
}

/// In a spool a number.
impl Field for PacketProtocol {
    const SIZE: usize = 1;
    fn put(&self, out: &mut Vec<u8>) {
        out.push(match self {
            PacketProtocol::Mqtt => 0,
            PacketProtocol::MqttSn => 1,
            PacketProtocol::ZeroMq => 2,
        });
    }
    // A spool is read by the program that wrote it or by a later one, so an unknown number is damage; MQTT is then as good
    // as any other.
    fn take(bytes: &[u8]) -> Self {
        match bytes[0] {
            1 => PacketProtocol::MqttSn,
            2 => PacketProtocol::ZeroMq,
            _ => PacketProtocol::Mqtt,
        }
    }
    fn absent() -> Self {
        PacketProtocol::Mqtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_comes_back_from_a_spool_and_damage_is_no_panic() {
        let all = [PacketProtocol::Mqtt, PacketProtocol::MqttSn, PacketProtocol::ZeroMq];
        for protocol in all {
            let mut bytes = Vec::new();
            protocol.put(&mut bytes);
            assert_eq!((bytes.len(), PacketProtocol::take(&bytes)), (1, protocol), "{}", protocol.as_str());
        }
        assert_eq!(PacketProtocol::take(&[u8::MAX]), PacketProtocol::Mqtt);
    }
}
