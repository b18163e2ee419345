//! What must hold for any bytes, for the fuzzer and for the bounded run of every test.

use std::net::{IpAddr, Ipv4Addr};

use mqttlab_capture::credentials::{SecretFields, credentials};
use mqttlab_capture::mqtt::{CapturedPacket, ConnectionContext, MqttFramer};
use mqttlab_capture::reassembly::{Reassembler, SegmentPayload, Sighting, StreamPiece};
use mqttlab_capture::{
    Analyser, AnalyserSettings, Bits, CaptureReader, KeyLog, Options, ServerDirection, SocketEndpoint,
    TcpHeader,
};
use mqttlab_units::Instant;

/// A capture file: read to its end or to an error, and the sums are consistent.
pub fn capture(bytes: &[u8]) {
    let Ok(mut reader) = CaptureReader::new(bytes) else { return };
    let all = SecretFields { username: true, path: true };
    let hidden = credentials(bytes, all).unwrap_or_default();
    assert!(hidden.keys().all(|&place| place < bytes.len() as u64));
    let mut analyser = Analyser::new(AnalyserSettings::default());
    let (mut frames, mut segments, mut packets) = (0, 0, 0);
    while let Ok(Some(frame)) = reader.next_frame() {
        frames += 1;
        if let Some(annotations) = analyser.frame(&frame) {
            segments += 1;
            assert_eq!(annotations.frame, frames);
            packets += annotations.packets.iter().filter(|completed| !completed.packet.damaged).count();
        }
    }
    packets += analyser.flush().iter().filter(|completed| !completed.packet.damaged).count();
    let analysis = analyser.finish();
    let others: u64 = analysis.others.values().map(|others| others.frames).sum();
    assert_eq!((analysis.everything.frames.count, analysis.total.segments + others), (frames, segments));
    assert_eq!(analysis.total.packets.iter().sum::<u64>(), packets as u64);
    for direction in ServerDirection::BOTH {
        let tally = &analysis.directions[direction as usize];
        assert!(tally.payload_bytes_unique <= tally.payload_bytes);
        assert!(
            tally.mqtt_bytes + tally.skipped_bytes + tally.tls_bytes + tally.websocket_bytes
                <= tally.payload_bytes_unique
        );
    }
}

/// The byte at each offset of the stream that [`reassembly`] cuts into segments.
fn content(offset: u64) -> u8 {
    (offset ^ offset >> 8).wrapping_mul(151) as u8
}

/// Segments of a known stream, in any order and any overlap: what comes out is the stream, in order, with holes.
///
/// Each six bytes are a segment: one of the kind, three of its offset, two of its length.
pub fn reassembly(bytes: &[u8]) {
    let base = 0xffff_f000_u32;
    let mut stream = Reassembler::default();
    let (mut next, mut new_bytes, mut delivered, mut answered) = (0, 0, 0, false);
    let mut check = |piece: StreamPiece<'_>| match piece {
        StreamPiece::Data { offset, len, payload: SegmentPayload::Bytes(bytes), .. } => {
            assert_eq!((offset, len), (next, bytes.len() as u64));
            assert!(
                bytes.iter().zip(offset..).all(|(byte, at)| *byte == content(at)),
                "wrong bytes at {offset}"
            );
            next += len;
            delivered += len;
        }
        StreamPiece::Data { .. } => panic!("bytes went in, and something else came out"),
        StreamPiece::Missing { offset, len } => {
            assert!(offset == next && len > 0);
            next += len;
        }
    };
    stream.start(base.wrapping_sub(1));
    for (frame, operation) in bytes.chunks_exact(6).enumerate() {
        let offset = u64::from(u32::from_be_bytes([0, operation[1], operation[2], operation[3]]));
        let len = u64::from(u16::from_be_bytes([operation[4], operation[5]])) % 3_000;
        let sequence = base.wrapping_add(offset as u32);
        if operation[0] % 4 == 0 {
            stream.acknowledge(sequence, false, &mut check);
            answered = true;
            continue;
        }
        let data: Vec<u8> = (offset..offset + len).map(content).collect();
        let seen = Sighting { time: Instant::from_ns(frame as u64), frame: frame as u64 };
        let pushed = stream.push(sequence, len as u32, SegmentPayload::Bytes(&data), seen, &mut check);
        assert!(pushed.new_bytes <= len);
        new_bytes += pushed.new_bytes;
    }
    stream.finish(&mut check);
    // What waits behind a hole of which the receiver says that it lacks it does not come out.
    assert!(
        new_bytes == delivered || answered && delivered < new_bytes,
        "every new byte comes out once: {delivered} of {new_bytes}"
    );
    assert_eq!(stream.offset(), next);
}

