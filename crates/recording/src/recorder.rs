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
//! is full the batch grows instead; a batch far too large, and a sink at its end, make their producer wait, and that
//! is counted. No row is lost but by an error of the file system.
//!
//! The writer stops at the first such error. It is reported once through [`Recorder::failure`]; pushes go on and lead
//! nowhere, so that the run can end with a verdict, and the rows that they bring are counted as lost.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time;

use mqttlab_rows::{
    Acknowledged, Dropped, Event, Frame, Layout, OwnPacket, Payload, PositionSample, Received, Record,
    Resource, Sent, TcpSample, Unsent,
};

use crate::claim::Claim;
use crate::error::{Error, ErrorContext, Result};
use crate::folding::Folder;
use crate::spool::{self, Spool};

/// A recording being written.
pub struct Recorder {
    shared: Arc<RecorderState>,
    /// Gone at the end, so that the writer knows when all producers are.
    queue: Option<SyncSender<SpoolBatch>>,
    writer: Option<JoinHandle<()>>,
    /// `None` once it was handed over.
    claim: Option<Claim>,
}

/// What a recorder leaves when it is closed.
#[derive(Debug)]
pub struct ClosedRecorder {
    /// How hard the writer was pressed, and whether rows are missing.
    pub strain: Strain,
    /// The error that stopped the writer, if one did.
    pub failure: Option<Arc<Error>>,
    /// For [`Finish`](crate::Finish). Dropped, it removes a recording that is still provisional.
    pub claim: Option<Claim>,
}

/// One producer's end of a [`Recorder`]. A clone is another producer's, with its own batches.
pub struct Sink {
    shared: Arc<RecorderState>,
    queue: SyncSender<SpoolBatch>,
    batches: [Vec<u8>; SPOOLS],
    /// How many rows are in each batch.
    rows: [u64; SPOOLS],
    spare: [Vec<Vec<u8>>; SPOOLS],
    emptied: Receiver<SpoolBatch>,
    home: SyncSender<SpoolBatch>,
    turn: u64,
    /// How long it waited for the writer.
    waited: time::Duration,
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
    /// Rows that were pushed and not written, because the disk refused them. Zero unless the writer failed.
    pub rows_lost: u64,
}

struct RecorderState {
    dir: PathBuf,
    stop: AtomicBool,
    /// Counts the writer's flush periods: a sink that sees a new one hands its batches over.
    turn: AtomicU64,
    failure: OnceLock<Arc<Error>>,
    batches_grown: AtomicU64,
    stalls: AtomicU64,
    stalled_ns: AtomicU64,
    rows_lost: AtomicU64,
}

struct SpoolBatch {
    spool: Spool,
    bytes: Vec<u8>,
    rows: u64,
    home: SyncSender<SpoolBatch>,
}

impl Recorder {
    /// Starts a recording in `dir`, which is made if need be: writes `plan.json` and `layout.json`, creates the
    /// spools and starts the writer. [`Error::Occupied`] when there is one already.
    pub fn create(dir: &Path, plan_json: &str, layout: &Layout) -> Result<Recorder> {
        let claim = Claim::take(dir, plan_json, layout)?;
        let mut files: Vec<Box<dyn Write + Send>> = Vec::with_capacity(SPOOLS);
        for spool in Spool::ALL {
            files.push(Box::new(spool::create(spool, dir)?));
        }
        let folder = layout.summary.map(|rule| Folder::new(dir, rule));
        let mut recorder = Recorder::start(dir, files, folder)?;
        recorder.claim = Some(claim);
        recorder.keep();
        Ok(recorder)
    }

