//! Records out of a TCP stream (RFC 8446 §5.1), and where the next one may begin when that is lost.
//!
//! A hole inside a record leaves its end known. Behind any other hole a record may begin wherever a header is possible;
//! which of these places is one, who holds the keys finds out by opening it.

use super::super::places::Place;

/// A record.
#[derive(Debug)]
pub(super) struct Record {
    /// Type, version, length.
    pub(super) header: [u8; 5],
    pub(super) body: Vec<u8>,
    pub(super) place: Place,
    /// Whether bytes of it are missing; then its body is of no use.
    pub(super) is_damaged: bool,
}

impl Record {
    pub(super) fn kind(&self) -> u8 {
        self.header[0]
    }

    /// Bytes of the stream that it takes.
    pub(super) fn len(&self) -> u64 {
        (HEADER + length_of(self.header)) as u64
    }
}

/// What came of the stream.
#[derive(Debug)]
pub(super) enum Came {
    /// The next record.
    Record(Record),
    /// Records are lost from here on; how many bytes nobody can place by now.
    Lost(u64),
}

/// One direction's reader.
#[derive(Debug, Default)]
pub(super) struct Reader {
    state: State,
    /// Bytes that were passed over in search of a record.
    pub(super) skipped_bytes: u64,
    /// Times that what came could not be a record.
    pub(super) impossible: u64,
}

#[derive(Debug)]
enum State {
    Header(Vec<u8>, Option<Place>),
    Body { header: [u8; 5], body: Vec<u8>, gone: usize, place: Place, is_damaged: bool },
    Searching(Search),
}

impl Default for State {
    fn default() -> Self {
        State::Header(Vec::new(), None)
    }
}

/// What has come since records were lost.
#[derive(Debug, Default)]
struct Search {
    bytes: Vec<u8>,
    parts: Vec<(usize, Place)>,
    /// Positions before it begin no record.
    from: usize,
}

impl Reader {
    /// Takes the next bytes, as far as the end of a record, where there is one; returns how many. None are left over while
    /// records are searched.
    pub(super) fn take(&mut self, bytes: &[u8], place: Place) -> (usize, Option<Came>) {
        match &mut self.state {
            State::Header(begun, at) => {
                let used = (HEADER - begun.len()).min(bytes.len());
                begun.extend_from_slice(&bytes[..used]);
                let seen = place.part(0..used, bytes.len()).behind(*at);
                let Some(&header) = begun.first_chunk::<HEADER>() else {
                    *at = Some(seen);
                    return (used, None);
                };
                if !may_be(header) {
                    self.impossible += 1;
                    let begun = std::mem::take(begun);
                    self.skipped_bytes += (begun.len() - used) as u64;
                    self.state = State::Searching(Search::default());
                    return (0, Some(Came::Lost(0)));
                }
                self.state =
                    State::Body { header, body: Vec::new(), gone: 0, place: seen, is_damaged: false };
                (used, self.completed())
            }
            State::Body { header, body, gone, place: at, is_damaged } => {
                let used = (length_of(*header) - *gone).min(bytes.len());
                if !*is_damaged {
                    body.extend_from_slice(&bytes[..used]);
                }
                *gone += used;
                *at = place.part(0..used, bytes.len()).behind(Some(*at));
                (used, self.completed())
            }
            State::Searching(search) => {
                search.push(bytes, place);
                (bytes.len(), None)
            }
        }
    }

    /// Bytes of the stream are missing.
    pub(super) fn miss(&mut self, len: u64) -> Option<Came> {
        match &mut self.state {
            State::Body { header, body, gone, is_damaged, .. }
                if *gone as u64 + len <= length_of(*header) as u64 =>
            {
                *gone += len as usize;
                *is_damaged = true;
                body.clear();
                self.completed()
            }
            State::Body { gone, .. } => {
                let lost = len + *gone as u64;
                self.state = State::Searching(Search::default());
                Some(Came::Lost(lost))
            }
            State::Header(begun, _) => {
                let lost = len + begun.len() as u64;
                self.state = State::Searching(Search::default());
                Some(Came::Lost(lost))
            }
            State::Searching(search) => {
                let lost = len + search.bytes.len() as u64;
                self.skipped_bytes += search.bytes.len() as u64;
                *search = Search::default();
                Some(Came::Lost(lost))
            }
        }
    }

