//! A live run from plan to recording.
//!
//! ```text
//!   setup ──► connect ──► warm-up ──► measurement ──► cool-down ──► finalise
//!     │          │           │             │              │
//!     └──────────┴───────────┴── interruption ────────────┴──► what was recorded is kept, and marked
//! ```
//!
//! One thread conducts: it waits for the next step, for a signal, for the death of a server or of whoever reads
//! the progress, and for a full disk. It never touches a message or a frame.
//!
//! What it does not do: choose anything. The plan has decided.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use mqttlab_plan::{Destination, NetworkKind, Phase, Plan, Server, ServerProcess, Verdict, WhenItDies};
use mqttlab_recording::{Closed, Ending, EventKind, Finish, FrameAnalyser, Layout, Recorder, finalise};
use mqttlab_units::{Duration, Instant};

use crate::announcer::Announcer;
use crate::calibration;
use crate::clients::Fleet;
use crate::clock::Clock;
use crate::control::{Control, Schedule};
use crate::control_timer::ControlTimer;
use crate::directory::Directory;
use crate::drops;
use crate::emulator::{Emulator, Setting, Stopped};
use crate::facts::{self, Witnessed};
use crate::interruption::{Interruption, Watch};
use crate::limits;
use crate::loopback::{self, LoopbackWitness};
use crate::namespaces::Privilege;
use crate::priority::{self, CpuAwake, Priority};
use crate::probe;
use crate::sampler::Sampler;
use crate::server::{ServerError, ServerHandle};
use crate::signals::Signals;
use crate::testbed::Testbed;
use crate::usage::Usage;
use crate::watchdog::{GRACE, Watchdog, say_at_last};
use crate::wire::Wiring;

/// How a run ended, as the last progress line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How.
    pub verdict: Verdict,
    /// Why, when it did not complete.
    pub reason: Option<String>,
}

/// Performs a plan, tells `announcer` about it and leaves the recording at `destination`. `analyser` reads the frames at
/// the end. The process must still have a single thread.
pub fn run(
    plan: Plan,
    destination: &Destination,
    announcer: &mut Announcer,
    analyser: &mut dyn FrameAnalyser,
) -> Outcome {
    let clock = Clock::start();
    announcer.phase(Phase::Setup, clock.now(), Duration::ZERO);
    let failed = |reason: String| Outcome { verdict: Verdict::Failed, reason: Some(reason) };
    let prepared = match prepare(&plan, destination, &clock, announcer) {
        Ok(prepared) => prepared,
        Err(reason) => return failed(reason),
    };
    let (performed, closed) = prepared.perform(announcer);
    announcer.phase(Phase::Finalise, clock.now(), Duration::ZERO);
    let Performed { witnessed, ending, began } = performed;
    if let (false, Ending::Incomplete(reason)) = (began, &ending) {
        // Provisional still: the directory goes with the claim on it.
        return failed(reason.clone());
    }
    let Closed { strain, claim, .. } = closed;
    let facts = facts::facts(&plan, &witnessed, announcer.warnings(), strain.stalls);
    let captures = plan.recording.pcapng;
    let finish = Finish { facts, ending: ending.clone(), strain, claim, analyser, captures };
    match (finalise(&destination.directory, finish), ending) {
        (Ok(_), Ending::Complete) => Outcome { verdict: Verdict::Complete, reason: None },
        (Ok(_), Ending::Incomplete(reason)) => Outcome { verdict: Verdict::Incomplete, reason: Some(reason) },
        (Err(error), ending) => {
            let before = match ending {
                Ending::Complete => String::new(),
                Ending::Incomplete(reason) => format!("{reason}; "),
            };
            let remedy = "the rows are still there: `mqttlab-engine recover DIR --out OTHER` makes the tables elsewhere";
            let reason = Some(format!("{before}the recording could not be finished: {error}; {remedy}"));
            Outcome { verdict: Verdict::Incomplete, reason }
        }
    }
}

/// Everything that a run needs before its clients start.
struct Prepared {
    plan: Arc<Plan>,
    control: Arc<Control>,
    testbed: Testbed,
    directory: Arc<Directory>,
    /// Where the recording is, and servers' logs are.
    logs: PathBuf,
    recorder: Recorder,
    witnessed: Witnessed,
    watch: Watch,
    /// Keeps the processors from sleeping deeply while it is held.
    _awake: Option<CpuAwake>,
}

/// What came of it.
struct Performed {
    witnessed: Witnessed,
    ending: Ending,
    /// Whether clients were started, so that there is something to keep.
    began: bool,
}

