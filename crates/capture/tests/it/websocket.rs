//! MQTT over WebSocket, segment by segment: what the analyser reads in it, whole, cut, thinned, begun in the middle.

use std::net::{IpAddr, Ipv4Addr};

use mqttlab_capture::mqtt::Kind;
use mqttlab_capture::{
    Analyser, AnalyserSettings, Analysis, Bits, ConnectionProtocol, SegmentPayload, ServerDirection,
    SocketEndpoint, TcpHeader,
};
use mqttlab_units::{Duration, Instant};

use crate::checks;

const CLIENT: SocketEndpoint =
    SocketEndpoint { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), port: 40_000 };
const BROKER: SocketEndpoint = SocketEndpoint { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), port: 9001 };
const REQUEST: &[u8] = b"GET /mqtt HTTP/1.1\r\nHost: broker\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Version: 13\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n";
const CONNECT: &[u8] = b"\x10\x10\0\x04MQTT\x04\x02\0\x3c\0\x04dash";
const CONNACK: &[u8] = b"\x20\x02\0\0";
const PINGREQ: &[u8] = b"\xc0\0";

/// A frame of binary data, masked where a client sends it.
fn frame(from_client: bool, payload: &[u8]) -> Vec<u8> {
    typed(0x82, from_client, payload)
}

