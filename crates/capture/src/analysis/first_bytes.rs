//! The first bytes of a client's, as long as they may yet become a CONNECT: some clients write it in parts.

use crate::mqtt::{may_start_as_connect, starts_as_connect};
use crate::reassembly::{SegmentPayload, Sighting, StreamPiece};

/// Pieces of the stream, in order.
#[derive(Debug, Default)]
pub(super) struct Undecided {
    bytes: Vec<u8>,
    /// Where each piece begins, and where it was seen.
    pieces: Vec<(usize, Sighting)>,
    /// The offset of the first one.
    offset: u64,
    /// Whether bytes are missing: what is behind them begins nothing.
    is_broken: bool,
}

impl Undecided {
    pub(super) fn feed(&mut self, piece: &StreamPiece<'_>) {
        match *piece {
            StreamPiece::Data { offset, payload: SegmentPayload::Bytes(bytes), seen, .. } => {
                if self.pieces.is_empty() {
                    self.offset = offset;
                }
                self.pieces.push((self.bytes.len(), seen));
                self.bytes.extend_from_slice(bytes);
            }
            StreamPiece::Data { .. } | StreamPiece::Missing { .. } => self.is_broken = true,
        }
    }

    /// Whether more bytes may make a CONNECT of these.
    pub(super) fn is_open(&self) -> bool {
        !self.is_broken && may_start_as_connect(&self.bytes)
    }

    pub(super) fn is_connect(&self) -> bool {
        !self.is_broken && starts_as_connect(&self.bytes)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The pieces again.
    pub(super) fn pieces(&self) -> impl Iterator<Item = StreamPiece<'_>> {
        let ends = self.pieces.iter().skip(1).map(|(begin, _)| *begin).chain([self.bytes.len()]);
        self.pieces.iter().zip(ends).map(|(&(begin, seen), end)| StreamPiece::Data {
            offset: self.offset + begin as u64,
            len: (end - begin) as u64,
            payload: SegmentPayload::Bytes(&self.bytes[begin..end]),
            seen,
        })
    }
}
