//! Whether a run's numbers may be believed, as far as its rows tell: the same for live runs and simulations.
//!
//! A run is not valid when it did not measure what the scenario asks for: clients that never came, a broker that went
//! away, rows that were lost. The producer adds what only it knows, such as how late the machine was. Imports are not
//! judged here: whoever made their evidence asked for nothing.

use std::collections::BTreeMap;

use mqttlab_rows::{MessageFate, Phase};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fate::Attendance;
use crate::refusals;
use crate::tables::MessageRow;

/// Reasons that have a line of their own each.
const REASONS_NAMED: usize = 5;

/// How many deliveries the measurement's messages were to have, and whether the others would have come in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Flow {
    /// The time from the end of the measurement to the end of the run.
    pub cool_down_ns: u64,
    /// When the run ended.
    pub end_ns: u64,
    /// When the last first delivery happened.
    pub last_ns: u64,
    /// Deliveries that the measurement's messages were to have.
    pub expected: u64,
    /// Those that had neither happened nor been lost at the end.
    pub under_way: u64,
    /// Those that happened.
    pub delivered: u64,
    /// Those that were lost.
    pub lost: u64,
    /// Messages of the measurement that no subscription was for.
    pub without_receiver: u64,
    /// First deliveries of the whole run.
    pub arrived: u64,
    /// Those that took longer than a third of the cool-down.
    pub slow: u64,
}

impl Flow {
    /// Takes a row of the messages' table into account.
    pub(crate) fn count(&mut self, row: &MessageRow<'_>) {
        if row.phase == Phase::Measurement {
            use MessageFate::{Delivered, Lost, NoReceiver, UnderWay, Unknown};
            self.expected += u64::from(matches!(row.fate, Delivered | Lost | UnderWay | Unknown));
            self.under_way += u64::from(row.fate == UnderWay);
            self.delivered += u64::from(row.fate == Delivered);
            self.lost += u64::from(row.fate == Lost);
            self.without_receiver += u64::from(row.fate == NoReceiver);
        }
        if row.fate == MessageFate::Delivered {
            self.arrived += 1;
            self.last_ns = self.last_ns.max(row.received_ns.unwrap_or(0));
            self.slow += u64::from(row.latency_ns.is_none_or(|took| took > self.cool_down_ns / 3));
        }
    }

    /// What to read before the numbers of a run to which nothing was delivered. That is no fault of the instrument: a scenario may
    /// ask for it.
    pub(crate) fn warning(&self) -> Option<String> {
        let Flow { expected, delivered, lost, under_way, without_receiver, .. } = *self;
        if delivered > 0 || expected + without_receiver == 0 {
            return None;
        }
        if expected == 0 {
            return Some(format!(
                "Nothing was delivered: no subscription was for any of the {without_receiver} messages of the measurement when the \
                 broker had them."
            ));
        }
        let unknown = expected - lost - under_way;
        let fates = [("lost", lost), ("under way at the end", under_way), ("of unknown fate", unknown)];
        let fates =
            fates.iter().filter(|(_, count)| *count > 0).map(|(fate, count)| format!("{count} {fate}"));
        Some(format!(
            "Nothing was delivered: of {expected} expected deliveries none happened ({}).",
            fates.collect::<Vec<_>>().join(", ")
        ))
    }

    /// Whether deliveries were under way at the end although the cool-down lasted three times the p99 of those that
    /// happened, which is as much as that 1 % of them took longer than a third of it: most of them, or a twentieth
    /// where in the whole cool-down nothing came. A flow that is only slow, or more than its link carries, has late
    /// deliveries until the end.
    fn stood_still(&self) -> bool {
        let silent = self.end_ns.saturating_sub(self.last_ns) >= self.cool_down_ns;
        let many = 2 * self.under_way > self.expected
            || silent && self.under_way >= UNDER_WAY_MIN && 20 * self.under_way >= self.expected;
        self.arrived > 0 && many && 100 * self.slow <= self.arrived
    }

    /// Since when, where nothing came any more.
    fn since(&self) -> String {
        let silent = self.end_ns.saturating_sub(self.last_ns) >= self.cool_down_ns;
        if !silent {
            return String::new();
        }
        format!(
            "nothing arrived after {:.3} s of the run, which ended at {:.3} s; ",
            s(self.last_ns),
            s(self.end_ns)
        )
    }
}

/// Fewer deliveries under way tell nothing of the broker.
const UNDER_WAY_MIN: u64 = 10;

fn s(ns: u64) -> f64 {
    ns as f64 / 1e9
}

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
    pub rows_lost: u64,
    /// Why those never connected that have been told, and how many of them.
    pub refusals: BTreeMap<String, usize>,
    pub flow: Flow,
}

impl RunEvidence {
    /// What these clients' connections say. Each comes with whether it had a SUBACK, and with why its last connection
    /// failed.
    pub(crate) fn of<'a>(
        clients: impl Iterator<Item = (&'a Attendance, bool, Option<&'a str>)>,
        rows_lost: u64,
        flow: Flow,
    ) -> RunEvidence {
        let mut seen = RunEvidence { rows_lost, flow, ..RunEvidence::default() };
        for (attendance, subscribed, failure) in clients {
            seen.clients += 1;
            if !attendance.ever_connected() {
                seen.never_connected += 1;
                if let Some(failure) = failure {
                    *seen.refusals.entry(failure.into()).or_default() += 1;
                }
            }
            seen.never_subscribed += usize::from(attendance.is_subscribing() && !subscribed);
            seen.away += usize::from(attendance.is_away());
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
        if flow.stood_still() {
            reasons.push(format!(
                "{}{} of {} expected deliveries were under way when the run ended, after a cool-down of {:.3} s, of \
                 which 99 % of the others took less than a third: the broker or the network stood still; see the \
                 broker's log",
                flow.since(),
                flow.under_way,
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
            *grouped.entry(refusals::explained(detail)).or_default() += count;
        }
        let untold = never_connected.saturating_sub(grouped.values().sum());
        if untold > 0 {
            let words = "none was told why; see the broker's log and `mqttlab doctor`, or give them more time \
                         (phases.connect_timeout)";
            grouped.insert(words.into(), untold);
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

/// The producer's verdict, with what the rows say before it. A producer that gave none gets none.
pub(crate) fn judged(verdict: &Value, seen: &RunEvidence) -> Value {
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
        check(&RunEvidence { away: 61, ..everybody() }, &["when the run ended no client"]);
        let few = RunEvidence { away: 1, never_connected: 60, ..everybody() };
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
    fn what_the_rows_say_comes_before_what_the_producer_says_and_an_import_is_not_judged() {
        let late = json!({ "valid": false, "reasons": ["late"] });
        let seen = RunEvidence { clients: 1, never_connected: 1, ..RunEvidence::default() };
        assert_eq!(judged(&late, &seen)["reasons"][1], "late");
        assert_eq!(judged(&Value::Null, &seen), Value::Null);
        assert_eq!(judged(&late, &RunEvidence::default()), late);
    }
}