    /// Starts the writer on these files, one for each spool.
    fn start(dir: &Path, files: Vec<Box<dyn Write + Send>>, folder: Option<Folder>) -> Result<Recorder> {
        let shared = Arc::new(RecorderState::new(dir));
        let (queue, batches) = sync_channel(QUEUE_BATCHES);
        let writer = Writer { shared: Arc::clone(&shared), files, batches, folder };
        let writer = std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || writer.run())
            .on("start a thread to write", dir)?;
        Ok(Recorder { shared, queue: Some(queue), writer: Some(writer), claim: None })
    }

    /// Until [`keep`](Self::keep) is called, a recorder that goes takes the recording away: for a run that may fail before
    /// it begins.
    pub fn provisional(&mut self) {
        self.claim.iter_mut().for_each(|claim| claim.set_kept(false));
    }

    /// From here on what is recorded stays, however the run ends.
    pub fn keep(&mut self) {
        self.claim.iter_mut().for_each(|claim| claim.set_kept(true));
    }

    /// A new producer's sink.
    pub fn sink(&self) -> Sink {
        let queue = self.queue.clone().expect("it is there until the end");
        Sink::new(Arc::clone(&self.shared), queue)
    }

    /// The error that stopped the writer, if one did. What was written before it can still be read.
    pub fn failure(&self) -> Option<Arc<Error>> {
        self.shared.failure.get().cloned()
    }

    /// How hard the writer was pressed so far.
    pub fn strain(&self) -> Strain {
        self.shared.strain()
    }

    /// Writes everything that was handed over, waits for the sinks to be gone, and ends. Then
    /// [`finalise`](crate::finalise) makes the recording's tables. With an error rows are missing, as many as the
    /// strain says.
    pub fn close(mut self) -> ClosedRecorder {
        self.stop_writer();
        ClosedRecorder { strain: self.strain(), failure: self.failure(), claim: self.claim.take() }
    }

    fn stop_writer(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.queue = None;
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
    fn new(shared: Arc<RecorderState>, queue: SyncSender<SpoolBatch>) -> Sink {
        let (home, emptied) = sync_channel(QUEUE_BATCHES);
        let turn = shared.turn.load(Ordering::Relaxed);
        let (batches, rows, spare, waited) = Default::default();
        Sink { shared, queue, batches, rows, spare, emptied, home, turn, waited }
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

    /// A message will not reach a receiver any more.
    pub fn dropped(&mut self, row: &Dropped) {
        self.push(Spool::Dropped, row, &[]);
    }

    /// Something happened once.
    pub fn event(&mut self, row: &Event, detail: &str) {
        self.push(Spool::Events, row, detail.as_bytes());
    }

    /// What a process has used.
    pub fn resource(&mut self, row: &Resource) {
        self.push(Spool::Resources, row, &[]);
    }

    /// What one end of a TCP connection knows of it.
    pub fn tcp_sample(&mut self, row: &TcpSample) {
        self.push(Spool::TcpSamples, row, &[]);
    }

    /// Where somebody is.
    pub fn position(&mut self, row: &PositionSample) {
        self.push(Spool::Positions, row, &[]);
    }

    /// What a message that arrived carried: all of it, or the first 8 MiB.
    pub fn payload(&mut self, row: &Payload, bytes: &[u8]) {
        self.push(Spool::Payloads, row, spool::kept_of(bytes));
    }

    /// What a client knows of a packet on a connection whose frames are not recorded, with the topic of a message, behind
    /// the name of a kind that has no number.
    pub fn own_packet(&mut self, row: &OwnPacket, beside: &str) {
        self.push(Spool::OwnPackets, row, beside.as_bytes());
    }

    /// What became of a frame on one link. `bytes` is the IP packet.
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

    /// How long its producer waited for the writer so far.
    pub fn waited(&self) -> time::Duration {
        self.waited
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
        self.rows[spool as usize] += 1;
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
        let batch = self.take_batch(spool);
        match self.queue.try_send(batch) {
            Ok(()) => self.batches[spool as usize] = self.spare[spool as usize].pop().unwrap_or_default(),
            Err(TrySendError::Full(batch)) if batch.bytes.len() < BATCH_BYTES_MAX => {
                self.shared.batches_grown.fetch_add(1, Ordering::Relaxed);
                self.rows[spool as usize] = batch.rows;
                self.batches[spool as usize] = batch.bytes;
            }
            Err(TrySendError::Full(batch)) => self.wait_for_writer(batch),
            Err(TrySendError::Disconnected(batch)) => self.lose(batch),
        }
    }

    fn take_batch(&mut self, spool: Spool) -> SpoolBatch {
        let bytes = std::mem::take(&mut self.batches[spool as usize]);
        let rows = std::mem::take(&mut self.rows[spool as usize]);
        SpoolBatch { spool, bytes, rows, home: self.home.clone() }
    }

    fn wait_for_writer(&mut self, batch: SpoolBatch) {
        let began = time::Instant::now();
        if let Err(refused) = self.queue.send(batch) {
            self.lose(refused.0);
        }
        let waited = began.elapsed();
        self.waited += waited;
        self.shared.stalls.fetch_add(1, Ordering::Relaxed);
        self.shared.stalled_ns.fetch_add(waited.as_nanos() as u64, Ordering::Relaxed);
    }

    /// The recorder is closed: nobody writes any more.
    fn lose(&mut self, mut batch: SpoolBatch) {
        self.shared.rows_lost.fetch_add(batch.rows, Ordering::Relaxed);
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
    /// The last rows may have to wait: there is no later occasion for them.
    fn drop(&mut self) {
        for spool in Spool::ALL {
            if self.batches[spool as usize].is_empty() {
                continue;
            }
            let batch = self.take_batch(spool);
            match self.queue.try_send(batch) {
                Ok(()) => {}
                Err(TrySendError::Full(batch)) => self.wait_for_writer(batch),
                Err(TrySendError::Disconnected(batch)) => self.lose(batch),
            }
        }
    }
}

impl RecorderState {
    fn new(dir: &Path) -> RecorderState {
        RecorderState {
            dir: dir.to_owned(),
            stop: AtomicBool::new(false),
            turn: AtomicU64::new(0),
            failure: OnceLock::new(),
            batches_grown: AtomicU64::new(0),
            stalls: AtomicU64::new(0),
            stalled_ns: AtomicU64::new(0),
            rows_lost: AtomicU64::new(0),
        }
    }

    fn strain(&self) -> Strain {
        Strain {
            batches_grown: self.batches_grown.load(Ordering::Relaxed),
            stalls: self.stalls.load(Ordering::Relaxed),
            stalled_ns: self.stalled_ns.load(Ordering::Relaxed),
            rows_lost: self.rows_lost.load(Ordering::Relaxed),
        }
    }
}

struct Writer {
    shared: Arc<RecorderState>,
    files: Vec<Box<dyn Write + Send>>,
    batches: Receiver<SpoolBatch>,
    /// Where sums are kept of messages.
    folder: Option<Folder>,
}

impl Writer {
    /// Polls rather than waits: a receiver that waits must be woken, and waking it would cost the producer, which
    /// may be the emulator under real-time priority, a lock and a system call.
    fn run(mut self) {
        let mut turned = time::Instant::now();
        loop {
            let stop = self.shared.stop.load(Ordering::Acquire);
            let drained = self.drain();
            if drained.is_err() {
                return;
            }
            if stop {
                return self.drain_sinks();
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

    /// Writes what sinks hand over that are not gone yet. One that stays, and is silent, is not waited for.
    fn drain_sinks(&mut self) {
        while let Ok(batch) = self.batches.recv_timeout(SINKS_GONE_WITHIN) {
            self.write(batch);
        }
    }

    fn write(&mut self, mut batch: SpoolBatch) {
        let mut written = 0;
        if self.shared.failure.get().is_none() {
            let outcome = write_counted(&mut *self.files[batch.spool as usize], &batch.bytes);
            written = outcome.written;
            if let Some(source) = outcome.error {
                let path = batch.spool.path(&self.shared.dir);
                // The only thread that sets it, and only once.
                let _ = self.shared.failure.set(Arc::new(Error::Disk { action: "write", path, source }));
            }
        }
        if written < batch.bytes.len() {
            let lost = batch.rows - spool::whole_records(batch.spool, &batch.bytes[..written]);
            self.shared.rows_lost.fetch_add(lost, Ordering::Relaxed);
        }
        self.fold_after(batch.spool, written);
        batch.bytes.clear();
        let home = batch.home.clone();
        // A producer that is gone, or has enough empty batches, does not need this one.
        let _ = home.try_send(batch);
    }

    /// Adds rows of messages up where enough of them were written.
    fn fold_after(&mut self, spool: Spool, written: usize) {
        let Some(folder) = self.folder.as_mut().filter(|_| self.shared.failure.get().is_none()) else {
            return;
        };
        if !folder.wrote(spool, written) {
            return;
        }
        match folder.fold() {
            Ok(files) => {
                files.into_iter().for_each(|(spool, file)| self.files[spool as usize] = Box::new(file))
            }
            // What is written is completed without it.
            Err(error) => drop(self.shared.failure.set(Arc::new(error))),
        }
    }
}

/// How far writing came, and what ended it early.
struct Written {
    written: usize,
    error: Option<io::Error>,
}

/// Like `write_all`, but tells how much was written when it fails.
fn write_counted(file: &mut dyn Write, bytes: &[u8]) -> Written {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return Written { written, error: Some(io::ErrorKind::WriteZero.into()) },
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Written { written, error: Some(error) },
        }
    }
    Written { written, error: None }
}

const SPOOLS: usize = Spool::ALL.len();
/// Batches under way. With batches of 64 to 256 KiB the queue holds some tens of MiB at most.
const QUEUE_BATCHES: usize = 256;
/// A batch this large makes its producer wait.
const BATCH_BYTES_MAX: usize = 8 << 20;
const POLL: time::Duration = time::Duration::from_millis(5);
/// How often batches that are not full are handed over.
const TURN: time::Duration = time::Duration::from_millis(100);
/// A sink that is still there after the end and hands nothing over for this long has been forgotten.
const SINKS_GONE_WITHIN: time::Duration = time::Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use mqttlab_units::{Duration, Instant};

    use super::*;
    use crate::message_rows::for_each;
    use mqttlab_rows::EventKind;

    /// A disk that takes its time, and refuses everything beyond `room`, in the middle of a record.
    struct Disk {
        file: File,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            std::thread::sleep(time::Duration::from_millis(2));
            if self.room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let count = self.file.write(&bytes[..bytes.len().min(self.room)])?;
            self.room -= count;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What eight threads leave that push as fast as they can, and whose sinks end at once; with the rows in the
    /// spools.
    fn pressed(room: usize) -> (Strain, Option<Arc<Error>>, u64) {
        let dir = std::env::temp_dir().join(format!("mqttlab-pressed-{}-{room}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let disk = |spool| Box::new(Disk { file: spool::create(spool, &dir).unwrap(), room }) as Box<_>;
        let recorder = Recorder::start(&dir, Spool::ALL.into_iter().map(disk).collect(), None).unwrap();
        std::thread::scope(|scope| {
            for publisher in 0..THREADS {
                let mut sink = recorder.sink();
                scope.spawn(move || push(&mut sink, publisher as u32));
            }
        });
        let ClosedRecorder { strain, failure, .. } = recorder.close();
        let mut rows = 0;
        let mut count = || {
            rows += 1;
            Ok(())
        };
        for_each(&dir, Spool::Acknowledged, |_: Acknowledged, _| count()).unwrap();
        for_each(&dir, Spool::Events, |_: Event, _| count()).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        (strain, failure, rows)
    }

    fn push(sink: &mut Sink, publisher: u32) {
        for sequence in 0..ROWS as u32 / 2 {
            let at = Instant::from_ns(sequence.into());
            sink.acknowledged(&Acknowledged { publisher, sequence, at });
            let (client, took) = (Some(publisher), Some(Duration::from_ns(1)));
            sink.event(
                &Event { at, kind: EventKind::Note, client, took },
                &"words"[..publisher as usize % 5],
            );
        }
    }

    #[test]
    fn a_slow_disk_loses_no_row_of_sinks_that_end_while_the_queue_is_full() {
        let (strain, failure, rows) = pressed(usize::MAX);
        assert!(failure.is_none());
        assert_eq!((rows, strain.rows_lost), (THREADS * ROWS, 0), "{strain:?}");
        assert!(strain.stalls > 0, "nobody had to wait, so that nothing was tried: {strain:?}");
    }

    #[test]
    fn every_row_that_a_full_disk_refuses_is_counted() {
        let (strain, failure, rows) = pressed(1_000_003);
        assert!(matches!(*failure.unwrap(), Error::Disk { .. }));
        assert!(rows > 10_000 && strain.rows_lost > 10_000, "{rows} {strain:?}");
        assert_eq!(rows + strain.rows_lost, THREADS * ROWS, "{strain:?}");
    }

    const THREADS: u64 = 8;
    const ROWS: u64 = 400_000;
}
