//! Why something was late: what was seen of the machine, in; the cause and its remedy in words, out.
//!
//! ```text
//!   control timer as late? ──yes──► quota used up │ steal │ no real-time priority │ disk traffic │ kernel │ the machine
//!          └──no──► waited for the recorder │ too much work │ for a processor │ for memory │ disk traffic │ unknown
//! ```
//!
//! What it does not know: which of several causes made one frame late. It names what explains half of the time for which
//! the late thread was held up.

use mqttlab_units::Duration;
use serde_json::{Value, json};

use crate::histogram::HistogramSnapshot;
use crate::verdict::thread_delays::ThreadDelays;

/// What was seen of the machine during a run. `None` where the kernel does not say.
#[derive(Clone, Debug, Default)]
pub struct Contention {
    /// How late a timer of the same priority was.
    pub control: Option<HistogramSnapshot>,
    /// The part of its processors' time that the hypervisor gave to others, in percent.
    pub steal_percent: Option<f64>,
    /// Periods in which the control group had used up its quota of processor time.
    pub throttled_periods: Option<u64>,
    /// How long the emulator's thread could have run and did not get a processor.
    pub run_queue: Option<Duration>,
    /// The part of the run in which the emulator's thread had a processor, in percent.
    pub emulator_cpu_percent: Option<f64>,
    /// Its page faults that needed no disk.
    pub faults_minor: Option<u64>,
    /// Its page faults that waited for a disk.
    pub faults_major: Option<u64>,
    /// What held the emulator up.
    pub held_up: Option<ThreadDelays>,
    /// What held the control timer up.
    pub control_held_up: Option<ThreadDelays>,
    /// The processors' time that the hypervisor gave to others.
    pub steal: Option<Duration>,
    /// The part of the run in which some task of this machine waited for a disk, in percent.
    pub disk_pressure_percent: Option<f64>,
    /// The part of the run in which some task of this machine waited for memory, in percent.
    pub memory_pressure_percent: Option<f64>,
    /// Whether processors were kept from sleeping deeply (`/dev/cpu_dma_latency`).
    pub cpu_kept_awake: bool,
}

/// What was late, and what is known of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Late {
    /// At the 99th percentile.
    pub p99: Duration,
    /// How late the control timer was at the 99th percentile.
    pub control_p99: Option<Duration>,
    /// See [`Contention`].
    pub steal_percent: Option<f64>,
    /// See [`Contention`].
    pub throttled_periods: Option<u64>,
    /// See [`Contention`].
    pub control_held_up: Option<ThreadDelays>,
    /// See [`Contention`].
    pub steal: Option<Duration>,
    /// What held the late thread up, where that is known.
    pub held_up: Option<ThreadDelays>,
    /// The part of the run in which the late thread had a processor.
    pub cpu_percent: Option<f64>,
    /// The late thread's page faults that waited for a disk.
    pub faults_major: Option<u64>,
    /// See [`Contention`].
    pub disk_pressure_percent: Option<f64>,
    /// Whether threads had real-time priority.
    pub real_time: bool,
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatenessCause {
    /// The control group's quota of processor time was used up.
    Quota,
    /// The hypervisor gave the processors to others.
    Steal,
    /// Other programs went before threads without real-time priority.
    Priority,
    /// The machine wakes threads late, and does not say why.
    Machine,
    /// The recording waited for the disk.
    Disk,
    /// Memory had to be read from a disk.
    Memory,
    /// Other programs kept a disk busy, and the kernel with it.
    DiskTraffic,
    /// There was more to do than one thread can.
    Load,
    /// It was at work although it had little to do: much of it at once, or the virtual machine stood still.
    Burst,
    /// The kernel kept the processors for other work.
    Kernel,
    /// None of these.
    Unknown,
}

impl Contention {
    /// What is known of something that was late.
    pub fn late(&self, lateness: &HistogramSnapshot, real_time: bool) -> Late {
        let p99 = |snapshot: &HistogramSnapshot| snapshot.percentile(99.0);
        Late {
            p99: p99(lateness).unwrap_or(Duration::ZERO),
            control_p99: self.control.as_ref().and_then(p99),
            steal_percent: self.steal_percent,
            throttled_periods: self.throttled_periods,
            disk_pressure_percent: self.disk_pressure_percent,
            control_held_up: self.control_held_up,
            steal: self.steal,
            real_time,
            ..Late::default()
        }
    }

