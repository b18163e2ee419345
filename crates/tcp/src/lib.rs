//! A TCP endpoint as a machine: segment descriptors and times in, segment descriptors and events out.
//!
//! The simulator runs thousands of [`Endpoint`]s. No payload exists: the machine counts bytes, and whoever drives
//! it knows which message lies at which *offset* of a stream (`u64`, from 0, never wrapping). What one TCP does
//! differently from another is in a [`Profile`].
//!
//! # Contract
//! - Every verb takes the time and may be followed by output: drain [`Endpoint::poll`] until `None` before the
//!   next verb. Segments come before events, so that an acknowledgement is never younger than the application's
//!   reaction. Verbs that the application can be refused (`write`, `read`) answer how much was accepted, which is
//!   why they are methods and not one `handle`.
//! - [`Endpoint::next_deadline`] is a peek; call [`Endpoint::tick`] when it is due. It never lies in the past
//!   once the drain has ended.
//! - Time never runs back.
//!
//! # Parts
//! ```text
//!                                   Endpoint: application's verbs, states, drain
//!        ┌───────────────┬──────────────┴─┬────────────────┬───────────────┐
//!    Handshake         Sender          Receiver          State           Reset
//!    SYN, SYN-ACK      buffer, Nagle,  reassembly,       RFC 9293        RST
//!                      peer's window   window, SACK
//!                        │               │
//!                      Recovery        Acknowledger
//!                      RACK, TLP, PRR, delayed, quick
//!                      RTO, undo
//!           ┌────────────┼─────────────┐
//!       Scoreboard   RttEstimator   Congestion ── trait Controller: NewReno, Cubic
//! ```
//! Each part owns its state. All may look at the `EndpointContext` (time, profile, what the SYNs agreed on) and act on the
//! `Effects` (timers, events, counters); none knows the endpoint.
//!
//! # What it does not model
//! Payload, checksums, urgent data, path MTU discovery, accurate ECN, segmentation offload, buffer memory by the page, path
//! metrics remembered between connections; congestion control other than NewReno and CUBIC (no BBR). Window probes
//! repeat the last acknowledged position without data, as Linux does.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::sync::Arc;
//!
//! use mqttlab_tcp::{Endpoint, Profile, Role, Stack, TcpEvent, TcpOutput, TcpPlan};
//! use mqttlab_units::Instant;
//!
//! let now = Instant::ZERO;
//! let text = include_str!("../tests/stacks.json");
//! let stacks: BTreeMap<String, (TcpPlan, Stack)> = serde_json::from_str(text).unwrap();
//! let (plan, stack) = &stacks["linux"];
//! let profile = Arc::new(Profile::new(plan, stack, 1500));
//! let mut client = Endpoint::new(Arc::clone(&profile), Role::Active);
//! let mut server = Endpoint::new(profile, Role::Passive);
//! client.open(now);
//! client.write(now, 100);
//! // A network without delay: carry segments until both are silent.
//! let mut received = 0;
//! for _ in 0..4 {
//!     while let Some(output) = client.poll() {
//!         if let TcpOutput::Transmit(segment) = output {
//!             server.receive(now, &segment);
//!         }
//!         while let Some(output) = server.poll() {
//!             match output {
//!                 TcpOutput::Transmit(segment) => client.receive(now, &segment),
//!                 TcpOutput::Event(TcpEvent::Readable(offset)) => received = offset,
//!                 TcpOutput::Event(_) => {}
//!             }
//!         }
//!     }
//! }
//! assert_eq!(received, 100);
//! ```

mod ack;
mod coalescing;
mod congestion;
mod context;
mod ecn;
mod endpoint;
mod handshake;
mod memory;
mod output;
mod profile;
mod receive;
mod recovery;
mod reset;
mod segment;
mod send;
mod send_memory;
mod sequence;
mod state;
mod terms;
mod timers;
mod window;

pub use congestion::{CongestionControl, WindowUnit};
pub use context::EndpointCounters;
pub use endpoint::{Endpoint, Info, Role, TcpState};
pub use output::{TcpEvent, TcpOutput};
pub use profile::{
    Bound, DelayedAck, KeepAlive, Nagle, Profile, RtoFloor, RtoPolicy, Stack, SynPolicy, TcpPlan,
};
pub use recovery::RecoveryPhase;
pub use segment::{Ecn, Flags, SackBlocks, Segment, Timestamps};
pub use sequence::Seq;
pub use state::ConnectionState;
pub use timers::Granularity;
