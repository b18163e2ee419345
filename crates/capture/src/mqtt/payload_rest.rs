//! What a payload holds behind its first [`PAYLOAD_HEAD_MAX`] bytes, in a few words.
//!
//! Bytes are folded in as they pass, so that a payload of any size takes no memory. Each eight bytes are a 128-bit
//! multiplication, whose halves are folded: a plain product would let differences in the high bits of one word be cancelled by
//! the next. Payloads that differ have the same digest once in 2^64. The digest withstands accidents, not an attacker.
//!
//! Of a payload that was captured in part, the digest is that of the bytes up to the first missing one. At some lengths
//! ([`MARKS`]) the digest so far is kept, so that a part and a whole, or two parts, can be compared by what they have in common.

use super::PAYLOAD_HEAD_MAX;

/// What was captured of a payload without a hole, from its first byte on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayloadRest {
    /// How many bytes that is.
    pub captured: u32,
    /// The digest of those behind the head; 0 where there are none.
    pub digest: u64,
    /// The digest of those up to each of [`MARKS`], as far as captured.
    marks: [u32; MARKS.len()],
}

impl PayloadRest {
    /// Of a payload that was captured whole.
    pub fn of(payload: &[u8]) -> PayloadRest {
        RestHasher::of_head(payload).finish()
    }

    /// The same of a payload that is longer than its head; of others their heads say it all.
    pub(crate) fn of_long(payload: &[u8]) -> Option<Box<PayloadRest>> {
        (payload.len() > PAYLOAD_HEAD_MAX).then(|| Box::new(PayloadRest::of(payload)))
    }

    /// Whether two payloads agree as far as both were captured, behind their heads: at the last mark that both have reached.
    pub fn agrees(&self, other: &PayloadRest) -> bool {
        let common = self.captured.min(other.captured);
        match MARKS.partition_point(|&mark| mark <= common) {
            0 => true,
            reached => self.marks[reached - 1] == other.marks[reached - 1],
        }
    }
}

/// Takes a payload in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RestHasher {
    state: u64,
    /// Bytes that do not fill a word yet.
    pending: [u8; 8],
    /// The next of [`MARKS`].
    next: u8,
    rest: PayloadRest,
}

impl RestHasher {
    /// Of a payload that begins so.
    pub(super) fn of_head(bytes: &[u8]) -> RestHasher {
        let (head, more) = bytes.split_at(bytes.len().min(PAYLOAD_HEAD_MAX));
        let rest = PayloadRest { captured: head.len() as u32, ..PayloadRest::default() };
        let mut hasher = RestHasher { rest, ..RestHasher::default() };
        hasher.feed(more);
        hasher
    }

    /// Takes the next bytes, all of them behind the head.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) {
        let filled = self.rest.captured as usize % WORD;
        if filled > 0 {
            let (now, later) = bytes.split_at(bytes.len().min(WORD - filled));
            self.pending[filled..filled + now.len()].copy_from_slice(now);
            self.rest.captured += now.len() as u32;
            bytes = later;
            if filled + now.len() == WORD {
                self.fold(self.pending);
                self.mark();
            }
        }
        let (words, tail) = bytes.as_chunks::<WORD>();
        // Marks are few, and none lies behind the last.
        if self.rest.captured < MARKS[MARKS.len() - 1] {
            for word in words {
                self.fold(*word);
                self.rest.captured += WORD as u32;
                self.mark();
            }
        } else {
            words.iter().for_each(|word| self.fold(*word));
            self.rest.captured += (words.len() * WORD) as u32;
        }
        self.pending[..tail.len()].copy_from_slice(tail);
        self.rest.captured += tail.len() as u32;
    }

    /// No more bytes come.
    pub(super) fn finish(mut self) -> PayloadRest {
        let filled = self.rest.captured as usize % WORD;
        if filled > 0 && self.rest.captured as usize > PAYLOAD_HEAD_MAX {
            self.pending[filled..].fill(0);
            self.fold(self.pending);
        }
        PayloadRest { digest: self.state, ..self.rest }
    }

    #[inline]
    fn fold(&mut self, word: [u8; WORD]) {
        self.state = fold(self.state, u64::from_le_bytes(word));
    }

    #[inline]
    fn mark(&mut self) {
        let next = usize::from(self.next);
        if MARKS.get(next) == Some(&self.rest.captured) {
            self.rest.marks[next] = (self.state ^ self.state >> 32) as u32;
            self.next += 1;
        }
    }
}

