//! What lies between the hosts.

use mqttlab_net::radio::MediumSpec;
use mqttlab_net::{LinkSpec, Stage};
use serde::{Deserialize, Serialize};

/// Links, and which of them each direction between two hosts crosses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Direct or emulated.
    pub kind: NetworkKind,
    /// The named model that the scenario chose, and its placement, for the report.
    pub description: String,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// The links. A link that several paths name is shared by them.
    pub links: Vec<LinkSpec>,
    /// Radio channels with their stations; for the simulator only.
    #[serde(default)]
    pub media: Vec<MediumSpec>,
    /// One for each ordered pair of hosts that talk; empty on a direct network.
    pub paths: Vec<PathPlan>,
}

/// How frames get from host to host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkKind {
    /// Every client and the broker in one namespace, over its loopback device; nothing in the path.
    Loopback,
    /// One namespace for each host, joined by plain veth devices; nothing in the path.
    Veth,
    /// Through the links and media of the plan.
    Emulated,
    /// The engine's own namespace: for a broker that runs elsewhere.
    External,
}

/// The links from one host to another, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathPlan {
    /// Index of the sending host.
    pub from: usize,
    /// Index of the receiving host.
    pub to: usize,
    /// What a frame crosses; empty for no emulation in this direction.
    pub hops: Vec<Hop>,
}

/// One thing that a frame crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Hop {
    /// Index into the network's links.
    Link(usize),
    /// From one station of a radio channel to another.
    Radio {
        /// Index into the network's media.
        medium: usize,
        /// Number of the sending station.
        from: usize,
        /// Number of the receiving station.
        to: usize,
    },
}

impl From<Hop> for Stage {
    fn from(hop: Hop) -> Stage {
        match hop {
            Hop::Link(link) => Stage::Link(link),
            Hop::Radio { medium, from, to } => Stage::Radio { medium, from, to },
        }
    }
}
