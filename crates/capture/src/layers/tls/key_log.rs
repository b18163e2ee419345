//! Key logs as NSS, OpenSSL, rustls and Go write them for `SSLKEYLOGFILE` (draft-ietf-tls-keylogfile): a line for each secret,
//!
//! ```text
//!   CLIENT_RANDOM <client random> <master secret>                        TLS 1.2
//!   CLIENT_TRAFFIC_SECRET_0 <client random> <secret>                     TLS 1.3, and four more
//! ```
//!
//! What it does not model: `RSA` lines, which hold a premaster secret of key exchanges that nobody uses any more.

use std::collections::BTreeMap;

/// Secrets of TLS connections, by the random number in their ClientHello.
#[derive(Clone, Debug, Default)]
pub struct KeyLog {
    secrets: BTreeMap<Random, Vec<Secret>>,
    lines: u64,
}

/// The random number of a ClientHello.
pub(crate) type Random = [u8; 32];

/// A secret, and what it is for.
type Secret = (Label, Box<[u8]>);

/// What a secret is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// TLS 1.2.
    Master,
    ClientEarly,
    ClientHandshake,
    ServerHandshake,
    ClientTraffic,
    ServerTraffic,
}

impl Label {
    fn of(name: &str) -> Option<Label> {
        Some(match name {
            "CLIENT_RANDOM" => Label::Master,
            "CLIENT_EARLY_TRAFFIC_SECRET" => Label::ClientEarly,
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => Label::ClientHandshake,
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => Label::ServerHandshake,
            "CLIENT_TRAFFIC_SECRET_0" => Label::ClientTraffic,
            "SERVER_TRAFFIC_SECRET_0" => Label::ServerTraffic,
            _ => return None,
        })
    }
}

impl KeyLog {
    /// Adds the secrets of a text; returns how many lines had one. Comments, lines of other kinds and lines that a program
    /// did not finish are passed over.
    pub fn add(&mut self, text: &[u8]) -> u64 {
        let before = self.lines;
        for line in text.split(|&byte| byte == b'\n') {
            let Some((random, label, secret)) = std::str::from_utf8(line).ok().and_then(read) else {
                continue;
            };
            let secrets = self.secrets.entry(random).or_default();
            if !secrets.iter().any(|(known, _)| *known == label) {
                secrets.push((label, secret));
            }
            self.lines += 1;
        }
        self.lines - before
    }

    /// Whether there is no secret in it.
    pub fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// Whether there is any secret of a connection.
    pub(crate) fn knows(&self, random: &Random) -> bool {
        self.secrets.contains_key(random)
    }

    /// A secret of a connection.
    pub(crate) fn secret(&self, random: &Random, label: Label) -> Option<&[u8]> {
        let secrets = self.secrets.get(random)?;
        secrets.iter().find(|(known, _)| *known == label).map(|(_, secret)| &**secret)
    }
}

fn read(line: &str) -> Option<(Random, Label, Box<[u8]>)> {
    let mut words = line.split_ascii_whitespace();
    let label = Label::of(words.next()?)?;
    let random = hexadecimal(words.next()?)?.try_into().ok()?;
    let secret = hexadecimal(words.next()?)?;
    // A master secret has 48 bytes (RFC 5246 §8.1), others are as long as the hash of their suite.
    let fits = if label == Label::Master { secret.len() == 48 } else { matches!(secret.len(), 32 | 48) };
    (fits && words.next().is_none()).then(|| (random, label, secret.into()))
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        text.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect::<Option<_>>()?;
    digits
        .len()
        .is_multiple_of(2)
        .then(|| digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_secrets_count_and_others_are_passed_over() {
        let random = "0a".repeat(32);
        let text = format!(
            "# made by hand\r\nCLIENT_RANDOM {random} {master}\r\nCLIENT_TRAFFIC_SECRET_0 {random} {short}\n\
             EXPORTER_SECRET {random} {short}\nCLIENT_RANDOM {random} 00\nSERVER_TRAFFIC_SECRET_0 {random} {short}ff\n\
             CLIENT_HANDSHAKE_TRAFFIC_SECRET 0a {short}\nSERVER_HANDSHAKE_TRAFFIC_SECRET {random}",
            master = "11".repeat(48),
            short = "22".repeat(32),
        );
        let mut log = KeyLog::default();
        assert_eq!(log.add(text.as_bytes()), 2);
        assert_eq!(log.secret(&[10; 32], Label::Master), Some(&[0x11; 48][..]));
        assert_eq!(log.secret(&[10; 32], Label::ClientTraffic), Some(&[0x22; 32][..]));
        assert_eq!(log.secret(&[10; 32], Label::ServerTraffic), None);
        assert!(log.knows(&[10; 32]) && !log.knows(&[11; 32]));
        assert_eq!((log.add(b"\x80 not a text \xff\n"), log.is_empty()), (0, false));
    }
}
