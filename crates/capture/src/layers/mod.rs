//! What lies between TCP and MQTT: TLS, WebSocket, or WebSocket in TLS; and what stands in front of them ([`preamble`]).
//!
//! ```text
//!   TCP stream ──► [TLS records ──► what they hold] ──► [WebSocket frames ──► payload] ──► MQTT packets
//!   its offsets ◄──────────────── places: which bytes carried what ◄───────────┘
//! ```
//!
//! A connection of plain MQTT has none of it. What is inside a layer has offsets of its own; a packet found there is told
//! by the bytes of the TCP stream that carried it, from the header of the frame or record that it begins in, when it is the
//! first in it, to its own last byte, or that of its record, without which none of it can be read.
//!
//! What is missing below is missing inside: a hole whose length inside is known keeps its length, any other is
//! [`UNKNOWN_BYTES`] long, so that nobody takes it for a part of one packet.

mod preamble;
mod stream_spans;
mod tls;
mod websocket;

use std::collections::VecDeque;

use crate::mqtt::CapturedPacket;
use crate::reassembly::{SegmentPayload, Sighting, StreamPiece};
use stream_spans::{Places, StreamSpan};
use tls::TlsConnection;

pub use preamble::Preamble;
pub(crate) use preamble::PreambleReader;
pub use tls::{KeyLog, TlsFacts, Unread};
pub(crate) use websocket::begun as begun_as_websocket;

/// The length of a hole of which nobody knows how long it is inside: longer than any control packet.
pub(crate) const UNKNOWN_BYTES: u64 = 1 << 32;

/// The layers of a connection; its directions are numbered, towards the server first.
#[derive(Debug)]
pub(crate) struct ConnectionLayers {
    tls: Option<TlsConnection>,
    websocket: Option<[websocket::WebSocketDirection; 2]>,
    inside: [Inside; 2],
    ready: VecDeque<Opened>,
}

/// One direction of what is inside.
#[derive(Debug, Default)]
struct Inside {
    offset: u64,
    places: Places,
    /// Whether something is missing before the first byte.
    is_headless: bool,
}

/// A part of what is inside, in the order of its direction.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The direction.
    pub(crate) way: usize,
    /// Offset inside.
    pub(crate) offset: u64,
    /// What it is.
    pub(crate) content: OpenedBytes,
    /// After which segment it could be read.
    pub(crate) seen: Sighting,
}

/// Bytes, or how many are missing.
#[derive(Debug)]
pub(crate) enum OpenedBytes {
    Bytes(Vec<u8>),
    Missing(u64),
}

/// A part of what is inside a layer, and where it was carried; what is missing was carried nowhere.
#[derive(Debug)]
struct Chunk {
    content: OpenedBytes,
    place: Option<StreamSpan>,
}

impl Chunk {
    fn data(bytes: Vec<u8>, place: StreamSpan) -> Chunk {
        Chunk { content: OpenedBytes::Bytes(bytes), place: Some(place) }
    }

    fn missing(len: u64) -> Chunk {
        Chunk { content: OpenedBytes::Missing(len), place: None }
    }
}

/// What was counted of one layer in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LayerTally {
    /// What the layer adds to what is inside: what opens it, headers, what masks or seals, what it says of its own. Bytes.
    overhead_bytes: u64,
    /// Bytes passed over, in search of a record or frame or because they are not read.
    skipped_bytes: u64,
    /// Times that what came could not be a record or frame, or could not be opened.
    impossible: u64,
}

/// What was counted of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LayerCounts {
    /// What TLS added, bytes.
    pub(crate) tls_bytes: u64,
    /// What WebSocket added, bytes.
    pub(crate) websocket_bytes: u64,
    /// Bytes passed over to find the next record or frame.
    pub(crate) skipped_bytes: u64,
    /// Times that what came could not be a record or frame.
    pub(crate) impossible: u64,
}

/// What is known of a connection that begins as a WebSocket does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WebSocketOpening {
    /// Not yet anything.
    Unknown,
    /// It is one.
    Upgraded,
    /// It is none.
    Refused,
}

impl ConnectionLayers {
    fn none() -> ConnectionLayers {
        ConnectionLayers { tls: None, websocket: None, inside: Default::default(), ready: VecDeque::new() }
    }

    /// A connection that asks for a WebSocket, or is one; `from_start` says of which direction the start was captured.
    pub(crate) fn websocket(from_start: [bool; 2]) -> ConnectionLayers {
        let websocket = Some(websocket::both(from_start));
        ConnectionLayers { websocket, ..ConnectionLayers::none() }
    }

    /// A connection with TLS.
    pub(crate) fn tls() -> ConnectionLayers {
        let tls = Some(TlsConnection::default());
        ConnectionLayers { tls, ..ConnectionLayers::none() }
    }

    /// What is known of its TLS.
    pub(crate) fn secured(&self) -> Option<TlsFacts> {
        self.tls.as_ref().map(TlsConnection::facts)
    }

    /// Whether it has become a WebSocket, by what both ends said.
    pub(crate) fn opening(&self) -> WebSocketOpening {
        let Some(halves) = &self.websocket else { return WebSocketOpening::Unknown };
        match halves.each_ref().map(websocket::WebSocketDirection::opening) {
            [WebSocketOpening::Refused, _] | [_, WebSocketOpening::Refused] => WebSocketOpening::Refused,
            [WebSocketOpening::Unknown, WebSocketOpening::Unknown] => WebSocketOpening::Unknown,
            _ => WebSocketOpening::Upgraded,
        }
    }

