//! The integration tests of TCP, as one program. Its allocator counts, by thread, what a test asks for.

mod allocations;
mod conversations;
mod properties;
mod stacks;

use mqttlab_counting::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
