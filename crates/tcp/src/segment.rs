//! Segment descriptors: what a TCP header says, and how many bytes follow it. No payload.

use std::fmt;

use crate::Seq;

/// A segment without its payload. Small and `Copy`: links and queues carry it by value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte (or of the SYN).
    pub seq: Seq,
    /// Next sequence number expected; meaningful when [`Flags::ACK`] is set.
    pub ack: Seq,
    /// Window as on the wire, before scaling.
    pub window: u16,
    /// Payload in bytes.
    pub length: u16,
    /// Control bits.
    pub flags: Flags,
    /// The ECN field of the IP header that carries it.
    pub ecn: Ecn,
    /// Window scale option (RFC 7323 §2), in SYNs only.
    pub window_scale: Option<u8>,
    /// SACK-permitted option (RFC 2018 §2), in SYNs only.
    pub sack_permitted: bool,
    /// Maximum segment size option (RFC 9293 §3.7.1), in SYNs only.
    pub mss: Option<u16>,
    /// Timestamps option (RFC 7323 §3).
    pub timestamps: Option<Timestamps>,
    /// SACK option (RFC 2018 §3); empty when absent.
    pub sack: SackBlocks,
}

/// The ECN field of an IP header (RFC 3168 §5), as on the wire. No sender of ours uses ECT(1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The transport does not understand marks.
    #[default]
    NotEct = 0,
    /// It does: ECN-capable transport.
    Ect0 = 2,
    /// Marked: congestion experienced.
    Ce = 3,
}

/// The timestamps option (RFC 7323 §3), in ticks of the sender's timestamp clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the last value received, echoed.
    pub echo: u32,
}

/// Control bits of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

/// Up to four blocks of received data beyond the acknowledgement, most recent first (RFC 2018 §4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    count: u8,
    blocks: [(Seq, Seq); 4],
}

impl Segment {
    /// Header length in bytes with the options laid out and padded as Linux and the BSDs do: timestamps 12,
    /// SACK 4 + 8 per block, MSS 4, window scale 4, SACK-permitted in the padding of the timestamps or 4.
    pub fn header_bytes(&self) -> u16 {
        let mut options = 0;
        options += if self.mss.is_some() { 4 } else { 0 };
        options += if self.window_scale.is_some() { 4 } else { 0 };
        options += if self.timestamps.is_some() { TIMESTAMPS_BYTES } else { 0 };
        options += if self.sack_permitted && self.timestamps.is_none() { 4 } else { 0 };
        20 + options + self.sack.option_bytes()
    }

    /// What the segment takes up in sequence space: payload, SYN and FIN.
    pub fn sequence_length(&self) -> u64 {
        u64::from(self.length) + u64::from(self.flags.has(Flags::SYN)) + u64::from(self.flags.has(Flags::FIN))
    }
}

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(1);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(2);
    /// Reset the connection.
    pub const RST: Flags = Flags(4);
    /// The sender had no more to send when it made the segment.
    pub const PSH: Flags = Flags(8);
    /// The acknowledgement is meaningful.
    pub const ACK: Flags = Flags(16);
    /// A mark of congestion is echoed; in a SYN: the sender knows ECN (RFC 3168 §6.1).
    pub const ECE: Flags = Flags(64);
    /// The congestion window was reduced; in a SYN: as [`Flags::ECE`] (RFC 3168 §6.1).
    pub const CWR: Flags = Flags(128);

    /// Whether all of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// The bits as in byte 13 of a TCP header.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// From byte 13 of a TCP header; the bit of urgent data is dropped.
    pub const fn from_bits(bits: u8) -> Flags {
        Flags(bits & !32)
    }
}

impl SackBlocks {
    /// Appends a block of `start` up to but not including `end`; ignored when four are there already.
    pub fn push(&mut self, start: Seq, end: Seq) {
        if let Some(place) = self.blocks.get_mut(usize::from(self.count)) {
            *place = (start, end);
            self.count += 1;
        }
    }

    /// The blocks in wire order.
    pub fn iter(&self) -> impl Iterator<Item = (Seq, Seq)> {
        self.blocks.into_iter().take(usize::from(self.count))
    }

    /// Whether the option is absent.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Length of the option in bytes with its padding.
    pub const fn option_bytes(&self) -> u16 {
        if self.count == 0 { 0 } else { 4 + 8 * self.count as u16 }
    }
}

impl fmt::Display for Segment {
    /// As packetdrill writes it, ECE as `E` and CWR as `W`: `[ect0] P. 1:101(100) ack 1 win 502 <ts 10 7>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.ecn {
            Ecn::NotEct => "",
            Ecn::Ect0 => "[ect0] ",
            Ecn::Ce => "[ce] ",
        })?;
        let letters = [
            (Flags::SYN, "S"),
            (Flags::FIN, "F"),
            (Flags::RST, "R"),
            (Flags::PSH, "P"),
            (Flags::ECE, "E"),
            (Flags::CWR, "W"),
        ];
        for (flag, letter) in letters {
            if self.flags.has(flag) {
                f.write_str(letter)?;
            }
        }
        if self.flags.has(Flags::ACK) {
            f.write_str(".")?;
        }
        let end = Seq(self.seq.0.wrapping_add(u32::from(self.length)));
        write!(f, " {}:{}({})", self.seq.0, end.0, self.length)?;
        if self.flags.has(Flags::ACK) {
            write!(f, " ack {}", self.ack.0)?;
        }
        write!(f, " win {}", self.window)?;
        self.fmt_options(f)
    }
}

impl Segment {
    fn fmt_options(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = " <";
        let mut next = || std::mem::replace(&mut between, ",");
        if let Some(mss) = self.mss {
            write!(f, "{}mss {mss}", next())?;
        }
        if self.sack_permitted {
            write!(f, "{}sackOK", next())?;
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            write!(f, "{}ts {value} {echo}", next())?;
        }
        if let Some(scale) = self.window_scale {
            write!(f, "{}wscale {scale}", next())?;
        }
        for (start, end) in self.sack.iter() {
            write!(f, "{}sack {}:{}", next(), start.0, end.0)?;
        }
        if next() == "," { f.write_str(">") } else { Ok(()) }
    }
}

pub(crate) const TIMESTAMPS_BYTES: u16 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_lengths_are_those_of_linux() {
        let mut syn = Segment { mss: Some(1460), sack_permitted: true, ..Segment::default() };
        syn.window_scale = Some(7);
        syn.timestamps = Some(Timestamps::default());
        assert_eq!(syn.header_bytes(), 40);
        let mut data = Segment { timestamps: Some(Timestamps::default()), ..Segment::default() };
        assert_eq!(data.header_bytes(), 32);
        (0..5).for_each(|_| data.sack.push(Seq(1), Seq(2)));
        assert_eq!(data.header_bytes(), 32 + 36);
    }

    #[test]
    fn a_segment_is_small() {
        assert!(size_of::<Segment>() <= 72, "{}", size_of::<Segment>());
    }
}
