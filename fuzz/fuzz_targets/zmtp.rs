#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/zmtp/tests/fuzzing/checks.rs"]
mod checks;

fuzz_target!(|bytes: &[u8]| checks::decoder(bytes));
