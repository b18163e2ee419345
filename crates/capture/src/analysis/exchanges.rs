//! Requests of MQTT and their answers.

use crate::metrics::Exchange;
use crate::mqtt::Kind;

/// The exchange that a packet begins.
pub(super) fn requested(kind: Kind, qos: u8) -> Option<Exchange> {
    match kind {
        Kind::Connect => Some(Exchange::Connect),
        Kind::Publish if qos == 1 => Some(Exchange::PublishPuback),
        Kind::Publish if qos == 2 => Some(Exchange::PublishPubrec),
        Kind::Pubrec => Some(Exchange::PubrecPubrel),
        Kind::Pubrel => Some(Exchange::PubrelPubcomp),
        Kind::Subscribe => Some(Exchange::Subscribe),
        Kind::Unsubscribe => Some(Exchange::Unsubscribe),
        Kind::Pingreq => Some(Exchange::Ping),
        _ => None,
    }
}

/// The exchange that a packet ends.
pub(super) fn answered(kind: Kind) -> Option<Exchange> {
    match kind {
        Kind::Connack => Some(Exchange::Connect),
        Kind::Puback => Some(Exchange::PublishPuback),
        Kind::Pubrec => Some(Exchange::PublishPubrec),
        Kind::Pubrel => Some(Exchange::PubrecPubrel),
        Kind::Pubcomp => Some(Exchange::PubrelPubcomp),
        Kind::Suback => Some(Exchange::Subscribe),
        Kind::Unsuback => Some(Exchange::Unsubscribe),
        Kind::Pingresp => Some(Exchange::Ping),
        _ => None,
    }
}
