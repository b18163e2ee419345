//! A part that is not part 0: it takes part 0's clock and schedule, says how its clients stand, and hands its rows over.

use std::fs::File;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mqttlab_recording::{RunFacts, Strain, part_files, read_layout};
use mqttlab_run::{Interruption, Schedule};
use mqttlab_system::clock;

use super::clock_offset::{ClockExchange, ClockOffset};
use super::messages::{
    FollowerMessage, LeaderMessage, LineReader, LineWriter, PartReport, is_end, split_stream,
};
use crate::clock::Clock;
use crate::parts::client_share::ClientsStatus;

/// A part of a run that is not part 0.
pub(crate) struct PartFollower {
    writer: LineWriter,
    /// The run's clock, as this machine has it.
    pub(super) clock: Clock,
    offset: ClockOffset,
    signals: Arc<LeaderSignals>,
    listener: Option<JoinHandle<LineReader>>,
}

/// What part 0 has said so far.
#[derive(Default)]
struct LeaderSignals {
    begin: AtomicBool,
    schedule: OnceLock<Schedule>,
    leave: AtomicBool,
    trouble: Mutex<Option<String>>,
    /// Nobody listens any more.
    over: AtomicBool,
}

impl PartFollower {
    /// Goes to part 0, and finds out how far its clock is ahead.
    ///
    /// # Errors
    /// Nobody is there, or refuses this part: in words.
    pub(super) fn new(
        number: u32,
        lead: SocketAddr,
        (run_id, plan): (&str, String),
    ) -> Result<PartFollower, String> {
        let failed = |error: io::Error| format!("part 0 of the run at {lead}: {error}");
        let stream = TcpStream::connect_timeout(&lead, CONNECT).map_err(failed)?;
        let (mut line, writer) = split_stream(stream).map_err(failed)?;
        line.wait_at_most(ANSWER_MS).map_err(failed)?;
        let (run_id, version) = (run_id.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        writer.write(&FollowerMessage::Here { part: number, run_id, plan, version }).map_err(failed)?;
        let (epoch_ns, started_unix_ns) = match line.read::<LeaderMessage>().map_err(failed)? {
            Some(LeaderMessage::Welcome { epoch_ns, started_unix_ns }) => (epoch_ns, started_unix_ns),
            Some(LeaderMessage::Refused { problem }) => {
                return Err(format!("part 0 of the run at {lead} refuses part {number}: {problem}"));
            }
            _ => return Err(format!("part 0 of the run at {lead} does not answer")),
        };
        let offset = exchange(&mut line, &writer).map_err(failed)?;
        let clock = Clock::with_epoch(epoch_ns, started_unix_ns).seen_from(offset.offset_ns);
        let signals = Arc::new(LeaderSignals::default());
        let shared = Arc::clone(&signals);
        let listener = thread::Builder::new().name("part 0".into()).spawn(move || listen(line, &shared));
        Ok(PartFollower { writer, clock, offset, signals, listener: Some(listener.map_err(failed)?) })
    }

    /// Says that everything here is ready.
    pub(super) fn ready(&self) {
        // A connection that is gone is noticed by the listener.
        let _ = self.writer.write(&FollowerMessage::Ready { clock: self.offset });
    }

    /// Whether everybody is.
    ///
    /// # Errors
    /// Part 0 is gone, or ends the run.
    pub(super) fn may_begin(&self) -> Result<bool, Interruption> {
        self.trouble()?;
        Ok(self.signals.begin.load(Relaxed))
    }

    /// When to publish, once part 0 has said it.
    pub(super) fn schedule(&self) -> Option<Schedule> {
        self.signals.schedule.get().copied()
    }

    pub(super) fn may_leave(&self) -> bool {
        self.signals.leave.load(Relaxed)
    }

    /// Says how the clients here stand.
    ///
    /// # Errors
    /// Part 0 is gone, or ends the run.
    pub(super) fn report_status(&self, standing: ClientsStatus) -> Result<(), Interruption> {
        let _ = self.writer.write(&FollowerMessage::Standing(standing));
        self.trouble()
    }

    /// Says what ends this part before its time.
    pub(super) fn leave(&self, result: &Result<(), Interruption>) {
        // What part 0 has ended it knows.
        if let (Err(interruption), Ok(())) = (result, self.trouble()) {
            let _ = self.writer.write(&FollowerMessage::Trouble { problem: interruption.to_string() });
        }
    }

    /// Hands over what was recorded in `place`, and finds out how the clock went meanwhile.
    ///
    /// # Errors
    /// Part 0 is gone, in words; what is here stays here.
    pub(crate) fn hand_over(self, place: &Path, facts: &RunFacts, strain: Strain) -> Result<(), String> {
        let failed = |problem: String| format!("this part's rows could not be handed over: {problem}");
        let files = part_files(place).map_err(|error| failed(error.to_string()))?;
        // Of a recording that cannot be read more is wrong than that nobody knows the machine.
        let machine = read_layout(place).map(|layout| layout.machine).unwrap_or_default();
        let report = PartReport {
            files,
            machine,
            warnings: facts.warnings.clone(),
            validity: facts.validity.clone(),
            rows_lost: strain.rows_lost,
            epoch_ns: self.clock.epoch_ns(),
            clock: None,
        };
        self.send(place, report).map_err(|error| failed(error.to_string()))
    }

    fn send(mut self, place: &Path, mut report: PartReport) -> io::Result<()> {
        self.signals.over.store(true, Relaxed);
        let listener = self.listener.take().expect("it is taken once");
        let mut line = listener.join().expect("a listener does not panic");
        report.clock = Some(exchange(&mut line, &self.writer)?);
        let files = report.files.clone();
        self.writer.write(&FollowerMessage::Rows(Box::new(report)))?;
        for (name, bytes) in files {
            let sent = self.writer.send(&mut File::open(place.join(&name))?.take(bytes))?;
            if sent < bytes {
                return Err(io::Error::other(format!("{name} has become shorter")));
            }
        }
        line.wait_at_most(KEPT_MS)?;
        loop {
            match line.read::<LeaderMessage>()? {
                Some(LeaderMessage::Kept) => return Ok(()),
                Some(_) => {}
                None => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
    }

    fn trouble(&self) -> Result<(), Interruption> {
        let trouble = self.signals.trouble.lock().expect("no thread panics with it").clone();
        trouble.map_or(Ok(()), |problem| Err(Interruption::Part(problem)))
    }
}

/// Asks what the time is, until it is known well.
fn exchange(line: &mut LineReader, writer: &LineWriter) -> io::Result<ClockOffset> {
    line.wait_at_most(ANSWER_MS)?;
    let began = Instant::now();
    let mut rounds = Vec::with_capacity(ROUNDS);
    while rounds.len() < ROUNDS && (rounds.len() < ROUNDS_MIN || began.elapsed() < LONGEST) {
        let sent = clock::monotonic_ns();
        writer.write(&FollowerMessage::Ask)?;
        loop {
            match line.read::<LeaderMessage>()? {
                Some(LeaderMessage::Answer { received_ns: received, answered_ns: answered }) => {
                    rounds.push(ClockExchange { sent, received, answered, back: clock::monotonic_ns() });
                    break;
                }
                // What was ordered in between does not matter any more.
                Some(_) => {}
                None => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
    }
    ClockOffset::of(&rounds).ok_or_else(|| io::ErrorKind::TimedOut.into())
}

/// Hears what part 0 orders, until it has nothing more to order.
fn listen(mut line: LineReader, signals: &LeaderSignals) -> LineReader {
    let trouble = |words: String| {
        *signals.trouble.lock().expect("no thread panics with it") = Some(words);
    };
    if let Err(error) = line.wait_at_most(LOOK_MS) {
        trouble(format!("part 0 of the run: {error}"));
    }
    while !signals.over.load(Relaxed) {
        match line.read::<LeaderMessage>() {
            Ok(Some(LeaderMessage::Begin)) => signals.begin.store(true, Relaxed),
            Ok(Some(LeaderMessage::Leave)) => signals.leave.store(true, Relaxed),
            Ok(Some(LeaderMessage::End { problem })) => trouble(format!("part 0 of the run: {problem}")),
            Ok(Some(order)) => {
                if let Some(schedule) = order.schedule() {
                    let _ = signals.schedule.set(schedule);
                }
            }
            Ok(None) => {}
            Err(error) => {
                let words = if is_end(&error) { "ended without a word".into() } else { error.to_string() };
                trouble(format!("part 0 of the run: {words}"));
                break;
            }
        }
    }
    line
}

const CONNECT: Duration = Duration::from_secs(10);
const ANSWER_MS: u64 = 5_000;
/// How late the end of listening is noticed.
const LOOK_MS: u64 = 50;
/// How long part 0 may take to keep gigabytes.
const KEPT_MS: u64 = 60_000;
/// Questions of an exchange, as many as it takes a second to ask, but some.
const ROUNDS: usize = 200;
const ROUNDS_MIN: usize = 5;
const LONGEST: Duration = Duration::from_secs(1);
