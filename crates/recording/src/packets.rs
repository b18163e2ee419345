//! The tables of the network: from raw bytes to rows of frames, packets and metrics, link counters and captures.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use mqttlab_rows::{Cause, Direction, Frame, FrameFate, Layout, Record, Transit};

use crate::error::{ErrorContext, Result};
use crate::footer::FileSize;
use crate::frames::FrameAnalyser;
use crate::journal;
use crate::message_rows::{for_each, ranges};
use crate::own_packets;
use crate::pcapng::PcapngWriter;
use crate::spool::{Spool, SpoolReader};
use crate::summary::LinkTally;
use crate::table::TableWriter;
use crate::tables::{
    ControlPacketColumns, ControlPacketRow, NetworkMetricColumns, NetworkMetricRow, PacketColumns, PacketRow,
};

/// The tables of the network, being written.
pub(crate) struct PacketTables {
    packets: TableWriter<PacketColumns<'static>>,
    control_packets: TableWriter<ControlPacketColumns<'static>>,
    network_metrics: TableWriter<NetworkMetricColumns<'static>>,
    /// What came to each link in each direction.
    counts: Vec<LinkCounts>,
}

/// A [`LinkTally`] in the making: there are many links, and on most of them nothing happens but delivery.
#[derive(Default)]
struct LinkCounts {
    frames: u64,
    bytes: u64,
    otherwise: Option<Box<Otherwise>>,
}

/// Frames that were not delivered as they were sent.
#[derive(Default)]
struct Otherwise {
    frames: u64,
    bytes: u64,
    corrupted: u64,
    duplicated: u64,
    dropped: BTreeMap<&'static str, u64>,
}

/// What became of them.
#[derive(Debug, Default)]
pub(crate) struct WrittenNetwork {
    pub files: BTreeMap<String, FileSize>,
    pub links: Vec<LinkTally>,
    /// What could not be saved.
    pub warnings: Vec<String>,
    /// Whether messages were found in frames.
    pub has_seen: bool,
}

impl PacketTables {
    pub(crate) fn create(dir: &Path) -> Result<PacketTables> {
        Ok(PacketTables {
            packets: TableWriter::create(dir)?,
            control_packets: TableWriter::create(dir)?,
            network_metrics: TableWriter::create(dir)?,
            counts: Vec::new(),
        })
    }

    /// Tables of a producer that has no other place for its packets.
    pub(crate) fn recoverable(dir: &Path) -> Result<PacketTables> {
        Ok(PacketTables {
            packets: TableWriter::recoverable(dir, PACKETS_AT_RISK)?,
            control_packets: TableWriter::recoverable(dir, PACKETS_AT_RISK)?,
            network_metrics: TableWriter::recoverable(dir, PACKETS_AT_RISK)?,
            counts: Vec::new(),
        })
    }

    #[inline]
    pub(crate) fn packet(&mut self, row: &PacketRow<'_>) -> Result<()> {
        self.tally(row);
        self.packets.push(|columns, place| columns.set(place, row))
    }

    pub(crate) fn control_packet(&mut self, row: &ControlPacketRow<'_>) -> Result<()> {
        self.control_packets.push(|columns, place| columns.set(place, row))
    }

    pub(crate) fn network_metric(&mut self, row: &NetworkMetricRow<'_>) -> Result<()> {
        self.network_metrics.push(|columns, place| columns.set(place, row))
    }

    #[inline]
    fn tally(&mut self, row: &PacketRow<'_>) {
        let place = usize::from(row.link) * 2 + row.direction as usize;
        if place >= self.counts.len() {
            self.counts.resize_with(place + 1, LinkCounts::default);
        }
        let counts = &mut self.counts[place];
        if row.fate == FrameFate::Delivered {
            counts.frames += 1;
            counts.bytes += u64::from(row.frame_bytes);
        } else {
            counts.otherwise(row);
        }
    }

    pub(crate) fn finish(self, layout: &Layout) -> Result<WrittenNetwork> {
        let links = self.counts.into_iter().enumerate().filter_map(|(place, counts)| {
            let name = layout.links.get(place / 2).cloned();
            let link = name.unwrap_or_else(|| format!("link {}", place / 2));
            let tally = counts.tally(link, Direction::ALL[place % 2].as_str());
            (tally.frames > 0).then_some(tally)
        });
        let links = links.collect();
        let files = BTreeMap::from([
            ("packets.parquet".to_string(), self.packets.finish()?),
            ("control_packets.parquet".to_string(), self.control_packets.finish()?),
            ("network_metrics.parquet".to_string(), self.network_metrics.finish()?),
        ]);
        Ok(WrittenNetwork { files, links, warnings: Vec::new(), has_seen: false })
    }
}

