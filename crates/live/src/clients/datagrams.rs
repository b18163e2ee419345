//! Datagrams: a client's UDP socket, each datagram one packet of what it speaks.
//!
//! The kernel takes a datagram whole or not at all, and none is fragmented: what does not fit into the path's MTU is refused
//! by the kernel, and has been refused by the plan before. An ICMP error (nobody listens there) is a loss like any other;
//! the protocol's own repetition is what notices it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;

use mqttlab_system::sockets;

/// Datagrams that the socket has not taken.
pub(super) struct ClientDatagrams {
    bytes: Vec<u8>,
    /// Lengths of those that are not written.
    waiting: VecDeque<usize>,
    /// Of `bytes`, what is written.
    start: usize,
    /// Bytes written since the socket was opened.
    written: u64,
}

impl ClientDatagrams {
    /// None yet.
    pub(super) fn new() -> ClientDatagrams {
        ClientDatagrams { bytes: Vec::new(), waiting: VecDeque::new(), start: 0, written: 0 }
    }

    /// Puts one that `write` makes behind what is to be sent, and shows it.
    pub(super) fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.waiting.push_back(self.bytes.len() - start);
        &self.bytes[start..]
    }

    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn end(&self) -> u64 {
        self.written + (self.bytes.len() - self.start) as u64
    }

    /// Sends as much as the socket takes. `refused` is told of each datagram that an earlier one's ICMP error has kept back,
    /// by where it ends.
    ///
    /// # Errors
    /// The kernel refuses a datagram for what it is.
    pub(super) fn write(&mut self, socket: BorrowedFd<'_>, mut refused: impl FnMut(u64)) -> io::Result<()> {
        while let Some(&length) = self.waiting.front() {
            let datagram = &self.bytes[self.start..self.start + length];
            match sockets::write(socket, &[io::IoSlice::new(datagram)]) {
                Ok(None) => return Ok(()),
                // An answer to an earlier datagram: this one was not sent, and is lost, too.
                Ok(Some(_)) => {}
                Err(error) if is_passing(&error) => refused(self.written + length as u64),
                Err(error) => return Err(error),
            }
            self.waiting.pop_front();
            self.start += length;
            self.written += length as u64;
        }
        self.bytes.clear();
        self.start = 0;
        Ok(())
    }

    /// Forgets everything: the next socket begins anew.
    pub(super) fn clear(&mut self) {
        *self = ClientDatagrams { bytes: std::mem::take(&mut self.bytes), ..ClientDatagrams::new() };
        self.bytes.clear();
    }
}

/// What says nothing about this datagram: an ICMP error of an earlier one, or a queue that is full for a moment.
pub(super) fn is_passing(error: &io::Error) -> bool {
    let passing = [libc::ECONNREFUSED, libc::EHOSTUNREACH, libc::ENETUNREACH, libc::ENOBUFS];
    error.raw_os_error().is_some_and(|code| passing.contains(&code))
}
