//! The witness: what packets show, whoever captured them.
//!
//! ```text
//!   pcapng, pcap ──► Reader ──► dissect ──► Segment + payload ─┐
//!   emulator's frames ─────────────────► Segment + payload ────┼─► Analyser ──► marks, round trips, MQTT packets
//!   simulator ─────────────────► Segment + packet descriptors ─┘        └─────► Tally ──► METRICS
//! ```
//!
//! Everything is read once, front to back, in bounded memory; nothing here panics or loops on what a file says.
//!
//! What it does not model: putting IP fragments together.

pub mod analysis;
mod carried;
mod control_packet;
mod error;
mod layers;
mod link;
pub mod log;
pub mod metrics;
pub mod mqtt;
mod reader;
pub mod reassembly;
mod recorded;
mod segment;
mod zmtp;

pub use analysis::{
    Analyser, Analysis, Annotations, Completed, Connection, Direction, Gap, Marks, Others, Protocol, Sealed,
    Settings,
};
pub use carried::{Carried, Closed};
pub use control_packet::Passage;
pub use error::Error;
pub use layers::{KeyLog, Secured, Unread};
pub use link::{LinkType, Network};
pub use reader::{Dropped, Frame, LinkTransit, Reader};
pub use reassembly::{Payload, Sighting};
pub use recorded::{FrameWitness, Joined, PacketReader, SegmentWitness, StreamJoin};
pub use segment::{Bits, Datagram, Endpoint, Options, Segment, Transport, dissect};
