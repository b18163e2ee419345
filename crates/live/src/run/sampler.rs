//! Samples what processes use and where radio stations are, notes the run's events, and keeps the beat of the progress lines.

use mqttlab_plan::Plan;
use mqttlab_recording::{Event, EventKind, Process, Resource, Sink};
use mqttlab_run::{ServerFigures, Stations};
use mqttlab_system::namespaces::Namespace;
use mqttlab_system::usage::{self, Pressure, ProcessorTime, StallCause, Usage};
use mqttlab_units::{Duration, Instant};

use crate::control::FleetFigures;
use crate::host::server_stalls::ServerStalls;
use crate::network::tcp_states::SocketStates;
use crate::network::testbed::Testbed;
use crate::processes::server::ServerHandle;
use crate::verdict::server_silences::ServerSilences;

/// The conductor's notebook.
pub struct Sampler {
    sink: Sink,
    interval: Duration,
    next_sample: Instant,
    next_tick: Instant,
    servers: Vec<WatchedServer>,
    /// When servers elsewhere answered nobody.
    silences: ServerSilences,
    sockets: SocketStates,
    stations: Stations,
    measured: [Option<(std::time::Instant, Pressure)>; 2],
    /// The machine's processor time and throttled periods at the beginning.
    before: (Option<ProcessorTime>, Option<u64>),
    began: (std::time::Instant, Pressure),
}

/// A server that is sampled.
struct WatchedServer {
    /// Process 1 of its namespace.
    init: i32,
    /// Its place in the plan.
    place: u16,
    figures: ServerFigures,
    /// What its earlier starts had used.
    before: Usage,
    /// What its processes had used when last sampled.
    latest: Usage,
    /// When it stood still.
    stalls: ServerStalls,
    /// Whether it is to.
    is_paused: bool,
    /// Whether its disk is slow on purpose.
    has_slow_disk: bool,
}

impl WatchedServer {
    /// What its processes have used now, with those of earlier starts; what has ended has used what it had used.
    fn usage(&mut self) -> Usage {
        let present = Usage::of(&usage::descendants(self.init));
        let has_ended = present.rss_bytes == 0
            && present.cpu_user + present.cpu_system < self.latest.cpu_user + self.latest.cpu_system;
        self.latest = if has_ended { Usage { rss_bytes: 0, stall: None, ..self.latest } } else { present };
        self.before.plus(self.latest)
    }
}

impl Sampler {
    /// Notes into `sink`.
    pub fn new(plan: &Plan, sink: Sink) -> Sampler {
        Sampler {
            sink,
            interval: plan.recording.resource_interval.max(INTERVAL_MIN),
            next_sample: Instant::ZERO,
            next_tick: Instant::ZERO,
            servers: Vec::new(),
            silences: ServerSilences::of(plan),
            sockets: SocketStates::every(plan.recording.tcp_state_interval),
            stations: Stations::of(plan),
            measured: [None, None],
            before: (ProcessorTime::now(), usage::throttled_periods()),
            began: (std::time::Instant::now(), Pressure::now()),
        }
    }

    /// Samples a server of this place in the plan and name, too.
    pub fn watch_server(&mut self, (place, name): (usize, &str), server: &ServerHandle) {
        let figures = ServerFigures { server: name.to_owned(), ..ServerFigures::default() };
        let (before, latest, stalls) = Default::default();
        let (init, place, is_paused) = (server.init(), place as u16, false);
        let has_slow_disk = server.has_slow_disk();
        self.servers.push(WatchedServer {
            init,
            place,
            figures,
            before,
            latest,
            stalls,
            has_slow_disk,
            is_paused,
        });
    }

    /// The server of this place has started again.
    pub(crate) fn follow_server(&mut self, place: usize, server: &ServerHandle) {
        for watched in self.servers.iter_mut().filter(|watched| usize::from(watched.place) == place) {
            watched.before =
                watched.before.plus(Usage { rss_bytes: 0, ..std::mem::take(&mut watched.latest) });
            watched.init = server.init();
        }
    }

    /// The server of this place stands still from now on because it is to, or does not.
    pub(crate) fn expect_pause(&mut self, place: usize, is_paused: bool) {
        let of_place = |watched: &&mut WatchedServer| usize::from(watched.place) == place;
        self.servers.iter_mut().filter(of_place).for_each(|watched| watched.is_paused = is_paused);
    }

    /// What servers had used when they were last sampled.
    pub fn servers(&self) -> Vec<ServerFigures> {
        self.servers.iter().map(|watched| watched.figures.clone()).collect()
    }

    /// When servers stood still, a sentence for each time.
    pub fn stalls(&self) -> Vec<String> {
        let words = |watched: &WatchedServer| watched.stalls.in_words(&watched.figures.server);
        self.servers.iter().flat_map(words).chain(self.silences.reasons()).collect()
    }

    /// When servers elsewhere answered nobody without a known cause, in words.
    pub fn unexplained(&self) -> Vec<String> {
        self.silences.unexplained()
    }

    /// Looks whether servers elsewhere answer.
    pub fn listen(&mut self, now: Instant, figures: &FleetFigures) {
        self.silences.listen(now, figures);
    }

    /// Samples the TCP connections of hosts with a namespace of their own, too. The servers' come first, for a connection has
    /// an end there.
    pub fn watch_sockets(&mut self, testbed: &Testbed, plan: &Plan) {
        let hosts = plan.servers.iter().map(|server| server.host).chain(0..plan.hosts.len());
        let namespaces = hosts.filter_map(|host| testbed.namespace(host).map(|namespace| &**namespace));
        let mut watched: Vec<&Namespace> = Vec::new();
        for namespace in namespaces {
            if !watched.iter().any(|known| std::ptr::eq(*known, namespace)) {
                watched.push(namespace);
                // Where the kernel does not answer there is no `tcp_state`.
                let _ = self.sockets.watch(namespace);
            }
        }
    }

