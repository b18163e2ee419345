//! A hasher for keys that are numbers of our own making, or a file's.
//!
//! Maps are asked for every segment and every delivery, so keys are hashed by a multiplication for each of their
//! parts. Whoever can make keys collide has only slowed down the reading of their own file.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// For maps whose keys are hashed by multiplications.
pub type FoldedHash = BuildHasherDefault<Folded>;

/// A map whose keys are numbers: of frames, connections, clients, messages.
pub type NumberMap<K, V> = HashMap<K, V, FoldedHash>;

/// A set of such numbers.
pub type NumberSet<K> = HashSet<K, FoldedHash>;

/// Folds everything into one word.
#[derive(Clone, Copy, Debug, Default)]
pub struct Folded(u64);

impl Folded {
    #[inline]
    fn fold(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Folded {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|&word| self.fold(u64::from_le_bytes(word)));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.fold(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.fold(number.into());
    }

    #[inline]
    fn write_u16(&mut self, number: u16) {
        self.fold(number.into());
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.fold(number.into());
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.fold(number);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.fold(number as u64);
    }

    /// A map takes the lowest bits for the place and the highest to compare by: all must depend on everything.
    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, Hash};

    use super::*;

    /// How many of 4,096 keys fall into the fullest of as many places.
    fn fullest<K: Hash>(key: impl Fn(u32) -> K) -> usize {
        let mut places = vec![0; 4096];
        for number in 0..4096 {
            places[FoldedHash::default().hash_one(key(number)) as usize % 4096] += 1;
        }
        places.into_iter().max().unwrap_or(0)
    }

    #[test]
    fn numbers_in_a_row_at_steps_and_in_pairs_are_spread() {
        // By chance the fullest place has about 7.
        assert!(fullest(|number| number) < 10);
        assert!(fullest(|number| u64::from(number) << 32) < 10);
        assert!(fullest(|number| i64::from(number) * 1_000_000) < 10);
        assert!(fullest(|number| (number / 64, (number % 64) as u16)) < 10);
        assert!(fullest(|number| (i64::from(number % 8), (number / 8) as i32, true)) < 10);
    }
}
