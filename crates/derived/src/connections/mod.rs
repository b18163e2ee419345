//! One connection at a time: its frames, its round trips, its retransmissions, and when TCP sent the bytes of each packet.

pub(crate) mod connection;
pub(crate) mod frame_times;
pub(crate) mod retransmissions;
pub(crate) mod segment_flight;
pub(crate) mod streams;
