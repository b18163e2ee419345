//! The MQTT-SN gateway as a program: the machine of `crates/mqttsn` over a UDP socket and TCP connections to a broker.
//!
//! ```text
//!   datagrams ◄──► Socket ──┐                ┌── Link 1 ◄──► TCP ◄──► broker
//!                           ├─ Gateway<bytes>┤
//!   signals ──► stop ───────┘                └── Link 2 ◄──► …
//! ```
//!
//! One thread, which waits for all of its sockets at once. It prints a line when it listens, and its counters as JSON when
//! it ends (SIGTERM, SIGINT).
//!
//! What it does not do: multicast. ADVERTISE goes to every peer that has spoken, and SEARCHGW is answered when it is sent
//! to the gateway's own address.

mod link;
mod peers;
mod program;

pub use program::{READY, run};
