//! Lines of text files, however long, damaged or compressed they are.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::source::{Meter, head, open};

/// The lines of a file, one after the other.
pub struct TextLines {
    text: BufReader<Box<dyn Read>>,
    bytes: Vec<u8>,
    number: u64,
}

/// How a file's lines end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextEnd {
    /// Behind a whole line.
    Whole,
    /// In the middle of this line, which is left out.
    Cut(u64),
    /// It cannot be read any further.
    Unreadable(String),
}

impl TextLines {
    /// Opens a file.
    ///
    /// # Errors
    /// [`ImportError::Evidence`](crate::error::ImportError::Evidence) when it cannot be opened.
    pub fn open(file: &Path, meter: &Meter) -> Result<TextLines> {
        Ok(TextLines { text: BufReader::new(open(file, meter)?), bytes: Vec::new(), number: 0 })
    }

    /// Calls `each` with every whole line and its number; the end of a line that is too long is left out. Bytes that are not UTF-8
    /// become replacement characters.
    pub fn for_each(&mut self, mut each: impl FnMut(u64, &str) -> Result<()>) -> Result<TextEnd> {
        loop {
            self.number += 1;
            match self.next() {
                Err(error) => return Ok(TextEnd::Unreadable(error.to_string())),
                Ok(false) if self.bytes.is_empty() => return Ok(TextEnd::Whole),
                Ok(false) => return Ok(TextEnd::Cut(self.number)),
                Ok(true) => {}
            }
            let line = String::from_utf8_lossy(&self.bytes);
            each(self.number, line.trim_start_matches('\u{feff}').trim_end_matches(['\n', '\r']))?;
        }
    }

    /// Whether there was a whole line.
    fn next(&mut self) -> io::Result<bool> {
        self.bytes.clear();
        (&mut self.text).take(LINE_MAX).read_until(b'\n', &mut self.bytes)?;
        if self.bytes.ends_with(b"\n") || (self.bytes.len() as u64) < LINE_MAX {
            return Ok(self.bytes.ends_with(b"\n"));
        }
        loop {
            let rest = self.text.fill_buf()?;
            match rest.iter().position(|&byte| byte == b'\n') {
                _ if rest.is_empty() => return Ok(false),
                None => {
                    let count = rest.len();
                    self.text.consume(count);
                }
                Some(at) => {
                    self.text.consume(at + 1);
                    return Ok(true);
                }
            }
        }
    }
}

/// The files by the first time in them, where each has one: rotated logs in any order.
pub fn by_first_time(
    files: &[PathBuf],
    unpacked_max: Option<u64>,
    first: impl Fn(&str) -> Option<u64>,
) -> Vec<usize> {
    let mut places: Vec<usize> = (0..files.len()).collect();
    if files.len() < 2 || files.iter().any(|file| file == Path::new("-")) {
        return places;
    }
    let time = |file: &PathBuf| {
        let head = head(file, unpacked_max).ok()?;
        String::from_utf8_lossy(&head).lines().find_map(&first)
    };
    let times: Vec<Option<u64>> = files.iter().map(time).collect();
    if times.iter().all(Option::is_some) {
        places.sort_by_key(|&place| times[place]);
    }
    places
}

/// A line of a log with a payload in it may be long; beyond this it is read no further.
const LINE_MAX: u64 = 1 << 20;
