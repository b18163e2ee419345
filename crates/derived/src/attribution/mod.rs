//! Where the time of each delivery went: its packets, its legs between publisher, broker and subscriber, and the parts of each
//! leg.
//!
//! ```text
//!   packet_partitions ──► publishes, in_flight (windows), naming ──► legs, gateway_hops ──► flights (asked of connections)
//!                                                                     └─────────────────────► chain (latency parts)
//!   events ──► holds (what the recording names) ───────────────────────────────────────────────►
//! ```

pub(crate) mod chain;
pub(crate) mod deliveries;
pub(crate) mod flights;
pub(crate) mod gateway_hops;
pub(crate) mod holds;
pub(crate) mod in_flight;
pub(crate) mod latency_parts;
pub(crate) mod legs;
pub(crate) mod message_ranges;
pub(crate) mod messages;
pub(crate) mod naming;
pub(crate) mod packet_partitions;
pub(crate) mod part_steps;
pub(crate) mod publishes;
