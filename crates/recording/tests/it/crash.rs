//! Killed, full, torn: what was recorded can be read, and is marked incomplete.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::*;
use mqttlab_recording::{
    Error, Finish, HeaderAnalyser, Payload, PayloadSource, Recorder, RunFacts, Strain, recover,
};
use parquet::file::reader::{FileReader, SerializedFileReader};

#[test]
fn a_killed_producer_leaves_a_readable_recording() {
    let scratch = Scratch::new();
    let mut child = producer(Command::new(std::env::current_exe().unwrap()), scratch.path());
    await_bytes(&scratch.join("sent.spool"), 1 << 20, &mut child);
    child.kill().unwrap();
    child.wait().unwrap();

    let summary = recover(scratch.path(), None, &mut HeaderAnalyser::default()).unwrap();
    assert!(!scratch.join("run.json").exists());
    assert_eq!(json(&scratch.join("incomplete.json"))["status"], "incomplete");
    assert_eq!(rows(scratch.path(), "messages"), summary.files["messages.parquet"].rows);
    // A MiB of records of 43 bytes was seen in the spool before the kill.
    assert!(summary.messages.values().sum::<u64>() > 20_000, "{:?}", summary.messages);
}

#[test]
fn a_file_system_that_refuses_ends_the_writing_and_not_the_program() {
    let scratch = Scratch::new();
    // A limit to the size of files stands in for a full disk: past it a write fails in the middle of a record.
    let mut shell = Command::new("sh");
    shell
        .args(["-c", r#"trap '' XFSZ; ulimit -f 400; exec "$0" "$@""#])
        .arg(std::env::current_exe().unwrap());
    let status = producer(shell, scratch.path()).wait().unwrap();
    assert!(status.success(), "the producer noticed the error and came to its end: {status}");

    let saved = Scratch::new();
    let summary =
        recover(scratch.path(), Some(&saved.join("recovered")), &mut HeaderAnalyser::default()).unwrap();
    let rows = summary.messages.values().sum::<u64>();
    assert!((1_000..20_000).contains(&rows), "{rows} rows from spools of some 200 KiB at most");
}

#[test]
fn recovery_into_another_directory_only_reads() {
    let (scratch, saved) = (Scratch::new(), Scratch::new());
    abandon(&scratch);
    fs::write(scratch.join("broker.log"), "started").unwrap();
    let before = contents(scratch.path());
    let out = saved.join("recovered");
    recover(scratch.path(), Some(&out), &mut HeaderAnalyser::default()).unwrap();
    assert_eq!(contents(scratch.path()), before);
    assert_eq!(rows(&out, "messages"), 12);
    assert_eq!(rows(&out, "packets"), 4);
    let names: Vec<String> = contents(&out).into_iter().map(|(name, _)| name).collect();
    let expected = [
        "broker.log",
        "clients.parquet",
        "control_packets.parquet",
        "events.parquet",
        "incomplete.json",
        "layout.json",
        "messages.parquet",
        "network_metrics.parquet",
        "packets.parquet",
        "plan.json",
        "positions.parquet",
        "resources.parquet",
        "tcp_state.parquet",
    ];
    assert_eq!(names, expected);
}

#[test]
fn payloads_of_a_killed_run_are_kept_up_to_the_torn_one() {
    let (scratch, saved) = (Scratch::new(), Scratch::new());
    let recorder = Recorder::create(scratch.path(), "{}", &layout()).unwrap();
    let mut sink = recorder.sink();
    let contents = [b"one".as_slice(), b"", &[7; 9_000_000], b"torn"];
    for (sequence, content) in (0..).zip(contents) {
        let row = received(2, Some(0), sequence, 100 + u64::from(sequence));
        sink.received(&row);
        sink.payload(&Payload::of(&row, PayloadSource::Read), content);
    }
    drop(sink);
    recorder.close();
    let spool = fs::OpenOptions::new().write(true).open(scratch.join("payloads.spool")).unwrap();
    spool.set_len(spool.metadata().unwrap().len() - 1).unwrap();

    let out = saved.join("recovered");
    let summary = recover(scratch.path(), Some(&out), &mut HeaderAnalyser::default()).unwrap();
    // Of the longest only its beginning is kept.
    let kept: Vec<u8> = [b"one".as_slice(), &[7; 8 << 20]].concat();
    assert!(fs::read(out.join("payloads.bin")).unwrap() == kept);
    assert_eq!(rows(&out, "payloads"), 3);
    assert_eq!(summary.files["payloads.bin"].bytes, kept.len() as u64);
}

#[test]
fn a_torn_tail_costs_the_torn_row_and_no_other() {
    let scratch = Scratch::new();
    abandon(&scratch);
    let frames = fs::read(scratch.join("frames.spool")).unwrap();
    let sent = fs::read(scratch.join("sent.spool")).unwrap();
    let (mut last_packets, mut last_messages) = (0, 0);
    for cut in 0..=frames.len() {
        let saved = Scratch::new();
        fs::write(scratch.join("frames.spool"), &frames[..cut]).unwrap();
        fs::write(scratch.join("sent.spool"), &sent[..cut.min(sent.len())]).unwrap();
        // Every length is tried for the torn row; the rest in steps, to be quick.
        if cut % 13 != 0 && cut + 120 < frames.len() {
            continue;
        }
        recover(scratch.path(), Some(&saved.join("out")), &mut HeaderAnalyser::default()).unwrap();
        let (packets, messages) = (rows(&saved.join("out"), "packets"), rows(&saved.join("out"), "messages"));
        assert!(
            packets >= last_packets && messages >= last_messages,
            "a longer spool never holds fewer rows"
        );
        (last_packets, last_messages) = (packets, messages);
        assert!(cut < frames.len() || packets == 4);
        assert!(cut == frames.len() || packets < 4);
    }
}

#[test]
fn a_spool_of_a_later_program_is_refused() {
    let scratch = Scratch::new();
    abandon(&scratch);
    let mut spool = fs::read(scratch.join("sent.spool")).unwrap();
    spool[8] = 99;
    fs::write(scratch.join("sent.spool"), spool).unwrap();
    let refused = recover(scratch.path(), None, &mut HeaderAnalyser::default());
    assert!(matches!(refused, Err(Error::LaterSchema { found: 99, .. })), "{refused:?}");
}

#[test]
fn a_finish_that_fails_leaves_the_spools_for_another_try() {
    let scratch = Scratch::new();
    abandon(&scratch);
    // Where a table should go there is a directory.
    fs::create_dir(scratch.join("messages.parquet.tmp")).unwrap();
    let mut analyser = HeaderAnalyser::default();
    let finish = Finish {
        facts: RunFacts::default(),
        ending: mqttlab_recording::Ending::Complete,
        strain: Strain::default(),
        rows_missing: false,
        claim: None,
        analyser: &mut analyser,
        captures: false,
    };
    let failed = mqttlab_recording::finalise(scratch.path(), finish);
    assert!(matches!(failed, Err(Error::Disk { .. })), "{failed:?}");
    assert!(!scratch.join("run.json").exists());
    fs::remove_dir(scratch.join("messages.parquet.tmp")).unwrap();
    finish_again(scratch.path());
}

fn finish_again(dir: &Path) {
    assert_eq!(finish(dir, false).files["messages.parquet"].rows, 12);
}

/// Not a test of its own: the program that the tests above start and kill. It records until its writer fails.
#[test]
#[ignore = "started by other tests"]
fn producer_until_failure() {
    let dir = PathBuf::from(std::env::var_os("MQTTLAB_TEST_DIR").expect("the starting test says where"));
    let recorder = Recorder::create(&dir, "{}", &layout()).unwrap();
    let mut sink = recorder.sink();
    let began = Instant::now();
    for sequence in 0.. {
        sink.sent(&sent(0, sequence, 0, u64::from(sequence)));
        sink.received(&received(2, Some(0), sequence, u64::from(sequence) + 1));
        if sink.failed() {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "nobody killed it and no write failed");
        if sequence % 1000 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert!(recorder.failure().is_some());
    drop(sink);
    let mqttlab_recording::ClosedRecorder { strain, failure, .. } = recorder.close();
    assert!(matches!(*failure.unwrap(), Error::Disk { .. }));
    assert!(strain.rows_lost > 0, "{strain:?}");
}

fn producer(mut program: Command, dir: &Path) -> Child {
    program
        .args(["--exact", "crash::producer_until_failure", "--ignored"])
        .env("MQTTLAB_TEST_DIR", dir)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn await_bytes(path: &Path, bytes: u64, child: &mut Child) {
    let began = Instant::now();
    while fs::metadata(path).map_or(0, |file| file.len()) < bytes {
        assert!(began.elapsed() < PATIENCE && child.try_wait().unwrap().is_none(), "the producer produces");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A small run whose producer never came to finish it.
fn abandon(scratch: &Scratch) {
    let recorder = Recorder::create(scratch.path(), "{}", &layout()).unwrap();
    let mut sink = recorder.sink();
    play(&mut sink);
    drop(sink);
    recorder.close();
}

fn rows(dir: &Path, name: &str) -> u64 {
    let file = fs::File::open(dir.join(format!("{name}.parquet"))).unwrap();
    SerializedFileReader::new(file).unwrap().metadata().file_metadata().num_rows() as u64
}

fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let mut contents: Vec<(String, Vec<u8>)> = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    contents.sort();
    contents
}

/// Far longer than a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(60);
