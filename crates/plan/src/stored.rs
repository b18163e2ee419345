//! Plans as older programs have stored them, as far as the engine still needs to know.
//!
//! | schema | |
//! |---|---|
//! | 1 | one `broker` with its port, or its `ports` where the recording was imported |
//! | 2 | `servers` with their endpoints |
//!
//! What it does not do: make a plan of them that could be performed. Python reads all of an older plan
//! (`mqttlab/recording.py`).

use std::collections::BTreeMap;

use mqttlab_layers::FramingNumber;
use mqttlab_protocol::hub_protocol;
use serde::Deserialize;
use serde_json::Value;

use crate::hub::Hubs;

/// What says which servers there were. Hosts and links, megabytes for thousands of clients, are passed over.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredServers {
    broker: Value,
    servers: Value,
    groups: Value,
}

/// The ports that servers listened on, by a stored plan of any schema; empty where it does not say.
pub fn stored_server_ports(text: &str) -> Vec<u16> {
    let stored: StoredServers = serde_json::from_str(text).unwrap_or_default();
    server_ports(&stored.broker, &stored.servers)
}

/// The same of a plan's `broker` and `servers`.
pub fn server_ports(broker: &Value, servers: &Value) -> Vec<u16> {
    let endpoints = servers.as_array().into_iter().flatten();
    let endpoints = endpoints.flat_map(|server| server["endpoints"].as_array().into_iter().flatten());
    let listed = broker["ports"].as_array().into_iter().flatten();
    let mut ports: Vec<u16> = endpoints
        .map(|endpoint| &endpoint["port"])
        .chain(listed)
        .chain([&broker["port"]])
        .filter_map(|port| u16::try_from(port.as_u64()?).ok())
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// What is spoken at the ports of hubs, by a stored plan of any schema.
pub fn stored_hubs(text: &str) -> Hubs {
    let stored: StoredServers = serde_json::from_str(text).unwrap_or_default();
    hubs(&stored.servers)
}

/// The same of a plan's `servers`.
pub fn hubs(servers: &Value) -> Hubs {
    let mut found = Hubs::new();
    for server in servers.as_array().into_iter().flatten() {
        let protocol = server["role"]["hub"]["protocol"].as_str().and_then(hub_protocol);
        let ports = server_ports(&Value::Null, &Value::Array(vec![server.clone()]));
        found.extend(protocol.iter().flat_map(|protocol| ports.iter().map(|port| (*port, *protocol))));
    }
    found
}

/// The framings that are spoken at servers' ports, by a stored plan of any schema.
pub fn stored_framings(text: &str) -> BTreeMap<u16, FramingNumber> {
    let stored: StoredServers = serde_json::from_str(text).unwrap_or_default();
    let mut found = BTreeMap::new();
    for group in stored.groups.as_array().into_iter().flatten() {
        let framing = group["transport"]["tcp"]["framing"].as_str().and_then(FramingNumber::named);
        let server =
            group["connects_to"].as_u64().map_or(&Value::Null, |number| &stored.servers[number as usize]);
        let endpoints = server["endpoints"].as_array().into_iter().flatten();
        let ports =
            endpoints.filter(|endpoint| endpoint["transport"] == "framed").map(|endpoint| &endpoint["port"]);
        let ports = ports.filter_map(|port| u16::try_from(port.as_u64()?).ok());
        found.extend(framing.iter().flat_map(|framing| ports.clone().map(|port| (port, *framing))));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_found_in_plans_of_every_schema() {
        let first = r#"{"schema": 1, "broker": {"port": 1884}}"#;
        let imported = r#"{"schema": 1, "broker": {"port": null, "ports": [1883, 8883]}}"#;
        let second = r#"{"servers": [{"endpoints": [{"port": 1885}]}, {"endpoints": [{"port": 1883}]}]}"#;
        assert_eq!(stored_server_ports(first), [1884]);
        assert_eq!(stored_server_ports(imported), [1883, 8883]);
        assert_eq!(stored_server_ports(second), [1883, 1885]);
        assert!(stored_server_ports("not a plan").is_empty());
    }

    #[test]
    fn what_is_spoken_at_a_hubs_port_is_found_and_nothing_at_others() {
        let hub = |protocol| {
            format!(r#"{{"role": {{"hub": {{"protocol": "{protocol}"}}}}, "endpoints": [{{"port": 7}}]}}"#)
        };
        let [one, other] = ["tell", "unheard-of"].map(|protocol| {
            stored_hubs(&format!(
                r#"{{"servers": [{}, {{"role": {{"broker": {{}}}}, "endpoints": [{{"port": 8}}]}}]}}"#,
                hub(protocol)
            ))
        });
        assert_eq!(
            one.iter().map(|(port, protocol)| (*port, protocol.name())).collect::<Vec<_>>(),
            [(7, "tell")]
        );
        assert!(other.is_empty() && stored_hubs("{}").is_empty());
    }
}
