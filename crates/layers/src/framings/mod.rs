//! The framings: a file and a row each.

mod framed;

use crate::End;
use crate::framing::Framing;

/// Every one.
pub const FRAMINGS: &[&dyn Framing] = &[&framed::Framed];

/// A framing by its place among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FramingNumber(u8);

impl FramingNumber {
    /// Of the framing with this name.
    pub fn named(name: &str) -> Option<FramingNumber> {
        let place = FRAMINGS.iter().position(|framing| framing.name() == name);
        place.and_then(|place| u8::try_from(place).ok()).map(FramingNumber)
    }

    /// The framing.
    pub fn framing(self) -> &'static dyn Framing {
        FRAMINGS[usize::from(self.0)]
    }

    /// How long the header of a frame with so many bytes is.
    pub fn header_len(self, from: End, length: usize) -> usize {
        let mut header = Vec::with_capacity(16);
        self.framing().header(from, length, &mut header);
        header.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::framing::NoFrame;
    use crate::unframer::{Framed, Unframer};

    #[test]
    fn every_framing_has_a_name_of_its_own_and_a_word_of_each_end() {
        let names: BTreeSet<&str> = FRAMINGS.iter().map(|framing| framing.name()).collect();
        assert_eq!(names.len(), FRAMINGS.len());
        for framing in FRAMINGS {
            assert!(
                FramingNumber::named(framing.name())
                    .is_some_and(|number| number.framing().name() == framing.name())
            );
            assert!([End::Client, End::Server].iter().all(|end| !framing.word(*end).is_empty()));
            assert!(!framing.words().is_empty());
        }
        assert!(FramingNumber::named("unheard-of").is_none());
    }

    /// A stream with a packet of each of these lengths.
    fn stream(framing: &dyn Framing, from: End, lengths: &[usize]) -> Vec<u8> {
        let mut bytes = framing.word(from).to_vec();
        for (number, length) in lengths.iter().enumerate() {
            framing.header(from, *length, &mut bytes);
            bytes.extend(std::iter::repeat_n(number as u8, *length));
        }
        bytes
    }

    #[test]
    fn packets_come_out_wherever_the_stream_is_cut() {
        let lengths = [0, 1, 2, 127, 128, 300, 70_000];
        for framing in FRAMINGS {
            let number = FramingNumber::named(framing.name()).unwrap();
            for from in [End::Client, End::Server] {
                let bytes = stream(*framing, from, &lengths);
                for step in [1, 2, 3, 5, 1_000, bytes.len()] {
                    let (mut unframer, mut data) = (Unframer::new(number, from), Vec::new());
                    let (mut words, mut headers, mut opened) = (0, 0, 0);
                    for piece in bytes.chunks(step) {
                        unframer
                            .feed(piece, |came| {
                                match came {
                                    Framed::Word(count, is_whole) => {
                                        words += count;
                                        opened += u32::from(is_whole);
                                    }
                                    Framed::Header(count) => headers += count,
                                    Framed::Data(bytes) => data.extend_from_slice(bytes),
                                }
                                Ok::<(), NoFrame>(())
                            })
                            .unwrap();
                    }
                    let expected: Vec<u8> = (0..)
                        .zip(lengths)
                        .flat_map(|(number, length)| std::iter::repeat_n(number, length))
                        .collect();
                    assert_eq!((data == expected, words, opened), (true, framing.word(from).len(), 1));
                    let added: usize = lengths.iter().map(|length| number.header_len(from, *length)).sum();
                    assert_eq!(headers, added);
                }
            }
        }
    }

    #[test]
    fn another_word_is_refused_and_noise_never_panics() {
        for framing in FRAMINGS {
            let number = FramingNumber::named(framing.name()).unwrap();
            let mut wrong = framing.word(End::Server).to_vec();
            *wrong.last_mut().unwrap() ^= 1;
            let refused = Unframer::new(number, End::Server).feed(&wrong, |_| Ok::<(), NoFrame>(()));
            assert_eq!(refused, Err(NoFrame(framing.name())));
            for byte in 0..=u8::MAX {
                let mut noise = framing.word(End::Client).to_vec();
                noise.extend([byte; 200]);
                let _ = Unframer::new(number, End::Client).feed(&noise, |_| Ok::<(), NoFrame>(()));
            }
        }
    }
}
