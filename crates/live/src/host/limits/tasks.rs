//! How many processes and threads this user and this process's control groups may have.
//!
//! What it does not ask: the limits of the whole machine (`kernel.threads-max`, `kernel.pid_max`), which programs of
//! other users use up as well.

use std::fs;
use std::path::{Path, PathBuf};

use mqttlab_system::cgroups::{directories, number};
use mqttlab_system::limits;

/// Refuses a run that needs more processes and threads than it may have. Call it before this process is root in a user
/// namespace of its own, where it seems to be another user.
///
/// # Errors
/// A sentence with the limit, the need and the remedy.
pub(crate) fn check(needed: u64) -> Result<(), String> {
    match least().filter(|limit| needed > limit.left()) {
        None => Ok(()),
        Some(limit) => Err(limit.refusal(needed)),
    }
}

/// How many there may be, for `mqttlab doctor`.
pub(crate) fn in_words() -> String {
    least().map_or("no limit on processes and threads".into(), |limit| {
        format!("{} more processes and threads for {}", limit.left(), limit.place)
    })
}

/// A limit, and how much of it is used.
#[derive(Debug, PartialEq, Eq)]
struct TaskLimit {
    limit: u64,
    used: u64,
    place: String,
    remedy: String,
}

impl TaskLimit {
    fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    fn refusal(&self, needed: u64) -> String {
        let TaskLimit { limit, used, place, remedy } = self;
        format!(
            "this plan needs about {needed} processes and threads, but {place} may have {limit} and has {used}: {remedy}, \
             or end other programs"
        )
    }
}

fn least() -> Option<TaskLimit> {
    directories("pids")
        .into_iter()
        .filter_map(limit_of_group)
        .chain(limit_of_user())
        .min_by_key(TaskLimit::left)
}

fn limit_of_group(group: PathBuf) -> Option<TaskLimit> {
    Some(TaskLimit {
        limit: number(&group, "pids.max")?,
        used: number(&group, "pids.current")?,
        place: format!("the control group {}", group.display()),
        remedy: "raise its `pids.max`".into(),
    })
}

/// What `RLIMIT_NPROC` leaves this user, whom it may not concern.
fn limit_of_user() -> Option<TaskLimit> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let users = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let user = user_of(&status)?;
    if is_exempt(user, &status, &users) {
        return None;
    }
    Some(TaskLimit {
        limit: limits::tasks()?,
        used: threads_of(user),
        place: format!("user {user}"),
        remedy: "raise the limit (`ulimit -u`, or LimitNPROC of the service)".into(),
    })
}

/// Threads count like processes (setrlimit(2)).
fn threads_of(user: u64) -> u64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_process =
        |entry: &fs::DirEntry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
    let threads = |path: &Path| -> Option<u64> {
        let status = fs::read_to_string(path.join("status")).ok()?;
        if user_of(&status)? == user { field(&status, "Threads")?.parse().ok() } else { None }
    };
    processes.filter(is_process).filter_map(|entry| threads(&entry.path())).sum()
}

/// The limit does not hold for the machine's own root, nor for who may exceed limits there (kernel/fork.c,
/// copy_process).
fn is_exempt(user: u64, status: &str, users: &str) -> bool {
    let capabilities = field(status, "CapEff").and_then(|set| u64::from_str_radix(set, 16).ok()).unwrap_or(0);
    let is_capable = capabilities & (1 << CAP_SYS_ADMIN | 1 << CAP_SYS_RESOURCE) != 0;
    let is_machines = users.split_whitespace().eq(["0", "0", "4294967295"]);
    is_machines && (user == 0 || is_capable)
}

/// The real one.
fn user_of(status: &str) -> Option<u64> {
    field(status, "Uid")?.split_whitespace().next()?.parse().ok()
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_RESOURCE: u32 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &str = "         0          0 4294967295\n";

    #[test]
    fn roots_limit_counts_where_root_is_only_called_so() {
        let status = "Uid:\t0\t0\t0\t0\nThreads:\t7\nCapEff:\t000001ffffffffff\n";
        assert!(is_exempt(0, status, MACHINE));
        assert!(!is_exempt(0, status, "0 1000 1\n"), "root in a user namespace");
        assert!(is_exempt(1000, "CapEff:\t0000000001000000\n", MACHINE), "CAP_SYS_RESOURCE");
        assert!(!is_exempt(1000, "CapEff:\t0000000000000000\n", MACHINE));
        assert_eq!((user_of(status), field(status, "Threads")), (Some(0), Some("7")));
    }

    #[test]
    fn a_group_of_processes_that_is_full_says_so() {
        let group = std::env::temp_dir().join(format!("mqttlab-pids-{}", std::process::id()));
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("pids.max"), "64\n").unwrap();
        fs::write(group.join("pids.current"), "60\n").unwrap();
        let limit = limit_of_group(group.clone()).unwrap();
        assert_eq!(limit.left(), 4);
        let words = limit.refusal(20);
        assert!(
            words.starts_with("this plan needs about 20 processes and threads, but the control group "),
            "{words}"
        );
        assert!(
            words.ends_with("may have 64 and has 60: raise its `pids.max`, or end other programs"),
            "{words}"
        );
        fs::write(group.join("pids.max"), "max\n").unwrap();
        assert_eq!(limit_of_group(group.clone()), None);
        fs::remove_dir_all(group).unwrap();
    }

    #[test]
    fn this_user_has_at_least_this_thread() {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        assert!(threads_of(user_of(&status).unwrap()) >= 1);
    }
}
