//! Network namespaces without names, held by file descriptor.
//!
//! A namespace lives as long as something refers to it: here a descriptor of this process, the sockets and
//! devices in it, and the broker. All of these end with the engine, however it ends, so nothing is left behind.
//!
//! ```text
//!   Privilege::acquire()     root: nothing to do      ordinary user: a user namespace, whose root we are
//!   Namespace::new()         a thread unshares its network, its /proc/thread-self/ns/net is kept open
//!   namespace.run(|| ..)     a thread enters it, works, ends
//! ```

use std::cell::Cell;
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::process;

/// The right to make namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// The process has CAP_SYS_ADMIN already.
    Administrator,
    /// The process is root in a user namespace of its own.
    UserNamespace,
}

/// Namespaces cannot be made here.
#[derive(Debug)]
pub struct Forbidden {
    /// What was tried.
    pub action: &'static str,
    /// What the kernel said.
    pub source: io::Error,
    /// Which switch allows it, as far as can be told.
    pub remedy: String,
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}; {}", self.action, self.source, self.remedy)
    }
}

impl std::error::Error for Forbidden {}

impl Privilege {
    /// Gets the right to make namespaces. An ordinary user's process moves into a new user namespace, which the
    /// kernel allows only while it has a single thread: call this first.
    ///
    /// # Errors
    /// [`Forbidden`], with the setting that forbids it.
    pub fn acquire() -> Result<Privilege, Forbidden> {
        if Namespace::new().is_ok() {
            return Ok(Privilege::Administrator);
        }
        let (user, group) = (process::user(), rustix::process::getegid());
        unshare(Part::User).map_err(|source| Forbidden::here("make a user namespace", source))?;
        let map = |file: &str, text: String| fs::write(format!("/proc/self/{file}"), text);
        // A group map may be written only by a process that has given up setgroups (user_namespaces(7)).
        map("setgroups", "deny".into())
            .and_then(|()| map("uid_map", format!("0 {user} 1")))
            .and_then(|()| map("gid_map", format!("0 {} 1", group.as_raw())))
            .map_err(|source| Forbidden::here("map this user into a user namespace", source))?;
        Namespace::new().map_err(|source| Forbidden::here("make a network namespace", source))?;
        Ok(Privilege::UserNamespace)
    }
}

impl Forbidden {
    fn here(action: &'static str, source: io::Error) -> Self {
        Forbidden { action, source, remedy: remedy() }
    }
}

/// A network namespace.
#[derive(Debug)]
pub struct Namespace {
    fd: OwnedFd,
    identity: u64,
}

impl Namespace {
    /// Makes one, with nothing in it but a loopback device that is down.
    ///
    /// # Errors
    /// The process may not ([`Privilege::acquire`] first), or too many exist.
    pub fn new() -> io::Result<Namespace> {
        let open = || -> io::Result<OwnedFd> {
            unshare(Part::Network)?;
            Ok(fs::File::open("/proc/thread-self/ns/net")?.into())
        };
        let fd = on_thread(open)?;
        static MADE: AtomicU64 = AtomicU64::new(1);
        Ok(Namespace { fd, identity: MADE.fetch_add(1, Ordering::Relaxed) })
    }

    /// Does some work in this namespace, on a thread that ends with it.
    ///
    /// # Errors
    /// Those of the work, or of entering.
    ///
    /// # Panics
    /// When the work does.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_thread(|| {
            self.enter()?;
            work()
        })
    }

    /// Moves the calling thread into this namespace for good, or until it enters another one. Cheap when it is
    /// there already.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn enter(&self) -> io::Result<()> {
        thread_local!(static ENTERED: Cell<u64> = const { Cell::new(0) });
        if ENTERED.get() == self.identity {
            return Ok(());
        }
        enter_network(self.fd.as_fd())?;
        ENTERED.set(self.identity);
        Ok(())
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What the calling thread no longer shares with others.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// Users and groups; of a process with one thread only.
    User,
    /// The network.
    Network,
    /// Processes: the thread's next child is the first of a namespace.
    Processes,
    /// Mounts.
    Mounts,
}

/// Moves the calling thread, or its children, into a new namespace.
pub(crate) fn unshare(part: Part) -> io::Result<()> {
    let flags = match part {
        Part::User => UnshareFlags::NEWUSER,
        Part::Network => UnshareFlags::NEWNET,
        Part::Processes => UnshareFlags::NEWPID,
        Part::Mounts => UnshareFlags::NEWNS,
    };
    // SAFETY: descriptors stay shared: none of these flags is `FILES`.
    Ok(unsafe { unshare_unsafe(flags) }?)
}

/// Moves the calling thread into a network namespace.
pub(crate) fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?)
}

/// Sets a sysctl of the calling thread's namespace, `net/...` with slashes.
///
/// # Errors
/// The kernel has no such sysctl (`NotFound`), or refuses the value.
pub fn set_sysctl(name: &str, value: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/{name}"), value)
}

/// Reads a sysctl of the calling thread's namespace; `None` where the kernel does not have it.
pub fn sysctl(name: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/sys/{name}")).ok().map(|text| text.trim().to_owned())
}

/// Namespaces are entered by thread, so whatever changes its namespace does so on a thread of its own.
fn on_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("namespace".into()).spawn_scoped(scope, work)?;
        worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
    })
}

/// The settings that are known to forbid namespaces, in the order of their likelihood.
fn remedy() -> String {
    let forbids = |name: &str, value: &str| sysctl(name).is_some_and(|found| found == value);
    if forbids("user/max_user_namespaces", "0") {
        return "as root: sysctl user.max_user_namespaces=1000".into();
    }
    if forbids("kernel/unprivileged_userns_clone", "0") {
        return "as root: sysctl kernel.unprivileged_userns_clone=1".into();
    }
    if forbids("kernel/apparmor_restrict_unprivileged_userns", "1") {
        return "as root: sysctl kernel.apparmor_restrict_unprivileged_userns=0".into();
    }
    "no sysctl forbids it, so a container's seccomp filter probably does: \
     run it with --security-opt seccomp=unconfined, or as root"
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests that need namespaces say why they did not run, instead of failing, where they may not have them.
    fn namespace() -> Option<Namespace> {
        Namespace::new().inspect_err(|error| eprintln!("skipped: no network namespaces here: {error}")).ok()
    }

    #[test]
    fn a_namespace_has_its_own_sysctls_and_devices() {
        let (Some(one), Some(other)) = (namespace(), namespace()) else { return };
        let name = "net/ipv4/tcp_sack";
        one.run(|| set_sysctl(name, "0")).unwrap();
        assert_eq!(one.run(|| Ok(sysctl(name))).unwrap().as_deref(), Some("0"));
        assert_eq!(other.run(|| Ok(sysctl(name))).unwrap().as_deref(), Some("1"));
        let devices = one.run(|| fs::read_to_string("/proc/thread-self/net/dev")).unwrap();
        assert_eq!(devices.lines().count(), 2 + 1, "two lines of heading, then lo: {devices}");
    }

    #[test]
    fn a_missing_sysctl_is_none() {
        assert_eq!(sysctl("net/ipv4/no_such_thing"), None);
    }
}
