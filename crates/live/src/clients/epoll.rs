//! Waiting for thousands of sockets at once.
//!
//! Edge-triggered, both directions from the start, so that a socket is registered once and never again: what is
//! reported must be read or written until the kernel has no more.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use mqttlab_units::Duration;

use crate::clock::timespec;

/// A set of sockets, each with the number of its client.
pub(super) struct Epoll {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
}

/// What a socket is ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) client: u32,
    /// Bytes, an end or an error are there to be read.
    pub(super) readable: bool,
    /// Behind what is there to be read, the stream ends.
    pub(super) ended: bool,
    /// There is room, or the connection is established.
    pub(super) writable: bool,
}

impl Epoll {
    pub(super) fn new() -> io::Result<Epoll> {
        // SAFETY: epoll_create1 takes flags only; a descriptor that it returns is ours alone.
        let epoll = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Epoll { epoll, events: vec![libc::epoll_event { events: 0, u64: 0 }; BATCH] })
    }

    /// Waits for `socket`, too, until it is closed.
    pub(super) fn add(&self, socket: impl AsFd, client: u32) -> io::Result<()> {
        let events = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
        let mut event = libc::epoll_event { events, u64: u64::from(client) };
        let (epoll, socket) = (self.epoll.as_raw_fd(), socket.as_fd().as_raw_fd());
        // SAFETY: `event` is a local; both descriptors are open.
        let result = unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, socket, &mut event) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits for it no longer.
    pub(super) fn remove(&self, socket: impl AsFd) {
        let (epoll, socket) = (self.epoll.as_raw_fd(), socket.as_fd().as_raw_fd());
        // SAFETY: both descriptors are open; what was never added is refused, and that is as well.
        unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_DEL, socket, std::ptr::null_mut()) };
    }

    /// Waits until a socket is ready or `timeout` is over, and returns how many are ready. A signal ends the wait.
    pub(super) fn wait(&mut self, timeout: Duration) -> io::Result<usize> {
        let limit = timespec(timeout);
        let mask = std::ptr::null::<libc::sigset_t>();
        // SAFETY: `events` holds BATCH events and `limit` is a local.
        let count = unsafe {
            let (epoll, events) = (self.epoll.as_raw_fd(), self.events.as_mut_ptr());
            libc::syscall(libc::SYS_epoll_pwait2, epoll, events, BATCH, &raw const limit, mask, 0usize)
        };
        match counted(count) {
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => self.wait_in_two(&limit),
            waited => waited,
        }
    }

    /// The same where the kernel is older than Linux 5.11, or valgrind stands before it: `epoll_wait` counts milliseconds
    /// alone, so the wait is that of ppoll(2), which sees an epoll descriptor as readable while a socket is ready.
    fn wait_in_two(&mut self, limit: &libc::timespec) -> io::Result<usize> {
        let epoll = self.epoll.as_raw_fd();
        let mut waited = libc::pollfd { fd: epoll, events: libc::POLLIN, revents: 0 };
        // SAFETY: `waited` is one descriptor and `limit` a length of time, both in memory of ours; `events` holds BATCH.
        unsafe {
            match counted(libc::ppoll(&raw mut waited, 1, limit, std::ptr::null()).into())? {
                0 => Ok(0),
                _ => counted(libc::epoll_wait(epoll, self.events.as_mut_ptr(), BATCH as i32, 0).into()),
            }
        }
    }

    /// The `index`-th of the sockets that the last wait found ready.
    pub(super) fn ready(&self, index: usize) -> Ready {
        let event = self.events[index];
        let has = |flags: libc::c_int| event.events & flags as u32 != 0;
        Ready {
            client: event.u64 as u32,
            readable: has(libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR),
            ended: has(libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR),
            writable: has(libc::EPOLLOUT | libc::EPOLLERR),
        }
    }
}

/// What a call says that counts; a signal ends a wait with nothing.
fn counted(count: libc::c_long) -> io::Result<usize> {
    match count {
        0.. => Ok(count as usize),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            error => Err(error),
        },
    }
}

const BATCH: usize = 1024;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn an_older_kernel_is_waited_for_in_two_calls_that_find_the_same() {
        let mut epoll = Epoll::new().unwrap();
        let (near, mut far) = UnixStream::pair().unwrap();
        epoll.add(&near, 7).unwrap();
        assert_eq!(epoll.wait_in_two(&timespec(Duration::from_s(60))).unwrap(), 1);
        assert!(epoll.ready(0).writable && !epoll.ready(0).readable);
        // It was reported once; until something comes, only the time ends the wait, and not a millisecond's rounding.
        let (limit, began) = (Duration::from_us(300), std::time::Instant::now());
        assert_eq!(epoll.wait_in_two(&timespec(limit)).unwrap(), 0);
        assert!(began.elapsed().as_nanos() >= u128::from(limit.as_ns()));
        far.write_all(b"x").unwrap();
        let one_call = Ready { client: 7, readable: true, ended: false, writable: true };
        assert_eq!(epoll.wait_in_two(&timespec(Duration::from_s(60))).unwrap(), 1);
        assert_eq!(epoll.ready(0), one_call);
        far.write_all(b"x").unwrap();
        assert_eq!((epoll.wait(Duration::from_s(60)).unwrap(), epoll.ready(0)), (1, one_call));
    }
}
