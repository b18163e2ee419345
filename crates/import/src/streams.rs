//! Where segments lie in their streams, how many of them carried a packet, and what their receivers have acknowledged.
//!
//! Offsets are those of the analyser: 0 is the first byte after the SYN, or the first byte that was captured.

use std::collections::VecDeque;
use std::ops::Range;

use mqttlab_capture::{Bits, ServerDirection, TcpHeader};
use mqttlab_recording::NumberMap;
use mqttlab_units::Instant;

use super::acknowledged::{Acknowledgment, ArrivedCopies, ReceiverProgress, SegmentCopy};

/// Both directions of every connection.
#[derive(Default)]
pub struct CapturedStreams {
    of: NumberMap<u64, [CarriedStream; 2]>,
    arrived: ArrivedCopies,
}

/// The place behind the last byte of a packet in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPlace {
    /// The connection's number.
    pub connection: u32,
    /// Which direction of it.
    pub direction: ServerDirection,
    /// The offset.
    pub end: u64,
}

/// What acknowledgments tell of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Nothing: none of its receiver was captured.
    Unknown,
    /// It has not arrived yet.
    Awaited,
    /// It has arrived. When the last copy that it needed was captured, where that was not the first one.
    Acknowledged(Option<Instant>),
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
    /// What its receiver has.
    receiver: ReceiverProgress,
}

impl CapturedStreams {
    /// Where the payload of a segment begins. `None` without payload, or before the start of the stream. What the segment
    /// acknowledges of the other direction is taken note of.
    pub fn place(
        &mut self,
        connection: u64,
        direction: ServerDirection,
        segment: &TcpHeader,
        captured: usize,
    ) -> Option<u64> {
        let ways = self.of.entry(connection).or_default();
        if segment.bits.has(Bits::ACK) {
            ways[direction.opposite() as usize].acknowledge(segment, &mut self.arrived);
        }
        ways[direction as usize].place(segment, captured)
    }

    /// The same of a segment of which the capture says when it arrives: nothing else has to be known of it.
    pub fn offset(
        &mut self,
        connection: u64,
        direction: ServerDirection,
        segment: &TcpHeader,
        captured: usize,
    ) -> Option<u64> {
        let way = &mut self.of.entry(connection).or_default()[direction as usize];
        let bytes = way.bytes(segment, captured)?;
        way.highest = way.highest.max(bytes.end);
        Some(bytes.start)
    }

    /// A segment passes another point of capture, nearer to its receiver.
    pub fn seen_again(&mut self, connection: u32, direction: ServerDirection, segment: &TcpHeader) {
        let Some(ways) = self.of.get_mut(&u64::from(connection)) else { return };
        let way = &mut ways[direction as usize];
        if let Some(start) = way.offset(segment.sequence).filter(|_| segment.payload_len > 0) {
            let stamp = segment.options.timestamps.map(|(value, _)| value);
            let end = start + u64::from(segment.payload_len);
            way.receiver.seen_again(start..end, stamp, segment.time, &mut self.arrived);
        }
    }

    /// How many segments carried a byte of the packet at `bytes`, which is complete. Packets of a direction must be
    /// asked for in the order of the stream.
    pub fn carriers(&mut self, connection: u64, direction: ServerDirection, bytes: Range<u64>) -> u32 {
        let Some(ways) = self.of.get_mut(&connection) else { return 0 };
        let way = &mut ways[direction as usize];
        let carry = |segment: &&Range<u64>| segment.start < bytes.end && segment.end > bytes.start;
        let count = way.segments.iter().filter(carry).count();
        way.segments.retain(|segment| segment.end > bytes.end);
        count as u32
    }

    /// Whether the packet that ends at a place has arrived.
    pub fn arrival(&self, place: StreamPlace) -> Arrival {
        let Some(receiver) = self.receiver(place).filter(|receiver| receiver.is_heard()) else {
            return Arrival::Unknown;
        };
        receiver.arrived(place.end).map_or(Arrival::Awaited, Arrival::Acknowledged)
    }

    /// Whether something up to a place was sent again in vain.
    pub fn is_stalled_before(&self, place: StreamPlace) -> bool {
        self.receiver(place).is_some_and(|receiver| receiver.is_stalled_before(place.end))
    }

