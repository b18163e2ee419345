//! Where somebody asks a run that goes on for an event: a socket in the recording's directory, a line of JSON for each
//! question, and one for its answer.
//!
//! ```text
//!   {"ask": "time"}                   ──►  {"since_publishing_ns": 12000000000, "stage": "measurement"}
//!   {"fire": [{"after_ns": 0, "event": {…}}, …], "written": {…}}
//!                                     ──►  {"fired": [{"at_ns": 12345000000, "name": "wan down"}, …]}
//!                                      or  {"refused": "the measurement is over"}
//! ```
//!
//! It is there from the time at which clients connect until they leave, and goes with the engine's end; after `kill -9` a name
//! without anybody behind it stays, which [`mqttlab_recording::recover`] removes with the spools.
//!
//! What it does not do: decide anything. The conductor asks for questions, and answers.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use mqttlab_recording::HAND_SOCKET as NAME;
use serde_json::Value;

/// The socket, and who is talking.
pub(crate) struct HandSocket {
    path: PathBuf,
    listener: UnixListener,
    callers: Vec<Caller>,
}

struct Caller {
    stream: UnixStream,
    heard: Vec<u8>,
    /// Of these no byte ends a line.
    looked: usize,
}

impl HandSocket {
    /// Makes it, for this user alone.
    ///
    /// # Errors
    /// The directory is on a file system without sockets.
    pub(crate) fn open(directory: &Path) -> io::Result<HandSocket> {
        let path = directory.join(NAME);
        // The name of a socket has 107 B at most; a directory may have more.
        let place = File::open(directory)?;
        let short = PathBuf::from(format!("/proc/self/fd/{}/{NAME}", place.as_raw_fd()));
        let listener = UnixListener::bind(short)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(HandSocket { path, listener, callers: Vec::new() })
    }

    /// Answers what has been asked since the last time.
    pub(crate) fn attend(&mut self, mut answer: impl FnMut(&Value) -> Value) {
        while self.callers.len() < CALLERS_MAX
            && let Ok((stream, _)) = self.listener.accept()
        {
            if stream.set_nonblocking(true).is_ok() {
                self.callers.push(Caller { stream, heard: Vec::new(), looked: 0 });
            }
        }
        self.callers.retain_mut(|caller| caller.attend(&mut answer));
    }
}

impl Drop for HandSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Caller {
    /// Answers its questions; whether it may have more.
    fn attend(&mut self, answer: &mut impl FnMut(&Value) -> Value) -> bool {
        let is_open = self.hear();
        while let Some(line) = self.take_line() {
            let told = match serde_json::from_slice(&line) {
                Ok(question) => answer(&question),
                Err(error) => serde_json::json!({ "refused": format!("a question is no JSON: {error}") }),
            };
            // Who does not read its answer gets none: an answer has room in the socket's buffer.
            if self.stream.write_all(format!("{told}\n").as_bytes()).is_err() {
                return false;
            }
        }
        is_open && self.heard.len() <= BYTES_MAX
    }

    /// The next whole line. A long one comes in pieces, of which each is looked through once.
    fn take_line(&mut self) -> Option<Vec<u8>> {
        let Some(after) = self.heard[self.looked..].iter().position(|byte| *byte == b'\n') else {
            self.looked = self.heard.len();
            return None;
        };
        let end = std::mem::take(&mut self.looked) + after;
        Some(self.heard.drain(..=end).collect())
    }

    /// Reads what has come; whether more may come.
    fn hear(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        while self.heard.len() <= BYTES_MAX {
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(length) => self.heard.extend_from_slice(&buffer[..length]),
                Err(error) => return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
            }
        }
        true
    }
}

const CALLERS_MAX: usize = 8;
/// Events of all clients of the largest plan have room.
const BYTES_MAX: usize = 32_000_000;

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    #[test]
    fn each_line_is_a_question_and_the_name_goes_with_the_run() {
        let directory = std::env::temp_dir().join(format!("mqttlab-socket-{}", std::process::id()));
        let deep = directory.join("x".repeat(100)).join("y".repeat(100));
        std::fs::create_dir_all(&deep).unwrap();
        let mut socket = HandSocket::open(&deep).unwrap();
        let place = File::open(&deep).unwrap();
        let mut caller = UnixStream::connect(format!("/proc/self/fd/{}/{NAME}", place.as_raw_fd())).unwrap();
        caller.write_all(b"{\"ask\": 1}\nnonsense\n{\"ask\"").unwrap();
        socket.attend(|question| question["ask"].clone());
        caller.write_all(b": 2}\n").unwrap();
        socket.attend(|question| question["ask"].clone());
        let mut lines = BufReader::new(caller).lines().map(Result::unwrap);
        let answers: Vec<String> = lines.by_ref().take(3).collect();
        assert!(answers[1].contains("a question is no JSON"), "{}", answers[1]);
        assert_eq!([&answers[0], &answers[2]], ["1", "2"]);
        drop(socket);
        assert_eq!((lines.next(), deep.join(NAME).exists()), (None, false));
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_long_line_in_small_pieces_is_one_question_and_no_piece_is_looked_through_twice() {
        let (mut caller, stream) = UnixStream::pair().unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut callee = Caller { stream, heard: Vec::new(), looked: 0 };
        let question = format!("{{\"ask\": \"{}\"}}\n{{\"ask\": \"ab\"}}\n", "x".repeat(100_000));
        let mut asked = Vec::new();
        for piece in question.as_bytes().chunks(1_000) {
            caller.write_all(piece).unwrap();
            assert!(callee.attend(&mut |question| {
                asked.push(question["ask"].as_str().unwrap().len());
                Value::Null
            }));
            assert_eq!(callee.looked, callee.heard.len());
        }
        assert_eq!((asked, callee.looked), (vec![100_000, 2], 0));
    }
}
