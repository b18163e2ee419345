//! Whether a run's timing may be believed.
//!
//! An emulator in user space is late when the machine is busy, and a load generator as well; neither shows in
//! the latencies it causes. So both count how late they were, and a run in which the emulator's lateness at the
//! 99th percentile exceeds what a path bears (`path_lateness`) is marked.
//!
//! A server that stood still did not run the scenario: the kernel says it of those here (`host/server_stalls.rs`), and clients
//! of those elsewhere (`server_silences.rs`).
//!
//! What it does not know: how late the broker was scheduled. That is the broker's latency, and part of the result.

use mqttlab_run::Validity;
use mqttlab_units::Duration;
use serde_json::{Value, json};

use crate::histogram::HistogramSnapshot;
use crate::verdict::lateness::{Contention, Late};
use crate::verdict::path_lateness::{LATENESS, PathLateness};

/// What was observed of the run itself.
#[derive(Clone, Debug, Default)]
pub struct ValidityEvidence {
    /// How late frames were handed over, by what their paths bear; `None` when nothing was emulated.
    pub emulator: Option<Vec<PathLateness>>,
    /// How late messages of the measurement were handed to their sessions, without what a burst takes by itself.
    pub senders: HistogramSnapshot,
    /// When servers stood still, a sentence for each time.
    pub stalls: Vec<String>,
    /// Frames that never reached the emulated links.
    pub ring_drops: u64,
    /// Frames that the receiving host did not take.
    pub refused: u64,
    /// The part of the measurement in which some task waited for a processor, in percent; `None` where the
    /// kernel does not say.
    pub cpu_pressure_percent: Option<f64>,
    /// Whether the threads had real-time priority.
    pub real_time: bool,
    /// Times that a recording thread waited for the disk.
    pub recorder_stalls: u64,
    /// Connections that the broker's host refused.
    pub turned_away: u64,
    /// Connections for which the program had no descriptor.
    pub no_descriptor: u64,
    /// Clients whose schedule held messages at the end that they had not offered.
    pub behind: u64,
    /// Topics whose messages are too small to say which of their publishers they are from.
    pub ambiguous_topics: u64,
    /// What the machine did to the run.
    pub contention: Contention,
}

/// The shortest mean delay, the same both ways, that bears such lateness, in tenths of a millisecond; zero where any does.
pub fn shortest_delay(late: Duration) -> Duration {
    if late <= LATENESS { Duration::ZERO } else { delay_of_share(late) }
}

/// The delay of which it is 2 %, in tenths of a millisecond, and not less.
pub fn delay_of_share(late: Duration) -> Duration {
    Duration::from_us(late.as_ns().saturating_mul(50).div_ceil(100_000) * 100)
}

/// The verdict as `run.json` holds it.
pub fn verdict(evidence: &ValidityEvidence) -> Value {
    let paths = evidence.emulator.as_deref().unwrap_or_default();
    let limit = paths.iter().map(|late| late.limit).min().unwrap_or(LATENESS);
    let reasons = reasons(evidence, limit);
    let seen = json!({
        "senders": evidence.senders.summary(),
        "lateness_limit_ns": limit.as_ns(),
        "ring_drops": evidence.ring_drops,
        "frames_refused": evidence.refused,
        "cpu_pressure_percent": evidence.cpu_pressure_percent,
        "real_time": evidence.real_time,
        "recorder_stalls": evidence.recorder_stalls,
    });
    let mut verdict = json!(Validity::of(reasons));
    for (name, value) in seen.as_object().into_iter().flatten() {
        verdict[name] = value.clone();
    }
    if evidence.emulator.is_some() {
        verdict["emulator"] = all(paths).summary();
        verdict["paths"] = paths.iter().map(PathLateness::facts).collect();
    }
    if let Some(control) = &evidence.contention.control {
        verdict["control_timer"] = control.summary();
    }
    verdict["machine"] = evidence.contention.facts();
    verdict
}

/// How late frames came, over all paths.
fn all(paths: &[PathLateness]) -> HistogramSnapshot {
    paths.iter().fold(HistogramSnapshot::default(), |sum, paths| sum.and(&paths.late))
}