/// What runs beside the conductor. Taken down in the opposite order.
#[derive(Default)]
struct Running {
    servers: Vec<RunningServer>,
    emulator: Option<Emulator>,
    loopback: Vec<LoopbackWitness>,
    timer: Option<ControlTimer>,
    /// When emulator and timer were started.
    since: Instant,
    fleet: Option<Fleet>,
}

/// A server whose process was started.
struct RunningServer {
    /// Index into the plan's servers.
    index: usize,
    handle: ServerHandle,
}

fn prepare(
    plan: &Plan,
    destination: &Destination,
    clock: &Clock,
    announcer: &mut Announcer,
) -> Result<Prepared, String> {
    let place = &destination.directory;
    limits::check(plan)?;
    let cannot_wait = |error| format!("cannot wait for signals: {error}");
    // Threads inherit that signals are taken; but the right to make namespaces is had only while there is one thread.
    let signals = Signals::take().map_err(cannot_wait)?;
    let privilege = match plan.network.kind {
        NetworkKind::External => None,
        _ => Some(Privilege::acquire().map_err(|error| error.to_string())?),
    };
    let watch = watchdog_of(place, signals).and_then(Watch::new).map_err(cannot_wait)?;
    // Without an emulator there is nothing to go before; and endpoints that use all of the processors under
    // real-time priority are stopped for 50 ms in every second (sched_rt_runtime_us).
    let is_emulated = plan.network.kind == NetworkKind::Emulated;
    let real_time = plan.live.real_time && is_emulated && real_time(announcer);
    lock_memory(privilege, announcer);
    let awake = if is_emulated { CpuAwake::hold().ok() } else { None };
    let testbed = Testbed::build(plan).map_err(|error| error.to_string())?;
    testbed.warnings().iter().for_each(|warning| announcer.warn(warning.clone()));
    let emulator_priority = if real_time { Priority::EMULATOR } else { Priority::Normal };
    let compensation = compensation(plan, emulator_priority, announcer);
    let directory = Arc::new(Directory::new(plan, clock));
    let run_id = destination.run_id.clone().unwrap_or_default();
    let layout = Layout { run_id, ..directory.layout().clone() };
    let mut recorder =
        Recorder::create(place, &plan.to_json(), &layout).map_err(|error| error.to_string())?;
    recorder.provisional();
    let endpoint = if real_time { Priority::ENDPOINT } else { Priority::Normal };
    let tcp = testbed.tcp_in_force(plan);
    let mut witnessed = Witnessed::new(real_time, compensation, emulator_priority, tcp);
    witnessed.contention.cpu_kept_awake = awake.is_some();
    if let Some(length) = plan.live.probe.filter(|_| is_emulated) {
        announcer.phase(Phase::Setup, clock.now(), length);
        match probe::probe(plan, length, &mut |_, _| {}) {
            Ok(found) => witnessed.probe = Some(found),
            Err(error) => announcer.warn(format!("the network could not be probed: {error}")),
        }
    }
    Ok(Prepared {
        plan: Arc::new(plan.clone()),
        control: Arc::new(Control::new(*clock, endpoint)),
        testbed,
        directory,
        logs: place.to_owned(),
        recorder,
        witnessed,
        watch,
        _awake: awake,
    })
}

/// A watchdog for a run: what it has recorded is left as it is, and said.
///
/// # Errors
/// Too many open files or threads.
pub fn watchdog_of(directory: &Path, signals: Signals) -> io::Result<Watchdog> {
    let directory = directory.to_owned();
    Watchdog::start(signals, GRACE, INCOMPLETE, move |interruption| {
        let done = facts::abandon(&directory, interruption);
        say_at_last(&(serde_json::to_string(&done).expect("words can be written") + "\n"));
    })
}

impl Prepared {
    fn perform(mut self, announcer: &mut Announcer) -> (Performed, Closed) {
        let mut running = Running::default();
        let mut sampler = Sampler::new(&self.plan, self.recorder.sink());
        sampler.watch_sockets(&self.testbed, &self.plan);
        let result = self.conduct(&mut running, &mut sampler, announcer);
        let began = running.fleet.is_some();
        let result = self.take_down(running, &mut sampler, result, announcer);
        self.witnessed.note_end(&self.control, sampler);
        let closed = self.recorder.close();
        if let Some(error) = &closed.failure {
            let lost = closed.strain.rows_lost;
            announcer.warn(format!("the recording was cut short: {error}; {lost} rows are lost"));
        }
        let ending = match result {
            Ok(()) => Ending::Complete,
            Err(interruption) => Ending::Incomplete(interruption.to_string()),
        };
        (Performed { witnessed: self.witnessed, ending, began }, closed)
    }

