//! A live run from plan to recording.
//!
//! ```text
//!   setup ──► connect ──► warm-up ──► measurement ──► cool-down ──► finalise
//!     │          │           │             │              │
//!     └──────────┴───────────┴── interruption ────────────┴──► what was recorded is kept, and marked
//! ```
//!
//! One thread conducts, and never touches a message or a frame. Here it sets up and takes down; what it waits for between
//! is in `stages`.
//!
//! What it does not do: choose anything. The plan has decided.

pub(crate) mod hand_desk;
pub(crate) mod hand_socket;
pub(crate) mod progress;
pub(crate) mod run_json;
pub(crate) mod sampler;
pub(crate) mod stages;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use mqttlab_plan::{Destination, NetworkKind, Plan, Server, ServerProcess, WhenItDies};
use mqttlab_recording::{
    ClosedRecorder, Ending, EventKind, Finish, FrameAnalyser, Layout, Recorder, RunFacts, UNHIDDEN, finalise,
};
use mqttlab_run::{Announcer, Failure, Holds, Interruption, RunObserver, RunOutcome, RunPhase};
use mqttlab_system::namespaces::Privilege;
use mqttlab_system::priority::{self, CpuAwake, Priority};
use mqttlab_system::signals::Signals;
use mqttlab_system::usage::Usage;
use mqttlab_units::{Duration, Instant};

use crate::clients::{Fleet, UnrecordedConnections, ambiguous_topics};
use crate::clock::Clock;
use crate::control::Control;
use crate::directory::Directory;
use crate::due_list::DueList;
use crate::host::limit_groups;
use crate::host::limits;
use crate::host::watch::Watch;
use crate::host::watchdog::{GRACE, Watchdog, write_last_line};
use crate::network::calibration;
use crate::network::emulator::{Emulator, EmulatorSetting, Stopped};
use crate::network::loopback_capture::{self, LoopbackCapture};
use crate::network::radio_sleep::SleepNotifier;
use crate::network::testbed::Testbed;
use crate::network::wiring::Wiring;
use crate::parts::client_share::ClientShare;
use crate::parts::{PartFollower, PartLeader, PartRole};
use crate::probe;
use crate::processes::broker_log::LoggedDrops;
use crate::processes::life::RunningServer;
use crate::processes::programs::{self, Programs};
use crate::processes::server::{ServerError, ServerHandle, named};
use crate::run::hand_desk::HandDesk;
use crate::run::progress::LiveProgress;
use crate::run::run_json::RunObservations;
use crate::run::sampler::Sampler;
use crate::run::stages::Stages;
use crate::tls::TlsConfigs;
use crate::verdict::control_timer::ControlTimer;

/// Performs a plan, tells `observer` about it and leaves the recording at `destination`. `analyser` reads the frames at
/// the end. The process must still have a single thread.
pub fn run(
    plan: Plan,
    destination: &Destination,
    observer: &mut dyn RunObserver,
    analyser: &mut dyn FrameAnalyser,
) -> RunOutcome {
    let mut clock = Clock::start();
    let mut announcer = Announcer::new(observer);
    announcer.phase(RunPhase::Setup, clock.now(), Duration::ZERO);
    let prepared = match prepare(&plan, destination, &mut clock, &mut announcer) {
        Ok(prepared) => prepared,
        Err(problem) => return RunOutcome::Failed(Failure::Setup(problem)),
    };
    let (performed, closed) = prepared.perform(&mut announcer);
    announcer.phase(RunPhase::Finalise, clock.now(), Duration::ZERO);
    let Performed { observed, result, began, role } = performed;
    if let (false, Err(interruption)) = (began, &result) {
        // Provisional still: the directory goes with the claim on it.
        return RunOutcome::Failed(Failure::Interrupted(interruption.clone()));
    }
    let facts = run_json::facts(&plan, &observed, announcer.warnings(), closed.strain.stalls);
    let ended = Ended { place: &destination.directory, result, facts, closed, rows_missing: false };
    match role {
        PartRole::Alone => ended.finish(&plan, analyser),
        PartRole::Leading(lead) => ended.taking_in(lead, &plan).finish(&plan, analyser),
        PartRole::Following(follow) => ended.hand_over(follow, &plan, analyser),
    }
}

