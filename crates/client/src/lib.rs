//! A client's life: once, for every protocol, transport and clock.
//!
//! ```text
//!            open               opened              accepted
//!   Waiting ──────► Opening ───────────► Open ───────────────► online ──► subscribed ──► ready
//!      ▲               │ refused, late     │ lost                             │ what is due is offered,
//!      └── back-off ───┴───────────────────┴──────► Gone                      │ what comes is delivered and relayed
//!                                                   no reconnect, refused for good, graceful disconnect
//! ```
//!
//! A [`Client`] is a machine between three seams, each a small interface; the first is in `session.rs`:
//!
//! ```text
//!   Session       a protocol: publish this, this packet came, it is now ──► send that packet, acknowledged, release
//!   Transport     what carries packets: open, put, write, close; bytes and system calls, or lengths and round trips
//!   Surroundings  who performs it: the time, what the plan says of a message, rows for the recording, counters
//! ```
//!
//! Contract: the shell calls a verb when something has happened ([`Client::wake`], [`Client::opened`],
//! [`Client::packet`], [`Client::message`], …), which works off everything that follows from it at that instant. Nothing
//! that a seam does calls back into the client. [`Client::next_deadline`] is a peek: the shell asks after each verb and
//! calls `wake` no later than that. What becomes of a message is the answer to the call that is about it; a
//! connection that must end is an `Err` with the [`Loss`], which the shell hands to [`Client::lose`] once it has done
//! with what it was reading.
//!
//! Open loop: the schedule says when each message is intended, whatever became of those before it, and latency counts
//! from there. What the session does not take is recorded as unsent. A message is sent when it is handed to its session,
//! written when the transport has taken its last byte.
//!
//! What it does not model: the time that an application takes to compute.

mod acceptance;
mod books;
mod churn;
mod client;
pub mod datagram;
mod facts;
mod incoming;
pub mod mqtt;
pub mod mqttsn;
mod outgoing;
pub mod protocol;
mod punctuality;
mod receivers;
mod rests;
mod retries;
mod rows;
mod schedule;
mod session;
mod signing;
mod surroundings;
mod transport;
pub mod zeromq;

pub use books::Books;
pub use client::{Client, Snapshot, State};
pub use facts::{ClientNumber, GroupFacts, GroupNumber, PublishFacts, RelayFacts, Who};
pub use incoming::Delivery;
pub use receivers::{as_published, changed_receivers, own_receivers, shares};
pub use rests::Rests;
pub use rows::Rows;
pub use session::{Admission, Arrived, PacketId, Receipt, Session, Step, Token};
pub use signing::sign;
pub use surroundings::{Arriving, MessageFacts, Offered, Surroundings};
pub use transport::{Body, Connection, Loss, Transport, not_opened};
