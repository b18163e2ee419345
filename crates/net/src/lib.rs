//! What happens to a frame: links, radio channels, and the paths across them.
//!
//! Sans-I/O machines: a frame's size and a time go in, a [`Fate`] with times comes out. The simulator drives them in
//! virtual time, the live emulator drives the same machines in real time. Loss is a result here, never an error.

mod change;
mod delay;
mod discipline;
mod fate;
mod link;
mod loss;
mod name;
mod nat;
mod network;
mod policer;
pub mod radio;
mod spec;
mod trace;
mod traffic;

pub use change::{DownQueue, LinkChange};
pub use fate::{Cause, Delivery, Fate};
pub use link::{Link, LinkCounters, SettledFrame, link_traces};
pub use name::{DatagramFacts, DatagramNames, FrameName, Named, TcpFacts, TcpNames};
pub use nat::{ForgottenFlow, NatSpec, Nats};
pub use network::{Network, Output, STAGES_MAX, Stage, copy_made_at};
pub use spec::{
    BitErrors, BurstLoss, DelayLaw, DelaySpec, Discipline, DisciplineKind, LinkSpec, LossFields, LossPlace,
    LossSpec, OneLoss, PolicerSpec, QueueDiscipline, QueueSpec, ReorderSpec,
};
pub use trace::{TraceCourse, TraceSpec, TraceValues};
pub use traffic::{Drops, LinkTraffic};
