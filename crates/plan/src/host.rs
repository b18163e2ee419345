//! Hosts, their TCP, and the broker.

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

/// One host's TCP. The same fields set the kernel's TCP in a live run and the simulator's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpPlan {
    /// The profile that the scenario started from (`linux`, `netbsd-2005`, `microcontroller`, ...). In a live
    /// run it only names the fields below; in the simulator it also chooses behaviour that has no field.
    pub profile: String,
    /// Congestion control.
    pub congestion_control: CongestionControl,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Timestamps option (RFC 7323).
    pub timestamps: bool,
    /// Window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Minimum retransmission timeout. On Linux it also caps the delayed acknowledgement.
    #[serde(rename = "rto_min_ns")]
    pub rto_min: Duration,
    /// Maximum retransmission timeout.
    #[serde(rename = "rto_max_ns")]
    pub rto_max: Duration,
    /// Delayed acknowledgements; `false` acknowledges every segment at once (Linux: route option `quickack`).
    pub delayed_ack: bool,
    /// Longest delay of an acknowledgement; `null` leaves the stack's own (Linux: 40 to 200 ms).
    #[serde(rename = "delayed_ack_max_ns")]
    pub delayed_ack_max: Option<Duration>,
    /// Initial congestion window in segments.
    pub initial_window_segments: u32,
    /// Largest segment offered to the peer in bytes of payload and options; `null` derives it from the MTU.
    pub mss_bytes: Option<u32>,
    /// Send buffer; `null` leaves the stack's automatic tuning.
    pub send_buffer_bytes: Option<u32>,
    /// Receive buffer; `null` leaves the stack's automatic tuning.
    pub receive_buffer_bytes: Option<u32>,
    /// Tail loss probes (RFC 8985).
    pub tail_loss_probe: bool,
    /// How often a SYN is repeated before the connection attempt fails.
    pub syn_retries: u32,
    /// How many of these repetitions come at 1 s intervals before the interval doubles (Linux from 6.5 on: 4).
    pub syn_linear_retries: u32,
}

/// Congestion control algorithms that both the kernel and the simulator know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CongestionControl {
    /// NewReno (RFC 6582).
    Reno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// BBR; live runs only.
    Bbr,
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