/// Feeds `bytes` in pieces of `piece` bytes each; returns the packets and how many bytes were passed over.
fn frame(bytes: &[u8], piece: usize, to_server: bool, from_start: bool) -> (Vec<CapturedPacket>, u64) {
    let mut framer = MqttFramer::new(to_server, from_start);
    let (mut context, mut packets) = (ConnectionContext::default(), Vec::new());
    for (index, part) in bytes.chunks(piece).enumerate() {
        let seen = Sighting { time: Instant::from_ns(index as u64), frame: index as u64 };
        let (offset, len) = ((index * piece) as u64, part.len() as u64);
        let piece = StreamPiece::Data { offset, len, payload: SegmentPayload::Bytes(part), seen };
        framer.feed(&mut context, &piece, &mut packets);
    }
    framer.finish(&mut context, &mut packets);
    (packets, framer.counts().skipped_bytes)
}

/// A stream of MQTT: packets lie behind one another inside it, and where framing is never lost it does not matter how
/// the stream was cut into segments.
pub fn mqtt(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let (to_server, from_start) = (first & 1 == 0, first & 2 == 0);
    let piece = 1 + usize::from(first >> 2) * 23;
    let (packets, skipped) = frame(bytes, piece, to_server, from_start);
    let mut end = 0;
    for packet in &packets {
        assert!(packet.start >= end && packet.end <= bytes.len() as u64);
        assert_eq!(packet.end - packet.start, packet.lengths.total());
        assert!(packet.first.frame <= packet.complete.frame);
        end = packet.end;
    }
    let framed: u64 = packets.iter().map(|packet| packet.lengths.total()).sum();
    assert!(framed + skipped <= bytes.len() as u64);
    if from_start && skipped == 0 {
        let (again, _) = frame(bytes, 1, to_server, true);
        let places = |packets: &[CapturedPacket]| {
            packets.iter().map(|packet| (packet.start, packet.kind)).collect::<Vec<_>>()
        };
        assert_eq!(places(&packets), places(&again));
    }
}

/// A segment from one end to another, with so many bytes of payload: the first behind both SYNs.
pub fn segment([source, destination]: [SocketEndpoint; 2], len: usize) -> TcpHeader {
    let len = len as u32;
    TcpHeader {
        time: Instant::ZERO,
        source,
        destination,
        sequence: 1000,
        acknowledgment: 1000,
        bits: Bits::ACK,
        window: 500,
        options: Options::default(),
        payload_len: len,
        header_len: 20,
        ip_len: 40 + len,
        frame_len: 54 + len,
    }
}

