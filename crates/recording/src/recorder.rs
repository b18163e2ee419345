//! Recording while the run goes on: producers push rows, one thread writes them.
//!
//! ```text
//!   emulator ──► Sink ─┐  batches of records     ┌────────┐
//!   worker 1 ──► Sink ─┼──────────────────────►  │ writer │ ──► sent.spool, received.spool, frames.spool, …
//!   worker n ──► Sink ─┘  ◄── emptied batches ── └────────┘
//! ```
//!
//! A push copies a row into the sink's own batch: no lock, no system call, no allocation once warm. A full batch is
//! handed over through a bounded queue which the writer polls, so that handing over wakes nobody. When the queue
//! is full the batch grows instead; only a batch far too large makes its producer wait, and that is counted.
//!
//! The writer stops at the first error of the file system. It is reported once through [`Recorder::failure`];
//! pushes go on and lead nowhere, so that the run can end with a verdict.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time;

use crate::error::{Context, Error, Result};
use crate::layout::Layout;
use crate::record::Record;
use crate::rows::{Acknowledged, Event, Frame, Received, Resource, Sent, Unsent};
use crate::spool::{self, Spool};

/// A recording being written.
pub struct Recorder {
    shared: Arc<Shared>,
    queue: SyncSender<Batch>,
    writer: Option<JoinHandle<()>>,
}

/// One producer's end of a [`Recorder`]. A clone is another producer's, with its own batches.
pub struct Sink {
    shared: Arc<Shared>,
    queue: SyncSender<Batch>,
    batches: [Vec<u8>; SPOOLS],
    spare: [Vec<Vec<u8>>; SPOOLS],
    emptied: Receiver<Batch>,
    home: SyncSender<Batch>,
    turn: u64,
}

/// How hard the writer was pressed. All zero in a run whose disk keeps up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Strain {
    /// Batches that had to grow because the queue was full.
    pub batches_grown: u64,
    /// Times a producer had to wait for the writer.
    pub stalls: u64,
    /// How long producers waited in all, in nanoseconds.
    pub stalled_ns: u64,
    /// Batches that were handed over after an error or after the end, and not written.
    pub batches_lost: u64,
}

struct Shared {
    dir: PathBuf,
    stop: AtomicBool,
    /// Counts the writer's flush periods: a sink that sees a new one hands its batches over.
    turn: AtomicU64,
    failure: OnceLock<Arc<Error>>,
    batches_grown: AtomicU64,
    stalls: AtomicU64,
    stalled_ns: AtomicU64,
    batches_lost: AtomicU64,
}

struct Batch {
    spool: Spool,
    bytes: Vec<u8>,
    home: SyncSender<Batch>,
}

impl Recorder {
    /// Starts a recording in `dir`, which is made if need be: writes `plan.json` and `layout.json`, creates the
    /// spools and starts the writer. [`Error::Occupied`] when there is one already.
    pub fn create(dir: &Path, plan_json: &str, layout: &Layout) -> Result<Recorder> {
        open_directory(dir, plan_json, layout)?;
        let mut files = Vec::with_capacity(SPOOLS);
        for spool in Spool::ALL {
            files.push(spool::create(spool, dir)?);
        }
        let shared = Arc::new(Shared::new(dir));
        let (queue, batches) = sync_channel(QUEUE_BATCHES);
        let writer = Writer { shared: Arc::clone(&shared), files, batches };
        let writer = std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || writer.run())
            .on("start a thread to write", dir)?;
        Ok(Recorder { shared, queue, writer: Some(writer) })
    }

    /// A new producer's sink.
    pub fn sink(&self) -> Sink {
        Sink::new(Arc::clone(&self.shared), self.queue.clone())
    }

    /// The error that stopped the writer, if one did. What was written before it can still be read.
    pub fn failure(&self) -> Option<Arc<Error>> {
        self.shared.failure.get().cloned()
    }

    /// How hard the writer was pressed so far.
    pub fn strain(&self) -> Strain {
        self.shared.strain()
    }

    /// Writes everything that was handed over, and ends. Drop the sinks first: what they still hold is lost.
    /// Then [`finalise`](crate::finalise) makes the recording's tables. An error means that rows are missing.
    pub fn close(mut self) -> std::result::Result<Strain, Arc<Error>> {
        self.stop_writer();
        self.failure().map_or(Ok(self.strain()), Err)
    }

    fn stop_writer(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(writer) = self.writer.take() {
            writer.join().expect("the writer does not panic");
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop_writer();
    }
}