/// A run whose clients have left, and whose rows are in spools.
struct Ended<'a> {
    place: &'a Path,
    result: Result<(), Interruption>,
    facts: RunFacts,
    closed: ClosedRecorder,
    /// Whether other parts should have handed over more.
    rows_missing: bool,
}

impl Ended<'_> {
    /// With what the other parts have recorded.
    fn taking_in(mut self, lead: PartLeader, plan: &Plan) -> Self {
        let merged = lead.merge(plan, self.place, &mut self.facts);
        self.closed.strain.rows_lost += merged.rows_lost;
        self.rows_missing = merged.rows_missing;
        if let Some(problem) = merged.problem {
            self.result = self.result.and(Err(Interruption::Part(problem)));
        }
        self
    }

    /// To part 0. Where that is gone, the rows stay here, as a recording that is not complete.
    fn hand_over(
        mut self,
        follow: PartFollower,
        plan: &Plan,
        analyser: &mut dyn FrameAnalyser,
    ) -> RunOutcome {
        match follow.hand_over(self.place, &self.facts, self.closed.strain) {
            Ok(()) => {
                mqttlab_recording::discard(self.place);
                RunOutcome::of(self.result)
            }
            Err(problem) => {
                self.rows_missing = true;
                self.result = self.result.and(Err(Interruption::Part(problem)));
                self.finish(plan, analyser)
            }
        }
    }

    /// Makes the tables.
    fn finish(self, plan: &Plan, analyser: &mut dyn FrameAnalyser) -> RunOutcome {
        let Ended { place, result, facts, closed, rows_missing } = self;
        let ClosedRecorder { strain, claim, .. } = closed;
        let captures = plan.recording.pcapng;
        let ending = Ending::of(result.as_ref().err().map(Interruption::reason));
        match finalise(place, Finish { facts, ending, strain, rows_missing, claim, analyser, captures }) {
            Ok(_) => RunOutcome::of(result),
            Err(error) => {
                let remedy = "the rows are still there: `mqttlab-engine recover DIR --out OTHER` makes the tables elsewhere";
                RunOutcome::unfinished(result, format!("{error}; {remedy}"))
            }
        }
    }
}

/// Everything that a run needs before its clients start.
struct Prepared {
    plan: Arc<Plan>,
    control: Arc<Control>,
    testbed: Testbed,
    /// What clients open TLS with.
    secured: TlsConfigs,
    directory: Arc<Directory>,
    /// Where the recording is, and servers' logs are.
    logs: PathBuf,
    recorder: Recorder,
    observed: RunObservations,
    watch: Watch,
    role: PartRole,
    /// Keeps the processors from sleeping deeply while it is held.
    _awake: Option<CpuAwake>,
}

/// What came of it.
struct Performed {
    observed: RunObservations,
    result: Result<(), Interruption>,
    /// Whether clients were started, so that there is something to keep.
    began: bool,
    role: PartRole,
}

/// What runs beside the conductor. Taken down in the opposite order.
#[derive(Default)]
struct RunningParts {
    servers: Vec<RunningServer>,
    emulator: Option<Emulator>,
    loopback: Vec<LoopbackCapture>,
    timer: Option<ControlTimer>,
    /// When emulator and timer were started.
    since: Instant,
    fleet: Option<Fleet>,
    programs: Option<Programs>,
}

