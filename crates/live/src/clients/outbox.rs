//! What a client has to say and the socket has not taken yet.
//!
//! ```text
//!   bytes:   header, identity ─┐            ┌─ next header, ...
//!                              └─ payload ──┘
//!                        shared by all messages, not copied
//! ```
//!
//! A position counts the bytes of the connection's stream from its beginning, so that a message is known to be
//! written when the stream has passed its end.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use mqttlab_system::sockets;

#[derive(Default)]
pub(super) struct SocketOutbox {
    /// Own bytes; those before `start` are written.
    bytes: Vec<u8>,
    start: usize,
    /// Pieces of others that come between own bytes.
    shared: VecDeque<OutboxPiece>,
    /// Bytes that the socket has taken, shared ones included.
    written: u64,
    /// Bytes of `shared` that are not written.
    shared_left: usize,
}

struct OutboxPiece {
    /// It comes before the own byte at this index of `bytes`.
    before: usize,
    content: Arc<[u8]>,
    /// Bytes before this are written, or never were meant to be.
    from: usize,
}

impl SocketOutbox {
    /// Where own bytes are appended.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends `content` from `from` on, without a copy.
    pub(super) fn share(&mut self, content: &Arc<[u8]>, from: usize) {
        self.shared_left += content.len() - from;
        self.shared.push_back(OutboxPiece { before: self.bytes.len(), content: Arc::clone(content), from });
    }

    /// Everything that was put, shared pieces included, in one piece.
    pub(super) fn whole(&self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.len());
        self.copy_to(&mut whole);
        whole
    }

    /// Appends everything that was put, shared pieces included. No more of them than one message has.
    pub(super) fn copy_to(&self, out: &mut Vec<u8>) {
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let used = self.gather(&mut pieces);
        pieces[..used].iter().for_each(|piece| out.extend_from_slice(piece));
    }

    /// Bytes that the socket has not taken.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.start + self.shared_left
    }

    /// How far the stream is written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// How far the stream reaches.
    pub(super) fn end(&self) -> u64 {
        self.written + self.len() as u64
    }

    /// Writes as much as the socket takes. `false` when something is left.
    pub(super) fn write(&mut self, socket: BorrowedFd<'_>) -> io::Result<bool> {
        while self.len() > 0 {
            let (count, offered) = {
                let mut pieces = [IoSlice::new(&[]); PIECES];
                let used = self.gather(&mut pieces);
                let offered = pieces[..used].iter().map(|piece| piece.len()).sum::<usize>();
                (sockets::write(socket, &pieces[..used])?, offered)
            };
            let Some(count) = count else { return Ok(false) };
            self.advance(count);
            // A short write means a full buffer; the socket will say when it has room.
            if count < offered {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Forgets everything: the next connection begins a new stream.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.shared.clear();
        (self.start, self.written, self.shared_left) = (0, 0, 0);
    }

    fn gather<'a>(&'a self, pieces: &mut [IoSlice<'a>; PIECES]) -> usize {
        let (mut used, mut own) = (0, self.start);
        for piece in &self.shared {
            if used + 2 > PIECES {
                return used;
            }
            if piece.before > own {
                pieces[used] = IoSlice::new(&self.bytes[own..piece.before]);
                own = piece.before;
                used += 1;
            }
            pieces[used] = IoSlice::new(&piece.content[piece.from..]);
            used += 1;
        }
        if own < self.bytes.len() && used < PIECES {
            pieces[used] = IoSlice::new(&self.bytes[own..]);
            used += 1;
        }
        used
    }

    fn advance(&mut self, mut count: usize) {
        self.written += count as u64;
        while let Some(piece) = self.shared.front_mut() {
            let own = (piece.before - self.start).min(count);
            self.start += own;
            count -= own;
            let shared = (piece.content.len() - piece.from).min(count);
            piece.from += shared;
            self.shared_left -= shared;
            count -= shared;
            if self.start < piece.before || piece.from < piece.content.len() {
                return;
            }
            self.shared.pop_front();
        }
        self.start += count;
        self.compact();
    }

    /// Own bytes that are written are dropped when there are none left or they are many.
    fn compact(&mut self) {
        if self.start == self.bytes.len() {
            self.bytes.clear();
            if self.bytes.capacity() > KEEP {
                self.bytes.shrink_to(KEEP);
            }
            self.start = 0;
        } else if self.start > KEEP && self.shared.is_empty() {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }
}

const PIECES: usize = 16;
/// A client keeps a buffer of this many bytes at most when it has nothing to say.
const KEEP: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn own_and_shared_bytes_leave_in_order_however_little_the_socket_takes() {
        let (near, mut far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let shared: Arc<[u8]> = (0..1_000_000u32).map(|n| n as u8).collect();
        let (mut outbox, mut expected) = (SocketOutbox::default(), Vec::new());
        for round in 0..20u8 {
            outbox.bytes().extend_from_slice(&[round; 5]);
            outbox.share(&shared, 3);
            expected.extend_from_slice(&[round; 5]);
            expected.extend_from_slice(&shared[3..]);
        }
        outbox.bytes().push(99);
        expected.push(99);
        assert_eq!(outbox.end(), expected.len() as u64);
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            far.read_to_end(&mut all).unwrap();
            all
        });
        while !outbox.write(near.as_fd()).unwrap() {
            std::thread::yield_now();
        }
        assert_eq!((outbox.len(), outbox.written()), (0, expected.len() as u64));
        drop(near);
        assert!(reader.join().unwrap() == expected);
    }
}
