//! The live testbed: real brokers and real kernel TCP in network namespaces, joined by emulated links.
//!
//! ```text
//!   namespace of host a          engine              namespace of host b
//!   ┌───────────────────┐  ┌─────────────────┐  ┌───────────────────┐
//!   │ client sockets    │  │    emulator     │  │ server process    │
//!   │ kernel TCP ── TUN ├──┤ links of `net`  ├──┤ TUN ── kernel TCP │
//!   └───────────────────┘  └─────────────────┘  └───────────────────┘
//! ```
//!
//! One process makes unnamed namespaces, one for each host of the plan, and holds them by file descriptor; what
//! it starts dies with it. The emulator drives the same machines in real time that the simulator drives in
//! virtual time. Every thread reads the same clock.
//!
//! `run` performs a plan, `parts` shares a run among engines. `clients` is the fleet, `processes` has servers and clients that are
//! programs, `network` the emulator and the hosts' namespaces, `host` the machine below, `verdict` whether the timing may be
//! believed. `probe` measures a path, `measure` and `doctor` the machine.
//!
//! What it does not model: processors and disks of the hosts (all share this machine; the recording says how
//! contended it was), and anything below IP.

mod by_hand;
pub mod clients;
mod clock;
mod contact;
mod control;
mod directory;
pub mod doctor;
mod due_list;
mod histogram;
pub mod host;
pub mod measure;
pub mod network;
mod parts;
pub mod probe;
mod processes;
mod reception;
mod run;
mod tls;
mod verdict;

pub use clock::Clock;
pub use control::{Control, FleetFigures, GroupCounters, SocketFactory};
pub use directory::Directory;
pub use histogram::{AtomicHistogram, HistogramSnapshot};
pub use host::limits::{MemoryNeed, check_memory};
pub use host::watchdog::{GRACE, Watchdog, write_last_line};
pub use mqttlab_run::Schedule;
pub use network::radio_sleep::SleepNotifier;
pub use network::testbed::{BuildError, HostSockets, Testbed};
pub use parts::client_share::ClientShare;
pub use run::{run, watchdog_of};
pub use tls::TlsConfigs;
