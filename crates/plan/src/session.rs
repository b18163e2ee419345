//! What a group's plan means for the session machines.

use mqttlab_mqtt::client::ClientOptions;
use mqttlab_mqtt::{Qos, Version};
use mqttlab_units::Duration;

use crate::{Group, MqttPlan, Protocol, ProtocolVersion, Transport};

impl Group {
    /// The clients' MQTT session.
    pub fn mqtt(&self) -> &MqttPlan {
        let Protocol::Mqtt(mqtt) = &self.protocol;
        mqtt
    }

    /// Whether the clients' sockets send small segments at once (TCP_NODELAY).
    pub fn nodelay(&self) -> bool {
        let Transport::Tcp(tcp) = self.transport;
        tcp.nodelay
    }

    /// How its clients' sessions are configured.
    pub fn session_options(&self) -> ClientOptions {
        let mqtt = self.mqtt();
        ClientOptions {
            keep_alive: Duration::from_s(mqtt.keep_alive_s.into()),
            clean: mqtt.clean_session,
            max_inflight: mqtt.max_inflight,
            max_queued: mqtt.max_queued,
            deliver_on_release: mqtt.deliver_on_release,
            retry: mqtt.retry.map(|retry| retry.interval),
            // Counted from the start of the TCP connection, by the client's own timer.
            connect_timeout: self.reconnect.connect_timeout,
        }
    }
}

impl MqttPlan {
    /// How long a session outlives its connection; `None`: for ever, as those of MQTT 3.x that are not clean.
    pub fn session_expiry(&self) -> Option<Duration> {
        match self.version {
            ProtocolVersion::V5 => Some(Duration::from_s(self.session_expiry_s.into())),
            _ if self.clean_session => Some(Duration::ZERO),
            _ => None,
        }
    }
}

impl ProtocolVersion {
    /// As the codec calls it.
    pub fn version(self) -> Version {
        match self {
            ProtocolVersion::V31 => Version::V31,
            ProtocolVersion::V311 => Version::V311,
            ProtocolVersion::V5 => Version::V5,
        }
    }
}

/// A plan's quality of service.
///
/// # Panics
/// Above 2, which no plan that was checked has.
pub fn qos(level: u8) -> Qos {
    Qos::from_level(level).expect("a plan's QoS is 0, 1 or 2")
}