fn prepare(
    plan: &Plan,
    destination: &Destination,
    clock: &mut Clock,
    announcer: &mut Announcer<'_>,
) -> Result<Prepared, String> {
    let place = &destination.directory;
    let share = ClientShare { part: destination.part.number(), of: plan.live.parts };
    limits::check(plan)?;
    let cannot_wait = |error| format!("cannot wait for signals: {error}");
    // Threads inherit that signals are taken; but the right to make namespaces is had only while there is one thread.
    let signals = Signals::block().map_err(cannot_wait)?;
    let privilege = match plan.network.kind {
        NetworkKind::External => None,
        _ => Some(Privilege::acquire().map_err(|error| error.to_string())?),
    };
    let watch = watchdog_of(place, signals).and_then(Watch::new).map_err(cannot_wait)?;
    let role = PartRole::join(plan, destination, clock, announcer)?;
    // Without an emulator there is nothing to go before; and endpoints that use all of the processors under
    // real-time priority are stopped for 50 ms in every second (sched_rt_runtime_us).
    let is_emulated = plan.network.kind == NetworkKind::Emulated;
    let real_time = plan.live.real_time && is_emulated && real_time(announcer);
    lock_memory(privilege, announcer);
    let awake = if is_emulated { CpuAwake::hold().ok() } else { None };
    let limited = limit_groups::of(plan)?;
    let testbed = Testbed::build(plan).map_err(|error| error.to_string())?.limited(limited);
    testbed.warnings().iter().for_each(|warning| announcer.warn(warning.clone()));
    programs::warnings(plan).for_each(|warning| announcer.warn(warning));
    let emulator_priority = if real_time { Priority::EMULATOR } else { Priority::Normal };
    let compensation = compensation(plan, emulator_priority, announcer);
    let directory = Arc::new(Directory::new(plan, clock));
    let run_id = destination.run_id.clone().unwrap_or_default();
    let layout = Layout { run_id, ..directory.layout().clone() };
    let mut recorder =
        Recorder::create(place, &plan.to_json(), &layout).map_err(|error| error.to_string())?;
    recorder.provisional();
    let mut equipped = plan.clone();
    mark_unhidden(&mut equipped, place)?;
    // What is stored of the plan has no keys.
    let secured = TlsConfigs::of(&mut equipped, place)?;
    let endpoint = if real_time { Priority::ENDPOINT } else { Priority::Normal };
    let tcp = testbed.tcp_in_force(plan);
    let mut observed = RunObservations::new(real_time, compensation, emulator_priority, tcp);
    observed.contention.cpu_kept_awake = awake.is_some();
    if let Some(length) = plan.live.probe.filter(|_| is_emulated) {
        announcer.phase(RunPhase::Setup, clock.now(), length);
        match probe::probe(plan, length, &mut |_, _| {}) {
            Ok(found) => observed.probe = Some(found),
            Err(error) => announcer.warn(format!("the network could not be probed: {error}")),
        }
    }
    Ok(Prepared {
        plan: Arc::new(equipped),
        control: Arc::new(
            Control::new(*clock, endpoint, plan.groups.len())
                .with_servers(plan.servers.len())
                .with_share(share)
                .with_radio_sleep(SleepNotifier::of(plan)),
        ),
        testbed,
        secured,
        directory,
        logs: place.to_owned(),
        recorder,
        observed,
        watch,
        role,
        _awake: awake,
    })
}

/// Marks the directory of a plan with secrets: programs print what they are told, and frames have what clients say.
fn mark_unhidden(plan: &mut Plan, place: &Path) -> Result<(), String> {
    if !plan.has_secrets() {
        return Ok(());
    }
    fs::write(place.join(UNHIDDEN), UNHIDDEN_WORDS).map_err(|error| format!("{UNHIDDEN}: {error}"))
}

/// A watchdog for a run: what it has recorded is left as it is, and said.
///
/// # Errors
/// Too many open files or threads.
pub fn watchdog_of(directory: &Path, signals: Signals) -> io::Result<Watchdog> {
    let directory = directory.to_owned();
    Watchdog::start(signals, GRACE, INCOMPLETE, move |interruption| {
        let done = run_json::abandon(&directory, interruption);
        write_last_line(&(serde_json::to_string(&done).expect("words can be written") + "\n"));
    })
}