/// Folds bytes into a digest, the last word filled up with zeros.
pub fn folded(state: u64, bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<WORD>();
    let mut last = [0; WORD];
    last[..tail.len()].copy_from_slice(tail);
    let state = words.iter().fold(state, |state, word| fold(state, u64::from_le_bytes(*word)));
    if tail.is_empty() { state } else { fold(state, u64::from_le_bytes(last)) }
}

/// Folds a number into a digest.
#[inline]
pub fn fold(state: u64, word: u64) -> u64 {
    let product = u128::from(state ^ word ^ SALT) * u128::from(FACTOR);
    product as u64 ^ (product >> 64) as u64
}

const WORD: usize = 8;
/// Digits of pi and of the golden ratio: odd, and with no pattern in their bits.
const SALT: u64 = 0x243f_6a88_85a3_08d3;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Lengths of payloads at which the digest so far is kept: multiples of a word, closer where usual snap lengths cut.
const MARKS: [u32; 12] = [88, 96, 112, 128, 144, 160, 192, 224, 256, 384, 512, 1024];

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(bytes: usize, changed: Option<usize>) -> Vec<u8> {
        (0..bytes).map(|at| if changed == Some(at) { b'y' } else { b'x' }).collect()
    }

    #[test]
    fn the_pieces_in_which_a_payload_comes_do_not_matter() {
        for bytes in [0, 7, 79, 80, 81, 88, 95, 200, 1100] {
            let whole: Vec<u8> = (0..bytes).map(|at| (at * 7 % 251) as u8).collect();
            for piece in [1, 3, 8, 100] {
                let mut hasher = RestHasher::of_head(&whole[..whole.len().min(80)]);
                whole
                    .get(80..)
                    .into_iter()
                    .flat_map(|rest| rest.chunks(piece))
                    .for_each(|part| hasher.feed(part));
                assert_eq!(hasher.finish(), PayloadRest::of(&whole), "{bytes} bytes by {piece}");
            }
        }
    }

    #[test]
    fn every_byte_behind_the_head_counts_and_every_bit_of_two_bytes_does() {
        let same = PayloadRest::of(&payload(5_000, None));
        assert!((80..5_000).all(|at| PayloadRest::of(&payload(5_000, Some(at))).digest != same.digest));
        assert_eq!(PayloadRest::of(&payload(5_000, Some(79))), same, "the head is kept as it is");
        let mut seen = std::collections::BTreeSet::new();
        for [one, other] in (0..=u16::MAX).map(u16::to_be_bytes) {
            let mut bytes = payload(100, None);
            (bytes[87], bytes[90]) = (one, other);
            seen.insert(PayloadRest::of(&bytes).digest);
        }
        assert_eq!(seen.len(), 65_536);
    }

    #[test]
    fn a_part_agrees_with_the_whole_up_to_the_last_length_that_both_have_reached() {
        let part = |bytes| PayloadRest::of(&payload(bytes, None));
        let whole = |changed| PayloadRest::of(&payload(5_000, Some(changed)));
        assert!(part(100).agrees(&whole(99)), "compared up to 96");
        assert!(!part(100).agrees(&whole(95)));
        assert!(!part(1_500).agrees(&whole(1_000)) && part(1_500).agrees(&whole(1_100)));
        assert!(part(60).agrees(&whole(80)), "nothing in common but the head");
    }
}
