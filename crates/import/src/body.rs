//! What is inside the control packets that begin and end things: filters and codes.
//!
//! The bytes are those after the fixed header, and may be cut: what cannot be read is left out.

use mqttlab_mqtt::SubscriptionOptions;

/// The filters of an UNSUBSCRIBE (MQTT 5 §3.10).
pub fn filters(body: &[u8], level: u8) -> Vec<String> {
    each_filter(body, level, false).map(|(filter, _)| filter).collect()
}

/// The filters of a SUBSCRIBE and what is asked for with each (MQTT 5 §3.8). Of an option byte that is cut off, nothing.
pub fn subscriptions(body: &[u8], level: u8) -> Vec<(String, SubscriptionOptions)> {
    // Before MQTT 5 the bits above the QoS are reserved ([MQTT-3.8.3-4] of 3.1.1).
    let known = if level < 5 { 3 } else { u8::MAX };
    let filters = each_filter(body, level, true);
    filters.map(|(filter, byte)| (filter, SubscriptionOptions::from_byte(byte & known))).collect()
}

fn each_filter(body: &[u8], level: u8, options: bool) -> impl Iterator<Item = (String, u8)> {
    let mut rest = after_properties(body, level);
    std::iter::from_fn(move || {
        let length = rest.get(..2)?;
        let end = 2 + usize::from(u16::from_be_bytes([length[0], length[1]]));
        let filter = String::from_utf8_lossy(rest.get(2..end)?).into_owned();
        let byte = rest.get(end).copied().filter(|_| options).unwrap_or_default();
        rest = rest.get(end + usize::from(options)..).unwrap_or_default();
        Some((filter, byte))
    })
}

/// Whether the broker still had the session, as a CONNACK says (MQTT 5 §3.2.2.1).
pub fn session_present(body: &[u8]) -> bool {
    body.first().is_some_and(|flags| flags & 1 != 0)
}

/// How long the session is to last, in seconds, as a CONNACK or a DISCONNECT of MQTT 5 says behind its first bytes.
pub fn session_expiry(body: &[u8], before: usize) -> Option<u32> {
    mqttlab_capture::mqtt::session_expiry(body.get(before..)?)
}

/// What follows the packet identifier and, in MQTT 5, the properties.
fn after_properties(body: &[u8], level: u8) -> &[u8] {
    let rest = body.get(2..).unwrap_or_default();
    if level < 5 {
        return rest;
    }
    let (mut length, mut shift) = (0_usize, 0);
    for (index, byte) in rest.iter().take(4).enumerate() {
        length |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return rest.get(index + 1 + length..).unwrap_or_default();
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_mqtt::{Qos, RetainHandling};

    #[test]
    fn filters_are_read_with_and_without_properties_and_options() {
        let three = [0, 1, 0, 3, b'a', b'/', b'#', 1, 0, 1, b'b', 0];
        let names = |found: Vec<(String, SubscriptionOptions)>| -> Vec<String> {
            found.into_iter().map(|(filter, _)| filter).collect()
        };
        assert_eq!(names(subscriptions(&three, 4)), ["a/#", "b"]);
        let five = [0, 1, 2, 11, 5, 0, 3, b'a', b'/', b'#', 0b0010_1101];
        assert_eq!(names(subscriptions(&five, 5)), ["a/#"]);
        assert_eq!(filters(&[0, 1, 0, 1, b'a', 0, 1, b'b'], 4), ["a", "b"]);
        let options = SubscriptionOptions {
            qos: Qos::AtLeastOnce,
            no_local: true,
            retain_as_published: true,
            retain_handling: RetainHandling::Never,
        };
        assert_eq!(subscriptions(&five, 5)[0].1, options);
        let four = [0, 1, 0, 3, b'a', b'/', b'#', 0b0010_1101];
        assert_eq!(subscriptions(&four, 4)[0].1, Qos::AtLeastOnce.into(), "reserved before MQTT 5");
    }

    #[test]
    fn a_session_s_length_is_found_among_other_properties() {
        let connack = [1, 0, 11, 0x21, 0, 20, 0x1f, 0, 0, 0x11, 0, 0, 1, 44];
        assert_eq!(session_expiry(&connack, 2), Some(300));
        assert_eq!(session_expiry(&connack[..13], 2), None);
        assert!(session_present(&connack) && !session_present(&[0, 0]) && !session_present(&[]));
        let pair = [0, 12, 0x26, 0, 1, b'a', 0, 1, b'b', 0x11, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(session_expiry(&pair, 1), Some(u32::MAX));
        assert_eq!(
            (session_expiry(&[], 1), session_expiry(&[0], 1), session_expiry(&[0, 0], 1)),
            (None, None, None)
        );
    }

    #[test]
    fn cut_bodies_give_what_is_whole() {
        let whole = [0, 1, 0, 1, b'a', 0, 0, 9, b'b'];
        for end in 0..whole.len() {
            assert_eq!(subscriptions(&whole[..end], 4).len(), usize::from(end >= 5), "{end}");
        }
        assert_eq!(subscriptions(&[0, 1, 0xff, 0xff, 0xff, 0xff, 1], 5), []);
    }
}
