//! A small plan for tests, and where they may run.

use mqttlab_plan::Plan;
use mqttlab_system::namespaces::Namespace;
use serde_json::{Value, json};

/// Says why a test does not run, where namespaces are not permitted.
pub fn namespaces_are_permitted() -> bool {
    let tried = Namespace::new().and_then(|_| std::fs::File::open("/dev/net/tun"));
    tried.inspect_err(|error| eprintln!("skipped: no namespaces or no TUN here: {error}")).is_ok()
}

/// Two hosts, `broker` and `client`, on an emulated network whose links do nothing.
pub fn plan(tcp: &Value) -> Plan {
    let hosts = [("broker", "10.0.0.1"), ("client", "10.0.0.2")]
        .map(|(name, address)| json!({ "name": name, "address": address, "tcp": tcp }));
    let plan = json!({
        "schema": 2, "name": "test", "description": "", "backend": "live", "seed": 1, "repetition": 0,
        "phases": { "connect_timeout_ns": 1, "warm_up_ns": 0, "duration_ns": 1, "cool_down_ns": 0 },
        "hosts": hosts,
        "network": {
            "kind": "emulated", "description": "", "mtu_bytes": 1500, "links": [],
            "paths": [{ "from": 0, "to": 1, "hops": [] }, { "from": 1, "to": 0, "hops": [] }],
        },
        "servers": [{
            "name": "broker", "kind": "none", "version": "", "host": 0,
            "endpoints": [{ "transport": "tcp", "address": "10.0.0.1", "port": 1883 }],
            "process": null, "when_it_dies": "end_run",
            "role": { "broker": {
                "settings": { "tcp_nodelay": true, "max_inflight": 0, "max_queued": 0, "persistence": false },
                "service": { "per_packet_ns": 0, "per_copy_ns": 0, "jitter": [0, 1] },
            } },
        }],
        "groups": [{
            "name": "g", "count": 1, "host": 1, "host_step": 0, "connects_to": 0,
            "transport": { "tcp": { "nodelay": true } },
            "protocol": { "mqtt": {
                "version": "3.1.1", "client_id": "c", "keep_alive_s": 0, "clean_session": true,
                "session_expiry_s": 0, "max_inflight": 1, "max_queued": 0, "receive_maximum": 1, "deliver_on_release": true,
                "retry": null, "username": null, "password": null, "will": null,
            } },
            "reconnect": {
                "enabled": false, "initial_ns": 0, "maximum_ns": 0, "jitter": [0, 1], "connect_timeout_ns": 1,
            },
            "connect_over_ns": 0, "publish": null, "subscriptions": [], "relay": null, "late_after_ns": null,
        }],
        "recording": { "packets": true, "pcapng": false, "resource_interval_ns": 1_000_000_000 },
        "live": { "real_time": false, "latency_compensation_ns": null, "port": "tun", "workers": 1 },
        "sim": { "stop": null, "detect_transient": false, "client_wake_up_ns": 0, "tcp_stacks": {} },
    });
    Plan::from_json(&plan.to_string()).expect("the test's plan is one")
}

/// TCP as Linux has it, but with Reno.
pub fn tcp() -> Value {
    json!({
        "profile": "linux", "congestion_control": "reno", "sack": true, "timestamps": true, "window_scaling": true,
        "rto_min_ns": 200_000_000, "rto_max_ns": 120_000_000_000_u64, "delayed_ack": true, "delayed_ack_max_ns": null,
        "initial_window_segments": 10, "mss_bytes": null, "send_buffer_bytes": null, "receive_buffer_bytes": null,
        "tail_loss_probe": true, "syn_retries": 6, "syn_linear_retries": 4,
    })
}
