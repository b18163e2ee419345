//! When the packets of a stream were complete at its receiver.
//!
//! A packet is complete when every byte up to its end has arrived, in whatever order: TCP hands over no byte before
//! those in front of it. Frames are told when they enter their last link, with the time at which they will be at its
//! end; an arrival counts as soon as no later frame can be earlier ([`StreamJoin::advance`]).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;

use mqttlab_units::{Instant, RangeSet};

use crate::analysis::ServerDirection;
use crate::mqtt::CapturedPacket;

/// Packets that have been sent, and the bytes that have arrived.
#[derive(Default)]
pub struct StreamJoin {
    ways: BTreeMap<(u32, ServerDirection), RecordedStream>,
    arrivals: BinaryHeap<Reverse<StreamArrival>>,
    told: u64,
    ready: VecDeque<JoinedPacket>,
}

/// A packet, and what became of it.
#[derive(Debug)]
pub struct JoinedPacket {
    /// The connection's number.
    pub connection: u32,
    /// Which direction of it.
    pub direction: ServerDirection,
    /// The packet.
    pub packet: CapturedPacket,
    /// When its last missing byte arrived; `None` when that did not happen.
    pub complete: Option<Instant>,
    /// Segments that carried a byte of it, until it was complete.
    pub segments: u32,
}

/// Ordered by time; equal times keep the order in which they were told.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct StreamArrival {
    at: Instant,
    told: u64,
    connection: u32,
    direction: ServerDirection,
    start: u64,
    end: u64,
}

/// One direction of a connection.
#[derive(Default)]
struct RecordedStream {
    /// Everything before it has arrived.
    frontier: u64,
    /// What has arrived beyond it.
    beyond: RangeSet,
    /// Packets that are not complete, in the order of the stream.
    awaited: VecDeque<CapturedPacket>,
    /// Behind the last packet that is known.
    expected: u64,
    /// Segments sent, every copy, as far as they may carry bytes of packets that are not complete.
    segments: VecDeque<Range<u64>>,
}

impl StreamJoin {
    /// A segment with these bytes of the stream was sent, for the first time or again.
    pub fn sent(&mut self, connection: u32, direction: ServerDirection, bytes: Range<u64>) {
        let way = self.ways.entry((connection, direction)).or_default();
        if bytes.end > way.frontier {
            way.segments.push_back(bytes);
            // A stream that is not MQTT completes no packet.
            if way.segments.len() > SEGMENTS_MAX {
                way.segments.pop_front();
            }
        }
    }

    /// A packet is waited for.
    pub fn expect(&mut self, connection: u32, direction: ServerDirection, packet: CapturedPacket) {
        let way = self.ways.entry((connection, direction)).or_default();
        way.expected = way.expected.max(packet.end);
        way.awaited.push_back(packet);
    }

    /// These bytes of the stream arrive at that time.
    pub fn arrived(&mut self, connection: u32, direction: ServerDirection, bytes: Range<u64>, at: Instant) {
        self.told += 1;
        self.arrivals.push(Reverse(StreamArrival {
            at,
            told: self.told,
            connection,
            direction,
            start: bytes.start,
            end: bytes.end,
        }));
    }

    /// Nothing that will be told arrives before `now`.
    pub fn advance(&mut self, now: Instant) {
        while self.arrivals.peek().is_some_and(|Reverse(arrival)| arrival.at <= now) {
            let Some(Reverse(arrival)) = self.arrivals.pop() else { return };
            let key = (arrival.connection, arrival.direction);
            let way = self.ways.entry(key).or_default();
            way.add_range(arrival.start..arrival.end);
            way.complete(key, arrival.at, &mut self.ready);
        }
    }

    /// Whether packets of this direction have been sent of which bytes are missing at the receiver.
    pub fn awaits(&self, connection: u32, direction: ServerDirection) -> bool {
        self.ways.get(&(connection, direction)).is_some_and(|way| !way.awaited.is_empty())
    }

    /// What is still awaited will not arrive.
    pub fn give_up(&mut self) {
        for (&key, way) in &mut self.ways {
            way.give_up(key, &mut self.ready);
        }
    }

    /// What is still awaited of this direction will not arrive.
    pub fn give_up_on(&mut self, connection: u32, direction: ServerDirection) {
        let key = (connection, direction);
        if let Some(way) = self.ways.get_mut(&key) {
            way.give_up(key, &mut self.ready);
        }
    }

    /// The next packet whose end is known.
    pub fn poll(&mut self) -> Option<JoinedPacket> {
        self.ready.pop_front()
    }
}