    /// Publishing begins at `at`: events that move stations count from then.
    pub(crate) fn begin_events(&mut self, at: Instant) {
        self.stations.begin(at);
    }

    /// Notes an event of the run.
    pub fn event(&mut self, at: Instant, kind: EventKind, detail: &str) {
        self.sink.event(&Event { at, kind, client: None, took: None }, detail);
    }

    /// Notes an event of a client.
    pub fn event_of(&mut self, at: Instant, kind: EventKind, client: u32, detail: &str) {
        self.sink.event(&Event { at, kind, client: Some(client), took: None }, detail);
    }

    /// Samples, if it is time to.
    pub fn sample_if_due(&mut self, now: Instant, emulator: Option<i32>) {
        self.sockets.sample_if_due(now, &mut self.sink);
        self.stations.take(now, |row| self.sink.position(row));
        if now < self.next_sample {
            return self.sink.tick();
        }
        self.next_sample = now + self.interval;
        let pressure = Pressure::now();
        let engine = Usage::of(&[std::process::id() as i32]);
        self.sink.resource(&row(engine, now, Process::Engine, pressure));
        for watched in &mut self.servers {
            let usage = watched.usage();
            let expected =
                |stall: &StallCause| watched.is_paused || watched.has_slow_disk && *stall == StallCause::Disk;
            watched.stalls.note(now, usage.stall.filter(|stall| !expected(stall)));
            let cpu_s = (usage.cpu_user + usage.cpu_system).as_s_f64();
            (watched.figures.cpu_s, watched.figures.rss_bytes) = (cpu_s, usage.rss_bytes);
            let row = row(usage, now, Process::Server, pressure);
            self.sink.resource(&Resource { server: Some(watched.place), ..row });
        }
        if let Some(thread) = emulator {
            self.sink.resource(&row(Usage::of_thread(thread), now, Process::Emulator, pressure));
        }
        self.sink.resource(&row(Usage::of_machine(), now, Process::Machine, pressure));
    }

    /// Whether live figures are due.
    pub fn tick_is_due(&mut self, now: Instant) -> bool {
        let is_due = now >= self.next_tick;
        if is_due {
            self.next_tick = now + TICK;
        }
        is_due
    }

    /// The measurement begins.
    pub fn begin_measurement(&mut self) {
        self.measured[0] = Some((std::time::Instant::now(), Pressure::now()));
    }

    /// The measurement ends.
    pub fn end_measurement(&mut self) {
        self.measured[1] = Some((std::time::Instant::now(), Pressure::now()));
    }

    /// The part of the measurement in which some task waited for a processor, in percent; `None` when there was
    /// no measurement or the kernel does not say.
    pub fn cpu_pressure_percent(&self) -> Option<f64> {
        let [Some((began, before)), Some((ended, after))] = self.measured else { return None };
        percent(after.cpu.saturating_sub(before.cpu), ended - began)
    }

    /// The part of the time since the beginning in which some task waited for a disk, in percent.
    pub fn disk_pressure_percent(&self) -> Option<f64> {
        percent(Pressure::now().io.saturating_sub(self.began.1.io), self.began.0.elapsed())
    }

    /// The part of the time since the beginning in which some task waited for memory, in percent.
    pub fn memory_pressure_percent(&self) -> Option<f64> {
        percent(Pressure::now().memory.saturating_sub(self.began.1.memory), self.began.0.elapsed())
    }

    /// The part of the processors' time that the hypervisor gave to others since the beginning.
    pub fn steal_percent(&self) -> Option<f64> {
        Some(ProcessorTime::now()?.steal_percent_since(self.before.0?))
    }

    /// The processors' time that the hypervisor gave to others since the beginning.
    pub fn steal(&self) -> Option<Duration> {
        Some(ProcessorTime::now()?.steal.saturating_sub(self.before.0?.steal))
    }

    /// Periods since the beginning in which the control group had used up its processor time.
    pub fn throttled_periods(&self) -> Option<u64> {
        Some(usage::throttled_periods()?.saturating_sub(self.before.1?))
    }
}

/// What was used, as a row of the recording.
fn row(usage: Usage, at: Instant, process: Process, pressure: Pressure) -> Resource {
    Resource {
        at,
        process,
        cpu_user: usage.cpu_user,
        cpu_system: usage.cpu_system,
        rss_bytes: usage.rss_bytes,
        switches_voluntary: usage.switches_voluntary,
        switches_involuntary: usage.switches_involuntary,
        pressure_cpu: pressure.cpu,
        pressure_memory: pressure.memory,
        pressure_io: pressure.io,
        run_queue: usage.run_queue,
        faults_minor: Some(usage.faults_minor),
        faults_major: Some(usage.faults_major),
        steal: usage.steal,
        server: None,
    }
}

/// `None` where the kernel does not count pressure.
fn percent(waited: Duration, of: std::time::Duration) -> Option<f64> {
    Pressure::is_available().then(|| 100.0 * waited.as_s_f64() / of.as_secs_f64())
}

const TICK: Duration = Duration::from_ms(250);
/// Reading /proc costs about a millisecond, so that sampling more often would disturb what it measures.
const INTERVAL_MIN: Duration = Duration::from_ms(50);