impl Sink {
    fn new(shared: Arc<Shared>, queue: SyncSender<Batch>) -> Sink {
        let (home, emptied) = sync_channel(QUEUE_BATCHES);
        let turn = shared.turn.load(Ordering::Relaxed);
        let (batches, spare) = Default::default();
        Sink { shared, queue, batches, spare, emptied, home, turn }
    }

    /// A message was handed to its session, or written, or both.
    pub fn sent(&mut self, row: &Sent) {
        self.push(Spool::Sent, row, &[]);
    }

    /// The last acknowledgement of a message came back.
    pub fn acknowledged(&mut self, row: &Acknowledged) {
        self.push(Spool::Acknowledged, row, &[]);
    }

    /// A message was offered and not sent.
    pub fn unsent(&mut self, row: &Unsent) {
        self.push(Spool::Unsent, row, &[]);
    }

    /// A message arrived.
    pub fn received(&mut self, row: &Received) {
        self.push(Spool::Received, row, &[]);
    }

    /// Something happened once.
    pub fn event(&mut self, row: &Event, detail: &str) {
        self.push(Spool::Events, row, detail.as_bytes());
    }

    /// What a process has used.
    pub fn resource(&mut self, row: &Resource) {
        self.push(Spool::Resources, row, &[]);
    }

    /// What became of a frame on one link. `bytes` is the IP packet; it may be empty for every hop but the one
    /// that is pushed first.
    pub fn frame(&mut self, row: &Frame, bytes: &[u8]) {
        self.push(Spool::Frames, row, bytes);
    }

    /// Hands the batches over if a flush is due. Call it at least every 100 ms when there is nothing to push,
    /// so that rows do not wait; it costs a load from memory.
    pub fn tick(&mut self) {
        let turn = self.shared.turn.load(Ordering::Relaxed);
        if turn != self.turn {
            self.turn = turn;
            self.flush();
        }
    }

    /// Hands every batch over.
    pub fn flush(&mut self) {
        for spool in Spool::ALL {
            if !self.batches[spool as usize].is_empty() {
                self.hand_over(spool);
            }
        }
    }

    /// Whether the writer has stopped with an error, so that the run may as well end.
    pub fn failed(&self) -> bool {
        self.shared.failure.get().is_some()
    }

    fn push<R: Record>(&mut self, spool: Spool, row: &R, tail: &[u8]) {
        let size = R::SIZE + tail.len() + 4;
        let batch = &self.batches[spool as usize];
        if batch.len() + size > batch.capacity() {
            self.make_room(spool, size);
        }
        spool::put(spool, row, tail, &mut self.batches[spool as usize]);
        self.tick();
    }

    fn make_room(&mut self, spool: Spool, size: usize) {
        if !self.batches[spool as usize].is_empty() {
            self.hand_over(spool);
        }
        let batch = &mut self.batches[spool as usize];
        if batch.capacity() == 0 {
            *batch = self.spare[spool as usize].pop().unwrap_or_default();
        }
        let free = batch.capacity() - batch.len();
        if free < size {
            batch.reserve(size.max(spool.batch_bytes()));
        }
    }

    /// Gives a batch to the writer and takes an emptied one instead. With the queue full the batch is kept, and
    /// grows, up to `BATCH_BYTES_MAX`.
    fn hand_over(&mut self, spool: Spool) {
        while let Ok(batch) = self.emptied.try_recv() {
            self.spare[batch.spool as usize].push(batch.bytes);
        }
        let bytes = std::mem::take(&mut self.batches[spool as usize]);
        let batch = Batch { spool, bytes, home: self.home.clone() };
        match self.queue.try_send(batch) {
            Ok(()) => self.batches[spool as usize] = self.spare[spool as usize].pop().unwrap_or_default(),
            Err(TrySendError::Full(batch)) if batch.bytes.len() < BATCH_BYTES_MAX => {
                self.shared.batches_grown.fetch_add(1, Ordering::Relaxed);
                self.batches[spool as usize] = batch.bytes;
            }
            Err(TrySendError::Full(batch)) => self.wait_for_writer(batch),
            Err(TrySendError::Disconnected(batch)) => self.lose(batch),
        }
    }

