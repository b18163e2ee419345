//! Parquet's encodings, for columns that are written by the million.
//!
//! The `parquet` crate encodes for every case there is, at some ten nanoseconds a value; a simulator that records
//! 29 columns a frame cannot afford that. These are the three encodings that a recording uses, for whole pages at a
//! time: differences (DELTA_BINARY_PACKED), and runs and bit packing for presence and for dictionary indices (RLE).
//! Format: Apache Parquet, Encodings.md.

#![allow(unsafe_code, reason = "functions for processors that have been asked whether they can")]

/// An unsigned integer as it is stored: the same bits, signed, in 32 or 64 bits.
pub(crate) trait Integer: Copy + Default + Ord + std::ops::BitOr<Output = Self> {
    /// `self - before` in the width of the stored type, where it wraps.
    fn minus(self, before: Self) -> Self;
    /// Whether it is less than `other` with the sign that both have in the stored type.
    fn is_below(self, other: Self) -> bool;
    /// The value with that sign.
    fn signed(self) -> i64;
    /// The bits, as an unsigned number.
    fn bits(self) -> u64;
    /// The dictionary's form of the value.
    fn put(self, out: &mut Vec<u8>);
    /// Appends each value's low `width` bits, the first value in the lowest bits. Higher bits must be zero.
    fn put_bits(values: &[Self; MINIBLOCK], width: u32, out: &mut Vec<u8>);
}

macro_rules! integers {
    ($($unsigned:ty, $signed:ty, $put_bits:ident;)*) => {$(
        impl Integer for $unsigned {
            #[inline(always)]
            fn minus(self, before: Self) -> Self {
                self.wrapping_sub(before)
            }
            #[inline(always)]
            fn is_below(self, other: Self) -> bool {
                (self as $signed) < (other as $signed)
            }
            #[inline(always)]
            fn signed(self) -> i64 {
                i64::from(self as $signed)
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self)
            }
            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            #[inline(always)]
            fn put_bits(values: &[Self; MINIBLOCK], width: u32, out: &mut Vec<u8>) {
                $put_bits(values, width, out);
            }
        }
    )*};
}
integers! { u8, i8, put_bytes; u32, i32, put_bits; u64, i64, put_bits; }

