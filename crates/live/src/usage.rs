//! What processes and the machine have used, from `/proc`.
//!
//! What it does not see: processes of other PID namespaces' parents, and what ended children had used before
//! their parent waited for them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use mqttlab_recording::{Process, Resource};
use mqttlab_units::{Duration, Instant};

/// What a process tree has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in user mode.
    pub cpu_user: Duration,
    /// Processor time in the kernel.
    pub cpu_system: Duration,
    /// Memory resident.
    pub rss_bytes: u64,
    /// Times it gave the processor up.
    pub switches_voluntary: u64,
    /// Times the processor was taken from it.
    pub switches_involuntary: u64,
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
    pub fn of(processes: &[libc::pid_t]) -> Usage {
        let of_one = |process: &libc::pid_t| one(Path::new(&format!("/proc/{process}")));
        processes.iter().filter_map(of_one).fold(Usage::default(), |sum, one| Usage {
            cpu_user: sum.cpu_user + one.cpu_user,
            cpu_system: sum.cpu_system + one.cpu_system,
            rss_bytes: sum.rss_bytes + one.rss_bytes,
            switches_voluntary: sum.switches_voluntary + one.switches_voluntary,
            switches_involuntary: sum.switches_involuntary + one.switches_involuntary,
        })
    }

    /// Of one thread of this process; its memory is the process's.
    pub fn of_thread(thread: libc::pid_t) -> Usage {
        one(Path::new(&format!("/proc/self/task/{thread}"))).unwrap_or_default()
    }

    /// Of the whole machine since it started.
    pub fn of_machine() -> Usage {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        machine(&stat, &memory).unwrap_or_default()
    }

    /// As a row of the recording.
    pub fn row(self, at: Instant, process: Process, pressure: Pressure) -> Resource {
        Resource {
            at,
            process,
            cpu_user: self.cpu_user,
            cpu_system: self.cpu_system,
            rss_bytes: self.rss_bytes,
            switches_voluntary: self.switches_voluntary,
            switches_involuntary: self.switches_involuntary,
            pressure_cpu: pressure.cpu,
            pressure_memory: pressure.memory,
            pressure_io: pressure.io,
        }
    }
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
pub fn descendants(process: libc::pid_t) -> Vec<libc::pid_t> {
    let mut children: BTreeMap<libc::pid_t, Vec<libc::pid_t>> = BTreeMap::new();
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
    let (switches_voluntary, switches_involuntary) = switches(directory);
    Some(Usage {
        cpu_user: ticks(STAT_USER)?,
        cpu_system: ticks(STAT_SYSTEM)?,
        rss_bytes: pages * page_bytes(),
        switches_voluntary,
        switches_involuntary,
    })
}

/// Of all its threads: `/proc/PID/status` speaks of the first one only.
fn switches(directory: &Path) -> (u64, u64) {
    let threads =
        fs::read_dir(directory.join("task")).into_iter().flatten().flatten().map(|thread| thread.path());
    let mut threads: Vec<PathBuf> = threads.collect();
    if threads.is_empty() {
        threads.push(directory.to_owned());
    }
    let mut sum = (0, 0);
    for thread in threads {
        let status = fs::read_to_string(thread.join("status")).unwrap_or_default();
        let value = |name: &str| -> u64 {
            status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0)
        };
        sum.0 += value("voluntary_ctxt_switches:");
        sum.1 += value("nonvoluntary_ctxt_switches:");
    }
    sum
}

/// `cpu  user nice system idle iowait irq softirq steal ...` in ticks, and `ctxt` switches.
fn machine(stat: &str, memory: &str) -> Option<Usage> {
    let ticks: Vec<u64> =
        stat.lines().next()?.split_whitespace().skip(1).map_while(|tick| tick.parse().ok()).collect();
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
    // SAFETY: sysconf takes an integer.
    1_000_000_000 / unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64
}

fn page_bytes() -> u64 {
    // SAFETY: sysconf takes an integer.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as u64
}

// proc_pid_stat(5), counted from the field after the name.
const STAT_PARENT: usize = 1;
const STAT_USER: usize = 11;
const STAT_SYSTEM: usize = 12;
const STAT_RSS: usize = 21;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "7 (a) b) S 3 7 7";
        assert_eq!(fields(stat).unwrap().nth(STAT_PARENT), Some("3"));
    }

    #[test]
    fn this_process_has_memory() {
        assert!(Usage::of(&[std::process::id() as libc::pid_t]).rss_bytes > 100_000);
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
