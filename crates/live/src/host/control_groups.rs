//! The control groups that this process is in, and those above them: where their limits are written.
//!
//! What it does not know: where control groups are mounted elsewhere than at `/sys/fs/cgroup`.

use std::fs;
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

pub(crate) fn directories_in(mount: &Path, groups: &str, controller: &str) -> Vec<PathBuf> {
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
}
