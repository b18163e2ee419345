//! The ZeroMQ proxy as a program: the machine of `crates/zmtp` over TCP sockets.
//!
//! ```text
//!   publishers ◄──► XSUB listener ──┐             ┌── Peer 1 ◄──► TCP
//!                                   ├─ Proxy<bytes>┤
//!   subscribers ◄─► XPUB listener ──┘             └── Peer 2 ◄──► …
//! ```
//!
//! One thread, which waits for all of its sockets at once (epoll). A message is kept once, whoever waits for it, and goes out as it
//! came. It prints a line when it listens, one when it begins to drop messages for a client, and its counters as JSON when it ends
//! (SIGTERM, SIGINT).
//!
//! What it does not do: wait for subscribers that are slow. Beyond the high-water mark their messages are dropped and counted.
//! Which messages these were it does not say.

mod peer;
mod program;

pub use program::{READY, run};