    /// As `run.json` holds it.
    pub fn facts(&self) -> Value {
        json!({
            "steal_percent": self.steal_percent,
            "throttled_periods": self.throttled_periods,
            "emulator_run_queue_ns": self.run_queue,
            "emulator_cpu_percent": self.emulator_cpu_percent,
            "emulator_faults_minor": self.faults_minor,
            "emulator_faults_major": self.faults_major,
            "emulator_held_up": self.held_up.map(|held| held.facts()),
            "control_timer_held_up": self.control_held_up.map(|held| held.facts()),
            "disk_pressure_percent": self.disk_pressure_percent,
            "memory_pressure_percent": self.memory_pressure_percent,
            "cpu_kept_awake": self.cpu_kept_awake,
        })
    }
}

impl Late {
    /// The cause that explains it.
    pub fn cause(&self) -> LatenessCause {
        if self.control_p99.is_some_and(|control| control.as_ns() * 2 >= self.p99.as_ns()) {
            return self.cause_of_machine();
        }
        let Some(held) = self.held_up.filter(|held| held.count > 0) else { return self.without_evidence() };
        if held.is_explained_by(held.recorder) {
            LatenessCause::Disk
        } else if self.cpu_percent >= Some(BUSY_PERCENT) {
            LatenessCause::Load
        } else if held.is_explained_by(held.working) {
            // A guest counts a pause of its virtual machine as time of the thread that ran.
            let is_idle = self.cpu_percent.is_some_and(|percent| percent < IDLE_PERCENT);
            if is_idle { LatenessCause::Burst } else { LatenessCause::Load }
        } else if held.is_explained_by(held.run_queue) {
            self.cause_of_waits()
        } else if self.faults_major.is_some_and(|faults| faults.saturating_mul(2) >= held.count) {
            LatenessCause::Memory
        } else {
            self.without_evidence()
        }
    }

    /// A thread that does nothing was as late.
    fn cause_of_machine(&self) -> LatenessCause {
        let held = self.control_held_up.unwrap_or_default();
        let steal_explains = self.steal.is_none_or(|steal| held.count == 0 || held.is_explained_by(steal));
        if self.throttled_periods.is_some_and(|periods| periods > 0) {
            LatenessCause::Quota
        } else if self.steal_percent.is_some_and(|percent| percent >= STEAL_PERCENT) && steal_explains {
            LatenessCause::Steal
        } else if held.is_explained_by(held.run_queue) {
            self.cause_of_waits()
        } else if !self.real_time {
            LatenessCause::Priority
        } else if self.disk_was_busy() {
            LatenessCause::DiskTraffic
        } else {
            LatenessCause::Machine
        }
    }

    /// It could have run, and had no processor. Before threads of the highest priority goes only the kernel's own work.
    fn cause_of_waits(&self) -> LatenessCause {
        if !self.real_time {
            LatenessCause::Priority
        } else if self.disk_was_busy() {
            LatenessCause::DiskTraffic
        } else {
            LatenessCause::Kernel
        }
    }

    fn without_evidence(&self) -> LatenessCause {
        if !self.real_time {
            LatenessCause::Priority
        } else if self.disk_was_busy() {
            LatenessCause::DiskTraffic
        } else {
            LatenessCause::Unknown
        }
    }

    fn disk_was_busy(&self) -> bool {
        self.disk_pressure_percent.is_some_and(|percent| percent >= DISK_PERCENT)
    }

    /// The cause and its remedy, as a part of a sentence.
    pub fn words(&self) -> String {
        let beside = self.control_p99.map_or(String::new(), |control| {
            format!("a control timer was as late: p99 {} beside {}", ms(control), ms(self.p99))
        });
        match self.cause() {
            LatenessCause::Quota => format!(
                "the processor quota of this container was used up in {} periods ({beside}); give it more processor time",
                self.throttled_periods.unwrap_or(0)
            ),
            LatenessCause::Steal => format!(
                "the host delayed this virtual machine (steal {:.1} %; {beside}); use a machine whose processors are \
                 not shared, or repeat the run when its host is quiet",
                self.steal_percent.unwrap_or(0.0)
            ),
            LatenessCause::Machine => format!(
                "this machine wakes even an idle thread late ({beside}), and reports no steal; use another machine"
            ),
            LatenessCause::Priority => {
                "other programs went first; run as root, or permit real-time priority (ulimit -r 10), and \
                                close what else runs on this machine"
                    .into()
            }
            LatenessCause::Disk => format!(
                "it waited {} for the disk that is recorded to; record to a faster one",
                ms(self.held().recorder)
            ),
            LatenessCause::Memory => format!(
                "it waited for memory that had to be read from a disk ({} page faults); close what uses memory, or permit \
                 locked memory (ulimit -l unlimited)",
                self.faults_major.unwrap_or(0)
            ),
            LatenessCause::DiskTraffic => format!(
                "programs of this machine waited for a disk for {:.0} % of the run, and the kernel's work for them goes before \
                 real-time threads{}; end what reads and writes much, or use another machine",
                self.disk_pressure_percent.unwrap_or(0.0),
                self.waited()
            ),
            LatenessCause::Load => format!(
                "its thread had no time left (it used {:.0} % of a processor); offer less, or use a faster machine",
                self.cpu_percent.unwrap_or(0.0)
            ),
            LatenessCause::Burst => format!(
                "it was at work for {} of {} in {} hold-ups, though it used {:.0} % of a processor over the run: much was due at \
                 once, or this virtual machine was stopped meanwhile, which counts as work; let less be due at one time, or \
                 use a machine whose processors are not shared",
                ms(self.held().working),
                ms(self.held().total),
                self.held().count,
                self.cpu_percent.unwrap_or(0.0)
            ),
            LatenessCause::Kernel => format!(
                "the kernel kept the processors for other work{}; close what else runs on this machine, use one with more \
                 processors, or start its kernel with preempt=full",
                self.waited()
            ),
            LatenessCause::Unknown => {
                "a control timer was in time and no cause was seen; close what else runs on this machine, or \
                               use one with more processors"
                    .into()
            }
        }
    }
}

