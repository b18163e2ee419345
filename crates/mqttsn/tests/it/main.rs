//! The integration tests of MQTT-SN, as one program.

#[path = "../fuzzing/checks.rs"]
#[allow(dead_code)]
mod checks;
mod codec;
mod conversations;
mod fuzz_bounded;
mod samples;
mod together;
mod tshark;
mod wills;
mod world;
