//! ZeroMQ: what its clients' sockets are like, and the proxy that they connect to.

use std::net::SocketAddr;

use mqttlab_zmtp::SocketType;
use mqttlab_zmtp::proxy::ProxyOptions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Group, ServiceTime};

/// A client's socket: a PUB where the group publishes, a SUB where it subscribes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZeroMqPlan {
    /// What a client calls itself in its READY (`X-Client`); `{group}` and `{client}` (index in the group) are filled in.
    pub client_id: String,
    /// Messages that wait in a PUB for its connection; what exceeds it is dropped and counted as unsent. 0: no limit.
    pub high_water_mark: u32,
}

/// A ZeroMQ proxy: an XSUB socket at its first endpoint, to which publishers connect, and an XPUB socket at its second one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZeroMqRole {
    /// Messages that wait for a subscriber's connection before more are dropped for it; 0: no limit.
    pub high_water_mark: u32,
    /// What a packet costs it (simulator only).
    pub service: ServiceTime,
}

/// What the proxy as a program is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyProgram {
    /// Where its XSUB listens.
    pub publishers: SocketAddr,
    /// Where its XPUB does.
    pub subscribers: SocketAddr,
    /// Messages that wait for a subscriber; 0: no limit.
    pub high_water_mark: u32,
}

impl ZeroMqRole {
    /// How its machine is configured.
    pub fn options(&self) -> ProxyOptions {
        ProxyOptions { high_water_mark: self.high_water_mark }
    }
}

/// The prefix that a topic filter means: a trailing `#` stands for whatever follows, and nothing else is a wild card.
pub fn prefix(filter: &str) -> &str {
    filter.strip_suffix('#').unwrap_or(filter)
}

/// The socket of a group's clients.
pub fn socket_type(group: &Group) -> SocketType {
    if group.publications.is_empty() { SocketType::Sub } else { SocketType::Pub }
}

#[cfg(test)]
mod tests {
    use super::prefix;

    #[test]
    fn a_trailing_wild_card_is_a_prefix_and_nothing_else_changes() {
        assert_eq!(["#", "a/#", "a", "a/"].map(prefix), ["", "a/", "a", "a/"]);
    }
}