    /// Whether what was said when it opened names MQTT as what is inside.
    pub(crate) fn names_mqtt(&self) -> bool {
        self.websocket.iter().flatten().any(websocket::WebSocketDirection::names_mqtt)
    }

    /// Whether the start of what is inside was captured in a direction.
    pub(crate) fn is_from_start(&self, way: usize) -> bool {
        let is_from_start = self.websocket.as_ref().is_none_or(|halves| halves[way].is_from_start());
        is_from_start && !self.inside[way].is_headless
    }

    /// Takes the next piece of a direction's TCP stream.
    pub(crate) fn feed(&mut self, way: usize, piece: &StreamPiece<'_>, key_log: &KeyLog) {
        let ConnectionLayers { tls, websocket, inside, ready } = self;
        let Some(tls) = tls else {
            return match *piece {
                StreamPiece::Data { offset, len, payload: SegmentPayload::Bytes(bytes), seen } => {
                    open_frames(
                        way,
                        Ok((bytes, StreamSpan::plain(offset, len, seen))),
                        websocket,
                        inside,
                        ready,
                    );
                }
                // A simulator's packets have no layers here: it says what these add.
                StreamPiece::Data { .. } => {}
                StreamPiece::Missing { len, .. } => open_frames(way, Err(len), websocket, inside, ready),
            };
        };
        // Both directions' records may be opened by one piece: some wait for the other end's hello.
        let mut emit = |way: usize, chunk: Chunk| match (chunk.content, chunk.place) {
            (OpenedBytes::Bytes(bytes), Some(place)) => {
                if way == 0 && inside[0].offset == 0 && websocket.is_none() && bytes.starts_with(b"GET ") {
                    *websocket = Some(websocket::both([true; 2]));
                }
                open_frames(way, Ok((&bytes, place)), websocket, inside, ready);
            }
            (OpenedBytes::Missing(len), _) => open_frames(way, Err(len), websocket, inside, ready),
            (OpenedBytes::Bytes(_), None) => {}
        };
        match *piece {
            StreamPiece::Data { offset, len, payload: SegmentPayload::Bytes(bytes), seen } => {
                tls.feed(way, bytes, StreamSpan::plain(offset, len, seen), key_log, &mut emit);
            }
            StreamPiece::Data { .. } => {}
            StreamPiece::Missing { len, .. } => tls.miss(way, len, key_log, &mut emit),
        }
    }

    /// The next part of what is inside.
    pub(crate) fn poll(&mut self) -> Option<Opened> {
        self.ready.pop_front()
    }

    /// Tells of a packet by the TCP stream that carried it, not by the stream inside. Packets must be asked for in order.
    pub(crate) fn carry(&mut self, way: usize, packet: &mut CapturedPacket) {
        let Some(place) = self.inside[way].places.find(packet.start..packet.end) else { return };
        (packet.start, packet.end) = (place.start, place.end);
        packet.first = place.first;
    }

    /// No more will come in a direction; what was counted of it.
    pub(crate) fn finish(&mut self, way: usize) -> LayerCounts {
        let tls = self.tls.as_mut().map(|tls| tls.finish(way)).unwrap_or_default();
        let frames = self.websocket.as_mut().map(|halves| halves[way].finish()).unwrap_or_default();
        LayerCounts {
            tls_bytes: tls.overhead_bytes,
            websocket_bytes: frames.overhead_bytes,
            skipped_bytes: tls.skipped_bytes + frames.skipped_bytes,
            impossible: tls.impossible + frames.impossible,
        }
    }
}

/// Takes a part of the stream below WebSocket, or the length of a hole in it; without WebSocket it is what is inside.
fn open_frames(
    way: usize,
    part: Result<(&[u8], StreamSpan), u64>,
    websocket: &mut Option<[websocket::WebSocketDirection; 2]>,
    inside: &mut [Inside; 2],
    ready: &mut VecDeque<Opened>,
) {
    let mut emit = |chunk| inside[way].feed(way, chunk, ready);
    match (websocket, part) {
        (Some(halves), Ok((bytes, place))) => halves[way].feed(bytes, place, &mut emit),
        (Some(halves), Err(len)) => halves[way].miss(len, &mut emit),
        (None, Ok((bytes, place))) => emit(Chunk::data(bytes.to_vec(), place)),
        (None, Err(len)) => emit(Chunk::missing(len)),
    }
}

impl Inside {
    fn feed(&mut self, way: usize, chunk: Chunk, ready: &mut VecDeque<Opened>) {
        let Chunk { content, place } = chunk;
        let offset = self.offset;
        let (len, seen) = match (&content, place) {
            (OpenedBytes::Bytes(bytes), Some(place)) => {
                let len = bytes.len() as u64;
                self.places.add(offset..offset + len, place);
                (len, place.last)
            }
            (OpenedBytes::Missing(len), _) => {
                self.is_headless |= offset == 0;
                (*len, Sighting::NEVER)
            }
            (OpenedBytes::Bytes(_), None) => return,
        };
        self.offset += len;
        ready.push_back(Opened { way, offset, content, seen });
    }
}
