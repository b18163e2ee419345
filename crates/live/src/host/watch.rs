//! Waits for what may end a run before its time.

use std::io;
use std::os::fd::AsFd;

use mqttlab_run::Interruption;
use mqttlab_system::poller::{Interest, Poller};
use mqttlab_units::Duration;

use crate::host::watchdog::Watchdog;

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
        let poller = Poller::new(MOST)?;
        poller.add(&watchdog, WATCHDOG, Interest::Reading)?;
        Ok(Watch { poller, watchdog })
    }

    /// Watches for the end of a server, too.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn add_server(&self, server: impl AsFd) -> io::Result<()> {
        self.poller.add(server, SERVER, Interest::Reading)
    }

    /// Waits for `timeout`, or less. A server's end only ends the wait.
    ///
    /// # Errors
    /// The interruption that came.
    pub fn wait(&mut self, timeout: Duration) -> Result<(), Interruption> {
        let woken = self.poller.wait(Some(timeout));
        woken.map_err(|error| Interruption::fault("cannot wait", &error))?;
        self.watchdog.interruption().cloned().map_or(Ok(()), Err)
    }

    /// Whether the run has been asked to end.
    pub fn wants_to_stop(&self) -> bool {
        self.watchdog.interruption().is_some()
    }
}

/// One is enough: any of them ends the wait, and the watchdog knows what it was.
const MOST: usize = 1;
const WATCHDOG: u64 = 1;
const SERVER: u64 = 2;
