//! What can be wrong with a file that a caller hands in.

use std::fmt;
use std::io;

use crate::reader::others;

/// Why a capture or a log cannot be read.
#[derive(Debug)]
pub enum CaptureError {
    /// The file, pipe or socket failed.
    Io(io::Error),
    /// The first bytes belong to neither pcapng nor pcap.
    NotACapture {
        /// The first bytes; fewer where there are no more.
        first: Vec<u8>,
    },
    /// A length or number in the capture contradicts the format; what follows it cannot be found.
    Malformed {
        /// Where the block or record starts, in bytes from the start of the file.
        offset: u64,
        /// What is wrong there.
        problem: &'static str,
    },
    /// A line of a message log cannot be read.
    Log {
        /// The line, counted from 1.
        line: u64,
        /// What is wrong there, with the field and its value.
        problem: String,
    },
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaptureError::Io(error) => write!(f, "cannot read: {error}"),
            CaptureError::NotACapture { first } if first.is_empty() => {
                f.write_str("not a pcapng or pcap file: it is empty")
            }
            CaptureError::NotACapture { first } => match others::named(first) {
                Some(words) => f.write_str(words),
                None => {
                    let first = &first[..first.len().min(4)];
                    write!(
                        f,
                        "not a pcapng or pcap file: it starts with the bytes {first:02x?}; if it is a capture, convert it \
                         with: editcap -F pcapng IN OUT"
                    )
                }
            },
            CaptureError::Malformed { offset, problem } => write!(f, "at byte {offset}: {problem}"),
            CaptureError::Log { line, problem } => write!(f, "line {line}: {problem}"),
        }
    }
}

impl std::error::Error for CaptureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CaptureError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for CaptureError {
    fn from(error: io::Error) -> Self {
        CaptureError::Io(error)
    }
}
