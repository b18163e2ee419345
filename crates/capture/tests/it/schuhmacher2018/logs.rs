//! The logs against `reference_logs_client1.csv`, `reference_logs_client2.csv` and `reference_tables.csv`.

use std::collections::BTreeMap;
use std::io::BufReader;

use mqttlab_capture::log::{Action, LoggedEvent, LoggedMessage, LoggedMessages, match_messages, read_events};
use mqttlab_capture::metrics::interpolate;
use mqttlab_units::Instant;

use super::reference::{Data, Verdicts};

/// The study was made in Germany, in summer.
const UTC_OFFSET_S: i64 = 7_200;
const NS: f64 = 1e-9;
const MINUTE_NS: u64 = 60_000_000_000;

pub fn events(data: &Data, file: &str) -> Vec<LoggedEvent> {
    read_events(BufReader::new(data.open(file)), UTC_OFFSET_S).expect("a log")
}

fn count(events: &[LoggedEvent], action: Action) -> usize {
    events.iter().filter(|event| event.action == action).count()
}

fn mean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

fn seconds(trips: &[u64]) -> Vec<f64> {
    trips.iter().map(|&ns| ns as f64 * NS).collect()
}

fn quantile(sorted: &[u64], q: f64) -> Option<f64> {
    (!sorted.is_empty()).then(|| interpolate(sorted, q) * NS)
}

/// What the study's own script averages: the first of several runs, without message 0 and without round trips of
/// 0 ms, and minutes where a round trip reached one. The reference puts back message 0 and round trips of 0 ms
/// together, then the seconds.
#[derive(Clone, Copy)]
struct Study {
    keep_zeros: bool,
    keep_seconds: bool,
}

impl Study {
    fn samples(self, messages: &LoggedMessages) -> Vec<f64> {
        let first_run = messages.sent.iter().filter(|message| message.run == 0);
        let kept = first_run.filter(|message| self.keep_zeros || message.id != 0);
        let trips = kept
            .filter_map(LoggedMessage::round_trip)
            .map(|trip| trip.as_ns())
            .filter(|&ns| self.keep_zeros || ns > 0);
        let unit = |ns: u64| if ns >= MINUTE_NS && !self.keep_seconds { 60.0 } else { 1.0 };
        trips.map(|ns| ns as f64 * NS / unit(ns)).collect()
    }
}

const AS_PUBLISHED: Study = Study { keep_zeros: false, keep_seconds: false };

fn standard_deviation(samples: &[f64]) -> Option<f64> {
    let mean = mean(samples)?;
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    (samples.len() > 1).then(|| (squares / (samples.len() - 1) as f64).sqrt())
}

pub fn compare_client1(data: &Data) -> Verdicts {
    let mut verdicts = Verdicts::default();
    for row in data.table("reference_logs_client1.csv") {
        let file = &row["file"];
        let events = events(data, file);
        let messages = match_messages(&events);
        let trips = messages.round_trips_ns();
        let study = AS_PUBLISHED.samples(&messages);
        let delivered = trips.len();
        let mut number = |column: &str, ours: Option<f64>| {
            verdicts.number(&format!("{file} {column}"), ours, &row[column]);
        };
        let mut integer = |column: &str, ours: usize| number(column, Some(ours as f64));
        integer("rows", events.len());
        integer("runs", messages.runs as usize);
        integer("sent", messages.sent.len());
        integer("fail", messages.failed as usize);
        integer("discard", messages.discarded as usize);
        integer("received_rows", count(&events, Action::Received));
        integer("delivered", delivered);
        integer("duplicates", messages.sent.iter().map(|message| message.duplicates as usize).sum());
        integer("lost", messages.sent.len() - delivered);
        let zero = trips.iter().filter(|&&ns| ns == 0).count();
        // The reference counts round trips of 0 ms here, though the mean that it belongs to leaves them out.
        integer("study_n", study.len() + zero);
        integer("rtt_zero", zero);
        integer("rtt_ge60s", trips.iter().filter(|&&ns| ns >= MINUTE_NS).count());
        number("rtt_mean_s", mean(&seconds(&trips)));
        number("rtt_median_s", quantile(&trips, 0.5));
        number("rtt_p95_s", quantile(&trips, 0.95));
        number("rtt_p99_s", quantile(&trips, 0.99));
        number("rtt_min_s", quantile(&trips, 0.0));
        number("rtt_max_s", quantile(&trips, 1.0));
        number("rtt_std_s", standard_deviation(&seconds(&trips)));
        number("study_mean", mean(&study));
        number("send_gap_median_ms", gap_median_ms(&messages));
        let first = messages.sent.first().map(|message| message.sent);
        let expected = instant(&row["first_sent"]);
        verdicts.text(&format!("{file} first_sent"), &format!("{first:?}"), &format!("{expected:?}"));
    }
    verdicts
}

