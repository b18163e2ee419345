//! Plans as older programs have stored them, as far as the engine still needs to know.
//!
//! | schema | |
//! |---|---|
//! | 1 | one `broker` with its port, or its `ports` where the recording was imported |
//! | 2 | `servers` with their endpoints |
//!
//! What it does not do: make a plan of them that could be performed. Python reads all of an older plan
//! (`mqttlab/recording.py`).

use mqttlab_layers::FramingNumber;
use mqttlab_protocol::hub_protocol;
use serde::Deserialize;
use serde_json::Value;

use crate::hub::Hubs;
use crate::roster::Framings;

/// What a stored plan says of its servers. Hosts and links, megabytes for thousands of clients, are passed over.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct StoredServers {
    broker: Value,
    servers: Value,
    groups: Value,
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

    /// What is spoken at the ports of hubs.
    pub fn hubs(&self) -> Hubs {
        let mut found = Hubs::new();
        for server in items(&self.servers) {
            let protocol = server["role"]["hub"]["protocol"].as_str().and_then(hub_protocol);
            let ports = items(&server["endpoints"]).filter_map(|endpoint| port(&endpoint["port"]));
            found.extend(ports.filter_map(|port| Some((port, protocol?))));
        }
        found
    }

    /// The framings that are spoken at servers' ports.
    pub fn framings(&self) -> Framings {
        let mut found = Framings::new();
        for group in items(&self.groups) {
            let framing = group["transport"]["tcp"]["framing"].as_str().and_then(FramingNumber::named);
            let server = group["connects_to"].as_u64().map(|number| &self.servers[number as usize]);
            let endpoints = server.into_iter().flat_map(|server| items(&server["endpoints"]));
            let framed = endpoints.filter(|endpoint| endpoint["transport"] == "framed");
            let ports = framed.filter_map(|endpoint| port(&endpoint["port"]));
            found.extend(ports.filter_map(|port| Some((port, framing?))));
        }
        found
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

    #[test]
    fn what_is_spoken_at_a_hubs_port_is_found_and_nothing_at_others() {
        let hub = |protocol| {
            format!(r#"{{"role": {{"hub": {{"protocol": "{protocol}"}}}}, "endpoints": [{{"port": 7}}]}}"#)
        };
        let [one, other] = ["tell", "unheard-of"].map(|protocol| {
            let text = format!(
                r#"{{"servers": [{}, {{"role": {{"broker": {{}}}}, "endpoints": [{{"port": 8}}]}}]}}"#,
                hub(protocol)
            );
            StoredServers::read(&text).hubs()
        });
        assert_eq!(
            one.iter().map(|(port, protocol)| (*port, protocol.name())).collect::<Vec<_>>(),
            [(7, "tell")]
        );
        assert!(other.is_empty() && StoredServers::read("{}").hubs().is_empty());
    }

    #[test]
    fn a_framing_is_spoken_at_the_port_of_the_server_that_its_groups_connect_to() {
        let servers = r#"[{"endpoints": [{"port": 1, "transport": "framed"}]},
            {"endpoints": [{"port": 2, "transport": "tcp"}, {"port": 3, "transport": "framed"}]}]"#;
        let found = |groups| {
            let stored = StoredServers::read(&format!(r#"{{"servers": {servers}, "groups": {groups}}}"#));
            let framings = stored.framings().into_iter();
            framings.map(|(port, framing)| (port, framing.framing().name())).collect::<Vec<_>>()
        };
        let framed = r#"{"connects_to": 1, "transport": {"tcp": {"framing": "framed"}}}"#;
        assert_eq!(found(format!("[{framed}]")), [(3, "framed")]);
        for other in [framed.replace("\"framed\"", "\"unheard-of\""), framed.replace('1', "9"), "{}".into()] {
            assert_eq!(found(format!("[{other}]")), []);
        }
        assert_eq!(found("null".into()), []);
    }
}
