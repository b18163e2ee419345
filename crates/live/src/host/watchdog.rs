//! Ends the program within two seconds of being asked to, whatever it is at.
//!
//! ```text
//!   SIGINT, SIGTERM, SIGHUP ──┐
//!                             ├──► asked ── GRACE ──► last act, exit     the program has usually ended by then
//!   nobody reads our output ──┘      └── signal ────► last act, exit     a second signal does not wait
//! ```
//!
//! A thread of its own waits for these, because a loop that asks now and then has stages in which it does not: building
//! ten thousand hosts, sorting the rows of a long run. That the parent is gone is known from the hang-up of standard
//! output; the kernel's parent-death signal comes when the *thread* that started us ends.
//!
//! What it does not do: clean up. What must not outlive the program hangs on descriptors and processes that end with it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use mqttlab_run::Interruption;
use mqttlab_system::poller::{PollFd, PollFlags, Waker, poll, write_if_room};
use mqttlab_system::priority::Priority;
use mqttlab_system::process;
use mqttlab_system::signals::Signals;

/// Watches for what ends the program. A clone asks the same thread.
#[derive(Clone)]
pub struct Watchdog {
    asked: Arc<OnceLock<Interruption>>,
    waker: Waker,
}

impl Watchdog {
    /// Starts to watch. When the program is not over [`GRACE`] after it was asked to end, `last_act` is done and it exits
    /// with `status`.
    ///
    /// # Errors
    /// Too many open files or threads.
    pub fn start(
        signals: Signals,
        grace: Duration,
        status: i32,
        last_act: impl FnOnce(&Interruption) + Send + 'static,
    ) -> io::Result<Watchdog> {
        let watchdog = Watchdog { asked: Arc::default(), waker: Waker::new()? };
        let clone = watchdog.clone();
        thread::Builder::new().name("watchdog".into()).spawn(move || {
            // Clients that use all processors under real-time priority must not keep Ctrl-C waiting. Where it is not
            // permitted nothing else has it either.
            let _ = Priority::WATCHDOG.apply();
            let interruption = wait(&signals);
            clone.request_end(interruption.clone());
            wait_for_signal(&signals, grace);
            last_act(&interruption);
            process::end_now(status)
        })?;
        Ok(watchdog)
    }

    /// What has asked the program to end, if anything has.
    pub fn interruption(&self) -> Option<&Interruption> {
        self.asked.get()
    }

    fn request_end(&self, interruption: Interruption) {
        let _ = self.asked.set(interruption);
        self.waker.wake();
    }
}

impl AsFd for Watchdog {
    /// Readable once the program has been asked to end.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

/// Until there is reason to end.
fn wait(signals: &Signals) -> Interruption {
    let stdout = io::stdout();
    loop {
        // A closed reader is reported whatever is asked for: POLLERR of a pipe, POLLHUP of a terminal or a socket.
        let mut asked = [PollFd::new(signals, PollFlags::IN), PollFd::new(&stdout, PollFlags::empty())];
        // An error that a wait may have is no reason to end.
        let _ = poll(&mut asked, None);
        let stdout_says = asked[1].revents();
        if let Some(name) = signals.received() {
            return Interruption::Signal(name);
        }
        if stdout_says.intersects(PollFlags::ERR | PollFlags::HUP) {
            return Interruption::Abandoned;
        }
    }
}

/// For this long, or until the next signal.
fn wait_for_signal(signals: &Signals, length: Duration) {
    let deadline = Instant::now() + length;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || signals.received().is_some() {
            return;
        }
        let left = mqttlab_units::Duration::from_ns(left.as_nanos() as u64);
        let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(left));
    }
}

/// Writes a line to standard output if there is room for it at once: whoever reads may be what hangs.
pub fn write_last_line(line: &str) {
    // Not through `Stdout`, whose lock a thread that is at work may hold.
    write_if_room(io::stdout(), line.as_bytes());
}

/// How long a program has to end by itself; the rest of the two seconds is for its last act on a busy machine.
pub const GRACE: Duration = Duration::from_millis(1500);

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use mqttlab_system::process::Signal;
    use mqttlab_system::signals;

    use super::*;

    /// The same test in a process of its own, which has nothing to do but to be watched.
    fn watched(test: &str, grace_s: u64) -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        // The harness names a test without its crate.
        let (_, here) = module_path!().split_once("::").unwrap();
        // The harness has a thread of its own, which would take the signals and be killed by them. What runs the tests may
        // have been started by `nohup`, and a program leaves alone what it finds ignored.
        signals::block_in(&mut command);
        command
            .args([&format!("{here}::{test}"), "--exact", "--nocapture"])
            .env(WATCHED, grace_s.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// In that process: what it has to do.
    fn is_watched() -> bool {
        let Ok(grace_s) = std::env::var(WATCHED) else { return false };
        let grace = Duration::from_secs(grace_s.parse().unwrap());
        let last_act = |interruption: &Interruption| write_last_line(&format!("{interruption}\n"));
        Watchdog::start(Signals::block().unwrap(), grace, 3, last_act).unwrap();
        write_last_line("watched\n");
        thread::sleep(Duration::from_secs(600));
        true
    }

    fn read_until(child: &mut Child, words: &str) {
        use std::io::BufRead;
        let stdout = io::BufReader::new(child.stdout.as_mut().unwrap());
        assert!(stdout.lines().any(|line| line.unwrap().contains(words)));
    }

    /// A minute is for a busy machine; without what is tested it takes ten.
    fn status(child: &mut Child) -> Option<i32> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status.code();
            }
            if Instant::now() > deadline {
                child.kill().unwrap();
                child.wait().unwrap();
                return None;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn send(child: &Child, signal: Signal) {
        process::send(child.id() as i32, signal).unwrap();
    }

    #[test]
    fn a_program_that_does_not_end_by_itself_is_ended_after_its_grace() {
        if !is_watched() {
            let mut child = watched("a_program_that_does_not_end_by_itself_is_ended_after_its_grace", 0);
            read_until(&mut child, "watched");
            send(&child, Signal::HUP);
            read_until(&mut child, "SIGHUP");
            assert_eq!(status(&mut child), Some(3));
        }
    }

    #[test]
    fn a_second_signal_does_not_wait() {
        if !is_watched() {
            let mut child = watched("a_second_signal_does_not_wait", 300);
            read_until(&mut child, "watched");
            send(&child, Signal::INT);
            // Of two that come before the first is read one is left, so more than two may be needed.
            thread::sleep(Duration::from_millis(300));
            while status_now(&mut child).is_none() {
                send(&child, Signal::INT);
                thread::sleep(Duration::from_millis(20));
            }
            assert_eq!(status(&mut child), Some(3));
        }
    }

    fn status_now(child: &mut Child) -> Option<i32> {
        child.try_wait().unwrap().map(|status| status.code().unwrap_or(-1))
    }

    #[test]
    fn a_program_whose_output_nobody_reads_ends() {
        if !is_watched() {
            let mut child = watched("a_program_whose_output_nobody_reads_ends", 0);
            read_until(&mut child, "watched");
            drop(child.stdout.take());
            assert_eq!(status(&mut child), Some(3));
        }
    }

    const WATCHED: &str = "MQTTLAB_WATCHDOG_TEST_GRACE_S";
}
