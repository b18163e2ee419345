//! Connections as `run.json` lists them.

use std::collections::BTreeMap;

use mqttlab_capture::mqtt::SeenConnect;
use mqttlab_capture::{Analysis, ServerDirection};
use mqttlab_mqtt::terms::ServerTerms;
use mqttlab_recording::Client;
use mqttlab_units::Instant;
use serde_json::{Map, Value, json};

use super::{CLEAN, CapturedConnections};
use crate::participants::written;

impl CapturedConnections {
    /// Every connection that carries MQTT, by number, for `run.json`. Without its CONNECT little is known of it.
    pub fn as_json(&self, clients: &[Client], end: Instant) -> Value {
        let mut numbers: Vec<u32> = self.of.keys().copied().collect();
        numbers.sort_unstable();
        let listed = numbers.into_iter().take(LISTED).filter_map(|number| {
            let (conversation, ends) = (self.of.get(&number)?, self.ends.get(&number)?);
            let connect = conversation.connect.as_ref().map(|(_, connect)| connect);
            let client = clients.get(conversation.client as usize);
            let keep_alive_s = conversation.keep_alive().map(|keep_alive| keep_alive.as_ns() / 1_000_000_000);
            let until = conversation.ended.as_ref().map_or(end, |(at, _)| *at);
            Some(json!({
                "connection": number,
                "client": client.map(|client| &client.name),
                "from": written(ends.client),
                "to": written(ends.broker),
                "mqtt_version": connect.map(version),
                "keep_alive_s": keep_alive_s,
                "keep_alive_asked_s": connect.map(|connect| connect.keep_alive_s),
                "keep_alive_ignored": conversation.ignored_keep_alive(until).is_some(),
                "clean_start": connect.map(|connect| connect.flags & CLEAN != 0),
                "connack": conversation.terms.as_deref().map(terms_as_json),
                "connected_ns": conversation.connect.as_ref().map(|(at, _)| at.as_ns()),
                "ended_ns": conversation.ended.as_ref().map(|(at, _)| at.as_ns()),
                "ended_how": conversation.ended.as_ref().map(|(_, how)| how),
            }))
        });
        Value::Array(listed.collect())
    }

    /// TCP connections to brokers on which the client sent nothing, by its address, the broker and who closed them: counts and
    /// how long they were open, in nanoseconds.
    pub fn without_connect(&self, analysis: &Analysis) -> Vec<Value> {
        let mut found: BTreeMap<(String, String, &str), Vec<u64>> = BTreeMap::new();
        for connection in analysis.connections.iter().filter(|connection| connection.is_broker_s) {
            let [up, down] = &connection.directions;
            let is_silent = up.payload_bytes == 0 && connection.connect.is_none();
            // Its beginning is captured, and the handshake was completed.
            if !is_silent || up.syn == 0 || down.segments == 0 || connection.initial_rtt.is_none() {
                continue;
            }
            let Some(ends) = self.ends.get(&(connection.number as u32)) else { continue };
            let closed_by = match ends.closed {
                Some((_, ServerDirection::ToServer, false)) => "client",
                Some((_, ServerDirection::ToServer, true)) => "client (reset)",
                Some((_, ServerDirection::FromServer, false)) => "broker",
                Some((_, ServerDirection::FromServer, true)) => "broker (reset)",
                None => "open at the end",
            };
            let until = ends.closed.map_or(ends.heard, |(at, ..)| at);
            let open_ns = until.checked_since(ends.opened).unwrap_or_default().as_ns();
            let key = (ends.client.address.to_string(), written(ends.broker), closed_by);
            found.entry(key).or_default().push(open_ns);
        }
        let rows = found.into_iter().take(LISTED).map(|((from, to, closed_by), mut open_ns)| {
            open_ns.sort_unstable();
            json!({
                "from": from,
                "to": to,
                "closed_by": closed_by,
                "connections": open_ns.len(),
                "open_ns_min": open_ns.first(),
                "open_ns_p50": open_ns[(open_ns.len() - 1) / 2],
                "open_ns_max": open_ns.last(),
            })
        });
        rows.collect()
    }
}

/// One sentence on connections without a CONNECT; `None` where there are none.
pub fn without_connect_in_words(rows: &[Value]) -> Option<String> {
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap_or(0);
    let mut ways: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut addresses: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows {
        let count = number(row, "connections");
        let way = ways.entry(row["closed_by"].as_str()?).or_default();
        (way.0, way.1) = (way.0 + count, way.1.max(number(row, "open_ns_max")));
        *addresses.entry(row["from"].as_str()?).or_default() += count;
    }
    let all: u64 = addresses.values().sum();
    let (most, _) = addresses.iter().max_by_key(|(_, count)| **count)?;
    let others = match addresses.len() - 1 {
        0 => String::new(),
        1 => " and another address".into(),
        more => format!(" and {more} more addresses"),
    };
    let ended = ways.iter().map(|(closed_by, (count, open_ns))| {
        let seconds = *open_ns as f64 / 1e9;
        match *closed_by {
            "open at the end" => format!("{count} open at the end"),
            who => format!("{count} closed by the {who} after at most {seconds:.1} s"),
        }
    });
    let ended: Vec<String> = ended.collect();
    let s = if all == 1 { "" } else { "s" };
    Some(format!(
        "{all} TCP connection{s} to the broker's port carried no CONNECT, from {most}{others}: {}. Port scans, health checks \
         and clients that are stuck look so.",
        ended.join(", "),
    ))
}

/// What a CONNACK says, under the names of the specification.
fn terms_as_json(terms: &ServerTerms) -> Value {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let all = [
        ("assigned_client_identifier", json!(text(&terms.assigned_client_id))),
        ("server_keep_alive_s", json!(terms.keep_alive_s)),
        ("session_expiry_interval_s", json!(terms.session_expiry_s)),
        ("receive_maximum", json!(terms.receive_maximum)),
        ("maximum_qos", json!(terms.maximum_qos)),
        ("retain_available", json!(terms.retain_available)),
        ("maximum_packet_size", json!(terms.maximum_packet_bytes)),
        ("topic_alias_maximum", json!(terms.topic_alias_maximum)),
        ("wildcard_subscription_available", json!(terms.wildcards_available)),
        ("subscription_identifiers_available", json!(terms.subscription_ids_available)),
        ("shared_subscription_available", json!(terms.shares_available)),
        ("reason_string", json!(text(&terms.reason))),
        ("server_reference", json!(text(&terms.server_reference))),
        ("response_information", json!(text(&terms.response_information))),
    ];
    let said = all.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(said.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

/// The version as people write it.
fn version(connect: &SeenConnect) -> String {
    let bridge = if connect.is_bridge { ", bridge" } else { "" };
    match connect.level {
        3 => format!("3.1{bridge}"),
        4 => format!("3.1.1{bridge}"),
        level => format!("{level}{bridge}"),
    }
}

/// Rows of a list in `run.json`.
const LISTED: usize = 10_000;
