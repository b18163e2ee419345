//! Resets (RFC 9293 §3.5.2).

use crate::segment::{Flags, Segment};
use crate::sequence::Seq;

/// A reset that waits to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reset {
    seq: Seq,
    ack: Option<Seq>,
}

impl Reset {
    /// Ends a connection from our side: the next number of our stream is what the peer takes (RFC 5961 §3.2).
    pub fn at(seq: Seq) -> Reset {
        Reset { seq, ack: None }
    }

    /// Answers a segment that nobody here is expecting (RFC 9293 §3.5.2 group 1), so that its sender believes it.
    pub fn answer(segment: &Segment) -> Reset {
        if segment.flags.has(Flags::ACK) {
            return Reset { seq: segment.ack, ack: None };
        }
        let end = Seq(segment.seq.0.wrapping_add(segment.sequence_length() as u32));
        Reset { seq: Seq(0), ack: Some(end) }
    }

    pub fn segment(self) -> Segment {
        let flags = if self.ack.is_some() { Flags::RST.with(Flags::ACK) } else { Flags::RST };
        Segment { seq: self.seq, ack: self.ack.unwrap_or_default(), flags, ..Segment::default() }
    }
}
