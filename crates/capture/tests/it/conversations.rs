//! Short conversations, segment by segment, and what the analyser says of them.

use std::net::{IpAddr, Ipv4Addr};

use mqttlab_capture::metrics::Exchange;
use mqttlab_capture::mqtt::{Kind, Lengths, PacketDescriptor};
use mqttlab_capture::{Analyser, AnalyserSettings, Bits, Marks, SegmentPayload, SocketEndpoint, TcpHeader};
use mqttlab_units::{Duration, Instant};

use crate::checks;

const CLIENT: SocketEndpoint =
    SocketEndpoint { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), port: 40_000 };
const BROKER: SocketEndpoint = SocketEndpoint { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), port: 1883 };
/// First sequence number after the SYN, either way; the streams run over the end of sequence space.
const BASE: u32 = 0xffff_fc00;

/// A segment with stream offsets instead of sequence numbers.
fn segment(ms: u64, from_client: bool, offset: u32, acknowledged: u32, len: usize) -> TcpHeader {
    let ends = if from_client { [CLIENT, BROKER] } else { [BROKER, CLIENT] };
    TcpHeader {
        time: Instant::ZERO + Duration::from_ms(ms),
        sequence: BASE.wrapping_add(offset),
        acknowledgment: BASE.wrapping_add(acknowledged),
        ..checks::segment(ends, len)
    }
}

fn syn(ms: u64, from_client: bool) -> TcpHeader {
    let bits = if from_client { Bits::SYN } else { Bits::SYN.and(Bits::ACK) };
    TcpHeader { sequence: BASE.wrapping_sub(1), bits, ..segment(ms, from_client, 0, 0, 0) }
}

fn analyser() -> Analyser {
    Analyser::new(AnalyserSettings::default())
}

fn feed(analyser: &mut Analyser, segment: &TcpHeader, bytes: &[u8]) -> (Marks, Vec<(Kind, u64, u64)>) {
    let annotations = analyser.segment(segment, SegmentPayload::Bytes(bytes));
    let packets = annotations.packets.iter().map(|completed| &completed.packet);
    let packets = packets
        .map(|packet| (packet.kind.mqtt().expect("MQTT"), packet.first.frame, packet.complete.frame))
        .collect();
    (annotations.verdict.marks, packets)
}

fn publish(topic: &str, id: u16, payload_len: usize) -> Vec<u8> {
    let remaining = 2 + topic.len() + 2 + payload_len;
    let mut packet = vec![0x32];
    let mut left = remaining;
    loop {
        let more = left > 127;
        packet.push((left % 128) as u8 | if more { 128 } else { 0 });
        left /= 128;
        if !more {
            break;
        }
    }
    packet.extend((topic.len() as u16).to_be_bytes());
    packet.extend(topic.as_bytes());
    packet.extend(id.to_be_bytes());
    packet.resize(packet.len() + payload_len, b'7');
    packet
}

#[test]
fn a_packet_is_complete_in_the_segment_that_fills_its_last_hole() {
    let mut analyser = analyser();
    feed(&mut analyser, &syn(0, true), &[]);
    let packet = publish("lab/room", 9, 2_000);
    let third = packet.len() / 3;
    assert!(feed(&mut analyser, &segment(1, true, 0, 0, third), &packet[..third]).1.is_empty());
    let late = segment(2, true, 2 * third as u32, 0, packet.len() - 2 * third);
    let (marks, packets) = feed(&mut analyser, &late, &packet[2 * third..]);
    assert!(marks.has(Marks::LOST_SEGMENT) && packets.is_empty());
    let middle = segment(300, true, third as u32, 0, third);
    let (marks, packets) = feed(&mut analyser, &middle, &packet[third..2 * third]);
    assert_eq!(marks.to_string(), "retransmission");
    assert_eq!(packets, [(Kind::Publish, 2, 4)]);
}

#[test]
fn a_repeated_and_repacked_segment_adds_nothing() {
    let mut analyser = analyser();
    feed(&mut analyser, &syn(0, true), &[]);
    let packet = publish("lab/room", 9, 100);
    assert_eq!(feed(&mut analyser, &segment(1, true, 0, 0, packet.len()), &packet).1.len(), 1);
    let (first, rest) = packet.split_at(50);
    feed(&mut analyser, &segment(400, true, 0, 0, 50), first);
    feed(&mut analyser, &segment(401, true, 50, 0, rest.len()), rest);
    let analysis = analyser.finish();
    let tally = &analysis.directions[0];
    assert_eq!(tally.packets_of(Kind::Publish), 1);
    assert_eq!(tally.payload_bytes, 2 * tally.payload_bytes_unique);
}

#[test]
fn a_third_equal_acknowledgment_makes_the_next_copy_a_fast_retransmission() {
    let mut analyser = analyser();
    let data = [0_u8; 100];
    for index in 0..5 {
        feed(&mut analyser, &segment(index, true, index as u32 * 100, 0, 100), &data);
    }
    feed(&mut analyser, &segment(10, false, 0, 100, 0), &[]);
    for ms in 11..14 {
        let (marks, _) = feed(&mut analyser, &segment(ms, false, 0, 100, 0), &[]);
        assert!(marks.has(Marks::DUPLICATE_ACK));
    }
    let (marks, _) = feed(&mut analyser, &segment(15, true, 100, 0, 100), &data);
    assert!(marks.has(Marks::RETRANSMISSION) && marks.has(Marks::FAST_RETRANSMISSION), "{marks}");
    // Beyond 20 ms after the last acknowledgment it is a timer's doing.
    let (marks, _) = feed(&mut analyser, &segment(215, true, 100, 0, 100), &data);
    assert_eq!(marks.to_string(), "retransmission");
}

