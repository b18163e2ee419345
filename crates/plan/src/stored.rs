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

/// What a stored plan says of its servers. Hosts and links, megabytes for thousands of clients, are passed over.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct StoredServers {
    broker: Value,
    servers: Value,
}

impl StoredServers {
    /// Of a stored plan of any schema; of what is none, nothing.
    pub fn read(text: &str) -> StoredServers {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// The ports that servers listened on; empty where it does not say.
    pub fn ports(&self) -> Vec<u16> {
        server_ports(&self.broker, &self.servers)
    }
}

/// The ports that servers listened on, by a plan's `broker` and `servers`.
pub fn server_ports(broker: &Value, servers: &Value) -> Vec<u16> {
    let endpoints = items(servers).flat_map(|server| items(&server["endpoints"]));
    let ports = endpoints.map(|endpoint| &endpoint["port"]);
    let ports = ports.chain(items(&broker["ports"])).chain([&broker["port"]]);
    let mut ports: Vec<u16> = ports.filter_map(port).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// What is in a list; nothing where it is none.
fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn port(number: &Value) -> Option<u16> {
    u16::try_from(number.as_u64()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_found_in_plans_of_every_schema() {
        let first = r#"{"schema": 1, "broker": {"port": 1884}}"#;
        let imported = r#"{"schema": 1, "broker": {"port": null, "ports": [1883, 8883]}}"#;
        let second = r#"{"servers": [{"endpoints": [{"port": 1885}]}, {"endpoints": [{"port": 1883}]}]}"#;
        assert_eq!(StoredServers::read(first).ports(), [1884]);
        assert_eq!(StoredServers::read(imported).ports(), [1883, 8883]);
        assert_eq!(StoredServers::read(second).ports(), [1883, 1885]);
        assert!(StoredServers::read("not a plan").ports().is_empty());
    }
}
