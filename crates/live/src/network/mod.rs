//! The emulated network: hosts as namespaces with their kernel's TCP, and the frames between them.
//!
//! ```text
//!   testbed ── namespaces, routes, tcp_settings ──► hosts, each with a port
//!   port ──► emulator ── wire: whose frame, across which links ──► port
//! ```
//!
//! Client workers tell the emulator of radios that sleep (`radio_sleep`) and of sockets without power (`silent_sockets`), the emulator tells the conductor what links
//! have carried (`link_traffic`). Links that no event of the plan changes may be changed by hand (`by_hand`). What stays on one host is captured there (`loopback_capture`).

pub(crate) mod by_hand;
pub mod calibration;
pub mod emulator;
pub(crate) mod frame_names;
pub(crate) mod ip_header;
pub(crate) mod link_traffic;
pub(crate) mod loopback_capture;
pub mod port;
pub(crate) mod radio_sleep;
pub(crate) mod silent_sockets;
pub mod tcp_settings;
pub(crate) mod tcp_states;
pub(crate) mod testbed;
pub mod wire;
pub mod wiring;
