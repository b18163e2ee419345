//! A connection's first bytes, which are held while they may be a preamble; see [`crate::layers`].

use super::{ConnectionFollower, SegmentFindings};
use crate::analysis::{ConnectionProtocol, ServerDirection};
use crate::layers::{KeyLog, OpenedBytes, PreambleReader};
use crate::mqtt::may_start_as_connect;
use crate::reassembly::{Reassembler, SegmentPayload, StreamPiece};
use crate::segment::SocketEndpoint;

impl ConnectionFollower {
    /// Begins to hold a connection's bytes where its client's first ones may be a preamble, or come in another order than they
    /// were sent.
    pub(super) fn hold_first(
        &mut self,
        direction: ServerDirection,
        sequence: u32,
        payload: SegmentPayload<'_>,
    ) {
        let [to_server, from_server] = &mut self.ways;
        let is_first = self.protocol == ConnectionProtocol::Unknown
            && direction == ServerDirection::ToServer
            && self.preamble.is_none()
            && self.undecided.is_none()
            && to_server.tally.payload_bytes_unique == 0;
        let SegmentPayload::Bytes(bytes) = payload else { return };
        if !is_first || bytes.is_empty() {
            return;
        }
        let start = to_server.half.base.map(|base| base.wrapping_add(1));
        let is_displaced = to_server.from_start && start.is_some_and(|start| start != sequence);
        if is_displaced || PreambleReader::may_begin(bytes, to_server.from_start) {
            to_server.from_start = true;
            from_server.from_start |= from_server.tally.payload_bytes_unique == 0;
            self.preamble = Some(Box::default());
        }
    }

    /// Whether the connection's bytes are held.
    pub(super) fn holds_first(&self) -> bool {
        self.preamble.as_ref().is_some_and(|reader| !reader.is_over())
    }

    /// The client and the server that the preamble names.
    pub(super) fn named_ends(&self) -> [Option<SocketEndpoint>; 2] {
        let found = self.preamble.as_ref().and_then(|reader| reader.found());
        found.map_or([None; 2], |found| [found.client, found.server()])
    }

    /// Runs `act` on a direction's stream. Pieces that it hands on are decoded, those behind a preamble as soon as that is over.
    pub(super) fn with_stream<T>(
        &mut self,
        direction: ServerDirection,
        key_log: &KeyLog,
        found: &mut SegmentFindings,
        act: impl FnOnce(&mut Reassembler, &mut dyn FnMut(StreamPiece<'_>)) -> T,
    ) -> T {
        let Some(reader) = self.preamble.as_mut().filter(|reader| !reader.is_over()) else {
            return self.decode(direction, key_log, found, act);
        };
        let stream = &mut self.ways[direction as usize].stream;
        let result = act(stream, &mut |piece| reader.feed(direction as usize, &piece));
        self.leave_preamble(key_log, found);
        result
    }

    /// No more will come: what is held is decoded.
    pub(super) fn end_preamble(&mut self, key_log: &KeyLog, found: &mut SegmentFindings) {
        if !self.holds_first() {
            return;
        }
        for direction in ServerDirection::BOTH {
            self.with_stream(direction, key_log, found, |stream, sink| stream.finish(sink));
        }
        if let Some(reader) = &mut self.preamble {
            reader.finish();
        }
        self.leave_preamble(key_log, found);
    }

    fn leave_preamble(&mut self, key_log: &KeyLog, found: &mut SegmentFindings) {
        while let Some(way) = self.preamble.as_ref().and_then(|reader| reader.next_way()) {
            let direction = ServerDirection::BOTH[way];
            let Some(reader) = &mut self.preamble else { return };
            let is_unknown = self.protocol == ConnectionProtocol::Unknown;
            let ahead = if is_unknown { reader.ahead(way) } else { Vec::new() };
            let Some(opened) = reader.poll() else { return };
            self.sniff(direction, SegmentPayload::Bytes(&ahead));
            let piece = match &opened.content {
                OpenedBytes::Bytes(bytes) => StreamPiece::Data {
                    offset: opened.offset,
                    len: bytes.len() as u64,
                    payload: SegmentPayload::Bytes(bytes),
                    seen: opened.seen,
                },
                OpenedBytes::Missing(len) => StreamPiece::Missing { offset: opened.offset, len: *len },
            };
            self.decode(direction, key_log, found, |_, sink| sink(piece));
            self.decide(found);
        }
    }

    /// Notes the first bytes at a broker's port that are none of MQTT's: a client begins with a CONNECT (MQTT-3.1.0-1), and no
    /// broker speaks before it.
    pub(super) fn note_strange(&mut self, direction: ServerDirection, bytes: &[u8]) {
        let [to_server, from_server] = &self.ways;
        let is_strange = match direction {
            ServerDirection::ToServer => to_server.from_start && !may_start_as_connect(bytes),
            ServerDirection::FromServer => {
                from_server.from_start
                    && to_server.tally.segments > 0
                    && to_server.tally.payload_bytes == 0
                    && bytes.first() != Some(&CONNACK)
            }
        };
        if is_strange {
            self.strange_bytes = Some(bytes[..bytes.len().min(STRANGE_MAX)].into());
        }
    }
}

/// The first byte of a CONNACK.
const CONNACK: u8 = 0x20;
/// First bytes that are kept of another protocol.
const STRANGE_MAX: usize = 48;
