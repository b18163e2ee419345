//! What a run says about itself, beside its rows.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use mqttlab_net::radio::StationReport;
use mqttlab_plan::Plan;
use mqttlab_recording::{Hold, RunFacts};
use mqttlab_run::{Interruption, Progress, RunVerdict, Schedule};
use mqttlab_system::priority::Priority;
use mqttlab_system::usage::Usage;
use mqttlab_units::Duration;
use serde_json::{Value, json};

use crate::control::Control;
use crate::histogram::HistogramSnapshot;
use crate::network::emulator;
use crate::network::loopback_capture;
use crate::network::port::Port;
use crate::network::testbed::Testbed;
use crate::run::sampler::Sampler;
use crate::verdict::lateness::Contention;
use crate::verdict::validity::{self, ValidityEvidence};

/// What was seen of a run while it was prepared and performed.
pub struct RunObservations {
    /// Whether threads had real-time priority.
    pub real_time: bool,
    /// How much earlier than their time deliveries were begun.
    pub compensation: Duration,
    /// How the emulator was scheduled.
    pub emulator_priority: Priority,
    /// Each host's TCP as the kernel had it.
    pub tcp: Value,
    /// The emulator's counters, where there was one.
    pub emulator: Option<Arc<emulator::EmulatorCounters>>,
    /// Frames that never reached the emulated links.
    pub ring_drops: u64,
    /// What each radio did; empty without a radio channel.
    pub stations: Vec<StationReport>,
    /// What was seen of clients on the broker's host, where somebody looked.
    pub loopback: Option<loopback_capture::CaptureCount>,
    /// When clients published, once that was known.
    pub schedule: Option<Schedule>,
    /// Clients that still had messages to offer when the run ended.
    pub behind: u64,
    /// Topics whose messages nothing tells whose they are.
    pub ambiguous_topics: u64,
    /// What the emulated paths did when they were probed.
    pub probe: Option<Value>,
    /// What the machine did to it.
    pub contention: Contention,
    /// What the scenario itself kept from arriving until the end.
    pub holds: Vec<Hold>,
    stalls: Vec<String>,
    senders: HistogramSnapshot,
    cpu_pressure_percent: Option<f64>,
    turned_away: u64,
    no_descriptor: u64,
}

impl RunObservations {
    /// Of a run that is prepared.
    pub fn new(
        real_time: bool,
        compensation: Duration,
        emulator_priority: Priority,
        tcp: Value,
    ) -> RunObservations {
        RunObservations {
            real_time,
            compensation,
            emulator_priority,
            tcp,
            emulator: None,
            ring_drops: 0,
            stations: Vec::new(),
            loopback: None,
            schedule: None,
            probe: None,
            contention: Contention::default(),
            holds: Vec::new(),
            stalls: Vec::new(),
            senders: HistogramSnapshot::default(),
            cpu_pressure_percent: None,
            turned_away: 0,
            no_descriptor: 0,
            behind: 0,
            ambiguous_topics: 0,
        }
    }

    /// Takes what can be known only at the end.
    pub fn note_end(&mut self, control: &Control, sampler: Sampler) {
        self.senders = control.figures.sender_lateness.measured();
        self.turned_away = control.figures.turned_away.load(Relaxed);
        self.no_descriptor = control.figures.no_descriptor.load(Relaxed);
        self.stalls = sampler.stalls();
        self.cpu_pressure_percent = sampler.cpu_pressure_percent();
        self.contention.steal_percent = sampler.steal_percent();
        self.contention.throttled_periods = sampler.throttled_periods();
        self.contention.disk_pressure_percent = sampler.disk_pressure_percent();
        self.contention.memory_pressure_percent = sampler.memory_pressure_percent();
        self.contention.held_up = self.emulator.as_ref().map(|shared| shared.held_up.snapshot());
        self.contention.steal = sampler.steal();
    }

    /// Takes what is known of the emulator's thread while there is one, `lived` after its start.
    pub fn note_emulator(&mut self, usage: &Usage, lived: Duration) {
        // Ticks miss a thread that runs for microseconds at a time.
        let cpu = usage.on_processor.unwrap_or(usage.cpu_user + usage.cpu_system);
        self.contention.run_queue = usage.run_queue;
        self.contention.emulator_cpu_percent =
            (!lived.is_zero()).then(|| 100.0 * cpu.as_s_f64() / lived.as_s_f64());
        self.contention.faults_minor = Some(usage.faults_minor);
        self.contention.faults_major = Some(usage.faults_major);
    }
}

