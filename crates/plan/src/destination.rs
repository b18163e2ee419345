//! Where the recording of a run goes: the part of a job that is not in its plan, which may be performed many times.

use std::path::{Path, PathBuf};

/// A recording that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Its directory, which must not exist or be empty.
    pub directory: PathBuf,
    /// Its identifier, a ULID; `None` has the recorder make one.
    pub run_id: Option<String>,
}

impl Destination {
    /// A directory, and an identifier that the recorder makes.
    pub fn new(directory: impl AsRef<Path>) -> Destination {
        Destination { directory: directory.as_ref().to_owned(), run_id: None }
    }
}
