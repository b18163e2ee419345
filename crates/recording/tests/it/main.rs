//! The integration tests of recordings, as one program.

mod common;
mod crash;
mod encodings;
mod fates;
mod own_packets;
mod pcapng;
mod recording;
mod reference;
