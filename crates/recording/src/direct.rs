//! Recording without a thread: for the simulator and for imports.
//!
//! Frames and control packets come with their headers known and go straight to the tables' columns, with a journal
//! for whoever has to finish them when this process is killed; the other rows go through the same spools as a live run's, from buffers of this thread.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use mqttlab_rows::{
    Acknowledged, Dropped, Ending, Event, Gap, Layout, Payload, PositionSample, Received, Record, Resource,
    RunFacts, Sent, TcpSample, Unsent,
};

use mqttlab_units::Instant;

use crate::claim::Claim;
use crate::error::{ErrorContext, Result};
use crate::finish;
use crate::folding::Folder;
use crate::layout;
use crate::packets::PacketTables;
use crate::spool::{self, Spool};
use crate::summary::Summary;
use crate::tables::{ControlPacketRow, NetworkMetricRow, PacketRow};

/// A recording being written by one thread. Every push may fail when the file system does.
pub struct DirectRecorder {
    claim: Claim,
    dir: PathBuf,
    spools: Vec<Gathering>,
    packets: PacketTables,
    /// Where sums are kept of messages.
    folder: Option<Folder>,
}

/// A spool, and the records that have not been written to it yet.
struct Gathering {
    spool: Spool,
    file: File,
    bytes: Vec<u8>,
}

impl DirectRecorder {
    /// Starts a recording in `dir`, which is made if need be: writes `plan.json` and `layout.json`.
    /// [`Error::Occupied`](crate::Error::Occupied) when there is one already.
    pub fn create(dir: &Path, plan_json: &str, layout: &Layout) -> Result<DirectRecorder> {
        let mut claim = Claim::take(dir, plan_json, layout)?;
        let mut spools = Vec::new();
        for spool in Spool::ALL.into_iter().filter(|&spool| spool != Spool::Frames) {
            spools.push(Gathering { spool, file: spool::create(spool, dir)?, bytes: Vec::new() });
        }
        let packets = PacketTables::recoverable(dir)?;
        claim.set_kept(true);
        let folder = layout.summary.map(|rule| Folder::new(dir, rule));
        Ok(DirectRecorder { claim, dir: dir.to_owned(), spools, packets, folder })
    }

    /// Until [`keep`](Self::keep) is called, a recorder that goes takes the recording away: for a run that may fail before
    /// it begins.
    pub fn provisional(&mut self) {
        self.claim.set_kept(false);
    }

    /// From here on what is recorded stays, however the run ends.
    pub fn keep(&mut self) {
        self.claim.set_kept(true);
    }

    /// The layout that the recording was begun with, which is not kept in memory: it names every client.
    pub fn layout(&self) -> Result<Layout> {
        layout::read(&self.dir)
    }

    /// When measuring begins and ends, as soon as that is known: for a recording of which sums are kept.
    pub fn phases(&mut self, measure_from: Instant, measure_until: Instant) -> Result<()> {
        if self.folder.is_none() {
            return Ok(());
        }
        layout::store_phases(&self.dir, measure_from, measure_until)
    }

    /// A message was handed to its session, or written, or both.
    pub fn sent(&mut self, row: &Sent) -> Result<()> {
        self.push(Spool::Sent, row, &[])
    }

    /// The last acknowledgement of a message came back.
    pub fn acknowledged(&mut self, row: &Acknowledged) -> Result<()> {
        self.push(Spool::Acknowledged, row, &[])
    }

    /// A message was offered and not sent.
    pub fn unsent(&mut self, row: &Unsent) -> Result<()> {
        self.push(Spool::Unsent, row, &[])
    }

    /// A message arrived.
    pub fn received(&mut self, row: &Received) -> Result<()> {
        self.push(Spool::Received, row, &[])
    }

    /// A message will not reach a receiver any more.
    pub fn dropped(&mut self, row: &Dropped) -> Result<()> {
        self.push(Spool::Dropped, row, &[])
    }

