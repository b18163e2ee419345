//! Frame by frame against tshark 4.0, where it is installed: marks, round trips and bytes in flight of every capture in
//! the fuzz corpus, among them random traffic that no TCP would send.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use mqttlab_capture::{Analyser, AnalyserSettings, CaptureReader, Marks};

/// Marks, round trip in nanoseconds and bytes in flight.
type Judged = (Vec<String>, Option<i64>, Option<u32>);
/// By frame number.
type Frames = BTreeMap<u64, Judged>;

/// `None` when tshark is not there or of another version, whose marks differ.
fn tshark(path: &Path) -> Option<Frames> {
    let version = Command::new("tshark").arg("--version").output().ok()?;
    if !String::from_utf8_lossy(&version.stdout).contains(" 4.0.") {
        return None;
    }
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).args(["-Y", "tcp", "-T", "fields", "-e", "frame.number"]);
    for (_, name) in Marks::ALL {
        command.args(["-e", &format!("tcp.analysis.{name}")]);
    }
    command.args(["-e", "tcp.analysis.ack_rtt", "-e", "tcp.analysis.bytes_in_flight"]);
    let output = command.output().expect("tshark was there a moment ago");
    let lines = String::from_utf8(output.stdout).expect("tshark prints text");
    Some(lines.lines().map(parse).collect())
}

fn parse(line: &str) -> (u64, Judged) {
    let mut fields = line.split('\t');
    let frame = fields.next().and_then(|number| number.parse().ok()).expect("a frame number");
    let mut marks = Vec::new();
    for (_, name) in Marks::ALL {
        if fields.next().is_some_and(|field| !field.is_empty()) {
            marks.push((*name).to_owned());
        }
    }
    let rtt = fields.next().and_then(|field| field.parse::<f64>().ok()).map(|s| (s * 1e9).round() as i64);
    let in_flight = fields.next().and_then(|field| field.parse().ok());
    (frame, (marks, rtt, in_flight))
}

fn ours(path: &Path) -> Frames {
    let bytes = fs::read(path).expect("a corpus file");
    let mut reader = CaptureReader::new(&bytes[..]).expect("a capture");
    let mut analyser = Analyser::new(AnalyserSettings::default());
    let mut frames = Frames::new();
    while let Some(frame) = reader.next_frame().expect("a frame") {
        if let Some(annotations) = analyser.frame(&frame) {
            let verdict = annotations.verdict;
            let marks = verdict.marks.names().map(str::to_owned).collect();
            let rtt = verdict.ack_rtt.map(|rtt| rtt.as_ns() as i64);
            frames.insert(annotations.frame, (marks, rtt, verdict.bytes_in_flight));
        }
    }
    frames
}

#[test]
fn every_frame_of_the_corpus_is_marked_as_tshark_marks_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/capture");
    for entry in fs::read_dir(folder).expect("a corpus") {
        let path = entry.expect("an entry").path();
        // Simple packet blocks have no time; tshark puts them at 1970, we at the frame before.
        if path.is_dir() || path.to_string_lossy().contains("simple") {
            continue;
        }
        let Some(theirs) = tshark(&path) else {
            eprintln!("skipped: no tshark 4.0");
            return;
        };
        assert_eq!(ours(&path), theirs, "{}", path.display());
    }
}