    fn receiver(&self, place: StreamPlace) -> Option<&ReceiverProgress> {
        self.of.get(&u64::from(place.connection)).map(|ways| &ways[place.direction as usize].receiver)
    }

    /// How the copies of repeated segments that arrived were told from the others.
    pub fn arrived(&self) -> ArrivedCopies {
        self.arrived
    }
}

impl CarriedStream {
    /// Where the payload of a segment lies.
    fn bytes(&mut self, segment: &TcpHeader, captured: usize) -> Option<Range<u64>> {
        let syn = segment.bits.has(Bits::SYN);
        // The SYN takes one sequence number (RFC 9293 §3.4).
        let first = segment.sequence.wrapping_add(u32::from(syn));
        if syn || captured > 0 {
            self.start.get_or_insert(first);
        }
        if segment.payload_len == 0 {
            return None;
        }
        let start = self.offset(first)?;
        Some(start..start + u64::from(segment.payload_len))
    }

    fn place(&mut self, segment: &TcpHeader, captured: usize) -> Option<u64> {
        let Range { start, end } = self.bytes(segment, captured)?;
        let (time, stamp) = (segment.time, segment.options.timestamps.map(|(value, _)| value));
        self.receiver.sent(SegmentCopy {
            start,
            end,
            time,
            stamp,
            is_repeated: start < self.highest,
            again: None,
        });
        self.highest = self.highest.max(end);
        self.segments.push_back(start..end);
        if self.segments.len() > SEGMENTS_MAX {
            self.segments.pop_front();
        }
        Some(start)
    }

    /// The receiver's segment says how far it has this direction.
    fn acknowledge(&mut self, segment: &TcpHeader, arrived: &mut ArrivedCopies) {
        self.receiver.hear();
        let Some(upto) = self.offset(segment.acknowledgment) else { return };
        let echo = segment.options.timestamps.map(|(_, echo)| echo);
        // A first block below the acknowledgment is a duplicate (RFC 2883 §4.1).
        let duplicate = segment.options.sack().first().and_then(|&(left, right)| {
            Some(self.offset(left)?..self.offset(right)?).filter(|bytes| bytes.end <= upto)
        });
        self.receiver.acknowledge(&Acknowledgment { upto, at: segment.time, echo, duplicate }, arrived);
    }

    /// Streams longer than 2^32 bytes: the offset nearest to the highest one seen.
    fn offset(&self, sequence: u32) -> Option<u64> {
        let expected = self.start?.wrapping_add(self.highest as u32);
        let offset = self.highest as i64 + i64::from(sequence.wrapping_sub(expected) as i32);
        u64::try_from(offset).ok()
    }
}

/// Segments that are remembered for one direction, enough for a packet of 10 MB; the oldest is forgotten first.
const SEGMENTS_MAX: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_capture::{Options, SocketEndpoint};

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

    #[test]
    fn a_packet_has_arrived_when_its_receiver_says_so_and_nothing_is_kept_where_the_capture_does() {
        let place = StreamPlace { connection: 0, direction: UP, end: 10 };
        let mut streams = CapturedStreams::default();
        streams.place(0, UP, &segment(1, Bits::ACK, 10), 10);
        assert_eq!(streams.arrival(place), Arrival::Unknown, "nothing of its receiver was captured");
        for (acknowledgment, arrival) in [(1, Arrival::Awaited), (11, Arrival::Acknowledged(None))] {
            let answer = TcpHeader { acknowledgment, ..segment(1, Bits::ACK, 0) };
            streams.place(0, UP.opposite(), &answer, 0);
            assert_eq!(streams.arrival(place), arrival);
        }
        let mut own = CapturedStreams::default();
        let mut offset = |sequence| own.offset(0, UP, &segment(sequence, Bits::ACK, 10), 10);
        assert_eq!([offset(1), offset(11), offset(1)], [Some(0), Some(10), Some(0)]);
        assert_eq!(own.carriers(0, UP, 0..10), 0);
        assert_eq!((own.arrival(place), own.is_stalled_before(place)), (Arrival::Unknown, false));
    }
}
