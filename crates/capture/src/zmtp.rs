//! ZMTP packets found in a stream of bytes: greetings, commands, messages, without holding their payloads.
//!
//! A witness, as the one of MQTT: it frames packets, splits their lengths, and keeps a message's topic and the first bytes of its
//! payload. A packet is given in the same words: a message is a PUBLISH of QoS 0, everything else a PINGREQ, and
//! [`CapturedPacket::frames`] says what it is.
//!
//! What it does not do: find its way again. After bytes that are missing between two packets, or in a stream whose beginning was not
//! captured, nothing more of it is read, for nothing in ZMTP tells where a frame begins.

use std::sync::Arc;

use mqttlab_zmtp::frame::FrameHeader;
use mqttlab_zmtp::{command, greeting};

use crate::mqtt::{CapturedPacket, Lengths, PAYLOAD_HEAD_MAX, PacketDescriptor, PayloadRest, SeenConnect};
use crate::reassembly::{SegmentPayload, Sighting, StreamPiece};

/// The packets of one direction.
#[derive(Debug)]
pub(crate) struct ZmtpFramer {
    state: ZmtpState,
    packet: PartialZmtpPacket,
    /// Bytes that were not read as packets.
    pub(crate) skipped_bytes: u64,
}

/// What comes next.
#[derive(Debug)]
enum ZmtpState {
    /// The greeting, of which so many bytes were seen.
    Greeting(usize),
    /// A frame's header, of which these bytes were seen.
    Header(Vec<u8>),
    /// So many bytes of a frame's body.
    Body { header: FrameHeader, left: u64 },
    /// Nothing can be read any more.
    Lost,
}

/// A packet of which something was seen.
#[derive(Debug, Default)]
struct PartialZmtpPacket {
    start: u64,
    first: Option<Sighting>,
    latest: Option<Sighting>,
    frames: u32,
    header_bytes: u32,
    topic: Vec<u8>,
    topic_bytes: u32,
    head: Vec<u8>,
    payload_bytes: u64,
    damaged: bool,
}

impl ZmtpFramer {
    /// Of a stream that is read from its first byte, or not.
    pub(crate) fn new(from_start: bool) -> ZmtpFramer {
        let state = if from_start { ZmtpState::Greeting(0) } else { ZmtpState::Lost };
        ZmtpFramer { state, packet: PartialZmtpPacket::default(), skipped_bytes: 0 }
    }

    /// Takes the next part of the stream, and adds the packets that it completes.
    pub(crate) fn feed(&mut self, piece: &StreamPiece<'_>, packets: &mut Vec<CapturedPacket>) {
        match *piece {
            StreamPiece::Data { offset, payload: SegmentPayload::Bytes(bytes), len, seen } => {
                // What a capture has cut away is not there.
                self.absorb(offset, bytes, seen, packets);
                if (bytes.len() as u64) < len {
                    self.miss(len - bytes.len() as u64);
                }
            }
            StreamPiece::Data { len, .. } => self.miss(len),
            StreamPiece::Missing { len, .. } => self.miss(len),
        }
    }

    /// Bytes that nobody has seen: they may lie in a payload, whose length is known.
    fn miss(&mut self, len: u64) {
        match &mut self.state {
            ZmtpState::Body { left, .. } if *left > len => {
                *left -= len;
                self.packet.damaged = true;
            }
            _ => {
                self.skipped_bytes += len;
                self.state = ZmtpState::Lost;
            }
        }
    }

    fn absorb(
        &mut self,
        mut offset: u64,
        mut bytes: &[u8],
        seen: Sighting,
        packets: &mut Vec<CapturedPacket>,
    ) {
        while !bytes.is_empty() {
            let taken = self.step(offset, bytes, seen, packets);
            offset += taken as u64;
            bytes = &bytes[taken..];
        }
    }

