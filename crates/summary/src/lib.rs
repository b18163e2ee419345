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
//! Where a client speaks MQTT-SN, its datagrams to or from its gateway are followed, too (`hops`).
//!
//! It reads finished tables, whoever made them, and writes derived ones, whose meaning is in `docs/recording.md`. They can be
//! made again at any time; [`DONE`] is written last, and tells readers that all of them are there. A recording without
//! frames has the sums over its control packets, and, where its clients have seen these, `attribution` and `legs`.
//!
//! Memory is bounded by the control packets and the deliveries, not by the frames; see `rows`.
//!
//! What it does not do: choose what is shown, or compute anything that the messages' table alone tells.

mod again;
mod chain;
mod connection;
mod control;
mod hops;
mod legs;
mod links;
mod messages;
mod moment;
mod naming;
mod network;
mod rows;
mod settings;
mod tally;
mod ways;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mqttlab_recording::reading::Vocabulary;
use mqttlab_recording::{AttributionWriter, Error, LegWriter, Result};
use serde::{Deserialize, Serialize};

use chain::Chains;
use control::ControlPackets;
use legs::Followed;
use links::Links;
use messages::StoredMessages;
use network::NetworkSums;
use rows::Heaps;
use settings::RunSettings;
use ways::SegmentFlight;

/// The file that says that a recording's derived tables are there.
pub const DONE: &str = "summary.json";

/// The version of the derived tables. A recording with those of another version is summarised again.
pub const VERSION: u32 = 3;

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
}

/// The tables that are read.
const SOURCES: [&str; 4] = ["messages", "packets", "control_packets", "network_metrics"];

/// Makes the derived tables of the recording in `dir`, in `out`.
///
/// # Errors
/// There is no recording, a table cannot be read, or `out` cannot be written to.
pub fn summarise(dir: &Path, out: &Path) -> Result<Summarised> {
    fs::create_dir_all(out).map_err(|source| disk("create", out, source))?;
    let done = out.join(DONE);
    if done.exists() {
        fs::remove_file(&done).map_err(|source| disk("remove", &done, source))?;
    }
    if !dir.join("plan.json").exists() {
        return Err(Error::NotARecording(dir.to_owned()));
    }
    let mut words = Vocabulary::default();
    let mut control = ControlPackets::read(dir, &mut words)?;
    control.write(out, &words)?;
    let frames = rows::count(dir)?;
    let mut deliveries = 0;
    if frames > 0 || control.has_clients() {
        let settings = RunSettings::read(dir)?;
        let followed = followed(dir, out, &mut control, &settings, &mut words)?;
        deliveries = followed.legs.len() as u64;
        let flights = match frames {
            0 => Vec::new(),
            _ => frames_read(dir, out, &followed, &control, &settings, &mut words)?,
        };
        attribute(
            out,
            &Chains { followed: &followed, control: &control, flights: &flights, settings: &settings },
            &words,
        )?;
    }
    let control_packets = control.packets.len() as u64;
    let made_from = sizes(dir);
    let said = Summarised { version: VERSION, made_from, packets: frames, control_packets, deliveries };
    let text = serde_json::to_string(&said).expect("numbers can be written");
    fs::write(&done, text + "\n").map_err(|source| disk("write", &done, source))?;
    Ok(said)
}

/// The sizes of the tables that are read.
fn sizes(dir: &Path) -> BTreeMap<String, u64> {
    let size = |name: &&str| Some(fs::metadata(dir.join(format!("{name}.parquet"))).ok()?.len());
    SOURCES.iter().filter_map(|name| Some(((*name).to_owned(), size(name)?))).collect()
}

/// The legs of every delivery, where there are control packets to find them by.
fn followed(
    dir: &Path,
    out: &Path,
    control: &mut ControlPackets,
    settings: &RunSettings,
    words: &mut Vocabulary,
) -> Result<Followed> {
    if control.packets.is_empty() {
        return Ok(Followed::default());
    }
    let messages = StoredMessages::read(dir, words, naming::is_needed(control).then_some(settings))?;
    naming::name(control, &messages, settings, words, out)?;
    Ok(legs::legs(&messages.deliveries, control, settings))
}

/// Reads the frames once, and writes what they sum to. Returns the ways of the packets that carried messages.
fn frames_read(
    dir: &Path,
    out: &Path,
    followed: &Followed,
    control: &ControlPackets,
    settings: &RunSettings,
    words: &mut Vocabulary,
) -> Result<Vec<(u32, SegmentFlight)>> {
    let wanted = chain::wanted(followed);
    let mut heaps = Heaps::new(rows::count(dir)?, out)?;
    let mut links = Links::default();
    let mut extent = network::Extent::default();
    rows::for_each(dir, words, |row, cause| {
        links.count(row, cause);
        extent.note(row, settings);
        heaps.push(row)
    })?;
    links.write(out, words)?;
    let mut network = NetworkSums::new(dir, control, settings, extent)?;
    let mut flights = Vec::with_capacity(wanted.len());
    heaps.for_each(|rows| {
        network.count(rows);
        let asked = |number: u32| {
            let place = wanted.binary_search_by_key(&number, |&(packet, _)| packet).ok()?;
            Some((number, &followed.legs[wanted[place].1 as usize]))
        };
        let mut asked =
            network.publishes_of(rows[0].connection).iter().filter_map(|&number| asked(number)).peekable();
        if asked.peek().is_some() {
            let ways = ways::ways(rows, settings);
            flights.extend(asked.map(|(number, leg)| {
                let packet = &control.packets[number as usize];
                (number, ways[usize::from(packet.to_broker)].flight(&chain::carried(packet, leg, settings)))
            }));
        }
        Ok(())
    })?;
    network.write(out)?;
    flights.sort_unstable_by_key(|&(number, _)| number);
    Ok(flights)
}

/// Writes where the time of each delivery went.
fn attribute(out: &Path, chains: &Chains<'_>, words: &Vocabulary) -> Result<()> {
    if chains.control.packets.is_empty() {
        return Ok(());
    }
    let (mut table, mut evidence) = (AttributionWriter::create(out)?, LegWriter::create(out)?);
    let mut topic = String::new();
    for (number, leg) in chains.followed.legs.iter().enumerate() {
        table.push(&chains.attribution(number).row(leg.delivery.row))?;
        evidence.push(&chains.row(number, words, &mut topic))?;
    }
    table.finish()?;
    evidence.finish()?;
    Ok(())
}

fn disk(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Disk { action, path: path.to_owned(), source }
}
