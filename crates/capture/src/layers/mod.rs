//! What lies between TCP and MQTT: WebSocket.
//!
//! ```text
//!   TCP stream ──► [WebSocket frames ──► payload] ──► MQTT packets
//!   its offsets ◄── places: which bytes carried what ◄──┘
//! ```
//!
//! A connection of plain MQTT has none of it. What is inside a layer has offsets of its own; a packet found there is told
//! by the bytes of the TCP stream that carried it, from the header of the frame that it begins in, when it is the first in
//! it, to its own last byte.
//!
//! What is missing below is missing inside: a hole whose length inside is known keeps its length, any other is
//! [`UNKNOWN_BYTES`] long, so that nobody takes it for a part of one packet.

mod places;
mod websocket;

use std::collections::VecDeque;

use crate::mqtt::Packet;
use crate::reassembly::{Payload, Piece, Sighting};
use places::{Place, Places};

pub(crate) use websocket::begun as begun_as_websocket;

/// The length of a hole of which nobody knows how long it is inside: longer than any control packet.
pub(crate) const UNKNOWN_BYTES: u64 = 1 << 32;

/// The layers of a connection; its directions are numbered, towards the server first.
#[derive(Debug)]
pub(crate) struct Layers {
    websocket: [websocket::Half; 2],
    inside: [Inside; 2],
    ready: VecDeque<Opened>,
}

/// One direction of what is inside.
#[derive(Debug, Default)]
struct Inside {
    offset: u64,
    places: Places,
}

/// A part of what is inside, in the order of its direction.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The direction.
    pub(crate) way: usize,
    /// Offset inside.
    pub(crate) offset: u64,
    /// What it is.
    pub(crate) content: Content,
    /// After which segment it could be read.
    pub(crate) seen: Sighting,
}

/// Bytes, or how many are missing.
#[derive(Debug)]
pub(crate) enum Content {
    Bytes(Vec<u8>),
    Missing(u64),
}

/// A part of what is inside a layer, and where it was carried; what is missing was carried nowhere.
#[derive(Debug)]
struct Chunk {
    content: Content,
    place: Option<Place>,
}

impl Chunk {
    fn data(bytes: Vec<u8>, place: Place) -> Chunk {
        Chunk { content: Content::Bytes(bytes), place: Some(place) }
    }

    fn missing(len: u64) -> Chunk {
        Chunk { content: Content::Missing(len), place: None }
    }
}

/// What was counted of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LayerCounts {
    /// What WebSocket added, bytes.
    pub(crate) websocket_bytes: u64,
    /// Bytes passed over to find the next frame.
    pub(crate) skipped_bytes: u64,
    /// Times that what came could not be a frame.
    pub(crate) impossible: u64,
}

/// What is known of a connection that begins as a WebSocket does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Not yet anything.
    Unknown,
    /// It is one.
    Upgraded,
    /// It is none.
    Refused,
}

impl Layers {
    /// A connection that asks for a WebSocket, or is one; `from_start` says of which direction the start was captured.
    pub(crate) fn websocket(from_start: [bool; 2]) -> Layers {
        let [up, down] = from_start;
        Layers {
            websocket: [websocket::Half::new(true, up), websocket::Half::new(false, down)],
            inside: Default::default(),
            ready: VecDeque::new(),
        }
    }

    /// Whether it has become one, by what both ends said.
    pub(crate) fn opening(&self) -> Opening {
        let [up, down] = self.websocket.each_ref().map(websocket::Half::opening);
        match (up, down) {
            (Opening::Refused, _) | (_, Opening::Refused) => Opening::Refused,
            (Opening::Unknown, Opening::Unknown) => Opening::Unknown,
            _ => Opening::Upgraded,
        }
    }

    /// Takes the next piece of a direction's TCP stream.
    pub(crate) fn feed(&mut self, way: usize, piece: &Piece<'_>) {
        let Layers { websocket, inside, ready } = self;
        let mut emit = |chunk| inside[way].take(way, chunk, ready);
        match *piece {
            Piece::Data { offset, len, payload: Payload::Bytes(bytes), seen } => {
                websocket[way].feed(bytes, Place::plain(offset, len, seen), &mut emit);
            }
            // A simulator's packets have no layers here: it says what these add.
            Piece::Data { .. } => {}
            Piece::Missing { len, .. } => websocket[way].miss(len, &mut emit),
        }
    }

    /// Whether what was said when it opened names MQTT as what is inside.
    pub(crate) fn names_mqtt(&self) -> bool {
        self.websocket.iter().any(websocket::Half::names_mqtt)
    }

    /// Whether the start of what is inside was captured in a direction.
    pub(crate) fn is_from_start(&self, way: usize) -> bool {
        self.websocket[way].is_from_start()
    }

    /// No more will come in a direction; what was counted of it.
    pub(crate) fn finish(&mut self, way: usize) -> LayerCounts {
        let websocket::Counts { overhead_bytes, skipped_bytes, impossible } = self.websocket[way].finish();
        LayerCounts { websocket_bytes: overhead_bytes, skipped_bytes, impossible }
    }

    /// The next part of what is inside.
    pub(crate) fn poll(&mut self) -> Option<Opened> {
        self.ready.pop_front()
    }

    /// Tells of a packet by the TCP stream that carried it, not by the stream inside. Packets must be asked for in order.
    pub(crate) fn carry(&mut self, way: usize, packet: &mut Packet) {
        let Some(place) = self.inside[way].places.find(packet.start..packet.end) else { return };
        (packet.start, packet.end) = (place.start, place.end);
        packet.first = place.first;
    }
}

impl Inside {
    fn take(&mut self, way: usize, chunk: Chunk, ready: &mut VecDeque<Opened>) {
        let Chunk { content, place } = chunk;
        let offset = self.offset;
        let (len, seen) = match (&content, place) {
            (Content::Bytes(bytes), Some(place)) => {
                let len = bytes.len() as u64;
                self.places.add(offset..offset + len, place);
                (len, place.last)
            }
            (Content::Missing(len), _) => (*len, Sighting::NEVER),
            (Content::Bytes(_), None) => return,
        };
        self.offset += len;
        ready.push_back(Opened { way, offset, content, seen });
    }
}
