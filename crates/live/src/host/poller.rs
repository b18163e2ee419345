//! Waiting for several descriptors with a deadline in nanoseconds: epoll, and `epoll_pwait2` (Linux 5.11).

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use mqttlab_units::Duration;

use crate::clock::timespec;

/// A set of descriptors to wait for, each with a number of the caller's choice.
pub struct DeadlinePoller {
    epoll: OwnedFd,
    ready: Vec<libc::epoll_event>,
}

/// Ends somebody's wait from another thread.
#[derive(Clone)]
pub struct Waker(Arc<OwnedFd>);

impl DeadlinePoller {
    /// An empty set.
    ///
    /// # Errors
    /// Too many open files.
    pub fn new() -> io::Result<DeadlinePoller> {
        // SAFETY: epoll_create1 takes flags only; a descriptor that it returns is ours alone.
        let epoll = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(DeadlinePoller { epoll, ready: vec![libc::epoll_event { events: 0, u64: 0 }; BATCH] })
    }

    /// Waits for `source` to become readable, too. It is reported as long as it is readable.
    ///
    /// # Errors
    /// The descriptor cannot be waited for.
    pub fn add(&self, source: impl AsFd, number: u64) -> io::Result<()> {
        let fd = source.as_fd().as_raw_fd();
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: number };
        // SAFETY: `event` is a local.
        let result = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits until something is ready or `timeout` is over, and says what is. A signal ends the wait, too.
    ///
    /// # Errors
    /// What the kernel said; never that a signal came.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<impl Iterator<Item = u64> + '_> {
        let limit = timeout.map(timespec);
        let limit = limit.as_ref().map_or(std::ptr::null(), |limit| limit as *const libc::timespec);
        let mask = std::ptr::null::<libc::sigset_t>();
        // SAFETY: `ready` holds BATCH events; `limit` is null or points to a local.
        let count = unsafe {
            let (epoll, events) = (self.epoll.as_raw_fd(), self.ready.as_mut_ptr());
            libc::syscall(libc::SYS_epoll_pwait2, epoll, events, BATCH, limit, mask, 0usize)
        };
        let count = match count {
            0.. => count as usize,
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => 0,
                error => return Err(error),
            },
        };
        Ok(self.ready[..count].iter().map(|event| event.u64))
    }
}

impl Waker {
    /// A waker, to be added to a [`DeadlinePoller`].
    ///
    /// # Errors
    /// Too many open files.
    pub fn new() -> io::Result<Waker> {
        // SAFETY: eventfd takes integers; a descriptor that it returns is ours alone.
        unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Waker(Arc::new(OwnedFd::from_raw_fd(fd))))
        }
    }

    /// Makes the poller's wait end, now and from then on.
    pub fn wake(&self) {
        let one = 1u64;
        // SAFETY: eight bytes of a local are read.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

const BATCH: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waker_ends_a_wait_without_end() {
        let (mut poller, waker) = (DeadlinePoller::new().unwrap(), Waker::new().unwrap());
        poller.add(&waker, 7).unwrap();
        assert_eq!(poller.wait(Some(Duration::from_us(1))).unwrap().count(), 0);
        waker.wake();
        assert_eq!(poller.wait(None).unwrap().collect::<Vec<_>>(), [7]);
    }
}
