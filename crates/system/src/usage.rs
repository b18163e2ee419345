//! What processes and the machine have used, from `/proc`.
//!
//! What it does not see: processes of other PID namespaces' parents, and what ended children had used before
//! their parent waited for them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use mqttlab_units::Duration;

use crate::cgroups;

/// What a process tree has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in user mode.
    pub cpu_user: Duration,
    /// Processor time in the kernel.
    pub cpu_system: Duration,
    /// Memory resident.
    pub rss_bytes: u64,
    /// Voluntary context switches.
    pub switches_voluntary: u64,
    /// Involuntary context switches.
    pub switches_involuntary: u64,
    /// Processor time to the nanosecond, of a thread; `None` of others and where the kernel does not count it.
    pub on_processor: Option<Duration>,
    /// How long its threads could have run and had no processor. Of a thread that has ended nothing is known; `None`
    /// where the kernel does not count it.
    pub run_queue: Option<Duration>,
    /// Page faults that needed no disk.
    pub faults_minor: u64,
    /// Page faults that waited for a disk.
    pub faults_major: u64,
    /// Processor time that the hypervisor gave to others; of the machine only.
    pub steal: Option<Duration>,
    /// Why one of its processes does not run.
    pub stall: Option<StallCause>,
}

/// Why a process does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StallCause {
    /// It waits for a disk and takes no signals (`D` in `/proc/PID/stat`).
    Disk,
    /// A signal has stopped it (`T`), or a debugger holds it (`t`).
    Stopped,
}

/// The machine's processor time since it started, over all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTime {
    /// What the hypervisor gave to others.
    pub steal: Duration,
    /// All of it, idle or not.
    pub total: Duration,
}

/// How long some task has waited for something that another had, since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// For a processor.
    pub cpu: Duration,
    /// For memory.
    pub memory: Duration,
    /// For a disk.
    pub io: Duration,
}

impl Usage {
    /// Of several processes together; those that have ended count nothing.
    pub fn of(processes: &[i32]) -> Usage {
        let of_one = |process: &i32| one(Path::new(&format!("/proc/{process}")));
        processes.iter().filter_map(of_one).fold(Usage::default(), Usage::plus)
    }

    /// Of these and those processes together.
    #[must_use]
    pub fn plus(self, one: Usage) -> Usage {
        Usage {
            cpu_user: self.cpu_user + one.cpu_user,
            cpu_system: self.cpu_system + one.cpu_system,
            rss_bytes: self.rss_bytes + one.rss_bytes,
            switches_voluntary: self.switches_voluntary + one.switches_voluntary,
            switches_involuntary: self.switches_involuntary + one.switches_involuntary,
            run_queue: added(self.run_queue, one.run_queue),
            faults_minor: self.faults_minor + one.faults_minor,
            faults_major: self.faults_major + one.faults_major,
            steal: None,
            stall: self.stall.max(one.stall),
            on_processor: None,
        }
    }

    /// Of one thread of this process; its memory is the process's.
    pub fn of_thread(thread: i32) -> Usage {
        let directory = format!("/proc/self/task/{thread}");
        let counted = fs::read_to_string(format!("{directory}/schedstat")).ok();
        let usage = one(Path::new(&directory)).unwrap_or_default();
        Usage { on_processor: counted.map(|text| schedstat(&text, 0)), ..usage }
    }

    /// Of the whole machine since it started.
    pub fn of_machine() -> Usage {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let faults = fs::read_to_string("/proc/vmstat").unwrap_or_default();
        let waits = fs::read_to_string("/proc/schedstat").ok();
        let usage = machine(&stat, &memory).unwrap_or_default();
        let (faults_minor, faults_major) = faults_of_machine(&faults);
        Usage { run_queue: waits.map(|text| waits_of_machine(&text)), faults_minor, faults_major, ..usage }
    }
}

impl StallCause {
    /// By the state of `/proc/PID/stat`.
    pub fn of(state: &str) -> Option<StallCause> {
        match state {
            "T" | "t" => Some(StallCause::Stopped),
            "D" => Some(StallCause::Disk),
            _ => None,
        }
    }
}

