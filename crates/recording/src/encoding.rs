//! Parquet's encodings, for columns that are written by the million.
//!
//! The `parquet` crate encodes for every case there is, at some ten nanoseconds a value; a simulator that records
//! 29 columns a frame cannot afford that. These are the three encodings that a recording uses, for whole pages at a
//! time: differences (DELTA_BINARY_PACKED), and runs and bit packing for presence and for dictionary indices (RLE).
//! Format: Apache Parquet, Encodings.md.

/// An unsigned integer as it is stored: the same bits, signed, in 32 or 64 bits.
pub(crate) trait Integer: Copy + Default + Ord {
    /// `self - before` in the width of the stored type, where it wraps.
    fn difference(self, before: Self) -> i64;
    /// The value with the sign that it has in the stored type.
    fn signed(self) -> i64;
}

impl Integer for u32 {
    #[inline]
    fn difference(self, before: u32) -> i64 {
        i64::from(self.wrapping_sub(before) as i32)
    }
    fn signed(self) -> i64 {
        i64::from(self as i32)
    }
}

impl Integer for u64 {
    #[inline]
    fn difference(self, before: u64) -> i64 {
        self.wrapping_sub(before) as i64
    }
    fn signed(self) -> i64 {
        self as i64
    }
}

/// Appends the values as DELTA_BINARY_PACKED.
pub(crate) fn put_differences<T: Integer>(values: &[T], out: &mut Vec<u8>) {
    put_varint(BLOCK as u64, out);
    put_varint((BLOCK / MINIBLOCK) as u64, out);
    put_varint(values.len() as u64, out);
    let mut before = values.first().copied().unwrap_or_default();
    put_zigzag(before.signed(), out);
    for block in values.get(1..).unwrap_or_default().chunks(BLOCK) {
        let mut differences = [0; BLOCK];
        for (difference, &value) in differences.iter_mut().zip(block) {
            *difference = value.difference(before);
            before = value;
        }
        put_block(&mut differences, block.len(), out);
    }
}

/// Appends one block: its least difference, the widths of its miniblocks, and what each difference is above the
/// least. The last block may have fewer differences, and leaves out the miniblocks that it does not reach.
fn put_block(differences: &mut [i64; BLOCK], count: usize, out: &mut Vec<u8>) {
    let least = differences[..count].iter().copied().min().expect("a block has values");
    put_zigzag(least, out);
    // What fills up the last miniblock is read and thrown away.
    differences[count..].fill(least);
    let widths = out.len();
    out.extend([0; BLOCK / MINIBLOCK]);
    for (number, miniblock) in differences.chunks_exact(MINIBLOCK).enumerate() {
        if number * MINIBLOCK >= count {
            return;
        }
        let mut above = [0; MINIBLOCK];
        for (above, &difference) in above.iter_mut().zip(miniblock) {
            *above = difference.wrapping_sub(least) as u64;
        }
        let width = width_of(above.iter().fold(0, |all, &value| all | value));
        out[widths + number] = width as u8;
        put_bits(&above, width, out);
    }
}

/// How many bits a value takes.
pub(crate) fn width_of(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// Appends each value's low `width` bits, the first value in the lowest bits, up to a whole byte. Higher bits must
/// be zero.
fn put_bits(values: &[u64], width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let end = out.len() + (values.len() * width as usize).div_ceil(8);
    let (mut bits, mut filled) = (0_u64, 0);
    for &value in values {
        bits |= value << filled;
        filled += width;
        if filled >= u64::BITS {
            out.extend_from_slice(&bits.to_le_bytes());
            filled -= u64::BITS;
            // The part of the value that did not fit; nothing when it ended with the word.
            bits = value.checked_shr(width - filled).unwrap_or(0);
        }
    }
    out.extend_from_slice(&bits.to_le_bytes());
    out.truncate(end);
}

/// Appends the values as one run if they are all the same, and bit-packed otherwise.
pub(crate) fn put_runs(values: impl ExactSizeIterator<Item = u64> + Clone, width: u32, out: &mut Vec<u8>) {
    let Some(first) = values.clone().next() else { return };
    if values.clone().all(|value| value == first) {
        put_varint((values.len() as u64) << 1, out);
        out.extend_from_slice(&first.to_le_bytes()[..width.div_ceil(8) as usize]);
        return;
    }
    // Bit-packed runs come in eights; what fills up the last is read and thrown away.
    put_varint((values.len() as u64).div_ceil(8) << 1 | 1, out);
    let mut packed = [0; RUN];
    let mut values = values.peekable();
    while values.peek().is_some() {
        let mut count = 0;
        for (place, value) in packed.iter_mut().zip(values.by_ref()) {
            *place = value;
            count += 1;
        }
        packed[count..].fill(0);
        put_bits(&packed[..count.next_multiple_of(8)], width, out);
    }
}

/// Appends an unsigned integer, seven bits a byte, the lowest first.
pub(crate) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed integer so that small ones of either sign are short.
fn put_zigzag(value: i64, out: &mut Vec<u8>) {
    put_varint((value << 1 ^ value >> 63) as u64, out);
}

/// Differences in a block, and in each of its miniblocks.
const BLOCK: usize = 128;
const MINIBLOCK: usize = 32;
/// Values that are packed at a time; a multiple of eight.
const RUN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_match_the_examples_of_the_format() {
        // Encodings.md, example 1: 1, 2, 3, 4, 5: every difference is the least one, and takes no bits.
        let mut out = Vec::new();
        put_differences(&[1_u32, 2, 3, 4, 5], &mut out);
        assert_eq!(out, [0x80, 0x01, 4, 5, 2, 2, 0, 0, 0, 0]);
        // Example 2: 7, 5, 3, 1, 2, 3, 4, 5: the least difference is -2, the others are 0 or 3 above it.
        let mut out = Vec::new();
        put_differences(&[7_u64, 5, 3, 1, 2, 3, 4, 5], &mut out);
        assert_eq!(out[..9], [0x80, 0x01, 4, 8, 14, 3, 2, 0, 0]);
        assert_eq!(out[10..12], [0b1100_0000, 0b0011_1111]);
        assert_eq!(out.len(), 18);
    }

    #[test]
    fn runs_match_the_example_of_the_format() {
        // Encodings.md, RLE: the numbers 0 to 7 in three bits each.
        let mut out = Vec::new();
        put_runs([0, 1, 2, 3, 4, 5, 6, 7].into_iter(), 3, &mut out);
        assert_eq!(out, [3, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        let mut out = Vec::new();
        put_runs([4; 100].into_iter(), 3, &mut out);
        assert_eq!(out, [200, 1, 4]);
    }

    #[test]
    fn bits_of_every_width_come_back() {
        for width in 1..=64 {
            let mask = u64::MAX >> (64 - width);
            let values: Vec<u64> =
                (1..=40_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask).collect();
            let mut out = Vec::new();
            put_bits(&values, width, &mut out);
            let bit = |at: usize| u64::from(out[at / 8] >> (at % 8) & 1);
            for (number, &value) in values.iter().enumerate() {
                let start = number * width as usize;
                let back = (0..width as usize).fold(0, |sum, at| sum | bit(start + at) << at);
                assert_eq!(back, value, "value {number} of width {width}");
            }
        }
    }
}
