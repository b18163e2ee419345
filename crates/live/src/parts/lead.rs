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

use super::exchange::Offset;
use super::merge::{self, Collected, Merged};
use super::words::{Line, Order, PartReport, Said, Voice, converse, is_end};
use crate::clock::{self, Clock};
use crate::parts::client_share::Standing;

/// Who leads.
pub(crate) struct Lead {
    meeting: Arc<Meeting>,
    address: SocketAddr,
}

/// What a part must know to take part, and what the parts have said.
struct Meeting {
    clock: Clock,
    run_id: String,
    plan: String,
    /// Where the others' files go.
    directory: PathBuf,
    /// Whether nobody is waited for any more.
    closed: AtomicBool,
    seats: Mutex<Vec<Seat>>,
}

/// What is known of a part.
#[derive(Default)]
struct Seat {
    voice: Option<Arc<Voice>>,
    clock: Option<Offset>,
    standing: Standing,
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

impl Lead {
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
    ) -> io::Result<Lead> {
        let listener = TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let meeting = Arc::new(Meeting {
            clock,
            run_id: run_id.to_owned(),
            plan,
            directory: directory.to_owned(),
            closed: AtomicBool::new(false),
            seats: Mutex::new((1..parts).map(|_| Seat::default()).collect()),
        });
        let host = Arc::clone(&meeting);
        thread::Builder::new().name("parts".into()).spawn(move || receive(&host, &listener))?;
        Ok(Lead { meeting, address })
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
        let seats = self.meeting.seats();
        troubles(&seats)?;
        Ok(seats.iter().all(|seat| seat.clock.is_some()))
    }

    /// The numbers of the parts that have not come.
    pub(super) fn missing(&self) -> Vec<u32> {
        let seats = self.meeting.seats();
        (1..).zip(seats.iter()).filter(|(_, seat)| seat.clock.is_none()).map(|(part, _)| part).collect()
    }

    pub(super) fn begin(&self) {
        self.meeting.closed.store(true, Relaxed);
        self.meeting.seats().iter_mut().for_each(|seat| seat.is_running = true);
        self.order(&Order::Begin);
    }

    pub(super) fn publish(&self, schedule: &Schedule) {
        self.order(&Order::publish(schedule));
    }

    /// Has the others leave: at the planned end, or before it.
    pub(super) fn leave(&self, result: &Result<(), Interruption>) {
        self.meeting.closed.store(true, Relaxed);
        self.meeting.seats().iter_mut().for_each(|seat| (seat.is_running, seat.has_left) = (false, true));
        match result {
            Ok(()) => self.order(&Order::Leave),
            Err(interruption) => self.order(&Order::End { problem: interruption.to_string() }),
        }
    }

    /// How the clients of all other parts stand.
    ///
    /// # Errors
    /// One of the parts is gone, or has to end.
    pub(super) fn others(&self) -> Result<Standing, Interruption> {
        let seats = self.meeting.seats();
        troubles(&seats)?;
        Ok(seats.iter().fold(Standing::default(), |sum, seat| sum.and(&seat.standing)))
    }

    /// Takes what the other parts hand over into the recording in `place`, which is still in spools.
    pub(crate) fn merge(self, plan: &Plan, place: &Path, facts: &mut RunFacts) -> Merged {
        merge::merge(plan, self.collect(), place, facts)
    }

    fn collect(self) -> Vec<Collected> {
        let waited = Instant::now();
        while waited.elapsed() < LONGEST_HAND_OVER && self.meeting.seats().iter().any(Seat::is_awaited) {
            thread::sleep(STEP);
        }
        let mut seats = self.meeting.seats();
        let collected = (1..).zip(seats.iter_mut()).map(|(number, seat)| Collected {
            number,
            clock: seat.clock,
            report: seat.report.take(),
            kept: seat.kept,
            files: self.meeting.files_of(number),
            trouble: seat.trouble.take(),
        });
        collected.collect()
    }

    fn order(&self, order: &Order) {
        let seats = self.meeting.seats();
        let voices: Vec<Arc<Voice>> = seats.iter().filter_map(|seat| seat.voice.clone()).collect();
        drop(seats);
        for voice in voices {
            // Whose connection is gone is noticed by whoever listens to it.
            let _ = voice.say(order);
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.meeting.closed.store(true, Relaxed);
    }
}

impl Seat {
    /// How long it may be silent; `None` for as long as it likes.
    fn patience(&self) -> Option<Duration> {
        let is_closing = self.has_left.then_some(SILENCE_AT_END);
        if self.is_running { Some(SILENCE) } else { is_closing }
    }

    fn is_awaited(&self) -> bool {
        self.voice.is_some() && !self.over
    }
}

impl Meeting {
    fn seats(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.seats.lock().expect("no thread panics with it")
    }

