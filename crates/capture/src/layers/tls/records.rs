//! Records out of a TCP stream (RFC 8446 §5.1), and where the next one may begin when that is lost.
//!
//! A hole inside a record leaves its end known. Behind any other hole a record may begin wherever a header is possible;
//! which of these places is one, who holds the keys finds out by opening it.

use super::super::stream_spans::StreamSpan;

/// A record.
#[derive(Debug)]
pub(super) struct TlsRecord {
    /// Type, version, length.
    pub(super) header: [u8; 5],
    pub(super) body: Vec<u8>,
    pub(super) place: StreamSpan,
    /// Whether bytes of it are missing; then its body is of no use.
    pub(super) is_damaged: bool,
}

impl TlsRecord {
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
pub(super) enum RecordEvent {
    /// The next record.
    Record(TlsRecord),
    /// Records are lost from here on; how many bytes nobody can place by now.
    Lost(u64),
}

/// One direction's reader.
#[derive(Debug, Default)]
pub(super) struct RecordReader {
    state: RecordState,
    /// Bytes that were passed over in search of a record.
    pub(super) skipped_bytes: u64,
    /// Times that what came could not be a record.
    pub(super) impossible: u64,
}

#[derive(Debug)]
enum RecordState {
    Header(Vec<u8>, Option<StreamSpan>),
    Body { header: [u8; 5], body: Vec<u8>, gone: usize, place: StreamSpan, is_damaged: bool },
    Searching(RecordResync),
}

impl Default for RecordState {
    fn default() -> Self {
        RecordState::Header(Vec::new(), None)
    }
}

/// What has come since records were lost.
#[derive(Debug, Default)]
struct RecordResync {
    bytes: Vec<u8>,
    parts: Vec<(usize, StreamSpan)>,
    /// Positions before it begin no record.
    from: usize,
}

impl RecordReader {
    /// Takes the next bytes, as far as the end of a record, where there is one; returns how many. None are left over while
    /// records are searched.
    pub(super) fn feed(&mut self, bytes: &[u8], place: StreamSpan) -> (usize, Option<RecordEvent>) {
        match &mut self.state {
            RecordState::Header(begun, at) => {
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
                    self.state = RecordState::Searching(RecordResync::default());
                    return (0, Some(RecordEvent::Lost(0)));
                }
                self.state =
                    RecordState::Body { header, body: Vec::new(), gone: 0, place: seen, is_damaged: false };
                (used, self.completed())
            }
            RecordState::Body { header, body, gone, place: at, is_damaged } => {
                let used = (length_of(*header) - *gone).min(bytes.len());
                if !*is_damaged {
                    body.extend_from_slice(&bytes[..used]);
                }
                *gone += used;
                *at = place.part(0..used, bytes.len()).behind(Some(*at));
                (used, self.completed())
            }
            RecordState::Searching(search) => {
                search.push(bytes, place);
                (bytes.len(), None)
            }
        }
    }

    /// Bytes of the stream are missing.
    pub(super) fn miss(&mut self, len: u64) -> Option<RecordEvent> {
        match &mut self.state {
            RecordState::Body { header, body, gone, is_damaged, .. }
                if *gone as u64 + len <= length_of(*header) as u64 =>
            {
                *gone += len as usize;
                *is_damaged = true;
                body.clear();
                self.completed()
            }
            RecordState::Body { gone, .. } => {
                let lost = len + *gone as u64;
                self.state = RecordState::Searching(RecordResync::default());
                Some(RecordEvent::Lost(lost))
            }
            RecordState::Header(begun, _) => {
                let lost = len + begun.len() as u64;
                self.state = RecordState::Searching(RecordResync::default());
                Some(RecordEvent::Lost(lost))
            }
            RecordState::Searching(search) => {
                let lost = len + search.bytes.len() as u64;
                self.skipped_bytes += search.bytes.len() as u64;
                *search = RecordResync::default();
                Some(RecordEvent::Lost(lost))
            }
        }
    }

    fn completed(&mut self) -> Option<RecordEvent> {
        let RecordState::Body { header, body, gone, place, is_damaged } = &mut self.state else {
            return None;
        };
        if *gone < length_of(*header) {
            return None;
        }
        let place = StreamSpan { is_linear: false, ..*place };
        let record =
            TlsRecord { header: *header, body: std::mem::take(body), place, is_damaged: *is_damaged };
        self.state = RecordState::default();
        Some(RecordEvent::Record(record))
    }

    /// While records are searched: the next that may be one. It is to be accepted or rejected.
    pub(super) fn candidate(&mut self) -> Option<TlsRecord> {
        let RecordState::Searching(search) = &mut self.state else { return None };
        while search.from < search.bytes.len() {
            let rest = &search.bytes[search.from..];
            let Some(&header) = rest.first_chunk::<HEADER>() else { break };
            // Since TLS 1.2 every sealed record has this version (RFC 8446 §5.1).
            if may_be(header) && header[2] == 3 {
                let end = HEADER + length_of(header);
                // Its end has yet to come.
                let body = rest.get(HEADER..end)?.to_vec();
                let place = StreamSpan { is_linear: false, ..search.place(search.from, search.from + end) };
                return Some(TlsRecord { header, body, place, is_damaged: false });
            }
            search.from += 1;
        }
        self.skipped_bytes += search.forget();
        None
    }

    /// The candidate is no record.
    pub(super) fn reject(&mut self) {
        if let RecordState::Searching(search) = &mut self.state {
            search.from += 1;
            if search.from >= SEARCHED_MAX {
                self.skipped_bytes += search.forget();
            }
        }
    }

    /// The candidate is a record: the stream goes on behind it, with what this returns.
    pub(super) fn accept(&mut self) -> Vec<(Vec<u8>, StreamSpan)> {
        let RecordState::Searching(search) = std::mem::take(&mut self.state) else { return Vec::new() };
        let header = search.bytes[search.from..].first_chunk::<HEADER>().copied().unwrap_or_default();
        let behind = search.from + HEADER + length_of(header);
        self.skipped_bytes += search.from as u64;
        search.parts_from(behind)
    }

    /// No more will come.
    pub(super) fn finish(&mut self) {
        if let RecordState::Searching(search) = &mut self.state {
            self.skipped_bytes += search.bytes.len() as u64;
            *search = RecordResync::default();
        }
    }
}

impl RecordResync {
    fn push(&mut self, bytes: &[u8], place: StreamSpan) {
        self.parts.push((self.bytes.len(), place));
        self.bytes.extend_from_slice(bytes);
    }

    fn place(&self, start: usize, end: usize) -> StreamSpan {
        let ends = self.parts.iter().skip(1).map(|(at, _)| *at).chain([self.bytes.len()]);
        let parts = self.parts.iter().zip(ends).filter(|((at, _), until)| *at < end && *until > start);
        let places = parts
            .map(|(&(at, place), until)| place.part(start.max(at) - at..end.min(until) - at, until - at));
        places.reduce(|before, place| place.behind(Some(before))).expect("a candidate has bytes")
    }

    fn parts_from(&self, from: usize) -> Vec<(Vec<u8>, StreamSpan)> {
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
        *self = RecordResync::default();
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
