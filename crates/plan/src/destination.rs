//! Where the recording of a run goes, and which part of the run an engine performs: what of a job is not in its plan, which may
//! be performed many times.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A recording that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Its directory, which must not exist or be empty.
    pub directory: PathBuf,
    /// Its identifier, a ULID; `None` has the recorder make one.
    pub run_id: Option<String>,
    /// What of the run this engine performs.
    pub part: Part,
}

/// What of a run an engine performs: of a plan with several parts each has an engine of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    #[default]
    Whole,
    /// Part 0, which the others come to: it has the run's clock, says when what begins, and keeps the recording.
    Leading {
        /// Where the others come to; port 0 for any that is free.
        listen: SocketAddr,
    },
    /// Another part.
    Following {
        /// Its number, from 1.
        number: u32,
        /// Where part 0 listens.
        lead: SocketAddr,
    },
}

impl Destination {
    /// A directory, and an identifier that the recorder makes, for a run that is not split.
    pub fn new(directory: impl AsRef<Path>) -> Destination {
        Destination { directory: directory.as_ref().to_owned(), run_id: None, part: Part::Whole }
    }
}

impl Part {
    /// Its number, from 0.
    pub fn number(self) -> u32 {
        match self {
            Part::Whole | Part::Leading { .. } => 0,
            Part::Following { number, .. } => number,
        }
    }
}
