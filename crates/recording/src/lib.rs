//! The recording: the one form of evidence, whoever was the witness.
//!
//! A live run, the simulator and an import leave the same directory:
//!
//! ```text
//!   plan.json  layout.json                     written first
//!   messages.parquet  packets.parquet          one row per message per receiver; one row per frame per link
//!   control_packets.parquet  network_metrics.parquet  events.parquet
//!   resources.parquet  clients.parquet  tcp_state.parquet  positions.parquet
//!   payloads.parquet  payloads.bin             where they are kept: what arrived, and its bytes
//!   capture-<link>.pcapng                      optional
//!   message_sums.parquet  latency_sums.parquet of long runs, whose messages.parquet is a sample
//!   run.json                                   written last: its presence means complete
//!   incomplete.json                            instead of run.json, when the run ended before its end
//! ```
//!
//! While the run goes on its rows are in `*.spool` files, which can be read up to the last whole row whenever the
//! producer is killed; [`finalise`] and [`recover`] make the tables from them. Whoever writes holds a [`Claim`] on the
//! directory; whoever looks meanwhile makes a [`snapshot`].
//! The columns are described in `docs/reference/recording.md`.
//!
//! What it does not model: the loss of power. Nothing is synced to the disk before the recording is finished.

pub mod checks;
mod claim;
mod client_tally;
mod column;
mod connection_times;
mod coverage;
mod derived;
mod direct;
mod distinct;
mod encoding;
mod error;
mod fate;
mod finish;
mod flow;
mod folding;
mod footer;
mod frames;
mod hash;
pub mod identifier;
mod join;
mod journal;
mod latest;
mod layout;
mod machine;
mod message_rows;
mod null_rows;
mod observed_rows;
mod origin;
mod own_packets;
mod packets;
mod pages;
mod parts;
mod payloads;
pub mod pcapng;
pub mod reading;
mod recorder;
mod refusals;
mod run;
mod samples;
mod schema;
mod shares;
mod spool;
mod summary;
mod summing;
mod table;
mod tables;
mod text_columns;
mod turn;
mod untraced;
mod validity;
mod waiting;

// What the interface here is made of.
pub use mqttlab_rows::{
    Acknowledged, AsPublished, Cause, ChangedReceiver, Client, DatagramAccount, Direction, Dropped, End,
    Ending, Event, EventKind, Frame, FrameFate, Gap, GivenUp, Hold, HoldCause, Identified, Layout, LossCause,
    MessageFate, OwnPacket, PacketKind, PacketProtocol, Payload, PayloadSource, Phase, PositionSample,
    PositionSource, Process, Reason, Received, Resource, RunFacts, SeenBy, Sent, Session, Share, ShareMember,
    SummaryRule, TcpSample, Topic, Towards, Transit, Unsent, identity,
};

pub use claim::{BY_HAND, Claim, HAND_SOCKET, KEY_LOG, UNHIDDEN, discard};
pub use derived::{
    AttributionRow, AttributionWriter, CarrierRow, CarrierWriter, DERIVED_TABLES, FrameSumRow,
    FrameSumWriter, GroupFrameRow, GroupFrameWriter, HoldRow, HoldWriter, LegRow, LegWriter, LinkSumRow,
    LinkSumWriter, NamedPacketRow, NamedPacketWriter, PacketSumRow, PacketSumWriter, RoundTripRow,
    RoundTripWriter, SentAgainRow, SentAgainWriter, SliceRow, SliceWriter, TopicSumRow, TopicSumWriter,
};
pub use direct::DirectRecorder;
pub use error::{Error, Result};
pub use finish::{Finish, finalise, recover, snapshot};
pub use footer::FileSize;
pub use frames::{
    FrameAnalyser, FrameHeaders, HeaderAnalyser, Judgement, SeenPacket, SeenRow, SeenSegment, SegmentAnalyser,
};
pub use hash::{Folded, FoldedHash, NumberMap, NumberSet};
pub use layout::{read as read_layout, store_phases};
pub use parts::{append_part, is_part_file, part_files};
pub use recorder::{ClosedRecorder, Recorder, Sink, Strain};
pub use run::digest;
pub use schema::SCHEMA_VERSION;
pub use spool::holds_rows;
pub use summary::{LinkTally, Summary};
pub use table::{Column, Description};
pub use tables::{
    ClientRow, ControlPacketRow, EventRow, LatencySumRow, MessageRow, MessageSumRow, NetworkMetricRow,
    PacketRow, ResourceRow, TABLES, TcpStateRow,
};
