//! A window over a byte stream: the block being read, and no more of the file than that.

use std::io::{self, Read};

const CHUNK: usize = 64 * 1024;

/// Bytes of a stream, looked at before they are consumed.
pub(super) struct ByteSource<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    consumed: u64,
}

impl<R: Read> ByteSource<R> {
    pub(super) fn new(reader: R) -> Self {
        ByteSource { reader, buffer: vec![0; CHUNK], start: 0, end: 0, consumed: 0 }
    }

    /// How many bytes of the stream have been consumed.
    pub(super) fn offset(&self) -> u64 {
        self.consumed
    }

    /// Makes the next `length` bytes visible; `false` when the stream ends before them.
    pub(super) fn fill(&mut self, length: usize) -> io::Result<bool> {
        while self.end - self.start < length {
            if !self.read_more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What is visible, after [`ByteSource::fill`].
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Drops `length` visible bytes.
    pub(super) fn consume(&mut self, length: usize) {
        self.start += length;
        self.consumed += length as u64;
    }

    /// Drops `length` bytes, visible or not; `false` when the stream ends before.
    pub(super) fn skip(&mut self, mut length: u64) -> io::Result<bool> {
        while length > 0 {
            let visible = ((self.end - self.start) as u64).min(length);
            self.consume(visible as usize);
            length -= visible;
            if length > 0 && !self.read_more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The buffer grows only as bytes arrive, so that a length field alone cannot claim memory.
    fn read_more(&mut self) -> io::Result<bool> {
        if self.start > 0 && self.buffer.len() - self.end < CHUNK / 2 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
