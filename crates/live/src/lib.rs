//! The live testbed: real brokers and real kernel TCP in network namespaces, joined by emulated links.
//!
//! ```text
//!   namespace of host a          engine              namespace of host b
//!   ┌───────────────────┐  ┌─────────────────┐  ┌───────────────────┐
//!   │ client sockets    │  │    emulator     │  │ broker process    │
//!   │ kernel TCP ── TUN ├──┤ links of `net`  ├──┤ TUN ── kernel TCP │
//!   └───────────────────┘  └─────────────────┘  └───────────────────┘
//! ```
//!
//! One process makes unnamed namespaces, one for each host of the plan, and holds them by file descriptor; what
//! it starts dies with it. The emulator drives the same machines in real time that the simulator drives in
//! virtual time. Every thread reads the same clock.
//!
//! What it does not model: processors and disks of the hosts (all share this machine; the recording says how
//! contended it was), and anything below IP.

pub mod broker;
pub mod clients;
pub mod clock;
pub mod control;
pub mod directory;
pub mod histogram;
pub mod namespaces;
pub mod netlink;
pub mod port;
pub mod priority;
mod scratch;
pub mod tcp;
pub mod usage;

pub use clock::Clock;
pub use control::{Control, Figures, Schedule, SocketFactory};
pub use directory::Directory;
