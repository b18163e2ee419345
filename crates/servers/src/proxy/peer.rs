//! A connection of the proxy: bytes in, packets out.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use mqttlab_zmtp::stream::{Decoder, Raw};
use mqttlab_zmtp::{Malformed, SocketType};

/// A connection.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    /// The proxy's socket that has accepted it.
    pub(crate) socket: SocketType,
    decoder: Decoder,
    out: VecDeque<Piece>,
    /// Bytes of the first piece that are written.
    written: usize,
    /// Whether the poller tells of room.
    pub(crate) waits_for_room: bool,
    /// It is closed as soon as everything is written.
    pub(crate) ending: bool,
    /// What it is called, where it has said that.
    pub(crate) client: Option<String>,
    /// Whether a message was dropped for it.
    pub(crate) has_lost: bool,
}

/// What is to be written in one piece.
struct Piece {
    bytes: Arc<[u8]>,
    is_message: bool,
}

/// Why a connection is over.
#[derive(Debug)]
pub(crate) enum Over {
    /// The other side has closed it, or it is broken.
    Gone,
    /// What came is no packet.
    Malformed(Malformed),
}

impl From<Malformed> for Over {
    fn from(malformed: Malformed) -> Over {
        Over::Malformed(malformed)
    }
}

impl Peer {
    pub(crate) fn new(stream: TcpStream, socket: SocketType) -> Peer {
        Peer {
            stream,
            socket,
            decoder: Decoder::default(),
            out: VecDeque::new(),
            written: 0,
            waits_for_room: false,
            ending: false,
            client: None,
            has_lost: false,
        }
    }

    /// Says something as soon as there is room.
    pub(crate) fn put(&mut self, bytes: Arc<[u8]>, is_message: bool) {
        self.out.push_back(Piece { bytes, is_message });
    }

    /// Whether something is not written.
    pub(crate) fn has_unwritten(&self) -> bool {
        !self.out.is_empty()
    }

    /// Reads once into `buffer`, and hands every packet to `each`. `false` when there was nothing to read.
    ///
    /// # Errors
    /// The connection is over.
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
        each: impl FnMut(Raw<'_>) -> Result<(), Over>,
    ) -> Result<bool, Over> {
        match self.stream.read(buffer) {
            Ok(0) => Err(Over::Gone),
            Ok(count) => self.decoder.feed(&buffer[..count], true, each).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(_) => Err(Over::Gone),
        }
    }

    /// Writes what can be written, and says how many messages that completes.
    ///
    /// # Errors
    /// It is broken.
    pub(crate) fn flush(&mut self) -> Result<u64, Over> {
        let mut messages = 0;
        while !self.out.is_empty() {
            let skip = self.written;
            let pieces: Vec<IoSlice<'_>> = self
                .out
                .iter()
                .take(PIECES)
                .enumerate()
                .map(|(place, piece)| IoSlice::new(&piece.bytes[if place == 0 { skip } else { 0 }..]))
                .collect();
            match self.stream.write_vectored(&pieces) {
                Ok(0) => return Err(Over::Gone),
                Ok(count) => messages += self.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Over::Gone),
            }
        }
        Ok(messages)
    }

    fn advance(&mut self, count: usize) -> u64 {
        let mut messages = 0;
        self.written += count;
        while let Some(piece) = self.out.pop_front_if(|piece| piece.bytes.len() <= self.written) {
            self.written -= piece.bytes.len();
            messages += u64::from(piece.is_message);
        }
        messages
    }
}

/// As many as one call takes at least (POSIX's IOV_MAX is 1024 on Linux).
const PIECES: usize = 64;
