//! Servers: what runs inside a host beside the clients.
//!
//! A plan has any number of them: brokers, gateways, proxies. The live testbed starts a server's process inside its host
//! and waits until it is ready; the simulator has a model of the role instead.
//!
//! What it does not hold: which clients use a server. A group says to which one it connects.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use mqttlab_units::{Duration, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{GatewayRole, RetryPlan, Text, Transport, ZeroMqRole};

/// A program inside a host, or an address where one is running already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Unique, as groups, logs and reports call it.
    pub name: String,
    /// `mosquitto`, `external`, ...: which adapter described it, for reports.
    pub kind: String,
    /// Version as the program prints it, empty when unknown.
    pub version: String,
    /// Index into the plan's hosts.
    pub host: usize,
    /// Where it listens. Clients connect to the first one that has what their group's transport asks for; other servers to the
    /// first one.
    pub endpoints: Vec<Endpoint>,
    /// What to start; `null` for a server that is running already, or a simulated one.
    pub process: Option<ServerProcess>,
    /// How clients over TLS know a server that is running already; `null` where certificates are made for the run.
    #[serde(default)]
    pub trust: Option<Trust>,
    /// What its end means for the run.
    pub when_it_dies: WhenItDies,
    /// What it is for, and what the simulator must know to stand in for it.
    pub role: Role,
}

impl Server {
    /// Where other servers connect to, and what is asked whether it is ready.
    ///
    /// # Panics
    /// Without endpoints, which no plan that was checked has.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoints[0]
    }

    /// Where clients with this transport connect to, if it listens for them.
    pub fn endpoint_for(&self, transport: &Transport) -> Option<&Endpoint> {
        let wanted = match transport {
            Transport::Udp => EndpointTransport::Udp,
            Transport::Tcp(tcp) => match (&tcp.tls, &tcp.websocket) {
                (None, None) => EndpointTransport::Tcp,
                (None, Some(_)) => EndpointTransport::Websocket,
                (Some(_), None) => EndpointTransport::Tls,
                (Some(_), Some(_)) => EndpointTransport::Wss,
            },
        };
        self.endpoints.iter().find(|endpoint| endpoint.transport == wanted)
    }

    /// The same on a host that has this share of a processor: simulated, all takes longer accordingly.
    #[must_use]
    pub fn slowed(&self, share: Ratio) -> Server {
        let mut slowed = self.clone();
        let service = match &mut slowed.role {
            Role::Broker(broker) => &mut broker.service,
            Role::Gateway(gateway) => &mut gateway.service,
            Role::Proxy(proxy) => &mut proxy.service,
            Role::ZeroMq(zeromq) => &mut zeromq.service,
        };
        let longer =
            |time: Duration| Duration::from_ns((time.as_ns() as f64 / share.as_f64()).round() as u64);
        (service.per_packet, service.per_copy) = (longer(service.per_packet), longer(service.per_copy));
        slowed
    }

    /// How long the simulated server works on a packet and on a copy, whatever its role, and the role's name in a plan.
    pub fn service(&self) -> (&'static str, &ServiceTime) {
        match &self.role {
            Role::Broker(broker) => ("broker", &broker.service),
            Role::Gateway(gateway) => ("gateway", &gateway.service),
            Role::Proxy(proxy) => ("proxy", &proxy.service),
            Role::ZeroMq(zeromq) => ("zeromq", &zeromq.service),
        }
    }

    /// The broker's settings and model, where it is a broker.
    pub fn broker(&self) -> Option<&BrokerRole> {
        match &self.role {
            Role::Broker(broker) => Some(broker),
            _ => None,
        }
    }

    /// The gateway's settings, where it is one.
    pub fn gateway(&self) -> Option<&GatewayRole> {
        match &self.role {
            Role::Gateway(gateway) => Some(gateway),
            _ => None,
        }
    }

    /// What it is as a proxy of ZeroMQ.
    pub fn zeromq(&self) -> Option<&ZeroMqRole> {
        match &self.role {
            Role::ZeroMq(zeromq) => Some(zeromq),
            _ => None,
        }
    }

    /// Index of the server that it passes on to, if it is known to.
    pub fn passes_to(&self) -> Option<usize> {
        match &self.role {
            Role::Broker(_) | Role::ZeroMq(_) => None,
            Role::Gateway(gateway) => Some(gateway.broker),
            Role::Proxy(proxy) => proxy.to,
        }
    }
}

/// Who vouches for a server that somebody else runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    /// Certificates of the authorities that clients trust, as PEM.
    pub authorities: String,
    /// What the server's certificate must be for, and what clients ask for (SNI); `null`: its address, and no SNI.
    pub name: Option<String>,
}

/// An address that a server listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// What carries packets to it.
    pub transport: EndpointTransport,
    /// Its host's address, or an external one.
    pub address: IpAddr,
    /// Port.
    pub port: u16,
}

