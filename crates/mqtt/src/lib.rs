//! MQTT 3.1, 3.1.1 and 5.0: control packets, topics and the session machines.
//!
//! Pure: bytes, times and tokens go in, packets and decisions come out. Three rooms use it: the live clients (bytes,
//! thousands of sessions a core), the simulator (lengths only), and the analysis of captures (decoding).
//!
//! | module | what |
//! |---|---|
//! | [`kind`] | versions, packet types, fixed headers |
//! | [`packet`] | decoding, borrowed and strict |
//! | [`alias`] | topic aliases, of a sender and of a receiver |
//! | [`reason`] | reason codes and return codes, and their names |
//! | [`terms`] | what a CONNACK changes |
//! | [`encode`] | encoding into the caller's buffer, and lengths |
//! | [`topic`] | names, filters, the subscription tree |
//! | [`conventions`] | prefixes of topics by which brokers do more than MQTT says |
//! | [`inbox`] | messages that have come at QoS 2 and are not released, for either side of a session |
//! | [`outbox`] | messages in flight, for either side of a session |
//! | [`client`] | the client's session |
//! | [`broker`] | the broker: sessions, subscriptions, queues |
//!
//! What it does not model: enhanced authentication.

pub mod alias;
pub mod broker;
pub mod client;
pub mod conventions;
pub mod encode;
mod in_use;
pub mod inbox;
pub mod kind;
pub mod outbox;
pub mod packet;
pub mod property;
pub mod reason;
pub mod terms;
pub mod topic;

pub use kind::{FixedHeader, Kind, Malformed, Qos, RetainHandling, SubscriptionOptions, Version};
pub use topic::TopicTree;
