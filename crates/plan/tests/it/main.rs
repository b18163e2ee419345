//! The integration tests of plans, as one program. Its allocator counts, by thread, what a test asks for.

mod check;
mod expiry;
mod growth;
mod stages;

use mqttlab_counting::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
