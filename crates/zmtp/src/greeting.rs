//! The greeting: 64 bytes that each side sends when the connection stands, without waiting for the other (RFC 37, "greeting").
//!
//! ```text
//!   ff 00×8 7f │ 03 01 │ "NULL" 00×16 │ as-server │ 00×31
//!   signature    version  mechanism
//! ```
//!
//! Each byte is judged as soon as it is there: who speaks something else must not be waited for.

use crate::Malformed;

/// Bytes of a greeting.
pub const BYTES: usize = 64;
/// The minor version of 3 that is announced.
pub const MINOR: u8 = 1;

/// What a greeting says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The minor version of 3 that its sender speaks.
    pub minor: u8,
}

/// Appends a greeting of 3.1 with NULL.
pub fn encode(out: &mut Vec<u8>) {
    let mut greeting = [0; BYTES];
    // The padding stays zero, for no older version is looked for (RFC 37, "Version Negotiation").
    greeting[0] = 0xff;
    greeting[9] = 0x7f;
    greeting[VERSION] = 3;
    greeting[VERSION + 1] = MINOR;
    // The octets behind stay zero: the mechanism is padded with them, and NULL requires as-server to be 0 (RFC 37).
    greeting[MECHANISM..MECHANISM + NULL.len()].copy_from_slice(NULL);
    out.extend_from_slice(&greeting);
}

/// Reads a greeting; `None` where more bytes are needed and those that are there may begin one.
///
/// # Errors
/// No greeting of ZMTP 3, or not one of NULL.
pub fn decode(bytes: &[u8]) -> Result<Option<Greeting>, Malformed> {
    match bytes.first() {
        None => return Ok(None),
        Some(0xff) => {}
        // The length of an identity, with which ZMTP 1.0 begins, is not told from anything else.
        Some(_) => return Err(Malformed::NotZmtp),
    }
    // The padding between is a length for peers of 1.0, and may be anything. The last bit says that a version follows.
    if bytes.get(9).is_some_and(|byte| byte & 1 == 0) {
        return Err(Malformed::NotZmtp);
    }
    // Who cannot speak the peer's older version must close the connection (RFC 37, "Version Negotiation").
    match bytes.get(VERSION) {
        Some(0) => return Err(Malformed::OldVersion(1)),
        Some(1 | 2) => return Err(Malformed::OldVersion(2)),
        _ => {}
    }
    // It must be the same mechanism exactly (RFC 37, "Authentication and Confidentiality").
    let mechanism = bytes.get(MECHANISM..bytes.len().min(AS_SERVER)).unwrap_or_default();
    let expected = NULL.iter().chain(std::iter::repeat(&0));
    if mechanism.iter().zip(expected).any(|(byte, expected)| byte != expected) {
        return Err(Malformed::Mechanism);
    }
    if bytes.len() < BYTES {
        return Ok(None);
    }
    // Who speaks a later version speaks 3.1 to one that announces it (RFC 37, "version negotiation").
    let minor = if bytes[VERSION] > 3 { MINOR } else { bytes[VERSION + 1].min(MINOR) };
    Ok(Some(Greeting { minor }))
}

const NULL: &[u8] = b"NULL";
const VERSION: usize = 10;
const MECHANISM: usize = 12;
const AS_SERVER: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        change(&mut bytes);
        bytes
    }

    #[test]
    fn a_greeting_is_read_back_and_each_part_of_it_waits_for_more() {
        let whole = greeting(|_| {});
        assert_eq!(decode(&whole), Ok(Some(Greeting { minor: 1 })));
        for cut in 0..BYTES {
            assert_eq!(decode(&whole[..cut]), Ok(None), "cut at {cut}");
        }
    }

    #[test]
    fn minor_versions_are_agreed_on_downwards() {
        let with = |major, minor| {
            decode(&greeting(|bytes| bytes[10..12].copy_from_slice(&[major, minor]))).unwrap().unwrap().minor
        };
        assert_eq!([with(3, 0), with(3, 1), with(3, 9), with(4, 0)], [0, 1, 1, 1]);
    }

    #[test]
    fn what_is_no_zmtp_3_is_refused_at_the_first_byte_that_says_so() {
        for (bytes, expected) in [
            (&b"HTTP/1.1 400"[..], Malformed::NotZmtp),
            (&[0x20, 2, 0, 0], Malformed::NotZmtp),
            (&[0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7e], Malformed::NotZmtp),
            // libzmq 3.2: signature, revision 1, socket type.
            (&[0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 1, 2, 0, 0], Malformed::OldVersion(2)),
            (&[0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 0], Malformed::OldVersion(1)),
        ] {
            assert_eq!(decode(bytes), Err(expected), "{bytes:02x?}");
        }
        let curve = greeting(|bytes| bytes[12..17].copy_from_slice(b"CURVE"));
        assert_eq!(decode(&curve[..13]), Err(Malformed::Mechanism));
        let longer = greeting(|bytes| bytes[16] = b'X');
        assert_eq!(decode(&longer), Err(Malformed::Mechanism));
    }
}
