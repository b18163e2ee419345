//! What the two hellos of a TLS handshake say of what follows them (RFC 8446 §4.1, RFC 5246 §7.4.1).

use super::key_log::Random;

/// A ClientHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClientHello {
    pub(super) random: Random,
    /// Whether data follows before the server has answered.
    pub(super) sends_early_data: bool,
}

/// A ServerHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerHello {
    pub(super) random: Random,
    pub(super) version: u16,
    pub(super) suite: u16,
    /// Whether it accepts a key that both knew before (TLS 1.3).
    pub(super) takes_known_key: bool,
    /// Whether it only asks for another ClientHello.
    pub(super) is_retry: bool,
}

impl ClientHello {
    /// Reads the body of the handshake message.
    pub(super) fn read(body: &[u8]) -> Option<ClientHello> {
        let mut fields = UnreadFields(body);
        fields.take(2)?;
        let random = fields.take(32)?.try_into().ok()?;
        fields.vector(1)?;
        fields.vector(2)?;
        fields.vector(1)?;
        let sends_early_data = extensions(&mut fields).any(|(kind, _)| kind == EARLY_DATA);
        Some(ClientHello { random, sends_early_data })
    }
}

impl ServerHello {
    /// Reads the body of the handshake message.
    pub(super) fn read(body: &[u8]) -> Option<ServerHello> {
        let mut fields = UnreadFields(body);
        let mut version = fields.number()?;
        let random: Random = fields.take(32)?.try_into().ok()?;
        fields.vector(1)?;
        let suite = fields.number()?;
        fields.take(1)?;
        let mut takes_known_key = false;
        for (kind, value) in extensions(&mut fields) {
            match (kind, value) {
                (SUPPORTED_VERSIONS, &[high, low]) => version = u16::from_be_bytes([high, low]),
                (PRE_SHARED_KEY, _) => takes_known_key = true,
                _ => {}
            }
        }
        Some(ServerHello { random, version, suite, takes_known_key, is_retry: random == RETRY })
    }
}

/// The extensions at the end of a hello, as far as they are well formed.
fn extensions<'a>(fields: &mut UnreadFields<'a>) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
    let mut inside = UnreadFields(fields.vector(2).unwrap_or_default());
    std::iter::from_fn(move || Some((inside.number()?, inside.vector(2)?)))
}

/// What is left to read.
struct UnreadFields<'a>(&'a [u8]);

impl<'a> UnreadFields<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Bytes behind a length of so many bytes.
    fn vector(&mut self, length_bytes: usize) -> Option<&'a [u8]> {
        let length = self.take(length_bytes)?.iter().fold(0, |length, &byte| length << 8 | usize::from(byte));
        self.take(length)
    }
}

/// Handshake messages out of the records that carry them, which may cut them anywhere (RFC 8446 §5.1).
#[derive(Debug, Default)]
pub(super) struct HandshakeMessages {
    bytes: Vec<u8>,
}

impl HandshakeMessages {
    /// Takes what a record of the handshake holds.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Larger than any chain of certificates: it cannot be a handshake.
        if self.bytes.len() > MESSAGES_MAX {
            self.bytes.clear();
        }
    }

    /// The next whole message: its type and its body.
    pub(super) fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut fields = UnreadFields(&self.bytes);
        let kind = fields.take(1)?[0];
        let body = fields.vector(3)?.to_vec();
        self.bytes.drain(..4 + body.len());
        Some((kind, body))
    }

    /// Bytes are missing: what has come of a message is of no use.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }
}

const EARLY_DATA: u16 = 42;
const PRE_SHARED_KEY: u16 = 41;
const SUPPORTED_VERSIONS: u16 = 43;
/// The random number of a ServerHello that is a HelloRetryRequest (RFC 8446 §4.1.3).
const RETRY: Random = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];
const MESSAGES_MAX: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(version: [u8; 2], extensions: &[u8]) -> Vec<u8> {
        let mut body = version.to_vec();
        body.extend([7; 32]);
        body.extend([0, 0x13, 0x02, 0]);
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
        body
    }

    #[test]
    fn a_server_hello_says_version_suite_and_whether_the_session_is_resumed() {
        let found = ServerHello::read(&hello([3, 3], &[0, 43, 0, 2, 3, 4, 0, 41, 0, 2, 0, 0])).unwrap();
        assert_eq!((found.version, found.suite, found.takes_known_key), (0x0304, 0x1302, true));
        let found = ServerHello::read(&hello([3, 3], &[])).unwrap();
        assert_eq!((found.version, found.takes_known_key, found.is_retry), (0x0303, false, false));
    }

    #[test]
    fn hellos_that_end_anywhere_are_no_hellos_or_the_same() {
        let whole = hello([3, 3], &[0, 43, 0, 2, 3, 4]);
        for end in 0..whole.len() {
            if let Some(found) = ServerHello::read(&whole[..end]) {
                assert_eq!(found.suite, 0x1302);
            }
            ClientHello::read(&whole[..end]);
        }
    }

    #[test]
    fn messages_are_put_together_over_records() {
        let mut messages = HandshakeMessages::default();
        messages.add(&[2, 0, 0, 3, 1, 2]);
        assert_eq!(messages.next(), None);
        messages.add(&[3, 20, 0, 0, 0, 4]);
        assert_eq!(messages.next(), Some((2, vec![1, 2, 3])));
        assert_eq!(messages.next(), Some((20, vec![])));
        assert_eq!(messages.next(), None);
    }
}
