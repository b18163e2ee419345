//! How much memory a run can have: what the machine, its control groups and this program's own limit leave.
//!
//! What it does not count: swap, because a run that waits for it measures a disk.

use std::fs;
use std::path::{Path, PathBuf};

use mqttlab_system::cgroups::{directories, entry, number};
use mqttlab_system::limits;

/// What a run will take at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryNeed {
    /// This program.
    pub own_bytes: u64,
    /// The kernel and the programs that are started.
    pub beside_bytes: u64,
}

/// Refuses a run that needs more memory than is left. `what_for` says what needs it.
///
/// # Errors
/// A sentence with the limit, the need and the remedy.
pub fn check_memory(need: MemoryNeed, what_for: &str) -> Result<(), String> {
    let all = need.own_bytes + need.beside_bytes;
    let mut limits: Vec<(u64, MemoryLimit)> = limits().into_iter().map(|limit| (all, limit)).collect();
    limits.extend(own_limit().map(|limit| (need.own_bytes, limit)));
    let short = limits.into_iter().filter(|(needed, limit)| *needed > limit.bytes);
    match short.min_by_key(|(_, limit)| limit.bytes) {
        None => Ok(()),
        Some((needed, limit)) => Err(limit.refusal(needed, what_for)),
    }
}

/// How much there is, for `mqttlab doctor`.
pub(crate) fn in_words() -> Result<String, String> {
    let least = limits().into_iter().chain(own_limit()).min_by_key(|limit| limit.bytes);
    least.map_or(Err("no MemAvailable in /proc/meminfo".into()), |limit| {
        Ok(format!("{} left ({})", size(limit.bytes), limit.place))
    })
}

/// What is left in some place.
struct MemoryLimit {
    bytes: u64,
    place: String,
    remedy: String,
}

impl MemoryLimit {
    fn refusal(&self, needed: u64, what_for: &str) -> String {
        let MemoryLimit { bytes, place, remedy } = self;
        format!(
            "this plan needs about {} of memory ({what_for}), but {place} has {} left: {remedy}, or use fewer clients",
            size(needed),
            size(*bytes)
        )
    }
}

/// Of the machine and of every control group that limits this process.
fn limits() -> Vec<MemoryLimit> {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = available(&memory).map(|bytes| MemoryLimit {
        bytes,
        place: "this machine".into(),
        remedy: "close other programs".into(),
    });
    machine.into_iter().chain(directories("memory").into_iter().filter_map(limit_of_group)).collect()
}

/// What a group may still take. Pages of files are given back to it when it needs them.
fn limit_of_group(group: PathBuf) -> Option<MemoryLimit> {
    let (file, limit, used, names) = FILES.iter().find_map(|(limit, used, names)| {
        Some((limit, number(&group, limit)?, number(&group, used)?, names))
    })?;
    if limit >= UNLIMITED {
        return None;
    }
    let of_files: u64 = names.iter().filter_map(|name| entry(&group, "memory.stat", name)).sum();
    Some(MemoryLimit {
        bytes: limit.saturating_sub(used.saturating_sub(of_files)),
        place: format!("the control group {}", group.display()),
        remedy: format!("raise its `{file}`"),
    })
}

/// What this program's own limit leaves.
fn own_limit() -> Option<MemoryLimit> {
    let limit = limits::mapped_bytes()?;
    let status = fs::read_to_string(Path::new("/proc/self/status")).unwrap_or_default();
    Some(MemoryLimit {
        bytes: limit.saturating_sub(kib(&status, "VmSize").unwrap_or(0)),
        place: "this program".into(),
        remedy: "raise its limit (`ulimit -v`)".into(),
    })
}

fn available(memory: &str) -> Option<u64> {
    kib(memory, "MemAvailable")
}

/// `Name:     1234 kB`.
fn kib(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    rest.split_whitespace().next()?.parse::<u64>().ok().map(|count| count * 1024)
}

fn size(bytes: u64) -> String {
    let megabytes = bytes as f64 / 1e6;
    if megabytes < 1000.0 { format!("{megabytes:.0} MB") } else { format!("{:.1} GB", megabytes / 1e3) }
}

/// Limit, use, and what of the use are files' pages, in both versions of control groups.
const FILES: [(&str, &str, [&str; 2]); 2] = [
    ("memory.max", "memory.current", ["active_file", "inactive_file"]),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", ["total_active_file", "total_inactive_file"]),
];
/// Version 1 writes a number near 2^63 for no limit.
const UNLIMITED: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    use super::*;

    /// A control group's directory with these files.
    fn group(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("mqttlab-group-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        files.iter().for_each(|(name, text)| fs::write(directory.join(name), text).unwrap());
        directory
    }

    #[test]
    fn a_group_has_what_its_limit_leaves_and_files_pages_can_be_had_back() {
        let stat = "anon 5\nactive_file 100000000\ninactive_file 200000000\n";
        let two = group(
            "two",
            &[("memory.max", "1000000000\n"), ("memory.current", "900000000\n"), ("memory.stat", stat)],
        );
        let limit = limit_of_group(two.clone()).unwrap();
        assert_eq!(limit.bytes, 400_000_000);
        let words = limit.refusal(2_500_000_000, "300000 clients");
        let expected = format!(
            "this plan needs about 2.5 GB of memory (300000 clients), but the control group {} has 400 MB left: raise its \
             `memory.max`, or use fewer clients",
            two.display()
        );
        assert_eq!(words, expected);
        fs::remove_dir_all(two).unwrap();
    }

    #[test]
    fn groups_of_version_1_are_read_and_those_without_a_limit_are_not_counted() {
        let one = group(
            "one",
            &[
                ("memory.limit_in_bytes", "1000\n"),
                ("memory.usage_in_bytes", "600\n"),
                ("memory.stat", "total_inactive_file 100\nactive_file 77\n"),
            ],
        );
        assert_eq!(limit_of_group(one.clone()).unwrap().bytes, 500);
        fs::write(one.join("memory.limit_in_bytes"), "9223372036854771712\n").unwrap();
        assert!(limit_of_group(one.clone()).is_none());
        fs::remove_dir_all(one).unwrap();
        let free = group("free", &[("memory.max", "max\n"), ("memory.current", "5\n")]);
        assert!(limit_of_group(free.clone()).is_none());
        fs::remove_dir_all(free).unwrap();
    }

    #[test]
    fn more_than_any_machine_has_is_refused_with_the_remedy() {
        let words =
            check_memory(MemoryNeed { own_bytes: 1 << 60, beside_bytes: 0 }, "many clients").unwrap_err();
        assert!(
            words.starts_with("this plan needs about 1152921504.6 GB of memory (many clients), but "),
            "{words}"
        );
        assert!(words.ends_with("or use fewer clients"), "{words}");
        assert_eq!(check_memory(MemoryNeed::default(), "nothing"), Ok(()));
    }

    #[test]
    fn what_is_available_is_read_in_kibibytes() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:       5 kB\n"), Some(5120));
    }
}
