//! Why an import ends without a recording.

use std::fmt;
use std::path::Path;

/// Why an import ends without a recording.
#[derive(Debug)]
pub enum ImportError {
    /// The evidence cannot be read; a sentence that names file and remedy. Nothing was written.
    Evidence(String),
    /// The recording cannot be written.
    Recording(mqttlab_recording::Error),
}

/// A result whose error is [`ImportError`].
pub type Result<T> = std::result::Result<T, ImportError>;

impl ImportError {
    /// The file cannot be used, and why.
    pub fn in_file(file: &Path, problem: impl fmt::Display) -> ImportError {
        ImportError::Evidence(format!("{}: {problem}", file.display()))
    }
}

impl From<mqttlab_recording::Error> for ImportError {
    fn from(error: mqttlab_recording::Error) -> ImportError {
        ImportError::Recording(error)
    }
}
