//! The integration tests of the analyser, as one program. Its allocator counts, by thread, what a test asks for.

#[path = "../fuzzing/checks.rs"]
mod checks;
mod conversations;
mod credentials;
mod dialects;
mod documentation;
mod formats;
mod fuzz_bounded;
mod memory;
mod preambles;
mod recorded;
mod schuhmacher2018;
mod tshark;
mod tunnels;
mod websocket;

use mqttlab_counting::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
