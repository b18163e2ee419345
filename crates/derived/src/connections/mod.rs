//! One connection at a time: its frames, its round trips, its retransmissions, and when TCP sent the bytes of each packet.

pub(crate) mod connection;
pub(crate) mod retransmissions;
pub(crate) mod streams;
