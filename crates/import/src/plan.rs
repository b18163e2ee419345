//! The plan of an import: what readers of a recording expect to find in `plan.json`, as far as it is known.
//!
//! It is not a plan that the engine could perform: nobody knows what was intended.

use std::collections::BTreeMap;

use mqttlab_recording::Layout;
use serde_json::{Value, json};

use super::options::{EvidenceKind, ImportOrder};

/// What the evidence says about the whole.
pub struct Facts {
    /// From the first thing that was seen to the last, in nanoseconds.
    pub length_ns: u64,
    /// The broker as reports call it.
    pub broker: String,
    /// The broker's port, when it is known.
    pub broker_port: Option<u16>,
    /// All ports that brokers were found on, or may listen on.
    pub broker_ports: Vec<u16>,
    /// Gateways of MQTT-SN as reports call them, and their ports.
    pub gateways: Vec<String>,
    /// See above.
    pub gateway_ports: Vec<u16>,
    /// What was between clients and broker, in words.
    pub network: String,
}

/// The plan as it is stored.
pub fn plan(order: &ImportOrder, layout: &Layout, facts: &Facts) -> Value {
    let mut groups: BTreeMap<&str, u32> = BTreeMap::new();
    for client in &layout.clients {
        *groups.entry(&client.group).or_default() += 1;
    }
    let groups: Vec<Value> =
        groups.into_iter().map(|(name, count)| json!({"name": name, "count": count})).collect();
    let hosts: Vec<Value> = layout.hosts.iter().map(|name| json!({"name": name})).collect();
    let (warm_up_ns, duration_ns, cool_down_ns) = match layout.measurement_end_ns {
        u64::MAX => (0, facts.length_ns, 0),
        end => (layout.warm_up_end_ns, end - layout.warm_up_end_ns, facts.length_ns.saturating_sub(end)),
    };
    let links: Vec<Value> = layout.links.iter().map(|name| json!({"name": name})).collect();
    json!({
        "schema": mqttlab_plan::SCHEMA,
        "name": order.name,
        "description": description(order),
        "backend": "import",
        "seed": 0,
        "repetition": 0,
        "phases": {
            "connect_timeout_ns": 0,
            "warm_up_ns": warm_up_ns,
            "duration_ns": duration_ns,
            "cool_down_ns": cool_down_ns,
        },
        "hosts": hosts,
        "network": {"kind": "imported", "description": facts.network, "links": links, "paths": []},
        "servers": servers(facts),
        "groups": groups,
        "sources": order.files,
    })
}

/// The broker, and the gateways of MQTT-SN, if there were any.
fn servers(facts: &Facts) -> Vec<Value> {
    let mut servers = vec![broker(facts)];
    if !facts.gateways.is_empty() {
        let ports = facts.gateway_ports.iter();
        let endpoints: Vec<Value> = ports.map(|port| json!({"transport": "udp", "port": port})).collect();
        let kind = format!("captured at {}", facts.gateways.join(", "));
        servers.push(json!({
            "name": "gateway",
            "kind": kind,
            "version": "",
            "endpoints": endpoints,
            "role": "gateway",
        }));
    }
    servers
}

/// The broker, with every port that it may have listened on; the one that is sure first.
fn broker(facts: &Facts) -> Value {
    let others = facts.broker_ports.iter().filter(|port| Some(**port) != facts.broker_port);
    let ports = facts.broker_port.iter().chain(others);
    let endpoints: Vec<Value> = ports.map(|port| json!({"transport": "tcp", "port": port})).collect();
    json!({"name": "broker", "kind": facts.broker, "version": "", "endpoints": endpoints, "role": {"broker": {}}})
}

fn description(order: &ImportOrder) -> String {
    let what = match order.evidence {
        EvidenceKind::Capture => "capture",
        EvidenceKind::Log => "log",
        EvidenceKind::Csv => "table of messages",
    };
    let files: Vec<String> = order
        .files
        .iter()
        .map(|file| file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned())
        .collect();
    let many = if files.len() == 1 { "" } else { "s" };
    let (shown, rest) = files.split_at(files.len().min(FILES_NAMED));
    let others = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    format!("Imported from the {what}{many} {}{others}.", shown.join(", "))
}

/// Files that a description names.
const FILES_NAMED: usize = 4;
