//! ZMTP 3.1 with the NULL mechanism, as PUB, SUB, XPUB and XSUB sockets speak it: ZeroMQ's wire protocol (ZeroMQ RFC 37,
//! and RFC 29 for publish and subscribe).
//!
//! Pure: bytes and tokens go in, packets and decisions come out. The live clients, the proxy as a program, the simulator
//! (lengths only) and the analysis of captures use it.
//!
//! ```text
//!   PUB ── messages ──────► XSUB ┐ proxy ┌ XPUB ── messages ──────► SUB
//!       ◄── subscriptions ──     └───────┘      ◄── subscriptions ──
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`kind`] | kinds of packets, socket types, what is refused |
//! | [`greeting`] | the first 64 bytes of each side |
//! | [`frame`] | frames: flags, short and long lengths |
//! | [`command`] | READY, ERROR, SUBSCRIBE, CANCEL, PING, PONG, and the subscriptions of 3.0 |
//! | [`stream`] | packets out of a stream of bytes, however it is cut |
//! | [`prefixes`] | sets of subscriptions: a topic matches the prefixes that it begins with |
//! | [`pipe`] | the high-water mark |
//! | [`handshake`] | from the greeting to READY, the same on both sides |
//! | [`client`] | the machine of a PUB or SUB socket with one connection |
//! | [`proxy`] | the machine of an XSUB and an XPUB socket, back to back |
//!
//! A *packet* here is what is said at a time: a greeting, a command, or a message with all of its frames. A message's first
//! frame is its topic and its second one its payload, which is ZeroMQ's envelope for publishing; further ones are passed on.
//!
//! What it does not do: PLAIN, CURVE and GSSAPI, ZMTP 1.0 and 2.0, heartbeats of its own (it answers PING), sockets with
//! several connections (a client that wants them is two clients).

pub mod client;
pub mod command;
pub mod frame;
pub mod greeting;
pub mod handshake;
pub mod kind;
pub mod pipe;
pub mod prefixes;
pub mod proxy;
pub mod stream;

pub use kind::{Kind, Malformed, SocketType};
