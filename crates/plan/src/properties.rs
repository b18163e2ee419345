//! What MQTT 5 lets a publisher say of a message beside its topic and payload.

use mqttlab_mqtt::encode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::TopicPattern;

/// Properties of a publication's messages (MQTT 5 §3.3.2.3), which brokers forward unaltered, but for the expiry interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageProperties {
    /// Seconds that a message is good for, from 1 on; `null`: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry_s: Option<u32>,
    /// User properties in their order: names, each with a value. A name may stand there again.
    pub user: Vec<UserProperty>,
    /// Content type; `null`: not said.
    pub content_type: Option<String>,
    /// Payload format indicator, whether the payload is UTF-8; `null`: not said.
    pub payload_is_text: Option<bool>,
    /// Response topic; see [`TopicPattern`]; `null`: not said.
    pub response_topic: Option<TopicPattern>,
    /// Correlation data as text, in which the same is filled in; `null`: not said.
    pub correlation_data: Option<TopicPattern>,
}

/// A user property (MQTT 5 §3.3.2.3.7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserProperty {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
}

impl MessageProperties {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == MessageProperties::default()
    }

    /// Appends those of a client's messages, as a PUBLISH has them.
    pub fn put(&self, group: &str, client: u32, out: &mut Vec<u8>) {
        let fill = |pattern: &Option<TopicPattern>| pattern.as_ref().map(|text| text.fill(group, client, 0));
        let (response_topic, correlation_data) = (fill(&self.response_topic), fill(&self.correlation_data));
        let said = encode::MessageProperties {
            expiry_s: self.expiry_s,
            payload_is_text: self.payload_is_text,
            content_type: self.content_type.as_deref(),
            response_topic: response_topic.as_deref(),
            correlation_data: correlation_data.as_ref().map(|data| data.as_bytes()),
        };
        encode::message_properties(&said, out);
        self.user.iter().for_each(|one| encode::user_property(&one.name, &one.value, out));
    }

    /// Bytes of that.
    pub fn len(&self, group: &str, client: u32) -> usize {
        if self.is_empty() {
            return 0;
        }
        let mut bytes = Vec::new();
        self.put(group, client, &mut bytes);
        bytes.len()
    }
}
