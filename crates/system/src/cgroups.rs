//! The control groups that this process is in, and those above them: where their limits are written.
//!
//! What it does not know: where control groups are mounted elsewhere than at `/sys/fs/cgroup`.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The directories of a controller, from the process's own group up to the root, in both versions of control groups.
/// Not all of them have files of that controller.
pub fn directories(controller: &str) -> Vec<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    directories_in(Path::new(MOUNT), &groups, controller)
}

/// The number in a file of a group; `None` where there is no such file, or no limit (`max`).
pub fn number(group: &Path, file: &str) -> Option<u64> {
    fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()
}

/// The number behind a name in a file of a group that holds many.
pub fn entry(group: &Path, file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(group.join(file)).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Comes into groups, by their files `cgroup.procs`, open for writing. Makes only system calls, as a forked process must.
///
/// # Errors
/// What the kernel said.
pub fn enter(entrances: &[OwnedFd]) -> io::Result<()> {
    for entrance in entrances {
        // The process that writes.
        rustix::io::write(entrance, b"0")?;
    }
    Ok(())
}

/// How many processors' time a group may use, and the file that says so; `None` without a quota.
pub fn quota(group: &Path) -> Option<(f64, &'static str)> {
    // Version 1 writes -1 for no quota, version 2 `max`: neither is a number.
    let one = || {
        Some((number(group, "cpu.cfs_quota_us")?, number(group, "cpu.cfs_period_us")?, "cpu.cfs_quota_us"))
    };
    let two = || {
        let text = fs::read_to_string(group.join("cpu.max")).ok()?;
        let (quota, period) = text.trim().split_once(' ')?;
        Some((quota.parse().ok()?, period.parse().ok()?, "cpu.max"))
    };
    let (quota_us, period_us, file) = one().or_else(two)?;
    Some((quota_us as f64 / period_us as f64, file))
}

/// The group that has no real-time priority for its threads. Only version 1 has such limits, and a new group has none
/// (Documentation/scheduler/sched-rt-group.rst).
pub fn without_real_time() -> Option<PathBuf> {
    directories("cpu").into_iter().find(|group| permits_no_real_time(group))
}

fn permits_no_real_time(group: &Path) -> bool {
    number(group, "cpu.rt_runtime_us") == Some(0)
}

/// The directories of a controller where control groups are mounted at `mount` and `/proc/self/cgroup` says `groups`.
pub fn directories_in(mount: &Path, groups: &str, controller: &str) -> Vec<PathBuf> {
    let up_from = |(mount, group): (PathBuf, &str)| -> Vec<PathBuf> {
        let below = |group: &Path| mount.join(group.strip_prefix("/").unwrap_or(group));
        Path::new(group).ancestors().map(below).collect()
    };
    groups.lines().filter_map(|line| group_of(mount, line, controller)).flat_map(up_from).collect()
}

/// `hierarchy:controllers:path`: where the hierarchy with this controller is mounted, and the path in it.
fn group_of<'a>(mount: &Path, line: &'a str, controller: &str) -> Option<(PathBuf, &'a str)> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    match controllers {
        "" => Some((mount.to_owned(), path)),
        listed if listed.split(',').any(|name| name == controller) => Some((mount.join(listed), path)),
        _ => None,
    }
}

const MOUNT: &str = "/sys/fs/cgroup";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_that_limits_is_found_in_both_versions_with_those_above_it() {
        let found = |groups, controller| {
            let found = directories_in(Path::new("/m"), groups, controller);
            found.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(found("0::/a/b\n", "cpu"), "/m/a/b /m/a /m/");
        assert_eq!(found("4:cpu,cpuacct:/a\n", "cpu"), "/m/cpu,cpuacct/a /m/cpu,cpuacct/");
        assert_eq!(found("4:cpuset:/a\n", "cpu"), "");
        assert_eq!(found("9:name=systemd:/a\n4:memory:/x\n", "memory"), "/m/memory/x /m/memory/");
    }

    #[test]
    fn a_quota_and_real_time_priority_are_read_in_both_versions() {
        let group = std::env::temp_dir().join(format!("mqttlab-quota-{}", std::process::id()));
        fs::create_dir_all(&group).unwrap();
        let found = |file: &str, text: &str| {
            fs::write(group.join(file), text).unwrap();
            quota(&group)
        };
        assert_eq!(quota(&group), None);
        assert_eq!(found("cpu.max", "max 100000\n"), None);
        assert_eq!(found("cpu.max", "150000 100000\n"), Some((1.5, "cpu.max")));
        fs::remove_file(group.join("cpu.max")).unwrap();
        assert_eq!(found("cpu.cfs_quota_us", "-1\n"), None);
        assert_eq!(found("cpu.cfs_period_us", "100000\n"), None);
        assert_eq!(found("cpu.cfs_quota_us", "10000\n"), Some((0.1, "cpu.cfs_quota_us")));
        assert!(!permits_no_real_time(&group));
        fs::write(group.join("cpu.rt_runtime_us"), "950000\n").unwrap();
        assert!(!permits_no_real_time(&group));
        fs::write(group.join("cpu.rt_runtime_us"), "0\n").unwrap();
        assert!(permits_no_real_time(&group));
        fs::remove_dir_all(group).unwrap();
    }
}