    fn conduct(
        &mut self,
        running: &mut Running,
        sampler: &mut Sampler,
        announcer: &mut Announcer,
    ) -> Result<(), Interruption> {
        self.start_servers(running, sampler)?;
        running.since = self.control.now();
        // Where there can be no further thread the run fails soon enough.
        running.timer = ControlTimer::start(self.control.clock, self.witnessed.emulator_priority).ok();
        self.start_emulator(running)?;
        running.loopback = self.watch_loopback(announcer);
        let fleet = Fleet::start(
            Arc::clone(&self.plan),
            Arc::new(self.testbed.sockets()),
            Arc::clone(&self.directory),
            &self.recorder,
            Arc::clone(&self.control),
        );
        self.recorder.keep();
        running.fleet =
            Some(fleet.map_err(|error| Interruption::fault("the clients cannot be started", &error))?);
        let mut stage = Stage { prepared: self, running, sampler, announcer };
        let timeout = stage.prepared.plan.phases.connect_timeout;
        stage.enter(Phase::Connect, timeout);
        let everybody = *stage.prepared.plan.client_numbers().last().expect("there is an end");
        let gathered = |control: &Control| {
            let figures = &control.figures;
            figures.ready.load(Relaxed) + figures.failed.load(Relaxed) >= everybody
        };
        let begin = stage.prepared.control.now();
        stage.wait_until(begin + timeout, gathered)?;
        stage.warn_of_missing(everybody);
        let schedule = stage.announce();
        let phases = stage.prepared.plan.phases;
        stage.wait_until(schedule.publish_from, |_| false)?;
        stage.enter(Phase::WarmUp, phases.warm_up);
        stage.wait_until(schedule.measure_from, |_| false)?;
        stage.enter(Phase::Measurement, phases.duration);
        stage.sampler.begin_measurement();
        stage.wait_until(schedule.measure_until, |_| false)?;
        stage.sampler.end_measurement();
        stage.enter(Phase::CoolDown, phases.cool_down);
        // Messages intended just before the end may still be on their way into their sessions.
        let settled_from = schedule.measure_until + SETTLE;
        let settled = |control: &Control| control.now() >= settled_from && control.is_settled();
        stage.wait_until(schedule.measure_until + phases.cool_down, settled)?;
        stage.prepared.witnessed.behind =
            stage.prepared.control.figures.publishing.load(Relaxed).max(0) as u64;
        Ok(())
    }

    /// One after the other, in the plan's order: a gateway finds its broker there.
    fn start_servers(&mut self, running: &mut Running, sampler: &mut Sampler) -> Result<(), Interruption> {
        let plan = Arc::clone(&self.plan);
        for (index, server) in plan.servers.iter().enumerate() {
            let Some(process) = &server.process else { continue };
            let handle = self.start_server(server, process)?;
            if server.when_it_dies == WhenItDies::EndRun {
                self.watch
                    .add_server(&handle)
                    .map_err(|error| Interruption::fault("cannot watch a server", &error))?;
            }
            sampler.watch_server(&handle);
            sampler.event(self.control.now(), EventKind::BrokerStart, &told(&plan, server, &version(server)));
            running.servers.push(RunningServer { index, handle });
        }
        Ok(())
    }

    fn start_server(&self, server: &Server, process: &ServerProcess) -> Result<ServerHandle, Interruption> {
        let failed = |error: ServerError| Interruption::Server(format!("server `{}`: {error}", server.name));
        let namespace = self.testbed.namespace(server.host).map(Arc::as_ref);
        let log = self.logs.join(log_name(server));
        let mut handle = ServerHandle::start(process, namespace, &log).map_err(failed)?;
        let (address, watch) = (server.endpoint().socket_address(), &self.watch);
        handle.wait_until_ready(address, namespace, process, || watch.wants_to_stop()).map_err(failed)?;
        for pid in handle.processes() {
            // Refused where the emulator's was, and that has been said.
            let _ = self.control.worker_priority.apply_to_process(pid);
        }
        Ok(handle)
    }

    fn start_emulator(&mut self, running: &mut Running) -> Result<(), Interruption> {
        if self.plan.network.kind != NetworkKind::Emulated {
            return Ok(());
        }
        let records = self.plan.recording.packets || self.plan.recording.pcapng;
        let emulator = Emulator::start(Setting {
            ports: self.testbed.take_ports(),
            wiring: Wiring::of(&self.plan),
            compensation: self.witnessed.compensation,
            clock: self.control.clock,
            priority: self.witnessed.emulator_priority,
            sink: records.then(|| self.recorder.sink()),
        });
        let emulator =
            emulator.map_err(|error| Interruption::fault("the emulator cannot be started", &error))?;
        self.witnessed.emulator = Some(Arc::clone(emulator.shared()));
        running.emulator = Some(emulator);
        Ok(())
    }

