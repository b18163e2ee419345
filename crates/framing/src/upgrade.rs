//! The opening handshake of WebSocket (RFC 6455 §4): a client's request, and its look at the answer.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha1::{Digest, Sha1};

/// Appends a client's request for a resource of a host. The nonce is random, so that no cache can answer.
pub fn request(host: &str, path: &str, nonce: [u8; 16], out: &mut Vec<u8>) {
    let key = BASE64_STANDARD.encode(nonce);
    let lines = [
        &*format!("GET {path} HTTP/1.1"),
        &format!("Host: {host}"),
        "Upgrade: websocket",
        "Connection: Upgrade",
        &format!("Sec-WebSocket-Key: {key}"),
        "Sec-WebSocket-Version: 13",
        // [MQTT-6.0.0-3]
        "Sec-WebSocket-Protocol: mqtt",
        "",
        "",
    ];
    out.extend_from_slice(lines.join("\r\n").as_bytes());
}

/// Length of [`request`].
pub fn request_len(host: &str, path: &str) -> usize {
    let mut bytes = Vec::new();
    request(host, path, [0; 16], &mut bytes);
    bytes.len()
}

/// What a server must answer a nonce with (§4.2.2).
pub fn accept(nonce: [u8; 16]) -> String {
    let key = BASE64_STANDARD.encode(nonce);
    BASE64_STANDARD.encode(Sha1::digest(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11")))
}

/// Why a server's answer opens nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is no HTTP.
    NotHttp,
    /// Another status than 101, with its words.
    Status(u16, String),
    /// Status 101 without `Upgrade: websocket` and `Connection: Upgrade`.
    NoUpgrade,
    /// It is no answer to this request.
    Accept,
    /// Another subprotocol than MQTT, or none.
    Protocol(String),
    /// It does not end.
    TooLong,
}

impl Refusal {
    /// Whether the next attempt would meet the same. A server's own trouble (5xx) and too many requests pass.
    pub fn is_for_good(&self) -> bool {
        !matches!(self, Refusal::Status(429 | 500..=599, _))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotHttp => write!(f, "the answer is no HTTP"),
            Refusal::Status(code, words) => write!(f, "HTTP {code} {words}"),
            Refusal::NoUpgrade => write!(f, "HTTP 101 without an upgrade to WebSocket"),
            Refusal::Accept => write!(f, "Sec-WebSocket-Accept does not answer the request"),
            Refusal::Protocol(name) if name.is_empty() => {
                write!(f, "the subprotocol `mqtt` was not accepted")
            }
            Refusal::Protocol(name) => write!(f, "the subprotocol is `{name}`, and `mqtt` was asked for"),
            Refusal::TooLong => write!(f, "the HTTP header has more than {ANSWER_MAX} B"),
        }
    }
}

/// A server's answer, as far as it is there.
#[derive(Debug, Default)]
pub struct Answer {
    gathered: Vec<u8>,
}

impl Answer {
    /// Takes the next bytes. `Some` when the header is whole and right: how many of them belong to it.
    ///
    /// # Errors
    /// It opens nothing.
    pub fn feed(&mut self, bytes: &[u8], nonce: [u8; 16]) -> Result<Option<usize>, Refusal> {
        let before = self.gathered.len();
        self.gathered.extend_from_slice(bytes);
        // Before the end of a header is looked for that will never come.
        let begun = &self.gathered[..self.gathered.len().min(HTTP.len())];
        if !HTTP.starts_with(begun) {
            return Err(Refusal::NotHttp);
        }
        let Some(end) = self.gathered.windows(4).position(|four| four == b"\r\n\r\n") else {
            return if self.gathered.len() > ANSWER_MAX { Err(Refusal::TooLong) } else { Ok(None) };
        };
        let header = std::mem::take(&mut self.gathered);
        check(&String::from_utf8_lossy(&header[..end]), nonce)?;
        Ok(Some(end + 4 - before))
    }
}

