//! However a run ends, nothing is left of it but its recording, which says how it ended.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const ENGINE: &str = env!("CARGO_BIN_EXE_mqttlab-engine");
/// Bytes that a spool without rows has at most.
const SPOOL_HEADER_MAX: u64 = 64;

/// A run under way, in a directory of its own.
struct Run {
    engine: Child,
    output: Option<BufReader<ChildStdout>>,
    directory: PathBuf,
}

impl Run {
    /// Starts a run that would take minutes, and waits until its measurement has begun. `None`, with the reason
    /// printed, where namespaces or Mosquitto are missing.
    fn start(name: &str) -> Option<Run> {
        let doctor: Value =
            serde_json::from_slice(&Command::new(ENGINE).arg("doctor").output().unwrap().stdout).unwrap();
        let can = |what: &str| {
            let capabilities = doctor["capabilities"].as_array().unwrap();
            capabilities.iter().any(|found| found["name"] == what && found["available"] == true)
        };
        let has_port = can("tun") || can("packet");
        let has_broker = Command::new("mosquitto").arg("-h").output().is_ok();
        if !can("namespaces") || !has_port || !has_broker {
            eprintln!(
                "skipped: needs namespaces ({}), TUN or packet sockets ({has_port}), Mosquitto ({has_broker})",
                can("namespaces")
            );
            return None;
        }
        let directory = std::env::temp_dir().join(format!("mqttlab-test-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        let mut engine = spawn(&plan(), &directory);
        let output = Some(BufReader::new(engine.stdout.take().unwrap()));
        let mut run = Run { engine, output, directory };
        run.wait_for("\"phase\":\"measurement\"");
        Some(run)
    }

    /// Reads progress until a line contains `text`, or all of it.
    fn wait_for(&mut self, text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for line in self.output.as_mut().expect("it is read until it is closed").lines() {
            lines.push(line.unwrap());
            if lines[lines.len() - 1].contains(text) {
                return lines;
            }
        }
        panic!("the engine ended before it said {text}: {lines:#?}");
    }

    /// Waits until these spools have rows on the disk.
    fn wait_for_rows(&self, spools: &[&str]) {
        let deadline = Instant::now() + Duration::from_secs(20);
        let bytes = |spool: &&str| fs::metadata(self.directory.join(spool)).map_or(0, |found| found.len());
        while !spools.iter().all(|spool| bytes(spool) > SPOOL_HEADER_MAX) {
            assert!(Instant::now() < deadline, "no rows: {:?}", spools.iter().map(bytes).collect::<Vec<_>>());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, signal: &str) {
        send(signal, self.engine.id());
    }

    /// The processes that the engine has started, by number.
    fn descendants(&self) -> BTreeSet<u32> {
        let mut found = BTreeSet::from([self.engine.id()]);
        loop {
            let more = processes()
                .into_iter()
                .filter(|(_, parent)| found.contains(parent))
                .map(|(process, _)| process);
            let all: BTreeSet<u32> = more.chain(found.iter().copied()).collect();
            if all == found {
                found.remove(&self.engine.id());
                return found;
            }
            found = all;
        }
    }

    fn exit_code(&mut self) -> Option<i32> {
        self.engine.wait().unwrap().code()
    }

    fn incomplete(&self) -> Value {
        assert!(!self.directory.join("run.json").exists(), "the run is not called complete");
        serde_json::from_slice(&fs::read(self.directory.join("incomplete.json")).unwrap()).unwrap()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.engine.kill();
        let _ = self.engine.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn spawn(plan: &Value, directory: &Path) -> Child {
    let mut command = Command::new(ENGINE);
    command.arg("run").arg("--directory").arg(directory);
    let mut engine = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    engine.stdin.take().unwrap().write_all(plan.to_string().as_bytes()).unwrap();
    engine
}

fn send(signal: &str, process: u32) {
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().unwrap().success());
}

/// Every process with its parent.
fn processes() -> Vec<(u32, u32)> {
    let numbers =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parent = |process: u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    numbers.filter_map(|process| Some((process, parent(process)?))).collect()
}

fn network_namespace(process: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/net")).ok()
}

/// Waits until none of the processes exists and nobody is in the namespace; the kernel needs a moment for that.
fn assert_gone(processes_then: &BTreeSet<u32>, namespace: &Path) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let now = processes();
        let left = now.iter().filter(|(process, _)| {
            processes_then.contains(process) || network_namespace(*process).as_deref() == Some(namespace)
        });
        let left: Vec<_> = left.collect();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "still there: {left:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// One publisher, one subscriber and Mosquitto, 10 ms apart.
fn plan() -> Value {
    let tcp = json!({
        "profile": "linux", "congestion_control": "reno", "sack": true, "timestamps": true, "window_scaling": true,
        "rto_min_ns": 200_000_000, "rto_max_ns": 120_000_000_000_u64, "delayed_ack": true,
        "delayed_ack_max_ns": null, "initial_window_segments": 10, "mss_bytes": null, "send_buffer_bytes": null,
        "receive_buffer_bytes": null, "tail_loss_probe": true, "syn_retries": 6, "syn_linear_retries": 4,
    });
    let link = |name: &str| {
        json!({
            "name": name, "rate_bit_s": 1_000_000, "overhead_bytes": 14, "minimum_frame_bytes": 0,
            "queue": { "limit_packets": null, "limit_bytes": null, "counts_delay_line": false },
            "delay": {
                "law": "constant", "mean_ns": 10_000_000, "jitter_ns": 0, "correlation": [0, 1], "keep_order": true,
            },
            "loss": { "kind": "none" }, "loss_at": "entry", "duplication": [0, 1], "corruption": [0, 1],
            "reordering": { "probability": [0, 1], "gap": 1 },
        })
    };
    let group = |name: &str, publish: Value, subscriptions: Value| {
        json!({
            "name": name, "count": 1, "host": 1, "host_step": 0,
            "connects_to": 0, "transport": { "tcp": { "nodelay": true } },
            "protocol": { "mqtt": {
                "version": "3.1.1", "client_id": "{group}-{client}", "keep_alive_s": 60, "clean_session": true,
                "session_expiry_s": 0, "max_inflight": 20, "max_queued": 1000, "receive_maximum": 65535, "deliver_on_release": true, "retry": null,
                "username": null, "password": null, "will": null,
            } },
            "reconnect": {
                "enabled": true, "initial_ns": 1_000_000_000, "maximum_ns": 1_000_000_000, "jitter": [0, 1],
                "connect_timeout_ns": 30_000_000_000_u64,
            },
            "connect_over_ns": 0, "publish": publish, "subscriptions": subscriptions, "relay": null,
            "late_after_ns": null,
        })
    };
    let publish = json!({
        "topic": "t", "topics": 1, "qos": 1, "retain": false, "payload": { "kind": "fixed", "bytes": 64 },
        "arrival": { "kind": "constant", "interval_ns": 20_000_000 }, "start_phase": "even", "messages": null,
    });
    // The only mapped user in a user namespace is root, so that Mosquitto cannot change to its own.
    let configuration = "listener 1883 10.0.0.1\nallow_anonymous true\nuser root\n";
    json!({
        "schema": 2, "name": "endings", "description": "", "backend": "live", "seed": 1, "repetition": 0,
        "phases": {
            "connect_timeout_ns": 30_000_000_000_u64, "warm_up_ns": 100_000_000,
            "duration_ns": 300_000_000_000_u64, "cool_down_ns": 1_000_000_000,
        },
        "hosts": [
            { "name": "broker", "address": "10.0.0.1", "tcp": tcp },
            { "name": "field", "address": "10.0.0.2", "tcp": tcp },
        ],
        "network": {
            "kind": "emulated", "description": "", "mtu_bytes": 1500, "links": [link("up"), link("down")],
            "paths": [
                { "from": 1, "to": 0, "hops": [{ "link": 0 }] }, { "from": 0, "to": 1, "hops": [{ "link": 1 }] },
            ],
        },
        "servers": [{
            "name": "broker", "kind": "mosquitto", "version": "", "host": 0,
            "endpoints": [{ "transport": "tcp", "address": "10.0.0.1", "port": 1883 }],
            "process": {
                "command": ["mosquitto", "-c", "{directory}/mosquitto.conf"], "environment": {},
                "files": [{ "path": "mosquitto.conf", "text": configuration }], "ready": "connack",
                "start_timeout_ns": 20_000_000_000_u64,
            },
            "when_it_dies": "end_run",
            "role": { "broker": {
                "settings": { "tcp_nodelay": false, "max_inflight": 20, "max_queued": 1000, "persistence": false },
                "service": { "per_packet_ns": 0, "per_copy_ns": 0, "jitter": [0, 1] },
            } },
        }],
        "groups": [
            group("sink", Value::Null, json!([{ "filter": "t", "qos": 1 }])),
            group("source", publish, json!([])),
        ],
        "recording": { "packets": true, "pcapng": false, "resource_interval_ns": 200_000_000 },
        "live": { "real_time": false, "latency_compensation_ns": 0, "port": "auto", "workers": 1 },
        "sim": { "stop": null, "detect_transient": false, "client_wake_up_ns": 0, "tcp_stacks": {} },
    })
}

#[test]
fn a_killed_engine_leaves_no_process_and_no_namespace_and_its_recording_can_be_read() {
    let Some(mut run) = Run::start("killed") else { return };
    run.wait_for("\"event\":\"tick\"");
    let started = run.descendants();
    assert!(started.len() >= 2, "init and the broker: {started:?}");
    let namespace = started.iter().find_map(|process| network_namespace(*process)).unwrap();
    assert_ne!(Some(&namespace), network_namespace(std::process::id()).as_ref());
    run.wait_for_rows(&["sent.spool", "received.spool"]);
    run.signal("-KILL");
    run.exit_code();
    assert_gone(&started, &namespace);
    let recovered = Command::new(ENGINE).arg("recover").arg(&run.directory).output().unwrap();
    assert!(recovered.status.success(), "{}", String::from_utf8_lossy(&recovered.stderr));
    let said = run.incomplete();
    assert_eq!(said["status"], "incomplete");
    assert!(said["messages"]["delivered"].as_u64().unwrap() > 0, "{said}");
}

#[test]
fn a_dead_broker_ends_the_run_with_a_verdict() {
    let Some(mut run) = Run::start("broker") else { return };
    let name = |process: &u32| fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    let broker = run.descendants().into_iter().find(|process| name(process).trim() == "mosquitto");
    send("-KILL", broker.expect("Mosquitto runs"));
    let last = run.wait_for("\"event\":\"done\"").pop().unwrap();
    assert!(last.contains("incomplete") && last.contains("killed by signal 9"), "{last}");
    assert_eq!(run.exit_code(), Some(3));
    assert_eq!(run.incomplete()["status"], "incomplete");
    assert!(run.directory.join("broker.log").exists());
}

#[test]
fn an_interrupted_run_keeps_its_recording() {
    let Some(mut run) = Run::start("interrupted") else { return };
    let started = run.descendants();
    let namespace = started.iter().find_map(|process| network_namespace(*process)).unwrap();
    run.signal("-INT");
    let last = run.wait_for("\"event\":\"done\"").pop().unwrap();
    assert!(last.contains("incomplete") && last.contains("SIGINT"), "{last}");
    assert_eq!(run.exit_code(), Some(3));
    assert_eq!(run.incomplete()["reason"], json!({"kind": "signal", "name": "SIGINT"}));
    assert_gone(&started, &namespace);
}

#[test]
fn an_engine_whose_reader_is_gone_ends() {
    let Some(mut run) = Run::start("abandoned") else { return };
    let started = run.descendants();
    let namespace = started.iter().find_map(|process| network_namespace(*process)).unwrap();
    run.output = None;
    assert_eq!(run.exit_code(), Some(3));
    assert_gone(&started, &namespace);
}

#[test]
fn a_wrong_plan_starts_nothing() {
    let directory = std::env::temp_dir().join(format!("mqttlab-test-{}-wrong", std::process::id()));
    let mut wrong = plan();
    wrong["servers"][0]["host"] = json!(7);
    let mut engine = Command::new(ENGINE)
        .arg("run")
        .arg("--directory")
        .arg(&directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    engine.stdin.take().unwrap().write_all(wrong.to_string().as_bytes()).unwrap();
    let output = engine.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("`servers[0].host` is host 7, but there are 2 hosts")
    );
    assert!(!directory.exists());
}
