//! Hosts: their TCP, and what they have of processor, memory and disk.

use mqttlab_tcp::TcpPlan;
use mqttlab_units::Ratio;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A machine: in a live run a network namespace, in the simulator a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Unique, as links and reports call it.
    pub name: String,
    /// IPv4 address.
    pub address: std::net::Ipv4Addr,
    /// Its TCP.
    pub tcp: TcpPlan,
    /// What its servers and programs may use together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<HostLimits>,
}

/// What a machine has of processor, memory and disk; `null` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostLimits {
    /// Share of one processor.
    pub processor: Option<Ratio>,
    /// Memory: who needs more is ended by the kernel.
    pub memory_bytes: Option<u64>,
    /// What the disk takes of writes that are waited for.
    pub disk_bytes_s: Option<u64>,
}