    /// Takes some of the bytes, at least one.
    fn step(
        &mut self,
        offset: u64,
        bytes: &[u8],
        seen: Sighting,
        packets: &mut Vec<CapturedPacket>,
    ) -> usize {
        match &mut self.state {
            ZmtpState::Lost => {
                self.skipped_bytes += bytes.len() as u64;
                bytes.len()
            }
            ZmtpState::Greeting(have) => {
                let taken = (greeting::BYTES - *have).min(bytes.len());
                *have += taken;
                let whole = *have == greeting::BYTES;
                self.packet.see(offset, seen);
                self.packet.payload_bytes += taken as u64;
                if whole {
                    self.end(mqttlab_zmtp::Kind::Greeting, None, packets);
                }
                taken
            }
            ZmtpState::Header(have) => {
                have.push(bytes[0]);
                self.packet.see(offset, seen);
                match FrameHeader::peek(have) {
                    Ok(None) => {}
                    Ok(Some(header)) => self.header(header, packets),
                    Err(_) => {
                        self.skipped_bytes += bytes.len() as u64;
                        self.state = ZmtpState::Lost;
                    }
                }
                1
            }
            ZmtpState::Body { header, left } => {
                let taken = (*left).min(bytes.len() as u64) as usize;
                *left -= taken as u64;
                let (header, left) = (*header, *left);
                self.packet.see(offset, seen);
                self.packet.keep(header, &bytes[..taken]);
                if left == 0 {
                    self.end_of_frame(header, packets);
                }
                taken
            }
        }
    }

    fn header(&mut self, header: FrameHeader, packets: &mut Vec<CapturedPacket>) {
        let packet = &mut self.packet;
        packet.frames += 1;
        packet.header_bytes += header.header_len as u32;
        let bytes = header.body_len;
        // A message's first frame is its topic, and what follows its payload.
        match packet.frames == 1 && header.more {
            true => packet.topic_bytes = bytes.min(u32::MAX.into()) as u32,
            false => packet.payload_bytes += bytes,
        }
        self.state = ZmtpState::Body { header, left: header.body_len };
        if header.body_len == 0 {
            self.end_of_frame(header, packets);
        }
    }

    fn end_of_frame(&mut self, header: FrameHeader, packets: &mut Vec<CapturedPacket>) {
        if header.more {
            self.state = ZmtpState::Header(Vec::new());
            return;
        }
        use mqttlab_zmtp::Kind::{Cancel, Command, Message, Subscribe};
        let body = &self.packet.head;
        let (kind, client) = match (header.command, self.packet.frames) {
            // Of a command only the beginning was kept, which is enough to know it.
            (true, _) => {
                let kind = command::decode(body).map_or(Command, |command| command.kind());
                (kind, command::client_of(body).map(|name| String::from_utf8_lossy(name).into_owned()))
            }
            // What a subscriber of 3.0 says.
            (false, 1) => match command::subscription(body) {
                Some((true, _)) => (Subscribe, None),
                Some((false, _)) => (Cancel, None),
                None => (Message, None),
            },
            (false, _) => (Message, None),
        };
        self.end(kind, client, packets);
    }

    fn end(&mut self, kind: mqttlab_zmtp::Kind, client: Option<String>, packets: &mut Vec<CapturedPacket>) {
        self.state = ZmtpState::Header(Vec::new());
        if let Some(packet) = std::mem::take(&mut self.packet).into_packet(kind, client) {
            packets.push(packet);
        }
    }
}

impl PartialZmtpPacket {
    fn see(&mut self, offset: u64, seen: Sighting) {
        if self.first.is_none() {
            (self.start, self.first) = (offset, Some(seen));
        }
        // A packet is whole when its last byte arrives, whichever byte that is.
        self.latest = Some(self.latest.filter(|latest| latest.frame >= seen.frame).unwrap_or(seen));
    }

    fn keep(&mut self, header: FrameHeader, bytes: &[u8]) {
        let (kept, room) = match self.frames == 1 && header.more {
            true => (&mut self.topic, TOPIC_MAX),
            false if header.command => (&mut self.head, COMMAND_MAX),
            false => (&mut self.head, PAYLOAD_HEAD_MAX),
        };
        let room = room - kept.len();
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn into_packet(self, kind: mqttlab_zmtp::Kind, client: Option<String>) -> Option<CapturedPacket> {
        let is_message = kind == mqttlab_zmtp::Kind::Message;
        let descriptor = PacketDescriptor {
            offset: self.start,
            kind: kind.into(),
            qos: 0,
            dup: false,
            retain: false,
            id: None,
            lengths: Lengths {
                fixed_header: self.header_bytes,
                topic: self.topic_bytes,
                id: 0,
                properties: 0,
                payload: self.payload_bytes.min(u32::MAX.into()) as u32,
            },
            message: 0,
        };
        let packet = descriptor.seen(self.first?, self.latest?);
        let topic = String::from_utf8(self.topic).ok().filter(|_| is_message);
        let connect = client.map(|client_id| Box::new(SeenConnect { client_id, ..SeenConnect::default() }));
        Some(CapturedPacket {
            topic: topic.map(Arc::from),
            payload_head: packet.payload_head.with(if is_message { &self.head } else { &[] }),
            payload_rest: PayloadRest::of_long(if is_message { &self.head } else { &[] }),
            connect,
            damaged: self.damaged,
            ..packet
        })
    }
}

/// As much of a topic is kept as MQTT has.
const TOPIC_MAX: usize = u16::MAX as usize;
/// As much of a command.
const COMMAND_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use mqttlab_units::Instant;
    use mqttlab_zmtp::{SocketType, frame};