    fn completed(&mut self) -> Option<Came> {
        let State::Body { header, body, gone, place, is_damaged } = &mut self.state else { return None };
        if *gone < length_of(*header) {
            return None;
        }
        let place = Place { is_linear: false, ..*place };
        let record = Record { header: *header, body: std::mem::take(body), place, is_damaged: *is_damaged };
        self.state = State::default();
        Some(Came::Record(record))
    }

    /// While records are searched: the next that may be one. It is to be accepted or rejected.
    pub(super) fn candidate(&mut self) -> Option<Record> {
        let State::Searching(search) = &mut self.state else { return None };
        while search.from < search.bytes.len() {
            let rest = &search.bytes[search.from..];
            let Some(&header) = rest.first_chunk::<HEADER>() else { break };
            // Since TLS 1.2 every sealed record has this version (RFC 8446 §5.1).
            if may_be(header) && header[2] == 3 {
                let end = HEADER + length_of(header);
                // Its end has yet to come.
                let body = rest.get(HEADER..end)?.to_vec();
                let place = Place { is_linear: false, ..search.place(search.from, search.from + end) };
                return Some(Record { header, body, place, is_damaged: false });
            }
            search.from += 1;
        }
        self.skipped_bytes += search.forget();
        None
    }

    /// The candidate is no record.
    pub(super) fn reject(&mut self) {
        if let State::Searching(search) = &mut self.state {
            search.from += 1;
            if search.from >= SEARCHED_MAX {
                self.skipped_bytes += search.forget();
            }
        }
    }

    /// The candidate is a record: the stream goes on behind it, with what this returns.
    pub(super) fn accept(&mut self) -> Vec<(Vec<u8>, Place)> {
        let State::Searching(search) = std::mem::take(&mut self.state) else { return Vec::new() };
        let header = search.bytes[search.from..].first_chunk::<HEADER>().copied().unwrap_or_default();
        let behind = search.from + HEADER + length_of(header);
        self.skipped_bytes += search.from as u64;
        search.parts_from(behind)
    }

    /// No more will come.
    pub(super) fn finish(&mut self) {
        if let State::Searching(search) = &mut self.state {
            self.skipped_bytes += search.bytes.len() as u64;
            *search = Search::default();
        }
    }
}

impl Search {
    fn push(&mut self, bytes: &[u8], place: Place) {
        self.parts.push((self.bytes.len(), place));
        self.bytes.extend_from_slice(bytes);
    }

    fn place(&self, start: usize, end: usize) -> Place {
        let ends = self.parts.iter().skip(1).map(|(at, _)| *at).chain([self.bytes.len()]);
        let parts = self.parts.iter().zip(ends).filter(|((at, _), until)| *at < end && *until > start);
        let places = parts
            .map(|(&(at, place), until)| place.part(start.max(at) - at..end.min(until) - at, until - at));
        places.reduce(|before, place| place.behind(Some(before))).expect("a candidate has bytes")
    }

    fn parts_from(&self, from: usize) -> Vec<(Vec<u8>, Place)> {
        let ends = self.parts.iter().skip(1).map(|(at, _)| *at).chain([self.bytes.len()]);
        let behind = self.parts.iter().zip(ends).filter(|(_, until)| *until > from);
        let cut = behind.map(|(&(at, place), until)| {
            let start = at.max(from);
            (self.bytes[start..until].to_vec(), place.part(start - at..until - at, until - at))
        });
        cut.collect()
    }

    /// Gives up what can begin no record; returns how many bytes these are.
    fn forget(&mut self) -> u64 {
        let excess = self.from;
        let parts = self.parts_from(excess);
        *self = Search::default();
        for (bytes, place) in parts {
            self.push(&bytes, place);
        }
        excess as u64
    }
}

/// Whether a record may begin so: its type, a version from TLS 1.0 on, and a length that is allowed (RFC 5246 §6.2.3).
fn may_be(header: [u8; 5]) -> bool {
    let length = length_of(header);
    matches!(header[0], 20..=23) && header[1] == 3 && header[2] <= 4 && (1..=LENGTH_MAX).contains(&length)
}

fn length_of(header: [u8; 5]) -> usize {
    usize::from(u16::from_be_bytes([header[3], header[4]]))
}

const HEADER: usize = 5;
/// 2^14 bytes and what sealing may add.
const LENGTH_MAX: usize = (1 << 14) + 2048;
/// Bytes that are looked through before those that begin no record are let go.
const SEARCHED_MAX: usize = 64 * 1024;
