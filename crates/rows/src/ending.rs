//! How a run ended.

use serde::Serialize;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As planned.
    Complete,
    /// Before its end, and why.
    Incomplete(Reason),
}

/// Why a recording is not complete: `reason` of `incomplete.json`. Whoever shows it makes words of it; in recordings of before
/// it was a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// Somebody stopped it.
    Signal {
        /// The signal's name.
        name: String,
    },
    /// A simulation was to be stopped there, to be looked at.
    StoppedAt {
        /// Since the start of the run.
        at_ns: u64,
    },
    /// The program that started the engine is gone.
    Abandoned,
    /// A server ended during the run.
    ServerExit {
        /// Its name.
        server: String,
        /// How it ended; empty where that is not known.
        status: String,
        /// The file that holds what it wrote.
        log: String,
    },
    /// A server did not start.
    Server {
        /// What went wrong, in words.
        problem: String,
    },
    /// A program that performs a client cannot be started.
    Program {
        /// What went wrong, in words.
        problem: String,
    },
    /// A part of the run that another engine performs is gone, or had to end.
    Part {
        /// Which, and what went wrong, in words.
        problem: String,
    },
    /// Nothing could be written any more.
    Disk {
        /// What went wrong, in words.
        problem: String,
    },
    /// Something of ours failed.
    Fault {
        /// What went wrong, in words.
        problem: String,
    },
    /// The producer ended without finishing the recording.
    Killed,
    /// It goes on: this is what was written by then.
    GoingOn {
        /// When that was (RFC 3339), or that it is not known.
        until: String,
    },
    /// The evidence that was imported ends early or is damaged.
    Evidence {
        /// What is wrong with it, in words.
        problems: Vec<String>,
    },
}

impl Ending {
    /// Before its end for this reason; as planned without one.
    pub fn of(reason: Option<Reason>) -> Ending {
        reason.map_or(Ending::Complete, Ending::Incomplete)
    }
}
