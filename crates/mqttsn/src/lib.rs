//! MQTT-SN 1.2: packets, the client's machine and the gateway's.
//!
//! Pure: bytes, times and tokens go in, packets and decisions come out. The live clients, the gateway as a program, the
//! simulator (lengths only) and the analysis of captures use it.
//!
//! ```text
//!    client ──── datagrams (packet, encode) ────► gateway ──── MQTT 3.1.1 (link) ────► broker
//!   crate::client                              crate::gateway
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`kind`] | packet types, flags, return codes |
//! | [`packet`] | packets of 1.2, and their decoding: strict, borrowed |
//! | [`encode`] | encoding into the caller's buffer, and lengths |
//! | [`account`] | what a recording says of a packet |
//! | [`client`] | the client's machine |
//! | [`gateway`] | the gateway's machine, transparent or aggregating |
//!
//! A packet is generic over what stands for its texts and its messages: `Packet<&str, &[u8]>` out of a datagram, tokens in
//! machines, lengths in the simulator.
//!
//! What it does not model: fragmentation (there is none: one packet is one datagram), DTLS, MQTT-SN 2.0.

pub mod account;
pub mod client;
pub mod encode;
pub mod gateway;
pub mod kind;
mod numbered;
pub mod packet;

pub use kind::{Kind, Malformed, PublishQos, ReturnCode};
pub use packet::{Filter, Forwarded, Packet, Topic};
