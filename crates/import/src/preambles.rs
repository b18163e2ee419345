//! What a capture says of what stands before MQTT: proxies that refuse, tunnels, and other protocols at the broker's port.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use mqttlab_capture::{AnalysedConnection, Analysis, ConnectionProtocol, Preamble, SocketEndpoint};
use mqttlab_units::Instant;
use serde_json::{Value, json};

use super::options::ImportOrder;
use super::participants::written;

/// Why the numbers are not the whole truth.
pub fn reasons(analysis: &Analysis, order: &ImportOrder, reasons: &mut Vec<String>) {
    say_strange(analysis, order, reasons);
    say_both_sides(analysis, reasons);
    say_targets(analysis, reasons);
}

/// Connections that begin with another protocol, by what they begin with.
fn say_strange(analysis: &Analysis, order: &ImportOrder, reasons: &mut Vec<String>) {
    let mut kinds: BTreeMap<(u16, String), [u64; 3]> = BTreeMap::new();
    for (connection, bytes) in strange(analysis) {
        let [count, packets, skipped] = kinds.entry((connection.server.port, described(bytes))).or_default();
        *count += 1;
        for way in &connection.directions {
            *packets += way.packets.iter().sum::<u64>();
            *skipped += way.skipped_bytes;
        }
    }
    let more = kinds.len().saturating_sub(SHOWN);
    for ((port, what), [count, packets, skipped]) in kinds.into_iter().take(SHOWN) {
        let (s, begin) = if count == 1 { ("", "begins") } else { ("s", "begin") };
        let rest = match (packets, order.are_ports_given) {
            (0, false) => {
                "nothing of that is imported. Say with --broker-port where the broker listens.".to_owned()
            }
            (0, true) => "nothing of that is imported.".to_owned(),
            _ => format!(
                "{skipped} bytes were skipped to find MQTT behind it, and messages in them are not counted."
            ),
        };
        reasons.push(format!(
            "{count} connection{s} to port {port} {begin} with {what}, not with a CONNECT: {rest}"
        ));
    }
    if more > 0 {
        reasons.push(format!("{more} other beginnings that are no CONNECT: nothing of them is imported."));
    }
}

fn strange(analysis: &Analysis) -> impl Iterator<Item = (&AnalysedConnection, &[u8])> {
    let broker_s = analysis.connections.iter().filter(|connection| connection.is_broker_s);
    broker_s.filter_map(|connection| Some((connection, connection.strange_bytes.as_deref()?)))
}

/// How often framing was lost, without connections that begin with another protocol: what they begin with says why.
pub fn impossible(analysis: &Analysis) -> u64 {
    let directions = strange(analysis).flat_map(|(connection, _)| &connection.directions);
    let explained: u64 = directions.map(|way| way.impossible).sum();
    analysis.total.impossible.saturating_sub(explained)
}

/// A protocol's first bytes in words.
fn described(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    let is_text = line.len() >= TEXT_MIN && line.iter().all(|byte| matches!(byte, b' '..=b'~'));
    let text = || String::from_utf8_lossy(&line[..line.len().min(TEXT_MAX)]).into_owned();
    if let Some((_, name)) = KNOWN.iter().find(|(first, _)| bytes.starts_with(first)) {
        return if is_text { format!("{name} (\"{}\")", text()) } else { (*name).to_owned() };
    }
    if is_text {
        return format!("the text \"{}\"", text());
    }
    let shown: Vec<String> = bytes.iter().take(BYTES_SHOWN).map(|byte| format!("{byte:02x}")).collect();
    format!("the bytes {}{}", shown.join(" "), if bytes.len() > BYTES_SHOWN { " …" } else { "" })
}

/// Connections of which the capture has both sides of a balancer: each message would count twice.
fn say_both_sides(analysis: &Analysis, reasons: &mut Vec<String>) {
    let ends: HashSet<SocketEndpoint> = mqtt(analysis).map(|connection| connection.client).collect();
    let named = mqtt(analysis).filter_map(|connection| connection.preamble.as_ref()?.client);
    let count = named.filter(|client| ends.contains(client)).count();
    if count > 0 {
        let (s, is, its) =
            if count == 1 { ("", "is", "its messages count") } else { ("s", "are", "their messages count") };
        reasons.push(format!(
            "{count} connection{s} {is} in the capture on both sides of a balancer, as PROXY headers say: {its} twice. \
             Import one side alone (tcpdump -r IN -w OUT host BROKER)."
        ));
    }
}

/// One proxy that leads to several brokers whose addresses are not known.
fn say_targets(analysis: &Analysis, reasons: &mut Vec<String>) {
    let mut targets: BTreeMap<SocketEndpoint, BTreeSet<&str>> = BTreeMap::new();
    for connection in mqtt(analysis) {
        let Some(preamble) = connection.preamble.as_deref().filter(|it| it.server().is_none()) else {
            continue;
        };
        if let Some(target) = &preamble.target {
            targets.entry(connection.server).or_default().insert(target);
        }
    }
    for (proxy, targets) in targets.into_iter().filter(|(_, targets)| targets.len() > 1) {
        let shown: Vec<&str> = targets.iter().copied().take(SHOWN).collect();
        reasons.push(format!(
            "Through the proxy {} clients connect to {} names ({}). They are taken for one broker: where they are several, \
             deliveries are expected that are not owed.",
            written(proxy),
            targets.len(),
            shown.join(", ")
        ));
    }
}

