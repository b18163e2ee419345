//! Control groups that hold the servers and programs of a host to its limits.
//!
//! ```text
//!   /sys/fs/cgroup/cpu/…/mqttlab-PID-HOST      cpu.cfs_quota_us                  version 2: cpu.max
//!                 /memory/…                    memory.limit_in_bytes                        memory.max
//!                 /blkio/…                     blkio.throttle.write_bps_device              io.max
//! ```
//!
//! A group is made below the one that this process is in, so that what holds for the engine holds for its servers, too. In
//! version 2 a group with processes has no children with controllers: there it is made below the next one that hands
//! the controller down. It is locked (flock) while its engine lives; one whose engine was killed is removed by the next run with
//! limits, and by the next command (`mqttlab/control_groups.py`).
//!
//! The disk's rate holds for what a program waits for (fsync, as Mosquitto does; measured: 3.1 MB in 3.1 s at 1 MB/s). What it
//! leaves to the kernel to write later is not held up in version 1: the kernel writes it for nobody.
//!
//! What it does not hold: real-time threads, whom a quota does not concern, so that held servers have no real-time priority; and
//! the kernel's work for a network, which is nobody's.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mqttlab_plan::{HostLimits, Plan, out_of_memory};
use mqttlab_system::cgroups;

/// The groups of a run, by host.
pub(crate) type LimitGroups = BTreeMap<usize, Arc<LimitGroup>>;

/// What holds the programs of a host.
#[derive(Debug)]
pub struct LimitGroup {
    groups: Vec<Group>,
    memory_bytes: Option<u64>,
    has_slow_disk: bool,
}

/// A group of one controller, or of several in version 2.
#[derive(Debug)]
struct Group {
    path: PathBuf,
    _lock: fs::File,
}

/// A controller, and what it is called.
struct Controller {
    /// In version 1.
    first: &'static str,
    /// In version 2.
    second: &'static str,
    /// The field of a scenario that needs it.
    field: &'static str,
}

const PROCESSOR: Controller = Controller { first: "cpu", second: "cpu", field: "processor" };
const MEMORY: Controller = Controller { first: "memory", second: "memory", field: "memory" };
const DISK: Controller = Controller { first: "blkio", second: "io", field: "disk_rate" };

/// Makes the groups of a plan.
///
/// # Errors
/// A sentence: the field, and what this machine lacks.
pub(crate) fn of(plan: &Plan) -> Result<LimitGroups, String> {
    let mut groups = LimitGroups::new();
    for (number, host) in plan.hosts.iter().enumerate() {
        let Some(limits) = &host.limits else { continue };
        let made = LimitGroup::new(limits, &format!("{}-{number}", std::process::id()));
        let made = made.map_err(|(field, problem)| {
            format!("`hosts.{}.limits.{field}` cannot be set on this machine: {problem}; leave it out, or simulate", host.name)
        })?;
        groups.insert(number, Arc::new(made));
    }
    Ok(groups)
}

/// Which limits can be set here, for `mqttlab doctor`.
///
/// # Errors
/// What is missing.
pub(crate) fn in_words() -> Result<String, String> {
    let limits = HostLimits {
        processor: mqttlab_units::Ratio::new(1, 2).ok(),
        memory_bytes: Some(1 << 30),
        disk_bytes_s: Some(1 << 30),
    };
    let alone = [
        HostLimits { memory_bytes: None, disk_bytes_s: None, ..limits },
        HostLimits { processor: None, disk_bytes_s: None, ..limits },
        HostLimits { processor: None, memory_bytes: None, ..limits },
    ];
    let tried: Vec<_> = (0..)
        .zip(alone)
        .map(|(number, limits)| LimitGroup::new(&limits, &format!("{}-try-{number}", std::process::id())))
        .collect();
    let missing: Vec<String> = tried
        .iter()
        .filter_map(|made| made.as_ref().err().map(|(field, problem)| format!("{field}: {problem}")))
        .collect();
    if missing.is_empty() { Ok("processor, memory, disk_rate".into()) } else { Err(missing.join("; ")) }
}

