//! Why a client was not accepted, and what helps: one table for whoever shows it.
//!
//! Events have what a client was told, in the words of whoever told it: a code of CONNACK, an error of the system, of TLS,
//! of an HTTP answer. Here it gets its meaning and a remedy. Reports read the same table (`failures.json`), which a test
//! writes.

use mqttlab_mqtt::reason;

use crate::identifier::rfc3339;

/// A reason that events give, and what helps against it.
pub(crate) struct FailureReason {
    /// What the reason contains; of several rows the first counts.
    pub(crate) said: &'static str,
    /// In plain words; empty where the reason is.
    pub(crate) means: &'static str,
    /// What helps.
    pub(crate) remedy: &'static str,
}

const fn of(said: &'static str, means: &'static str, remedy: &'static str) -> FailureReason {
    FailureReason { said, means, remedy }
}

const USER: &str =
    "see `mqtt.username` and `mqtt.password`, and who may connect by the broker's configuration";
const VERSION: &str = "the broker does not speak this version of MQTT: use another `mqtt.version`";
const IDENTIFIER: &str = "see `mqtt.client_id`";
const LATER: &str = "see the broker's log and its limits";
const TRUST: &str = "see `tls.authority` of the broker";
const WEBSOCKET: &str = "see the port, and `transport.websocket.path`";
const REACHED: &str = "see the network's loss and delay and the broker's log, or give them more time \
                       (`phases.connect_timeout`)";
const LISTENS: &str =
    "nothing listens there: see `address` of the broker, and its `port`, or of TLS and WebSocket its `ports`";

/// What helps against a code of CONNACK in MQTT 3.1.1 (§3.2.2.3) and MQTT 5 (§2.4), or of MQTT 5's DISCONNECT; of others the
/// broker's log tells. Their names are [`reason`]'s.
const REMEDIES: &[(u8, &str)] = &[
    (0x01, VERSION),
    (0x02, IDENTIFIER),
    (0x04, USER),
    (0x05, USER),
    (0x82, VERSION),
    (0x84, VERSION),
    (0x85, IDENTIFIER),
    (0x86, USER),
    (0x87, USER),
    (0x8C, USER),
    (0x8D, "see `mqtt.keep_alive`"),
    (0x8E, "each client needs an identifier of its own: see `mqtt.client_id`"),
    (0x8F, "see the filters of `subscribe`"),
    (0x90, "see `publish.topic` and `will.topic`"),
    (0x95, "see the size of `payload`, and the broker's limit"),
    (0x96, "see `publish`, and the broker's limit"),
    (0x99, "see `payload`"),
    (0x9A, "see `publish.retain` and the will"),
    (0x9B, "see `qos` of `publish` and of the will"),
    (0x9C, "see `address` of the broker"),
    (0x9D, "see `address` of the broker"),
    (0x9E, "see the filters of `subscribe`"),
    (0x9F, "see `connect_over` of the group: let clients come more slowly"),
    (0xA2, "see the filters of `subscribe`"),
];

/// Every code that refuses or ends a connection: name and remedy.
fn codes() -> impl Iterator<Item = (u8, &'static str, &'static str)> {
    let all = reason::RETURN_CODES.iter().chain(reason::CODES);
    all.map(|&(code, name)| {
        let remedy = REMEDIES.iter().find(|known| known.0 == code);
        (code, name, remedy.map_or(LATER, |known| known.1))
    })
}

