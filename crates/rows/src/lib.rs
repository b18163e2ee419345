//! What is recorded of a run, as types: the rows that a producer pushes, the identity that a message carries, and the
//! names behind the rows' indices.
//!
//! ```text
//!   rows      what happened: sent, received, dropped, events, frames
//!   identity  who a message is, in its own payload
//!   layout    who is who: hosts, links, clients, topics, expected receivers
//!   facts     what the rows do not say: versions, warnings, how the run ended
//!   record    a row as bytes of a fixed size
//!   kinds     what a control packet is, whatever its protocol; what one in a datagram is, whoever saw it
//! ```
//!
//! A client, a run, the simulator and the testbed speak of these types without knowing how they are stored: that is
//! `mqttlab-recording`. Nothing here reads a clock or touches a file.
//!
//! What it does not model: the tables that are made of the rows afterwards.

mod datagram;
mod ending;
mod facts;
pub mod identity;
mod layout;
mod loss_cause;
mod packet_kind;
mod packet_protocol;
mod record;
mod rows;
mod transit;

pub use datagram::DatagramAccount;
pub use ending::{Ending, Reason};
pub use facts::{Hold, HoldCause, RunFacts};
pub use layout::{
    AsPublished, ChangedReceiver, Client, GivenUp, Layout, Receivers, Session, Share, ShareMember,
    SummaryRule, Topic,
};
pub use mqttlab_net::Cause;
pub use mqttlab_units::Word;
pub use packet_kind::PacketKind;
pub use packet_protocol::PacketProtocol;
pub use record::{Field, Record};
pub use rows::{
    Acknowledged, Direction, Dropped, End, Event, EventKind, Frame, FrameFate, Gap, Identified, LossCause,
    MessageFate, OwnPacket, Payload, PayloadSource, Phase, PositionSample, PositionSource, Process, Received,
    Resource, SeenBy, Sent, TcpSample, Towards, Unsent,
};
pub use transit::Transit;
