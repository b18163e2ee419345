//! What packets say that no client's plan does: a gateway's CONNECT, SUBSCRIBE and UNSUBSCRIBE. They wait at their
//! connection, in the order of its stream, until the broker serves their packets.

use std::collections::VecDeque;
use std::sync::Arc;

use mqttlab_mqtt::Qos;
use mqttlab_units::Duration;

/// What waits at a connection.
pub(crate) type Waiting = VecDeque<PacketContent>;

/// What a packet says.
#[derive(Clone, Debug)]
pub(crate) enum PacketContent {
    Connect { client_id: Arc<str>, clean: bool, keep_alive: Duration, will: Option<GatewayWill> },
    Subscribe { filter: Arc<str>, qos: Qos },
    Unsubscribe { filter: Arc<str> },
}

/// A will; its topic by the simulation's number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatewayWill {
    pub(crate) topic: u32,
    pub(crate) qos: Qos,
    pub(crate) retain: bool,
    pub(crate) message: u64,
}
