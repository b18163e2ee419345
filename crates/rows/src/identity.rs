//! Who a message is, written into its own payload.
//!
//! | payload        | what it carries                                                        |
//! |----------------|------------------------------------------------------------------------|
//! | none           | nothing: messages are told apart by their order                        |
//! | 1 to 8 bytes   | the last bytes of the sequence, big-endian: the order tells the rest   |
//! | from 9 bytes   | check (2), publisher (3), sequence (4), big-endian                     |
//! | from 17 bytes  | the same with another check, then the intended time in nanoseconds (8) |
//! | text           | `mqttlab:` and 38 hexadecimal digits                                   |
//!
//! The digits are check (4), publisher (6), sequence (8), intended time in nanoseconds (16) and a second check (4).
//! The check is a hash of the other fields, so that a payload that somebody else made is taken for one of
//! ours with a probability of about 2^-15 in binary and next to never in text. The highest bit of a binary check is set,
//! so that no ASCII text, whose beginning may be the same in every message, is ever taken for one. The binary form stands at the very start; the
//! text form may begin anywhere in the first [`SEARCH_BYTES`], so that it can be a field of a JSON document.
//!
//! What it does not model: more than 2^24 publishers or 2^32 messages each.

use mqttlab_units::Instant;

/// Who a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The publishing client, below 2^24.
    pub publisher: u32,
    /// The publisher's own count of messages offered.
    pub sequence: u32,
    /// When the schedule wanted it sent; `None` when the payload has no room for it.
    pub intended: Option<Instant>,
}

/// The smallest binary payload that can carry an identity.
pub const BYTES_MIN: usize = 9;
/// The smallest binary payload that can carry the intended time as well.
pub const BYTES_WITH_TIME: usize = 17;
/// The length of the text form.
pub const TEXT_BYTES: usize = PREFIX.len() + TEXT_DIGITS;
/// The text form begins within this many bytes of the payload's start.
pub const SEARCH_BYTES: usize = 1024;

impl Identity {
    /// Writes the identity over the start of a binary payload, with the time if there is room. `false`, and only the end
    /// of the sequence written, when the payload is too small.
    ///
    /// # Panics
    /// When the publisher is not below 2^24.
    pub fn write(&self, payload: &mut [u8]) -> bool {
        assert!(self.publisher < 1 << 24, "publisher {} does not fit 24 bits", self.publisher);
        let intended = self.intended.filter(|_| payload.len() >= BYTES_WITH_TIME);
        let Some(head) = payload.get_mut(..BYTES_MIN) else {
            let end = u64::from(self.sequence).to_be_bytes();
            payload.copy_from_slice(&end[end.len() - payload.len()..]);
            return false;
        };
        head[..2].copy_from_slice(&check(SALT_BINARY, self.publisher, self.sequence, intended).to_be_bytes());
        head[2..5].copy_from_slice(&self.publisher.to_be_bytes()[1..]);
        head[5..9].copy_from_slice(&self.sequence.to_be_bytes());
        if let Some(intended) = intended {
            payload[BYTES_MIN..BYTES_WITH_TIME].copy_from_slice(&intended.as_ns().to_be_bytes());
        }
        true
    }

    /// Writes the text form over `text`, which must be [`TEXT_BYTES`] long. A missing time is written as 0.
    ///
    /// # Panics
    /// When the publisher is not below 2^24, or `text` is of another length.
    pub fn write_text(&self, text: &mut [u8]) {
        assert!(self.publisher < 1 << 24, "publisher {} does not fit 24 bits", self.publisher);
        let intended = self.intended.unwrap_or(Instant::ZERO);
        let time = Some(intended);
        let mut bytes = [0; TEXT_DIGITS / 2];
        bytes[..2].copy_from_slice(&check(SALT_TEXT, self.publisher, self.sequence, time).to_be_bytes());
        bytes[2..5].copy_from_slice(&self.publisher.to_be_bytes()[1..]);
        bytes[5..9].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[9..17].copy_from_slice(&intended.as_ns().to_be_bytes());
        bytes[17..].copy_from_slice(&check(SALT_END, self.publisher, self.sequence, time).to_be_bytes());
        text[..PREFIX.len()].copy_from_slice(PREFIX);
        for (digits, byte) in text[PREFIX.len()..].chunks_exact_mut(2).zip(bytes) {
            digits.copy_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        assert_eq!(text.len(), TEXT_BYTES, "the text form has a length of its own");
    }
}

/// How the sequence of a message ends, as a payload too small for an identity says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceEnd {
    value: u32,
    /// Of `value`; the others of a sequence are not known.
    mask: u32,
}