impl RecordedStream {
    fn add_range(&mut self, bytes: Range<u64>) {
        if bytes.start > self.frontier {
            self.beyond.insert(bytes);
        } else {
            self.frontier = self.beyond.take_from(self.frontier.max(bytes.end));
        }
    }

    fn give_up(
        &mut self,
        (connection, direction): (u32, ServerDirection),
        ready: &mut VecDeque<JoinedPacket>,
    ) {
        for packet in self.awaited.drain(..) {
            let segments = overlapping(&self.segments, &packet);
            ready.push_back(JoinedPacket { connection, direction, packet, complete: None, segments });
        }
    }

    fn complete(
        &mut self,
        (connection, direction): (u32, ServerDirection),
        at: Instant,
        ready: &mut VecDeque<JoinedPacket>,
    ) {
        while self.awaited.front().is_some_and(|packet| packet.end <= self.frontier) {
            let Some(packet) = self.awaited.pop_front() else { return };
            let segments = overlapping(&self.segments, &packet);
            ready.push_back(JoinedPacket { connection, direction, packet, complete: Some(at), segments });
        }
        let needed = self.awaited.front().map_or(self.expected, |packet| packet.start);
        if self.segments.front().is_some_and(|segment| segment.end <= needed) {
            self.segments.retain(|segment| segment.end > needed);
        }
    }
}

/// How many segments carry a byte of the packet.
fn overlapping(segments: &VecDeque<Range<u64>>, packet: &CapturedPacket) -> u32 {
    segments.iter().filter(|segment| segment.start < packet.end && segment.end > packet.start).count() as u32
}

/// Segments that are remembered for one direction; the oldest is forgotten first.
const SEGMENTS_MAX: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mqtt::{Kind, Lengths, PacketDescriptor};
    use crate::reassembly::Sighting;

    const WAY: (u32, ServerDirection) = (7, ServerDirection::ToServer);

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    /// A join that waits for packets that end there, each beginning where the last one ended.
    fn waiting_for(ends: &[u64]) -> StreamJoin {
        let mut join = StreamJoin::default();
        let mut start = 0;
        for &end in ends {
            join.expect(WAY.0, WAY.1, packet(start, end));
            start = end;
        }
        join
    }

    fn packet(start: u64, end: u64) -> CapturedPacket {
        let lengths = Lengths { payload: (end - start) as u32, ..Default::default() };
        let descriptor = PacketDescriptor {
            offset: start,
            kind: Kind::Publish.into(),
            qos: 0,
            dup: false,
            retain: false,
            id: None,
            lengths,
            message: 0,
        };
        let sighting = Sighting { time: at(0), frame: 1 };
        descriptor.seen(sighting, sighting)
    }

    fn completed(join: &mut StreamJoin) -> Vec<(u64, Option<u64>, u32)> {
        std::iter::from_fn(|| join.poll())
            .map(|joined| (joined.packet.end, joined.complete.map(|at| at.as_ns()), joined.segments))
            .collect()
    }

    #[test]
    fn a_packet_is_complete_when_the_hole_before_its_end_is_filled() {
        let mut join = waiting_for(&[10, 20, 30]);
        for (start, end, ns) in [(0, 10, 5), (20, 30, 7), (10, 20, 90)] {
            join.sent(WAY.0, WAY.1, start..end);
            join.arrived(WAY.0, WAY.1, start..end, at(ns));
        }
        join.advance(at(100));
        assert_eq!(completed(&mut join), [(10, Some(5), 1), (20, Some(90), 1), (30, Some(90), 1)]);
    }

    #[test]
    fn the_earlier_of_two_copies_counts_whichever_was_told_first() {
        let mut join = waiting_for(&[10]);
        for ns in [80, 60] {
            join.sent(WAY.0, WAY.1, 0..10);
            join.arrived(WAY.0, WAY.1, 0..10, at(ns));
        }
        join.advance(at(59));
        assert_eq!(completed(&mut join), []);
        join.advance(at(100));
        assert_eq!(completed(&mut join), [(10, Some(60), 2)]);
    }

    #[test]
    fn what_never_arrives_is_said_to_be_so() {
        let mut join = waiting_for(&[10, 20]);
        join.sent(WAY.0, WAY.1, 0..20);
        join.arrived(WAY.0, WAY.1, 10..20, at(5));
        join.advance(at(u64::MAX));
        join.give_up();
        assert_eq!(completed(&mut join), [(10, None, 1), (20, None, 1)]);
    }
}
