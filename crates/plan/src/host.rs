//! Hosts and their TCP.

use mqttlab_tcp::TcpPlan;
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
}
