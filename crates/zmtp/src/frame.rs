//! Frames: a byte of flags, a length of one byte or of eight, a body (RFC 37, "framing").

use crate::Malformed;

/// What stands before a frame's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Whether another frame of the message follows.
    pub more: bool,
    /// Whether it is a command.
    pub command: bool,
    /// Bytes of this header: 2 or 9.
    pub header_len: usize,
    /// Bytes of the body.
    pub body_len: u64,
}

impl FrameHeader {
    /// Reads a header; `None` where more bytes are needed. A length of eight bytes that one could say is allowed.
    ///
    /// # Errors
    /// Flags that mean nothing, or a length of 2^63 bytes or more.
    pub fn peek(bytes: &[u8]) -> Result<Option<FrameHeader>, Malformed> {
        let Some(&flags) = bytes.first() else { return Ok(None) };
        let (more, long, command) = (flags & MORE != 0, flags & LONG != 0, flags & COMMAND != 0);
        // Bits 7 to 3 are reserved, and a command consists of one frame (RFC 37, "Framing").
        if flags & !(MORE | LONG | COMMAND) != 0 || more && command {
            return Err(Malformed::Flags(flags));
        }
        let (header_len, body_len) = match long {
            false => match bytes.get(1) {
                Some(length) => (SHORT_LEN, u64::from(*length)),
                None => return Ok(None),
            },
            true => match bytes.get(1..LONG_LEN) {
                Some(length) => (LONG_LEN, u64::from_be_bytes(length.try_into().expect("eight bytes"))),
                None => return Ok(None),
            },
        };
        // RFC 37 bounds a body by 2^63 − 1 octets.
        if body_len > i64::MAX as u64 {
            return Err(Malformed::TooLong(body_len));
        }
        Ok(Some(FrameHeader { more, command, header_len, body_len }))
    }

    /// Bytes of the frame. A sum that does not fit is as large as can be.
    pub fn frame_len(&self) -> usize {
        usize::try_from(self.body_len).unwrap_or(usize::MAX).saturating_add(self.header_len)
    }
}

/// Bytes of a frame with a body of this many.
pub const fn len(body: usize) -> usize {
    body + if body <= SHORT_MAX { SHORT_LEN } else { LONG_LEN }
}

/// Appends the header of a message's frame.
pub fn message_header(body: usize, more: bool, out: &mut Vec<u8>) {
    header(if more { MORE } else { 0 }, body, out);
}

/// Appends the header of a command's frame.
pub fn command_header(body: usize, out: &mut Vec<u8>) {
    header(COMMAND, body, out);
}

fn header(flags: u8, body: usize, out: &mut Vec<u8>) {
    match u8::try_from(body) {
        // Up to 255 octets a command should have the short form (RFC 37); libzmq writes messages so, too.
        Ok(length) => out.extend_from_slice(&[flags, length]),
        Err(_) => {
            out.push(flags | LONG);
            out.extend_from_slice(&(body as u64).to_be_bytes());
        }
    }
}

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;
const SHORT_MAX: usize = 255;
const SHORT_LEN: usize = 2;
const LONG_LEN: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_one_byte_or_eight() {
        for (body, header_len) in [(0, 2), (255, 2), (256, 9), (1 << 20, 9)] {
            let mut bytes = Vec::new();
            message_header(body, true, &mut bytes);
            let expected = FrameHeader { more: true, command: false, header_len, body_len: body as u64 };
            assert_eq!(FrameHeader::peek(&bytes), Ok(Some(expected)));
            assert_eq!((bytes.len(), len(body)), (header_len, body + header_len));
            assert!((0..header_len).all(|cut| FrameHeader::peek(&bytes[..cut]) == Ok(None)));
        }
    }

    #[test]
    fn a_short_length_may_be_said_in_eight_bytes() {
        let header = FrameHeader::peek(&[2, 0, 0, 0, 0, 0, 0, 0, 7]).unwrap().unwrap();
        assert_eq!((header.header_len, header.body_len, header.frame_len()), (9, 7, 16));
    }

    #[test]
    fn flags_that_mean_nothing_and_lengths_beyond_63_bits_are_refused() {
        assert_eq!(FrameHeader::peek(&[8]), Err(Malformed::Flags(8)));
        assert_eq!(FrameHeader::peek(&[5, 0]), Err(Malformed::Flags(5)), "a command of several frames");
        let vast = [2, 0x80, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(FrameHeader::peek(&vast), Err(Malformed::TooLong(1 << 63)));
        let large = FrameHeader::peek(&[2, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).unwrap().unwrap();
        assert!(large.frame_len() >= i64::MAX as usize);
    }
}