impl Prepared {
    fn perform(mut self, announcer: &mut Announcer<'_>) -> (Performed, ClosedRecorder) {
        let mut running = RunningParts::default();
        let mut sampler = Sampler::new(&self.plan, self.recorder.sink());
        sampler.watch_sockets(&self.testbed, &self.plan);
        let result = self.conduct(&mut running, &mut sampler, announcer);
        let began = running.fleet.is_some();
        self.role.leave(&result);
        let result = self.take_down(running, &mut sampler, result, announcer);
        sampler.unexplained().into_iter().for_each(|words| announcer.warn(words));
        self.observed.note_end(&self.control, sampler);
        let closed = self.recorder.close();
        if let Some(error) = &closed.failure {
            let lost = closed.strain.rows_lost;
            announcer.warn(format!("the recording was cut short: {error}; {lost} rows are lost"));
        }
        (Performed { observed: self.observed, result, began, role: self.role }, closed)
    }

    fn conduct(
        &mut self,
        running: &mut RunningParts,
        sampler: &mut Sampler,
        announcer: &mut Announcer<'_>,
    ) -> Result<(), Interruption> {
        self.start_servers(running, sampler, announcer)?;
        running.since = self.control.now();
        // Where there can be no further thread the run fails soon enough.
        running.timer = ControlTimer::start(self.control.clock, self.observed.emulator_priority).ok();
        self.start_emulator(running)?;
        self.role.wait_for_parts(&mut self.watch, &self.control.clock)?;
        let heard: Vec<usize> = running.loopback.iter().map(LoopbackCapture::server).collect();
        let fleet = Fleet::start(
            Arc::clone(&self.plan),
            Arc::new(self.testbed.sockets().secured(self.secured.clone())),
            Arc::clone(&self.directory),
            &self.recorder,
            Arc::clone(&self.control),
            UnrecordedConnections::of(&self.plan, &heard),
        );
        self.recorder.keep();
        running.fleet =
            Some(fleet.map_err(|error| Interruption::fault("the clients cannot be started", &error))?);
        let programs = running.programs.insert(Programs::of(&self.plan, self.control.now()));
        let mut stages = Stages {
            plan: &self.plan,
            directory: &self.logs,
            control: &self.control,
            recorder: &self.recorder,
            watch: &mut self.watch,
            role: &self.role,
            servers: &mut running.servers,
            programs,
            testbed: &self.testbed,
            emulator: running.emulator.as_ref(),
            sampler,
            announcer,
            figures: LiveProgress::of(&self.plan),
            planned: DueList::new(self.plan.events.iter().map(|event| (event.at(), event))),
            desk: HandDesk::open(&self.plan, &self.logs),
            holds: Holds::of(&self.plan),
        };
        let result = stages.run();
        self.observed.holds = stages.holds.now();
        self.observed.schedule = self.control.schedule();
        result?;
        self.observed.ambiguous_topics = ambiguous_topics(&self.plan, &self.directory);
        self.observed.behind = self.control.figures.publishing.load(Relaxed).max(0) as u64;
        Ok(())
    }

    /// One after the other, in the plan's order: a gateway finds its broker there, and what it says to it is heard.
    fn start_servers(
        &mut self,
        running: &mut RunningParts,
        sampler: &mut Sampler,
        announcer: &mut Announcer<'_>,
    ) -> Result<(), Interruption> {
        let plan = Arc::clone(&self.plan);
        for (index, server) in plan.servers.iter().enumerate() {
            let Some(process) = &server.process else { continue };
            let handle = self.start_server(server, process)?;
            if server.when_it_dies == WhenItDies::EndRun {
                self.watch
                    .add_server(&handle)
                    .map_err(|error| Interruption::fault("cannot watch a server", &error))?;
            }
            sampler.watch_server((index, &server.name), &handle);
            sampler.event(self.control.now(), EventKind::ServerStart, &named(server, &version(server)));
            running.servers.push(RunningServer::new(index, handle));
            running.loopback.extend(self.watch_loopback(index, announcer));
        }
        Ok(())
    }

