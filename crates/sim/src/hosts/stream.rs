//! One direction of a connection: the control packets in it, by position. There are no bytes.

use std::collections::VecDeque;

use mqttlab_framing::Sealed;
use mqttlab_mqtt::{Kind, Qos};
use mqttlab_recording::PacketKind;
use mqttlab_units::{Instant, OptionalInstant};

use crate::hosts::small_queue;

/// What a place in a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamContent {
    /// A control packet.
    Packet,
    /// A step of the opening of what lies between TCP and the packets.
    Step(u8),
    /// Its end.
    Farewell,
}

/// A control packet in a stream, or something that a layer below says of its own accord.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamPacket {
    /// Position of its first byte, from 0.
    pub(crate) start: u64,
    /// Position behind its last byte.
    pub(crate) end: u64,
    pub(crate) carries: StreamContent,
    /// What of its bytes belongs to layers below.
    pub(crate) sealed: Sealed,
    pub(crate) kind: PacketKind,
    pub(crate) qos: Qos,
    pub(crate) dup: bool,
    pub(crate) retain: bool,
    /// Whether a CONNACK says that the session is still there.
    pub(crate) session_present: bool,
    /// How many QoS 1 and 2 messages a CONNACK lets be in flight; 65535 where it does not say.
    pub(crate) receive_maximum: u16,
    /// How many topic aliases a CONNACK lets the client give; 0 where it does not say.
    pub(crate) topic_alias_maximum: u16,
    /// Packet identifier; 0 for none.
    pub(crate) id: u16,
    /// The topic of a message; the prefix of a subscription of ZMTP.
    pub(crate) topic: u32,
    /// Which message it carries. Of a client's SUBSCRIBE or UNSUBSCRIBE, what it says: see `Groups::filters_of`.
    pub(crate) message: u64,
    /// Of a PUBLISH: the topic with its length.
    pub(crate) topic_bytes: u16,
    /// Of a PUBLISH of MQTT 5: the properties with their length.
    pub(crate) property_bytes: u32,
    /// Of a PUBLISH: the application message.
    pub(crate) payload_bytes: u32,
    /// When the first segment with a byte of it came to the first link.
    pub(crate) first_sent: OptionalInstant,
    /// Segments that carried a byte of it until it was complete.
    pub(crate) segments: u32,
    /// When its last missing byte came to the receiver's host, which is before its program reads it.
    pub(crate) complete: OptionalInstant,
}

impl StreamPacket {
    /// A packet of this kind that is no message, to be given its place in a stream.
    pub(crate) fn bare(kind: impl Into<PacketKind>, id: u16) -> StreamPacket {
        StreamPacket {
            start: 0,
            end: 0,
            carries: StreamContent::Packet,
            sealed: Sealed::default(),
            kind: kind.into(),
            qos: Qos::AtMostOnce,
            dup: false,
            retain: false,
            session_present: false,
            receive_maximum: u16::MAX,
            topic_alias_maximum: 0,
            id,
            topic: 0,
            message: 0,
            topic_bytes: 0,
            property_bytes: 0,
            payload_bytes: 0,
            first_sent: OptionalInstant::NONE,
            segments: 0,
            complete: OptionalInstant::NONE,
        }
    }

    /// What is no packet, and consists of bytes of layers. Its kind means nothing.
    pub(crate) fn layer(carries: StreamContent, sealed: Sealed) -> StreamPacket {
        StreamPacket { carries, sealed, ..StreamPacket::bare(Kind::Connect, 0) }
    }

    /// Position of its first byte behind what layers below add, all of which is taken to stand before it; of what is no packet
    /// its end.
    pub(crate) fn body(&self) -> u64 {
        self.start + u64::from(self.sealed.bytes())
    }

    /// Whether it is one.
    pub(crate) fn is_packet(&self) -> bool {
        self.carries == StreamContent::Packet
    }
}

/// Packets on their way from one end to the other.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    packets: VecDeque<StreamPacket>,
    /// How many of `packets` the receiver has read.
    read: usize,
    /// How many of `packets` have come to the receiver's host.
    arrived: usize,
    /// Position behind the last packet.
    end: u64,
    /// How much of it the socket has taken.
    accepted: u64,
    /// How much of it has come to the first link.
    sent: u64,
    /// How much of it the receiver has acknowledged.
    acknowledged: u64,
}

impl Stream {
    /// Appends a packet of `length` bytes, and says where it ends.
    pub(crate) fn append(&mut self, packet: StreamPacket, length: usize) -> u64 {
        let start = self.end;
        self.end += length as u64;
        small_queue::push(&mut self.packets, StreamPacket { start, end: self.end, ..packet });
        self.end
    }