/// The facts of `run.json`.
pub fn facts(plan: &Plan, observed: &RunObservations, warnings: &[String], recorder_stalls: u64) -> RunFacts {
    let counters = observed.emulator.as_deref();
    let evidence = ValidityEvidence {
        emulator: counters.map(|counters| counters.lateness.by_limit(|path| ends(plan, path))),
        senders: observed.senders.clone(),
        stalls: observed.stalls.clone(),
        ring_drops: observed.ring_drops,
        refused: counters.map_or(0, |counters| counters.refused.load(Relaxed)),
        cpu_pressure_percent: observed.cpu_pressure_percent,
        real_time: observed.real_time,
        recorder_stalls,
        turned_away: observed.turned_away,
        no_descriptor: observed.no_descriptor,
        behind: observed.behind,
        ambiguous_topics: observed.ambiguous_topics,
        contention: observed.contention.clone(),
    };
    let phases = observed.schedule.map(|schedule| {
        json!({
            "publish_from_ns": schedule.publish_from,
            "measure_from_ns": schedule.measure_from,
            "measure_until_ns": schedule.measure_until,
        })
    });
    let emulator = counters.map(|counters| {
        json!({
            "frames_arrived": counters.arrived.load(Relaxed),
            "frames_delivered": counters.delivered.load(Relaxed),
            "frames_unrouted": counters.unrouted.load(Relaxed),
            "latency_compensation_ns": observed.compensation,
        })
    });
    let loopback = observed
        .loopback
        .map(|seen| json!({ "frames_captured": seen.frames, "frames_dropped": seen.dropped }));
    let details = [
        ("phases", json!(phases)),
        ("emulator", json!(emulator)),
        ("loopback", json!(loopback)),
        ("tcp", observed.tcp.clone()),
        ("network", json!(plan.network.description)),
        ("probe", json!(observed.probe)),
    ];
    let stations = (!observed.stations.is_empty()).then(|| ("stations", json!(observed.stations)));
    RunFacts {
        versions: versions(plan),
        warnings: warnings.to_vec(),
        validity: validity::verdict(&evidence),
        details: details.into_iter().chain(stations).map(|(name, value)| (name.to_owned(), value)).collect(),
        holds: observed.holds.clone(),
        is_modelled: false,
    }
}

/// The hosts at the ends of a path.
fn ends(plan: &Plan, path: usize) -> [String; 2] {
    let path = &plan.network.paths[path];
    [path.from, path.to].map(|host| plan.hosts[host].name.clone())
}

/// Stores when clients publish in the layout, so that even a killed run's messages fall into the right phases.
///
/// # Errors
/// The layout cannot be read or written.
pub fn store_schedule(directory: &Path, schedule: &Schedule) -> io::Result<()> {
    mqttlab_recording::store_phases(directory, schedule.measure_from, schedule.measure_until)
        .map_err(io::Error::other)
}

/// Frames that found a ring full, over all ports; a port that cannot be asked counts none.
pub fn ring_drops(ports: &[Port], testbed: &Testbed) -> u64 {
    let drops =
        ports.iter().enumerate().filter_map(|(host, port)| port.ring_drops(testbed.namespace(host)?).ok());
    drops.sum()
}

fn versions(plan: &Plan) -> BTreeMap<String, String> {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let versions = [("engine", env!("CARGO_PKG_VERSION")), ("kernel", kernel.trim())];
    let servers = plan.servers.iter().map(|server| (server.name.as_str(), server.version.as_str()));
    // The engine's own words come last: no server's name hides them.
    servers.chain(versions).map(|(name, version)| (name.to_owned(), version.to_owned())).collect()
}

/// The last word on a run that has no time to finish its recording: rows that were written stay where they are, and a
/// recording without any is taken away.
pub fn abandon(directory: &Path, interruption: &Interruption) -> Progress {
    let (verdict, reason) = match mqttlab_recording::holds_rows(directory) {
        Some(true) => (
            RunVerdict::Incomplete,
            format!("{interruption}; the recording's tables are made when it is opened"),
        ),
        begun => {
            // Without spools what is there is not ours.
            if begun.is_some() {
                mqttlab_recording::discard(directory);
            }
            (RunVerdict::Failed, format!("{interruption} before anything was recorded"))
        }
    };
    Progress::Done { verdict, reason: Some(reason), directory: directory.to_string_lossy().into_owned() }
}