fn gap_median_ms(messages: &LoggedMessages) -> Option<f64> {
    let times: Vec<i128> = messages.sent.iter().map(|message| i128::from(message.sent.as_ns())).collect();
    let mut gaps: Vec<i128> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    let middle = gaps.len().checked_sub(1)?;
    Some((gaps[middle / 2] + gaps[middle.div_ceil(2)]) as f64 / 2e6)
}

/// A time as the log writes it, read back.
fn instant(text: &str) -> Option<Instant> {
    let line = format!("{},sent,t,0,0,0", text.replace(' ', ","));
    read_events(line.as_bytes(), UTC_OFFSET_S).ok().map(|events| events[0].time)
}

/// First receipt and first relaying of each message at the relay, by identifier. The reference does not tell apart the
/// runs that were appended to a relay's log, so the first run stands for the file.
fn relayed(events: &[LoggedEvent]) -> BTreeMap<u64, (Instant, Option<Instant>)> {
    let mut relayed: BTreeMap<u64, (Instant, Option<Instant>)> = BTreeMap::new();
    for event in events {
        match event.action {
            Action::Received => {
                relayed.entry(event.id).or_insert((event.time, None));
            }
            Action::Sent => {
                if let Some((_, sent)) = relayed.get_mut(&event.id) {
                    sent.get_or_insert(event.time);
                }
            }
            _ => {}
        }
    }
    relayed
}

pub fn compare_client2(data: &Data) -> Verdicts {
    let mut verdicts = Verdicts::default();
    for row in data.table("reference_logs_client2.csv") {
        let file = &row["file"];
        let relay_events = events(data, file);
        let relayed = relayed(&relay_events);
        let messages = match_messages(&events(data, &file.replace("client2", "client1")));
        let received = count(&relay_events, Action::Received);
        let (mut forward, mut relay, mut back) = (Vec::new(), Vec::new(), Vec::new());
        for message in messages.sent.iter().filter(|message| message.run == 0) {
            if let Some(&(at_relay, Some(from_relay))) = relayed.get(&message.id)
                && let Some(returned) = message.received
            {
                forward.push(difference(message.sent, at_relay));
                relay.push(difference(at_relay, from_relay));
                back.push(difference(from_relay, returned));
            }
        }
        let mut number = |column: &str, ours: Option<f64>| {
            verdicts.number(&format!("{file} {column}"), ours, &row[column]);
        };
        number("rows", Some(relay_events.len() as f64));
        number("received", Some(received as f64));
        number("sent", Some(count(&relay_events, Action::Sent) as f64));
        number("fail", Some(count(&relay_events, Action::Fail) as f64));
        number("unique_received", Some(relayed.len() as f64));
        number("duplicate_received", Some((received - relayed.len()) as f64));
        number("fwd_mean_s", mean(&forward));
        number("relay_mean_s", mean(&relay));
        number("back_mean_s", mean(&back));
        number("n", Some(forward.len() as f64));
        number("fwd_neg", Some(forward.iter().filter(|&&leg| leg < 0.0).count() as f64));
        number("back_neg", Some(back.iter().filter(|&&leg| leg < 0.0).count() as f64));
    }
    verdicts
}

/// The clocks of two logging threads may run back a millisecond.
fn difference(from: Instant, to: Instant) -> f64 {
    (i128::from(to.as_ns()) - i128::from(from.as_ns())) as f64 * NS
}

/// The senders' logs behind a cell of the study's tables.
fn cell_files(data: &Data, table: &str, row: &str, qos: &str) -> Vec<String> {
    let (folder, payload) = match table {
        "2" => ("logs.pi".to_owned(), row),
        "3" => ("latenz-volle-bandbreite".to_owned(), row),
        "4" => (format!("latenz-tc-{row}"), "10KByte"),
        _ => (format!("{row}-ploss"), "10KByte"),
    };
    let start = format!("mqtt-roundtrip-qos{qos}-{payload}-");
    let of_cell = |name: &String| name.starts_with(&start) && name.ends_with("-client1.log");
    data.files(&folder).into_iter().filter(of_cell).map(|name| format!("logs/{folder}/{name}")).collect()
}

