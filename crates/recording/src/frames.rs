//! What is inside a frame: the seam to those who can read it.
//!
//! The live run records raw bytes and leaves reading them to the end. A [`FrameAnalyser`] does that; the one that
//! follows TCP streams and decodes MQTT lives elsewhere. [`HeaderAnalyser`] reads IPv4, IPv6 and TCP headers only,
//! so that `packets` is whole without any other.
//!
//! What it does not model: IP fragments, and IPv6 extension headers.

use std::collections::BTreeMap;
use std::fmt::Write;

use mqttlab_rows::{Acknowledged, Dropped, Event, Frame, Layout, PacketKind, PositionSample, Received, Sent};
use mqttlab_units::{Duration, Instant};

use crate::tables::{ControlPacketRow, NetworkMetricRow, PacketRow};

/// Reads frames in the order in which they were recorded.
pub trait FrameAnalyser {
    /// Learns who is who, before the first frame.
    fn begin(&mut self, _layout: &Layout) {}

    /// Reads one frame on one link. `bytes` is its IP packet.
    fn frame(&mut self, frame: &Frame, bytes: &[u8]) -> FrameHeaders<'_>;

    /// Hands out the control packets that are complete since the last call; after `end`, also those that never
    /// were.
    fn control_packets(&mut self, end: bool, emit: &mut dyn FnMut(&ControlPacketRow<'_>));

    /// Hands out what was measured of the network layer, after the last control packet.
    fn network_metrics(&mut self, _emit: &mut dyn FnMut(&NetworkMetricRow<'_>)) {}

    /// Hands out messages and events that nobody else has written down, after the last control packet: those of clients
    /// that are known by their frames alone, and what was lost with its datagram. Their topics and receivers are added to the layout.
    fn messages(&mut self, _layout: &mut Layout, _emit: &mut dyn FnMut(SeenRow<'_>)) {}
}

/// A row that was found in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenRow<'a> {
    /// A message was published.
    Sent(&'a Sent),
    /// It was acknowledged.
    Acknowledged(&'a Acknowledged),
    /// It was delivered.
    Received(&'a Received),
    /// Something happened to a client.
    Event(&'a Event, &'a str),
    /// A client has said where it is.
    Position(&'a PositionSample),
    /// The broker refused it.
    Dropped(&'a Dropped),
}

/// Judges the segments of a producer that has no bytes, in the order in which they came to their first links.
pub trait SegmentAnalyser {
    /// What a segment is.
    fn segment(&mut self, seen: &SeenSegment<'_>) -> Judgement<'_>;

    /// Hands out what was measured of the network layer, after the last segment.
    fn network_metrics(&mut self, emit: &mut dyn FnMut(&NetworkMetricRow<'_>));
}

/// A segment on its first link. TCP's fields as on the wire.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct SeenSegment<'a> {
    pub at: Instant,
    /// The connection's number.
    pub connection: u32,
    /// The client whose packets it carries, where it is one's alone.
    pub client: Option<u32>,
    pub to_broker: bool,
    /// Sender and receiver.
    pub hosts: [u16; 2],
    /// Sender's and receiver's.
    pub ports: [u16; 2],
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub timestamps: Option<(u32, u32)>,
    pub sack: &'a [(u32, u32)],
    pub header_bytes: u32,
    pub payload_bytes: u32,
    pub frame_bytes: u32,
    /// Of its payload what WebSocket adds to the packets, as far as it is sent for the first time.
    pub websocket_bytes: u32,
    /// Of these bytes what TLS adds, as far as they are sent for the first time.
    pub tls_bytes: u32,
    /// The packets whose first byte is in it.
    pub packets: &'a [SeenPacket],
}

/// A control packet in a stream. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SeenPacket {
    /// Position of its first byte.
    pub offset: u64,
    pub kind: PacketKind,
    pub qos: u8,
    pub dup: bool,
    pub retain: bool,
    pub id: Option<u16>,
    pub fixed_header_bytes: u32,
    pub topic_bytes: u32,
    pub packet_id_bytes: u32,
    pub property_bytes: u32,
    pub payload_bytes: u32,
}

/// What a segment turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judgement<'a> {
    /// Words for the `marks` column.
    pub marks: Option<&'a str>,
    /// Round trip, for the column of that name.
    pub ack_rtt: Option<Duration>,
}

/// What a frame's bytes say. The columns of `packets` by the same names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FrameHeaders<'a> {
    pub ip_bytes: u32,
    pub protocol: u8,
    pub source_port: Option<u16>,
    pub destination_port: Option<u16>,
    pub connection: Option<u32>,
    pub seq: Option<u32>,
    pub ack: Option<u32>,
    pub flags: Option<u8>,
    pub window: Option<u16>,
    pub payload_bytes: u32,
    pub tsval: Option<u32>,
    pub tsecr: Option<u32>,
    pub sack: Option<&'a str>,
    pub stream_offset: Option<u64>,
    pub mqtt: Option<&'a str>,
    pub marks: Option<&'a str>,
    pub ack_rtt_ns: Option<u64>,
    pub ecn: Option<u8>,
}

impl<'a> PacketRow<'a> {
    /// The row of a frame with the given headers.
    pub fn new(frame: &Frame, headers: &FrameHeaders<'a>) -> PacketRow<'a> {
        PacketRow {
            link: frame.link,
            direction: frame.direction,
            hop: frame.hop,
            hops: frame.hops,
            frame: frame.frame,
            from_host: frame.from_host,
            to_host: frame.to_host,
            entered_ns: frame.entered.as_ns(),
            start_ns: frame.start.map(|at| at.as_ns()),
            sent_ns: frame.sent.map(|at| at.as_ns()),
            delivered_ns: frame.delivered.map(|at| at.as_ns()),
            fate: frame.fate,
            cause: frame.cause,
            frame_bytes: frame.frame_bytes,
            ip_bytes: headers.ip_bytes,
            protocol: headers.protocol,
            source_port: headers.source_port,
            destination_port: headers.destination_port,
            connection: headers.connection,
            seq: headers.seq,
            ack: headers.ack,
            flags: headers.flags,
            window: headers.window,
            payload_bytes: headers.payload_bytes,
            tsval: headers.tsval,
            tsecr: headers.tsecr,
            sack: headers.sack,
            stream_offset: headers.stream_offset,
            mqtt: headers.mqtt,
            marks: headers.marks,
            ack_rtt_ns: headers.ack_rtt_ns,
            repetition: frame.repetition,
            ecn: headers.ecn,
        }
    }
}

/// Reads headers, numbers the connections, and counts the positions in their streams.
#[derive(Default)]
pub struct HeaderAnalyser {
    connections: BTreeMap<Ends, FrameConnection>,
    sack: String,
}

/// Both ends of a connection, the lesser one first.
type Ends = (([u8; 16], u16), ([u8; 16], u16));

struct FrameConnection {
    number: u32,
    /// For each direction, the sequence number that stream offset 0 has, and the highest offset seen.
    streams: [Option<(u32, u64)>; 2],
}

impl FrameAnalyser for HeaderAnalyser {
    fn frame(&mut self, _: &Frame, bytes: &[u8]) -> FrameHeaders<'_> {
        self.read(bytes, true).unwrap_or_default()
    }

    fn control_packets(&mut self, _: bool, _: &mut dyn FnMut(&ControlPacketRow<'_>)) {}
}

impl HeaderAnalyser {
    /// What the headers of a frame say by themselves: without the connection's number and the place in its stream, which
    /// are known from where the sender put it on its first link.
    pub fn passed_on(&mut self, bytes: &[u8]) -> FrameHeaders<'_> {
        self.read(bytes, false).unwrap_or_default()
    }

    /// `None` when the bytes are not an IP packet. Without `follow` streams are left as they are.
    fn read(&mut self, bytes: &[u8], follow: bool) -> Option<FrameHeaders<'_>> {
        let ip = Ip::read(bytes)?;
        let (ip_bytes, protocol, ecn) = (ip.bytes, ip.protocol, Some(ip.ecn).filter(|&ecn| ecn != 0));
        let mut headers = FrameHeaders { ip_bytes, protocol, ecn, ..FrameHeaders::default() };
        match ip.protocol {
            TCP => self.read_tcp(&ip, headers, follow),
            UDP => {
                headers.source_port = u16_at(ip.payload, 0);
                headers.destination_port = u16_at(ip.payload, 2);
                headers.payload_bytes = ip.payload_bytes.saturating_sub(8);
                Some(headers)
            }
            _ => Some(headers),
        }
    }

    fn read_tcp<'a>(
        &'a mut self,
        ip: &Ip<'_>,
        headers: FrameHeaders<'a>,
        follow: bool,
    ) -> Option<FrameHeaders<'a>> {
        let tcp = ip.payload;
        let Some(&[data_offset, flags]) = tcp.get(12..14) else { return Some(headers) };
        let header_bytes = usize::from(data_offset >> 4) * 4;
        let payload_bytes = ip.payload_bytes.saturating_sub(header_bytes as u32);
        let (source_port, destination_port) = (u16_at(tcp, 0)?, u16_at(tcp, 2)?);
        let seq = u32_at(tcp, 4)?;
        let ends = [(ip.source, source_port), (ip.destination, destination_port)];
        let place = follow.then(|| self.place(ends, seq, flags, payload_bytes));
        let options = tcp.get(20..header_bytes.min(tcp.len())).unwrap_or_default();
        let timestamps = self.read_options(options);
        Some(FrameHeaders {
            source_port: Some(source_port),
            destination_port: Some(destination_port),
            connection: place.map(|(connection, _)| connection),
            seq: Some(seq),
            ack: u32_at(tcp, 8).filter(|_| flags & ACK != 0),
            flags: Some(flags),
            window: u16_at(tcp, 14),
            payload_bytes,
            tsval: timestamps.map(|(value, _)| value),
            tsecr: timestamps.map(|(_, echo)| echo),
            sack: Some(self.sack.as_str()).filter(|sack| !sack.is_empty()),
            stream_offset: place.and_then(|(_, offset)| offset),
            ..headers
        })
    }

    /// Gathers the SACK blocks into `self.sack`, and returns the timestamps (RFC 7323 §3.2, RFC 2018 §3).
    fn read_options(&mut self, mut options: &[u8]) -> Option<(u32, u32)> {
        self.sack.clear();
        let mut timestamps = None;
        while let Some(&kind) = options.first() {
            let length = match kind {
                0 => break,
                1 => 1,
                _ => usize::from(*options.get(1)?).max(2),
            };
            let value = options.get(2.min(length)..length)?;
            match kind {
                8 => timestamps = u32_at(value, 0).zip(u32_at(value, 4)),
                5 => value.chunks_exact(8).for_each(|block| {
                    let blank = if self.sack.is_empty() { "" } else { " " };
                    let ends = u32_at(block, 0).unwrap_or_default()..u32_at(block, 4).unwrap_or_default();
                    write!(self.sack, "{blank}{}-{}", ends.start, ends.end).expect("a string takes all");
                }),
                _ => {}
            }
            options = &options[length..];
        }
        timestamps
    }

    /// The connection's number, and where in its stream the segment's payload begins.
    fn place(
        &mut self,
        [source, destination]: [([u8; 16], u16); 2],
        seq: u32,
        flags: u8,
        payload_bytes: u32,
    ) -> (u32, Option<u64>) {
        let forwards = source <= destination;
        let ends = if forwards { (source, destination) } else { (destination, source) };
        let count = self.connections.len() as u32;
        let connection =
            self.connections.entry(ends).or_insert(FrameConnection { number: count, streams: [None, None] });
        let stream = &mut connection.streams[usize::from(forwards)];
        // The SYN takes one sequence number (RFC 9293 §3.4); without one the first segment seen begins the stream.
        let syn = flags & SYN != 0;
        let first = seq.wrapping_add(u32::from(syn));
        let (start, highest) = match *stream {
            Some(known) if !syn || known.0 == first => known,
            _ => (first, 0),
        };
        // Streams longer than 2^32 bytes: the offset nearest to the highest one seen.
        let expected = start.wrapping_add(highest as u32);
        let offset = (highest as i64 + i64::from(first.wrapping_sub(expected) as i32)).max(0) as u64;
        *stream = Some((start, highest.max(offset + u64::from(payload_bytes))));
        (connection.number, (payload_bytes > 0).then_some(offset))
    }
}

/// An IP packet's parts.
struct Ip<'a> {
    bytes: u32,
    protocol: u8,
    /// The two bits of RFC 3168 §5.
    ecn: u8,
    source: [u8; 16],
    destination: [u8; 16],
    payload: &'a [u8],
    /// By the header's own count, which a capture may have cut.
    payload_bytes: u32,
}

impl<'a> Ip<'a> {
    fn read(packet: &'a [u8]) -> Option<Ip<'a>> {
        match packet.first()? >> 4 {
            4 => {
                let header_bytes = usize::from(packet[0] & 15) * 4;
                let bytes = u32::from(u16_at(packet, 2)?);
                Some(Ip {
                    bytes,
                    protocol: *packet.get(9)?,
                    ecn: packet.get(1)? & 3,
                    source: widen(packet.get(12..16)?),
                    destination: widen(packet.get(16..20)?),
                    payload: packet.get(header_bytes..)?,
                    payload_bytes: bytes.saturating_sub(header_bytes as u32),
                })
            }
            6 => {
                let payload_bytes = u32::from(u16_at(packet, 4)?);
                Some(Ip {
                    bytes: payload_bytes + 40,
                    protocol: *packet.get(6)?,
                    // Of the traffic class, which begins in the first byte.
                    ecn: packet.get(1)? >> 4 & 3,
                    source: packet.get(8..24)?.try_into().ok()?,
                    destination: packet.get(24..40)?.try_into().ok()?,
                    payload: packet.get(40..)?,
                    payload_bytes,
                })
            }
            _ => None,
        }
    }
}

fn widen(address: &[u8]) -> [u8; 16] {
    let mut wide = [0; 16];
    wide[..address.len()].copy_from_slice(address);
    wide
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const SYN: u8 = 2;
const ACK: u8 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A segment from 10.0.0.2:40000 to 10.0.0.1:1883.
    fn segment(seq: u32, flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let total = (40 + options.len() + payload.len()) as u16;
        let mut bytes = vec![0x45, 0];
        bytes.extend(total.to_be_bytes());
        bytes.extend([0, 0, 0, 0, 64, TCP, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1]);
        bytes.extend(40_000_u16.to_be_bytes());
        bytes.extend(1883_u16.to_be_bytes());
        bytes.extend(seq.to_be_bytes());
        bytes.extend(9_u32.to_be_bytes());
        bytes.extend([((5 + options.len() / 4) << 4) as u8, flags, 1, 0, 0, 0, 0, 0]);
        bytes.extend(options);
        bytes.extend(payload);
        bytes
    }

    fn offset(analyser: &mut HeaderAnalyser, seq: u32, flags: u8, size: usize) -> Option<u64> {
        analyser.read(&segment(seq, flags, &[], &vec![0; size]), true).unwrap().stream_offset
    }

    #[test]
    fn timestamps_and_sack_blocks_are_read_from_the_options() {
        let mut options = vec![1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 8, 1, 1, 5, 18];
        options.extend([0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]);
        let bytes = segment(5, ACK, &options, b"x");
        let mut analyser = HeaderAnalyser::default();
        let headers = analyser.read(&bytes, true).unwrap();
        assert_eq!((headers.tsval, headers.tsecr, headers.sack), (Some(7), Some(8), Some("1-2 3-4")));
        assert_eq!((headers.ack, headers.window, headers.payload_bytes), (Some(9), Some(256), 1));
    }

    #[test]
    fn stream_offsets_go_on_where_sequence_numbers_wrap() {
        let mut analyser = HeaderAnalyser::default();
        assert_eq!(offset(&mut analyser, u32::MAX - 10, SYN, 0), None);
        assert_eq!(offset(&mut analyser, u32::MAX - 9, ACK, 10), Some(0));
        assert_eq!(offset(&mut analyser, 0, ACK, 1000), Some(10));
        assert_eq!(offset(&mut analyser, u32::MAX - 9, ACK, 10), Some(0), "sent again");
        assert_eq!(offset(&mut analyser, 1000, ACK, 1), Some(1010));
    }

    #[test]
    fn a_new_syn_begins_the_stream_again() {
        let mut analyser = HeaderAnalyser::default();
        offset(&mut analyser, 100, SYN, 0);
        assert_eq!(offset(&mut analyser, 101, ACK, 50), Some(0));
        offset(&mut analyser, 100, SYN, 0);
        assert_eq!(offset(&mut analyser, 151, ACK, 50), Some(50), "the same SYN sent again changes nothing");
        offset(&mut analyser, 70_000, SYN, 0);
        assert_eq!(offset(&mut analyser, 70_001, ACK, 50), Some(0));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_analyser_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), six: bool) {
            if let Some(first) = bytes.first_mut() {
                *first = if six { 0x60 } else { 0x45 };
            }
            if let Some(protocol) = bytes.get_mut(if six { 6 } else { 9 }) {
                *protocol = TCP;
            }
            let _ = HeaderAnalyser::default().read(&bytes, true);
        }
    }
}