    /// Bytes that the socket has not taken.
    pub(crate) fn waiting(&self) -> u64 {
        self.end - self.accepted
    }

    /// Bytes of the packets that the socket has not taken whole.
    pub(crate) fn held(&self) -> u64 {
        let first = self.packets.partition_point(|packet| packet.end <= self.accepted);
        self.packets.get(first).map_or(0, |packet| self.end - packet.start)
    }

    /// Bytes that the socket has not taken of the first packet that waits, up to the end of a part where it is written in parts
    /// of so many.
    pub(crate) fn part(&self, part_max: u64) -> u64 {
        let first = self.packets.partition_point(|packet| packet.end <= self.accepted);
        self.packets.get(first).map_or(0, |packet| {
            let written = (self.accepted - packet.start) / part_max * part_max;
            packet.end.min(packet.start + written + part_max) - self.accepted
        })
    }

    /// Whether the socket has taken a part of a packet, and the rest waits.
    pub(crate) fn is_within_packet(&self) -> bool {
        let first = self.packets.partition_point(|packet| packet.end <= self.accepted);
        self.packets.get(first).is_some_and(|packet| packet.start < self.accepted)
    }

    /// The socket has taken so many more.
    pub(crate) fn accept(&mut self, bytes: u64) {
        self.accepted += bytes;
    }