impl LimitGroup {
    fn new(limits: &HostLimits, name: &str) -> Result<LimitGroup, (&'static str, String)> {
        let mut made = LimitGroup {
            groups: Vec::new(),
            memory_bytes: limits.memory_bytes,
            has_slow_disk: limits.disk_bytes_s.is_some(),
        };
        if let Some(share) = limits.processor {
            let (quota_us, period_us) = quota(share.as_f64());
            made.set(&PROCESSOR, name, |path, is_second| {
                if is_second {
                    return write(path, "cpu.max", &format!("{quota_us} {period_us}"));
                }
                write(path, "cpu.cfs_period_us", &period_us.to_string())?;
                write(path, "cpu.cfs_quota_us", &quota_us.to_string())
            })?;
        }
        if let Some(bytes) = limits.memory_bytes {
            made.set(&MEMORY, name, |path, is_second| {
                let [limit, swap] = if is_second {
                    ["memory.max", "memory.swap.max"]
                } else {
                    ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]
                };
                write(path, limit, &bytes.to_string())?;
                // Not every kernel counts what is swapped out; without swap it does not matter.
                let swapped = if is_second { 0 } else { bytes };
                let _ = write(path, swap, &swapped.to_string());
                Ok(())
            })?;
        }
        if let Some(rate) = limits.disk_bytes_s {
            let device = disk_of(&std::env::temp_dir()).map_err(|problem| (DISK.field, problem))?;
            made.set(&DISK, name, |path, is_second| {
                if is_second {
                    return write(path, "io.max", &format!("{device} wbps={rate}"));
                }
                write(path, "blkio.throttle.write_bps_device", &format!("{device} {rate}"))
            })?;
        }
        Ok(made)
    }

    /// Makes a group of a controller, unless it is there, and sets its limit.
    fn set(
        &mut self,
        controller: &Controller,
        name: &str,
        limit: impl Fn(&Path, bool) -> Result<(), String>,
    ) -> Result<(), (&'static str, String)> {
        let failed = |problem: String| (controller.field, problem);
        let (above, is_second) = place_of(controller).map_err(failed)?;
        let path = above.join(format!("{PREFIX}{name}"));
        if !self.groups.iter().any(|group| group.path == path) {
            self.groups.push(make(&above, path.clone()).map_err(failed)?);
        }
        limit(&path, is_second).map_err(failed)
    }

    /// What a process comes into the groups by ([`cgroups::enter`]).
    pub(crate) fn entrances(&self) -> io::Result<Vec<OwnedFd>> {
        let open = |group: &Group| {
            fs::OpenOptions::new().write(true).open(group.path.join("cgroup.procs")).map(OwnedFd::from)
        };
        self.groups.iter().map(open).collect()
    }

    /// How often the kernel has killed one of its processes for memory.
    pub(crate) fn memory_kills(&self) -> u64 {
        let killed = |group: &Group| {
            ["memory.oom_control", "memory.events"]
                .into_iter()
                .find_map(|file| cgroups::entry(&group.path, file, "oom_kill"))
        };
        self.groups.iter().filter_map(killed).sum()
    }

    /// Whether its programs may wait for their disk.
    pub(crate) fn has_slow_disk(&self) -> bool {
        self.has_slow_disk
    }

    /// How a process ended that the kernel has killed for memory.
    pub(crate) fn memory_death(&self) -> String {
        out_of_memory(self.memory_bytes.unwrap_or_default())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its last process has been waited for, but may still be leaving.
        for _ in 0..TRIES {
            match fs::remove_dir(&self.path) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    thread::sleep(Duration::from_millis(10))
                }
                _ => return,
            }
        }
    }
}

/// Quota and period, in microseconds. The kernel gives out 1 ms at least; the shorter the period, the shorter the pauses of who has
/// used up its quota.
fn quota(share: f64) -> (u64, u64) {
    let period_us = (QUOTA_US_MIN / share).max(PERIOD_US);
    ((period_us * share).round() as u64, period_us.round() as u64)
}

/// Where a group of this controller can be made, and whether that is in version 2.
fn place_of(controller: &Controller) -> Result<(PathBuf, bool), String> {
    place_in(controller, &cgroups::directories(controller.first))
}

