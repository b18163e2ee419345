//! Tries the machine: how exactly it emulates, and what can be measured on it therefore.
//!
//! ```text
//!   calibration ──► 1,000 frames/s ──► 5,000 ──► 20,000 ──► conclusion
//!                   └── a control timer beside, and the hypervisor's steal ──┘
//! ```
//!
//! Frames go one way, through the same emulator and the same ports as a run's, over a link that does nothing but delay;
//! their senders and receivers have the priority that a run's clients have. What it does not measure: a broker, TCP, and
//! what recording takes.

mod conclusion;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time;

use mqttlab_plan::PortKind;
use mqttlab_system::priority::{self, CpuAwake, Priority};
use mqttlab_system::sockets;
use mqttlab_system::usage::{self, ProcessorTime, Usage};
use mqttlab_units::{Duration, Instant};
use serde_json::{Value, json};

use self::conclusion::{RateStep, conclude};
use crate::clock::Clock;
use crate::histogram::HistogramSnapshot;
use crate::network::calibration::{self, Bench, constant_delay};
use crate::probe::udp::{self, Paced};
use crate::verdict::control_timer::ControlTimer;
use crate::verdict::lateness::Contention;
use crate::verdict::thread_delays::ThreadDelays;

/// Measures for about `length`; `say` is told the part that is done, and what comes. The process must be allowed to make
/// namespaces.
///
/// # Errors
/// Neither TUN nor packet sockets can be had here.
pub fn measure(length: Duration, say: &mut dyn FnMut(f64, &str)) -> io::Result<Value> {
    let clock = Clock::start();
    let real_time = priority::real_time_permitted().is_ok();
    let priority = if real_time { Priority::EMULATOR } else { Priority::Normal };
    // As a run does.
    let awake = CpuAwake::hold().ok();
    say(0.0, "calibration");
    let (port, compensation) = calibrate(priority)?;
    let before = (ProcessorTime::now(), usage::throttled_periods());
    let control = ControlTimer::start(clock, priority)?;
    let setup = MeasureSetup { port, compensation, real_time, clock, control: &control };
    let left = length.saturating_sub(clock.now().since(Instant::ZERO)).max(part(length, 2));
    let mut seen = Vec::new();
    for (number, frames_s) in RATES.into_iter().enumerate() {
        say(number as f64 / RATES.len() as f64, &format!("{frames_s} frames/s"));
        seen.push(setup.step(frames_s, part(left, RATES.len() as u64))?);
    }
    say(1.0, "done");
    let contention = Contention {
        steal_percent: before.0.and_then(|before| Some(ProcessorTime::now()?.steal_percent_since(before))),
        throttled_periods: before
            .1
            .and_then(|before| Some(usage::throttled_periods()?.saturating_sub(before))),
        ..Contention::default()
    };
    let steps: Vec<RateStep> = seen.iter().map(|seen| seen.step(&contention, real_time)).collect();
    let conclusion = conclude(&steps);
    Ok(json!({
        "port": port,
        "real_time": real_time,
        "cpu_kept_awake": awake.is_some(),
        "latency_compensation_ns": compensation,
        "delay_ns": DELAY,
        "control_timer": times(&control.lateness()),
        "steal_percent": contention.steal_percent,
        "throttled_periods": contention.throttled_periods,
        "rates": steps.iter().zip(&seen).map(|(step, seen)| seen.facts(step)).collect::<Vec<_>>(),
        "ranges": conclusion.ranges,
        "words": conclusion.words,
    }))
}

/// The port that carries frames here, as a run would have it or, where that cannot be had, the other.
fn calibrate(priority: Priority) -> io::Result<(PortKind, Duration)> {
    let tried = |kind| calibration::compensation(kind, priority).map(|compensation| (kind, compensation));
    tried(PortKind::Tun).or_else(|first| {
        let both = |second| format!("neither TUN ({first}) nor packet sockets ({second}) carry frames here");
        tried(PortKind::Packet).map_err(|second| io::Error::other(both(second)))
    })
}

struct MeasureSetup<'a> {
    port: PortKind,
    compensation: Duration,
    real_time: bool,
    clock: Clock,
    control: &'a ControlTimer,
}

/// What was seen at one rate.
struct MeasuredStep {
    frames_s: u64,
    offered_frames_s: f64,
    paced: Paced,
    /// Frames that came to the emulator.
    arrived: u64,
    lateness: HistogramSnapshot,
    control: HistogramSnapshot,
    /// Of the emulator's thread.
    run_queue: Option<Duration>,
    cpu_percent: Option<f64>,
    faults_major: u64,
    held_up: ThreadDelays,
}

