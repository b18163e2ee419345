//! What can go wrong with a recording, by what the caller can do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong with a recording.
#[derive(Debug)]
pub enum Error {
    /// The file system refused: full, read-only, or not permitted. [`recover`](crate::recover) with another
    /// output directory saves what was recorded.
    Disk {
        /// What was being done.
        action: &'static str,
        /// To which file or directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A new recording was to be made where there is one already. Choose another directory.
    Occupied(PathBuf),
    /// A program is writing the recording. Wait for its end, or make a [`snapshot`](crate::snapshot).
    BeingWritten(PathBuf),
    /// The recording is finished: there is nothing to recover.
    Finished(PathBuf),
    /// The directory holds no recording.
    NotARecording(PathBuf),
    /// The recording was made by a later program. Use that one.
    LaterSchema {
        /// The file that says so.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The latest version known here.
        known: u32,
    },
    /// A file is not what its name says.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

/// A result whose error is [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Disk { action, path, source } => write!(f, "cannot {action} {}: {source}", path.display()),
            Error::Occupied(path) => write!(f, "{} already holds a recording", path.display()),
            Error::BeingWritten(path) => write!(
                f,
                "{} is being written by a run in progress; copy it with `mqttlab-engine snapshot DIR --out OTHER`",
                path.display()
            ),
            Error::Finished(path) => write!(f, "the recording in {} is finished already", path.display()),
            Error::NotARecording(path) => write!(f, "{} holds no recording", path.display()),
            Error::LaterSchema { path, found, known } => write!(
                f,
                "{} is of schema version {found}, but this program knows versions up to {known}",
                path.display()
            ),
            Error::Damaged { path, what } => write!(f, "{} is damaged: {what}", path.display()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Disk { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Says what was being done, and to what, when an I/O error came.
pub(crate) trait ErrorContext<T> {
    /// Turns the error into [`Error::Disk`].
    fn on(self, action: &'static str, path: &Path) -> Result<T>;
}

impl<T> ErrorContext<T> for io::Result<T> {
    fn on(self, action: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Disk { action, path: path.to_owned(), source })
    }
}
