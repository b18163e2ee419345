//! Whether a run's numbers may be believed, as far as its rows tell: the same for live runs and simulations.
//!
//! A run is not valid when it did not measure what the scenario asks for: clients that never came, a broker that went
//! away, rows that were lost. The producer adds what only it knows, such as how late the machine was. Imports are not
//! judged here: whoever made their evidence asked for nothing.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::fate::Attendance;
use crate::flow::{Flow, s};
use crate::refusals;
use crate::waiting::Explanation;

/// Reasons that have a line of their own each.
const REASONS_NAMED: usize = 5;

/// What a recording's rows say of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunEvidence {
    /// Clients of whose connections something is known.
    pub clients: usize,
    /// Those that the broker never accepted.
    pub never_connected: usize,
    /// Those that were accepted, and whose subscriptions never were.
    pub never_subscribed: usize,
    /// Those that had lost their connection when the run ended, and had not come back.
    pub away: usize,
    /// Those of them that nothing of the scenario keeps away.
    pub away_unexplained: usize,
    pub rows_lost: u64,
    /// Why those never connected that have been told, and how many of them.
    pub refusals: BTreeMap<String, usize>,
    pub flow: Flow,
    /// Deliveries under way that something explains.
    pub explained: u64,
    /// What explains them.
    pub remarks: Vec<String>,
    /// Whether all that happened follows from the scenario, as in a simulation.
    pub is_modelled: bool,
}

/// What is known of a client.
pub(crate) struct ClientEvidence<'a> {
    pub(crate) number: u32,
    pub(crate) attendance: &'a Attendance,
    /// Whether it had a SUBACK.
    pub(crate) is_subscribed: bool,
    /// Why its last connection failed.
    pub(crate) failure: Option<&'a str>,
}

impl RunEvidence {
    /// What these clients' connections say.
    pub(crate) fn of<'a>(
        clients: impl Iterator<Item = ClientEvidence<'a>>,
        flow: Flow,
        explanation: Explanation,
    ) -> RunEvidence {
        let Explanation { explained, remarks, held } = explanation;
        let mut seen = RunEvidence { flow, explained, remarks, ..RunEvidence::default() };
        for ClientEvidence { number, attendance, is_subscribed, failure } in clients {
            seen.clients += 1;
            if !attendance.ever_connected() {
                seen.never_connected += 1;
                if let Some(failure) = failure {
                    *seen.refusals.entry(failure.into()).or_default() += 1;
                }
            }
            seen.never_subscribed += usize::from(attendance.is_subscribing() && !is_subscribed);
            seen.away += usize::from(attendance.is_away());
            seen.away_unexplained += usize::from(attendance.is_away() && !held.contains(&number));
        }
        seen
    }

    fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let RunEvidence { clients, never_connected, never_subscribed, away, rows_lost, flow, .. } = *self;
        if rows_lost > 0 {
            reasons.push(format!(
                "{rows_lost} rows could not be written, so that counts are too low: free space on the disk, or \
                 record to another one (--runs)"
            ));
        }
        reasons.extend(self.why_never_connected());
        if never_subscribed > 0 {
            reasons.push(format!(
                "{never_subscribed} of {clients} clients connected, but their subscriptions were never accepted: \
                 {}give them more time (phases.connect_timeout)",
                if self.is_modelled { "" } else { "see the broker's log, or " }
            ));
        }
        if self.is_modelled {
            return reasons;
        }
        // Where the scenario keeps away all that are, nobody is missed.
        let away = if self.away_unexplained > 0 { away } else { 0 };
        // One client that is away may be the network's doing; all of them at once are not.
        if away > 0 && away + never_connected == clients {
            reasons.push(
                "when the run ended no client was connected any more: see the broker's log, and how much the \
                 network loses"
                    .into(),
            );
        }
        let under_way = flow.under_way.saturating_sub(self.explained);
        if flow.stood_still(under_way) {
            reasons.push(format!(
                "{}{} of {} expected deliveries were under way when the run ended, after a cool-down of {:.3} s, of \
                 which 99 % of the others took less than a third: the broker or the network stood still; see the \
                 broker's log",
                flow.since(),
                under_way,
                flow.expected,
                s(flow.cool_down_ns)
            ));
        }
        reasons
    }

    /// A line for each reason that clients were told, the most frequent first: how many, why, and what helps.
    fn why_never_connected(&self) -> Vec<String> {
        let RunEvidence { clients, never_connected, .. } = *self;
        // Different words of one reason, such as the seconds since a certificate's end, are one reason.
        let mut grouped: BTreeMap<String, usize> = BTreeMap::new();
        for (detail, count) in &self.refusals {
            let why = if self.is_modelled { modelled(detail) } else { refusals::explained(detail) };
            *grouped.entry(why).or_default() += count;
        }
        let untold = never_connected.saturating_sub(grouped.values().sum());
        if untold > 0 {
            let words = match self.is_modelled {
                true => modelled("none was told why"),
                false => {
                    "none was told why; see the broker's log and `mqttlab doctor`, or give them more time \
                          (phases.connect_timeout)"
                        .into()
                }
            };
            grouped.insert(words, untold);
        }
        let mut told: Vec<(String, usize)> = grouped.into_iter().collect();
        told.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let line =
            |(why, count): &(String, usize)| format!("{count} of {clients} clients never connected: {why}");
        let mut lines: Vec<String> = told.iter().take(REASONS_NAMED).map(line).collect();
        let left = told.iter().skip(REASONS_NAMED).map(|(_, count)| count).sum::<usize>();
        if left > 0 {
            let more = told.len() - REASONS_NAMED;
            lines.push(format!(
                "{left} of {clients} clients never connected, for {more} more reasons: see the report"
            ));
        }
        lines
    }
}

