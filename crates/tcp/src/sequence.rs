//! Sequence numbers on the wire, and the positions they stand for.
//!
//! Inside the machine every place in a stream is a *position*: a `u64` that never wraps, in which the SYN is at
//! 0, the first byte at 1 and the FIN one past the last byte. Only segments carry the 32-bit numbers of RFC 9293
//! §3.4, which are a position plus the initial sequence number, cut to 32 bits.

/// A 32-bit sequence number (RFC 9293 §3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq(pub u32);

impl Seq {
    /// The number of `position` in the stream that starts at this initial sequence number.
    pub const fn at(self, position: u64) -> Seq {
        Seq(self.0.wrapping_add(position as u32))
    }

    /// The position that this number stands for in the stream that starts at `initial`: of all that fit, the one
    /// nearest to `near`. `None` when that would lie before the stream.
    pub fn position(self, initial: Seq, near: u64) -> Option<u64> {
        let distance = self.0.wrapping_sub(initial.at(near).0) as i32;
        near.checked_add_signed(i64::from(distance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_the_wrap_of_its_number() {
        let initial = Seq(u32::MAX - 10);
        for position in [0, 5, 11, 12, (1 << 32) + 7, 5 << 32] {
            assert_eq!(initial.at(position).position(initial, position.saturating_sub(9)), Some(position));
            assert_eq!(initial.at(position).position(initial, position + 1_000_000), Some(position));
        }
    }

    #[test]
    fn a_number_before_the_stream_has_no_position() {
        assert_eq!(Seq(99).position(Seq(100), 0), None);
    }
}
