//! Where in a TCP stream the bytes inside its layers were carried.

use std::collections::VecDeque;
use std::ops::Range;

use crate::reassembly::Sighting;

/// The bytes of a TCP stream that carried something, and where they were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamSpan {
    /// Stream offset of the first byte, a header in front included.
    pub(crate) start: u64,
    /// Stream offset behind the last one.
    pub(crate) end: u64,
    /// Whether what was carried lies byte for byte before `end`; else all of it has to arrive before any can be read.
    pub(crate) is_linear: bool,
    /// Where the first byte was first seen.
    pub(crate) first: Sighting,
    /// After which segment all bytes had been seen.
    pub(crate) last: Sighting,
}

impl StreamSpan {
    /// Of bytes of the TCP stream itself.
    pub(crate) fn plain(offset: u64, len: u64, seen: Sighting) -> StreamSpan {
        StreamSpan { start: offset, end: offset + len, is_linear: true, first: seen, last: seen }
    }

    /// Of the part `part` of the `len` bytes that were carried here.
    pub(crate) fn part(self, part: Range<usize>, len: usize) -> StreamSpan {
        if !self.is_linear {
            return self;
        }
        let start = if part.start == 0 { self.start } else { self.end - (len - part.start) as u64 };
        StreamSpan { start, end: self.end - (len - part.end) as u64, ..self }
    }

    /// Together with what came before it and belongs to it.
    pub(crate) fn behind(self, before: Option<StreamSpan>) -> StreamSpan {
        let Some(before) = before else { return self };
        StreamSpan { start: before.start, first: before.first, last: later(before.last, self.last), ..self }
    }
}

/// The later of two sightings.
pub(crate) fn later(a: Sighting, b: Sighting) -> Sighting {
    if b.frame > a.frame { b } else { a }
}

/// The places of what is inside, by its offsets there. It forgets what nobody can ask for any more.
#[derive(Debug, Default)]
pub(super) struct Places {
    known: VecDeque<(Range<u64>, StreamSpan)>,
}

impl Places {
    pub(super) fn add(&mut self, inside: Range<u64>, place: StreamSpan) {
        if self.known.len() >= PLACES_MAX {
            self.known.pop_front();
        }
        self.known.push_back((inside, place));
    }

    /// Where the bytes `inside` were carried. It must be asked for in the order of the stream, and forgets what lies before.
    pub(super) fn find(&mut self, inside: Range<u64>) -> Option<StreamSpan> {
        while self.known.front().is_some_and(|(range, _)| range.end <= inside.start) {
            self.known.pop_front();
        }
        let (range, first) = self.known.front().filter(|(range, _)| range.contains(&inside.start))?;
        let from = first.part((inside.start - range.start) as usize..length(range), length(range));
        let at = self.known.partition_point(|(range, _)| range.end < inside.end);
        let Some((range, last)) = self.known.get(at).filter(|(range, _)| range.contains(&(inside.end - 1)))
        else {
            // Its last bytes are missing: as far as it was seen.
            let seen = self.known.partition_point(|(range, _)| range.start < inside.end) - 1;
            return Some(StreamSpan { end: self.known[seen].1.end, is_linear: false, ..from });
        };
        let until = last.part(0..(inside.end - range.start) as usize, length(range));
        Some(StreamSpan {
            start: from.start,
            end: until.end,
            is_linear: false,
            first: from.first,
            last: until.last,
        })
    }
}

fn length(range: &Range<u64>) -> usize {
    (range.end - range.start) as usize
}

/// Places that are remembered of one direction, for the packets that are not complete.
const PLACES_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_units::Instant;

    fn seen(frame: u64) -> Sighting {
        Sighting { time: Instant::from_ns(frame), frame }
    }

    #[test]
    fn a_packet_begins_with_the_header_before_it_and_ends_where_it_can_be_read() {
        let mut places = Places::default();
        // Ten bytes behind a header of six; then a record that is read as a whole.
        places.add(0..10, StreamSpan { start: 100, ..StreamSpan::plain(106, 10, seen(1)) });
        places.add(
            10..30,
            StreamSpan { start: 116, end: 160, is_linear: false, first: seen(2), last: seen(3) },
        );
        let place = places.find(0..4).unwrap();
        assert_eq!((place.start, place.end, place.last.frame), (100, 110, 1));
        let place = places.find(4..10).unwrap();
        assert_eq!((place.start, place.end), (110, 116));
        let place = places.find(12..20).unwrap();
        assert_eq!((place.start, place.end, place.first.frame, place.last.frame), (116, 160, 2, 3));
        let place = places.find(20..30).unwrap();
        assert_eq!((place.start, place.end), (116, 160));
        // Nothing is known of what comes behind.
        let place = places.find(25..90).unwrap();
        assert_eq!((place.start, place.end), (116, 160));
        assert_eq!(places.find(30..31), None);
    }
}
