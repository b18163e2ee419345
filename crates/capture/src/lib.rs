//! The witness: what packets show, whoever captured them.
//!
//! ```text
//!   pcapng, pcap ──► CaptureReader ──► dissect ──► TcpHeader + payload ─┐
//!   emulator's frames ───────────────────────────► TcpHeader + payload ─┼─► Analyser ──► marks, round trips, MQTT packets
//!   simulator ───────────────────────► TcpHeader + packet descriptors ──┘        └─────► MetricTally ──► METRICS
//! ```
//!
//! Everything is read once, front to back, in bounded memory; nothing here panics or loops on what a file says.
//!
//! What it does not model: putting IP fragments together.

pub mod analysis;
mod control_packet;
pub mod credentials;
mod descriptor;
mod error;
mod frame_content;
mod layers;
mod link;
pub mod log;
mod marks;
pub mod metrics;
pub mod mqtt;
mod reader;
pub mod reassembly;
mod recorded;
mod segment;
mod tunnels;
mod wifi;
mod zmtp;

pub use analysis::{
    AnalysedConnection, Analyser, AnalyserSettings, Analysis, Annotations, CaptureGap, Completed,
    ConnectionProtocol, Others, ServerDirection, UnreadTls,
};
pub use control_packet::Passage;
pub use error::CaptureError;
pub use frame_content::{FrameContent, UnreadReason};
pub use layers::{KeyLog, Preamble, TlsFacts, Unread};
pub use link::{LinkType, NetworkPacket};
pub use marks::Marks;
pub use reader::{CaptureReader, CapturedFrame, DroppedFrames, LinkTransit};
pub use reassembly::{SegmentPayload, Sighting};
pub use recorded::{FrameWitness, JoinedPacket, PacketReader, SegmentWitness, StreamJoin};
pub use segment::{
    Bits, Options, SocketEndpoint, TcpHeader, TransportHeader, UdpHeader, dissect, dissect_content,
};