/// Why a run is not valid; `limit` is what the path bears that bears least, which the senders are judged by, too.
fn reasons(evidence: &ValidityEvidence, limit: Duration) -> Vec<String> {
    let mut reasons = evidence.stalls.clone();
    reasons.extend(unmet(evidence));
    let p99 = |snapshot: &HistogramSnapshot| snapshot.percentile(99.0).unwrap_or(Duration::ZERO);
    // Without an emulator nothing asks for real-time priority, and it would not help.
    let real_time = evidence.real_time || evidence.emulator.is_none();
    let late = |late: &HistogramSnapshot| Late {
        cpu_percent: evidence.contention.emulator_cpu_percent,
        faults_major: evidence.contention.faults_major,
        held_up: evidence.contention.held_up,
        ..evidence.contention.late(late, real_time)
    };
    let paths = evidence.emulator.as_deref().unwrap_or_default();
    for one in paths.iter().filter(|one| p99(&one.late) > one.limit) {
        // What bears as much as every other needs no name.
        let place = if paths.len() > 1 { format!(" on {}", one.words()) } else { String::new() };
        let (p99, limit, words) = (p99(&one.late), one.limit, late(&one.late).words());
        reasons.push(format!(
            "the emulator was {p99} late at the 99th percentile{place}, above {limit}: {words}"
        ));
    }
    let emulator = evidence.emulator.as_deref().map(|paths| late(&all(paths)));
    let late = p99(&evidence.senders);
    if late > SENDER_LIMIT.max(limit) {
        let bound = SENDER_LIMIT.max(limit);
        let words = evidence.contention.late(&evidence.senders, real_time).words();
        reasons.push(format!(
            "the senders were {late} late at the 99th percentile in the measurement, above {bound}: {words}"
        ));
    }
    if evidence.ring_drops > 0 {
        let count = evidence.ring_drops;
        let words = emulator.map_or(String::new(), |late| format!(": {}", late.words()));
        reasons.push(format!(
            "{count} frames were lost before the emulated links, because the emulator did not read them in time{words}"
        ));
    }
    reasons
}

/// What was asked for and could not be had.
fn unmet(evidence: &ValidityEvidence) -> Vec<String> {
    let ValidityEvidence { turned_away, no_descriptor, behind, ambiguous_topics, .. } = *evidence;
    let reasons = [
        (
            no_descriptor,
            ["connection", "connections"],
            "could not be opened, because this program may open no more files: raise the limit (`ulimit -n`), or use \
             fewer clients",
        ),
        (
            turned_away,
            ["connection was", "connections were"],
            "refused, because nothing listened on the broker's port: see the broker's log, and whether the broker \
             limits its connections",
        ),
        (
            behind,
            ["client", "clients"],
            "could not offer all messages that were due: use fewer clients, or a lower message rate",
        ),
        (
            ambiguous_topics,
            ["topic has", "topics have"],
            "several publishers whose messages do not name them, so that their fate is unknown: use \
             payloads of 9 B or more, or a topic for each publisher",
        ),
    ];
    let unmet = reasons.into_iter().filter(|(count, ..)| *count > 0);
    unmet
        .map(|(count, [one, many], words)| format!("{count} {} {words}", if count == 1 { one } else { many }))
        .collect()
}

