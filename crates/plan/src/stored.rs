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

use crate::secret::is_mark;

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

/// What a stored plan of any schema says of its secrets: which fields have marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredMarks {
    /// Whether there are any.
    pub any: bool,
    /// Whether a user name is one.
    pub username: bool,
    /// Whether a resource of WebSocket is one.
    pub path: bool,
    /// The servers whose programs were told one; `None` where any may have been.
    pub servers: Option<Vec<String>>,
    /// Whether clients' programs were.
    pub clients: bool,
}

impl StoredMarks {
    /// Of a plan that is gone: anything may be secret.
    pub fn all() -> StoredMarks {
        StoredMarks { any: true, username: true, path: true, servers: None, clients: true }
    }

    /// Of a stored plan; of what is none, nothing.
    pub fn read(text: &str) -> StoredMarks {
        let plan: Value = serde_json::from_str(text).unwrap_or_default();
        let named = |name: &str| marks(&plan).any(|places| places.ends_with(&format!("/{name}")));
        let told = items(&plan["servers"]).filter(|server| marks(&server["process"]).next().is_some());
        StoredMarks {
            any: marks(&plan).next().is_some(),
            username: named("username"),
            path: named("websocket/path"),
            servers: Some(told.filter_map(|server| server["name"].as_str().map(str::to_owned)).collect()),
            clients: items(&plan["groups"]).any(|group| marks(&group["program"]).next().is_some()),
        }
    }
}

/// The places of all marks in a value: names, each behind a slash.
fn marks(value: &Value) -> impl Iterator<Item = String> {
    let mut left = vec![(String::new(), value)];
    std::iter::from_fn(move || {
        while let Some((place, value)) = left.pop() {
            match value {
                Value::String(text) if is_mark(text) => return Some(place),
                Value::Array(list) => left.extend(list.iter().map(|one| (place.clone(), one))),
                Value::Object(map) => {
                    left.extend(map.iter().map(|(name, one)| (format!("{place}/{name}"), one)))
                }
                _ => {}
            }
        }
        None
    })
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
    fn marks_are_found_with_the_fields_that_have_them() {
        let plan = r#"{
            "servers": [{"name": "a", "process": {"files": [{"text": "***0123456789abcdef"}]}}, {"name": "b"}],
            "groups": [{"protocol": {"mqtt": {"username": "***0123456789abcdef", "password": "***"}}}]
        }"#;
        let found = StoredMarks::read(plan);
        assert_eq!(found.servers.as_deref(), Some(&["a".to_owned()][..]));
        assert!(found.any && found.username && !found.path && !found.clients);
        let path = r#"{"groups": [{"transport": {"tcp": {"websocket": {"path": "***"}}}}]}"#;
        assert!(StoredMarks::read(path).path);
        for none in ["{}", "", "no plan", r#"{"servers": [{"name": "***no"}]}"#] {
            assert!(!StoredMarks::read(none).any, "{none}");
        }
    }

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
