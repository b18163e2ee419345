//! Programs that die with the thread that starts them, with all their children.
//!
//! ```text
//!   starting thread ── init (process 1 of a PID namespace) ── program ── its children
//! ```
//!
//! When process 1 of a PID namespace ends, the kernel kills everything in it. Init is killed when the thread that started it
//! ends, however the process ends that it is of. The program itself could not be tied so, since a program that changes its
//! user (as Mosquitto does) loses the tie.

use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::process::{
    Pid, Resource, Signal, WaitOptions, WaitStatus, getrlimit, set_parent_process_death_signal,
};

use crate::namespaces::{Part, enter_network, unshare};
use crate::poller::is_readable;
use crate::{cgroups, process, signals};

/// Where a program runs.
pub struct Place<'a> {
    /// Its network; `None` for that of the calling thread.
    pub network: Option<BorrowedFd<'a>>,
    /// The control groups that it comes into, by their entrances ([`cgroups::enter`]).
    pub groups: Vec<OwnedFd>,
}

/// A program that was started.
pub struct Tied {
    /// Its init, which ends as the program ended: with its status, or with 128 and the number of the signal.
    pub init: Child,
    /// Init sees by its end whether its parent was gone before it could ask to be killed with it.
    _lifeline: PipeWriter,
}

/// Starts a program from the calling thread, which moves into the program's network.
///
/// # Errors
/// The program is not there or not executable, or what the kernel said.
pub fn spawn(command: &mut Command, place: Place<'_>) -> io::Result<Tied> {
    place.network.map_or(Ok(()), enter_network)?;
    // Where PID namespaces are not permitted (an external network needs no privilege), the program is tied by init alone.
    let isolated = unshare(Part::Processes).is_ok();
    let (lifeline, end) = io::pipe()?;
    let end_fd = end.as_raw_fd();
    // SAFETY: between fork and exec, `become_init` makes only system calls and touches no heap.
    unsafe { command.pre_exec(move || become_init(lifeline.as_fd(), end_fd, isolated, &place.groups)) };
    Ok(Tied { init: command.spawn()?, _lifeline: end })
}

/// Runs in the new process, before the program. Forks: the child goes on to become the program, this process
/// stays as init and never returns.
fn become_init(lifeline: BorrowedFd<'_>, end: RawFd, isolated: bool, groups: &[OwnedFd]) -> io::Result<()> {
    die_with_parent()?;
    // SAFETY: this process has a copy of the descriptor, which nobody in it uses.
    unsafe { rustix::io::close(end) };
    if is_readable(lifeline) {
        process::end_now(EXIT_ORPHANED);
    }
    if isolated {
        mount_own_proc();
    }
    // SAFETY: this process has one thread, and both go on with system calls alone.
    let program = unsafe { libc::fork() };
    if program < 0 {
        return Err(io::Error::last_os_error());
    }
    let Some(program) = Pid::from_raw(program) else {
        signals::unblock_all();
        // Without a PID namespace this is all that ties the program.
        die_with_parent()?;
        // Init stays outside: it is not the host's, and must outlive whom the kernel kills for memory.
        return cgroups::enter(groups);
    };
    // Descriptors kept here would keep devices alive, and hide from `spawn` that the program was started.
    // SAFETY: this process uses none from here on, and never returns to whose they are.
    unsafe { close_all() };
    reap(program)
}

/// Closes every descriptor.
///
/// # Safety
/// Nobody in this process uses one any more.
unsafe fn close_all() {
    // SAFETY: as the caller says.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) } == 0;
    // A kernel before Linux 5.9 has no such call, and a container's filter may refuse it.
    let limit = if closed { 0 } else { getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) };
    for descriptor in 0..limit.min(DESCRIPTORS_MAX) {
        // SAFETY: as the caller says. Where none has this number nothing is closed, which rustix takes for a fault.
        unsafe { libc::close(descriptor as RawFd) };
    }
}

fn die_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Waits for the program and for orphans, and ends as the program ended.
fn reap(program: Pid) -> ! {
    loop {
        if let Ok(Some((ended, status))) = rustix::process::wait(WaitOptions::empty())
            && ended == program
        {
            process::end_now(code_of(status));
        }
    }
}

/// A signal's as 128 and its number, as shells do.
fn code_of(status: WaitStatus) -> i32 {
    status.terminating_signal().map(|signal| 128 + signal).or(status.exit_status()).unwrap_or_default()
}

/// Programs that look themselves up in /proc find themselves under their number in the new namespace. A convenience: where
/// it is not permitted, they see the machine's /proc.
fn mount_own_proc() {
    // A mount namespace of its own keeps the mount from the machine.
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    if unshare(Part::Mounts).is_ok() && rustix::mount::mount_change(c"/", private).is_ok() {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        let _ = rustix::mount::mount(c"proc", c"/proc", c"proc", flags, None);
    }
}

/// Of an init whose parent was gone before it began.
const EXIT_ORPHANED: i32 = 125;
/// No process has more, unless the machine was told so (`fs.nr_open`).
const DESCRIPTORS_MAX: u64 = 1 << 20;