    /// How much the socket has taken.
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted
    }

    /// A segment with these bytes came to the first link. Calls `carried` for each packet that has bytes in it, and
    /// says whether its last byte is among them for the first time.
    pub(crate) fn sent(
        &mut self,
        at: Instant,
        start: u64,
        end: u64,
        mut carried: impl FnMut(&StreamPacket, bool),
    ) {
        let before = self.sent;
        self.sent = before.max(end);
        let from = self.packets.partition_point(|packet| packet.end <= start);
        for packet in self.packets.iter_mut().skip(from) {
            if packet.start >= end {
                break;
            }
            if packet.first_sent.is_none() {
                packet.first_sent = at.into();
            }
            packet.segments += 1;
            carried(packet, packet.end > before && packet.end <= end);
        }
    }

    /// Of the bytes from `start` to `end` those of layers below, as far as they have not come to the first link yet.
    pub(crate) fn layer_bytes(&self, start: u64, end: u64) -> Sealed {
        let start = start.max(self.sent);
        let within = |from: u64, to: u64| to.min(end).saturating_sub(from.max(start)) as u32;
        let from = self.packets.partition_point(|packet| packet.end <= start);
        let mut sum = Sealed::default();
        for packet in self.packets.iter().skip(from).take_while(|packet| packet.start < end) {
            let frame = packet.start + u64::from(packet.sealed.tls);
            sum.tls += within(packet.start, frame);
            sum.websocket += within(frame, packet.body());
        }
        sum
    }

    /// Packets that the socket has not taken whole.
    pub(crate) fn packets_waiting(&self) -> usize {
        if self.end == self.accepted {
            return 0;
        }
        self.packets.len() - self.packets.partition_point(|packet| packet.end <= self.accepted)
    }

    /// Everything before `offset` has come to the receiver's host.
    pub(crate) fn arrived(&mut self, at: Instant, offset: u64) {
        while let Some(packet) = self.packets.get_mut(self.arrived).filter(|packet| packet.end <= offset) {
            packet.complete = at.into();
            self.arrived += 1;
        }
    }

    /// The next packet that ends at or before `offset` and has not been read.
    pub(crate) fn read(&mut self, offset: u64) -> Option<StreamPacket> {
        let packet = *self.packets.get(self.read).filter(|packet| packet.end <= offset)?;
        self.read += 1;
        self.forget();
        Some(packet)
    }

    /// Bytes before `offset` of the end of what lies between TCP and the packets.
    pub(crate) fn farewell_bytes(&self, offset: u64) -> u64 {
        let farewell = self.packets.back().filter(|last| last.carries == StreamContent::Farewell);
        farewell.map_or(0, |farewell| offset.saturating_sub(farewell.start))
    }

    /// The receiver has acknowledged everything before `offset`.
    pub(crate) fn acknowledge(&mut self, offset: u64) {
        self.acknowledged = self.acknowledged.max(offset);
        self.forget();
    }

    /// What was never read, at the end.
    pub(crate) fn unread(&self) -> impl Iterator<Item = &StreamPacket> {
        self.packets.iter().skip(self.read)
    }

    /// As for a new connection, with the room that it has.
    pub(crate) fn clear(&mut self) {
        self.packets.clear();
        *self = Stream { packets: std::mem::take(&mut self.packets), ..Stream::default() };
    }

    /// Drops what both ends are done with: a packet is needed until no retransmission can carry it.
    fn forget(&mut self) {
        while self.read > 0 && self.packets.front().is_some_and(|packet| packet.end <= self.acknowledged) {
            self.packets.pop_front();
            self.read -= 1;
            self.arrived -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(lengths: &[usize]) -> Stream {
        let mut stream = Stream::default();
        for (id, length) in lengths.iter().enumerate() {
            stream.append(StreamPacket::bare(Kind::Puback, id as u16), *length);
        }
        stream
    }

    #[test]
    fn a_packet_is_complete_when_its_last_byte_comes_and_not_when_it_is_read() {
        let mut stream = stream(&[10, 5, 5]);
        stream.arrived(Instant::from_ns(3), 14);
        stream.arrived(Instant::from_ns(8), 15);
        stream.acknowledge(15);
        let complete = [(); 2].map(|()| stream.read(15).unwrap().complete.get().map(Instant::as_ns));
        assert_eq!(complete, [Some(3), Some(8)]);
        stream.arrived(Instant::from_ns(9), 20);
        assert_eq!(
            stream.unread().next().unwrap().complete,
            Instant::from_ns(9).into(),
            "nobody has read it"
        );
    }

    #[test]
    fn a_packet_can_be_read_when_its_last_byte_is_there() {
        let mut stream = stream(&[10, 5]);
        stream.arrived(Instant::from_ns(1), 15);
        assert!(stream.read(9).is_none());
        assert_eq!(stream.read(14).map(|packet| packet.id), Some(0));
        assert!(stream.read(14).is_none());
        assert_eq!(stream.read(15).map(|packet| packet.id), Some(1));
    }

    #[test]
    fn a_part_of_a_packet_waits_when_the_socket_has_taken_another_part_of_it() {
        let mut stream = stream(&[10, 5]);
        let within = [0, 4, 4, 2, 3, 2].map(|taken| {
            stream.accept(taken);
            (stream.is_within_packet(), stream.part(4))
        });
        assert_eq!(within, [(false, 4), (true, 4), (true, 2), (false, 4), (true, 1), (false, 0)]);
    }

    #[test]
    fn a_packet_is_held_until_the_socket_has_taken_its_last_byte() {
        let mut stream = stream(&[10, 5]);
        let held = [0, 9, 1, 4, 1].map(|taken| {
            stream.accept(taken);
            (stream.held(), stream.waiting())
        });
        assert_eq!(held, [(15, 15), (15, 6), (5, 5), (5, 1), (0, 0)]);
    }

    #[test]
    fn bytes_of_layers_are_counted_once_wherever_segments_begin() {
        let mut stream = Stream::default();
        let sealed = Sealed { websocket: 6, ..Sealed::default() };
        stream.append(StreamPacket::layer(StreamContent::Step(0), Sealed { tls: 29, websocket: 71 }), 100);
        stream.append(StreamPacket { sealed, ..StreamPacket::bare(Kind::Puback, 1) }, 10);
        stream.append(StreamPacket { sealed, ..StreamPacket::bare(Kind::Puback, 2) }, 10);
        let mut counted = Vec::new();
        // The header of a frame is cut twice; then everything is sent again.
        for (start, end) in [(0, 103), (103, 105), (105, 118), (118, 120), (0, 120)] {
            let Sealed { tls, websocket, .. } = stream.layer_bytes(start, end);
            counted.push((tls, websocket));
            stream.sent(Instant::from_ns(1), start, end, |_, _| {});
        }
        assert_eq!(counted, [(29, 71 + 3), (0, 2), (0, 1 + 6), (0, 0), (0, 0)]);
    }

    #[test]
    fn segments_are_counted_until_the_packet_is_done_with() {
        let mut stream = stream(&[10, 5]);
        let mut carried = Vec::new();
        let at = Instant::from_ns(7);
        for (start, end) in [(0, 8), (8, 15), (0, 8)] {
            stream.sent(at, start, end, |packet, ends| carried.push((packet.id, ends)));
        }
        assert_eq!(carried, [(0, false), (0, true), (1, true), (0, false)]);
        stream.arrived(at, 15);
        let packet = stream.read(15).unwrap();
        assert_eq!((packet.first_sent, packet.segments), (at.into(), 3));
        stream.acknowledge(10);
        assert_eq!(stream.unread().count(), 1);
    }
}
