//! What an answer says: reason codes (MQTT 5 §2.4) and the return codes of earlier versions, where they stand and what
//! they are called.
//!
//! One table for all who show one. A code has its name by its packet: 0x04 is "bad user name or password" in a CONNACK of
//! MQTT 3.1.1 and "disconnect with will message" in a DISCONNECT.

use crate::kind::{Kind, Version};

/// Codes from here on are refusals (MQTT 5 §2.4; SUBACK of MQTT 3.1.1 §3.9.3).
pub const REFUSED: u8 = 0x80;
/// PUBACK or PUBREC: the broker knows of no subscription that the message belongs to (MQTT 5 §3.4.2.1).
pub const NO_MATCHING_SUBSCRIBERS: u8 = 0x10;
/// DISCONNECT: the broker heard nothing for one and a half times the keep-alive interval (MQTT 5 §3.14.2.1).
pub const KEEP_ALIVE_TIMEOUT: u8 = 0x8d;

/// The code that a packet has: of `body`, which is what follows its fixed header, perhaps cut short. Of several codes the
/// highest, which is a refusal where one is. `None` where the packet has none, or where it is not there.
pub fn of(kind: Kind, version: Version, body: &[u8]) -> Option<u8> {
    if kind == Kind::Connack {
        return body.get(1).copied();
    }
    if kind == Kind::Suback || kind == Kind::Unsuback {
        return codes(body, version).iter().copied().max();
    }
    if version != Version::V5 {
        return None;
    }
    match kind {
        // Without a code it is 0x00 (§3.4.2.1).
        Kind::Puback | Kind::Pubrec | Kind::Pubrel | Kind::Pubcomp if body.len() >= 2 => {
            Some(body.get(2).copied().unwrap_or(0))
        }
        Kind::Disconnect | Kind::Auth => Some(body.first().copied().unwrap_or(0)),
        _ => None,
    }
}

/// The codes of a SUBACK or UNSUBACK, one for each filter (MQTT 5 §3.9.3, §3.11.3). An UNSUBACK before MQTT 5 has none.
pub fn codes(body: &[u8], version: Version) -> &[u8] {
    let rest = body.get(2..).unwrap_or_default();
    if version != Version::V5 {
        return rest;
    }
    match crate::kind::variable_length(rest) {
        Ok(Some((length, size))) => rest.get(size + length as usize..).unwrap_or_default(),
        _ => &[],
    }
}

/// What a code is called, in lower case; `None` where the packet has no such code.
pub fn name(kind: Kind, version: Version, code: u8) -> Option<&'static str> {
    if version != Version::V5 {
        return match (kind, code) {
            (Kind::Connack, 0) => Some("accepted"),
            (Kind::Connack, _) => find(RETURN_CODES, code),
            (Kind::Suback, 0..=2) => Some(GRANTED[usize::from(code)]),
            (Kind::Suback, REFUSED) => Some("failure"),
            _ => None,
        };
    }
    match (kind, code) {
        (Kind::Suback, 0..=2) => Some(GRANTED[usize::from(code)]),
        (Kind::Disconnect, 0x00) => Some("normal disconnection"),
        (Kind::Disconnect, 0x04) => Some("disconnect with will message"),
        (Kind::Puback | Kind::Pubrec, NO_MATCHING_SUBSCRIBERS) => Some("no matching subscribers"),
        (Kind::Unsuback, 0x11) => Some("no subscription existed"),
        (Kind::Auth, 0x18) => Some("continue authentication"),
        (Kind::Auth, 0x19) => Some("re-authenticate"),
        (kind, 0x00) if has_codes(kind) => Some("success"),
        (kind, REFUSED..) if has_codes(kind) => find(CODES, code),
        // Brokers that answer MQTT 5 in the words of 3.1.1.
        (Kind::Connack, _) => find(RETURN_CODES, code),
        _ => None,
    }
}

/// A code with its name, as events and reports write it: `code 0x87 (not authorised)`.
pub fn in_words(kind: Kind, version: Version, code: u8) -> String {
    match name(kind, version, code) {
        Some(name) => format!("code 0x{code:02x} ({name})"),
        None => format!("code 0x{code:02x}"),
    }
}

/// Whether packets of a kind have a code in MQTT 5.
pub fn has_codes(kind: Kind) -> bool {
    use Kind::{Auth, Connack, Disconnect, Puback, Pubcomp, Pubrec, Pubrel, Suback, Unsuback};
    matches!(kind, Connack | Puback | Pubrec | Pubrel | Pubcomp | Suback | Unsuback | Disconnect | Auth)
}