fn place_in(controller: &Controller, directories: &[PathBuf]) -> Result<(PathBuf, bool), String> {
    let Controller { first, second, .. } = controller;
    let hands_down = |group: &Path| fs::read_to_string(group.join("cgroup.subtree_control")).ok();
    for group in directories {
        match hands_down(group) {
            None if group.join("cgroup.procs").exists() => return Ok((group.clone(), false)),
            Some(handed) if handed.split_whitespace().any(|name| name == *second) => {
                return Ok((group.clone(), true));
            }
            _ => {}
        }
    }
    Err(format!(
        "there is no control group with the controller `{first}` (version 1), nor one that hands `{second}` down (version 2)"
    ))
}

/// Makes a group and locks it; removes those of engines that are no more.
fn make(above: &Path, path: PathBuf) -> Result<Group, String> {
    let said = |error: io::Error| format!("the control group {} cannot be made: {error}", path.display());
    let whole = fs::File::open(above).map_err(said)?;
    whole.lock().map_err(said)?;
    remove_abandoned(above);
    fs::create_dir(&path).map_err(said)?;
    let lock = fs::File::open(&path).map_err(said)?;
    lock.lock().map_err(said)?;
    Ok(Group { path, _lock: lock })
}

fn remove_abandoned(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_ours && fs::File::open(&path).is_ok_and(|group| group.try_lock().is_ok()) {
            // Refused while a process of it is still ending.
            let _ = fs::remove_dir(path);
        }
    }
}

fn write(group: &Path, file: &str, text: &str) -> Result<(), String> {
    fs::write(group.join(file), text).map_err(|error| format!("{}: {error}", group.join(file).display()))
}

/// The disk that a directory is on: `major:minor` of all of it, as a partition has no rate.
fn disk_of(directory: &Path) -> Result<String, String> {
    let found = fs::metadata(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let device = format!("{}:{}", libc::major(found.dev()), libc::minor(found.dev()));
    let known = PathBuf::from(format!("/sys/dev/block/{device}"));
    let whole = if known.join("partition").exists() { known.join("..") } else { known };
    fs::read_to_string(whole.join("dev")).map(|text| text.trim().to_owned()).map_err(|_| {
        format!(
            "servers write to {}, which is on no disk; set TMPDIR to a directory that is on one",
            directory.display()
        )
    })
}

const PREFIX: &str = "mqttlab-";
/// For 2 s.
const TRIES: u32 = 200;
const PERIOD_US: f64 = 10_000.0;
const QUOTA_US_MIN: f64 = 1_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_1_ms_or_more_and_its_period_as_short_as_that_allows() {
        assert_eq!(quota(0.25), (2_500, 10_000));
        assert_eq!(quota(1.0), (10_000, 10_000));
        assert_eq!(quota(0.05), (1_000, 20_000));
        assert_eq!(quota(0.01), (1_000, 100_000));
    }

    #[test]
    fn in_version_2_a_group_is_made_where_the_controller_is_handed_down() {
        let mount = std::env::temp_dir().join(format!("mqttlab-handed-{}", std::process::id()));
        let own = mount.join("user/session");
        fs::create_dir_all(&own).unwrap();
        for (group, handed) in
            [(mount.clone(), "cpu io memory"), (mount.join("user"), "memory"), (own.clone(), "")]
        {
            fs::write(group.join("cgroup.subtree_control"), handed).unwrap();
            fs::write(group.join("cgroup.procs"), "").unwrap();
        }
        let directories = [own, mount.join("user"), mount.clone()];
        assert_eq!(place_in(&MEMORY, &directories), Ok((mount.join("user"), true)));
        assert_eq!(place_in(&DISK, &directories), Ok((mount.clone(), true)));
        fs::write(mount.join("cgroup.subtree_control"), "memory").unwrap();
        let error = place_in(&PROCESSOR, &directories).unwrap_err();
        assert!(error.contains("controller `cpu`"), "{error}");
        // In version 1 the own group is as good as any.
        let first = mount.join("first");
        fs::create_dir(&first).unwrap();
        fs::write(first.join("cgroup.procs"), "").unwrap();
        assert_eq!(place_in(&PROCESSOR, std::slice::from_ref(&first)), Ok((first, false)));
        fs::remove_dir_all(mount).unwrap();
    }

    #[test]
    fn a_directory_in_memory_is_on_no_disk() {
        let error = disk_of(Path::new("/proc")).unwrap_err();
        assert!(error.starts_with("servers write to /proc, which is on no disk"), "{error}");
    }
}
