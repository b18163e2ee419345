//! Whether a run's numbers may be believed, as far as its rows tell: the same for live runs and simulations.
//!
//! A run is not valid when it did not measure what the scenario asks for: clients that never came, a broker that went
//! away, rows that were lost. The producer adds what only it knows, such as how late the machine was. Imports are not
//! judged here: whoever made their evidence asked for nothing.

use serde_json::{Value, json};

use crate::fate::Attendance;

/// What a recording's rows say of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Clients of whose connections something is known.
    pub clients: usize,
    /// Those that the broker never accepted.
    pub never_connected: usize,
    /// Those that were accepted, and whose subscriptions never were.
    pub never_subscribed: usize,
    /// Those that had lost their connection when the run ended, and had not come back.
    pub away: usize,
    pub rows_lost: u64,
}

impl Seen {
    /// What these clients' connections say. Each comes with whether it had a SUBACK.
    pub(crate) fn of<'a>(clients: impl Iterator<Item = (&'a Attendance, bool)>, rows_lost: u64) -> Seen {
        let mut seen = Seen { rows_lost, ..Seen::default() };
        for (attendance, subscribed) in clients {
            seen.clients += 1;
            seen.never_connected += usize::from(!attendance.ever_connected());
            seen.never_subscribed += usize::from(attendance.is_subscribing() && !subscribed);
            seen.away += usize::from(attendance.is_away());
        }
        seen
    }

    fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let Seen { clients, never_connected, never_subscribed, away, rows_lost } = *self;
        if rows_lost > 0 {
            reasons.push(format!(
                "{rows_lost} rows could not be written, so that counts are too low: free space on the disk, or \
                 record to another one (--runs)"
            ));
        }
        if never_connected > 0 {
            reasons.push(format!(
                "{never_connected} of {clients} clients never connected: see events.parquet for each client's \
                 errors, the broker's log and `mqttlab doctor`, or give them more time (phases.connect_timeout)"
            ));
        }
        if never_subscribed > 0 {
            reasons.push(format!(
                "{never_subscribed} of {clients} clients connected, but their subscriptions were never accepted: \
                 see the broker's log, or give them more time (phases.connect_timeout)"
            ));
        }
        // One client that is away may be the network's doing; all of them at once are not.
        if away > 0 && away + never_connected == clients {
            reasons.push(
                "when the run ended no client was connected any more: see the broker's log, and how much the \
                 network loses"
                    .into(),
            );
        }
        reasons
    }
}

/// The producer's verdict, with what the rows say before it. A producer that gave none gets none.
pub(crate) fn judged(verdict: &Value, seen: &Seen) -> Value {
    let reasons = seen.reasons();
    let Some(known) = verdict.as_object().filter(|_| !reasons.is_empty()) else { return verdict.clone() };
    let before = known.get("reasons").and_then(Value::as_array).cloned().unwrap_or_default();
    let reasons: Vec<Value> = reasons.into_iter().map(Value::from).chain(before).collect();
    let mut judged = known.clone();
    judged.insert("valid".into(), json!(false));
    judged.insert("reasons".into(), reasons.into());
    judged.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seen: Seen, expected: &[&str]) {
        let producer = json!({ "valid": true, "reasons": [], "ring_drops": 0 });
        let verdict = judged(&producer, &seen);
        let reasons: Vec<&str> =
            verdict["reasons"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(reasons.len(), expected.len(), "{reasons:?}");
        assert!(reasons.iter().zip(expected).all(|(reason, start)| reason.starts_with(start)), "{reasons:?}");
        assert_eq!(verdict["valid"], expected.is_empty());
        assert_eq!(verdict["ring_drops"], 0);
    }

    #[test]
    fn a_run_is_not_valid_when_clients_never_came_rows_were_lost_or_the_broker_had_gone() {
        let everybody = Seen { clients: 61, ..Seen::default() };
        check(everybody, &[]);
        check(Seen { never_connected: 22, ..everybody }, &["22 of 61 clients never connected"]);
        check(Seen { never_subscribed: 1, ..everybody }, &["1 of 61 clients connected"]);
        check(Seen { rows_lost: 7, ..everybody }, &["7 rows could not be written"]);
        check(Seen { away: 60, ..everybody }, &[]);
        check(Seen { away: 61, ..everybody }, &["when the run ended no client"]);
        let few = Seen { away: 1, never_connected: 60, ..everybody };
        check(few, &["60 of 61 clients never connected", "when the run ended no client"]);
    }

    #[test]
    fn what_the_rows_say_comes_before_what_the_producer_says_and_an_import_is_not_judged() {
        let late = json!({ "valid": false, "reasons": ["late"] });
        let seen = Seen { clients: 1, never_connected: 1, ..Seen::default() };
        assert_eq!(judged(&late, &seen)["reasons"][1], "late");
        assert_eq!(judged(&Value::Null, &seen), Value::Null);
        assert_eq!(judged(&late, &Seen::default()), late);
    }
}
