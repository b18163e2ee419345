//! What ends a run before its time, and how it is noticed.

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use mqttlab_units::Duration;

use crate::poller::Poller;
use crate::watchdog::Watchdog;

/// Why a run ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Somebody asked for it.
    Signal(&'static str),
    /// Nobody reads the progress any more: the program that started the engine is gone.
    Abandoned,
    /// A server (index into the plan's) ended; how is known when it has been reaped.
    ServerEnded(usize),
    /// A server did not start, or ended so.
    Server(String),
    /// Nothing can be written any more.
    Disk(String),
    /// Something of ours failed.
    Fault(String),
}

impl Interruption {
    /// Something of ours failed with an error of the system.
    pub fn fault(what: &str, error: &io::Error) -> Interruption {
        Interruption::Fault(format!("{what}: {error}"))
    }
}

impl fmt::Display for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Interruption::Signal(name) => write!(f, "the run was stopped by {name}"),
            Interruption::Abandoned => write!(f, "the program that started the engine has ended"),
            Interruption::ServerEnded(_) => write!(f, "a server ended during the run"),
            Interruption::Server(what) | Interruption::Disk(what) | Interruption::Fault(what) => {
                write!(f, "{what}")
            }
        }
    }
}

/// Waits for whatever may interrupt a run.
pub struct Watch {
    poller: Poller,
    watchdog: Watchdog,
}

impl Watch {
    /// Watches for what the watchdog hears.
    ///
    /// # Errors
    /// Too many open files.
    pub fn new(watchdog: Watchdog) -> io::Result<Watch> {
        let poller = Poller::new()?;
        poller.add(&watchdog, WATCHDOG)?;
        Ok(Watch { poller, watchdog })
    }

    /// Watches for the end of a server, too.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn add_server(&self, server: impl AsFd) -> io::Result<()> {
        self.poller.add(server, SERVER)
    }

    /// Waits for `timeout`, or less. A server's end only ends the wait.
    ///
    /// # Errors
    /// The interruption that came.
    pub fn wait(&mut self, timeout: Duration) -> Result<(), Interruption> {
        let woken = self.poller.wait(Some(timeout));
        drop(woken.map_err(|error| Interruption::fault("cannot wait", &error))?);
        self.watchdog.interruption().cloned().map_or(Ok(()), Err)
    }

    /// Whether the run has been asked to end.
    pub fn wants_to_stop(&self) -> bool {
        self.watchdog.interruption().is_some()
    }
}

const WATCHDOG: u64 = 1;
const SERVER: u64 = 2;
