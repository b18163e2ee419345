//! Waiting for many descriptors at once, with a deadline in nanoseconds: one epoll for workers, emulator and servers.
//!
//! ```text
//!   epoll_pwait2 ── refused ──► ppoll of the epoll descriptor ──► epoll_wait of what is ready
//! ```
//!
//! `epoll_pwait2` came with Linux 5.11. An older kernel refuses it with ENOSYS, and the seccomp filter of an older container
//! runtime with EPERM. `epoll_wait` counts milliseconds, but `ppoll` counts nanoseconds, too, and sees an epoll descriptor
//! as readable while something in it is ready. So no wait is rounded on any kernel.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use mqttlab_units::Duration;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

use crate::clock::timespec;

pub use rustix::event::{PollFd, PollFlags};

/// A set of descriptors to wait for, each with a number of the caller's choice.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<Event>,
    /// The kernel has refused `epoll_pwait2`.
    waits_in_two: bool,
}

// SAFETY: an event may hold a pointer, which keeps it from being sent; those of `events` hold numbers alone.
unsafe impl Send for Poller {}

/// What of a descriptor is waited for. Its end and its errors always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Bytes to read. Reported as long as there are some.
    Reading,
    /// Bytes to read, or room to write. Reported as long as there is either.
    ReadingAndWriting,
    /// Both, and the end of the stream. Each is reported once (edge-triggered): what is reported must be read or written until
    /// the kernel has no more.
    Changes,
}

/// What a descriptor is ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The number that it was added with.
    pub number: u64,
    /// Bytes, an end or an error are there to be read.
    pub readable: bool,
    /// Behind what is there to be read, the stream ends.
    pub ended: bool,
    /// There is room, or the connection is established.
    pub writable: bool,
}

/// Ends somebody's wait from another thread.
#[derive(Clone)]
pub struct Waker(Arc<OwnedFd>);

impl Poller {
    /// An empty set, of which one wait finds at most `most` ready.
    ///
    /// # Errors
    /// Too many open files.
    pub fn new(most: usize) -> io::Result<Poller> {
        let none = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Poller { epoll, events: vec![none; most], waits_in_two: false })
    }

    /// Waits for `source`, too, until it is closed.
    ///
    /// # Errors
    /// The descriptor cannot be waited for, or is there already.
    pub fn add(&self, source: impl AsFd, number: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, EventData::new_u64(number), interest.flags())?)
    }

    /// Waits for something else of it from now on.
    ///
    /// # Errors
    /// It was not added.
    pub fn change(&self, source: impl AsFd, number: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, source, EventData::new_u64(number), interest.flags())?)
    }

    /// Waits for it no longer. What was never added stays so.
    pub fn remove(&self, source: impl AsFd) {
        let _ = epoll::delete(&self.epoll, source);
    }

    /// Waits until something is ready or `timeout` is over, and returns how much is ready. A signal ends the wait, too.
    ///
    /// # Errors
    /// What the kernel said; never that a signal came.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        let limit = timeout.map(timespec);
        if !self.waits_in_two {
            match epoll::wait(&self.epoll, &mut self.events[..], limit.as_ref()) {
                // It knows no such error of its own.
                Err(Errno::NOSYS | Errno::PERM) => self.waits_in_two = true,
                waited => return unless_interrupted(waited),
            }
        }
        match unless_interrupted(self.wait_for_any(limit.as_ref()))? {
            0 => Ok(0),
            _ => self.fetch(),
        }
    }

    fn wait_for_any(&self, limit: Option<&Timespec>) -> Result<usize, Errno> {
        rustix::event::poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], limit)
    }

    /// Fetches what is ready, without a wait.
    fn fetch(&mut self) -> io::Result<usize> {
        let (epoll, most) = (self.epoll.as_raw_fd(), self.events.len() as libc::c_int);
        // SAFETY: `events` has `most` places, and `Event` is the kernel's `struct epoll_event`.
        let count = unsafe { libc::epoll_wait(epoll, self.events.as_mut_ptr().cast(), most, 0) };
        if count < 0 { Err(io::Error::last_os_error()) } else { Ok(count as usize) }
    }

    /// The `index`-th of those that the last wait found ready.
    pub fn ready(&self, index: usize) -> Ready {
        let Event { flags, data } = self.events[index];
        let over = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        Ready {
            number: data.u64(),
            readable: flags.intersects(over | EventFlags::IN),
            ended: flags.intersects(over),
            writable: flags.intersects(EventFlags::OUT | EventFlags::ERR),
        }
    }
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Interest::Reading => EventFlags::IN,
            Interest::ReadingAndWriting => EventFlags::IN | EventFlags::OUT,
            Interest::Changes => EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET,
        }
    }
}

