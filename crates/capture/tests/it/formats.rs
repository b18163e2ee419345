//! The same conversation in every file format, byte order and link type reads the same.

use std::fs;
use std::path::Path;

use mqttlab_capture::mqtt::Kind;
use mqttlab_capture::{Analyser, AnalyserSettings, Analysis, CaptureReader, Completed};

fn read(name: &str) -> (Analysis, Vec<Completed>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/capture").join(name);
    let bytes = fs::read(path).expect("a corpus file");
    let mut reader = CaptureReader::new(&bytes[..]).expect("a capture");
    let mut analyser = Analyser::new(AnalyserSettings::default());
    let mut packets = Vec::new();
    while let Some(frame) = reader.next_frame().expect("a frame") {
        if let Some(annotations) = analyser.frame(&frame) {
            packets.extend_from_slice(annotations.packets);
        }
    }
    assert!(!reader.truncated());
    packets.extend_from_slice(analyser.flush());
    (analyser.finish(), packets)
}

/// Frames, their times in microseconds, IP bytes and MQTT packets.
fn facts(name: &str) -> (u64, u64, u64, u64, Vec<(Kind, u64)>) {
    let (analysis, packets) = read(name);
    let total = &analysis.total;
    let (first, last) = total.span.expect("frames");
    let packets = packets
        .iter()
        .map(|completed| (completed.packet.kind.mqtt().expect("MQTT"), completed.packet.complete.frame))
        .collect();
    (total.frames.count, first.as_ns() / 1_000, last.as_ns() / 1_000, total.ip_bytes, packets)
}

#[test]
fn one_conversation_reads_alike_from_every_format() {
    let reference = facts("pcap-le-ns");
    assert!(reference.4.iter().any(|(kind, _)| *kind == Kind::Publish));
    for name in ["pcap-be-us-ethernet", "pcapng-le"] {
        assert_eq!(facts(name), reference, "{name}");
    }
    // Ticks of 2^-20 s are coarser than a microsecond.
    let coarse = facts("pcapng-binary-offset");
    assert_eq!((coarse.0, coarse.3, &coarse.4), (reference.0, reference.3, &reference.4));
    assert!(coarse.1.abs_diff(reference.1) <= 1 && coarse.2.abs_diff(reference.2) <= 1);
}

#[test]
fn link_types_differ_only_in_their_headers() {
    let (null, null_packets) = read("pcap-null");
    let (sll, sll_packets) = read("pcap-sll");
    assert_eq!(null.total.ip_bytes, sll.total.ip_bytes);
    assert_eq!(sll.total.frames.sum - null.total.frames.sum, (16 - 4) * null.total.frames.count);
    assert_eq!(null_packets.len(), sll_packets.len());
    let (vlan, _) = read("pcap-vlan");
    let (sll2, _) = read("pcap-sll2");
    assert_eq!(vlan.total.tcp_bytes, sll2.total.tcp_bytes);
    assert_eq!(sll2.total.frames.sum - vlan.total.frames.sum, (20 - 18) * vlan.total.frames.count);
}

#[test]
fn ipv6_extension_headers_are_passed_over() {
    let (six, six_packets) = read("pcap-ipv6-hop-by-hop");
    let (four, four_packets) = read("pcap-le-ns");
    assert_eq!(six.total.tcp_bytes, four.total.tcp_bytes);
    // 40 bytes of header and 8 of extension instead of 20.
    assert_eq!(six.total.ip_bytes - four.total.ip_bytes, 28 * six.total.frames.count);
    assert_eq!(six_packets.len(), four_packets.len());
}

#[test]
fn mqtt_5_properties_are_told_from_the_payload() {
    let (_, packets) = read("pcap-sll");
    let publish = packets.iter().find(|c| c.packet.kind == Kind::Publish).expect("a PUBLISH");
    assert_eq!((publish.packet.level, publish.packet.lengths.properties), (5, 1));
    assert_eq!(publish.packet.topic.as_deref(), Some("lab/5"));
}

#[test]
fn every_section_s_interfaces_and_byte_order_count_for_that_section() {
    let (analysis, packets) = read("pcapng-simple-two-sections");
    // The second section holds another conversation, big-endian and on Ethernet.
    assert_eq!(analysis.connections.iter().filter(|connection| connection.is_broker_s).count(), 4);
    let levels: Vec<u8> =
        packets.iter().filter_map(|c| c.packet.connect.as_ref().map(|connect| connect.level)).collect();
    assert_eq!(levels, [4, 5]);
}

#[test]
fn a_file_cut_inside_a_block_ends_there_and_says_so() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/capture/pcapng-le");
    let bytes = fs::read(path).expect("a corpus file");
    let mut reader = CaptureReader::new(&bytes[..bytes.len() / 2]).expect("a capture");
    while reader.next_frame().expect("a frame").is_some() {}
    assert!(reader.truncated());
}