/// Everything else. Errors of the system go by their numbers (Linux).
pub(crate) const FAILURES: &[FailureReason] = &[
    of("(os error 111)", "connection refused", LISTENS),
    // Simulated: the system has no number for it.
    of("cannot connect: connection refused", "connection refused", LISTENS),
    of("(os error 113)", "no route to host", "see `address` of the broker, and this machine's routes"),
    of("(os error 101)", "network unreachable", "see `address` of the broker, and this machine's routes"),
    of("(os error 110)", "timed out", REACHED),
    of("(os error 104)", "connection reset", "see the broker's log, and whether `port` and `transport` fit"),
    of("(os error 24)", "too many open files", "see `mqttlab doctor`, and `ulimit -n`"),
    of("(os error 23)", "too many open files on this machine", "see `mqttlab doctor`"),
    of("(os error 99)", "no address or port is free", "see `mqttlab doctor`; fewer clients, or more hosts"),
    of("UnknownIssuer", "certificate of an unknown authority", TRUST),
    of("not valid for name", "certificate for another name", "see `tls.name` and `address` of the broker"),
    of("NotValidForName", "certificate for another name", "see `tls.name` and `address` of the broker"),
    of("certificate expired", "certificate expired", "renew it, or see this machine's clock"),
    of("certificate: Expired", "certificate expired", "renew it, or see this machine's clock"),
    of("not valid yet", "certificate not valid yet", "see this machine's clock, and the broker's"),
    of("NotValidYet", "certificate not valid yet", "see this machine's clock, and the broker's"),
    of(
        "CaUsedAsEndEntity",
        "an authority's certificate instead of the broker's own",
        "have one made for the broker",
    ),
    of("invalid peer certificate", "certificate not accepted", TRUST),
    of("CertificateRequired", "the broker asks for a certificate", "see `transport.tls.client_certificate`"),
    of(
        "UnknownCA",
        "the broker does not know who made the clients' certificates",
        "see the broker's configuration",
    ),
    of("ProtocolVersion", "TLS version not supported", "see `transport.tls.version`"),
    of("PeerIncompatible", "TLS version or ciphers not supported", "see `transport.tls.version`"),
    of("peer is incompatible", "TLS version or ciphers not supported", "see `transport.tls.version`"),
    of("what is no TLS", "TLS spoken to a port without it", "see `ports.tls` of the broker, and `transport`"),
    of(
        "before TLS was open",
        "no TLS at this port, or the broker refused it",
        "see `ports.tls` of the broker, and its log",
    ),
    of("no TLS in time", "", "no TLS at this port, or a slow network: see `ports.tls` of the broker"),
    of("WebSocket upgrade: HTTP 404", "no WebSocket at this path", "see `transport.websocket.path`"),
    of("WebSocket upgrade: HTTP 401", "WebSocket not authorised", "see the broker's configuration"),
    of("WebSocket upgrade: HTTP 403", "WebSocket not authorised", "see the broker's configuration"),
    of("WebSocket upgrade", "", WEBSOCKET),
    of("instead of upgrading it to WebSocket", "no WebSocket at this port", WEBSOCKET),
    of("no WebSocket in time", "", WEBSOCKET),
    of("no TCP connection in time", "", REACHED),
    of("the connection timed out", "", REACHED),
    of("no CONNACK in time", "", REACHED),
    of("no READY in time", "no ZeroMQ peer answered", REACHED),
    of("no WELCOME in time", "", REACHED),
    of("in time", "", REACHED),
    of("congestion", "", "see the gateway's limits, or let clients come more slowly"),
    of("the gateway refused CONNECT", "", "see the gateway's log"),
    of("unanswered", "", REACHED),
    of(
        "the broker closed the connection",
        "",
        "see the broker's log, and whether `port`, `transport` and `mqtt.version` fit",
    ),
    of("the connection was reset", "", "see the broker's log, and whether `port` and `transport` fit"),
    of("the broker sent", "", "see whether `port` and `transport` fit: TLS or WebSocket may be spoken there"),
];

/// What is said where nothing fits.
pub(crate) const REMEDY: &str = "see the broker's log";

/// A reason in plain words, and what helps against it.
pub(crate) fn explained(detail: &str) -> String {
    if let Some((packet, code, name, remedy)) = code_of(detail) {
        return format!("{packet} 0x{code:02x} {name}; {remedy}");
    }
    let Some(known) = FAILURES.iter().find(|failure| detail.contains(failure.said)) else {
        return format!("{detail}; {REMEDY}");
    };
    let words = match (known.means, date_in(detail)) {
        ("", _) => detail.into(),
        (means, Some((relation, date))) => format!("{means} {relation} {date}"),
        (means, None) => format!("{means} ({detail})"),
    };
    format!("{words}; {}", known.remedy)
}

/// The packet and the code with which a client was refused.
fn code_of(detail: &str) -> Option<(&'static str, u8, &'static str, &'static str)> {
    let said = [("CONNECT: code 0x", "CONNACK"), ("the broker sent DISCONNECT, code 0x", "DISCONNECT")];
    let (digits, packet) =
        said.iter().find_map(|(begins, packet)| Some((detail.strip_prefix(begins)?, *packet)))?;
    // Its name may follow.
    let code = u8::from_str_radix(digits.get(..2)?, 16).ok()?;
    let (_, name, remedy) = codes().find(|known| known.0 == code).unwrap_or((code, "refused", REMEDY));
    Some((packet, code, name, remedy))
}

