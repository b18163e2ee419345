//! What a CONNACK of MQTT 5 changes of what its client asked for, and what the broker will not take (§3.2.2.3).
//!
//! What is not said has the protocol's default, which the methods know: no limit, and everything available.

use crate::kind::{Qos, Version};
use crate::property::{Properties, Value, id};

/// The properties of a CONNACK; `None` and empty where it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerTerms {
    /// The identifier of a client that gave none (§3.2.2.3.7).
    pub assigned_client_id: Box<str>,
    /// The keep-alive interval that replaces the client's, in seconds ([MQTT-3.2.2-21]).
    pub keep_alive_s: Option<u16>,
    /// How long the session outlives its connection, in seconds.
    pub session_expiry_s: Option<u32>,
    /// How many QoS 1 and 2 messages of the client may be unacknowledged.
    pub receive_maximum: Option<u16>,
    /// The highest QoS that the broker takes; 0 or 1.
    pub maximum_qos: Option<u8>,
    /// Whether it takes RETAIN.
    pub retain_available: Option<bool>,
    /// The largest packet that it takes.
    pub maximum_packet_bytes: Option<u32>,
    /// How many topic aliases the client may give.
    pub topic_alias_maximum: Option<u16>,
    /// Whether filters may have wildcards.
    pub wildcards_available: Option<bool>,
    /// Whether subscriptions may have identifiers.
    pub subscription_ids_available: Option<bool>,
    /// Whether there are shared subscriptions.
    pub shares_available: Option<bool>,
    /// Why, in the broker's words.
    pub reason: Box<str>,
    /// Another server to use.
    pub server_reference: Box<str>,
    /// The basis of response topics.
    pub response_information: Box<str>,
}

impl ServerTerms {
    /// Of the properties of a CONNACK.
    pub fn of(properties: Properties<'_>) -> ServerTerms {
        let mut terms = ServerTerms::default();
        for (property, value) in properties.iter() {
            match value {
                Value::Number(number) => terms.set_number(property, number),
                Value::Text(text) => terms.set_text(property, text),
                Value::Binary(_) | Value::Pair(..) => {}
            }
        }
        terms
    }

    /// Of what follows the fixed header of a CONNACK, perhaps cut short. Before MQTT 5 there are none.
    pub fn of_body(body: &[u8], version: Version) -> ServerTerms {
        match version {
            Version::V5 => ServerTerms::of(Properties::seen(body.get(2..).unwrap_or_default())),
            _ => ServerTerms::default(),
        }
    }

    /// Whether the broker takes messages of a quality of service.
    pub fn takes_qos(&self, qos: Qos) -> bool {
        self.maximum_qos.is_none_or(|most| qos.level() <= most)
    }

    /// Whether it takes a packet of so many bytes.
    pub fn takes_bytes(&self, bytes: u64) -> bool {
        self.maximum_packet_bytes.is_none_or(|most| bytes <= u64::from(most))
    }

    /// Whether it takes messages with RETAIN.
    pub fn takes_retain(&self) -> bool {
        self.retain_available != Some(false)
    }

    /// Whether there are messages that it does not take.
    pub fn limits_messages(&self) -> bool {
        !self.takes_qos(Qos::ExactlyOnce) || !self.takes_retain() || self.maximum_packet_bytes.is_some()
    }

    fn set_number(&mut self, property: u8, number: u32) {
        let short = u16::try_from(number).ok();
        let is_so = Some(number != 0);
        match property {
            id::SERVER_KEEP_ALIVE => self.keep_alive_s = short,
            id::SESSION_EXPIRY_INTERVAL => self.session_expiry_s = Some(number),
            id::RECEIVE_MAXIMUM => self.receive_maximum = short,
            id::MAXIMUM_QOS => self.maximum_qos = u8::try_from(number).ok(),
            id::RETAIN_AVAILABLE => self.retain_available = is_so,
            id::MAXIMUM_PACKET_SIZE => self.maximum_packet_bytes = Some(number),
            id::TOPIC_ALIAS_MAXIMUM => self.topic_alias_maximum = short,
            id::WILDCARD_SUBSCRIPTION_AVAILABLE => self.wildcards_available = is_so,
            id::SUBSCRIPTION_IDENTIFIER_AVAILABLE => self.subscription_ids_available = is_so,
            id::SHARED_SUBSCRIPTION_AVAILABLE => self.shares_available = is_so,
            _ => {}
        }
    }

    fn set_text(&mut self, property: u8, text: &str) {
        let place = match property {
            id::ASSIGNED_CLIENT_IDENTIFIER => &mut self.assigned_client_id,
            id::REASON_STRING => &mut self.reason,
            id::SERVER_REFERENCE => &mut self.server_reference,
            id::RESPONSE_INFORMATION => &mut self.response_information,
            _ => return,
        };
        *place = text.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_connack_says_is_read_and_what_it_does_not_say_is_the_default() {
        let body = [
            1, 0, 23, 0x12, 0, 2, b'a', b'7', 0x13, 0, 10, 0x24, 1, 0x25, 0, 0x27, 0, 0, 4, 0, 0x21, 0, 2,
            0x2a, 0,
        ];
        let terms = ServerTerms::of_body(&body, Version::V5);
        assert_eq!((&*terms.assigned_client_id, terms.keep_alive_s), ("a7", Some(10)));
        assert_eq!((terms.receive_maximum, terms.shares_available), (Some(2), Some(false)));
        assert!(terms.takes_qos(Qos::AtLeastOnce) && !terms.takes_qos(Qos::ExactlyOnce));
        assert!(terms.takes_bytes(1024) && !terms.takes_bytes(1025) && !terms.takes_retain());
        let none = ServerTerms::of_body(&[0, 0], Version::V311);
        assert!(none.takes_qos(Qos::ExactlyOnce) && none.takes_bytes(u64::MAX) && none.takes_retain());
        assert_eq!(none, ServerTerms::of_body(&[0, 0, 0], Version::V5));
    }

    #[test]
    fn of_a_body_that_is_cut_what_is_whole_is_read() {
        let body = [0, 0, 8, 0x13, 0, 10, 0x12, 0, 2, b'a', b'7'];
        for end in 0..=body.len() {
            let terms = ServerTerms::of_body(&body[..end], Version::V5);
            assert_eq!(terms.keep_alive_s, (end >= 6).then_some(10), "{end}");
            assert_eq!(terms.assigned_client_id.is_empty(), end < body.len(), "{end}");
        }
    }
}
