//! What ends a run before its time.

use std::fmt;
use std::io;

use mqttlab_units::Instant;

/// Why a run ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Somebody asked for it.
    Signal(&'static str),
    /// A simulation was to be stopped there, to be looked at.
    StoppedAt(Instant),
    /// Nobody reads the progress any more: the program that started the engine is gone.
    Abandoned,
    /// A server (index into the plan's) ended; how is known when it has been reaped.
    ServerEnded(usize),
    /// A server did not start, or ended so.
    Server(String),
    /// A program that performs a client cannot be started.
    Program(String),
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
            Interruption::StoppedAt(at) => write!(f, "it was stopped at {at} of simulated time, as asked"),
            Interruption::Abandoned => write!(f, "the program that started the engine has ended"),
            Interruption::ServerEnded(_) => write!(f, "a server ended during the run"),
            Interruption::Server(what)
            | Interruption::Program(what)
            | Interruption::Disk(what)
            | Interruption::Fault(what) => write!(f, "{what}"),
        }
    }
}
