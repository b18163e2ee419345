//! This process and others: users, signals, ends.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use rustix::process::{Pid, PidfdFlags};

pub use rustix::process::Signal;

/// The number of the user who has started this process: one that has moved into a user namespace has another one there.
pub fn user() -> u32 {
    static USER: OnceLock<u32> = OnceLock::new();
    *USER.get_or_init(user_now)
}

/// The number that the user has in the namespace that this process is in.
pub fn user_now() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The number of the calling thread.
pub fn thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// A descriptor of a process, readable once it has ended.
///
/// # Errors
/// There is no such process.
pub fn open(process: i32) -> io::Result<OwnedFd> {
    Ok(rustix::process::pidfd_open(pid(process)?, PidfdFlags::empty())?)
}

/// Sends a signal to one process.
///
/// # Errors
/// There is no such process, or it is not ours.
pub fn send(process: i32, signal: Signal) -> io::Result<()> {
    Ok(rustix::process::kill_process(pid(process)?, signal)?)
}

/// Numbers below one stand for groups of processes, and are refused.
fn pid(process: i32) -> io::Result<Pid> {
    let pid = if process > 0 { Pid::from_raw(process) } else { None };
    pid.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Ends this process here and now, without the destructors of threads that are still at work.
pub fn end_now(status: i32) -> ! {
    // SAFETY: it only ends the process.
    unsafe { libc::_exit(status) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;
    use crate::poller::is_readable;

    #[test]
    fn a_process_that_is_sent_a_signal_ends_and_groups_are_sent_none() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let number = child.id() as i32;
        let descriptor = open(number).unwrap();
        assert!(!is_readable(&descriptor));
        assert!([0, -1, -number].iter().all(|group| send(*group, Signal::KILL).is_err()));
        send(number, Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
        assert!(is_readable(&descriptor) && open(number).is_err());
    }
}
