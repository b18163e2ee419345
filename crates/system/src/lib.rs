//! Linux, as the live testbed and the servers need it: system calls behind safe functions.
//!
//! `rustix` makes the calls that it has. What it does not have is called through `libc` here, and nowhere else, so that every
//! `unsafe` of a system call stands in this crate with its reason.
//!
//! What it does not know: plans, recordings and clients.

pub mod clock;
pub mod poller;
