//! The integration tests of recordings, as one program. Its allocator counts, by thread, what a test asks for.

mod common;
mod crash;
mod encodings;
mod fates;
mod folding;
mod growth;
mod own_packets;
mod pcapng;
mod recording;
mod reference;
mod shares;
mod turns;

use mqttlab_counting::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
