//! How much summing up holds of a frame, and that how much it holds at once changes nothing of what it derives.
//!
//! Bytes are counted at the allocator, over recordings that differ in length alone: what does not grow falls out of the
//! difference. With limits that a few seconds exceed by far, everything goes through files, as it does in a recording of millions
//! of frames with the limits that hold there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{Quiet, Scratch, plan, simulation};
use mqttlab_counting::peak;
use mqttlab_derived::{SummaryLimits, summarise_within};
use mqttlab_run::RunOutcome;

/// A recording of QoS 2 with its packets.
fn record(seconds: u64, directory: &Path) {
    let mut simulation = simulation(&plan(2, true, 5, seconds), directory);
    simulation.run(&mut Quiet).expect("a run");
    assert_eq!(simulation.finish(Ok(()), &mut Quiet), RunOutcome::Complete);
}

/// The files of a directory, by name.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let named = entries.map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), path));
    named.map(|(name, path)| (name, fs::read(path).expect("a file"))).collect()
}

#[test]
fn what_is_held_of_a_frame_is_little_and_changes_nothing_of_what_is_derived() {
    let scratch = Scratch::new("summary-memory");
    let in_files = SummaryLimits { range_rows: 200, memory_rows: 100, ..SummaryLimits::default() };
    let mut held = Vec::new();
    for seconds in [4, 12] {
        let run = scratch.0.join(format!("run-{seconds}"));
        record(seconds, &run);
        let mut frames = 0;
        let mut bytes = |limits: SummaryLimits, name: &str| {
            let out = scratch.0.join(format!("{name}-{seconds}"));
            peak(|| frames = summarise_within(&run, &out, limits).expect("derived tables").packets)
        };
        let both = [bytes(SummaryLimits::default(), "kept"), bytes(in_files, "stored")];
        let [kept, stored] =
            ["kept", "stored"].map(|name| files(&scratch.0.join(format!("{name}-{seconds}"))));
        let differ: Vec<&String> =
            kept.keys().chain(stored.keys()).filter(|name| kept.get(*name) != stored.get(*name)).collect();
        assert!(kept.len() > 10 && differ.is_empty(), "{differ:?} differ");
        held.push((frames as f64, both));
    }
    let [(few, short), (many, long)] = held[..] else { unreachable!("there are two") };
    assert!(many > few + 5_000.0, "{few} and {many} frames");
    let of_frame = [0, 1].map(|place| (long[place] - short[place]) as f64 / (many - few));
    let within = of_frame.iter().zip(BYTES_MAX).all(|(bytes, most)| *bytes <= most);
    assert!(within, "{of_frame:.1?} bytes a frame, {BYTES_MAX:?} allowed");
}

/// Bytes held of each frame more where all stays in memory, and where messages and packets go through files: what was measured
/// and a quarter more. A frame here has half a delivery of QoS 2 with its packets. In both, the frames of all four connections
/// are held at once, and so is what is worked out of one of these.
const BYTES_MAX: [f64; 2] = [1465.0, 535.0];
