//! A framing of `crates/layers` as somebody sees it who is neither end: a word, then headers and packets.
//!
//! What it does not model: finding the next frame behind a hole. What follows one is passed over, and so is a stream whose start
//! was not captured.

use mqttlab_layers::{End, Framed, FramingNumber, NoFrame, Unframer};

use super::places::Place;
use super::{Chunk, Counts, UNKNOWN_BYTES};

/// One direction.
#[derive(Debug)]
pub(super) struct Half {
    unframer: Unframer,
    /// Whether it cannot be read any more.
    is_lost: bool,
    /// A header whose packet has not begun.
    header: Option<Place>,
    counts: Counts,
}

/// Both directions.
pub(super) fn both(framing: FramingNumber, from_start: [bool; 2]) -> [Half; 2] {
    let half = |end, is_from_start: bool| Half {
        unframer: Unframer::new(framing, end),
        is_lost: !is_from_start,
        header: None,
        counts: Counts::default(),
    };
    [half(End::Client, from_start[0]), half(End::Server, from_start[1])]
}

impl Half {
    /// Takes the next bytes of the stream below.
    pub(super) fn feed(&mut self, bytes: &[u8], place: Place, emit: &mut dyn FnMut(Chunk)) {
        let Half { unframer, is_lost, header, counts } = self;
        let mut at = 0;
        let outcome = if *is_lost {
            Ok(())
        } else {
            unframer.feed(bytes, |came| {
                let from = at;
                match came {
                    Framed::Word(count, _) => {
                        at += count;
                        counts.overhead_bytes += count as u64;
                    }
                    Framed::Header(count) => {
                        at += count;
                        counts.overhead_bytes += count as u64;
                        *header = Some(place.part(from..at, bytes.len()).behind(header.take()));
                    }
                    Framed::Data(data) => {
                        at += data.len();
                        let carried = place.part(from..at, bytes.len()).behind(header.take());
                        emit(Chunk::data(data.to_vec(), carried));
                    }
                }
                Ok::<(), NoFrame>(())
            })
        };
        counts.skipped_bytes += (bytes.len() - at) as u64;
        if outcome.is_err() {
            counts.impossible += 1;
            self.miss(emit);
        }
    }

    /// Bytes of the stream below are missing.
    pub(super) fn miss(&mut self, emit: &mut dyn FnMut(Chunk)) {
        if !self.is_lost {
            self.is_lost = true;
            emit(Chunk::missing(UNKNOWN_BYTES));
        }
    }

    /// What was counted.
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }
}