impl Waker {
    /// A waker, to be added to a [`Poller`].
    ///
    /// # Errors
    /// Too many open files.
    pub fn new() -> io::Result<Waker> {
        Ok(Waker(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Makes the poller's wait end, now and from then on.
    pub fn wake(&self) {
        // A counter that is full wakes all the same.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits for a few descriptors, without a set: those that epoll refuses (files), or that are waited for once. Returns how
/// many are ready. A signal ends the wait, too.
///
/// # Errors
/// What the kernel said; never that a signal came.
pub fn poll(waited: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<usize> {
    unless_interrupted(rustix::event::poll(waited, timeout.map(timespec).as_ref()))
}

/// Whether something is there to be read now, or an end.
pub fn is_readable(source: impl AsFd) -> bool {
    poll(&mut [PollFd::new(&source, PollFlags::IN)], Some(Duration::ZERO)).is_ok_and(|ready| ready > 0)
}

/// Writes to a descriptor if there is room for it at once.
pub fn write_if_room(to: impl AsFd, bytes: &[u8]) {
    let mut waited = [PollFd::new(&to, PollFlags::OUT)];
    let polled = poll(&mut waited, Some(Duration::ZERO));
    if polled.is_ok() && waited[0].revents().contains(PollFlags::OUT) {
        let _ = rustix::io::write(&to, bytes);
    }
}

fn unless_interrupted(waited: Result<usize, Errno>) -> io::Result<usize> {
    match waited {
        Err(Errno::INTR) => Ok(0),
        waited => Ok(waited?),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_wait_finds_the_same_and_is_not_rounded_where_the_kernel_refuses_to_count_nanoseconds() {
        for error in [None, Some(Errno::NOSYS), Some(Errno::PERM)] {
            let on_thread = thread::spawn(move || {
                if error.is_some_and(|error| !refuse_pwait2(error)) {
                    return eprintln!("skipped: no seccomp filters here");
                }
                let mut poller = Poller::new(8).unwrap();
                readiness_is_found(&mut poller);
                a_deadline_is_kept(&mut poller);
                a_waker_ends_a_wait_without_end(&mut poller);
                assert_eq!(poller.waits_in_two, error.is_some(), "{error:?}");
            });
            on_thread.join().unwrap();
        }
    }

    fn readiness_is_found(poller: &mut Poller) {
        let (near, mut far) = UnixStream::pair().unwrap();
        poller.add(&near, 7, Interest::Changes).unwrap();
        assert_eq!(poller.wait(Some(Duration::from_s(60))).unwrap(), 1);
        assert!(poller.ready(0).writable && !poller.ready(0).readable);
        // It was reported once.
        assert_eq!(poller.wait(Some(Duration::from_us(300))).unwrap(), 0);
        far.write_all(b"x").unwrap();
        assert_eq!(poller.wait(Some(Duration::from_s(60))).unwrap(), 1);
        assert_eq!(poller.ready(0), Ready { number: 7, readable: true, ended: false, writable: true });
        // What is reported as long as it is there is reported again.
        poller.change(&near, 8, Interest::Reading).unwrap();
        for _ in 0..2 {
            assert_eq!(poller.wait(None).unwrap(), 1);
            assert_eq!(poller.ready(0), Ready { number: 8, readable: true, ended: false, writable: false });
        }
        drop(far);
        poller.change(&near, 9, Interest::ReadingAndWriting).unwrap();
        assert_eq!(poller.wait(None).unwrap(), 1);
        assert_eq!(poller.ready(0), Ready { number: 9, readable: true, ended: true, writable: true });
        poller.remove(&near);
        poller.remove(&near);
        assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap(), 0);
    }

    /// Of many waits the shortest was not held up by a busy machine: it is shorter than what milliseconds can count.
    fn a_deadline_is_kept(poller: &mut Poller) {
        let limit = Duration::from_us(100);
        let timed = |_| {
            let began = Instant::now();
            assert_eq!(poller.wait(Some(limit)).unwrap(), 0);
            began.elapsed().as_nanos()
        };
        let shortest = (0..200).map(timed).min().unwrap();
        assert!((100_000..1_000_000).contains(&shortest), "{shortest} ns");
    }

    fn a_waker_ends_a_wait_without_end(poller: &mut Poller) {
        let waker = Waker::new().unwrap();
        poller.add(&waker, 7, Interest::Reading).unwrap();
        assert_eq!(poller.wait(Some(Duration::from_us(1))).unwrap(), 0);
        let other = waker.clone();
        let waking = thread::spawn(move || other.wake());
        assert_eq!((poller.wait(None).unwrap(), poller.ready(0).number), (1, 7));
        waking.join().unwrap();
    }

    /// Lets the kernel refuse `epoll_pwait2` to this thread; `false` where it has no such filters, or forbids them.
    fn refuse_pwait2(error: Errno) -> bool {
        let step = |code: u32, jf, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf, k };
        let mut filter = [
            // The number of the call is the first thing that a filter sees.
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, libc::SYS_epoll_pwait2 as u32),
            step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | error.raw_os_error() as u32),
            step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        rustix::thread::set_no_new_privs(true).unwrap();
        // SAFETY: `program` and its filter are locals; the filter concerns this thread alone, which ends with the test.
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0 }
    }
}
