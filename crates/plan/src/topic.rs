//! Topics with places to fill in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A topic or filter in which `{group}`, `{client}` (index within the group) and `{topic}` (running index
/// below the number of topics) are filled in. Other braces stand for themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TopicPattern(pub String);

impl TopicPattern {
    /// The topic of one client and topic index.
    pub fn fill(&self, group: &str, client: u32, topic: u32) -> String {
        fill(&self.0, group, client, topic)
    }
}

/// A topic with its places filled in.
pub(crate) fn fill(pattern: &str, group: &str, client: u32, topic: u32) -> String {
    pattern
        .replace("{group}", group)
        .replace("{client}", &client.to_string())
        .replace("{topic}", &topic.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_in_and_other_braces_kept() {
        let pattern = TopicPattern("{group}/{client}/{topic}/{x}".into());
        assert_eq!(pattern.fill("gps", 3, 7), "gps/3/7/{x}");
    }
}
