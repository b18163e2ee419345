//! Topic aliases of MQTT 5: a number in place of a topic name (§3.3.2.3.4).
//!
//! Each direction of a connection has its own, and they end with it ([MQTT-3.3.2-7], [MQTT-3.3.2-11]). [`TopicAliases`] is the
//! sender's side, [`ReceivedAliases`] the receiver's.
//!
//! What it does not model: a sender that gives an alias to another topic. The first topics of a connection have theirs until its
//! end, and topics beyond the maximum have none.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::kind::Malformed;
use crate::packet::Publish;
use crate::property::id;

/// What a PUBLISH calls its topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopicNaming {
    /// By its name.
    #[default]
    Name,
    /// By its name, which from now on this alias stands for.
    NameAndAlias(u16),
    /// By an alias, with an empty name.
    Alias(u16),
}

impl TopicNaming {
    /// The name that the packet carries.
    pub const fn name(self, topic: &str) -> &str {
        match self {
            TopicNaming::Name | TopicNaming::NameAndAlias(_) => topic,
            TopicNaming::Alias(_) => "",
        }
    }

    /// The alias that it carries.
    pub const fn alias(self) -> Option<u16> {
        match self {
            TopicNaming::Name => None,
            TopicNaming::NameAndAlias(alias) | TopicNaming::Alias(alias) => Some(alias),
        }
    }

    /// Appends the property that says so, if there is one.
    pub fn put(self, properties: &mut Vec<u8>) {
        if let Some(alias) = self.alias() {
            properties.push(id::TOPIC_ALIAS);
            properties.extend(alias.to_be_bytes());
        }
    }

    /// Bytes of that property.
    pub const fn property_len(self) -> usize {
        if self.alias().is_some() { 3 } else { 0 }
    }
}

/// The aliases that a sender has given on its connection. Topics are known by numbers.
#[derive(Clone, Debug, Default)]
pub struct TopicAliases {
    most: u16,
    maximum: u16,
    given: BTreeMap<u32, u16>,
}

impl TopicAliases {
    /// Of a sender that gives so many at most, and none before it knows what the receiver takes.
    pub fn new(most: u16) -> TopicAliases {
        TopicAliases { most, ..TopicAliases::default() }
    }

    /// The receiver's Topic Alias Maximum is known: a connection begins. 0 where it has not said ([MQTT-3.2.2-18]).
    pub fn begin(&mut self, maximum: u16) {
        self.maximum = maximum.min(self.most);
        self.given.clear();
    }

    /// What the next PUBLISH calls this topic.
    pub fn name(&mut self, topic: u32) -> TopicNaming {
        if let Some(&alias) = self.given.get(&topic) {
            return TopicNaming::Alias(alias);
        }
        if self.given.len() >= usize::from(self.maximum) {
            return TopicNaming::Name;
        }
        // From 1 on: 0 is no alias ([MQTT-3.3.2-8]).
        let alias = self.given.len() as u16 + 1;
        self.given.insert(topic, alias);
        TopicNaming::NameAndAlias(alias)
    }
}

/// What the aliases of the other side stand for.
#[derive(Clone, Debug, Default)]
pub struct ReceivedAliases {
    names: BTreeMap<u16, Arc<str>>,
}

impl ReceivedAliases {
    /// The topic name that the alias of a PUBLISH stands for, where it has no name of its own and so many aliases are allowed.
    ///
    /// # Errors
    /// An alias that is 0 or above the maximum ([MQTT-3.3.2-8], [MQTT-3.3.2-10]), or one that stands for nothing
    /// (§3.3.2.3.4).
    pub fn resolve(&mut self, publish: &Publish<'_>, maximum: u16) -> Result<Option<Arc<str>>, Malformed> {
        let Some(alias) = publish.properties.number(id::TOPIC_ALIAS) else { return Ok(None) };
        let alias = u16::try_from(alias).ok().filter(|&alias| alias > 0 && alias <= maximum);
        let alias =
            alias.ok_or(Malformed("a topic alias above the maximum, or 0 [MQTT-3.3.2-8, MQTT-3.3.2-10]"))?;
        if !publish.topic.is_empty() {
            self.names.insert(alias, publish.topic.into());
            return Ok(None);
        }
        let name = self.names.get(&alias).cloned();
        name.map(Some).ok_or(Malformed("a topic alias that stands for nothing [§3.3.2.3.4]"))
    }

    /// The connection has ended.
    pub fn clear(&mut self) {
        self.names.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{self, PublishFields};
    use crate::packet::{Packet, decode};
    use crate::{FixedHeader, Qos, Version};

    #[test]
    fn mqtt_3_3_2_the_first_topics_of_a_connection_have_aliases_up_to_the_smaller_maximum() {
        let mut aliases = TopicAliases::new(2);
        assert_eq!(aliases.name(7), TopicNaming::Name, "nobody has said what the receiver takes");
        aliases.begin(10);
        let named = [7, 8, 9, 7, 8, 9].map(|topic| aliases.name(topic));
        let [first, second] = [1, 2].map(TopicNaming::NameAndAlias);
        assert_eq!(named[..3], [first, second, TopicNaming::Name]);
        assert_eq!(named[3..], [TopicNaming::Alias(1), TopicNaming::Alias(2), TopicNaming::Name]);
        // A new connection knows none of them.
        aliases.begin(1);
        assert_eq!(
            [9, 7, 9].map(|topic| aliases.name(topic)),
            [first, TopicNaming::Name, TopicNaming::Alias(1)]
        );
        aliases.begin(0);
        assert_eq!(aliases.name(9), TopicNaming::Name);
    }

    fn resolved(
        aliases: &mut ReceivedAliases,
        topic: &str,
        alias: Option<u16>,
    ) -> Result<Option<Arc<str>>, Malformed> {
        let mut properties = Vec::new();
        alias.map_or(TopicNaming::Name, TopicNaming::NameAndAlias).put(&mut properties);
        let (qos, version) = (Qos::AtMostOnce, Version::V5);
        let fields = PublishFields {
            topic,
            qos,
            dup: false,
            retain: false,
            id: 0,
            properties: &properties,
            payload_len: 0,
        };
        let mut packet = Vec::new();
        encode::publish_head(&fields, version, &mut packet);
        assert_eq!(packet.len(), encode::publish_len(topic.len(), properties.len(), 0, qos, version));
        let header = FixedHeader::peek(&packet)?.unwrap();
        let Packet::Publish(publish) = decode(header, &packet[header.header_len..], version)? else {
            panic!()
        };
        aliases.resolve(&publish, 2)
    }

    #[test]
    fn mqtt_3_3_2_an_alias_stands_for_the_last_name_that_it_was_given() {
        let mut aliases = ReceivedAliases::default();
        assert_eq!(resolved(&mut aliases, "a", None), Ok(None));
        assert_eq!(resolved(&mut aliases, "a", Some(1)), Ok(None));
        assert_eq!(resolved(&mut aliases, "", Some(1)), Ok(Some("a".into())));
        assert_eq!(resolved(&mut aliases, "b", Some(1)), Ok(None));
        assert_eq!(resolved(&mut aliases, "", Some(1)), Ok(Some("b".into())));
        for (topic, alias) in [("", 2), ("a", 3), ("", 3), ("a", 0)] {
            assert!(resolved(&mut aliases, topic, Some(alias)).is_err(), "{topic:?} {alias}");
        }
        aliases.clear();
        assert!(resolved(&mut aliases, "", Some(1)).is_err());
    }
}