fn typed(first: u8, from_client: bool, payload: &[u8]) -> Vec<u8> {
    let mask = if from_client { 0x80 } else { 0 };
    let mut frame = vec![first];
    match payload.len() {
        short @ 0..=125 => frame.push(mask | short as u8),
        medium @ 126..=0xffff => {
            frame.push(mask | 126);
            frame.extend((medium as u16).to_be_bytes());
        }
        long => {
            frame.push(mask | 127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    let key = if from_client { [0x37, 0xfa, 0x21, payload.len() as u8] } else { [0; 4] };
    frame.extend(from_client.then_some(key).into_iter().flatten());
    frame.extend(payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
    frame
}

fn publish(topic: &str, payload_len: usize) -> Vec<u8> {
    let mut packet = vec![0x30];
    let mut left = 2 + topic.len() + payload_len;
    while left > 127 {
        packet.push((left % 128) as u8 | 128);
        left /= 128;
    }
    packet.push(left as u8);
    packet.extend((topic.len() as u16).to_be_bytes());
    packet.extend(topic.as_bytes());
    packet.resize(packet.len() + payload_len, b'7');
    packet
}

/// Both directions' streams, and how far each was sent.
struct Wire {
    analyser: Analyser,
    sent: [u32; 2],
    ms: u64,
    /// Kind, stream range, whether it is damaged.
    found: Vec<(Kind, u64, u64, bool)>,
}

impl Wire {
    fn new(ports: &[u16], with_syn: bool) -> Wire {
        let settings = AnalyserSettings { broker_ports: ports.to_vec(), ..AnalyserSettings::default() };
        let mut wire = Wire { analyser: Analyser::new(settings), sent: [0; 2], ms: 0, found: Vec::new() };
        if with_syn {
            for (from_client, bits) in [(true, Bits::SYN), (false, Bits::SYN.and(Bits::ACK))] {
                wire.segment(TcpHeader { sequence: 999, bits, ..wire.header(from_client, 0) }, &[]);
            }
        }
        wire
    }

    fn header(&self, from_client: bool, len: usize) -> TcpHeader {
        let ends = if from_client { [CLIENT, BROKER] } else { [BROKER, CLIENT] };
        let [up, down] = if from_client { self.sent } else { [self.sent[1], self.sent[0]] };
        TcpHeader {
            time: Instant::ZERO + Duration::from_ms(self.ms),
            sequence: 1000 + up,
            acknowledgment: 1000 + down,
            ..checks::segment(ends, len)
        }
    }

    fn segment(&mut self, segment: TcpHeader, bytes: &[u8]) {
        self.ms += 1;
        let annotations = self.analyser.segment(&segment, SegmentPayload::Bytes(bytes));
        let packets = annotations.packets.iter().map(|completed| &completed.packet);
        self.found.extend(
            packets
                .map(|packet| (packet.kind.mqtt().expect("MQTT"), packet.start, packet.end, packet.damaged)),
        );
    }

    /// Bytes in segments of at most `size`.
    fn send(&mut self, from_client: bool, bytes: &[u8], size: usize) {
        for part in bytes.chunks(size) {
            self.segment(self.header(from_client, part.len()), part);
            self.sent[usize::from(!from_client)] += part.len() as u32;
        }
    }

    /// Bytes that are sent and acknowledged, and not captured.
    fn lose(&mut self, from_client: bool, len: usize) {
        self.sent[usize::from(!from_client)] += len as u32;
        for _ in 0..8 {
            self.segment(self.header(!from_client, 0), &[]);
        }
    }

    fn open(&mut self, size: usize) {
        self.send(true, REQUEST, size);
        self.send(false, ANSWER, size);
        self.send(true, &frame(true, CONNECT), size);
        self.send(false, &frame(false, CONNACK), size);
    }

    fn kinds(&self) -> Vec<Kind> {
        self.found.iter().map(|(kind, ..)| *kind).collect()
    }

    fn finish(mut self) -> (Vec<(Kind, u64, u64, bool)>, Analysis) {
        let left = self.analyser.flush().iter().map(|completed| &completed.packet);
        self.found.extend(
            left.map(|packet| (packet.kind.mqtt().expect("MQTT"), packet.start, packet.end, packet.damaged)),
        );
        (self.found, self.analyser.finish())
    }
}

/// A client's stream behind its CONNECT: one packet in a frame, two in one, one in two, a ping of the WebSocket's own.
fn varied() -> Vec<u8> {
    let (short, long) = (publish("a/b", 10), publish("a/b", 70_000));
    let (begun, rest) = long.split_at(30_000);
    [
        frame(true, &short),
        frame(true, &[&short[..], PINGREQ].concat()),
        typed(0x02, true, begun),
        typed(0x89, true, b"are you there"),
        typed(0x80, true, rest),
        typed(0x88, true, &[3, 0xe8]),
    ]
    .concat()
}

#[test]
fn packets_are_read_however_segments_cut_the_frames() {
    let whole: Vec<_> = [5, 7, 64, 1448, 100_000]
        .into_iter()
        .map(|size| {
            let mut wire = Wire::new(&[1883], true);
            wire.open(size);
            wire.send(true, &varied(), size);
            let (found, analysis) = wire.finish();
            let connection = &analysis.connections[0];
            assert_eq!((connection.protocol, connection.is_broker_s), (ConnectionProtocol::Mqtt, true));
            let up = &analysis.directions[ServerDirection::ToServer as usize];
            assert_eq!((up.impossible, up.skipped_bytes, up.missing_bytes), (0, 0, 0));
            // Every byte belongs to one of the two.
            for tally in &analysis.directions {
                assert_eq!(tally.mqtt_bytes + tally.websocket_bytes, tally.payload_bytes_unique);
            }
            let mut found = found;
            found.sort_by_key(|(kind, start, ..)| (*start, *kind as u8));
            found
        })
        .collect();
    let request = REQUEST.len() as u64;
    let connect = whole[0].iter().find(|(kind, ..)| *kind == Kind::Connect).unwrap();
    // From its frame's header on: two bytes and the mask.
    assert_eq!((connect.1, connect.2), (request, request + 6 + CONNECT.len() as u64));
    let kinds: Vec<Kind> = whole[0].iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == Kind::Publish).count(), 3);
    assert!(kinds.contains(&Kind::Pingreq) && kinds.contains(&Kind::Connack));
    assert!(whole.iter().all(|found| *found == whole[0]), "{whole:?}");
}

#[test]
fn a_hole_inside_a_frame_costs_one_packet_and_one_across_frames_what_lies_in_it() {
    let mut wire = Wire::new(&[1883], true);
    wire.open(1448);
    let long = frame(true, &publish("a/b", 4000));
    wire.send(true, &long[..1000], 1000);
    wire.lose(true, 1000);
    wire.send(true, &long[2000..], 1000);
    wire.send(true, &frame(true, &publish("a/b", 10)), 1000);
    let lost = frame(true, &publish("a/b", 50));
    wire.lose(true, lost.len());
    for _ in 0..5 {
        wire.send(true, &frame(true, &publish("a/b", 10)), 1000);
    }
    let gaps: Vec<_> = std::iter::from_fn(|| wire.analyser.gap()).collect();
    let (found, analysis) = wire.finish();
    let publishes = found.iter().filter(|(kind, ..)| *kind == Kind::Publish);
    let damaged: Vec<bool> = publishes.map(|(.., damaged)| *damaged).collect();
    assert_eq!(damaged, [true, false, false, false, false, false, false]);
    assert_eq!(gaps.len(), 1, "only the second hole may hide packets");
    let up = &analysis.directions[0];
    assert_eq!(up.missing_bytes, 1000 + lost.len() as u64);
    assert_eq!(up.impossible, 0);
}

#[test]
fn a_capture_that_begins_in_the_middle_finds_the_frames_on_any_port() {
    for ports in [vec![1883], vec![9001]] {
        let mut wire = Wire::new(&ports, false);
        for _ in 0..4 {
            wire.send(true, &frame(true, &publish("plant/hall/temperature", 10)), 1448);
            wire.send(false, &frame(false, &publish("plant/hall/temperature", 200)), 1448);
        }
        assert_eq!(wire.kinds(), [Kind::Publish; 8], "{ports:?}");
        assert!(wire.analyser.gap().is_some(), "what came before is unknown");
        let (_, analysis) = wire.finish();
        assert_eq!(analysis.connections[0].protocol, ConnectionProtocol::Mqtt);
    }
}

#[test]
fn a_stream_that_is_entered_between_segments_of_a_frame_is_found_again() {
    let mut wire = Wire::new(&[1883], true);
    wire.open(1448);
    let long = frame(false, &publish("a/b", 9000));
    // The frame's own header is lost, and segments start anywhere behind it.
    wire.lose(false, 1000);
    wire.send(false, &long[1000..], 1000);
    for number in 0..20 {
        wire.send(false, &frame(false, &publish("a/b", 300 + number)), 777);
    }
    let (found, analysis) = wire.finish();
    let whole = found.iter().filter(|(kind, .., damaged)| *kind == Kind::Publish && !damaged).count();
    assert!(whole >= 18, "{whole} of 20");
    assert!(analysis.directions[1].skipped_bytes >= 8000);
}

#[test]
fn what_is_refused_or_compressed_or_no_frame_is_no_mqtt() {
    let mut refused = Wire::new(&[1883], true);
    refused.send(true, REQUEST, 1448);
    refused.send(false, b"HTTP/1.1 403 Forbidden\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n", 1448);
    refused.send(true, &frame(true, CONNECT), 1448);
    assert_eq!(refused.finish().0, []);

    let mut page = Wire::new(&[1883], true);
    page.send(true, b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", 4);
    page.send(false, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwebsocket", 1448);
    let (found, analysis) = page.finish();
    assert_eq!((found, analysis.connections[0].protocol), (vec![], ConnectionProtocol::Http));

    let mut compressed = Wire::new(&[1883], true);
    compressed.open(1448);
    compressed.send(true, &typed(0xc2, true, &[0x32; 40]), 1448);
    compressed.send(true, &frame(true, PINGREQ), 1448);
    compressed.send(true, &frame(true, &publish("plant/hall/temperature", 30)), 1448);
    assert!(compressed.kinds().contains(&Kind::Publish));
    let (_, analysis) = compressed.finish();
    assert_eq!((analysis.directions[0].impossible, analysis.directions[0].skipped_bytes >= 40), (1, true));

    let mut damaged = Wire::new(&[1883], true);
    damaged.open(1448);
    // No client sends a frame without a mask.
    damaged.send(true, &frame(false, PINGREQ), 1448);
    for _ in 0..3 {
        damaged.send(true, &frame(true, &publish("plant/hall/temperature", 30)), 1448);
    }
    assert_eq!(damaged.kinds().iter().filter(|kind| **kind == Kind::Publish).count(), 3);
    let (_, analysis) = damaged.finish();
    assert_eq!(analysis.directions[0].impossible, 1);
}