impl SequenceEnd {
    /// What a whole payload says. `None` of one that is empty, that has room for an identity, or that is not ours.
    pub fn of(payload: &[u8]) -> Option<SequenceEnd> {
        let room = size_of::<u64>().checked_sub(payload.len())?;
        let mut bytes = [0; size_of::<u64>()];
        bytes[room..].copy_from_slice(payload);
        SequenceEnd::stored(u32::try_from(u64::from_be_bytes(bytes)).ok()?, payload.len())
    }

    /// The same of a payload of so many bytes, from the [`value`](Self::value) that it had.
    pub fn stored(value: u32, payload_bytes: usize) -> Option<SequenceEnd> {
        let mask = match payload_bytes {
            1..4 => (1 << (8 * payload_bytes)) - 1,
            4..BYTES_MIN => u32::MAX,
            _ => return None,
        };
        Some(SequenceEnd { value, mask })
    }

    /// The bytes as a number.
    pub fn value(self) -> u32 {
        self.value
    }

    /// Which of `count` messages ends so: the one nearest to the place where the next is expected, of two the later one.
    /// Behind it are copies of what came before, ahead of it what came while others were lost.
    pub fn place(self, expected: usize, count: usize, sequence: impl Fn(usize) -> u32) -> Option<usize> {
        let ends_so = |place: &usize| *place < count && sequence(*place) & self.mask == self.value;
        let farthest = expected.max(count).min(SEARCH_PLACES);
        (0..=farthest).find_map(|distance| {
            let ahead = Some(expected + distance).filter(ends_so);
            ahead.or_else(|| expected.checked_sub(distance).filter(ends_so))
        })
    }
}

/// A message is looked for so far from where it is expected.
const SEARCH_PLACES: usize = 1 << 16;

/// The identity that a payload carries, if it carries one.
pub fn find(payload: &[u8]) -> Option<Identity> {
    find_binary(payload).or_else(|| find_text(payload))
}

fn find_binary(payload: &[u8]) -> Option<Identity> {
    let head = payload.get(..BYTES_MIN)?;
    let found = u16::from_be_bytes([head[0], head[1]]);
    let publisher = u32::from_be_bytes([0, head[2], head[3], head[4]]);
    let sequence = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    let intended = payload.get(BYTES_MIN..BYTES_WITH_TIME).map(|time| Instant::from_ns(u64_of(time)));
    let is = |intended| found == check(SALT_BINARY, publisher, sequence, intended);
    let intended = intended.filter(|&time| is(Some(time)));
    (intended.is_some() || is(None)).then_some(Identity { publisher, sequence, intended })
}

fn find_text(payload: &[u8]) -> Option<Identity> {
    let searched = &payload[..payload.len().min(SEARCH_BYTES + TEXT_BYTES)];
    searched.windows(TEXT_BYTES).filter(|text| text.starts_with(PREFIX)).find_map(read_text)
}

fn read_text(text: &[u8]) -> Option<Identity> {
    let mut bytes = [0; TEXT_DIGITS / 2];
    for (byte, digits) in bytes.iter_mut().zip(text[PREFIX.len()..].chunks_exact(2)) {
        *byte = digit(digits[0])? << 4 | digit(digits[1])?;
    }
    let publisher = u32::from_be_bytes([0, bytes[2], bytes[3], bytes[4]]);
    let sequence = u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]);
    let intended = Some(Instant::from_ns(u64_of(&bytes[9..17])));
    let first = check(SALT_TEXT, publisher, sequence, intended).to_be_bytes();
    let last = check(SALT_END, publisher, sequence, intended).to_be_bytes();
    (bytes[..2] == first && bytes[17..] == last).then_some(Identity { publisher, sequence, intended })
}

