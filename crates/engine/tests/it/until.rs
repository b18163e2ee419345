//! A simulation that stops to be looked at: what the program prints, and what it leaves.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

fn plan(backend: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/plan/pair.json");
    let mut plan: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    plan["backend"] = json!(backend);
    plan
}

fn engine(plan: &Value, directory: &Path, until: &str) -> Output {
    let mut engine = Command::new(env!("CARGO_BIN_EXE_mqttlab-engine"));
    engine.arg("run").arg("--directory").arg(directory).args(["--until", until]);
    engine.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut engine = engine.spawn().unwrap();
    engine.stdin.take().unwrap().write_all(plan.to_string().as_bytes()).unwrap();
    engine.wait_with_output().unwrap()
}

fn scratch(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("mqttlab-until-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    directory
}

#[test]
fn the_state_is_printed_and_the_recording_so_far_is_kept() {
    let directory = scratch("kept");
    let done = engine(&plan("sim"), &directory, "0.75");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let state: Value = serde_json::from_slice(&done.stdout).expect("one JSON object and nothing else");
    assert_eq!((&state["at_ns"], &state["phase"]), (&json!(750_000_000), &json!("measurement")));
    assert!(state["counts"]["offered"].as_u64() > Some(0), "{state}");
    let why: Value = serde_json::from_slice(&fs::read(directory.join("incomplete.json")).unwrap()).unwrap();
    assert_eq!(why["reason"], json!({"kind": "stopped_at", "at_ns": 750_000_000}));
    assert!(directory.join("messages.parquet").is_file() && !directory.join("run.json").exists());
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_time_beyond_the_end_leaves_a_whole_recording() {
    let directory = scratch("whole");
    let done = engine(&plan("sim"), &directory, "1000");
    let state: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!((done.status.code(), &state["phase"]), (Some(0), &json!("over")));
    assert!(directory.join("run.json").is_file());
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_live_run_cannot_be_stopped_to_be_looked_at() {
    let directory = scratch("live");
    let done = engine(&plan("live"), &directory, "1");
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("`backend` is live"));
    assert!(!directory.exists());
}
