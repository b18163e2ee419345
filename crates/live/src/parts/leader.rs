//! Part 0: the others come to it, ask what the time is, say how they stand, and hand their rows over.

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use mqttlab_plan::Plan;
use mqttlab_recording::RunFacts;
use mqttlab_run::{Interruption, Schedule};
use mqttlab_system::clock;

use super::clock_offset::ClockOffset;
use super::merge::{self, Collected, Merged};
use super::messages::{
    FollowerMessage, LeaderMessage, LineReader, LineWriter, PartReport, is_end, split_stream,
};
use crate::clock::Clock;
use crate::parts::client_share::ClientsStatus;

/// Part 0 of a run, to which the others connect.
pub(crate) struct PartLeader {
    shared: Arc<LeaderState>,
    address: SocketAddr,
}

/// What a part must know to take part, and what the parts have said.
struct LeaderState {
    clock: Clock,
    run_id: String,
    plan: String,
    /// Where the others' files go.
    directory: PathBuf,
    /// Whether nobody is waited for any more.
    closed: AtomicBool,
    states: Mutex<Vec<PartState>>,
}

/// What is known of a part.
#[derive(Default)]
struct PartState {
    writer: Option<Arc<LineWriter>>,
    clock: Option<ClockOffset>,
    standing: ClientsStatus,
    /// Whether its clients connect, publish or receive.
    is_running: bool,
    /// Whether they have been told to leave.
    has_left: bool,
    trouble: Option<String>,
    report: Option<PartReport>,
    /// Whether all of its files are here.
    kept: bool,
    /// Nothing more will come of it.
    over: bool,
}

impl PartLeader {
    /// Listens for the other parts.
    ///
    /// # Errors
    /// The address is not this machine's, or taken.
    pub(super) fn new(
        listen: SocketAddr,
        parts: u32,
        (run_id, plan): (&str, String),
        clock: Clock,
        directory: &Path,
    ) -> io::Result<PartLeader> {
        let listener = TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(LeaderState {
            clock,
            run_id: run_id.to_owned(),
            plan,
            directory: directory.to_owned(),
            closed: AtomicBool::new(false),
            states: Mutex::new((1..parts).map(|_| PartState::default()).collect()),
        });
        let host = Arc::clone(&shared);
        thread::Builder::new().name("parts".into()).spawn(move || receive(&host, &listener))?;
        Ok(PartLeader { shared, address })
    }

    /// Where the others come to.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether all parts are ready to begin.
    ///
    /// # Errors
    /// One of them cannot.
    pub(super) fn are_ready(&self) -> Result<bool, Interruption> {
        let states = self.shared.states();
        first_failure(&states)?;
        Ok(states.iter().all(|state| state.clock.is_some()))
    }

    /// The numbers of the parts that have not come.
    pub(super) fn missing(&self) -> Vec<u32> {
        let states = self.shared.states();
        (1..).zip(states.iter()).filter(|(_, state)| state.clock.is_none()).map(|(part, _)| part).collect()
    }

    pub(super) fn begin(&self) {
        self.shared.closed.store(true, Relaxed);
        self.shared.states().iter_mut().for_each(|state| state.is_running = true);
        self.send_all(&LeaderMessage::Begin);
    }

    pub(super) fn publish(&self, schedule: &Schedule) {
        self.send_all(&LeaderMessage::publish(schedule));
    }

    /// Has the others leave: at the planned end, or before it.
    pub(super) fn leave(&self, result: &Result<(), Interruption>) {
        self.shared.closed.store(true, Relaxed);
        self.shared.states().iter_mut().for_each(|state| (state.is_running, state.has_left) = (false, true));
        match result {
            Ok(()) => self.send_all(&LeaderMessage::Leave),
            Err(interruption) => self.send_all(&LeaderMessage::End { problem: interruption.to_string() }),
        }
    }

    /// How the clients of all other parts stand.
    ///
    /// # Errors
    /// One of the parts is gone, or has to end.
    pub(super) fn others(&self) -> Result<ClientsStatus, Interruption> {
        let states = self.shared.states();
        first_failure(&states)?;
        Ok(states.iter().fold(ClientsStatus::default(), |sum, state| sum.and(&state.standing)))
    }