/// Declares functions that the compiler translates twice: for every processor, and for those whose registers hold
/// 256 bits, which work on more values at once. Both are the same code, so both give the same bytes.
macro_rules! wide {
    ($($(#[$about:meta])* fn $name:ident<$kind:ident: Integer>($($argument:ident: $type:ty),*)
        $(-> $result:ty)? = $portable:ident;)*) => {$(
        $(#[$about])*
        pub(crate) fn $name<$kind: Integer>($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            {
                /// The same for such a processor.
                ///
                /// # Safety
                /// The processor has AVX2 and BMI2.
                #[target_feature(enable = "avx2,bmi2")]
                fn wide<$kind: Integer>($($argument: $type),*) $(-> $result)? {
                    $portable($($argument),*)
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
                    // SAFETY: the processor has what the function is translated for.
                    return unsafe { wide($($argument),*) };
                }
            }
            $portable($($argument),*)
        }
    )*};
}

wide! {
    /// Appends the values as DELTA_BINARY_PACKED.
    fn put_differences<T: Integer>(values: &[T], out: &mut Vec<u8>) = put_differences_portable;
    /// Appends dictionary indices, none as wide as `width` bits: as one run if they are all the same, and
    /// bit-packed otherwise.
    fn put_indices<T: Integer>(values: &[T], width: u32, out: &mut Vec<u8>) = put_indices_portable;
    /// The least and the greatest of values, of which there are some.
    fn bounds<T: Integer>(values: &[T]) -> (T, T) = bounds_portable;
    /// Whether the values are all the same.
    fn alike<T: Integer>(values: &[T]) -> bool = alike_portable;
}

#[inline(always)]
fn put_differences_portable<T: Integer>(values: &[T], out: &mut Vec<u8>) {
    put_varint(BLOCK as u64, out);
    put_varint((BLOCK / MINIBLOCK) as u64, out);
    put_varint(values.len() as u64, out);
    put_zigzag(values.first().copied().unwrap_or_default().signed(), out);
    out.reserve(size_of_val(values) + values.len() / 8 + 64);
    let mut differences = [T::default(); BLOCK];
    let mut rest = values;
    while let Some((_, behind)) = rest.split_first_chunk::<BLOCK>()
        && let Some(window) = rest.first_chunk::<{ BLOCK + 1 }>()
    {
        for (place, difference) in differences.iter_mut().enumerate() {
            *difference = window[place + 1].minus(window[place]);
        }
        put_block(&mut differences, BLOCK, out);
        rest = behind;
    }
    if rest.len() > 1 {
        for (difference, two) in differences.iter_mut().zip(rest.windows(2)) {
            *difference = two[1].minus(two[0]);
        }
        put_block(&mut differences, rest.len() - 1, out);
    }
}

/// Appends one block: its least difference, the widths of its miniblocks, and what each difference is above the
/// least. The last block may have fewer differences, and leaves out the miniblocks that it does not reach.
#[inline(always)]
fn put_block<T: Integer>(differences: &mut [T; BLOCK], count: usize, out: &mut Vec<u8>) {
    // What fills up the last miniblock is read and thrown away.
    let first = differences[0];
    differences[count..].fill(first);
    let least = differences.iter().fold(first, |a, &b| if b.is_below(a) { b } else { a });
    put_zigzag(least.signed(), out);
    let mut used = [T::default(); BLOCK / MINIBLOCK];
    for (used, miniblock) in used.iter_mut().zip(differences.as_chunks_mut::<MINIBLOCK>().0) {
        for difference in &mut *miniblock {
            *difference = difference.minus(least);
        }
        *used = miniblock.iter().fold(T::default(), |all, &above| all | above);
    }
    let reached = count.div_ceil(MINIBLOCK);
    let widths: [u8; BLOCK / MINIBLOCK] =
        std::array::from_fn(|place| if place < reached { width_of(used[place].bits()) as u8 } else { 0 });
    out.extend_from_slice(&widths);
    for (above, width) in differences.as_chunks::<MINIBLOCK>().0.iter().zip(widths) {
        T::put_bits(above, u32::from(width), out);
    }
}

/// How many bits a value takes.
pub(crate) fn width_of(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// [`Integer::put_bits`] of up to 64 bits.
#[inline(always)]
fn put_bits<T: Integer>(values: &[T; MINIBLOCK], width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let mut words = [0; MINIBLOCK];
    for (word, value) in words.iter_mut().zip(values) {
        *word = value.bits();
    }
    // Neighbours are joined while they fit 64 bits: the fewer and fuller words are left, the better.
    if width > 32 {
        put_words(&words, width, out);
    } else if width > 16 {
        put_words::<16>(&joined(&words, width), 2 * width, out);
    } else {
        let pairs: [u64; 16] = joined(&words, width);
        let fours: [u64; 8] = joined(&pairs, 2 * width);
        if width > 8 {
            put_words(&fours, 4 * width, out);
        } else {
            put_words::<4>(&joined(&fours, 4 * width), 8 * width, out);
        }
    }
}

/// [`Integer::put_bits`] of up to eight bits: eight values lie in a word already, and only move together.
#[inline(always)]
fn put_bytes(values: &[u8; MINIBLOCK], width: u32, out: &mut Vec<u8>) {
    let mut words = [0; MINIBLOCK / 8];
    for (word, eight) in words.iter_mut().zip(values.as_chunks::<8>().0) {
        let bits = u64::from_le_bytes(*eight);
        let pairs = bits & EVERY_OTHER_8 | (bits >> 8 & EVERY_OTHER_8) << width;
        let fours = pairs & EVERY_OTHER_16 | (pairs >> 16 & EVERY_OTHER_16) << (2 * width);
        *word = fours & EVERY_OTHER_32 | (fours >> 32) << (4 * width);
    }
    put_words(&words, 8 * width, out);
}

/// Each two neighbours in one word, the first in the lower bits.
#[inline(always)]
fn joined<const N: usize, const HALF: usize>(words: &[u64; N], width: u32) -> [u64; HALF] {
    let mut joined = [0; HALF];
    for (word, two) in joined.iter_mut().zip(words.as_chunks::<2>().0) {
        *word = two[0] | two[1] << width;
    }
    joined
}

/// Appends the low `width` bits of each word, which together are whole bytes.
#[inline(always)]
fn put_words<const N: usize>(words: &[u64; N], width: u32, out: &mut Vec<u8>) {
    let (mut gathered, mut filled) = (0, 0);
    for &word in words {
        gathered |= word << filled;
        filled += width;
        if filled >= u64::BITS {
            out.extend_from_slice(&gathered.to_le_bytes());
            filled -= u64::BITS;
            gathered = word.checked_shr(width - filled).unwrap_or(0);
        }
    }
    out.extend_from_slice(&gathered.to_le_bytes()[..filled as usize / 8]);
}

#[inline(always)]
fn put_indices_portable<T: Integer>(values: &[T], width: u32, out: &mut Vec<u8>) {
    let Some(first) = values.first() else { return };
    if alike_portable(values) {
        return put_run(first.bits(), values.len(), width, out);
    }
    // Packed values come in eights; what fills up the last is read and thrown away.
    put_varint((values.len() as u64).div_ceil(8) << 1 | 1, out);
    let bytes = values.len().div_ceil(8) * width as usize;
    out.reserve(bytes + 8);
    let end = out.len() + bytes;
    let (whole, rest) = values.as_chunks::<MINIBLOCK>();
    for values in whole {
        T::put_bits(values, width, out);
    }
    let mut last = [T::default(); MINIBLOCK];
    last[..rest.len()].copy_from_slice(rest);
    T::put_bits(&last, width, out);
    out.truncate(end);
}

#[inline(always)]
fn bounds_portable<T: Integer>(values: &[T]) -> (T, T) {
    values.iter().fold((values[0], values[0]), |(least, most), &value| (least.min(value), most.max(value)))
}

#[inline(always)]
fn alike_portable<T: Integer>(values: &[T]) -> bool {
    // Without a way out in the middle it is done many at a time.
    let different = |values: &[T]| values.iter().fold(false, |any, &value| any | (value != values[0]));
    values.chunks(BLOCK).all(|chunk| chunk[0] == values[0] && !different(chunk))
}

/// Appends one value, so many times.
pub(crate) fn put_run(value: u64, times: usize, width: u32, out: &mut Vec<u8>) {
    put_varint((times as u64) << 1, out);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Appends truths, one in a bit, of which there are `count`.
pub(crate) fn put_truths(words: &[u64], count: usize, out: &mut Vec<u8>) {
    let end = out.len() + count.div_ceil(8);
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
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
/// The lower halves of every 16, 32 and 64 bits.
const EVERY_OTHER_8: u64 = 0x00ff_00ff_00ff_00ff;
const EVERY_OTHER_16: u64 = 0x0000_ffff_0000_ffff;
const EVERY_OTHER_32: u64 = 0x0000_0000_ffff_ffff;

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
        put_indices(&[0_u32, 1, 2, 3, 4, 5, 6, 7], 3, &mut out);
        assert_eq!(out, [3, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        let mut out = Vec::new();
        put_indices(&[4_u8; 100], 3, &mut out);
        assert_eq!(out, [200, 1, 4]);
    }

    #[test]
    fn bits_of_every_width_come_back() {
        for width in 1..=64 {
            let mask = u64::MAX >> (64 - width);
            let values: [u64; MINIBLOCK] =
                std::array::from_fn(|n| (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask);
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

    #[test]
    fn every_processor_gives_the_same_bytes() {
        let mut dice = mqttlab_units::Seed(5).dice();
        for count in [1, 2, 31, 32, 33, 127, 128, 129, 130, 1000] {
            for bits in 0..=64 {
                let wide: Vec<u64> =
                    (0..count).map(|_| dice.bits().checked_shr(64 - bits).unwrap_or(0)).collect();
                let narrow: Vec<u32> = wide.iter().map(|&value| value as u32).collect();
                let bytes: Vec<u8> = wide.iter().map(|&value| value as u8).collect();
                check_both(&bytes, bits.min(8));
                check_both(&wide, bits);
                check_both(&narrow, bits.min(32));
            }
        }
    }

    fn check_both<T: Integer + std::fmt::Debug>(values: &[T], bits: u32) {
        let (mut chosen, mut portable) = (Vec::new(), Vec::new());
        put_differences(values, &mut chosen);
        put_differences_portable(values, &mut portable);
        put_indices(values, bits.max(1), &mut chosen);
        put_indices_portable(values, bits.max(1), &mut portable);
        assert_eq!(chosen, portable);
        assert_eq!(bounds(values), bounds_portable(values));
        assert_eq!(alike(values), alike_portable(values));
    }
}