    /// Listens to what each server's own host says to it, which the emulator does not carry. A run without is less, but
    /// is a run.
    fn watch_loopback(&self, announcer: &mut Announcer) -> Vec<LoopbackWitness> {
        let plan = &self.plan;
        let is_wanted = plan.recording.packets || plan.recording.pcapng;
        if !is_wanted || plan.network.kind != NetworkKind::Emulated {
            return Vec::new();
        }
        let mut witnesses = Vec::new();
        for (index, server) in
            plan.servers.iter().enumerate().filter(|(index, _)| plan.has_clients_beside(*index))
        {
            let Some(namespace) = self.testbed.namespace(server.host) else { continue };
            let started = LoopbackWitness::start(loopback::Setting {
                namespace,
                server: index,
                host: server.host as u16,
                link: plan.loopback_link() as u16,
                server_port: server.endpoint().port,
                clock: self.control.clock,
                sink: self.recorder.sink(),
            });
            match started {
                Ok(witness) => witnesses.push(witness),
                Err(error) => announcer.warn(format!("packets of clients beside `{}`: {error}", server.name)),
            }
        }
        witnesses
    }

    /// Ends everything that runs, clients first, so that their farewells still cross the network.
    fn take_down(
        &mut self,
        running: Running,
        sampler: &mut Sampler,
        result: Result<(), Interruption>,
        announcer: &mut Announcer,
    ) -> Result<(), Interruption> {
        self.control.stop();
        let fleet = running.fleet.map_or(Ok(()), Fleet::join);
        let result = result.and(fleet.map_err(|error| Interruption::fault("a client worker ended", &error)));
        self.witnessed.contention.control_held_up = running.timer.as_ref().map(ControlTimer::held_up);
        self.witnessed.contention.control = running.timer.map(|timer| timer.lateness());
        if let Some(emulator) = running.emulator {
            let thread = emulator.shared().thread.load(Relaxed);
            self.witnessed.note_emulator(&Usage::of_thread(thread), self.control.now().since(running.since));
            match emulator.stop() {
                Ok(Stopped { ports, stations }) => {
                    self.witnessed.ring_drops = facts::ring_drops(&ports, &self.testbed);
                    self.witnessed.stations = stations;
                }
                Err(error) => {
                    announcer.warn(Interruption::fault("the emulator ended", &error).to_string());
                }
            }
        }
        for witness in running.loopback {
            match witness.stop() {
                Ok(seen) => {
                    seen.gap().into_iter().for_each(|words| announcer.warn(words));
                    let before = self.witnessed.loopback.unwrap_or_default();
                    self.witnessed.loopback = Some(before.and(seen));
                }
                Err(error) => {
                    announcer.warn(format!("packets of clients beside their server were lost: {error}"))
                }
            }
        }
        let mut result = result;
        for running in running.servers {
            let server = &self.plan.servers[running.index];
            let status = running.handle.stop();
            sampler.event(self.control.now(), EventKind::BrokerExit, &told(&self.plan, server, &status));
            let dropped = drops::warning(&self.logs.join(log_name(server)));
            dropped.into_iter().for_each(|text| announcer.warn(text));
            if result == Err(Interruption::ServerEnded(running.index)) {
                let log = log_name(server);
                result = Err(Interruption::Server(format!(
                    "the server `{}` ended during the run ({status}); see {log}",
                    server.name
                )));
            }
        }
        result
    }
}

/// The conductor at work.
struct Stage<'a> {
    prepared: &'a mut Prepared,
    running: &'a mut Running,
    sampler: &'a mut Sampler,
    announcer: &'a mut Announcer,
}

