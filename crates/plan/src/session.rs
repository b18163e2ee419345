//! What a group's plan means for the session machines.

use mqttlab_framing::{Layers, tls};
use mqttlab_mqtt::client::{ClientOptions, Ping};
use mqttlab_mqtt::{Qos, Version, encode};
use mqttlab_units::Duration;

use crate::{
    Group, MqttPlan, MqttSnPlan, PingPlan, Protocol, ProtocolVersion, TcpTransport, TlsPlan, TlsVersion,
    Transport, Will, ZeroMqPlan,
};

impl Group {
    /// The clients' MQTT session, where they speak MQTT.
    pub fn mqtt(&self) -> Option<&MqttPlan> {
        match &self.protocol {
            Protocol::Mqtt(mqtt) => Some(mqtt),
            _ => None,
        }
    }

    /// The clients' MQTT-SN session, where they speak MQTT-SN.
    pub fn mqtt_sn(&self) -> Option<&MqttSnPlan> {
        match &self.protocol {
            Protocol::MqttSn(mqtt_sn) => Some(mqtt_sn),
            _ => None,
        }
    }

    /// The clients' sockets, where they speak ZeroMQ.
    pub fn zeromq(&self) -> Option<&ZeroMqPlan> {
        match &self.protocol {
            Protocol::ZeroMq(zeromq) => Some(zeromq),
            _ => None,
        }
    }

    /// Whether the clients' sockets send small segments at once (TCP_NODELAY).
    pub fn nodelay(&self) -> bool {
        self.tcp().is_some_and(|tcp| tcp.nodelay)
    }

    /// The clients' end of their TCP connections, where they have any.
    pub fn tcp(&self) -> Option<&TcpTransport> {
        match &self.transport {
            Transport::Tcp(tcp) => Some(tcp),
            Transport::Udp => None,
        }
    }

    /// TLS on their connections, where there is any.
    pub fn tls(&self) -> Option<&TlsPlan> {
        self.tcp()?.tls.as_ref()
    }

    /// What lies between TCP and the protocol.
    pub fn layers(&self) -> Layers {
        Layers {
            tls: self.tls().map(|tls| tls::Tls {
                version: tls.version.version(),
                resumption: tls.resumption,
                client_certificate: tls.client_certificate,
            }),
            websocket: self.tcp().is_some_and(|tcp| tcp.websocket.is_some()),
        }
    }

    /// The pattern of its clients' identifiers.
    pub fn client_id_pattern(&self) -> &str {
        match &self.protocol {
            Protocol::Mqtt(mqtt) => &mqtt.client_id,
            Protocol::MqttSn(mqtt_sn) => &mqtt_sn.client_id,
            Protocol::ZeroMq(zeromq) => &zeromq.client_id,
        }
    }

    /// Its clients' last will.
    pub fn will(&self) -> Option<&Will> {
        match &self.protocol {
            Protocol::Mqtt(mqtt) => mqtt.will.as_ref(),
            Protocol::MqttSn(mqtt_sn) => mqtt_sn.will.as_ref(),
            Protocol::ZeroMq(_) => None,
        }
    }

    /// How long a session outlives its connection; `None`: for ever.
    pub fn session_expiry(&self) -> Option<Duration> {
        match &self.protocol {
            Protocol::Mqtt(mqtt) => mqtt.session_expiry(),
            Protocol::MqttSn(mqtt_sn) => mqtt_sn.clean_session.then_some(Duration::ZERO),
            Protocol::ZeroMq(_) => Some(Duration::ZERO),
        }
    }

    /// The version of MQTT that its messages reach the broker in. Gateways speak 3.1.1.
    pub fn version(&self) -> Version {
        self.mqtt().map_or(Version::V311, |mqtt| mqtt.version.version())
    }

    /// Unacknowledged messages of QoS 1 and 2 that a client sends ahead (MQTT-SN 1.2, §6.12: one).
    pub fn window(&self) -> u32 {
        self.mqtt().map_or(1, |mqtt| mqtt.max_inflight.into())
    }
}

impl MqttPlan {
    /// How the machine of a group's clients is configured.
    pub fn options(&self, group: &Group) -> ClientOptions {
        ClientOptions {
            keep_alive: Duration::from_s(self.keep_alive_s.into()),
            clean: self.clean_session,
            max_inflight: self.max_inflight,
            max_queued: self.max_queued,
            deliver_on_release: self.deliver_on_release,
            retry: self.retry.map(|retry| retry.interval),
            ping: match self.ping {
                PingPlan::Sent => Ping::Sent,
                PingPlan::Silence => Ping::Silence,
                PingPlan::Interval => Ping::Interval,
            },
            // Counted from the start of the TCP connection, by the client's own timer.
            connect_timeout: group.reconnect.connect_timeout,
        }
    }

    /// How long a session outlives its connection; `None`: for ever, as those of MQTT 3.x that are not clean.
    pub fn session_expiry(&self) -> Option<Duration> {
        encode::session_expiry(self.version.version(), self.clean_session, self.session_expiry_s)
    }
}

impl TlsVersion {
    /// As lengths are asked for.
    pub fn version(self) -> tls::Version {
        match self {
            TlsVersion::V12 => tls::Version::V12,
            TlsVersion::V13 => tls::Version::V13,
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