    /// Takes what the other parts hand over into the recording in `place`, which is still in spools.
    pub(crate) fn merge(self, plan: &Plan, place: &Path, facts: &mut RunFacts) -> Merged {
        merge::merge(plan, self.collect(), place, facts)
    }

    fn collect(self) -> Vec<Collected> {
        let waited = Instant::now();
        while waited.elapsed() < LONGEST_HAND_OVER && self.shared.states().iter().any(PartState::is_awaited) {
            thread::sleep(STEP);
        }
        let mut states = self.shared.states();
        let collected = (1..).zip(states.iter_mut()).map(|(number, state)| Collected {
            number,
            clock: state.clock,
            report: state.report.take(),
            kept: state.kept,
            files: self.shared.files_of(number),
            trouble: state.trouble.take(),
        });
        collected.collect()
    }

    fn send_all(&self, message: &LeaderMessage) {
        let states = self.shared.states();
        let writers: Vec<Arc<LineWriter>> = states.iter().filter_map(|state| state.writer.clone()).collect();
        drop(states);
        for writer in writers {
            // Whose connection is gone is noticed by whoever listens to it.
            let _ = writer.write(message);
        }
    }
}

impl Drop for PartLeader {
    fn drop(&mut self) {
        self.shared.closed.store(true, Relaxed);
    }
}

impl PartState {
    /// How long it may be silent; `None` for as long as it likes.
    fn silence_limit(&self) -> Option<Duration> {
        let is_closing = self.has_left.then_some(SILENCE_AT_END);
        if self.is_running { Some(SILENCE) } else { is_closing }
    }

    fn is_awaited(&self) -> bool {
        self.writer.is_some() && !self.over
    }
}

impl LeaderState {
    fn states(&self) -> MutexGuard<'_, Vec<PartState>> {
        self.states.lock().expect("no thread panics with it")
    }

    fn files_of(&self, part: u32) -> PathBuf {
        self.directory.join(format!("part-{part}.received"))
    }

    fn update_state(&self, part: u32, change: impl FnOnce(&mut PartState)) {
        if let Some(state) = self.states().get_mut((part as usize).wrapping_sub(1)) {
            change(state);
        }
    }

    /// Whether somebody may take part; what is wrong, if not.
    fn admit(&self, said: &FollowerMessage, writer: &Arc<LineWriter>) -> Result<u32, String> {
        let FollowerMessage::Here { part, run_id, plan, version } = said else {
            return Err("it did not say who it is".into());
        };
        if *run_id != self.run_id {
            return Err("it has the identifier of another run".into());
        }
        if version != env!("CARGO_PKG_VERSION") {
            let own = env!("CARGO_PKG_VERSION");
            return Err(format!("it is version {version}, and part 0 is {own}: install one version"));
        }
        if *plan != self.plan {
            return Err("it has another plan".into());
        }
        let mut states = self.states();
        let parts = states.len() + 1;
        let state = states.get_mut((*part as usize).wrapping_sub(1));
        let state =
            state.ok_or_else(|| format!("it is part {part}, and the plan has parts 0 to {}", parts - 1))?;
        if state.writer.is_some() {
            return Err(format!("another one is part {part}"));
        }
        state.writer = Some(Arc::clone(writer));
        Ok(*part)
    }
}

/// The first trouble that a part has told of or been in.
fn first_failure(states: &[PartState]) -> Result<(), Interruption> {
    let trouble = (1..).zip(states).find_map(|(part, state)| Some((part, state.trouble.clone()?)));
    trouble.map_or(Ok(()), |(part, problem): (u32, String)| {
        Err(Interruption::Part(format!("part {part} of the run: {problem}")))
    })
}

/// Takes connections until everybody is here.
fn receive(shared: &Arc<LeaderState>, listener: &TcpListener) {
    while !shared.closed.load(Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(STEP);
            continue;
        };
        let host = Arc::clone(shared);
        // Whoever says nothing has a thread for a while, and nothing else.
        let _ = thread::Builder::new().name("part".into()).spawn(move || serve(&host, stream));
    }
}

