//! What ends a run before its time.

use std::fmt;
use std::io;

use mqttlab_rows::Reason;
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
    /// The same of a server that has been reaped.
    ServerExit {
        /// Its name.
        server: String,
        /// How it ended.
        status: String,
        /// The file that holds what it wrote.
        log: String,
    },
    /// A server did not start, or ended so.
    Server(String),
    /// A program that performs a client cannot be started.
    Program(String),
    /// A part of the run that another engine performs is gone, or has to end.
    Part(String),
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

    /// As it is recorded.
    pub fn reason(&self) -> Reason {
        match self.clone() {
            Interruption::Signal(name) => Reason::Signal { name: name.to_owned() },
            Interruption::StoppedAt(at) => Reason::StoppedAt { at_ns: at.as_ns() },
            Interruption::Abandoned => Reason::Abandoned,
            Interruption::ServerEnded(server) => {
                let server = server.to_string();
                Reason::ServerExit { server, status: String::new(), log: String::new() }
            }
            Interruption::ServerExit { server, status, log } => Reason::ServerExit { server, status, log },
            Interruption::Server(problem) => Reason::Server { problem },
            Interruption::Program(problem) => Reason::Program { problem },
            Interruption::Part(problem) => Reason::Part { problem },
            Interruption::Disk(problem) => Reason::Disk { problem },
            Interruption::Fault(problem) => Reason::Fault { problem },
        }
    }
}

impl fmt::Display for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Interruption::Signal(name) => write!(f, "the run was stopped by {name}"),
            Interruption::StoppedAt(at) => write!(f, "it was stopped at {at} of simulated time, as asked"),
            Interruption::Abandoned => write!(f, "the program that started the engine has ended"),
            Interruption::ServerEnded(_) => write!(f, "a server ended during the run"),
            Interruption::ServerExit { server, status, log } => {
                write!(f, "the server `{server}` ended during the run ({status})")?;
                // A simulated one writes nothing.
                if log.is_empty() { Ok(()) } else { write!(f, "; see {log}") }
            }
            Interruption::Server(what)
            | Interruption::Program(what)
            | Interruption::Part(what)
            | Interruption::Disk(what)
            | Interruption::Fault(what) => write!(f, "{what}"),
        }
    }
}