    fn start_server(&self, server: &Server, process: &ServerProcess) -> Result<ServerHandle, Interruption> {
        let failed = |error: ServerError| Interruption::Server(format!("server `{}`: {error}", server.name));
        let (host, log) = (self.testbed.place(server.host), self.logs.join(log_name(server)));
        let mut handle = ServerHandle::start(process, host, &log).map_err(failed)?;
        let (address, watch) = (server.endpoint().socket_address(), &self.watch);
        handle
            .wait_until_ready(address, host.namespace, process, || watch.wants_to_stop())
            .map_err(failed)?;
        handle.prioritise(self.control.worker_priority);
        Ok(handle)
    }

    fn start_emulator(&mut self, running: &mut RunningParts) -> Result<(), Interruption> {
        if self.plan.network.kind != NetworkKind::Emulated {
            return Ok(());
        }
        let records = self.plan.recording.packets || self.plan.recording.pcapng;
        let emulator = Emulator::start(EmulatorSetting {
            ports: self.testbed.take_ports(),
            wiring: Wiring::of(&self.plan),
            compensation: self.observed.compensation,
            clock: self.control.clock,
            radio_sleep: Arc::clone(&self.control.radio_sleep),
            silent: Arc::clone(&self.control.silent),
            by_hand: Arc::clone(&self.control.by_hand),
            priority: self.observed.emulator_priority,
            sink: records.then(|| self.recorder.sink()),
        });
        let emulator =
            emulator.map_err(|error| Interruption::fault("the emulator cannot be started", &error))?;
        self.observed.emulator = Some(Arc::clone(emulator.shared()));
        running.emulator = Some(emulator);
        Ok(())
    }

    /// Listens to what a server's own host says to it, which the emulator does not carry. A run without is less, but is a
    /// run.
    fn watch_loopback(&self, index: usize, announcer: &mut Announcer<'_>) -> Option<LoopbackCapture> {
        let plan = &self.plan;
        let is_wanted = plan.recording.packets || plan.recording.pcapng;
        if !is_wanted || plan.network.kind != NetworkKind::Emulated || !plan.has_clients_beside(index) {
            return None;
        }
        let server = &plan.servers[index];
        let started = LoopbackCapture::start(loopback_capture::LoopbackSetting {
            namespace: self.testbed.namespace(server.host)?,
            server: index,
            host: server.host as u16,
            link: plan.loopback_link() as u16,
            endpoints: server.endpoints.clone(),
            clock: self.control.clock,
            sink: self.recorder.sink(),
        });
        let deaf = |error| {
            announcer.warn(format!(
                "frames of clients beside `{}` are not recorded ({error}); of their packets is known what they know",
                server.name
            ));
        };
        started.map_err(deaf).ok()
    }

