//! What ends a run before its time, and how it is noticed.

use std::fmt;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use mqttlab_units::Duration;

use crate::poller::Poller;
use crate::signals::Signals;

/// Why a run ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Somebody asked for it.
    Signal(&'static str),
    /// Nobody reads the progress any more: the program that started the engine is gone.
    Abandoned,
    /// The broker ended; how is known when it has been laid to rest.
    BrokerEnded,
    /// The broker did not start, or ended so.
    Broker(String),
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
            Interruption::Abandoned => write!(f, "the program that started the engine is gone"),
            Interruption::BrokerEnded => write!(f, "the broker ended during the run"),
            Interruption::Broker(what) | Interruption::Disk(what) | Interruption::Fault(what) => {
                write!(f, "{what}")
            }
        }
    }
}

/// Waits for whatever may interrupt a run.
pub struct Watch {
    poller: Poller,
    signals: Signals,
}

impl Watch {
    /// Watches for signals, and for the closing of standard output where that is a pipe.
    ///
    /// # Errors
    /// Too many open files.
    pub fn new() -> io::Result<Watch> {
        let (poller, signals) = (Poller::new()?, Signals::take()?);
        poller.add(&signals, SIGNAL)?;
        let stdout = io::stdout();
        if !stdout.is_terminal() {
            // A file cannot be waited for, and nobody needs to read it.
            let _ = poller.add_for_closing(&stdout, READER);
        }
        Ok(Watch { poller, signals })
    }

    /// Watches for the end of a broker, too.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn add_broker(&self, broker: impl AsFd) -> io::Result<()> {
        self.poller.add(broker, BROKER)
    }

    /// Waits for `timeout`, or less. The broker's end only ends the wait.
    ///
    /// # Errors
    /// The interruption that came.
    pub fn wait(&mut self, timeout: Duration) -> Result<(), Interruption> {
        let woken = self.poller.wait(Some(timeout));
        let woken: Vec<u64> = woken.map_err(|error| Interruption::fault("cannot wait", &error))?.collect();
        if let Some(name) = self.signals.received() {
            return Err(Interruption::Signal(name));
        }
        if woken.contains(&READER) {
            return Err(Interruption::Abandoned);
        }
        Ok(())
    }

    /// Whether a signal is waiting to be heard.
    pub fn wants_to_stop(&self) -> bool {
        let mut poll = libc::pollfd {
            fd: std::os::fd::AsRawFd::as_raw_fd(&self.signals.as_fd()),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one pollfd is passed.
        unsafe { libc::poll(&mut poll, 1, 0) > 0 }
    }
}

const SIGNAL: u64 = 1;
const READER: u64 = 2;
const BROKER: u64 = 3;
