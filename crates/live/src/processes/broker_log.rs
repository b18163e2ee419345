//! What a broker's log tells of messages that it dropped.
//!
//! Mosquitto and our ZeroMQ proxy write one line when they begin to drop messages for a client whose queue is full
//! (`db__message_insert` in Mosquitto's `database.c`), and say neither which they are nor how many. Those behind which a later
//! message arrived are found out as overtaken; of the others the recording says from when on they may have been dropped, so that
//! they are not passed off as under way.

use std::collections::BTreeMap;
use std::path::Path;

/// Clients for which a broker dropped messages, by its log, and since when it may have, in nanoseconds since 1970; zero where the
/// line has no time that can be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LoggedDrops {
    pub(crate) since_unix_ns: BTreeMap<String, u64>,
}

impl LoggedDrops {
    /// What a log says; nothing, if it cannot be read.
    pub(crate) fn in_log(log: &Path) -> LoggedDrops {
        std::fs::read(log).map_or_else(
            |_| LoggedDrops::default(),
            |bytes| LoggedDrops::read(&String::from_utf8_lossy(&bytes)),
        )
    }

    fn read(log: &str) -> LoggedDrops {
        let mut since_unix_ns = BTreeMap::new();
        for (stamp, rest) in log.lines().filter_map(|line| line.split_once(DROPPING)) {
            let Some(name) = rest.strip_suffix('.').filter(|name| !name.is_empty()) else { continue };
            let at = seconds(stamp).unwrap_or_default().saturating_mul(1_000_000_000);
            // The first line counts: which message ended the dropping the log does not say.
            let since = since_unix_ns.entry(name.to_owned()).or_insert(at);
            *since = at.min(*since);
        }
        LoggedDrops { since_unix_ns }
    }

    /// A warning about these clients, if there are any.
    pub(crate) fn warning(&self) -> Option<String> {
        let some: Vec<&str> = self.since_unix_ns.keys().map(String::as_str).take(NAMED).collect();
        let more = self.since_unix_ns.len().checked_sub(NAMED).filter(|more| *more > 0);
        let more = more.map_or(String::new(), |more| format!(" and {more} more"));
        (!some.is_empty()).then(|| {
            format!(
                "the broker dropped messages for {}{more}, because their queues were full (`max_queued`, of a ZeroMQ \
                 proxy `high_water_mark`); its log does not say which: what had not arrived by the end may have been among them",
                some.join(", ")
            )
        })
    }
}

/// The whole seconds since 1970 before `: `, which are below the time by less than one.
fn seconds(stamp: &str) -> Option<u64> {
    stamp.strip_suffix(": ")?.parse().ok()
}

const DROPPING: &str = "Outgoing messages are being dropped for client ";
/// Clients that a warning names.
const NAMED: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mosquitto_s_log_names_the_clients_whose_queues_were_full_and_says_since_when() {
        let log = "1732233600: mosquitto version 2.0.11 starting\n\
                   1732233602: Outgoing messages are being dropped for client map-1.\n\
                   2024-11-22T00:00:02: Outgoing messages are being dropped for client map.0.\n\
                   1732233603: Outgoing messages are being dropped for client map-1.\n\
                   1732233603: Outgoing messages are being dropped for client \n";
        let drops = LoggedDrops::read(log);
        let expected = [("map-1", 1_732_233_602_000_000_000), ("map.0", 0)];
        assert_eq!(drops.since_unix_ns, BTreeMap::from(expected.map(|(name, at)| (name.to_owned(), at))));
        let words = drops.warning().expect("a warning");
        assert!(words.starts_with("the broker dropped messages for map-1, map.0, because"), "{words}");
        assert_eq!(LoggedDrops::read("").warning(), None);
    }
}