impl Late {
    /// What held the late thread up; of the control timer where nothing is known of it.
    fn held(&self) -> ThreadDelays {
        self.held_up.or(self.control_held_up).unwrap_or_default()
    }

    /// In brackets, behind a cause.
    fn waited(&self) -> String {
        let ThreadDelays { count, total, run_queue, .. } = self.held();
        if count == 0 {
            return String::new();
        }
        format!(" ({} of {} in {count} hold-ups were waits for a processor)", ms(run_queue), ms(total))
    }
}

/// As people read it beside other latencies.
fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_ns() as f64 / 1e6)
}

/// Below a thousandth of the processors' time steal does not reach the 99th percentile.
const STEAL_PERCENT: f64 = 0.1;
/// Some task or other waits for a disk on every machine.
const DISK_PERCENT: f64 = 10.0;
/// A thread that is this busy has queues.
const BUSY_PERCENT: f64 = 80.0;
/// One that is less busy has them for moments only.
const IDLE_PERCENT: f64 = 20.0;

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Late = Late {
        p99: Duration::from_us(1960),
        control_p99: Some(Duration::from_us(20)),
        steal_percent: Some(0.0),
        throttled_periods: Some(0),
        control_held_up: None,
        steal: Some(Duration::ZERO),
        held_up: Some(HELD_UP),
        cpu_percent: Some(10.0),
        faults_major: Some(0),
        disk_pressure_percent: Some(0.0),
        real_time: true,
    };
    /// For 200 ms, nobody knows why.
    const HELD_UP: ThreadDelays = ThreadDelays {
        count: 40,
        total: Duration::from_ms(200),
        run_queue: Duration::from_ms(4),
        recorder: Duration::ZERO,
        working: Duration::ZERO,
    };
    const AT_WORK: ThreadDelays = ThreadDelays { working: Duration::from_ms(150), ..HELD_UP };
    const QUEUED: ThreadDelays = ThreadDelays { run_queue: Duration::from_ms(150), ..HELD_UP };
    /// A control timer that was late, too.
    const MACHINE: Late = Late { control_p99: Some(Duration::from_us(1100)), ..NOTHING };
    const BUSY_DISK: Option<f64> = Some(62.0);

    fn held(held_up: ThreadDelays) -> Late {
        Late { held_up: Some(held_up), ..NOTHING }
    }

    fn decided(table: &[(&str, Late, LatenessCause)]) {
        for (case, late, cause) in table {
            assert_eq!(late.cause(), *cause, "{case}");
        }
    }

    #[test]
    fn where_the_control_timer_was_late_the_machine_is_the_cause() {
        let stolen = |ms| Some(Duration::from_ms(ms));
        decided(&[
            ("steal, and the timer late", Late { steal_percent: Some(1.2), ..MACHINE }, LatenessCause::Steal),
            ("a little steal", Late { steal_percent: Some(0.05), ..MACHINE }, LatenessCause::Machine),
            ("steal that is not reported", Late { steal_percent: None, ..MACHINE }, LatenessCause::Machine),
            (
                "steal that explains the timer's hold-ups",
                Late {
                    steal_percent: Some(0.3),
                    steal: stolen(110),
                    control_held_up: Some(QUEUED),
                    ..MACHINE
                },
                LatenessCause::Steal,
            ),
            (
                "steal that is a small part of the timer's hold-ups",
                Late {
                    steal_percent: Some(0.3),
                    steal: stolen(30),
                    control_held_up: Some(QUEUED),
                    ..MACHINE
                },
                LatenessCause::Kernel,
            ),
            (
                "a quota goes before steal",
                Late { throttled_periods: Some(3), steal_percent: Some(9.0), ..MACHINE },
                LatenessCause::Quota,
            ),
            (
                "the timer late without priority",
                Late { real_time: false, ..MACHINE },
                LatenessCause::Priority,
            ),
            (
                "steal without priority",
                Late { real_time: false, steal_percent: Some(3.0), ..MACHINE },
                LatenessCause::Steal,
            ),
            (
                "disk traffic, and the timer late",
                Late { disk_pressure_percent: BUSY_DISK, ..MACHINE },
                LatenessCause::DiskTraffic,
            ),
            (
                "a little disk traffic",
                Late { disk_pressure_percent: Some(2.0), ..MACHINE },
                LatenessCause::Machine,
            ),
            (
                "the timer waited for a processor",
                Late { control_held_up: Some(QUEUED), ..MACHINE },
                LatenessCause::Kernel,
            ),
        ]);
    }

    #[test]
    fn where_the_control_timer_was_in_time_what_held_the_thread_up_decides() {
        decided(&[
            (
                "steal, but the timer in time",
                Late { steal_percent: Some(1.2), ..NOTHING },
                LatenessCause::Unknown,
            ),
            (
                "a quota, but the timer in time",
                Late { throttled_periods: Some(3), ..NOTHING },
                LatenessCause::Unknown,
            ),
            (
                "disk traffic",
                Late { disk_pressure_percent: BUSY_DISK, ..NOTHING },
                LatenessCause::DiskTraffic,
            ),
            (
                "a disk",
                held(ThreadDelays { recorder: Duration::from_ms(150), ..HELD_UP }),
                LatenessCause::Disk,
            ),
            (
                "a disk that was waited for a little",
                held(ThreadDelays { recorder: Duration::from_ms(9), ..HELD_UP }),
                LatenessCause::Unknown,
            ),
            (
                "a disk goes before others' traffic",
                Late {
                    disk_pressure_percent: BUSY_DISK,
                    ..held(ThreadDelays { recorder: Duration::from_ms(150), ..HELD_UP })
                },
                LatenessCause::Disk,
            ),
            ("page faults", Late { faults_major: Some(20), ..NOTHING }, LatenessCause::Memory),
            ("one page fault", Late { faults_major: Some(1), ..NOTHING }, LatenessCause::Unknown),
            ("a busy thread", Late { cpu_percent: Some(93.0), ..NOTHING }, LatenessCause::Load),
            ("too much at once", held(AT_WORK), LatenessCause::Burst),
            ("too much of the time", Late { cpu_percent: Some(45.0), ..held(AT_WORK) }, LatenessCause::Load),
            (
                "too much, nobody knows how often",
                Late { cpu_percent: None, ..held(AT_WORK) },
                LatenessCause::Load,
            ),
            ("no processor", held(QUEUED), LatenessCause::Kernel),
            (
                "no processor without priority",
                Late { real_time: false, ..held(QUEUED) },
                LatenessCause::Priority,
            ),
            (
                "no processor beside disk traffic",
                Late { disk_pressure_percent: BUSY_DISK, ..held(QUEUED) },
                LatenessCause::DiskTraffic,
            ),
        ]);
        let unseen = Late { control_p99: None, steal_percent: Some(5.0), held_up: None, ..NOTHING };
        assert_eq!(unseen.cause(), LatenessCause::Unknown);
    }

    #[test]
    fn a_virtual_machine_that_was_held_up_is_named() {
        let late = Late { steal_percent: Some(1.24), ..MACHINE };
        let expected = "the host delayed this virtual machine (steal 1.2 %; a control timer was as late: p99 1.10 ms \
                        beside 1.96 ms)";
        assert!(late.words().starts_with(expected), "{}", late.words());
        assert!(!late.words().contains("close what else runs"));
    }

    #[test]
    fn a_thread_with_little_to_do_is_not_said_to_have_had_no_time() {
        let words = Late { cpu_percent: Some(1.0), ..held(AT_WORK) }.words();
        let expected =
            "it was at work for 150.00 ms of 200.00 ms in 40 hold-ups, though it used 1 % of a processor";
        assert!(words.starts_with(expected), "{words}");
    }

    #[test]
    fn every_cause_has_words_and_a_remedy() {
        for late in [
            NOTHING,
            MACHINE,
            held(QUEUED),
            held(AT_WORK),
            held(ThreadDelays { recorder: Duration::from_ms(150), ..HELD_UP }),
            Late { disk_pressure_percent: BUSY_DISK, ..held(QUEUED) },
            Late { cpu_percent: Some(93.0), ..NOTHING },
        ] {
            assert!(late.words().contains("; "), "{}", late.words());
        }
    }
}
