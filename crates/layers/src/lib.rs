//! What lies between a TCP connection and the protocol on it: WebSocket (RFC 6455), in bytes and in lengths.
//!
//! ```text
//!    MQTT packet ──► frame, masked ──► TCP          bytes: `frame`, `upgrade`      (live clients)
//!                      +2 … +14 B                   lengths: `Layers`, `script`    (simulator)
//! ```
//!
//! Pure: bytes, nonces and masking keys come in as arguments.
//!
//! What it does not model: extensions (compression), text frames, which MQTT forbids [MQTT-6.0.0-1], and a server's end of
//! WebSocket in bytes.

pub mod frame;
mod lengths;
mod script;
mod sha1;
pub mod upgrade;

pub use lengths::{Layers, Sealed};
pub use script::{End, Layer, Script, Step};