    fn files_of(&self, part: u32) -> PathBuf {
        self.directory.join(format!("part-{part}.received"))
    }

    fn with_seat(&self, part: u32, change: impl FnOnce(&mut Seat)) {
        if let Some(seat) = self.seats().get_mut((part as usize).wrapping_sub(1)) {
            change(seat);
        }
    }

    /// Whether somebody may take part; what is wrong, if not.
    fn admit(&self, said: &Said, voice: &Arc<Voice>) -> Result<u32, String> {
        let Said::Here { part, run_id, plan, version } = said else {
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
        let mut seats = self.seats();
        let parts = seats.len() + 1;
        let seat = seats.get_mut((*part as usize).wrapping_sub(1));
        let seat =
            seat.ok_or_else(|| format!("it is part {part}, and the plan has parts 0 to {}", parts - 1))?;
        if seat.voice.is_some() {
            return Err(format!("another one is part {part}"));
        }
        seat.voice = Some(Arc::clone(voice));
        Ok(*part)
    }
}

/// The first trouble that a part has told of or been in.
fn troubles(seats: &[Seat]) -> Result<(), Interruption> {
    let trouble = (1..).zip(seats).find_map(|(part, seat)| Some((part, seat.trouble.clone()?)));
    trouble.map_or(Ok(()), |(part, problem): (u32, String)| {
        Err(Interruption::Part(format!("part {part} of the run: {problem}")))
    })
}

/// Takes connections until everybody is here.
fn receive(meeting: &Arc<Meeting>, listener: &TcpListener) {
    while !meeting.closed.load(Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(STEP);
            continue;
        };
        let host = Arc::clone(meeting);
        // Whoever says nothing has a thread for a while, and nothing else.
        let _ = thread::Builder::new().name("part".into()).spawn(move || serve(&host, stream));
    }
}

/// Listens to one part until it has handed its rows over, or is gone.
fn serve(meeting: &Meeting, stream: TcpStream) {
    let Ok((mut line, voice)) = converse(stream) else { return };
    let voice = Arc::new(voice);
    let _ = line.wait_at_most(HELLO_MS);
    let Ok(Some(first)) = line.hear::<Said>() else { return };
    let part = match meeting.admit(&first, &voice) {
        Ok(part) => part,
        Err(problem) => {
            let _ = voice.say(&Order::Refused { problem });
            return;
        }
    };
    let (epoch_ns, started_unix_ns) = (meeting.clock.epoch_ns(), meeting.clock.started_unix_ns());
    let outcome = voice
        .say(&Order::Welcome { epoch_ns, started_unix_ns })
        .and_then(|()| listen(meeting, part, &mut line, &voice));
    meeting.with_seat(part, |seat| {
        if let Err(error) = outcome {
            let words = if is_end(&error) { "it ended without a word".into() } else { error.to_string() };
            seat.trouble.get_or_insert(words);
        }
        seat.over = true;
    });
}

fn listen(meeting: &Meeting, part: u32, line: &mut Line, voice: &Voice) -> io::Result<()> {
    line.wait_at_most(TICK_MS)?;
    let mut last = Instant::now();
    loop {
        let said = line.hear::<Said>()?;
        let received_ns = clock::raw_ns();
        if said.is_some() {
            last = Instant::now();
        }
        match said {
            None => {
                let mut patience = None;
                meeting.with_seat(part, |seat| patience = seat.patience());
                if let Some(patience) = patience.filter(|patience| last.elapsed() > *patience) {
                    let words = format!("nothing was heard of it for {} s", patience.as_secs());
                    return Err(io::Error::other(words));
                }
            }
            Some(Said::Ask) => voice.say(&Order::Answer { received_ns, answered_ns: clock::raw_ns() })?,
            Some(Said::Ready { clock }) => meeting.with_seat(part, |seat| seat.clock = Some(clock)),
            Some(Said::Standing(standing)) => meeting.with_seat(part, |seat| seat.standing = standing),
            Some(Said::Trouble { problem }) => meeting.with_seat(part, |seat| seat.trouble = Some(problem)),
            Some(Said::Rows(report)) => {
                // What has come of it is kept, whatever becomes of the rest.
                let files = report.files.clone();
                meeting.with_seat(part, |seat| seat.report = Some(*report));
                take_files(&meeting.files_of(part), &files, line)?;
                meeting.with_seat(part, |seat| seat.kept = true);
                return voice.say(&Order::Kept);
            }
            Some(Said::Here { .. }) => return Err(io::Error::other("it says twice who it is")),
        }
    }
}

fn take_files(to: &Path, files: &[(String, u64)], line: &mut Line) -> io::Result<()> {
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
