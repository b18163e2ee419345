//! The machine that everything runs on, and this process on it: what it permits, what was used of it, which signals come.
//!
//! Hosts of a plan are namespaces ([`crate::network::namespaces`]); here is the one host that they share.

pub(crate) mod control_groups;
pub(crate) mod limit_groups;
pub(crate) mod limits;
pub mod priority;
pub(crate) mod scratch;
pub(crate) mod server_stalls;
pub(crate) mod signals;
pub(crate) mod usage;
pub(crate) mod watch;
pub(crate) mod watchdog;
