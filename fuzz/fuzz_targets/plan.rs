//! Text that may be a plan: it is refused with a reason, or simulated for one virtual second, without a panic.
//!
//! Where libFuzzer has a plan, fields of it are changed more often than bytes: most texts with changed bytes are no JSON any
//! more, and end at its reader.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use mqttlab_units::Seed;

#[path = "../../crates/sim/tests/fuzzing/plans.rs"]
mod plans;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let scratch = std::env::temp_dir().join(format!("mqttlab-plans-{}", std::process::id()));
    let _ = std::fs::create_dir_all(&scratch);
    plans::check(text, &scratch);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut dice = Seed(seed.into()).dice();
    let plan = serde_json::from_slice(&data[..size]).ok().filter(|_| dice.below(8) > 0);
    let Some(mut plan) = plan else { return fuzzer_mutate(data, size, max_size) };
    for _ in 0..1 + dice.below(3) {
        plans::mutate(&mut plan, &mut dice);
    }
    let text = plan.to_string();
    if text.len() > max_size.min(data.len()) {
        return fuzzer_mutate(data, size, max_size);
    }
    data[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
});
