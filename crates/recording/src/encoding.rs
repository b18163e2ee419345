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
    put_zigzag(values.first().copied().unwrap_or_default().signed(), out);
    let count = values.len().saturating_sub(1);
    for start in (0..count).step_by(BLOCK) {
        let end = (start + BLOCK).min(count);
        let mut differences = [0; BLOCK];
        let neighbours = values[start..end].iter().zip(&values[start + 1..=end]);
        for (difference, (&before, &value)) in differences.iter_mut().zip(neighbours) {
            *difference = value.difference(before);
        }
        put_block(&mut differences, end - start, out);
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
    for (number, miniblock) in differences.as_chunks::<MINIBLOCK>().0.iter().enumerate() {
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
fn put_bits(values: &[u64; MINIBLOCK], width: u32, out: &mut Vec<u8>) {
    /// One function for each width, whose shifts are then constants.
    fn pack<const WIDTH: usize>(values: &[u64; MINIBLOCK], words: &mut [u64; MINIBLOCK]) {
        for (number, &value) in values.iter().enumerate() {
            let (word, shift) = (number * WIDTH / 64, number * WIDTH % 64);
            words[word] |= value << shift;
            if shift + WIDTH > 64 {
                words[word + 1] |= value >> (64 - shift);
            }
        }
    }
    macro_rules! by_width {
        ($($width:literal)*) => {
            match width {
                $($width => pack::<$width>,)*
                _ => return,
            }
        };
    }
    let pack: fn(&[u64; MINIBLOCK], &mut [u64; MINIBLOCK]) = by_width!(
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
        33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64
    );
    let mut words = [0; MINIBLOCK];
    pack(values, &mut words);
    let start = out.len();
    for word in &words[..width.div_ceil(2) as usize] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    // 32 values of an odd width end in the middle of a word.
    out.truncate(start + width as usize * MINIBLOCK / 8);
}

/// Appends the values as one run if they are all the same, and bit-packed otherwise.
pub(crate) fn put_indices(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let Some(&first) = values.first() else { return };
    if values.iter().all(|&value| value == first) {
        put_run(u64::from(first), values.len(), width, out);
    } else {
        put_packed(values, width, out);
    }
}

/// Appends one value, so many times.
pub(crate) fn put_run(value: u64, times: usize, width: u32, out: &mut Vec<u8>) {
    put_varint((times as u64) << 1, out);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Appends the values bit-packed. They come in eights; what fills up the last is read and thrown away.
pub(crate) fn put_packed(values: &[u32], width: u32, out: &mut Vec<u8>) {
    put_varint((values.len() as u64).div_ceil(8) << 1 | 1, out);
    let end = out.len() + values.len().div_ceil(8) * width as usize;
    for run in values.chunks(MINIBLOCK) {
        let mut packed = [0; MINIBLOCK];
        for (place, &value) in packed.iter_mut().zip(run) {
            *place = u64::from(value);
        }
        put_bits(&packed, width, out);
    }
    out.truncate(end);
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
        put_indices(&[0, 1, 2, 3, 4, 5, 6, 7], 3, &mut out);
        assert_eq!(out, [3, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        let mut out = Vec::new();
        put_indices(&[4; 100], 3, &mut out);
        assert_eq!(out, [200, 1, 4]);
    }

    #[test]
    fn bits_of_every_width_come_back() {
        for width in 1..=64 {
            let mask = u64::MAX >> (64 - width);
            let values = std::array::from_fn(|n| (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask);
            let mut out = Vec::new();
            put_bits(&values, width, &mut out);
            assert_eq!(out.len(), 4 * width as usize);
            let bit = |at: usize| u64::from(out[at / 8] >> (at % 8) & 1);
            for (number, &value) in values.iter().enumerate() {
                let start = number * width as usize;
                let back = (0..width as usize).fold(0, |sum, at| sum | bit(start + at) << at);
                assert_eq!(back, value, "value {number} of width {width}");
            }
        }
    }
}
