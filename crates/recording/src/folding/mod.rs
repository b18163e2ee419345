//! Long runs of which sums and a sample are kept: rows of messages are added up while the run goes on.
//!
//! ```text
//!   sent.spool, received.spool, … ──► join ──┬─► settled: into the sums, the tallies, the set of what was added up
//!   carried rows ────────────────────────────┤
//!                                            └─► the rest, and the sample: carried to the next time
//! ```
//!
//! A message is settled when everybody who should have it has it, or is known not to get it any more, and its publisher
//! knows. What is not settled is carried, and judged at the end by what the whole run says, as every message is where all
//! rows are kept. So is the sample: messages whose names hash to enough zeros.
//!
//! Each time leaves a directory `fold-N`, which has the carried rows, the state, and the spools that are written from then
//! on. It appears by one rename: whoever is killed is completed from the last one.
//!
//! What it does not know: of a copy of a message that was added up before, when that was sent. Its phase is that of its
//! neighbours. A receiver of a shared subscription that gets such a copy counts as having had it.

mod adding;
mod carry;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use mqttlab_rows::{Event, Layout, SummaryRule};
use mqttlab_units::Instant;

use crate::connection_times::ConnectionTimes;
use crate::coverage::ChangedSubscriptions;
use crate::error::{ErrorContext, Result};
use crate::fate::{Judge, Missing};
use crate::layout;
use crate::spool::{self, HEADER_BYTES, Spool, SpoolReader};

/// The spools of messages, in the order in which a snapshot copies them: deliveries before what was sent.
pub(crate) const MESSAGE_SPOOLS: [Spool; 5] =
    [Spool::Received, Spool::Acknowledged, Spool::Sent, Spool::Unsent, Spool::Dropped];

/// Where the rows of messages are: in `dir`, or in what the last fold left there.
pub(crate) fn message_dir(dir: &Path) -> PathBuf {
    let numbers = folds(dir).into_iter().filter_map(|(number, _)| number);
    numbers.max().map_or_else(|| dir.to_owned(), |number| dir.join(format!("fold-{number}")))
}

/// The directories of folds, finished ones with their numbers.
fn folds(dir: &Path) -> Vec<(Option<u64>, PathBuf)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.strip_prefix("fold-").map(|number| (number.parse().ok(), entry.path()))
    });
    named.collect()
}

/// Removes what folds left, when the recording is finished or given up.
pub(crate) fn remove(dir: &Path) -> Result<()> {
    folds(dir).iter().try_for_each(|(_, path)| remove_all(path))
}

/// Copies what the last fold left, for a snapshot.
pub(crate) fn copy(dir: &Path, to: &Path) -> Result<()> {
    loop {
        let from = message_dir(dir);
        let Some(name) = from.file_name().filter(|_| from != dir) else { return Ok(()) };
        let place = to.join(name);
        match copy_files(&from, &place) {
            Ok(()) => return Ok(()),
            // The run goes on, and the next fold has taken its place.
            Err(_) if message_dir(dir) != from => remove_all(&place)?,
            Err(error) => return Err(error).on("copy", &from),
        }
    }
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    let copy = |path: &Path| path.file_name().map_or(Ok(0), |name| fs::copy(path, to.join(name)));
    for spool in MESSAGE_SPOOLS {
        copy(&spool.path(from))?;
    }
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        if MESSAGE_SPOOLS.iter().all(|spool| spool.path(from) != path) {
            copy(&path)?;
        }
    }
    Ok(())
}

/// Whoever writes the spools of messages asks this one after each write.
pub(crate) struct Folder {
    dir: PathBuf,
    rule: SummaryRule,
    number: u64,
    /// Bytes that were written since the last fold, and that it carried.
    written: u64,
    carried: u64,
    /// When clients were connected, as far as events were read, and where they go on.
    connections: ConnectionTimes,
    events_read: u64,
}

impl Folder {
    pub(crate) fn new(dir: &Path, rule: SummaryRule) -> Folder {
        let (number, written, carried, events_read) = (0, 0, 0, HEADER_BYTES as u64);
        let connections = ConnectionTimes::default();
        Folder { dir: dir.to_owned(), rule, number, written, carried, connections, events_read }
    }

    /// How many bytes to gather before a write: no more than are folded at once.
    pub(crate) fn batch_bytes(&self, usual: usize) -> usize {
        usual.min(self.rule.fold_bytes as usize)
    }

    /// Takes note of a write, and says whether it is time to fold: when as much was written as was carried, too, so that a
    /// row is read a few times at most, however many are carried.
    pub(crate) fn wrote(&mut self, spool: Spool, bytes: usize) -> bool {
        if MESSAGE_SPOOLS.contains(&spool) {
            self.written += bytes as u64;
        }
        self.written >= self.rule.fold_bytes.max(self.carried)
    }

    /// Folds, and hands out the files that the spools are written to from now on.
    pub(crate) fn fold(&mut self) -> Result<Vec<(Spool, File)>> {
        let from = message_dir(&self.dir);
        let temporary = self.dir.join("fold-next");
        remove_all(&temporary)?;
        fs::create_dir(&temporary).on("create", &temporary)?;
        let layout = layout::read(&self.dir)?;
        self.read_events(&layout)?;
        let mut changes = ChangedSubscriptions::of_layout(&layout);
        changes.connections = std::mem::take(&mut self.connections);
        // Of settled messages no connection decides anything. They say on which connection they came.
        let judge = Judge::new(&layout, &[], Vec::new(), Missing::default(), Instant::ZERO, &changes);
        self.carried = adding::fold(&from, &temporary, &layout, &judge, &self.rule)?;
        self.connections = changes.connections;
        let mut files = Vec::new();
        for spool in MESSAGE_SPOOLS {
            files.push((spool, spool::create(spool, &temporary)?));
        }
        self.number += 1;
        let place = self.dir.join(format!("fold-{}", self.number));
        fs::rename(&temporary, &place).on("rename", &temporary)?;
        if from == self.dir {
            self.empty_spools()?
        } else {
            remove_all(&from)?
        }
        self.written = 0;
        Ok(files)
    }

    /// Takes note of the events that were written since the last fold.
    fn read_events(&mut self, layout: &Layout) -> Result<()> {
        if self.number == 0 {
            self.connections = ConnectionTimes::of(layout);
        }
        let Some(mut reader) = SpoolReader::open(Spool::Events, &self.dir)? else { return Ok(()) };
        reader.skip_to(self.events_read)?;
        reader.for_each(|event: Event, detail| {
            self.connections.note(&event, detail);
            Ok(())
        })?;
        self.events_read = reader.place();
        Ok(())
    }

    /// The spools that the run began with stay, as the sign of a recording that is not finished.
    fn empty_spools(&self) -> Result<()> {
        MESSAGE_SPOOLS.iter().try_for_each(|spool| {
            let path = spool.path(&self.dir);
            let emptied = OpenOptions::new().write(true).open(&path);
            emptied.and_then(|file| file.set_len(HEADER_BYTES as u64)).on("empty", &path)
        })
    }
}

fn remove_all(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).on("remove", path),
        _ => Ok(()),
    }
}