/// Sends both directions' bytes in turns, in segments of `size`; returns the packets with their places, and what was
/// skipped.
fn converse(
    streams: [&[u8]; 2],
    size: usize,
    with_syn: bool,
    secrets: &[u8],
) -> (Vec<(u64, u64, &'static str)>, u64) {
    let end = |last, port| SocketEndpoint { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port };
    let ends = [end(1, 40_000), end(2, 1883)];
    let mut analyser = Analyser::new(AnalyserSettings::default());
    analyser.add_secrets(secrets);
    let mut found = Vec::new();
    let mut feed = |way: usize, sequence: u32, bits, bytes: &[u8]| {
        let segment = TcpHeader { sequence, bits, ..segment([ends[way], ends[1 - way]], bytes.len()) };
        let packets = analyser.segment(&segment, SegmentPayload::Bytes(bytes)).packets;
        found.extend(packets.iter().map(|completed| {
            let packet = &completed.packet;
            assert!(packet.start < packet.end && packet.first.frame <= packet.complete.frame);
            assert!(packet.end <= streams[completed.direction as usize].len() as u64);
            (packet.start, packet.end, packet.kind.name())
        }));
    };
    if with_syn {
        feed(0, 999, Bits::SYN, &[]);
        feed(1, 999, Bits::SYN.and(Bits::ACK), &[]);
    }
    for way in [0, 1] {
        for (index, part) in streams[way].chunks(size).enumerate() {
            feed(way, 1000 + (index * size) as u32, Bits::ACK, part);
        }
    }
    let left = analyser.flush().iter().map(|completed| &completed.packet);
    found.extend(left.map(|packet| (packet.start, packet.end, packet.kind.name())));
    let analysis = analyser.finish();
    for tally in analysis.connections.iter().flat_map(|connection| &connection.directions) {
        assert!(
            tally.mqtt_bytes + tally.skipped_bytes + tally.tls_bytes + tally.websocket_bytes
                <= tally.payload_bytes_unique
        );
    }
    let doubts = |tally: &mqttlab_capture::metrics::MetricTally| {
        tally.skipped_bytes + tally.impossible + tally.partial
    };
    (found, analysis.connections.iter().flat_map(|connection| &connection.directions).map(doubts).sum())
}

/// A WebSocket's stream, behind its upgrade or begun in the middle: packets lie inside it, its bytes are accounted for, and
/// where framing is never lost it does not matter how the stream was cut into segments.
pub fn websocket(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let (to_server, from_start, size) = (first & 1 == 0, first & 2 == 0, 5 + usize::from(first >> 2) * 23);
    let (mut up, mut down) = (Vec::new(), Vec::new());
    if from_start {
        up.extend(b"GET /mqtt HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n");
        down.extend(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n");
    }
    if to_server { &mut up } else { &mut down }.extend(bytes);
    let (found, doubts) = converse([&up, &down], size, from_start, &[]);
    if from_start && doubts == 0 {
        assert_eq!(converse([&up, &down], 1448, true, &[]).0, found);
    }
}

/// A key log: as many secrets as it counts, however its lines end.
pub fn key_log(bytes: &[u8]) {
    let mut log = KeyLog::default();
    let lines = log.add(bytes);
    assert_eq!(log.is_empty(), lines == 0);
    assert!(lines <= 1 + bytes.iter().filter(|&&byte| byte == b'\n').count() as u64);
    let again: Vec<u8> =
        bytes.iter().flat_map(|&byte| if byte == b'\n' { vec![b'\r', byte] } else { vec![byte] }).collect();
    assert_eq!(KeyLog::default().add(&again), lines, "lines may end as on other systems");
}

/// Both streams of a connection with TLS, with its secrets: a byte for the size of segments, the lengths of key log and of
/// the client's stream in two bytes each, then key log, the client's stream, the server's. What is read lies inside the
/// streams, and their bytes are accounted for.
pub fn tls(bytes: &[u8]) {
    let Some((&[first, a, b, c, d], rest)) = bytes.split_first_chunk() else { return };
    let (secrets, rest) = rest.split_at(rest.len().min(usize::from(u16::from_be_bytes([a, b]))));
    let (up, down) = rest.split_at(rest.len().min(usize::from(u16::from_be_bytes([c, d]))));
    let (found, doubts) = converse([up, down], 5 + usize::from(first >> 1) * 31, first & 1 == 0, secrets);
    if first & 1 == 0 && doubts == 0 && !found.is_empty() {
        assert_eq!(converse([up, down], 1448, true, secrets).0.len(), found.len());
    }
}

/// Both streams of a connection behind its preambles: a byte for the size of segments, the length of the client's stream in two,
/// then the client's stream and the server's. What is read lies inside the streams, and their bytes are accounted for.
pub fn preamble(bytes: &[u8]) {
    let Some((&[first, a, b], rest)) = bytes.split_first_chunk() else { return };
    let (up, down) = rest.split_at(rest.len().min(usize::from(u16::from_be_bytes([a, b]))));
    let (mut found, doubts) = converse([up, down], 1 + usize::from(first >> 1) * 31, first & 1 == 0, &[]);
    if first & 1 == 0 && doubts == 0 && !found.is_empty() {
        let (mut again, _) = converse([up, down], 1448, true, &[]);
        found.sort_unstable();
        again.sort_unstable();
        assert_eq!(found, again);
    }
}

/// How many packets such streams hold.
#[allow(dead_code)]
pub fn packets_in_tls(bytes: &[u8]) -> usize {
    let Some((&[_, a, b, c, d], rest)) = bytes.split_first_chunk() else { return 0 };
    let (secrets, rest) = rest.split_at(usize::from(u16::from_be_bytes([a, b])));
    let (up, down) = rest.split_at(usize::from(u16::from_be_bytes([c, d])));
    converse([up, down], 1448, true, secrets).0.len()
}
