//! The machine that everything runs on, and this process on it: what it permits, who stood still, what ends it.
//!
//! Hosts of a plan are namespaces ([`mqttlab_system::namespaces`]); here is the one host that they share.

pub(crate) mod limit_groups;
pub(crate) mod limits;
pub(crate) mod scratch;
pub(crate) mod server_stalls;
pub(crate) mod watch;
pub(crate) mod watchdog;
