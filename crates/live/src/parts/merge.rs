//! One recording of what several parts have written down.
//!
//! Rows are appended to part 0's spools, their times corrected by how the part's clock drifted; what follows from all rows
//! together is worked out when the recording is finished, as of any other.

use std::fs;
use std::path::{Path, PathBuf};

use mqttlab_plan::Plan;
use mqttlab_recording::{RunFacts, append_part};
use mqttlab_units::Instant;
use serde_json::{Value, json};

use super::clock_offset::{ClockDrift, ClockOffset};
use super::messages::PartReport;
use crate::parts::client_share::ClientShare;

/// What is to be said of the run that the rows do not say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Merged {
    /// Rows that other parts could not write.
    pub(crate) rows_lost: u64,
    /// The first part that was in trouble, and what its trouble was.
    pub(crate) problem: Option<String>,
    /// Whether a part has not handed over all that it has recorded.
    pub(crate) rows_missing: bool,
}

/// What came of a part, seen from part 0.
pub(super) struct Collected {
    pub(super) number: u32,
    /// Part 0's clock less the part's, at the beginning.
    pub(super) clock: Option<ClockOffset>,
    /// What it says of itself.
    pub(super) report: Option<PartReport>,
    /// Whether all of its files are here.
    pub(super) kept: bool,
    /// Where its files are.
    pub(super) files: PathBuf,
    pub(super) trouble: Option<String>,
}

/// Brings the parts' rows into the recording in `place`, whose recorder is closed.
pub(super) fn merge(plan: &Plan, parts: Vec<Collected>, place: &Path, facts: &mut RunFacts) -> Merged {
    let clients = *plan.client_numbers().last().expect("there is an end");
    let count = |part| ClientShare { part, of: plan.live.parts }.count(clients);
    let mut parts_facts = vec![json!({ "part": 0, "clients": count(0), "problem": null })];
    let (mut bounds, mut merged) = (Vec::new(), Merged::default());
    for Collected { number, clock, report, kept, files, trouble } in parts {
        let clock = clock.map(|began| {
            let ended = report.as_ref().and_then(|report| report.clock).unwrap_or(began);
            (began, ClockDrift::between(began, ended))
        });
        let mut problem = trouble;
        if let Some(report) = &report {
            let shift = |at| clock.map_or(at, |(_, drift)| corrected(at, report.epoch_ns, &drift));
            let appended = append_part(place, &files, shift);
            merged.rows_missing |= appended.is_err();
            problem = problem.or(appended.err().map(|error| error.to_string()));
            merged.rows_lost += report.rows_lost;
            adopt(facts, number, report);
        }
        merged.rows_missing |= !kept;
        let _ = fs::remove_dir_all(&files);
        problem = problem.or(report.is_none().then(|| "it has handed nothing over".to_owned()));
        bounds.extend(clock.map(|(_, drift)| drift.bound_ns()));
        parts_facts.push(json!({
            "part": number,
            "clients": count(number),
            "problem": problem,
            "machine": report.as_ref().map(|report| &report.machine),
            "validity": report.as_ref().map(|report| &report.validity),
            "clock": clock.map(|(began, drift)| clock_facts(&began, &drift)),
        }));
        let words = problem.map(|problem| format!("part {number} of the run: {problem}"));
        merged.problem = merged.problem.or(words);
    }
    facts.details.insert("parts".into(), Value::Array(parts_facts));
    facts.details.insert("clock_bound_ns".into(), json!(bound_between(bounds)));
    merged
}

/// A part's run time as part 0 would have had it. `epoch_ns` is what the part's clock said at run time zero.
fn corrected(at: Instant, epoch_ns: i64, drift: &ClockDrift) -> Instant {
    let grown = drift.at((at.as_ns() as i64).saturating_add(epoch_ns));
    Instant::from_ns(at.as_ns().saturating_add_signed(grown))
}

/// How far a time between events on two parts may be off: between two parts that both follow, both clocks' errors count.
fn bound_between(mut bounds: Vec<u64>) -> u64 {
    bounds.sort_unstable_by(|a, b| b.cmp(a));
    bounds.iter().take(2).sum()
}

/// `run.json`'s words on a part's clock: how far part 0's was ahead of it.
fn clock_facts(began: &ClockOffset, drift: &ClockDrift) -> Value {
    json!({
        "offset_ns": began.offset_ns,
        "bound_ns": drift.bound_ns(),
        "rounds": began.rounds,
        "drift_ns": drift.grown_ns(),
    })
}

/// What makes a part's numbers doubtful makes the run's.
fn adopt(facts: &mut RunFacts, part: u32, report: &PartReport) {
    facts.warnings.extend(report.warnings.iter().map(|warning| format!("part {part}: {warning}")));
    let reasons = report.validity.get("reasons").and_then(Value::as_array).into_iter().flatten();
    let reasons: Vec<Value> =
        reasons.filter_map(Value::as_str).map(|reason| json!(format!("part {part}: {reason}"))).collect();
    if report.validity.get("valid") == Some(&json!(false)) {
        facts.validity["valid"] = json!(false);
    }
    if let Some(known) = facts.validity.get_mut("reasons").and_then(Value::as_array_mut) {
        known.extend(reasons);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(validity: Value) -> PartReport {
        PartReport {
            files: Vec::new(),
            machine: Value::Null,
            warnings: vec!["no room".into()],
            validity,
            rows_lost: 0,
            epoch_ns: 0,
            clock: None,
        }
    }

    #[test]
    fn a_run_is_valid_when_all_of_its_parts_are() {
        let mut facts = RunFacts { validity: json!({ "valid": true, "reasons": [] }), ..RunFacts::default() };
        adopt(&mut facts, 1, &report(json!({ "valid": true, "reasons": [] })));
        assert_eq!(facts.validity["valid"], true);
        adopt(&mut facts, 2, &report(json!({ "valid": false, "reasons": ["late"] })));
        assert_eq!(facts.validity, json!({ "valid": false, "reasons": ["part 2: late"] }));
        assert_eq!(facts.warnings, ["part 1: no room", "part 2: no room"]);
    }

    #[test]
    fn between_two_parts_that_follow_both_clocks_may_be_off() {
        assert_eq!(bound_between(vec![]), 0);
        assert_eq!(bound_between(vec![7]), 7);
        assert_eq!(bound_between(vec![7, 30, 9]), 39);
    }

    #[test]
    fn a_time_is_corrected_by_what_its_own_clock_said() {
        let at = |own_ns, offset_ns| ClockOffset { offset_ns, bound_ns: 5, rounds: 1, own_ns };
        let drift = ClockDrift::between(at(1_000, -400), at(2_000, -300));
        let run_time = |ns| corrected(Instant::from_ns(ns), 1_000, &drift).as_ns();
        assert_eq!([run_time(0), run_time(500), run_time(1_000), run_time(3_000)], [0, 550, 1_100, 3_100]);
    }
}