impl ProcessorTime {
    /// Now; `None` where the kernel does not say.
    pub fn now() -> Option<ProcessorTime> {
        ProcessorTime::of(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn of(stat: &str) -> Option<ProcessorTime> {
        let ticks = ticks(stat)?;
        // Time of guests is in that of users.
        let total: u64 = ticks.iter().take(STAT_STEAL + 1).sum();
        let time = |ticks: u64| Duration::from_ns(ticks * tick_ns());
        Some(ProcessorTime { steal: time(*ticks.get(STAT_STEAL)?), total: time(total) })
    }

    /// The part that the hypervisor gave to others since an earlier moment, in percent.
    pub fn steal_percent_since(self, earlier: ProcessorTime) -> f64 {
        let total = self.total.saturating_sub(earlier.total).as_s_f64();
        let steal = self.steal.saturating_sub(earlier.steal).as_s_f64();
        if total > 0.0 { 100.0 * steal / total } else { 0.0 }
    }
}

/// Periods in which the control groups of this process, or those above them, had used up their processor time; `None`
/// where nothing is limited. The kernel counts them in groups without a quota, too, and there are none.
pub fn throttled_periods() -> Option<u64> {
    let groups = cgroups::directories("cpu");
    groups.iter().filter_map(|group| throttled_periods_of(group)).reduce(|sum, one| sum + one)
}

fn throttled_periods_of(group: &Path) -> Option<u64> {
    cgroups::quota(group)?;
    cgroups::entry(group, "cpu.stat", "nr_throttled")
}

impl Pressure {
    /// Now; zero where the kernel does not count it.
    pub fn now() -> Pressure {
        let of = |what: &str| {
            fs::read_to_string(format!("/proc/pressure/{what}")).map_or(Duration::ZERO, |s| total(&s))
        };
        Pressure { cpu: of("cpu"), memory: of("memory"), io: of("io") }
    }

    /// Whether the kernel counts it.
    pub fn is_available() -> bool {
        fs::metadata("/proc/pressure/cpu").is_ok()
    }
}

/// All descendants of a process, without itself.
pub fn descendants(process: i32) -> Vec<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else { continue };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let parent = fields(&stat).and_then(|mut fields| fields.nth(STAT_PARENT)?.parse().ok());
        children.entry(parent.unwrap_or(0)).or_default().push(pid);
    }
    let mut found = Vec::new();
    let mut unexplored = vec![process];
    while let Some(parent) = unexplored.pop() {
        let of_parent = children.remove(&parent).unwrap_or_default();
        found.extend(&of_parent);
        unexplored.extend(of_parent);
    }
    found
}

fn one(directory: &Path) -> Option<Usage> {
    let stat = fs::read_to_string(directory.join("stat")).ok()?;
    let fields: Vec<&str> = fields(&stat)?.collect();
    let ticks =
        |index: usize| fields.get(index)?.parse().ok().map(|ticks: u64| Duration::from_ns(ticks * tick_ns()));
    let pages: u64 = fields.get(STAT_RSS)?.parse().ok()?;
    let count = |index: usize| -> Option<u64> { fields.get(index)?.parse().ok() };
    let (switches_voluntary, switches_involuntary, run_queue) = scheduled(directory);
    Some(Usage {
        cpu_user: ticks(STAT_USER)?,
        cpu_system: ticks(STAT_SYSTEM)?,
        rss_bytes: pages * page_bytes(),
        switches_voluntary,
        switches_involuntary,
        run_queue,
        faults_minor: count(STAT_FAULTS_MINOR)?,
        faults_major: count(STAT_FAULTS_MAJOR)?,
        steal: None,
        stall: fields.first().and_then(|state| StallCause::of(state)),
        on_processor: None,
    })
}

/// Switches of all its threads, and what they waited: `/proc/PID/status` speaks of the first one only.
fn scheduled(directory: &Path) -> (u64, u64, Option<Duration>) {
    let threads =
        fs::read_dir(directory.join("task")).into_iter().flatten().flatten().map(|thread| thread.path());
    let mut threads: Vec<PathBuf> = threads.collect();
    if threads.is_empty() {
        threads.push(directory.to_owned());
    }
    let mut sum = (0, 0, None);
    for thread in threads {
        let status = fs::read_to_string(thread.join("status")).unwrap_or_default();
        let value = |name: &str| -> u64 {
            status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0)
        };
        sum.0 += value("voluntary_ctxt_switches:");
        sum.1 += value("nonvoluntary_ctxt_switches:");
        sum.2 =
            added(sum.2, fs::read_to_string(thread.join("schedstat")).ok().map(|text| schedstat(&text, 1)));
    }
    sum
}

fn added(sum: Option<Duration>, one: Option<Duration>) -> Option<Duration> {
    one.map_or(sum, |one| Some(sum.unwrap_or(Duration::ZERO) + one))
}