    use super::*;

    fn stream() -> Vec<u8> {
        let mut bytes = Vec::new();
        greeting::encode(&mut bytes);
        command::ready(SocketType::Pub, Some("pub-0"), &mut bytes);
        command::subscribe(true, b"a", 1, &mut bytes);
        frame::message_header(3, true, &mut bytes);
        bytes.extend_from_slice(b"a/b");
        frame::message_header(300, false, &mut bytes);
        bytes.extend_from_slice(&[b'x'; 300]);
        command::ping(&mut bytes);
        bytes
    }

    fn seen(frame: u64) -> Sighting {
        Sighting { time: Instant::from_ns(frame), frame }
    }

    fn found(pieces: &[(u64, Option<&[u8]>, u64)]) -> (Vec<CapturedPacket>, u64) {
        let (mut framer, mut packets) = (ZmtpFramer::new(true), Vec::new());
        for (number, (offset, bytes, len)) in (1..).zip(pieces) {
            let (offset, len) = (*offset, *len);
            let piece = match bytes {
                Some(bytes) => StreamPiece::Data {
                    offset,
                    len,
                    payload: SegmentPayload::Bytes(bytes),
                    seen: seen(number),
                },
                None => StreamPiece::Missing { offset, len },
            };
            framer.feed(&piece, &mut packets);
        }
        (packets, framer.skipped_bytes)
    }

    #[test]
    fn packets_are_named_and_measured_however_they_are_cut() {
        let stream = stream();
        for size in [1, 50, stream.len()] {
            let mut offset = 0;
            let pieces: Vec<_> = stream
                .chunks(size)
                .map(|bytes| {
                    offset += bytes.len() as u64;
                    (offset - bytes.len() as u64, Some(bytes), bytes.len() as u64)
                })
                .collect();
            let (packets, skipped) = found(&pieces);
            let names: Vec<_> = packets.iter().map(|packet| packet.kind.name()).collect();
            assert_eq!(names, ["GREETING", "READY", "SUBSCRIBE", "MESSAGE", "PING"], "pieces of {size}");
            assert_eq!(skipped, 0);
            assert_eq!(packets[1].connect.as_ref().unwrap().client_id, "pub-0");
            let message = &packets[3];
            assert_eq!(message.topic.as_deref(), Some("a/b"));
            let Lengths { fixed_header, topic, payload, .. } = message.lengths;
            assert_eq!((fixed_header, topic, payload), (2 + 9, 3, 300));
            assert_eq!(message.payload_head.as_slice(), [b'x'; PAYLOAD_HEAD_MAX]);
            assert!(packets.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert_eq!(packets.last().unwrap().end, stream.len() as u64);
        }
    }

    #[test]
    fn a_hole_in_a_payload_damages_one_packet_and_any_other_ends_the_stream() {
        let stream = stream();
        let ping = stream.len() as u64 - 9;
        let (before, after) = stream.split_at(stream.len() - 100);
        let start = before.len() as u64;
        let hole = [(0, Some(before), start), (start, None, 50), (start + 50, Some(&after[50..]), 50)];
        let (packets, skipped) = found(&hole);
        assert_eq!((packets.len(), packets[3].damaged, skipped), (5, true, 0));
        assert_eq!(packets[4].start, ping);
        let lost = [(0, None, 10), (10, Some(&stream[10..]), stream.len() as u64 - 10)];
        assert_eq!(found(&lost).0.len(), 0);
    }
}
