//! Connections by their ends.
//!
//! A segment's connection is looked up for every segment, so its ends are hashed by a few multiplications. Whoever
//! can make a capture whose ends collide has only slowed down the reading of their own capture.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::segment::Endpoint;

/// Both ends of a connection, the lesser one first.
pub(super) type Ends = (Endpoint, Endpoint);

/// Where each connection is followed.
pub(super) type ByEnds = HashMap<Ends, usize, BuildHasherDefault<EndsHasher>>;

/// Folds everything into one word.
#[derive(Default)]
pub(super) struct EndsHasher(u64);

impl EndsHasher {
    #[inline]
    fn fold(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for EndsHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.fold(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u16(&mut self, number: u16) {
        self.fold(number.into());
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.fold(number as u64);
    }

    /// The map takes the lowest bits for the place and the highest to compare by: all must depend on everything.
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}