pub fn compare_tables(data: &Data) -> Verdicts {
    let mut verdicts = Verdicts::default();
    for row in data.table("reference_tables.csv") {
        let files = cell_files(data, &row["table"], &row["row"], &row["qos"]);
        let logs: Vec<LoggedMessages> =
            files.iter().map(|file| match_messages(&events(data, file))).collect();
        let pooled = |study: Study| -> Vec<f64> { logs.iter().flat_map(|log| study.samples(log)).collect() };
        let mut trips: Vec<u64> = logs.iter().flat_map(LoggedMessages::round_trips_ns).collect();
        trips.sort_unstable();
        let replicated = pooled(AS_PUBLISHED);
        let what = format!("table {} {} QoS {}", row["table"], row["row"], row["qos"]);
        let mut number = |column: &str, ours: Option<f64>| {
            verdicts.number(&format!("{what} {column}"), ours, &row[column]);
        };
        let corrected = mean(&seconds(&trips));
        let published: Option<f64> = row["published"].parse().ok();
        let replicated_mean = mean(&replicated);
        number("replicated", replicated_mean);
        number("n_replicated", Some(replicated.len() as f64));
        let apart = published.zip(replicated_mean).map(|(p, r)| (p - (r * 1e7).round() / 1e7).abs());
        number("abs_diff", apart);
        number("plus_id0", mean(&pooled(Study { keep_zeros: true, ..AS_PUBLISHED })));
        number("plus_seconds", mean(&pooled(Study { keep_zeros: true, keep_seconds: true })));
        number("corrected_mean_s", corrected);
        number("n_corrected", Some(trips.len() as f64));
        number("median_s", quantile(&trips, 0.5));
        number("p95_s", quantile(&trips, 0.95));
        number("p99_s", quantile(&trips, 0.99));
        number("max_s", quantile(&trips, 1.0));
        number(
            "ratio_corr_pub",
            corrected.zip(published).map(|(corrected, published)| corrected / published),
        );
        let total = |read: fn(&LoggedMessages) -> usize| logs.iter().map(read).sum::<usize>();
        let duplicates = total(|log| log.sent.iter().map(|message| message.duplicates as usize).sum());
        let sent = total(|log| log.sent.len());
        let mut integer = |column: &str, ours: usize| number(column, Some(ours as f64));
        integer("files", files.len());
        integer("sent_ok", sent);
        integer("delivered", trips.len());
        integer("duplicates", duplicates);
        integer("lost", sent - trips.len());
        integer("fail", total(|log| log.failed as usize));
        integer("discard", total(|log| log.discarded as usize));
        integer("orphans", total(|log| log.orphans as usize));
        verdicts.text(&format!("{what} reasons"), &reasons(&logs, &trips, sent, duplicates), &row["reasons"]);
    }
    verdicts
}

/// Why the study's mean is not the corrected one.
fn reasons(logs: &[LoggedMessages], trips: &[u64], sent: usize, duplicates: usize) -> String {
    let id_0 =
        logs.iter().any(|log| log.sent.iter().any(|message| message.id == 0 && message.received.is_some()));
    let zero = trips.iter().filter(|&&ns| ns == 0).count();
    let first_runs = logs.iter().flat_map(|log| log.sent.iter().filter(|message| message.run == 0));
    let minutes = first_runs
        .filter(|message| message.round_trip().is_some_and(|trip| trip.as_ns() >= MINUTE_NS))
        .count();
    let runs = logs.iter().filter(|log| log.runs > 1).count();
    let lost = sent - trips.len();
    let mut reasons = Vec::new();
    let mut add = |applies: bool, reason: String| {
        if applies {
            reasons.push(reason);
        }
    };
    add(id_0, "ID0".to_owned());
    add(zero > 0, format!("ZERO({zero})"));
    add(minutes > 0, format!("MIN({minutes})"));
    add(runs > 0, format!("RUNS({runs})"));
    add(duplicates > 0, format!("DUP({duplicates})"));
    add(lost > 0, format!("LOST({lost}/{sent})"));
    reasons.join(" ")
}