    fn wait_for_writer(&mut self, batch: Batch) {
        let began = time::Instant::now();
        if let Err(refused) = self.queue.send(batch) {
            self.lose(refused.0);
        }
        self.shared.stalls.fetch_add(1, Ordering::Relaxed);
        self.shared.stalled_ns.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    fn lose(&mut self, mut batch: Batch) {
        self.shared.batches_lost.fetch_add(1, Ordering::Relaxed);
        batch.bytes.clear();
        self.batches[batch.spool as usize] = batch.bytes;
    }
}

impl Clone for Sink {
    fn clone(&self) -> Sink {
        Sink::new(Arc::clone(&self.shared), self.queue.clone())
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Shared {
    fn new(dir: &Path) -> Shared {
        Shared {
            dir: dir.to_owned(),
            stop: AtomicBool::new(false),
            turn: AtomicU64::new(0),
            failure: OnceLock::new(),
            batches_grown: AtomicU64::new(0),
            stalls: AtomicU64::new(0),
            stalled_ns: AtomicU64::new(0),
            batches_lost: AtomicU64::new(0),
        }
    }

    fn strain(&self) -> Strain {
        Strain {
            batches_grown: self.batches_grown.load(Ordering::Relaxed),
            stalls: self.stalls.load(Ordering::Relaxed),
            stalled_ns: self.stalled_ns.load(Ordering::Relaxed),
            batches_lost: self.batches_lost.load(Ordering::Relaxed),
        }
    }
}

struct Writer {
    shared: Arc<Shared>,
    files: Vec<File>,
    batches: Receiver<Batch>,
}

impl Writer {
    /// Polls rather than waits: a receiver that waits must be woken, and waking it would cost the producer, which
    /// may be the emulator under real-time priority, a lock and a system call.
    fn run(mut self) {
        let mut turned = time::Instant::now();
        loop {
            let stop = self.shared.stop.load(Ordering::Acquire);
            let drained = self.drain();
            if stop || drained.is_err() {
                return;
            }
            if turned.elapsed() >= TURN {
                turned = time::Instant::now();
                self.shared.turn.fetch_add(1, Ordering::Relaxed);
            }
            std::thread::sleep(POLL);
        }
    }

    /// Writes what is queued; an error says that no producer is left.
    fn drain(&mut self) -> std::result::Result<(), ()> {
        loop {
            match self.batches.try_recv() {
                Ok(batch) => self.write(batch),
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => return Err(()),
            }
        }
    }

    fn write(&mut self, mut batch: Batch) {
        if self.shared.failure.get().is_some() {
            self.shared.batches_lost.fetch_add(1, Ordering::Relaxed);
        } else if let Err(source) = self.files[batch.spool as usize].write_all(&batch.bytes) {
            let path = batch.spool.path(&self.shared.dir);
            // The only thread that sets it, and only once.
            let _ = self.shared.failure.set(Arc::new(Error::Disk { action: "write", path, source }));
        }
        batch.bytes.clear();
        let home = batch.home.clone();
        // A producer that is gone, or has enough empty batches, does not need this one.
        let _ = home.try_send(batch);
    }
}

/// Makes the directory and writes what is known before the first row.
pub(crate) fn open_directory(dir: &Path, plan_json: &str, layout: &Layout) -> Result<()> {
    fs::create_dir_all(dir).on("create", dir)?;
    if dir.join("plan.json").exists() {
        return Err(Error::Occupied(dir.to_owned()));
    }
    let plan = dir.join("plan.json");
    fs::write(&plan, plan_json).on("write", &plan)?;
    layout.write(dir)
}

const SPOOLS: usize = Spool::ALL.len();
/// Batches under way. With batches of 64 to 256 KiB the queue holds some tens of MiB at most.
const QUEUE_BATCHES: usize = 256;
/// A batch this large makes its producer wait.
const BATCH_BYTES_MAX: usize = 8 << 20;
const POLL: time::Duration = time::Duration::from_millis(5);
/// How often batches that are not full are handed over.
const TURN: time::Duration = time::Duration::from_millis(100);
