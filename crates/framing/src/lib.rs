//! What lies between a TCP connection and the protocol on it: WebSocket (RFC 6455) in bytes and in lengths, TLS in lengths.
//!
//! ```text
//!    MQTT packet ──► frame, masked ──► record, sealed ──► TCP    bytes: `frame`, `upgrade`; TLS by rustls   (live clients)
//!                      +2 … +14 B        +22 or +29 B            lengths: `Layers`, `Script`, `tls`         (simulator)
//! ```
//!
//! Pure: bytes, nonces and masking keys come in as arguments.
//!
//! What it does not model: extensions (compression), text frames, which MQTT forbids [MQTT-6.0.0-1], and a server's end of
//! WebSocket in bytes.

pub mod frame;
mod lengths;
mod script;
pub mod tls;
pub mod upgrade;

pub use lengths::{Layers, Sealed};
pub use script::{End, Layer, Script, Step};