impl MeasureSetup<'_> {
    fn step(&self, frames_s: u64, length: Duration) -> io::Result<MeasuredStep> {
        let priority = if self.real_time { Priority::EMULATOR } else { Priority::Normal };
        let bench = Bench::build(constant_delay(DELAY), self.port, priority, self.compensation)?;
        bench.receiver.set_read_timeout(Some(time::Duration::from_millis(20)))?;
        // The receiver may not get a processor for a while; what it then loses is not the emulator's loss.
        sockets::make_room(&bench.receiver, ROOM_BYTES);
        let control = self.control.lateness();
        // The thread says who it is before it does anything else.
        while bench.counters().thread.load(Relaxed) == 0 {
            thread::sleep(time::Duration::from_millis(1));
        }
        let usage = || Usage::of_thread(bench.counters().thread.load(Relaxed));
        let (before, began) = (usage(), self.clock.now());
        let (sent, paced) =
            self.exchange(&bench, frames_s, length.saturating_sub(PATIENCE).max(part(length, 2)))?;
        let (after, took) = (usage(), self.clock.now().since(began));
        let percent = |(before, after): (Duration, Duration)| {
            100.0 * after.saturating_sub(before).as_s_f64() / took.as_s_f64()
        };
        let spread_ns = sent.last().zip(sent.first()).map_or(0, |(last, first)| last.saturating_sub(*first));
        let seen = MeasuredStep {
            frames_s,
            offered_frames_s: (sent.len() as f64 - 1.0).max(0.0) / (spread_ns.max(1) as f64 / 1e9),
            paced,
            arrived: bench.counters().arrived.load(Relaxed),
            lateness: bench.counters().lateness.snapshot(),
            control: self.control.lateness().since(&control),
            run_queue: before
                .run_queue
                .zip(after.run_queue)
                .map(|(before, after)| after.saturating_sub(before)),
            cpu_percent: before.on_processor.zip(after.on_processor).map(percent),
            faults_major: after.faults_major.saturating_sub(before.faults_major),
            held_up: bench.counters().held_up.snapshot(),
        };
        bench.stop()?;
        Ok(seen)
    }

    /// When each was sent, and what became of them.
    fn exchange(&self, bench: &Bench, frames_s: u64, length: Duration) -> io::Result<(Vec<u64>, Paced)> {
        let interval = Duration::from_ns(1_000_000_000 / frames_s);
        let count = (length.as_ns() / interval.as_ns()).max(2);
        let over = AtomicBool::new(false);
        let endpoint = if self.real_time { Priority::ENDPOINT } else { Priority::Normal };
        thread::scope(|scope| {
            let receiver = scope.spawn(|| {
                let _ = endpoint.apply();
                udp::collect(&bench.receiver, &over)
            });
            let sender = scope.spawn(|| {
                let _ = endpoint.apply();
                // A machine that cannot send so many must not take for ever.
                let latest = self.clock.now() + length + part(length, 10);
                udp::send_paced(&bench.sender, &self.clock, count, interval, Some(latest))
            });
            let sent = sender.join().expect("a sender does not panic");
            thread::sleep(time::Duration::from_nanos(PATIENCE.as_ns()));
            over.store(true, Relaxed);
            let (sent, arrived) = (sent?, receiver.join().expect("a receiver does not panic")?);
            let paced = udp::judge(&sent, &arrived);
            Ok((sent, paced))
        })
    }
}

impl MeasuredStep {
    fn step(&self, contention: &Contention, real_time: bool) -> RateStep {
        let contention = Contention { control: Some(self.control.clone()), ..contention.clone() };
        let mut late = contention.late(&self.lateness, real_time);
        late.held_up = Some(self.held_up);
        late.cpu_percent = self.cpu_percent;
        late.faults_major = Some(self.faults_major);
        RateStep {
            frames_s: self.frames_s,
            offered_frames_s: self.offered_frames_s,
            sent: self.paced.sent,
            received: self.paced.received,
            late,
        }
    }

    fn facts(&self, step: &RateStep) -> Value {
        let added = |ns: u64| (step.received > 0).then(|| ns as i64 - DELAY.as_ns() as i64);
        json!({
            "frames_s": step.frames_s,
            "offered_frames_s": step.offered_frames_s,
            "sent": step.sent,
            "lost": step.sent - step.received,
            "lost_before_emulator": step.sent.saturating_sub(self.arrived),
            "error_p50_ns": added(self.paced.delay_p50_ns),
            "error_p99_ns": added(self.paced.delay_p99_ns),
            "error_max_ns": added(self.paced.delay_max_ns),
            "emulator_late": times(&self.lateness),
            "control_timer_p99_ns": self.control.percentile(99.0),
            "emulator_cpu_percent": self.cpu_percent,
            "emulator_run_queue_ns": self.run_queue,
            "emulator_held_up": self.held_up.facts(),
        })
    }
}

fn part(length: Duration, of: u64) -> Duration {
    Duration::from_ns(length.as_ns() / of)
}

fn times(late: &HistogramSnapshot) -> Value {
    let ns = |percent| late.percentile(percent).map(Duration::as_ns);
    json!({
        "count": late.len(), "p50_ns": ns(50.0), "p99_ns": ns(99.0),
        "max_ns": (!late.is_empty()).then(|| late.max().as_ns()),
    })
}

const ROOM_BYTES: usize = 16 << 20;
/// Frames per second.
const RATES: [u64; 3] = [1_000, 5_000, 20_000];
/// What the link takes.
const DELAY: Duration = Duration::from_ms(10);
/// How long the last frames may take.
const PATIENCE: Duration = Duration::from_ms(200);
