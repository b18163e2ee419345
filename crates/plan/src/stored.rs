//! Plans as older programs have stored them, as far as the engine still needs to know.
//!
//! | schema | |
//! |---|---|
//! | 1 | one `broker` with its port, or its `ports` where the recording was imported |
//! | 2 | `servers` with their endpoints |
//!
//! What it does not do: make a plan of them that could be performed. Python reads all of an older plan
//! (`mqttlab/recording.py`).

use serde::Deserialize;
use serde_json::Value;

/// What says which servers there were. Hosts and links, megabytes for thousands of clients, are passed over.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredServers {
    broker: Value,
    servers: Value,
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
}
