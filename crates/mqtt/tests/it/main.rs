//! The integration tests of MQTT packets, clients and brokers, as one program. Its allocator counts, by thread, what a test asks
//! for.

mod broker;
mod broker_allocations;
mod codec;
mod conversations;

use mqttlab_counting::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
