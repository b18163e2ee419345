//! Signals that ask the run to end, as something to wait for.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

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
        // SAFETY: all zeros is a valid signalfd_siginfo, and one is read.
        unsafe {
            let mut info: libc::signalfd_siginfo = mem::zeroed();
            let size = size_of_val(&info);
            let read = libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size);
            let known = || NAMES.iter().find(|(signal, _)| *signal as u32 == info.ssi_signo);
            if read == size as isize { known().map(|(_, name)| *name) } else { None }
        }
    }
}

impl AsFd for Signals {
    /// Readable when a signal has come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
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
