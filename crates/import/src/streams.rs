//! Where segments lie in their streams, and how many of them carried a packet.
//!
//! Offsets are those of the analyser: 0 is the first byte after the SYN, or the first byte that was captured.

use std::collections::VecDeque;
use std::ops::Range;

use mqttlab_capture::{Bits, ServerDirection, TcpHeader};
use mqttlab_recording::NumberMap;

/// Both directions of every connection.
#[derive(Default)]
pub struct CapturedStreams {
    ways: NumberMap<(u64, ServerDirection), CarriedStream>,
}

/// One direction of a connection.
#[derive(Default)]
struct CarriedStream {
    /// The sequence number of offset 0.
    start: Option<u32>,
    /// The highest offset seen.
    highest: u64,
    /// Segments that may carry bytes of packets that are not complete.
    segments: VecDeque<Range<u64>>,
}

impl CapturedStreams {
    /// Where the payload of a segment begins. `None` without payload, or before the start of the stream.
    pub fn place(
        &mut self,
        connection: u64,
        direction: ServerDirection,
        segment: &TcpHeader,
        captured: usize,
    ) -> Option<u64> {
        let way = self.ways.entry((connection, direction)).or_default();
        let syn = segment.bits.has(Bits::SYN);
        // The SYN takes one sequence number (RFC 9293 §3.4).
        let first = segment.sequence.wrapping_add(u32::from(syn));
        if syn || captured > 0 {
            way.start.get_or_insert(first);
        }
        if segment.payload_len == 0 {
            return None;
        }
        // Streams longer than 2^32 bytes: the offset nearest to the highest one seen.
        let expected = way.start?.wrapping_add(way.highest as u32);
        let offset = way.highest as i64 + i64::from(first.wrapping_sub(expected) as i32);
        let start = u64::try_from(offset).ok()?;
        let end = start + u64::from(segment.payload_len);
        way.highest = way.highest.max(end);
        way.segments.push_back(start..end);
        if way.segments.len() > SEGMENTS_MAX {
            way.segments.pop_front();
        }
        Some(start)
    }

    /// How many segments carried a byte of the packet at `bytes`, which is complete. Packets of a direction must be
    /// asked for in the order of the stream.
    pub fn carriers(&mut self, connection: u64, direction: ServerDirection, bytes: Range<u64>) -> u32 {
        let Some(way) = self.ways.get_mut(&(connection, direction)) else { return 0 };
        let carry = |segment: &&Range<u64>| segment.start < bytes.end && segment.end > bytes.start;
        let count = way.segments.iter().filter(carry).count();
        way.segments.retain(|segment| segment.end > bytes.end);
        count as u32
    }
}

/// Segments that are remembered for one direction, enough for a packet of 10 MB; the oldest is forgotten first.
const SEGMENTS_MAX: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_capture::{Options, SocketEndpoint};
    use mqttlab_units::Instant;

    const UP: ServerDirection = ServerDirection::ToServer;

    fn segment(sequence: u32, bits: Bits, payload_len: u32) -> TcpHeader {
        let end = SocketEndpoint { address: [10, 0, 0, 1].into(), port: 1 };
        TcpHeader {
            time: Instant::ZERO,
            source: end,
            destination: end,
            sequence,
            acknowledgment: 0,
            bits,
            window: 0,
            options: Options::default(),
            payload_len,
            header_len: 20,
            ip_len: 40 + payload_len,
            frame_len: 54 + payload_len,
        }
    }

    #[test]
    fn offsets_count_from_the_syn_and_go_on_where_sequence_numbers_wrap() {
        let mut streams = CapturedStreams::default();
        let mut place =
            |sequence, bits, len| streams.place(0, UP, &segment(sequence, bits, len), len as usize);
        assert_eq!(place(u32::MAX - 1, Bits::SYN, 0), None);
        assert_eq!(place(u32::MAX, Bits::ACK, 10), Some(0));
        assert_eq!(place(9, Bits::ACK, 10), Some(10));
        assert_eq!(place(u32::MAX, Bits::ACK, 10), Some(0), "sent again");
    }

    #[test]
    fn a_capture_that_begins_in_mid_stream_counts_from_its_first_byte() {
        let mut streams = CapturedStreams::default();
        assert_eq!(streams.place(0, UP, &segment(500, Bits::ACK, 0), 0), None);
        assert_eq!(streams.place(0, UP, &segment(700, Bits::ACK, 5), 5), Some(0));
        assert_eq!(streams.place(0, UP, &segment(600, Bits::ACK, 5), 5), None, "before the start");
    }

    #[test]
    fn every_copy_of_a_segment_counts_until_the_packet_is_complete() {
        let mut streams = CapturedStreams::default();
        for (sequence, len) in [(1, 10), (11, 10), (1, 10)] {
            streams.place(0, UP, &segment(sequence, Bits::ACK, len), len as usize);
        }
        assert_eq!(streams.carriers(0, UP, 0..12), 3);
        assert_eq!(streams.carriers(0, UP, 12..20), 1);
    }
}