impl LinkCounts {
    #[cold]
    fn otherwise(&mut self, row: &PacketRow<'_>) {
        let otherwise = self.otherwise.get_or_insert_default();
        if row.fate == FrameFate::Duplicated {
            otherwise.duplicated += 1;
            return;
        }
        self.frames += 1;
        self.bytes += u64::from(row.frame_bytes);
        otherwise.frames += 1;
        otherwise.bytes += u64::from(row.frame_bytes);
        if row.fate == FrameFate::Corrupted {
            otherwise.corrupted += 1;
        } else {
            *otherwise.dropped.entry(row.cause.map_or("", Cause::as_str)).or_default() += 1;
        }
    }

    fn tally(self, link: String, direction: &'static str) -> LinkTally {
        let otherwise = self.otherwise.unwrap_or_default();
        LinkTally {
            link,
            direction,
            frames: self.frames,
            bytes: self.bytes,
            delivered: self.frames - otherwise.frames,
            delivered_bytes: self.bytes - otherwise.bytes,
            corrupted: otherwise.corrupted,
            duplicated: otherwise.duplicated,
            dropped: otherwise.dropped,
        }
    }
}

/// Writes the network's tables to `to` from the frames in `from`, and captures if they are wanted.
pub(crate) fn convert(
    from: &Path,
    to: &Path,
    layout: &Layout,
    analyser: &mut dyn FrameAnalyser,
    captures: bool,
) -> Result<WrittenNetwork> {
    if !Spool::Frames.path(from).exists() {
        return adopt(from, to);
    }
    let mut tables = PacketTables::create(to)?;
    analyser.begin(layout);
    for_each(from, Spool::Frames, |frame: Frame, bytes| {
        let headers = analyser.frame(&frame, bytes);
        let row = PacketRow::new(&frame, &headers);
        tables.packet(&row)?;
        hand_out(analyser, &mut tables, false)
    })?;
    hand_out(analyser, &mut tables, true)?;
    hand_out_metrics(analyser, &mut tables)?;
    // Behind those that frames show.
    own_packets::rows(from, |row| tables.control_packet(row))?;
    let mut network = tables.finish(layout)?;
    if captures {
        network.files.extend(write_captures(from, to, layout)?);
    }
    Ok(network)
}

fn hand_out(analyser: &mut dyn FrameAnalyser, tables: &mut PacketTables, end: bool) -> Result<()> {
    let mut outcome = Ok(());
    analyser.control_packets(end, &mut |row| {
        if outcome.is_ok() {
            outcome = tables.control_packet(row);
        }
    });
    outcome
}

fn hand_out_metrics(analyser: &mut dyn FrameAnalyser, tables: &mut PacketTables) -> Result<()> {
    let mut outcome = Ok(());
    analyser.network_metrics(&mut |row| {
        if outcome.is_ok() {
            outcome = tables.network_metric(row);
        }
    });
    outcome
}

/// A producer that writes its packets straight into the tables leaves no frames. If it was killed before they were
/// finished there are journals beside them, and what was written can be read.
fn adopt(from: &Path, to: &Path) -> Result<WrittenNetwork> {
    let mut network = WrittenNetwork {
        warnings: vec!["the links' counters were lost".into()],
        ..WrittenNetwork::default()
    };
    let finished = NETWORK_TABLES.iter().all(|name| from.join(name).exists());
    let mut saved = BTreeMap::new();
    for name in NETWORK_TABLES {
        if from.join(name).exists() {
            if from != to {
                fs::copy(from.join(name), to.join(name)).on("copy", &to.join(name))?;
            }
        } else if let Some(size) = journal::salvage(from, to, name)? {
            saved.insert(name.to_string(), size);
        }
    }
    let missing = NETWORK_TABLES.iter().filter(|name| !to.join(name).exists());
    for name in missing.collect::<Vec<_>>() {
        saved.insert((*name).to_string(), empty(name, to)?);
    }
    if !finished {
        network.warnings.push(format!(
            "the network-layer metrics and at most the last {PACKETS_AT_RISK} packets and control packets were \
             lost: the simulator was killed before it wrote them"
        ));
    }
    network.files = saved;
    Ok(network)
}

/// A table without rows, so that readers find it.
fn empty(name: &str, to: &Path) -> Result<FileSize> {
    match name {
        "packets.parquet" => TableWriter::<PacketColumns<'static>>::create(to)?.finish(),
        "control_packets.parquet" => TableWriter::<ControlPacketColumns<'static>>::create(to)?.finish(),
        _ => TableWriter::<NetworkMetricColumns<'static>>::create(to)?.finish(),
    }
}

