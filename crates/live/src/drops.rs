//! What a broker's log tells of messages that it dropped.
//!
//! Mosquitto writes one line when it begins to drop QoS 1 and 2 messages for a client whose queue is full, and says
//! neither which they are nor how many: these are found out when a later message arrives, as overtaken.

use std::collections::BTreeSet;
use std::path::Path;

/// A warning about the clients for which the broker dropped messages, if its log names any.
pub(crate) fn warning(log: &Path) -> Option<String> {
    let text = String::from_utf8_lossy(&std::fs::read(log).ok()?).into_owned();
    let clients = clients(&text);
    let some: Vec<&str> = clients.iter().copied().take(NAMED).collect();
    let more = clients.len().checked_sub(NAMED).filter(|more| *more > 0);
    let more = more.map_or(String::new(), |more| format!(" and {more} more"));
    (!some.is_empty()).then(|| {
        format!(
            "the broker dropped messages for {}{more}, because their queues were full (broker.max_queued)",
            some.join(", ")
        )
    })
}

fn clients(log: &str) -> BTreeSet<&str> {
    let named = log.lines().filter_map(|line| line.split_once(DROPPING)?.1.strip_suffix('.'));
    named.filter(|name| !name.is_empty()).collect()
}

const DROPPING: &str = "Outgoing messages are being dropped for client ";
/// Clients that a warning names.
const NAMED: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mosquitto_s_log_names_the_clients_whose_queues_were_full() {
        let log = "1732233600: mosquitto version 2.0.11 starting\n\
                   1732233601: Outgoing messages are being dropped for client map-1.\n\
                   1732233602: Outgoing messages are being dropped for client map.0.\n\
                   1732233603: Outgoing messages are being dropped for client map-1.\n";
        assert_eq!(clients(log).into_iter().collect::<Vec<_>>(), ["map-1", "map.0"]);
    }
}