/// `/proc/PID/schedstat`: time on a processor, time waiting for one, in nanoseconds, and turns.
fn schedstat(text: &str, field: usize) -> Duration {
    Duration::from_ns(text.split_whitespace().nth(field).and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

/// `/proc/schedstat`: of each processor the time that its threads waited is the second field from the end.
fn waits_of_machine(schedstat: &str) -> Duration {
    let of_processor =
        |line: &str| -> Option<u64> { line.split_whitespace().rev().nth(1).and_then(|ns| ns.parse().ok()) };
    Duration::from_ns(schedstat.lines().filter(|line| line.starts_with("cpu")).filter_map(of_processor).sum())
}

/// `/proc/vmstat` counts major faults among all of them.
fn faults_of_machine(vmstat: &str) -> (u64, u64) {
    let value = |name: &str| -> u64 {
        vmstat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0)
    };
    let major = value("pgmajfault ");
    (value("pgfault ").saturating_sub(major), major)
}

/// `cpu  user nice system idle iowait irq softirq steal ...`.
fn ticks(stat: &str) -> Option<Vec<u64>> {
    Some(stat.lines().next()?.split_whitespace().skip(1).map_while(|tick| tick.parse().ok()).collect())
}

/// The processors' ticks, and `ctxt` switches.
fn machine(stat: &str, memory: &str) -> Option<Usage> {
    let ticks = ticks(stat)?;
    let of = |indices: &[usize]| {
        let sum: u64 = indices.iter().filter_map(|index| ticks.get(*index)).sum();
        Duration::from_ns(sum * tick_ns())
    };
    let kib = |name: &str| -> Option<u64> {
        let rest = memory.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        rest.split_whitespace().next()?.parse().ok()
    };
    let used = kib("MemTotal").zip(kib("MemAvailable")).map_or(0, |(total, free)| total.saturating_sub(free));
    let switches = stat.lines().find_map(|line| line.strip_prefix("ctxt ")?.trim().parse().ok());
    Some(Usage {
        cpu_user: of(&[0, 1]),
        cpu_system: of(&[2, 5, 6]),
        rss_bytes: used * 1024,
        switches_voluntary: switches.unwrap_or(0),
        switches_involuntary: 0,
        steal: ticks.get(STAT_STEAL).map(|ticks| Duration::from_ns(ticks * tick_ns())),
        ..Usage::default()
    })
}

/// The fields of `/proc/PID/stat` after the program's name, which may hold spaces and brackets itself.
fn fields(stat: &str) -> Option<impl Iterator<Item = &str>> {
    Some(stat[stat.rfind(')')? + 1..].split_ascii_whitespace())
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`, in microseconds.
fn total(pressure: &str) -> Duration {
    let total = pressure.lines().next().and_then(|line| line.rsplit_once("total=")?.1.trim().parse().ok());
    Duration::from_us(total.unwrap_or(0))
}

fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second()
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

// proc_pid_stat(5), counted from the field after the name.
const STAT_PARENT: usize = 1;
const STAT_FAULTS_MINOR: usize = 7;
const STAT_FAULTS_MAJOR: usize = 9;
const STAT_USER: usize = 11;
const STAT_SYSTEM: usize = 12;
const STAT_RSS: usize = 21;

// proc_stat(5), counted from the field after `cpu`.
const STAT_STEAL: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_part_of_all_processor_time_without_counting_guests_twice() {
        let before = ProcessorTime::of("cpu  100 0 50 840 10 0 0 0 70 0\n").unwrap();
        let after = ProcessorTime::of("cpu  160 0 60 860 10 0 0 10 90 0\n").unwrap();
        assert_eq!(after.steal_percent_since(before), 10.0);
        assert_eq!(after.steal_percent_since(after), 0.0);
    }

    #[test]
    fn throttled_periods_are_those_of_groups_with_a_quota() {
        let group = std::env::temp_dir().join(format!("mqttlab-throttled-{}", std::process::id()));
        fs::create_dir_all(&group).unwrap();
        // The root of version 1 has the file, too, and no quota.
        fs::write(group.join("cpu.stat"), "nr_periods 9\nnr_throttled 4\n").unwrap();
        fs::write(group.join("cpu.cfs_quota_us"), "-1\n").unwrap();
        fs::write(group.join("cpu.cfs_period_us"), "100000\n").unwrap();
        assert_eq!(throttled_periods_of(&group), None);
        fs::write(group.join("cpu.cfs_quota_us"), "50000\n").unwrap();
        assert_eq!(throttled_periods_of(&group), Some(4));
        fs::remove_dir_all(group).unwrap();
    }

    #[test]
    fn waits_and_faults_are_read_where_the_kernel_writes_them() {
        assert_eq!(schedstat("1000 2120984 7\n", 1), Duration::from_ns(2_120_984));
        let machine = "version 15\ncpu0 0 0 0 0 0 0 900 100 5\ndomain0 03 1 2\ncpu1 0 0 0 0 0 0 900 50 5\n";
        assert_eq!(waits_of_machine(machine), Duration::from_ns(150));
        assert_eq!(faults_of_machine("pgfault 100\npgmajfault 3\n"), (97, 3));
    }

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "7 (a) b) S 3 7 7";
        assert_eq!(fields(stat).unwrap().nth(STAT_PARENT), Some("3"));
    }

    #[test]
    fn this_process_has_memory() {
        assert!(Usage::of(&[std::process::id() as i32]).rss_bytes > 100_000);
    }

    #[test]
    fn the_machine_counts_ticks_and_kibibytes() {
        let stat = "cpu  100 0 50 9 9 0 0 0 0 0\ncpu0 1 1\nctxt 77\n";
        let memory = "MemTotal:       2000 kB\nMemAvailable:    500 kB\n";
        let usage = machine(stat, memory).unwrap();
        assert_eq!((usage.rss_bytes, usage.switches_voluntary), (1500 * 1024, 77));
        assert_eq!(usage.cpu_user.as_ns(), 2 * usage.cpu_system.as_ns());
    }

    #[test]
    fn pressure_is_the_total_in_microseconds() {
        assert_eq!(
            total("some avg10=0.00 avg60=0.00 avg300=0.00 total=1500\nfull x"),
            Duration::from_us(1500)
        );
        assert_eq!(total(""), Duration::ZERO);
    }
}