    /// The evidence is not whole for a time.
    pub fn gap(&mut self, row: &Gap) -> Result<()> {
        self.push(Spool::Gaps, row, &[])
    }

    /// Something happened once.
    pub fn event(&mut self, row: &Event, detail: &str) -> Result<()> {
        self.push(Spool::Events, row, detail.as_bytes())
    }

    /// What a process has used.
    pub fn resource(&mut self, row: &Resource) -> Result<()> {
        self.push(Spool::Resources, row, &[])
    }

    /// What one end of a TCP connection knows of it.
    pub fn tcp_sample(&mut self, row: &TcpSample) -> Result<()> {
        self.push(Spool::TcpSamples, row, &[])
    }

    /// Where somebody is.
    pub fn position(&mut self, row: &PositionSample) -> Result<()> {
        self.push(Spool::Positions, row, &[])
    }

    /// What a message that arrived carried: all of it, or the first 8 MiB.
    pub fn payload(&mut self, row: &Payload, bytes: &[u8]) -> Result<()> {
        self.push(Spool::Payloads, row, spool::kept_of(bytes))
    }

    /// What became of a frame on one link.
    #[inline]
    pub fn packet(&mut self, row: &PacketRow<'_>) -> Result<()> {
        self.packets.packet(row)
    }

    /// A control packet is complete, or never will be.
    #[inline]
    pub fn control_packet(&mut self, row: &ControlPacketRow<'_>) -> Result<()> {
        self.packets.control_packet(row)
    }

    /// A network-layer metric of the run, of a direction, or of a connection.
    pub fn network_metric(&mut self, row: &NetworkMetricRow<'_>) -> Result<()> {
        self.packets.network_metric(row)
    }

    /// Makes the tables, writes `run.json` or `incomplete.json`, and removes the spools. An import, which learns
    /// who is who as it reads, hands over the final `layout` here.
    pub fn finish(mut self, layout: Option<Layout>, facts: &RunFacts, ending: &Ending) -> Result<Summary> {
        let begun = layout::read(&self.dir)?;
        let layout = match layout {
            Some(layout) => {
                let layout = Layout { run_id: begun.run_id, ..layout };
                layout::write(&layout, &self.dir)?;
                layout::read(&self.dir)?
            }
            None => begun,
        };
        self.write_spools()?;
        let network = self.packets.finish(&layout)?;
        let summary = finish::complete_direct(&self.dir, &layout, network, facts, ending)?;
        self.claim.set_kept(true);
        Ok(summary)
    }

    pub(crate) fn write_spools(&mut self) -> Result<()> {
        let mut is_due = false;
        for gathering in &mut self.spools {
            if let Some(folder) = &mut self.folder {
                is_due |= folder.wrote(gathering.spool, gathering.bytes.len());
            }
            gathering.write(&self.dir)?;
        }
        if let Some(folder) = self.folder.as_mut().filter(|_| is_due) {
            for (spool, file) in folder.fold()? {
                self.spools[spool as usize].file = file;
            }
        }
        Ok(())
    }

    #[inline]
    fn push<R: Record>(&mut self, spool: Spool, row: &R, tail: &[u8]) -> Result<()> {
        let gathering = &mut self.spools[spool as usize];
        debug_assert_eq!(gathering.spool, spool);
        spool::put(spool, row, tail, &mut gathering.bytes);
        // All of them, what was sent first: a delivery without its message would say nothing to whoever looks now.
        let most = self.folder.as_ref().map_or(GATHERED_BYTES, |folder| folder.batch_bytes(GATHERED_BYTES));
        if gathering.bytes.len() >= most { self.write_spools() } else { Ok(()) }
    }
}

impl Gathering {
    fn write(&mut self, dir: &Path) -> Result<()> {
        self.file.write_all(&self.bytes).on("write", &self.spool.path(dir))?;
        self.bytes.clear();
        Ok(())
    }
}

/// Bytes gathered before a spool is written.
const GATHERED_BYTES: usize = 64 << 10;
