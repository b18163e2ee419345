//! Hosts, their TCP, and the broker.

use mqttlab_tcp::TcpPlan;
use mqttlab_units::{Duration, Ratio};
use serde::{Deserialize, Serialize};

/// A machine: in a live run a network namespace, in the simulator a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Unique, as links and reports call it.
    pub name: String,
    /// IPv4 address.
    pub address: std::net::Ipv4Addr,
    /// Its TCP.
    pub tcp: TcpPlan,
}

/// The broker: a program started in its host, or an address where one is running already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Broker {
    /// `mosquitto`, `external`, ... for reports.
    pub name: String,
    /// Version as the program prints it, empty when unknown.
    pub version: String,
    /// Index into the plan's hosts.
    pub host: usize,
    /// Where clients connect to: the broker host's address, or an external one.
    pub address: std::net::IpAddr,
    /// TCP port.
    pub port: u16,
    /// What to start; `null` for a broker that is running already, or a simulated one.
    pub process: Option<BrokerProcess>,
    /// What the generated configuration says, for the simulator and the report.
    pub settings: BrokerSettings,
    /// How long the simulated broker works on a message.
    pub service: ServiceTime,
}

/// A program to start. `{directory}` in arguments and file texts stands for a private scratch directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrokerProcess {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Written to the scratch directory before the start.
    pub files: Vec<ConfigurationFile>,
    /// How long it may take until its port accepts a connection.
    #[serde(rename = "start_timeout_ns")]
    pub start_timeout: Duration,
}

/// A text file in the broker's scratch directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigurationFile {
    /// File name, without a directory.
    pub name: String,
    /// Its whole text.
    pub text: String,
}

/// Broker behaviour that decides latency and loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrokerSettings {
    /// TCP_NODELAY on accepted sockets (Nagle's algorithm off).
    pub tcp_nodelay: bool,
    /// Unacknowledged QoS 1 and 2 messages towards one client; 0 for no limit.
    pub max_inflight: u32,
    /// Messages that wait behind these for one client; 0 for no limit.
    pub max_queued: u32,
    /// Sessions and retained messages outlive the broker.
    pub persistence: bool,
}

/// Service time of the simulated broker, as a live run calibrates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
