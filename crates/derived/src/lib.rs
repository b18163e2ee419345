//! The finalising pass: what a recording says in sum, computed once and stored beside its tables.
//!
//! ```text
//!   control_packets, messages ──► legs: which packets carried each message, and when each could be sent
//!   packets ──► links, slices
//!           ──► heaps, one connection at a time ──► sums, round trips, what was sent again, why, and which frames
//!                                                   brought the messages' packets
//!                                               ──► attribution
//! ```
//!
//! Where a client speaks MQTT-SN, its datagrams to or from its gateway are followed, too (`gateway_hops`).
//!
//! It reads finished tables, whoever made them, and writes derived ones, whose meaning is in `docs/reference/recording.md`. They can be
//! made again at any time; [`DONE`] is written last, and tells readers that all of them are there. A recording without
//! frames has the sums over its control packets, and, where its clients have seen these, `attribution` and `legs`.
//!
//! Of a large recording nothing is held as a whole. Its packets are spread, while they are read, over parts that files keep
//! (`packet_partitions`, `partitions`): frames by connection, PUBLISH packets by ranges of messages. Ranges are followed one after another, each
//! twice: what they ask the frames for goes to the connections, what these answer comes back, and then the rows are written.
//! Memory is bounded by a range, and by the largest connection.
//!
//! What it does not do: choose what is shown, or compute anything that the messages' table alone tells.

mod attribution;
mod connections;
mod control_packets;
mod instants;
mod network;
mod partitions;
mod search_hint;
mod settings;
mod tallies;
#[cfg(test)]
mod words_file;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mqttlab_recording::checks::{self, Checks};
use mqttlab_recording::reading::Vocabulary;
use mqttlab_recording::{Error, Result};
use serde::{Deserialize, Serialize};

use attribution::deliveries::follow;
use attribution::packet_partitions::PacketSpread;
use control_packets::ControlSums;
use network::frames::FrameTable;
use settings::RunSettings;

/// The file that says that a recording's derived tables are there.
pub const DONE: &str = "summary.json";

/// The version of the derived tables. A recording with those of another version is summarised again.
pub const VERSION: u32 = 5;

/// What [`DONE`] says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summarised {
    /// [`VERSION`].
    pub version: u32,
    /// The tables that it was made from, with their sizes: of other tables it says nothing.
    pub made_from: BTreeMap<String, u64>,
    /// Rows of `packets`, of `control_packets`, and deliveries that were followed.
    pub packets: u64,
    /// See above.
    pub control_packets: u64,
    /// See above.
    pub deliveries: u64,
    /// What the files of the recording were when it was made, by name: readers compare. Empty in earlier ones.
    #[serde(default)]
    pub checks: Checks,
}

/// How much is held at once. What is derived is the same, but for the last bits of means where `heap_rows` differs.
#[derive(Clone, Copy, Debug)]
pub struct SummaryLimits {
    /// Rows of messages that are followed together, about.
    pub range_rows: u64,
    /// Rows of frames, or of control packets, that are brought together by connection at once, about.
    pub heap_rows: u64,
    /// Rows of a table up to which its parts stay in memory.
    pub memory_rows: u64,
}

impl Default for SummaryLimits {
    fn default() -> SummaryLimits {
        SummaryLimits { range_rows: 1 << 16, heap_rows: 200_000, memory_rows: 500_000 }
    }
}

/// The tables that are read.
const SOURCES: [&str; 5] = ["messages", "packets", "control_packets", "network_metrics", "events"];

/// Makes the derived tables of the recording in `dir`, in `out`.
///
/// # Errors
/// There is no recording, a table cannot be read, or `out` cannot be written to.
pub fn summarise(dir: &Path, out: &Path) -> Result<Summarised> {
    summarise_within(dir, out, SummaryLimits::default())
}

/// The same, with so much held at once.
///
/// # Errors
/// As [`summarise`].
pub fn summarise_within(dir: &Path, out: &Path, limits: SummaryLimits) -> Result<Summarised> {
    fs::create_dir_all(out).map_err(|source| disk("create", out, source))?;
    let done = out.join(DONE);
    // First of all: a pass that is broken off must not leave the word that all is there.
    if done.exists() {
        fs::remove_file(&done).map_err(|source| disk("remove", &done, source))?;
    }
    if !dir.join("plan.json").exists() {
        return Err(Error::NotARecording(dir.to_owned()));
    }
    let mut words = Vocabulary::default();
    let frames = FrameTable::of(dir, limits)?;
    let stream_ends = if frames.rows > 0 { Some(frames.parts(out, "summary-stream-ends")?) } else { None };
    // Who has neither frames nor clients' own packets needs no settings, and may have none.
    let is_told = frames.rows > 0 || control_packets::count(dir)? > 0;
    let settings = is_told.then(|| RunSettings::read(dir)).transpose();
    let known = settings.as_ref().ok().and_then(Option::as_ref);
    let mut spread = PacketSpread::new(dir, out, stream_ends, known, limits)?;
    let control = ControlSums::read(dir, &mut words, |packet| spread.add(packet))?;
    control.write(out, &words)?;
    let deliveries = match known {
        _ if frames.rows == 0 && !control.has_clients => 0,
        Some(settings) => follow(dir, out, &control, spread, frames, settings, &mut words)?,
        None => return Err(settings.expect_err("settings were asked for, and are not there")),
    };
    let (packets, control_packets) = (frames.rows, control.packets);
    // What the run itself has said of its files is not said anew: they may have changed since.
    let mut checks = checks::left(dir);
    // Beside the tables an earlier pass may have left some.
    for place in [out, dir] {
        checks::add(&mut checks, place)?;
    }
    // Behind the tables that were read: had they grown meanwhile, the sizes show it.
    let made_from = sizes(dir);
    let said = Summarised { version: VERSION, made_from, packets, control_packets, deliveries, checks };
    let text = serde_json::to_string(&said).expect("numbers can be written");
    fs::write(&done, text + "\n").map_err(|source| disk("write", &done, source))?;
    Ok(said)
}

/// The sizes of the tables that are read.
fn sizes(dir: &Path) -> BTreeMap<String, u64> {
    let size = |name: &&str| Some(fs::metadata(dir.join(format!("{name}.parquet"))).ok()?.len());
    SOURCES.iter().filter_map(|name| Some(((*name).to_owned(), size(name)?))).collect()
}

fn disk(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Disk { action, path: path.to_owned(), source }
}