/// Latency counts from the intended time, so that a late sender's lateness is in it; below this it does not matter.
const SENDER_LIMIT: Duration = Duration::from_ms(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::AtomicHistogram;

    /// Paths that bear `limit`, and frames that were so late there.
    fn paths(limit: Duration, by: Duration) -> PathLateness {
        let histogram = AtomicHistogram::default();
        (0..100).for_each(|_| histogram.count(by));
        let ends = ["field".into(), "broker".into()];
        PathLateness { limit, paths: 1, ends, late: histogram.snapshot() }
    }

    fn late(by: Duration) -> Vec<PathLateness> {
        vec![paths(LATENESS, by)]
    }

    #[test]
    fn a_late_emulator_marks_the_run_and_says_what_to_do() {
        let evidence =
            ValidityEvidence { emulator: Some(late(Duration::from_ms(3))), ..ValidityEvidence::default() };
        let verdict = verdict(&evidence);
        assert_eq!(verdict["valid"], false);
        assert!(verdict["reasons"][0].as_str().unwrap().contains("ulimit -r"));
        assert!(verdict["emulator"]["p99_ns"].as_u64().unwrap() >= 3_000_000);
    }

    #[test]
    fn what_was_asked_for_and_could_not_be_had_marks_the_run_and_stands_first() {
        let (turned_away, no_descriptor, behind, ambiguous_topics) = (2, 22, 1, 1);
        let emulator = Some(late(Duration::from_ms(3)));
        let evidence = ValidityEvidence {
            emulator,
            turned_away,
            no_descriptor,
            behind,
            ambiguous_topics,
            ..Default::default()
        };
        let verdict = verdict(&evidence);
        let reasons = verdict["reasons"].as_array().unwrap();
        assert_eq!((verdict["valid"].as_bool(), reasons.len()), (Some(false), 5));
        for (reason, words) in reasons.iter().zip([
            "22 connections could not be opened, because",
            "2 connections were refused, because",
            "1 client could not offer",
            "1 topic has several publishers",
        ]) {
            assert!(reason.as_str().unwrap().starts_with(words), "{reason}");
        }
    }

    #[test]
    fn the_shortest_delay_is_the_least_that_bears_the_lateness() {
        let bears = |delay: Duration, late| LATENESS.max(Duration::from_ns(delay.as_ns() / 50)) >= late;
        for late in [0, 1, 99, 100, 101, 240, 1_960, 150_000].map(Duration::from_us) {
            let delay = shortest_delay(late);
            assert!(bears(delay, late), "{delay} for {late}");
            let less = delay.saturating_sub(Duration::from_us(101));
            assert!(delay.is_zero() || !bears(less, late), "{less} for {late}");
        }
    }

    #[test]
    fn each_path_is_judged_by_its_own_limit() {
        let (far, near) = (Duration::from_ms(11), LATENESS);
        let of = |by| Some(vec![paths(near, by), paths(far, Duration::from_ms(5))]);
        let late = verdict(&ValidityEvidence { emulator: of(Duration::from_us(200)), ..Default::default() });
        let reasons = late["reasons"].as_array().unwrap();
        assert_eq!((late["valid"].as_bool(), reasons.len()), (Some(false), 1));
        let said = reasons[0].as_str().unwrap();
        assert!(said.contains("on the path from `field` to `broker`, above 100 us: "), "{said}");
        assert_eq!(
            (&late["paths"][1]["limit_ns"], &late["lateness_limit_ns"]),
            (&json!(11_000_000), &json!(100_000))
        );
        let in_time =
            verdict(&ValidityEvidence { emulator: of(Duration::from_us(90)), ..Default::default() });
        assert_eq!(in_time["valid"], true);
    }

    #[test]
    fn senders_are_judged_by_the_messages_of_the_measurement_alone() {
        // Whether they were late in the warm-up or in the measurement; how many messages were in time in the other.
        for (is_measured, others) in [(false, 9), (false, 100_000), (true, 9), (true, 100_000)] {
            let lateness = crate::control::SenderLateness::default();
            (0..10).for_each(|_| lateness.count(is_measured, Duration::from_ms(50)));
            (0..others).for_each(|_| lateness.count(!is_measured, Duration::from_us(10)));
            let verdict =
                verdict(&ValidityEvidence { senders: lateness.measured(), ..ValidityEvidence::default() });
            assert_eq!(verdict["valid"], !is_measured, "{is_measured} {others}");
            assert_eq!(lateness.all().len(), 10 + others);
            let said = verdict["reasons"][0].as_str().unwrap_or_default();
            assert_eq!(
                said.contains("99th percentile in the measurement, above 1 ms"),
                is_measured,
                "{said}"
            );
        }
    }

    #[test]
    fn an_emulator_in_time_leaves_the_run_unmarked() {
        let evidence =
            ValidityEvidence { emulator: Some(late(Duration::from_us(90))), ..ValidityEvidence::default() };
        assert_eq!(verdict(&evidence)["valid"], true);
    }
}
