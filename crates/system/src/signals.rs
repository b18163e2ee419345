//! Signals that ask a program to end: as something to wait for, or as a flag.
//!
//! A program of many threads takes [`Signals`] before it makes the first one; a server of one thread, which looks up from its
//! wait at each signal, has a flag ([`watch`]).

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// SIGINT, SIGTERM and SIGHUP of this process, taken from their default action.
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Takes them, but for a SIGHUP that is ignored. Threads inherit that, so call it before the first one is made.
    ///
    /// # Errors
    /// Too many open files.
    pub fn block() -> io::Result<Signals> {
        // SAFETY: the set is a local, initialised by sigemptyset; a descriptor that signalfd returns is ours alone.
        unsafe {
            let mut set: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&mut set);
            for (signal, _) in NAMES {
                if !(signal == libc::SIGHUP && is_ignored(signal)) {
                    libc::sigaddset(&mut set, signal);
                }
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Signals { fd: OwnedFd::from_raw_fd(fd) })
        }
    }

    /// The name of a signal that has come and was not asked about yet.
    pub fn received(&self) -> Option<&'static str> {
        let mut info = [0; size_of::<libc::signalfd_siginfo>()];
        rustix::io::read(&self.fd, &mut info[..]).ok().filter(|read| *read == info.len())?;
        // Its number comes first.
        let number = i32::from_ne_bytes([info[0], info[1], info[2], info[3]]);
        NAMES.iter().find(|(signal, _)| *signal == number).map(|(_, name)| *name)
    }
}

impl AsFd for Signals {
    /// Readable when a signal has come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Starts a program with these signals blocked from its first thread on, and none of them ignored.
pub fn block_in(command: &mut Command) {
    // SAFETY: between fork and exec only functions are called that are safe there, and touch no heap.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGHUP, libc::SIG_DFL);
            Signals::block().map(drop)
        });
    }
}

static HAS_COME: AtomicBool = AtomicBool::new(false);

/// Lets SIGTERM and SIGINT end this program's loop, which asks [`has_come`].
pub fn watch() {
    // SAFETY: the handler does nothing but store to an atomic.
    unsafe {
        for signal in [libc::SIGTERM, libc::SIGINT] {
            libc::signal(signal, note as extern "C" fn(libc::c_int) as libc::sighandler_t);
        }
    }
}

/// Whether one of them has come.
pub fn has_come() -> bool {
    HAS_COME.load(Relaxed)
}

extern "C" fn note(_: libc::c_int) {
    HAS_COME.store(true, Relaxed);
}

/// Lets all signals come to the calling thread.
pub(crate) fn unblock_all() {
    // SAFETY: the set is a local, initialised by sigemptyset.
    unsafe {
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// As `nohup` leaves it; a blocked signal would reach us all the same.
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: with a null action the present one is only read, into a local.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

const NAMES: [(libc::c_int, &str); 3] =
    [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM"), (libc::SIGHUP, "SIGHUP")];