    /// Ends everything that runs, clients first, so that their farewells still cross the network.
    fn take_down(
        &mut self,
        running: RunningParts,
        sampler: &mut Sampler,
        result: Result<(), Interruption>,
        announcer: &mut Announcer<'_>,
    ) -> Result<(), Interruption> {
        self.control.stop();
        if let Some(programs) = running.programs {
            programs.stop(|| self.control.now(), sampler);
        }
        let fleet = running.fleet.map_or(Ok(()), Fleet::join);
        let result = result.and(fleet.map_err(|error| Interruption::fault("a client worker ended", &error)));
        self.observed.contention.control_held_up = running.timer.as_ref().map(ControlTimer::held_up);
        self.observed.contention.control = running.timer.map(|timer| timer.lateness());
        if let Some(emulator) = running.emulator {
            let thread = emulator.shared().thread.load(Relaxed);
            self.observed.note_emulator(&Usage::of_thread(thread), self.control.now().since(running.since));
            match emulator.stop() {
                Ok(Stopped { ports, stations }) => {
                    self.observed.ring_drops = run_json::ring_drops(&ports, &self.testbed);
                    self.observed.stations = stations;
                }
                Err(error) => {
                    announcer.warn(Interruption::fault("the emulator ended", &error).to_string());
                }
            }
        }
        for capture in running.loopback {
            match capture.stop() {
                Ok(seen) => {
                    seen.gap().into_iter().for_each(|words| announcer.warn(words));
                    let before = self.observed.loopback.unwrap_or_default();
                    self.observed.loopback = Some(before.and(seen));
                }
                Err(error) => {
                    announcer.warn(format!("packets of clients beside their server were lost: {error}"))
                }
            }
        }
        let mut result = result;
        for running in running.servers {
            let index = running.index;
            let server = &self.plan.servers[index];
            let status = running.stop();
            if let Some(status) = &status {
                sampler.event(self.control.now(), EventKind::ServerExit, &named(server, status));
            }
            let dropped = LoggedDrops::in_log(&self.logs.join(log_name(server)));
            dropped.warning().into_iter().for_each(|text| announcer.warn(text));
            self.note_drops(&dropped, &server.name, sampler);
            if let Some(status) = status.filter(|_| result == Err(Interruption::ServerEnded(index))) {
                let (server, log) = (server.name.clone(), log_name(server));
                result = Err(Interruption::ServerExit { server, status, log });
            }
        }
        result
    }

    /// Says of which clients messages may have been dropped, and since when.
    fn note_drops(&self, drops: &LoggedDrops, server: &str, sampler: &mut Sampler) {
        if drops.since_unix_ns.is_empty() {
            return;
        }
        let numbers: HashMap<String, u32> = self
            .plan
            .clients()
            .zip(0..)
            .map(|((group, number), client)| (group.client_id(number), client))
            .collect();
        for (name, since_unix_ns) in &drops.since_unix_ns {
            let at = self.control.clock.at_unix_ns(*since_unix_ns);
            match numbers.get(name) {
                Some(&client) => sampler.event_of(at, EventKind::QueueFull, client, server),
                None => sampler.event(at, EventKind::QueueFull, server),
            }
        }
    }
}

/// What a server says that it is, for the event of its start.
pub(crate) fn version(server: &Server) -> String {
    format!("{} {}", server.kind, server.version).trim().to_owned()
}

/// The file that a server's output goes to, in the recording's directory.
pub(crate) fn log_name(server: &Server) -> String {
    format!("{}.log", server.name)
}

fn real_time(announcer: &mut Announcer<'_>) -> bool {
    let permitted = priority::real_time_permitted();
    if let Err(error) = &permitted {
        announcer.warn(format!(
            "no real-time priority ({error}): on a busy machine the emulator's delays are milliseconds off; {}",
            priority::real_time_remedy()
        ));
    }
    permitted.is_ok()
}

/// A limit on locked memory would turn later allocations into failures, so memory is locked only without one.
fn lock_memory(privilege: Option<Privilege>, announcer: &mut Announcer<'_>) {
    if privilege != Some(Privilege::Administrator) {
        return;
    }
    if let Err(error) = priority::lock_memory() {
        announcer.warn(format!("memory cannot be locked ({error}): page faults may delay the emulator"));
    }
}

fn compensation(plan: &Plan, priority: Priority, announcer: &mut Announcer<'_>) -> Duration {
    if plan.network.kind != NetworkKind::Emulated {
        return Duration::ZERO;
    }
    if let Some(compensation) = plan.live.latency_compensation {
        return compensation;
    }
    calibration::compensation(plan.live.port, priority).unwrap_or_else(|error| {
        announcer.warn(format!(
            "the emulator's own latency could not be measured ({error}), and is not compensated"
        ));
        Duration::ZERO
    })
}

/// The exit status of a run that ended early.
const INCOMPLETE: i32 = 3;
/// What whoever looks into the directory meanwhile is told.
const UNHIDDEN_WORDS: &str = "The other files may show secrets of the scenario, until the run ends or the next command of mqttlab begins.\n";