fn mqtt(analysis: &Analysis) -> impl Iterator<Item = &AnalysedConnection> {
    analysis.connections.iter().filter(|connection| connection.protocol == ConnectionProtocol::Mqtt)
}

fn opened(analysis: &Analysis) -> impl Iterator<Item = (&AnalysedConnection, &Preamble)> {
    analysis.connections.iter().filter_map(|connection| Some((connection, connection.preamble.as_deref()?)))
}

/// What to know besides.
pub fn warnings(analysis: &Analysis, warnings: &mut Vec<String>) {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for (_, preamble) in opened(analysis).filter(|(connection, _)| connection.is_broker_s) {
        *kinds.entry(preamble.kinds.join(", ")).or_default() += 1;
    }
    for (kind, count) in kinds {
        let (s, begin) = if count == 1 { ("", "begins") } else { ("s", "begin") };
        warnings.push(format!(
            "{count} connection{s} to the broker {begin} with {kind}: {} bytes count as TCP's, not as MQTT's.",
            if count == 1 { "its" } else { "their" }
        ));
    }
    let mut refused: BTreeMap<&str, u64> = BTreeMap::new();
    for refusal in opened(analysis).filter_map(|(_, preamble)| preamble.refusal.as_deref()) {
        *refused.entry(refusal).or_default() += 1;
    }
    for (refusal, count) in refused.into_iter().take(SHOWN) {
        let (s, was) = if count == 1 { ("", "was") } else { ("s", "were") };
        warnings.push(format!("{count} connection{s} {was} refused by a proxy: {refusal}."));
    }
}

/// Connections that a proxy refused: when they were heard last, and in words.
pub fn refusals(analysis: &Analysis) -> Vec<(Instant, String)> {
    let refused = opened(analysis).filter_map(|(connection, preamble)| {
        let refusal = preamble.refusal.as_ref()?;
        let last = connection.directions.iter().filter_map(|way| Some(way.span?.1)).max()?;
        let target = preamble.target.as_ref().map_or(String::new(), |target| format!(" to {target}"));
        let (from, proxy) = (written(connection.client), written(connection.server));
        Some((last, format!("{from} was refused a connection{target} by the proxy {proxy}: {refusal}")))
    });
    refused.collect()
}

/// Adds to connections of `run.json` what stood before MQTT.
pub fn add_to(mut connections: Value, analysis: &Analysis) -> Value {
    let known: HashMap<u64, (&AnalysedConnection, &Preamble)> =
        opened(analysis).map(|(connection, preamble)| (connection.number, (connection, preamble))).collect();
    for told in connections.as_array_mut().into_iter().flatten() {
        let Some((connection, preamble)) = told["connection"].as_u64().and_then(|number| known.get(&number))
        else {
            continue;
        };
        told["preamble"] = json!({
            "kinds": preamble.kinds,
            "tcp_from": written(connection.client),
            "tcp_to": written(connection.server),
            "target": preamble.target,
            "refusal": preamble.refusal,
            "bytes_to_server": preamble.bytes[0],
            "bytes_from_server": preamble.bytes[1],
        });
    }
    connections
}

/// How protocols begin that are met at brokers' ports.
const KNOWN: [(&[u8], &str); 18] = [
    (b"SSH-", "an SSH banner"),
    (b"AMQP", "AMQP"),
    (b"PRI * HTTP/2", "HTTP/2"),
    (b"PROXY", "a PROXY header that is cut or wrong"),
    (b"\r\n\r\n\0\r\nQUIT\n", "a PROXY header that is cut or wrong"),
    (b"CONNECT\n", "STOMP"),
    (b"STOMP\n", "STOMP"),
    (b"INFO {", "NATS"),
    (b"RTSP", "RTSP"),
    (b"220 ", "a greeting of SMTP or FTP"),
    (b"220-", "a greeting of SMTP or FTP"),
    (b"EHLO", "SMTP"),
    (b"+OK", "a greeting of POP3 or Redis"),
    (b"* OK", "a greeting of IMAP"),
    (b"*1\r\n$", "Redis"),
    (b"RFB ", "VNC"),
    (b"GIOP", "CORBA"),
    (b"DDS", "DDS"),
];
/// Kinds that are named.
const SHOWN: usize = 5;
/// A text has so many letters at least.
const TEXT_MIN: usize = 4;
const TEXT_MAX: usize = 32;
const BYTES_SHOWN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_are_described_by_protocol_text_or_numbers() {
        for (bytes, words) in [
            (&b"SSH-2.0-OpenSSH_9.2\r\n"[..], "an SSH banner (\"SSH-2.0-OpenSSH_9.2\")"),
            (b"AMQP\0\0\x09\x01", "AMQP"),
            (b"login: ", "the text \"login: \""),
            (&[0x30, 5, 0, 1, b'a', 1, 2], "the bytes 30 05 00 01 61 01 02"),
            (&[1, 2, 3, 4, 5, 6, 7, 8, 9], "the bytes 01 02 03 04 05 06 07 08 …"),
        ] {
            assert_eq!(described(bytes), words);
        }
    }
}
