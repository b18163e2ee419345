//! The machine that a recording is made on.

use std::fs;

use serde_json::{Value, json};

/// What the machine is, as far as Linux tells; what it does not tell is null.
pub(crate) fn describe() -> Value {
    let read = |path: &str| fs::read_to_string(path).ok();
    let line = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    let memory_kib = read("/proc/meminfo").and_then(|text| line(&text, "MemTotal"));
    let memory_kib = memory_kib.and_then(|text| text.trim_end_matches(" kB").parse::<u64>().ok());
    json!({
        "system": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
        "kernel": read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_string()),
        "processor": read("/proc/cpuinfo").and_then(|text| line(&text, "model name")),
        "processors": std::thread::available_parallelism().ok().map(usize::from),
        "memory_bytes": memory_kib.map(|kib| kib * 1024),
    })
}
