//! Text that may be a plan: it is refused with a reason, or simulated for a bounded number of events, without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mqttlab_units::Seed;

#[path = "../../crates/sim/tests/fuzzing/plans.rs"]
mod plans;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let scratch = std::env::temp_dir().join(format!("mqttlab-plans-{}", std::process::id()));
    let _ = std::fs::create_dir_all(&scratch);
    plans::check(text, &scratch);
    // libFuzzer changes bytes; most of these are no JSON any more. Changes of fields come on top.
    if let Ok(mut plan) = serde_json::from_str(text) {
        let mut dice = Seed(bytes.len() as u64).dice();
        plans::mutate(&mut plan, &mut dice);
        plans::check(&plan.to_string(), &scratch);
    }
});
