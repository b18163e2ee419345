//! Linux, as the live testbed and the servers need it: system calls behind safe functions, and what `/proc` says.
//!
//! `rustix` makes the calls that it has. What it does not have is called through `libc` here, and nowhere else, so that every
//! `unsafe` of a system call stands in this crate with its reason.
//!
//! ```text
//!   poller, sockets, clock, signals      what waits, and what it waits for
//!   namespaces, netlink, devices         networks
//!   process, spawn, priority             programs
//!   limits, cgroups, usage               what they may use, and what they have used
//! ```
//!
//! What it does not know: plans, recordings and clients.

#![allow(unsafe_code, reason = "system calls that rustix does not have")]

pub mod cgroups;
pub mod clock;
pub mod devices;
pub mod limits;
pub mod namespaces;
pub mod netlink;
pub mod poller;
pub mod priority;
pub mod process;
pub mod signals;
pub mod sockets;
pub mod spawn;
pub mod usage;