/// The day on which a certificate's time ended or begins, where rustls says it, in seconds since 1970.
fn date_in(detail: &str) -> Option<(&'static str, String)> {
    [("not valid after ", "on"), ("not valid before ", "before")].iter().find_map(|(words, relation)| {
        let (_, rest) = detail.split_once(words)?;
        let seconds: u64 = rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()?;
        let time = rfc3339(seconds.checked_mul(1_000_000_000)?);
        Some((*relation, time.get(..10)?.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use mqttlab_mqtt::{Kind, Version};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reason_has_its_meaning_and_a_remedy_in_one_line() {
        let checks = [
            ("CONNECT: code 0x05", "CONNACK 0x05 not authorised; see `mqtt.username`"),
            ("CONNECT: code 0x87 (not authorised)", "CONNACK 0x87 not authorised; see `mqtt.username`"),
            ("CONNECT: code 0x86", "CONNACK 0x86 bad user name or password; see `mqtt.username`"),
            ("CONNECT: code 0x01", "CONNACK 0x01 unacceptable protocol version; the broker does not speak"),
            ("CONNECT: code 0x84", "CONNACK 0x84 unsupported protocol version; the broker does not speak"),
            ("CONNECT: code 0x02", "CONNACK 0x02 identifier rejected; see `mqtt.client_id`"),
            ("CONNECT: code 0x77", "CONNACK 0x77 refused; see the broker's log"),
            ("the broker sent DISCONNECT, code 0x8e", "DISCONNECT 0x8e session taken over; each client"),
            ("cannot connect: Connection refused (os error 111)", "connection refused (cannot"),
            ("cannot connect: No route to host (os error 113)", "no route to host (cannot"),
            (
                "TLS: invalid peer certificate: certificate expired: verification time 1764208800 (UNIX), but \
                 certificate is not valid after 1763640000 (568800 seconds ago)",
                "certificate expired on 2025-11-20; renew it",
            ),
            (
                "TLS: invalid peer certificate: certificate not valid for name \"a\"; certificate is only valid for b",
                "certificate for another name (TLS: invalid peer certificate: certificate not valid for name",
            ),
            ("TLS: invalid peer certificate: UnknownIssuer", "certificate of an unknown authority (TLS"),
            (
                "the broker sent what is no TLS: received corrupt message",
                "TLS spoken to a port without it (the",
            ),
            (
                "WebSocket upgrade: HTTP 404 Not Found",
                "no WebSocket at this path (WebSocket upgrade: HTTP 404",
            ),
            ("no TCP connection in time", "no TCP connection in time; see the network's loss"),
            (
                "the gateway refused CONNECT: congestion",
                "the gateway refused CONNECT: congestion; see the gateway's",
            ),
            ("what nobody foresaw", "what nobody foresaw; see the broker's log"),
            ("", "; see the broker's log"),
        ];
        for (detail, expected) in checks {
            let said = explained(detail);
            assert!(said.starts_with(expected), "{detail}: {said}");
            assert!(!said.contains('\n') && said.contains("; "), "{said}");
        }
    }

    /// Names of codes by packet; those before MQTT 5 apart.
    fn names() -> serde_json::Value {
        let mut all = serde_json::Map::new();
        for (version, suffix) in [(Version::V5, ""), (Version::V311, " before MQTT 5")] {
            for kind in (1..16).filter_map(Kind::from_number) {
                let named = (0..=u8::MAX).filter_map(|code| Some((code, reason::name(kind, version, code)?)));
                let named: serde_json::Map<_, _> =
                    named.map(|(code, name)| (format!("0x{code:02x}"), json!(name))).collect();
                if !named.is_empty() {
                    all.insert(format!("{kind}{suffix}"), named.into());
                }
            }
        }
        all.into()
    }

    #[test]
    fn reports_read_the_same_table() {
        let codes = codes().map(|(code, name, remedy)| (format!("0x{code:02x}"), json!([name, remedy])));
        let failures = FAILURES.iter().map(|one| json!([one.said, one.means, one.remedy]));
        let table = json!({
            "codes": codes.collect::<serde_json::Map<_, _>>(),
            "names": names(),
            "failures": failures.collect::<Vec<_>>(),
        });
        let text = serde_json::to_string_pretty(&table).expect("names and sentences are JSON") + "\n";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/mqttlab/metrics/failures.json");
        if std::env::var_os("MQTTLAB_BLESS").is_some() {
            fs::write(&path, text).expect("the table can be written");
            return;
        }
        let committed = fs::read_to_string(&path).expect("the table");
        assert!(committed == text, "failures.json is out of date; run this test with MQTTLAB_BLESS=1");
    }
}
