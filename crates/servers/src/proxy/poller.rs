//! Waiting for many descriptors at once.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// An epoll instance.
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Poller {
    /// # Errors
    /// The kernel has none.
    pub(crate) fn new() -> io::Result<Poller> {
        // SAFETY: no pointers; a descriptor that it returns is ours alone.
        let epoll = unsafe {
            match libc::epoll_create1(libc::EPOLL_CLOEXEC) {
                fd if fd < 0 => return Err(io::Error::last_os_error()),
                fd => OwnedFd::from_raw_fd(fd),
            }
        };
        Ok(Poller { epoll, events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS] })
    }

    /// Hears of a descriptor under this number: what can be read, and with `write` room, too.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn add(&self, fd: RawFd, number: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, number, false)
    }

    /// Says anew whether room is waited for.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn change(&self, fd: RawFd, number: u64, write: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, number, write)
    }

    /// Waits, and says which numbers have something, and whether there is something to read or an end.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn wait(&mut self, milliseconds: i32) -> io::Result<Vec<(u64, bool)>> {
        // SAFETY: `events` has as many places as are said.
        let count = unsafe {
            libc::epoll_wait(self.epoll.as_raw_fd(), self.events.as_mut_ptr(), EVENTS as i32, milliseconds)
        };
        if count < 0 {
            return match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(Vec::new()),
                error => Err(error),
            };
        }
        let told = |event: &libc::epoll_event| (event.u64, event.events & !(libc::EPOLLOUT as u32) != 0);
        Ok(self.events[..count as usize].iter().map(told).collect())
    }

    fn control(&self, what: i32, fd: RawFd, number: u64, write: bool) -> io::Result<()> {
        let events = libc::EPOLLIN | if write { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event { events: events as u32, u64: number };
        // SAFETY: `event` is a local.
        match unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), what, fd, &raw mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

const EVENTS: usize = 256;