/// Why a simulated client never connected, and what helps: nobody has a log of it.
fn modelled(detail: &str) -> String {
    let explained = refusals::explained(detail);
    if !explained.contains("'s log") {
        return explained;
    }
    format!("{detail}; see the network's loss and delay, or give them more time (`phases.connect_timeout`)")
}

/// The producer's verdict, with what the rows say before it. A producer that gave none gets none.
pub(crate) fn judged(verdict: &Value, seen: &RunEvidence) -> Value {
    let Some(known) = verdict.as_object() else { return verdict.clone() };
    let (reasons, mut judged) = (seen.reasons(), known.clone());
    let list = |name: &str| known.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    if !seen.remarks.is_empty() {
        let remarks = seen.remarks.iter().take(REASONS_NAMED).cloned().map(Value::from);
        judged.insert("remarks".into(), remarks.chain(list("remarks")).collect());
    }
    if !reasons.is_empty() {
        let reasons = reasons.into_iter().map(Value::from).chain(list("reasons"));
        judged.insert("valid".into(), json!(false));
        judged.insert("reasons".into(), reasons.collect());
    }
    judged.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seen: &RunEvidence, expected: &[&str]) {
        let producer = json!({ "valid": true, "reasons": [], "ring_drops": 0 });
        let verdict = judged(&producer, seen);
        let reasons: Vec<&str> =
            verdict["reasons"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(reasons.len(), expected.len(), "{reasons:?}");
        assert!(reasons.iter().zip(expected).all(|(reason, start)| reason.starts_with(start)), "{reasons:?}");
        assert_eq!(verdict["valid"], expected.is_empty());
        assert_eq!(verdict["ring_drops"], 0);
    }

    #[test]
    fn a_run_is_not_valid_when_clients_never_came_rows_were_lost_or_the_broker_had_gone() {
        let everybody = || RunEvidence { clients: 61, ..RunEvidence::default() };
        check(&everybody(), &[]);
        check(
            &RunEvidence { never_connected: 22, ..everybody() },
            &["22 of 61 clients never connected: none was told"],
        );
        check(&RunEvidence { never_subscribed: 1, ..everybody() }, &["1 of 61 clients connected"]);
        check(&RunEvidence { rows_lost: 7, ..everybody() }, &["7 rows could not be written"]);
        check(&RunEvidence { away: 60, ..everybody() }, &[]);
        let gone = RunEvidence { away: 61, away_unexplained: 61, ..everybody() };
        check(&gone, &["when the run ended no client"]);
        check(&RunEvidence { away_unexplained: 1, ..gone.clone() }, &["when the run ended no client"]);
        check(&RunEvidence { away_unexplained: 0, ..gone.clone() }, &[]);
        check(&RunEvidence { is_modelled: true, ..gone }, &[]);
        let few = RunEvidence { away: 1, away_unexplained: 1, never_connected: 60, ..everybody() };
        check(&few, &["60 of 61 clients never connected", "when the run ended no client"]);
    }

    #[test]
    fn why_clients_never_connected_is_said_the_most_frequent_reason_first() {
        let told = [("a", 2), ("CONNECT: code 0x05", 30), ("c", 1), ("d", 4), ("e", 1), ("f", 1)];
        let told = told.map(|(why, count)| (why.to_string(), count));
        let seen =
            RunEvidence { clients: 61, never_connected: 42, refusals: told.into(), ..RunEvidence::default() };
        check(
            &seen,
            &[
                "30 of 61 clients never connected: CONNACK 0x05 not authorised; see `mqtt.username`",
                "4 of 61 clients never connected: d; see the broker's log",
                "3 of 61 clients never connected: none was told why",
                "2 of 61 clients never connected: a; see",
                "1 of 61 clients never connected: c; see",
                "2 of 61 clients never connected, for 2 more reasons",
            ],
        );
    }

    #[test]
    fn a_flow_stood_still_where_most_is_under_way_long_after_what_came_had_come() {
        let frozen = Flow {
            cool_down_ns: 3_000,
            end_ns: 9_000,
            last_ns: 7_000,
            expected: 900,
            under_way: 778,
            arrived: 122,
            slow: 1,
            ..Flow::default()
        };
        let still = |flow| {
            check(&RunEvidence { flow, ..RunEvidence::default() }, &["778 of 900 expected deliveries"])
        };
        let flows = |flow| check(&RunEvidence { flow, ..RunEvidence::default() }, &[]);
        still(frozen);
        // More than a link carries: what comes in the cool-down is late.
        flows(Flow { slow: 2, ..frozen });
        flows(Flow { under_way: 450, ..frozen });
        // The scenario keeps what does not come, or there is nothing beside it.
        let explained = |explained| RunEvidence { flow: frozen, explained, ..RunEvidence::default() };
        check(&explained(327), &["451 of 900 expected deliveries"]);
        check(&explained(328), &[]);
        check(&RunEvidence { is_modelled: true, ..explained(0) }, &[]);
        // Nothing has come, so that nobody knows how long it takes.
        flows(Flow { arrived: 0, slow: 0, ..frozen });
        flows(Flow::default());
        // It stopped when most had come, and nothing has come since.
        let silent = Flow { last_ns: 5_900, under_way: 45, arrived: 855, ..frozen };
        check(
            &RunEvidence { flow: silent, ..RunEvidence::default() },
            &["nothing arrived after 0.000 s of the run"],
        );
        flows(Flow { last_ns: 6_001, ..silent });
        flows(Flow { under_way: 44, ..silent });
        flows(Flow { expected: 90, under_way: 9, ..silent });
    }

    #[test]
    fn a_run_to_which_nothing_was_delivered_says_so_and_is_valid() {
        let words = |flow: Flow| flow.warning().unwrap_or_default();
        let none = Flow { expected: 100, under_way: 90, lost: 7, ..Flow::default() };
        assert!(words(none).contains("none happened (7 lost, 90 under way at the end, 3 of unknown fate)"));
        assert!(words(Flow { without_receiver: 5, ..Flow::default() }).contains("any of the 5 messages"));
        check(&RunEvidence { flow: none, ..RunEvidence::default() }, &[]);
        for flow in [Flow { delivered: 1, ..none }, Flow::default()] {
            assert_eq!(flow.warning(), None);
        }
    }

    #[test]
    fn a_simulation_sends_nobody_to_a_log() {
        let refusals = BTreeMap::from([("cannot connect: connection refused".into(), 1)]);
        let seen = RunEvidence {
            clients: 3,
            never_connected: 2,
            never_subscribed: 1,
            refusals,
            is_modelled: true,
            ..RunEvidence::default()
        };
        let said = seen.reasons();
        assert_eq!(said.len(), 3);
        assert!(said.iter().all(|reason| !reason.contains("log") && !reason.contains("doctor")), "{said:?}");
    }

    #[test]
    fn what_explains_deliveries_is_a_remark_of_a_valid_run() {
        let valid = json!({ "valid": true, "reasons": [] });
        let seen = RunEvidence { remarks: vec!["app away".into()], ..RunEvidence::default() };
        assert_eq!(judged(&valid, &seen), json!({ "valid": true, "reasons": [], "remarks": ["app away"] }));
    }

    #[test]
    fn what_the_rows_say_comes_before_what_the_producer_says_and_an_import_is_not_judged() {
        let late = json!({ "valid": false, "reasons": ["late"] });
        let seen = RunEvidence { clients: 1, never_connected: 1, ..RunEvidence::default() };
        assert_eq!(judged(&late, &seen)["reasons"][1], "late");
        assert_eq!(judged(&Value::Null, &seen), Value::Null);
        assert_eq!(judged(&late, &RunEvidence::default()), late);
    }
}