fn check(header: &str, nonce: [u8; 16]) -> Result<(), Refusal> {
    let mut lines = header.split("\r\n");
    let mut status = lines.next().unwrap_or_default().splitn(3, ' ').skip(1);
    let code = status.next().and_then(|code| code.parse().ok()).ok_or(Refusal::NotHttp)?;
    // Any other status is plain HTTP (§4.1): the words after it are the server's reason.
    if code != 101 {
        return Err(Refusal::Status(code, printable(status.next().unwrap_or_default())));
    }
    // Names of fields are the same in any case (RFC 9110 §5.1).
    let fields: Vec<(String, &str)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim()))
        .collect();
    let field = |wanted: &str| fields.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| *value);
    // Both fields are lists of words of any case (§4.1, §4.2.1).
    let names = |value: &str, word: &str| value.split(',').any(|one| one.trim().eq_ignore_ascii_case(word));
    if !names(field("upgrade"), "websocket") || !names(field("connection"), "upgrade") {
        return Err(Refusal::NoUpgrade);
    }
    // That shows that the server has read this request, and no cache has answered it.
    if field("sec-websocket-accept") != accept(nonce) {
        return Err(Refusal::Accept);
    }
    // The server must choose what was offered, `mqtt` ([MQTT-6.0.0-4]).
    match field("sec-websocket-protocol") {
        "mqtt" => Ok(()),
        other => Err(Refusal::Protocol(printable(other))),
    }
}

/// Words of somebody else, for a line of a report.
fn printable(words: &str) -> String {
    words.chars().filter(|letter| !letter.is_control()).take(80).collect()
}

const HTTP: &[u8] = b"HTTP/1.1 ";
/// Servers that greet with cookies and policies need a few kilobytes.
const ANSWER_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: [u8; 16] = *b"the sample nonce";
    const ANSWER: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                          Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n";

    fn ask(answer: &str) -> Result<Option<usize>, Refusal> {
        Answer::default().feed(answer.as_bytes(), NONCE)
    }

    #[test]
    fn the_rfcs_own_handshake_is_accepted_however_it_is_cut() {
        assert_eq!(BASE64_STANDARD.encode(NONCE), "dGhlIHNhbXBsZSBub25jZQ==");
        for cut in 0..ANSWER.len() {
            let mut answer = Answer::default();
            assert_eq!(answer.feed(&ANSWER.as_bytes()[..cut], NONCE), Ok(None), "cut at {cut}");
            let rest = [&ANSWER.as_bytes()[cut..], b"\x82\x00"].concat();
            assert_eq!(answer.feed(&rest, NONCE), Ok(Some(ANSWER.len() - cut)), "cut at {cut}");
        }
    }

    #[test]
    fn a_request_names_its_resource_and_its_subprotocol() {
        let mut bytes = Vec::new();
        request("10.0.0.1:8083", "/mqtt", NONCE, &mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("GET /mqtt HTTP/1.1\r\nHost: 10.0.0.1:8083\r\n"), "{text}");
        assert!(
            text.contains("\r\nSec-WebSocket-Protocol: mqtt\r\n") && text.ends_with("\r\n\r\n"),
            "{text}"
        );
        assert_eq!(request_len("10.0.0.1:8083", "/mqtt"), text.len());
    }

    #[test]
    fn what_opens_nothing_is_named() {
        let status = |line: &str| ask(&format!("HTTP/1.1 {line}\r\nServer: x\r\n\r\n"));
        assert_eq!(status("404 Not Found"), Err(Refusal::Status(404, "Not Found".into())));
        assert!(status("400 Bad Request").unwrap_err().is_for_good());
        assert!(!status("503 Service Unavailable").unwrap_err().is_for_good());
        assert_eq!(ask("\x20\x02\x00\x00"), Err(Refusal::NotHttp), "a CONNACK");
        assert_eq!(status("what"), Err(Refusal::NotHttp));
        assert_eq!(ask(&ANSWER.replace("websocket\r", "h2c\r")), Err(Refusal::NoUpgrade));
        assert_eq!(ask(&ANSWER.replace("s3pP", "S3pP")), Err(Refusal::Accept));
        assert_eq!(ask(&ANSWER.replace(": mqtt", ": stomp")), Err(Refusal::Protocol("stomp".into())));
        assert_eq!(ask(&ANSWER.replace("-Protocol", "-Other")), Err(Refusal::Protocol(String::new())));
        let endless = format!("HTTP/1.1 101 x\r\nA: {}", "a".repeat(ANSWER_MAX));
        assert_eq!(ask(&endless), Err(Refusal::TooLong));
    }
}
