//! The protocols: a file and a row each.

mod tell;

use crate::hub::HubProtocol;

/// Every one. New ones come last: recordings that are being made number them by their place.
pub const HUB_PROTOCOLS: &[&dyn HubProtocol] = &[&tell::Tell];

/// A protocol by its name.
pub fn hub_protocol(name: &str) -> Option<&'static dyn HubProtocol> {
    HUB_PROTOCOLS.iter().find(|protocol| protocol.name() == name).copied()
}

/// A protocol by its place among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HubNumber(pub u8);

impl HubNumber {
    /// Of the protocol with this name.
    pub fn named(name: &str) -> Option<HubNumber> {
        let place = HUB_PROTOCOLS.iter().position(|protocol| protocol.name() == name);
        place.and_then(|place| u8::try_from(place).ok()).map(HubNumber)
    }

    /// Its name.
    ///
    /// # Panics
    /// For a number that no protocol has.
    pub fn name(self) -> &'static str {
        HUB_PROTOCOLS[usize::from(self.0)].name()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::hub::{Envelope, MessageHead};
    use crate::settings::{Of, Settings};
    use mqttlab_mqtt::Qos;

    #[test]
    fn every_protocol_has_a_name_of_its_own_and_settings_that_allow_their_defaults() {
        let names: BTreeSet<&str> = HUB_PROTOCOLS.iter().map(|protocol| protocol.name()).collect();
        assert_eq!(names.len(), HUB_PROTOCOLS.len());
        for (number, protocol) in (0..).map(HubNumber).zip(HUB_PROTOCOLS) {
            assert!(HubNumber::named(protocol.name()) == Some(number) && number.name() == protocol.name());
            assert!(!protocol.words().is_empty());
            for setting in protocol.settings() {
                assert!((setting.min..=setting.max).contains(&setting.default), "{setting:?}");
                let given = [(setting.name.to_owned(), setting.default)].into();
                Settings::new(protocol.settings(), setting.of, &given).unwrap();
            }
            Settings::new(protocol.settings(), Of::Hub, &Default::default()).unwrap();
        }
    }

    #[test]
    fn the_head_of_a_message_is_read_as_it_was_written_with_and_without_what_follows() {
        for protocol in HUB_PROTOCOLS {
            for qos in
                [Qos::AtMostOnce, Qos::AtLeastOnce].into_iter().filter(|qos| *qos <= protocol.qos_max())
            {
                let envelope = Envelope { id: 0x1234, qos, dup: qos == Qos::AtLeastOnce };
                let mut bytes = Vec::new();
                protocol.write(&MessageHead { envelope, topic: "a/ü", payload_bytes: 5 }, &mut bytes);
                let length = bytes.len();
                bytes.extend(b"12345");
                let head = protocol.read(&bytes).unwrap();
                assert_eq!((head.bytes, head.topic, head.qos), (length, Some("a/ü"), qos));
                assert!(head.kind.is_message() && head.kind.protocol == protocol.name());
                assert!(head.dup == envelope.dup && head.id == envelope.id);
                assert!(head.bytes >= head.id_bytes + head.topic_bytes);
                assert_eq!(protocol.read(&bytes[..length]), Some(head), "a simulation has no payload");
            }
        }
    }

    #[test]
    fn what_is_cut_short_or_noise_is_refused_or_read_and_never_panics() {
        for protocol in HUB_PROTOCOLS {
            let mut whole = Vec::new();
            let envelope = Envelope { id: 1, qos: Qos::AtMostOnce, dup: false };
            protocol.write(&MessageHead { envelope, topic: "topic", payload_bytes: 0 }, &mut whole);
            assert!((0..whole.len()).all(|length| protocol.read(&whole[..length]).is_none()));
            for first in 0..=u8::MAX {
                for second in [0, 1, 0x7f, 0xff] {
                    for length in [1, 2, 3, 4, 5, 9] {
                        let mut noise = vec![second; length];
                        noise[0] = first;
                        if let Some(head) = protocol.read(&noise) {
                            assert!(head.bytes <= length);
                        }
                    }
                }
            }
        }
    }
}