impl Endpoint {
    /// Address and port.
    pub fn socket_address(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }
}

/// What carries packets to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndpointTransport {
    /// A TCP stream.
    Tcp,
    /// UDP datagrams.
    Udp,
    /// WebSocket over TCP.
    Websocket,
    /// TLS over TCP.
    Tls,
    /// WebSocket over TLS.
    Wss,
}

impl EndpointTransport {
    /// Whether it begins with a handshake of TLS.
    pub fn is_secured(self) -> bool {
        matches!(self, EndpointTransport::Tls | EndpointTransport::Wss)
    }

    /// The number that IP has for what lies below it.
    pub fn ip_protocol(self) -> u8 {
        match self {
            EndpointTransport::Udp => 17,
            EndpointTransport::Tcp
            | EndpointTransport::Websocket
            | EndpointTransport::Tls
            | EndpointTransport::Wss => 6,
        }
    }
}

/// A program to start. In arguments, environment and file texts `{directory}` stands for a private scratch directory, and
/// `{engine}` for the engine's own program. A server with an endpoint for TLS finds a certificate that was made for the run in
/// `{directory}/tls/server.pem`, its key in `server.key` and the authority's certificate in `ca.pem`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerProcess {
    /// The program and its arguments.
    pub command: Vec<Text>,
    /// Set in addition to the engine's own environment.
    pub environment: BTreeMap<String, Text>,
    /// Written to the scratch directory before the start.
    pub files: Vec<ServerFile>,
    /// How to know that it serves.
    pub ready: Readiness,
    /// How long that may take.
    #[serde(rename = "start_timeout_ns")]
    pub start_timeout: Duration,
}

/// A text file in a server's scratch directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerFile {
    /// Path below the scratch directory; its directories are made.
    pub path: String,
    /// Its whole text.
    pub text: Text,
}

/// How to know that a server serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Readiness {
    /// Its endpoint accepts a TCP connection. Some brokers accept before they serve.
    TcpAccept,
    /// Its endpoint answers a CONNECT of MQTT 3.1.1 with a CONNACK, whatever the return code.
    Connack,
    /// A socket of its host is bound to its endpoint. A gateway could answer nothing before the network to its broker is there.
    UdpBound,
    /// A line of its output contains this text.
    LogLine(String),
}

/// What the end of a server means for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenItDies {
    /// The run ends, and its recording is incomplete.
    EndRun,
    /// The run goes on; the end is an event of the recording.
    GoOn,
}

/// What a server is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Role {
    /// Passes MQTT messages from publishers to subscribers.
    Broker(BrokerRole),
    /// Translates between MQTT-SN and a broker.
    Gateway(GatewayRole),
    /// Passes packets on to another server.
    Proxy(ProxyRole),
    /// Passes messages of ZeroMQ on to whoever has subscribed.
    #[serde(rename = "zeromq")]
    ZeroMq(ZeroMqRole),
}

/// A proxy, and what the simulator must know to stand in for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProxyRole {
    /// Index of the server that it passes packets on to; `null` where nobody says. Then messages of its clients are not known to
    /// reach clients of other servers.
    pub to: Option<usize>,
    /// How long the simulated proxy works on a packet; a proxy makes no copies.
    pub service: ServiceTime,
}

/// A broker, as the simulator models it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BrokerRole {
    /// What its configuration says, for the simulator and the report.
    pub settings: BrokerSettings,
    /// How long the simulated broker works on a message.
    pub service: ServiceTime,
}

/// Broker behaviour that decides latency and loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BrokerSettings {
    /// TCP_NODELAY on accepted sockets (Nagle's algorithm off).
    pub tcp_nodelay: bool,
    /// Unacknowledged QoS 1 and 2 messages towards one client; 0 for no limit.
    pub max_inflight: u32,
    /// Messages that wait behind these for one client; 0 for no limit.
    pub max_queued: u32,
    /// Timed repetition of unacknowledged packets, as MQTT 3.1 had it, by the simulated broker; `null` for none.
    #[serde(default)]
    pub retry: Option<RetryPlan>,
    /// Sessions and retained messages outlive the broker.
    pub persistence: bool,
    /// Topic aliases that a client of MQTT 5 may give; 0: none.
    #[serde(default = "topic_alias_maximum")]
    pub topic_alias_maximum: u16,
}

/// Mosquitto's `max_topic_alias`, which plans of before did not have.
fn topic_alias_maximum() -> u16 {
    10
}

/// Service time of the simulated broker, as a live run calibrates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceTime {
    /// For every control packet that arrives.
    #[serde(rename = "per_packet_ns")]
    pub per_packet: Duration,
    /// For every copy that is sent.
    #[serde(rename = "per_copy_ns")]
    pub per_copy: Duration,
    /// Relative standard deviation of both.
    pub jitter: Ratio,
}
