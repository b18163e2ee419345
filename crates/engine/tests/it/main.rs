//! The integration tests of the engine's program and of what it writes, as one program. Its allocator counts, by thread, what a
//! test asks for.

mod common;
mod endings;
mod flood_memory;
mod servers;
mod summary_memory;
mod until;

use mqttlab_counting::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