fn u64_of(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("a time is eight bytes"))
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// 16 bits of a hash of everything else: the multiplications of SplitMix64 spread each bit over all others.
fn check(salt: u64, publisher: u32, sequence: u32, intended: Option<Instant>) -> u16 {
    // A time that is present never hashes like one that is absent.
    let time = intended.map_or(0x5bf0_3635, |intended| intended.as_ns().rotate_left(1) ^ 1);
    let mut hash = salt ^ (u64::from(publisher) << 32 | u64::from(sequence));
    for word in [time, salt] {
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) ^ word;
    }
    ((hash ^ (hash >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 48) as u16 | HIGHEST_BIT
}

const HIGHEST_BIT: u16 = 0x8000;
const PREFIX: &[u8] = b"mqttlab:";
const HEX: &[u8; 16] = b"0123456789abcdef";
const TEXT_DIGITS: usize = 38;
const SALT_BINARY: u64 = 0x6d71_7474_6c61_6221;
const SALT_TEXT: u64 = 0x6d71_7474_6c61_6222;
const SALT_END: u64 = 0x6d71_7474_6c61_6223;

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_units::Seed;
    use proptest::prelude::*;

    fn identities() -> impl Strategy<Value = Identity> {
        (0..1u32 << 24, any::<u32>(), any::<u64>()).prop_map(|(publisher, sequence, ns)| Identity {
            publisher,
            sequence,
            intended: Some(Instant::from_ns(ns)),
        })
    }

    proptest! {
        #[test]
        fn a_binary_identity_is_found_again(identity in identities(), size in 0usize..64) {
            let mut payload = vec![0x55; size];
            let written = identity.write(&mut payload);
            prop_assert_eq!(written, size >= BYTES_MIN);
            let intended = identity.intended.filter(|_| size >= BYTES_WITH_TIME);
            prop_assert_eq!(find(&payload), written.then_some(Identity { intended, ..identity }));
        }

        #[test]
        fn a_text_identity_is_found_anywhere_near_the_start(identity in identities(), at in 0usize..=SEARCH_BYTES) {
            let mut payload = vec![b'm'; at + TEXT_BYTES + 5];
            identity.write_text(&mut payload[at..at + TEXT_BYTES]);
            prop_assert!(std::str::from_utf8(&payload).is_ok());
            prop_assert_eq!(find(&payload), Some(identity));
        }

        #[test]
        fn no_payload_makes_the_search_panic(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = find(&payload);
        }

        #[test]
        fn one_damaged_digit_spoils_the_text_form(identity in identities(), at in 0..TEXT_DIGITS) {
            let mut text = [0; TEXT_BYTES];
            identity.write_text(&mut text);
            let digit = &mut text[PREFIX.len() + at];
            *digit = if *digit == b'0' { b'1' } else { b'0' };
            prop_assert_ne!(find(&text), Some(identity));
        }
    }

    fn end_of(sequence: u32, bytes: usize) -> SequenceEnd {
        let mut payload = vec![0xaa; bytes];
        assert!(!Identity { publisher: 1, sequence, intended: None }.write(&mut payload));
        SequenceEnd::of(&payload).unwrap()
    }

    #[test]
    fn a_small_payload_has_the_end_of_the_number() {
        let sequence = 0x0102_0304;
        for (bytes, value) in
            [(1, 4), (2, 0x0304), (3, 0x0002_0304), (4, sequence), (5, sequence), (8, sequence)]
        {
            let end = end_of(sequence, bytes);
            assert_eq!(end.value(), value, "{bytes} B");
            assert_eq!(SequenceEnd::stored(value, bytes), Some(end));
            assert_eq!(end.place(0, 1, |_| sequence), Some(0));
            assert_eq!(end.place(0, 1, |_| sequence + 1), None);
        }
        assert_eq!(SequenceEnd::of(&[]), None);
        assert_eq!(SequenceEnd::of(b"23.5\xc2\xb0C"), None, "not one of ours");
        assert_eq!(SequenceEnd::of(&[0; BYTES_MIN]), None);
    }

    #[test]
    fn of_numbers_that_end_alike_the_nearest_is_taken() {
        let place = |sequence: u32, expected| end_of(sequence, 1).place(expected, 600, |place| place as u32);
        assert_eq!(place(300, 300), Some(300), "as expected");
        assert_eq!(place(427, 300), Some(427), "127 were lost");
        assert_eq!(place(173, 300), Some(173), "127 come once more");
        assert_eq!(place(428, 300), Some(428), "of two as near the later");
        assert_eq!(place(90, 600), Some(346), "not behind the last");
        assert_eq!(place(0, 5_000_000), None, "out of reach");
        assert_eq!(end_of(0, 4).place(0, 0, |_| unreachable!("nothing was sent")), None);
    }

    #[test]
    fn random_bytes_are_rarely_taken_for_ours() {
        let mut dice = Seed(11).dice();
        let draws = 1_000_000;
        let taken = (0..draws)
            .filter(|_| {
                let mut payload = [0; 24];
                payload
                    .chunks_exact_mut(8)
                    .for_each(|bytes| bytes.copy_from_slice(&dice.bits().to_le_bytes()));
                find(&payload).is_some()
            })
            .count();
        // Two checks of 16 bits: 30.5 expected; 5 standard deviations above are 58.
        assert!((1..58).contains(&taken), "{taken} of {draws}");
    }

    #[test]
    fn no_ascii_text_is_taken_for_a_binary_identity() {
        let mut dice = Seed(12).dice();
        for _ in 0..100_000 {
            let text: [u8; 17] = std::array::from_fn(|_| dice.below(128) as u8);
            assert_eq!(find(&text), None);
        }
    }

    #[test]
    fn payloads_of_zeros_ones_and_letters_are_not_ours() {
        for byte in 0..=255 {
            for size in [0, 8, 9, 16, 17, 64, 100_000] {
                assert_eq!(find(&vec![byte; size]), None, "{size} bytes of {byte}");
            }
        }
    }
}
