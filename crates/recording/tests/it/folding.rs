//! Sums and a sample of messages: whatever was added up while the run went on, the counts are those of all rows.

use std::collections::BTreeMap;
use std::path::Path;

use mqttlab_recording::{
    Acknowledged, DirectRecorder, Dropped, Ending, Event, EventKind, HeaderAnalyser, Layout, LossCause,
    Received, Recorder, RunFacts, Sent, Session, SummaryRule, Unsent, recover, snapshot,
};
use mqttlab_units::Seed;

use crate::common::*;

/// What a client does, in the order in which a run's threads write it.
enum Row {
    Sent(Sent),
    Unsent(Unsent),
    Acknowledged(Acknowledged),
    Received(Received),
    Dropped(Dropped),
    Event(Event, &'static str),
}

/// Messages of two publishers at each QoS, of which some are lost, repeated, late, out of order, dropped, not sent, or of
/// nobody.
fn rows(messages: u32) -> Vec<(u64, Row)> {
    let mut dice = Seed(5).dice();
    let mut rows = Vec::new();
    for number in 0..messages {
        let (publisher, sequence) = (number % 2, number / 2);
        let due = 100 + u64::from(number) * 10;
        if number % 90 == 0 {
            rows.extend(comes_back(number / 90 % 3, due));
        }
        let row = Sent {
            qos: (number % 6 / 2) as u8,
            ..sent(publisher, sequence, u32::from(number % 50 == 49), due)
        };
        let mut at_ns = due + 1 + dice.below(40);
        if dice.below(40) == 0 {
            let Sent { publisher, sequence, topic, qos, payload_bytes, intended, publication, .. } = row;
            rows.push((
                at_ns,
                Row::Unsent(Unsent { publisher, sequence, topic, qos, payload_bytes, intended, publication }),
            ));
            continue;
        }
        rows.push((at_ns, Row::Sent(row)));
        if row.qos > 0 && dice.below(30) > 0 {
            rows.push((
                at_ns + 200,
                Row::Acknowledged(Acknowledged { publisher, sequence, at: at(at_ns + 150) }),
            ));
        }
        for subscriber in (2..4).filter(|_| row.topic == 0) {
            if dice.below(50) == 0 {
                let (subscriber, cause) = (Some(subscriber), LossCause::QueueFull);
                let row = Dropped { publisher, sequence, subscriber, cause, at: at(at_ns) };
                rows.push((at_ns, Row::Dropped(row)));
                continue;
            }
            if dice.below(50) == 0 {
                continue;
            }
            let slow = dice.below(20) == 0;
            at_ns += dice.below(if slow { 2_000 } else { 100 });
            rows.push((at_ns, Row::Received(received(subscriber, Some(publisher), sequence, at_ns))));
            if dice.below(25) == 0 {
                let again = at_ns + dice.below(5_000);
                rows.push((again, Row::Received(received(subscriber, Some(publisher), sequence, again))));
            }
        }
        if dice.below(200) == 0 {
            rows.push((at_ns, Row::Received(received(2, None, 0, at_ns))));
        }
    }
    rows.sort_by_key(|(at_ns, _)| *at_ns);
    rows
}

/// A client's connection ends, and it has a new session a little later.
fn comes_back(client: u32, at_ns: u64) -> impl Iterator<Item = (u64, Row)> {
    let kinds = [
        EventKind::Disconnect,
        EventKind::Connect,
        EventKind::Connack,
        EventKind::Subscribe,
        EventKind::Suback,
    ];
    (at_ns..).step_by(20).zip(kinds).map(move |(ns, kind)| {
        (ns, Row::Event(Event { at: at(ns), kind, client: Some(client), took: None }, ""))
    })
}

fn of_sums(fold_bytes: u64, rows_most: u64, layout: Layout) -> Layout {
    Layout { summary: Some(SummaryRule { fold_bytes, rows_most }), ..layout }
}

fn long() -> Layout {
    let mut layout = Layout { measurement_end_ns: 60_000, ..layout() };
    layout.clients.iter_mut().for_each(|client| client.session = Some(Session { expiry_ns: Some(0) }));
    layout
}

fn push(recorder: &mut DirectRecorder, row: &Row) {
    match row {
        Row::Sent(row) => recorder.sent(row),
        Row::Unsent(row) => recorder.unsent(row),
        Row::Acknowledged(row) => recorder.acknowledged(row),
        Row::Received(row) => recorder.received(row),
        Row::Dropped(row) => recorder.dropped(row),
        Row::Event(event, detail) => recorder.event(event, detail),
    }
    .unwrap();
}

fn record(dir: &Path, layout: &Layout, messages: u32) {
    let mut recorder = DirectRecorder::create(dir, "{}", layout).unwrap();
    for (_, row) in rows(messages) {
        push(&mut recorder, &row);
    }
    let end = Event { at: at(2_000_000), kind: EventKind::Note, client: None, took: None };
    recorder.event(&end, "").unwrap();
    recorder.finish(None, &RunFacts::default(), &Ending::Complete).unwrap();
}

/// Rows by group of publishers and receivers, QoS, phase, fate and cause, with their bytes, late and disordered ones: counted from
/// the table of messages, and from the sums.
fn counted(dir: &Path) -> BTreeMap<String, [u64; 4]> {
    let mut found: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    let columns =
        ["publisher", "subscriber", "qos", "phase", "fate", "cause", "payload_bytes", "late", "out_of_order"];
    for row in cells(dir, "messages", &columns) {
        let group = |client: &str| {
            if client == "null" {
                "null"
            } else if client < "2" {
                "sensors"
            } else {
                "viewers"
            }
        };
        let qos = if row[4] == "duplicate" { "" } else { &row[2] };
        let key = [group(&row[0]), group(&row[1]), qos, &row[3], &row[4], &row[5]].join(" ");
        let of = found.entry(key).or_default();
        of[0] += 1;
        of[1] += row[6].parse::<u64>().unwrap();
        of[2] += u64::from(row[7] == "true");
        of[3] += u64::from(row[8] == "true");
    }
    found
}

fn summed(dir: &Path) -> BTreeMap<String, [u64; 4]> {
    let mut found: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    let columns = [
        "publisher_group",
        "subscriber_group",
        "qos",
        "phase",
        "fate",
        "cause",
        "count",
        "payload_bytes",
        "late",
        "out_of_order",
    ];
    for row in cells(dir, "message_sums", &columns) {
        let qos = if row[4] == "duplicate" { "" } else { &row[2] };
        let of = found.entry([&row[0], &row[1], qos, &row[3], &row[4], &row[5]].join(" ")).or_default();
        for (place, cell) in row[6..].iter().enumerate() {
            of[place] += cell.parse::<u64>().unwrap();
        }
    }
    found.retain(|_, counts| counts[0] > 0);
    found
}

/// The cells of a table as words, row by row.
fn cells(dir: &Path, name: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let text = table(dir, name, columns);
    text.lines().skip(1).map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

#[test]
fn sums_are_those_of_all_rows_however_often_they_were_made() {
    let whole = Scratch::new();
    record(whole.path(), &long(), 9_000);
    let clients = table(whole.path(), "clients", &CLIENT_COLUMNS);
    for fold_bytes in [500, 200_000, u64::MAX] {
        let scratch = Scratch::new();
        record(scratch.path(), &of_sums(fold_bytes, 1_000, long()), 9_000);
        assert_eq!(table(scratch.path(), "clients", &CLIENT_COLUMNS), clients, "{fold_bytes}");
        let (expected, found) = (counted(whole.path()), summed(scratch.path()));
        assert!(expected.len() > 20, "{expected:?}");
        assert_eq!(found, expected, "{fold_bytes}");
    }
}

const CLIENT_COLUMNS: [&str; 10] = [
    "client",
    "sent",
    "unsent",
    "acknowledged",
    "delivered",
    "lost",
    "under_way",
    "duplicates",
    "out_of_order",
    "late",
];

#[test]
fn the_sample_is_the_same_and_no_larger_than_it_may_be_however_often_rows_were_added_up() {
    let tables = [500, 200_000, u64::MAX].map(|fold_bytes| {
        let scratch = Scratch::new();
        record(scratch.path(), &of_sums(fold_bytes, 1_000, long()), 9_000);
        let sampled = json(&scratch.join("run.json"))["sampled"].clone();
        assert_eq!(sampled, "1 in 32", "18,000 deliveries, and at most 1,000 rows");
        table(
            scratch.path(),
            "messages",
            &["publisher", "sequence", "subscriber", "fate", "out_of_order", "latency_ns"],
        )
    });
    let rows = tables[0].lines().count();
    assert!((300..1_000).contains(&rows), "{rows}");
    assert!(tables[0] == tables[1] && tables[1] == tables[2]);
}

#[test]
fn a_run_that_is_killed_between_two_folds_is_completed_from_the_last_one() {
    let (whole, killed) = (Scratch::new(), Scratch::new());
    record(whole.path(), &of_sums(500, 1_000, long()), 9_000);
    let dir = killed.join("run");
    let recorder = Recorder::create(&dir, "{}", &of_sums(500, 1_000, long())).unwrap();
    let mut sink = recorder.sink();
    for (_, row) in rows(9_000) {
        match row {
            Row::Sent(row) => sink.sent(&row),
            Row::Unsent(row) => sink.unsent(&row),
            Row::Acknowledged(row) => sink.acknowledged(&row),
            Row::Received(row) => sink.received(&row),
            Row::Dropped(row) => sink.dropped(&row),
            Row::Event(event, detail) => sink.event(&event, detail),
        }
    }
    drop(sink);
    // Not finished: the directory is as a killed engine leaves it, with a fold that was begun.
    drop(recorder.close());
    assert!(
        std::fs::read_dir(&dir).unwrap().any(|entry| entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with("fold-"))
    );
    std::fs::create_dir(dir.join("fold-next")).unwrap();
    let copied = killed.join("copy");
    snapshot(&dir, &copied, &mut HeaderAnalyser::default()).unwrap();
    let summary = recover(&dir, None, &mut HeaderAnalyser::default()).unwrap();
    assert_eq!(summary.sampled.as_deref(), Some("1 in 32"));
    // Who is lost and who is not known is judged by the end, which a killed run has not.
    let judged = |dir: &Path| {
        let counts = summed(dir).into_iter().filter(|(key, _)| {
            ["delivered", "duplicate", "unsent", "no_receiver", "queue_full"]
                .iter()
                .any(|word| key.contains(word))
        });
        counts.collect::<Vec<_>>()
    };
    assert_eq!(judged(&dir), judged(whole.path()));
    assert_eq!(summed(&copied), summed(&dir));
    let left =
        std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = left.filter(|name| name.contains("fold") || name.contains("spool")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn neither_memory_nor_disk_grows_with_the_length_of_a_run() {
    let of = |messages: u32| {
        let scratch = Scratch::new();
        let layout = of_sums(100_000, 500, Layout { receivers: vec![vec![], vec![2]], ..layout() });
        let mut spools = 0;
        let held = mqttlab_counting::peak(|| {
            let mut recorder = DirectRecorder::create(scratch.path(), "{}", &layout).unwrap();
            for sequence in 0..messages {
                let due = 2_000 + 100 * u64::from(sequence);
                push(&mut recorder, &Row::Sent(sent(0, sequence, 0, due)));
                push(&mut recorder, &Row::Received(received(2, Some(0), sequence, due + 50)));
                let at = at(due + 60);
                push(&mut recorder, &Row::Acknowledged(Acknowledged { publisher: 0, sequence, at }));
            }
            spools = bytes_below(scratch.path());
            recorder.finish(None, &RunFacts::default(), &Ending::Complete).unwrap();
        });
        (held, spools, bytes_below(scratch.path()))
    };
    let (short, long) = (of(20_000), of(80_000));
    assert!(long.0 * 4 < short.0 * 5, "four times as many messages hold {} bytes, not {}", long.0, short.0);
    assert!(long.1 < 500_000 && long.2 < 100_000, "{long:?}: rows of 86 B of each message would be 7 MB");
}

/// The sizes of all files in a directory and those below.
fn bytes_below(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { bytes_below(&path) } else { path.metadata().unwrap().len() }).sum()
}
