//! What a control packet is, whatever its protocol.

use crate::packet_protocol::PacketProtocol;

/// A control packet's type in its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// MQTT 3.1, 3.1.1 or 5.
    Mqtt(mqttlab_mqtt::Kind),
    /// MQTT-SN.
    MqttSn(mqttlab_mqttsn::Kind),
    /// ZMTP.
    ZeroMq(mqttlab_zmtp::Kind),
}

impl PacketKind {
    /// Whose it is.
    pub fn protocol(self) -> PacketProtocol {
        match self {
            PacketKind::Mqtt(_) => PacketProtocol::Mqtt,
            PacketKind::MqttSn(_) => PacketProtocol::MqttSn,
            PacketKind::ZeroMq(_) => PacketProtocol::ZeroMq,
        }
    }

    /// As its protocol's specification writes it.
    pub const fn name(self) -> &'static str {
        match self {
            PacketKind::Mqtt(kind) => kind.name(),
            PacketKind::MqttSn(kind) => kind.name(),
            PacketKind::ZeroMq(kind) => kind.name(),
        }
    }

    /// Whether it carries an application message.
    pub fn is_message(self) -> bool {
        match self {
            PacketKind::Mqtt(kind) => kind == mqttlab_mqtt::Kind::Publish,
            PacketKind::MqttSn(kind) => kind == mqttlab_mqttsn::Kind::Publish,
            PacketKind::ZeroMq(kind) => kind == mqttlab_zmtp::Kind::Message,
        }
    }

    /// What it is in MQTT; `None` where another protocol is spoken.
    pub const fn mqtt(self) -> Option<mqttlab_mqtt::Kind> {
        match self {
            PacketKind::Mqtt(kind) => Some(kind),
            _ => None,
        }
    }

    /// What it is in ZMTP, likewise.
    pub const fn zeromq(self) -> Option<mqttlab_zmtp::Kind> {
        match self {
            PacketKind::ZeroMq(kind) => Some(kind),
            _ => None,
        }
    }
}

impl From<mqttlab_mqtt::Kind> for PacketKind {
    fn from(kind: mqttlab_mqtt::Kind) -> PacketKind {
        PacketKind::Mqtt(kind)
    }
}

impl From<mqttlab_mqttsn::Kind> for PacketKind {
    fn from(kind: mqttlab_mqttsn::Kind) -> PacketKind {
        PacketKind::MqttSn(kind)
    }
}

impl From<mqttlab_zmtp::Kind> for PacketKind {
    fn from(kind: mqttlab_zmtp::Kind) -> PacketKind {
        PacketKind::ZeroMq(kind)
    }
}

/// So that readers of one protocol need not name it.
impl PartialEq<mqttlab_mqtt::Kind> for PacketKind {
    fn eq(&self, other: &mqttlab_mqtt::Kind) -> bool {
        self.mqtt() == Some(*other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_says_whose_it_is_and_messages_are_one_kind_of_each_protocol() {
        let mqtt: Vec<PacketKind> =
            (0..16).filter_map(mqttlab_mqtt::Kind::from_number).map(Into::into).collect();
        let mqttsn: Vec<PacketKind> =
            (0..=255).filter_map(mqttlab_mqttsn::Kind::from_number).map(Into::into).collect();
        let zeromq: Vec<PacketKind> = mqttlab_zmtp::Kind::ALL.into_iter().map(Into::into).collect();
        for (kinds, protocol, message) in
            [(&mqtt, "mqtt", "PUBLISH"), (&mqttsn, "mqtt-sn", "PUBLISH"), (&zeromq, "zeromq", "MESSAGE")]
        {
            assert!(kinds.len() > 8 && kinds.iter().all(|kind| kind.protocol().as_str() == protocol));
            let messages: Vec<&str> =
                kinds.iter().filter(|kind| kind.is_message()).map(|kind| kind.name()).collect();
            assert_eq!(messages, [message]);
            assert!(kinds.iter().all(|kind| kind.mqtt().is_some() == (protocol == "mqtt")));
            assert!(kinds.iter().all(|kind| kind.zeromq().is_some() == (protocol == "zeromq")));
        }
        assert!(PacketKind::from(mqttlab_mqtt::Kind::Pingreq) == mqttlab_mqtt::Kind::Pingreq);
        assert!(PacketKind::from(mqttlab_mqttsn::Kind::Pingreq) != mqttlab_mqtt::Kind::Pingreq);
    }
}