fn find(table: &[(u8, &'static str)], code: u8) -> Option<&'static str> {
    table.iter().find(|known| known.0 == code).map(|known| known.1)
}

const GRANTED: [&str; 3] = ["granted QoS 0", "granted QoS 1", "granted QoS 2"];

/// Return codes of CONNACK in MQTT 3.1 and 3.1.1 (§3.2.2.3).
pub const RETURN_CODES: &[(u8, &str)] = &[
    (0x01, "unacceptable protocol version"),
    (0x02, "identifier rejected"),
    (0x03, "server unavailable"),
    (0x04, "bad user name or password"),
    (0x05, "not authorised"),
];

/// Refusals of MQTT 5 (§2.4).
pub const CODES: &[(u8, &str)] = &[
    (0x80, "unspecified error"),
    (0x81, "malformed packet"),
    (0x82, "protocol error"),
    (0x83, "implementation specific error"),
    (0x84, "unsupported protocol version"),
    (0x85, "client identifier not valid"),
    (0x86, "bad user name or password"),
    (0x87, "not authorised"),
    (0x88, "server unavailable"),
    (0x89, "server busy"),
    (0x8A, "banned"),
    (0x8B, "server shutting down"),
    (0x8C, "bad authentication method"),
    (0x8D, "keep alive timeout"),
    (0x8E, "session taken over"),
    (0x8F, "topic filter invalid"),
    (0x90, "topic name invalid"),
    (0x91, "packet identifier in use"),
    (0x92, "packet identifier not found"),
    (0x93, "receive maximum exceeded"),
    (0x94, "topic alias invalid"),
    (0x95, "packet too large"),
    (0x96, "message rate too high"),
    (0x97, "quota exceeded"),
    (0x98, "administrative action"),
    (0x99, "payload format invalid"),
    (0x9A, "retain not supported"),
    (0x9B, "QoS not supported"),
    (0x9C, "use another server"),
    (0x9D, "server moved"),
    (0x9E, "shared subscriptions not supported"),
    (0x9F, "connection rate exceeded"),
    (0xA0, "maximum connect time"),
    (0xA1, "subscription identifiers not supported"),
    (0xA2, "wildcard subscriptions not supported"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_where_its_packet_has_it() {
        let five = |kind, body| of(kind, Version::V5, body);
        assert_eq!(five(Kind::Connack, &[0, 0x87, 0]), Some(0x87));
        assert_eq!(five(Kind::Puback, &[0, 1, 0x87]), Some(0x87));
        assert_eq!(five(Kind::Pubrec, &[0, 1]), Some(0), "a code that is left out is 0x00");
        assert_eq!(five(Kind::Pubcomp, &[0, 1, 0x92, 0]), Some(0x92));
        assert_eq!(
            five(Kind::Suback, &[0, 1, 2, 0x26, 0, 1, 0x87, 0]),
            Some(0x87),
            "the highest, behind properties"
        );
        assert_eq!(five(Kind::Unsuback, &[0, 1, 0, 0x11]), Some(0x11));
        assert_eq!(five(Kind::Disconnect, &[]), Some(0));
        assert_eq!(five(Kind::Disconnect, &[0x8e, 0]), Some(0x8e));
        assert_eq!((five(Kind::Puback, &[0]), five(Kind::Suback, &[0, 1])), (None, None), "cut short");
        let three = |kind, body| of(kind, Version::V311, body);
        assert_eq!(
            (three(Kind::Connack, &[0, 5]), three(Kind::Suback, &[0, 1, 0, 0x80])),
            (Some(5), Some(0x80))
        );
        assert_eq!((three(Kind::Puback, &[0, 1]), three(Kind::Unsuback, &[0, 1])), (None, None));
        assert_eq!(three(Kind::Disconnect, &[]), None);
    }

    #[test]
    fn a_code_has_its_name_by_packet_and_version() {
        for (kind, version, code, expected) in [
            (Kind::Connack, Version::V311, 5, Some("not authorised")),
            (Kind::Connack, Version::V5, 0x87, Some("not authorised")),
            (Kind::Connack, Version::V5, 0, Some("success")),
            (Kind::Suback, Version::V311, 0x80, Some("failure")),
            (Kind::Suback, Version::V5, 0x80, Some("unspecified error")),
            (Kind::Suback, Version::V5, 1, Some("granted QoS 1")),
            (Kind::Disconnect, Version::V5, 4, Some("disconnect with will message")),
            (Kind::Disconnect, Version::V5, 0x8e, Some("session taken over")),
            (Kind::Puback, Version::V5, 0x10, Some("no matching subscribers")),
            (Kind::Pubcomp, Version::V5, 0x10, None),
            (Kind::Pubrel, Version::V5, 0x92, Some("packet identifier not found")),
            (Kind::Unsuback, Version::V5, 0x11, Some("no subscription existed")),
            (Kind::Puback, Version::V5, 0xff, None),
            (Kind::Puback, Version::V311, 0, None),
        ] {
            assert_eq!(name(kind, version, code), expected, "{kind} {code:#x}");
        }
    }
}
