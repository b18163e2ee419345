//! A recording from the first row to the last file.

use std::fs;

use crate::common::*;
use expect_test::expect;
use mqttlab_recording::{
    DirectRecorder, Ending, Error, HeaderAnalyser, Layout, Reason, Recorder, RunFacts, recover,
};

#[test]
fn every_message_gets_its_fate_at_every_receiver() {
    let scratch = Scratch::new();
    record(&scratch);
    let columns =
        ["publisher", "sequence", "topic", "subscriber", "fate", "phase", "dup", "out_of_order", "late"];
    expect![[r#"
        publisher sequence topic subscriber fate phase dup out_of_order late
        0 0 a/b 2 delivered warm_up false false false
        0 0 a/b 2 duplicate warm_up true false false
        0 0 a/b 3 delivered warm_up false false false
        0 1 a/b 2 delivered measurement false true true
        0 1 a/b 3 lost measurement false false false
        0 2 a/b 2 delivered measurement false false false
        0 2 a/b 3 delivered measurement false false false
        0 3 a/b null unsent measurement false false false
        1 0 nobody null no_receiver measurement false false false
        1 1 a/b 2 under_way cool_down false false false
        1 1 a/b 3 unknown cool_down false false false
        null null null 3 foreign cool_down false false false
    "#]]
    .assert_eq(&table(scratch.path(), "messages", &columns));
    let columns = ["intended_ns", "sent_ns", "written_ns", "acknowledged_ns", "received_ns", "latency_ns"];
    expect![[r#"
        intended_ns sent_ns written_ns acknowledged_ns received_ns latency_ns
        100 101 102 151 200 100
        100 101 102 151 250 150
        100 101 102 151 210 110
        2000 2001 2002 null 2600 600
        2000 2001 2002 null null null
        2100 2101 2102 null 2200 100
        2100 2101 2102 null 2300 200
        2200 null null null null null
        3000 3001 3002 null null null
        11000 11001 11002 null null null
        11000 11001 11002 null null null
        null null null null 12000 null
    "#]]
    .assert_eq(&table(scratch.path(), "messages", &columns));
}

#[test]
fn clients_are_counted_from_messages_and_events() {
    let scratch = Scratch::new();
    record(&scratch);
    let columns =
        ["name", "host", "connect_ns", "sent", "unsent", "acknowledged", "acknowledged_mean_ns", "delivered"];
    expect![[r#"
        name host connect_ns sent unsent acknowledged acknowledged_mean_ns delivered
        pub-0 field 9 3 1 1 50.0 0
        pub-1 field null 2 0 0 null 0
        sub-0 broker null 0 0 0 null 3
        sub-1 broker null 0 0 0 null 2
    "#]]
    .assert_eq(&table(scratch.path(), "clients", &columns));
    let columns =
        ["name", "lost", "duplicates", "out_of_order", "late", "foreign", "disconnects", "reconnects"];
    expect![[r#"
        name lost duplicates out_of_order late foreign disconnects reconnects
        pub-0 0 0 0 0 0 0 0
        pub-1 0 0 0 0 0 1 1
        sub-0 0 1 1 1 0 0 0
        sub-1 1 0 0 0 1 0 0
    "#]]
    .assert_eq(&table(scratch.path(), "clients", &columns));
}

#[test]
fn frames_are_read_for_their_headers() {
    let scratch = Scratch::new();
    record(&scratch);
    let columns =
        ["frame", "direction", "fate", "cause", "connection", "seq", "ack", "flags", "stream_offset"];
    expect![[r#"
        frame direction fate cause connection seq ack flags stream_offset
        0 up delivered null 0 999 null 2 null
        1 down delivered null 0 5 77 18 null
        2 up dropped queue_full 0 1000 77 24 0
        3 up delivered null 0 1004 77 24 4
    "#]]
    .assert_eq(&table(scratch.path(), "packets", &columns));
}

#[test]
fn run_json_is_there_at_the_end_and_the_spools_are_not() {
    let scratch = Scratch::new();
    record(&scratch);
    let run = json(&scratch.join("run.json"));
    assert_eq!(run["status"], "complete");
    assert_eq!(run["started_at"], "2025-01-01T00:00:00.000000Z");
    assert_eq!(run["files"]["messages.parquet"]["rows"], 12);
    assert_eq!(run["links"][0]["dropped"]["queue_full"], 1);
    assert_eq!(run["links"][0]["frames"], 3);
    let left: Vec<String> = names(&scratch).into_iter().filter(|name| name.contains("spool")).collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_finished_recording_is_neither_overwritten_nor_finished_again() {
    let scratch = Scratch::new();
    record(&scratch);
    let messages = fs::read(scratch.join("messages.parquet")).unwrap();
    assert!(matches!(Recorder::create(scratch.path(), "{}", &layout()), Err(Error::Occupied(_))));
    let again = recover(scratch.path(), None, &mut HeaderAnalyser::default());
    assert!(matches!(again, Err(Error::Finished(_))), "{again:?}");
    assert_eq!(fs::read(scratch.join("messages.parquet")).unwrap(), messages);
}

#[test]
fn what_is_no_recording_is_refused() {
    let scratch = Scratch::new();
    let refused = recover(scratch.path(), None, &mut HeaderAnalyser::default());
    assert!(matches!(refused, Err(Error::NotARecording(_))), "{refused:?}");
}

#[test]
fn the_same_rows_make_the_same_bytes_whoever_pushes_them() {
    let (live, direct) = (Scratch::new(), Scratch::new());
    let recorder = Recorder::create(live.path(), "{}", &many_clients()).unwrap();
    // Four producers at once, each with its own publishers.
    std::thread::scope(|scope| {
        for producer in 0..4 {
            let mut sink = recorder.sink();
            scope.spawn(move || {
                for number in (0..40_000_u32).filter(|number| number / 100 % 4 == producer) {
                    sink.sent(&sent(number / 100, number % 100, 0, u64::from(number)));
                    sink.received(&received(
                        number / 100,
                        Some(number / 100),
                        number % 100,
                        u64::from(number) + 9,
                    ));
                }
            });
        }
    });
    recorder.close();
    finish(live.path(), false);

    let mut recorder = DirectRecorder::create(direct.path(), "{}", &many_clients()).unwrap();
    for number in (0..40_000_u32).rev() {
        recorder.sent(&sent(number / 100, number % 100, 0, u64::from(number))).unwrap();
    }
    for number in 0..40_000_u32 {
        let row = received(number / 100, Some(number / 100), number % 100, u64::from(number) + 9);
        recorder.received(&row).unwrap();
    }
    recorder.finish(None, &RunFacts::default(), &Ending::Complete).unwrap();
    for name in ["messages.parquet", "clients.parquet", "events.parquet", "packets.parquet"] {
        let same = fs::read(live.join(name)).unwrap() == fs::read(direct.join(name)).unwrap();
        assert!(same, "{name}");
    }
}

#[test]
fn a_run_that_ended_early_says_so() {
    let scratch = Scratch::new();
    let recorder = DirectRecorder::create(scratch.path(), "{}", &layout()).unwrap();
    recorder
        .finish(
            None,
            &RunFacts::default(),
            &Ending::Incomplete(Reason::Fault { problem: "the broker died".into() }),
        )
        .unwrap();
    assert!(!scratch.join("run.json").exists());
    let run = json(&scratch.join("incomplete.json"));
    let why = serde_json::json!({"kind": "fault", "problem": "the broker died"});
    assert_eq!((&run["status"], &run["reason"]), (&"incomplete".into(), &why));
}

#[test]
fn an_import_may_say_who_is_who_at_the_end() {
    let scratch = Scratch::new();
    let mut recorder = DirectRecorder::create(scratch.path(), "{}", &Layout::default()).unwrap();
    recorder.sent(&sent(0, 0, 0, 2_000)).unwrap();
    recorder.finish(Some(layout()), &RunFacts::default(), &Ending::Complete).unwrap();
    let columns = ["topic", "subscriber", "fate"];
    expect![[r#"
        topic subscriber fate
        a/b 2 under_way
        a/b 3 under_way
    "#]]
    .assert_eq(&table(scratch.path(), "messages", &columns));
}

/// A small live run, finished.
fn record(scratch: &Scratch) {
    let recorder = Recorder::create(scratch.path(), r#"{"plan": 1}"#, &layout()).unwrap();
    let mut sink = recorder.sink();
    play(&mut sink);
    drop(sink);
    assert_eq!(recorder.close().strain, Default::default());
    finish(scratch.path(), false);
}

fn many_clients() -> Layout {
    let client = layout().clients[0].clone();
    Layout { clients: vec![client; 400], receivers: vec![vec![], vec![]], ..layout() }
}

fn names(scratch: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(scratch.path()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
