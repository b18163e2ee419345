//! A stream of a framing taken apart, wherever it is cut.

use crate::End;
use crate::framing::NoFrame;
use crate::framings::FramingNumber;

/// What is in a stream, piece by piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framed<'a> {
    /// So many bytes of the other end's word, and whether that is the whole of it.
    Word(usize, bool),
    /// So many bytes of a header.
    Header(usize),
    /// Bytes of a packet.
    Data(&'a [u8]),
}

/// Takes a stream apart that an end has said.
#[derive(Clone, Debug)]
pub struct Unframer {
    framing: FramingNumber,
    from: End,
    /// How much of its word has come.
    word: usize,
    /// A header that is not complete.
    header: Vec<u8>,
    /// How much of the frame's content is still to come.
    left: usize,
}

impl Unframer {
    /// At the beginning of a connection.
    pub fn new(framing: FramingNumber, from: End) -> Unframer {
        Unframer { framing, from, word: 0, header: Vec::new(), left: 0 }
    }

    /// What it reads.
    pub fn framing(&self) -> FramingNumber {
        self.framing
    }

    /// Takes the next bytes; `came` is told of each piece, and its error ends it.
    ///
    /// # Errors
    /// They are no frame, or `came` says so.
    pub fn feed<E: From<NoFrame>>(
        &mut self,
        mut bytes: &[u8],
        mut came: impl FnMut(Framed<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let framing = self.framing.framing();
        while !bytes.is_empty() {
            let word = framing.word(self.from);
            if self.word < word.len() {
                let count = bytes.len().min(word.len() - self.word);
                if bytes[..count] != word[self.word..self.word + count] {
                    return Err(NoFrame(framing.name()).into());
                }
                self.word += count;
                bytes = &bytes[count..];
                came(Framed::Word(count, self.word == word.len()))?;
            } else if self.left > 0 {
                let (data, rest) = bytes.split_at(bytes.len().min(self.left));
                self.left -= data.len();
                bytes = rest;
                came(Framed::Data(data))?;
            } else {
                let before = self.header.len();
                self.header.extend_from_slice(&bytes[..bytes.len().min(HEADER_MAX - before)]);
                let taken = match framing.read(self.from, &self.header)? {
                    Some(header) => {
                        self.left = header.content;
                        self.header.clear();
                        header.bytes - before
                    }
                    None if self.header.len() == HEADER_MAX => return Err(NoFrame(framing.name()).into()),
                    None => self.header.len() - before,
                };
                bytes = &bytes[taken..];
                came(Framed::Header(taken))?;
            }
        }
        Ok(())
    }
}

/// No header is longer.
const HEADER_MAX: usize = 64;