/// Listens to one part until it has handed its rows over, or is gone.
fn serve(shared: &LeaderState, stream: TcpStream) {
    let Ok((mut line, writer)) = split_stream(stream) else { return };
    let writer = Arc::new(writer);
    let _ = line.wait_at_most(HELLO_MS);
    let Ok(Some(first)) = line.read::<FollowerMessage>() else { return };
    let part = match shared.admit(&first, &writer) {
        Ok(part) => part,
        Err(problem) => {
            let _ = writer.write(&LeaderMessage::Refused { problem });
            return;
        }
    };
    let (epoch_ns, started_unix_ns) = (shared.clock.epoch_ns(), shared.clock.started_unix_ns());
    let outcome = writer
        .write(&LeaderMessage::Welcome { epoch_ns, started_unix_ns })
        .and_then(|()| listen(shared, part, &mut line, &writer));
    shared.update_state(part, |state| {
        if let Err(error) = outcome {
            let words = if is_end(&error) { "it ended without a word".into() } else { error.to_string() };
            state.trouble.get_or_insert(words);
        }
        state.over = true;
    });
}

fn listen(shared: &LeaderState, part: u32, line: &mut LineReader, writer: &LineWriter) -> io::Result<()> {
    line.wait_at_most(TICK_MS)?;
    let mut last = Instant::now();
    loop {
        let said = line.read::<FollowerMessage>()?;
        let received_ns = clock::monotonic_ns();
        if said.is_some() {
            last = Instant::now();
        }
        match said {
            None => {
                let mut patience = None;
                shared.update_state(part, |state| patience = state.silence_limit());
                if let Some(patience) = patience.filter(|patience| last.elapsed() > *patience) {
                    let words = format!("nothing was heard of it for {} s", patience.as_secs());
                    return Err(io::Error::other(words));
                }
            }
            Some(FollowerMessage::Ask) => {
                writer.write(&LeaderMessage::Answer { received_ns, answered_ns: clock::monotonic_ns() })?
            }
            Some(FollowerMessage::Ready { clock }) => {
                shared.update_state(part, |state| state.clock = Some(clock))
            }
            Some(FollowerMessage::Standing(standing)) => {
                shared.update_state(part, |state| state.standing = standing)
            }
            Some(FollowerMessage::Trouble { problem }) => {
                shared.update_state(part, |state| state.trouble = Some(problem))
            }
            Some(FollowerMessage::Rows(report)) => {
                // What has come of it is kept, whatever becomes of the rest.
                let files = report.files.clone();
                shared.update_state(part, |state| state.report = Some(*report));
                take_files(&shared.files_of(part), &files, line)?;
                shared.update_state(part, |state| state.kept = true);
                return writer.write(&LeaderMessage::Kept);
            }
            Some(FollowerMessage::Here { .. }) => return Err(io::Error::other("it says twice who it is")),
        }
    }
}

fn take_files(to: &Path, files: &[(String, u64)], line: &mut LineReader) -> io::Result<()> {
    line.wait_at_most(SILENCE.as_millis() as u64)?;
    fs::create_dir_all(to)?;
    for (name, bytes) in files {
        if !mqttlab_recording::is_part_file(name) {
            return Err(io::Error::other(format!("it sends a file {name:?}")));
        }
        line.copy(*bytes, &mut File::create(to.join(name))?)?;
    }
    Ok(())
}

const STEP: Duration = Duration::from_millis(5);
/// Between two looks at who is silent.
const TICK_MS: u64 = 1_000;
const HELLO_MS: u64 = 5_000;
/// A part whose clients are at work says how they stand many times a second.
const SILENCE: Duration = Duration::from_secs(10);
/// One whose clients have left writes down what is still in memory.
const SILENCE_AT_END: Duration = Duration::from_secs(120);
/// Gigabytes over a slow network.
const LONGEST_HAND_OVER: Duration = Duration::from_secs(3600);