/// Removes the journals of tables that are finished.
pub(crate) fn remove_journals(dir: &Path) {
    for name in NETWORK_TABLES {
        let _ = fs::remove_file(journal::path_of(&dir.join(name)));
    }
}

const NETWORK_TABLES: [&str; 3] = ["packets.parquet", "control_packets.parquet", "network_metrics.parquet"];

/// One capture for each link that has frames, in the order in which they came to it.
fn write_captures(from: &Path, to: &Path, layout: &Layout) -> Result<BTreeMap<String, FileSize>> {
    let mut blocks: BTreeMap<u64, u64> = BTreeMap::new();
    for_each(from, Spool::Frames, |frame: Frame, _| {
        *blocks.entry(frame.entered.as_ns() >> BLOCK_BITS).or_default() += 1;
        Ok(())
    })?;
    let path = Spool::Frames.path(from);
    let file = File::open(&path).on("open", &path)?;
    let mut bytes = Vec::new();
    let mut captures: BTreeMap<u16, CaptureFile> = BTreeMap::new();
    for range in ranges(&blocks, BLOCK_BITS, RANGE_FRAMES) {
        for (frame, place, size) in frames_of(from, &range)? {
            bytes.resize(size, 0);
            file.read_exact_at(&mut bytes, place).on("read", &path)?;
            let capture = match captures.entry(frame.link) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(CaptureFile::create(to, layout, frame.link)?),
            };
            capture.frame(layout.started_unix_ns, &frame, &bytes)?;
        }
    }
    captures.into_values().map(CaptureFile::finish).collect()
}

/// The frames that came to their link within a range of time, in that order, with the place and the size of their
/// bytes in the spool. The link's own copies did not come to it.
fn frames_of(from: &Path, range: &Range<u64>) -> Result<Vec<(Frame, u64, usize)>> {
    let mut frames = Vec::new();
    let Some(mut spool) = SpoolReader::open(Spool::Frames, from)? else { return Ok(frames) };
    let least = spool.least_bytes();
    while let Some(record) = spool.next()? {
        let (frame, size) = (Frame::take(&record[..least]), record.len() - least);
        let came = range.contains(&frame.entered.as_ns()) && frame.fate != FrameFate::Duplicated;
        if came && size > 0 {
            frames.push((frame, spool.place() - size as u64, size));
        }
    }
    frames.sort_by_key(|(frame, ..)| frame.entered);
    Ok(frames)
}

struct CaptureFile {
    path: PathBuf,
    file: PcapngWriter<BufWriter<File>>,
    frames: u64,
}

impl CaptureFile {
    fn create(dir: &Path, layout: &Layout, link: u16) -> Result<CaptureFile> {
        let name = layout.links.get(usize::from(link)).cloned().unwrap_or_else(|| format!("{link}"));
        let path = dir.join(format!("capture-{}.pcapng", plain(&name)));
        let file = BufWriter::new(File::create(&path).on("create", &path)?);
        let file = (|| {
            let mut file = PcapngWriter::new(
                file,
                std::env::consts::OS,
                concat!("mqttlab ", env!("CARGO_PKG_VERSION")),
                &format!("started_unix_ns={}", layout.started_unix_ns),
            )?;
            file.interface(&format!("{name} up"), "towards the broker, before the link's queue")?;
            file.interface(&format!("{name} down"), "from the broker, before the link's queue")?;
            Ok(file)
        })();
        Ok(CaptureFile { file: file.on("write", &path)?, path, frames: 0 })
    }

    fn frame(&mut self, started_unix_ns: u64, frame: &Frame, bytes: &[u8]) -> Result<()> {
        let comment = Transit::of(frame).to_string();
        self.frames += 1;
        let unix_ns = started_unix_ns + frame.entered.as_ns();
        let written = self.file.packet(frame.direction as u32, unix_ns, bytes, Some(&comment));
        written.on("write", &self.path)
    }

    fn finish(self) -> Result<(String, FileSize)> {
        let mut file = self.file.into_inner();
        file.flush().on("write", &self.path)?;
        file.get_ref().sync_all().on("write", &self.path)?;
        let bytes = fs::metadata(&self.path).on("read the size of", &self.path)?.len();
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, FileSize { rows: self.frames, bytes }))
    }
}

/// A link's name as a part of a file's name.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect()
}

/// Rows that are gathered before they are written, and are lost when the producer is killed. A simulator does not wait:
/// it makes as many within a fraction of a second.
const PACKETS_AT_RISK: usize = 1 << 14;
/// A block is 2^24 ns, some 17 ms.
const BLOCK_BITS: u32 = 24;
/// Frames of a capture that are in memory at a time, without their bytes: some 100 MiB.
const RANGE_FRAMES: u64 = 1 << 20;