impl Stage<'_> {
    fn enter(&mut self, phase: Phase, length: Duration) {
        let now = self.prepared.control.now();
        self.announcer.phase(phase, now, length);
        let name = serde_json::to_value(phase).expect("a phase has a name");
        self.sampler.event(now, EventKind::Phase, name.as_str().unwrap_or_default());
    }

    /// Waits until `deadline` or until `reached`, and keeps the figures coming.
    fn wait_until(
        &mut self,
        deadline: Instant,
        reached: impl Fn(&Control) -> bool,
    ) -> Result<(), Interruption> {
        let control = Arc::clone(&self.prepared.control);
        loop {
            let now = control.now();
            if now >= deadline || reached(&control) {
                return Ok(());
            }
            self.sampler.sample_if_due(now, self.emulator_thread());
            self.announcer_tick(now);
            let timeout = (deadline - now).min(STEP);
            self.prepared.watch.wait(timeout)?;
            self.find_faults()?;
        }
    }

    fn announcer_tick(&mut self, now: Instant) {
        if self.sampler.tick_is_due(now) {
            let lateness = self.running.emulator.as_ref().map(|emulator| &emulator.shared().lateness);
            self.announcer.tick(&self.prepared.control, lateness);
        }
    }

    fn emulator_thread(&self) -> Option<libc::pid_t> {
        self.running.emulator.as_ref().map(|emulator| emulator.shared().thread.load(Relaxed))
    }

    fn find_faults(&mut self) -> Result<(), Interruption> {
        if let Some(error) = self.prepared.recorder.failure() {
            return Err(Interruption::Disk(error.to_string()));
        }
        self.note_ended_servers()?;
        if self.running.emulator.as_ref().is_some_and(Emulator::has_ended) {
            return Err(Interruption::Fault("the emulator ended during the run".into()));
        }
        if self.announcer.is_broken() {
            return Err(Interruption::Abandoned);
        }
        Ok(())
    }

    /// A server that has ended ends the run, or is written down, as the plan says.
    fn note_ended_servers(&mut self) -> Result<(), Interruption> {
        while let Some(place) = self.running.servers.iter().position(|server| server.handle.has_exited()) {
            let index = self.running.servers[place].index;
            let server = &self.prepared.plan.servers[index];
            if server.when_it_dies == WhenItDies::EndRun {
                return Err(Interruption::ServerEnded(index));
            }
            let status = self.running.servers.remove(place).handle.stop();
            let now = self.prepared.control.now();
            self.announcer.warn(format!("the server `{}` ended during the run ({status})", server.name));
            self.sampler.event(now, EventKind::BrokerExit, &told(&self.prepared.plan, server, &status));
        }
        Ok(())
    }

    fn warn_of_missing(&mut self, everybody: u32) {
        let ready = self.prepared.control.figures.ready.load(Relaxed);
        if ready < everybody {
            let missing = everybody - ready;
            let waited = self.prepared.plan.phases.connect_timeout;
            self.announcer.warn(format!(
                "{missing} of {everybody} clients had not connected and subscribed when publishing began \
                 (phases.connect_timeout is {waited})"
            ));
        }
    }

    /// Fixes when to publish, for the clients and for the recording.
    fn announce(&mut self) -> Schedule {
        let phases = self.prepared.plan.phases;
        let publish_from = self.prepared.control.now() + Control::NOTICE * 2;
        let measure_from = publish_from + phases.warm_up;
        let schedule = Schedule { publish_from, measure_from, measure_until: measure_from + phases.duration };
        if let Err(error) = facts::store_schedule(&self.prepared.logs, &schedule) {
            self.announcer.warn(format!("the recording's phases could not be stored: {error}"));
        }
        self.prepared.control.announce(schedule);
        self.prepared.witnessed.schedule = Some(schedule);
        schedule
    }
}

/// What is told of a server: with its name where there are several.
fn told(plan: &Plan, server: &Server, what: &str) -> String {
    if plan.servers.len() == 1 { what.to_owned() } else { format!("{}: {what}", server.name) }
}

fn version(server: &Server) -> String {
    format!("{} {}", server.kind, server.version).trim().to_owned()
}

/// The file that a server's output goes to, in the recording's directory.
fn log_name(server: &Server) -> String {
    format!("{}.log", server.name)
}

fn real_time(announcer: &mut Announcer) -> bool {
    let permitted = priority::real_time_permitted();
    if let Err(error) = &permitted {
        announcer.warn(format!(
            "no real-time priority ({error}): on a busy machine the emulator's delays are milliseconds off; \
             run as root, or permit it with `ulimit -r 10`"
        ));
    }
    permitted.is_ok()
}

/// A limit on locked memory would turn later allocations into failures, so memory is locked only without one.
fn lock_memory(privilege: Option<Privilege>, announcer: &mut Announcer) {
    if privilege != Some(Privilege::Administrator) {
        return;
    }
    if let Err(error) = priority::lock_memory() {
        announcer.warn(format!("memory cannot be locked ({error}): page faults may delay the emulator"));
    }
}

fn compensation(plan: &Plan, priority: Priority, announcer: &mut Announcer) -> Duration {
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

/// How long the conductor sleeps at most; what ends a phase early is seen this late.
const STEP: Duration = Duration::from_ms(50);
/// The exit status of a run that ended early.
const INCOMPLETE: i32 = 3;
const SETTLE: Duration = Duration::from_ms(100);
