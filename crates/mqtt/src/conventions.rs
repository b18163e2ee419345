//! Prefixes of topics by which brokers do more than MQTT says: one table, to which a line can be added.
//!
//! A broker that does not know a prefix takes it for a level like any other. Whether it knows it only deliveries show.

use crate::topic::{is_filter, is_name, share};

/// What a prefix of a filter means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterPrefix {
    /// How the filter begins.
    pub prefix: &'static str,
    /// What follows it.
    pub rest: FilterRest,
    /// Who has it.
    pub of: &'static str,
}

/// What follows a filter's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterRest {
    /// A name and a filter: one of those with both the same gets each message.
    NameAndFilter,
    /// A filter: one of those with the same gets each message.
    Filter,
}

/// Filters of which one subscriber gets each message. The first line is MQTT's own (MQTT 5 §4.8.2).
pub const SHARING: &[FilterPrefix] = &[
    FilterPrefix { prefix: "$share/", rest: FilterRest::NameAndFilter, of: "MQTT" },
    // In the order of the topics' keys.
    FilterPrefix { prefix: "$oshare/", rest: FilterRest::NameAndFilter, of: "BifroMQ" },
    // Until version 5, and message queues since 6, which have names.
    FilterPrefix { prefix: "$queue/", rest: FilterRest::Filter, of: "EMQX" },
    FilterPrefix { prefix: "$queue/", rest: FilterRest::NameAndFilter, of: "EMQX" },
    FilterPrefix { prefix: "$q/", rest: FilterRest::Filter, of: "EMQX" },
    // Only one client may have it.
    FilterPrefix { prefix: "$exclusive/", rest: FilterRest::Filter, of: "EMQX" },
];

/// Topics that are published to and delivered later under the rest of their names: seconds come first.
pub const DELAYING: &[&str] = &["$delayed/"];

/// Topics of messages that a broker makes itself: its state, events of clients, messages that it gave up.
pub const OF_BROKERS: &[&str] = &["$SYS/", "$events/", "$event/", "$expired/", "$dropped/", "$CONTROL/"];

/// The ways in which a filter may be a shared one: the line of [`SHARING`], and the filter inside.
pub fn shares(filter: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = if filter.starts_with('$') { SHARING } else { &[] };
    lines.iter().enumerate().filter_map(move |(line, known)| Some((line, known.inner(filter)?)))
}

impl FilterPrefix {
    /// The filter inside a filter that begins so.
    fn inner<'f>(&self, filter: &'f str) -> Option<&'f str> {
        if self.prefix == SHARING[0].prefix {
            return share(filter).map(|(_, inner)| inner);
        }
        let rest = filter.strip_prefix(self.prefix)?;
        let inner = match self.rest {
            FilterRest::Filter => rest,
            FilterRest::NameAndFilter => {
                rest.split_once('/').filter(|(name, _)| !name.is_empty() && !name.contains(['+', '#']))?.1
            }
        };
        is_filter(inner).then_some(inner)
    }
}

/// When a message is delivered that was published to such a topic, and to which: after so many seconds, or `None` where the
/// topic has a point in time.
pub fn delayed(topic: &str) -> Option<(Option<u32>, &str)> {
    if !topic.starts_with('$') {
        return None;
    }
    let rest = DELAYING.iter().find_map(|prefix| topic.strip_prefix(prefix))?;
    let (seconds, inner) = rest.split_once('/')?;
    let seconds: u64 = seconds.parse().ok()?;
    let seconds = u32::try_from(seconds).ok().filter(|&seconds| seconds <= DELAY_MOST_S);
    is_name(inner).then_some((seconds, inner))
}

/// Whether messages of a topic are a broker's own.
pub fn is_of_broker(topic: &str) -> bool {
    OF_BROKERS.iter().any(|prefix| topic.starts_with(prefix))
}

/// Beyond this EMQX takes the number for a time since 1970.
const DELAY_MOST_S: u32 = 42_949_669;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_may_be_shared_in_several_ways() {
        let inside = |filter| shares(filter).map(|(_, inner)| inner).collect::<Vec<_>>();
        assert_eq!(inside("$share/g/a/#"), ["a/#"]);
        assert_eq!(inside("$oshare/g/a/#"), ["a/#"]);
        assert_eq!(inside("$queue/jobs/#"), ["jobs/#", "#"]);
        assert_eq!((inside("$queue/+/a"), inside("$exclusive/a")), (vec!["+/a"], vec!["a"]));
        for other in ["a/#", "$SYS/#", "$share/g", "$queue/", "queue/a", "$sharex/g/a"] {
            assert!(inside(other).is_empty(), "{other}");
        }
    }

    #[test]
    fn a_delayed_topic_has_seconds_and_a_name() {
        assert_eq!(delayed("$delayed/5/t/a"), Some((Some(5), "t/a")));
        assert_eq!(delayed("$delayed/3600/$SYS/x"), Some((Some(3600), "$SYS/x")));
        assert_eq!(delayed("$delayed/1743490800/x"), Some((None, "x")));
        for other in ["$delayed/5", "$delayed/x/t", "$delayed/5/", "delayed/5/t", "$delayed/-1/t"] {
            assert_eq!(delayed(other), None, "{other}");
        }
        assert!(is_of_broker("$SYS/broker/uptime") && !is_of_broker("$delayed/5/t"));
    }
}