#[test]
fn a_syn_between_the_same_ends_opens_another_connection() {
    let mut analyser = analyser();
    feed(&mut analyser, &syn(0, true), &[]);
    let mut again = syn(1_000, true);
    assert!(
        !feed(&mut analyser, &again, &[]).0.has(Marks::REUSED_PORTS),
        "a repeated SYN is no other connection"
    );
    again.sequence = 77;
    assert!(feed(&mut analyser, &again, &[]).0.has(Marks::REUSED_PORTS));
    assert_eq!(analyser.finish().total.connections, 2);
}

#[test]
fn missing_bytes_inside_a_large_packet_do_not_lose_the_framing_behind_it() {
    let mut analyser = analyser();
    feed(&mut analyser, &syn(0, true), &[]);
    let packet = publish("lab/room", 9, 100_000);
    let next = publish("lab/room", 10, 5);
    let mut packets = Vec::new();
    for (index, part) in packet.chunks(1_000).enumerate() {
        if index != 40 {
            let sent = segment(index as u64, true, 1_000 * index as u32, 0, part.len());
            packets.extend(feed(&mut analyser, &sent, part).1);
        }
    }
    // The broker has it all; only the capture does not.
    packets.extend(feed(&mut analyser, &segment(200, false, 0, packet.len() as u32, 0), &[]).1);
    packets.extend(feed(&mut analyser, &segment(201, true, packet.len() as u32, 0, next.len()), &next).1);
    let analysis = analyser.finish();
    let tally = &analysis.directions[0];
    assert_eq!(packets.len(), 2);
    assert_eq!((tally.packets_of(Kind::Publish), tally.partial, tally.missing_bytes), (1, 1, 1_000));
}

#[test]
fn a_stream_joined_in_the_middle_is_framed_from_the_next_packet_on() {
    let mut analyser = analyser();
    let tail = vec![b'0'; 700];
    assert!(feed(&mut analyser, &segment(0, true, 0, 0, 700), &tail).1.is_empty());
    let packet = publish("lab/room", 9, 40);
    let (_, packets) = feed(&mut analyser, &segment(1, true, 700, 0, packet.len()), &packet);
    assert_eq!(packets, [(Kind::Publish, 2, 2)]);
    assert_eq!(analyser.finish().directions[0].skipped_bytes, 700);
}

#[test]
fn a_simulator_s_descriptors_give_what_bytes_would() {
    let publishes = [publish("lab/room", 1, 30), publish("lab/room", 2, 1_500)];
    let stream = publishes.concat();
    let mut offset = 0;
    let descriptors: Vec<PacketDescriptor> = (1..)
        .zip(&publishes)
        .map(|(id, packet)| {
            let fixed_header = if packet.len() > 129 { 3 } else { 2 };
            let payload = packet.len() as u32 - fixed_header - 12;
            let lengths = Lengths { fixed_header, topic: 10, id: 2, properties: 0, payload };
            let at = offset;
            offset += packet.len() as u64;
            let id = Some(id);
            PacketDescriptor {
                offset: at,
                kind: Kind::Publish.into(),
                qos: 1,
                dup: false,
                retain: false,
                id,
                lengths,
                message: 7,
            }
        })
        .collect();
    let (mut from_bytes, mut described) = (analyser(), analyser());
    // The second segment comes twice, the third before it.
    for (ms, from, to) in [(1, 0, 500), (2, 1_000, stream.len()), (3, 500, 1_000), (300, 500, 1_000)] {
        let sent = segment(ms, true, from as u32, 0, to - from);
        if ms == 1 {
            from_bytes.segment(&syn(0, true), SegmentPayload::Bytes(&[]));
            described.segment(&syn(0, true), SegmentPayload::Packets(&[]));
        }
        let starting = |d: &&PacketDescriptor| (from as u64..to as u64).contains(&d.offset);
        let here: Vec<PacketDescriptor> = descriptors.iter().filter(starting).copied().collect();
        let expected = feed(&mut from_bytes, &sent, &stream[from..to]);
        let annotations = described.segment(&sent, SegmentPayload::Packets(&here));
        let packets = annotations.packets.iter().map(|completed| &completed.packet);
        let found: Vec<_> = packets
            .map(|packet| (packet.kind.mqtt().expect("MQTT"), packet.first.frame, packet.complete.frame))
            .collect();
        assert_eq!((annotations.verdict.marks, found), expected);
    }
    let (from_bytes, described) = (from_bytes.finish(), described.finish());
    for qos in 0..3 {
        assert_eq!(from_bytes.directions[0].published(qos), described.directions[0].published(qos));
    }
}

#[test]
fn an_answer_is_timed_from_the_first_copy_of_its_request() {
    let mut analyser = analyser();
    feed(&mut analyser, &syn(0, true), &[]);
    feed(&mut analyser, &syn(1, false), &[]);
    let mut packet = publish("lab/room", 9, 10);
    feed(&mut analyser, &segment(10, true, 0, 0, packet.len()), &packet);
    packet[0] |= 8;
    feed(&mut analyser, &segment(40, true, packet.len() as u32, 0, packet.len()), &packet);
    feed(&mut analyser, &segment(60, false, 0, 2 * packet.len() as u32, 4), &[0x40, 2, 0, 9]);
    let analysis = analyser.finish();
    let tally = &analysis.directions[0];
    assert_eq!(tally.exchanged_ns(Exchange::PublishPuback).summary().max, 50_000_000);
    assert_eq!(tally.publish_dup, 1);
}
