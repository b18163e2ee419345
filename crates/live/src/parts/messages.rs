//! What the parts of a run say to each other: a JSON object a line over TCP, and once the bytes of files.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;

use mqttlab_run::Schedule;
use mqttlab_system::sockets;
use mqttlab_units::Instant;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::clock_offset::ClockOffset;
use crate::parts::client_share::ClientsStatus;

/// What a part says to part 0.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(super) enum FollowerMessage {
    /// The first words: who comes, and to what.
    Here { part: u32, run_id: String, plan: String, version: String },
    /// What is the time?
    Ask,
    /// Ready to connect.
    Ready { clock: ClockOffset },
    /// How the clients stand.
    Standing(ClientsStatus),
    /// It has to end before its time.
    Trouble { problem: String },
    /// The clients have left; files follow, in this order.
    Rows(Box<PartReport>),
}

/// What part 0 says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(super) enum LeaderMessage {
    /// What part 0's clock said at run time zero.
    Welcome { epoch_ns: i64, started_unix_ns: u64 },
    /// It cannot take part.
    Refused { problem: String },
    /// When the question came, and when this was written.
    Answer { received_ns: u64, answered_ns: u64 },
    /// Everybody is here: connect.
    Begin,
    /// When to publish, in run time.
    Publish { publish_from_ns: u64, measure_from_ns: u64, measure_until_ns: u64 },
    /// Nothing is outstanding: disconnect.
    Leave,
    /// The run has to end before its time.
    End { problem: String },
    /// The rows are kept.
    Kept,
}

/// What a part leaves.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PartReport {
    /// Name and size of each file that follows.
    pub(super) files: Vec<(String, u64)>,
    pub(super) machine: Value,
    pub(super) warnings: Vec<String>,
    pub(super) validity: Value,
    pub(super) rows_lost: u64,
    /// What its clock said at run time zero.
    pub(super) epoch_ns: i64,
    /// The exchange at the end; `None` where there was no time for it.
    pub(super) clock: Option<ClockOffset>,
}

impl LeaderMessage {
    pub(super) fn publish(schedule: &Schedule) -> LeaderMessage {
        LeaderMessage::Publish {
            publish_from_ns: schedule.publish_from.as_ns(),
            measure_from_ns: schedule.measure_from.as_ns(),
            measure_until_ns: schedule.measure_until.as_ns(),
        }
    }

    pub(super) fn schedule(&self) -> Option<Schedule> {
        let &LeaderMessage::Publish { publish_from_ns, measure_from_ns, measure_until_ns } = self else {
            return None;
        };
        Some(Schedule {
            publish_from: Instant::from_ns(publish_from_ns),
            measure_from: Instant::from_ns(measure_from_ns),
            measure_until: Instant::from_ns(measure_until_ns),
        })
    }
}

/// One end of a connection between two parts.
pub(super) struct LineReader {
    reader: BufReader<TcpStream>,
    /// What has come of a line that is not whole.
    partial: Vec<u8>,
}

/// The same connection's other direction, which several threads may use.
pub(super) struct LineWriter(Mutex<TcpStream>);

/// Whether an error says that the other end is gone, with its program or its machine.
pub(super) fn is_end(error: &io::Error) -> bool {
    let gone = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
    gone.contains(&error.kind())
}

/// Both directions of a connection. A peer that is gone without a word is noticed after a while.
///
/// # Errors
/// What the kernel said.
pub(super) fn split_stream(stream: TcpStream) -> io::Result<(LineReader, LineWriter)> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    // Where it cannot be had, the kernel's own patience is longer.
    let _ = sockets::set_user_timeout(&stream, SILENCE_MS);
    let writer = LineWriter(Mutex::new(stream.try_clone()?));
    Ok((LineReader { reader: BufReader::new(stream), partial: Vec::new() }, writer))
}

impl LineReader {
    /// The next thing that is said, or `None` when nothing was within the time that [`LineReader::wait_at_most`] permits.
    ///
    /// # Errors
    /// The other end is gone, or says what is none of these words.
    pub(super) fn read<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let room = (LINE_BYTES_MAX - self.partial.len()) as u64;
        match self.reader.by_ref().take(room).read_until(b'\n', &mut self.partial) {
            Err(error) if [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut].contains(&error.kind()) => {
                return Ok(None);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(error) => return Err(error),
            Ok(_) if !self.partial.ends_with(b"\n") => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
        }
        let said = serde_json::from_slice(&self.partial)?;
        self.partial.clear();
        Ok(Some(said))
    }

    /// How long [`LineReader::read`] waits.
    ///
    /// # Errors
    /// What the kernel said.
    pub(super) fn wait_at_most(&self, ms: u64) -> io::Result<()> {
        self.reader.get_ref().set_read_timeout(Some(std::time::Duration::from_millis(ms)))
    }

    /// The next `bytes` bytes, which belong to a file.
    ///
    /// # Errors
    /// The other end is gone, or `to` cannot be written.
    pub(super) fn copy(&mut self, bytes: u64, to: &mut impl Write) -> io::Result<()> {
        let copied = io::copy(&mut self.reader.by_ref().take(bytes), to)?;
        if copied < bytes { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

impl LineWriter {
    /// Says something.
    ///
    /// # Errors
    /// The other end is gone.
    pub(super) fn write(&self, words: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(words).expect("words can be written as JSON") + "\n";
        self.0.lock().expect("no thread panics with it").write_all(line.as_bytes())
    }

    /// Sends the bytes of a file.
    ///
    /// # Errors
    /// The other end is gone, or the file cannot be read.
    pub(super) fn send(&self, from: &mut impl Read) -> io::Result<u64> {
        io::copy(from, &mut *self.0.lock().expect("no thread panics with it"))
    }
}

/// After so long without an acknowledgement the other machine is gone.
const SILENCE_MS: u32 = 10_000;
/// A line is a few hundred bytes for each group.
const LINE_BYTES_MAX: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_in_pieces_is_heard_whole_and_an_end_is_an_error() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut line, writer) = split_stream(listener.accept().unwrap().0).unwrap();
        line.wait_at_most(20).unwrap();
        other.write_all(b"{\"say\":").unwrap();
        assert!(matches!(line.read::<FollowerMessage>(), Ok(None)));
        other.write_all(b"\"ask\"}\n{\"say\":\"dance\"}\n").unwrap();
        assert!(matches!(line.read(), Ok(Some(FollowerMessage::Ask))));
        assert!(line.read::<FollowerMessage>().is_err());
        writer.write(&LeaderMessage::Kept).unwrap();
        drop(other);
        assert!(line.read::<FollowerMessage>().is_err());
    }
}
