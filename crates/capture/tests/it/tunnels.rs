//! Tunnels and links: the innermost packet is found in every one of them, and named where it cannot be read.

use mqttlab_capture::{CapturedFrame, FrameContent, LinkType, NetworkPacket, UnreadReason};
use mqttlab_units::{Instant, Seed};

fn carried(link: u16, data: &[u8]) -> FrameContent {
    let (link_type, original_len) = (LinkType(link), data.len() as u32);
    CapturedFrame { time: Instant::ZERO, is_timed: true, interface: 0, link_type, original_len, data }
        .carried()
}

fn ip(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 20 + payload.len() as u8, 0, 0, 0, 0, 64, protocol, 0, 0];
    packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(payload);
    packet
}

fn udp(source: u16, destination: u16, parts: &[&[u8]]) -> Vec<u8> {
    let [a, b] = source.to_be_bytes();
    let [c, d] = destination.to_be_bytes();
    ip(17, &[&[a, b, c, d, 0, 0, 0, 0][..], &parts.concat()].concat())
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[0; 12][..], &kind.to_be_bytes(), payload].concat()
}

/// A frame of 802.11 with these first two bytes, and so much more header than the least.
fn wifi(control: [u8; 2], more: usize, payload: &[u8]) -> Vec<u8> {
    let mut frame = control.to_vec();
    frame.resize(24 + more, 0);
    frame.extend([0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
    frame.extend(payload);
    frame
}

fn inner() -> Vec<u8> {
    ip(6, &[7; 20])
}

const RAW: u16 = 101;

/// Frames whose innermost packet is [`inner`], by link.
fn opened() -> Vec<(&'static str, u16, Vec<u8>)> {
    let packet = inner();
    let frame = ethernet(0x800, &packet);
    let tagged = [&[0; 12][..], &[0x81, 0, 0, 5, 8, 0], &packet].concat();
    let gre = |head: &[u8], carried: &[u8]| ip(47, &[head, carried].concat());
    let gtp = |head: &[u8]| udp(2152, 2152, &[head, &packet]);
    vec![
        ("GTP-U", RAW, gtp(&[0x30, 255, 0, 40, 0, 0, 0, 9])),
        ("GTP-U, sequence number", RAW, gtp(&[0x32, 255, 0, 44, 0, 0, 0, 9, 0, 1, 0, 0])),
        ("GTP-U, extension of 5G", RAW, gtp(&[0x34, 255, 0, 48, 0, 0, 0, 9, 0, 0, 0, 0x85, 1, 0x10, 9, 0])),
        (
            "GTP-U, two extensions",
            RAW,
            gtp(&[0x36, 255, 0, 56, 0, 0, 0, 9, 0, 1, 0, 0xc0, 1, 0, 7, 0x85, 2, 0, 9, 0, 0, 0, 0, 0]),
        ),
        ("VXLAN", RAW, udp(9, 4789, &[&[8, 0, 0, 0, 0, 0, 5, 0], &frame])),
        ("VXLAN of Linux, tagged inside", RAW, udp(9, 8472, &[&[8, 0, 0, 0, 0, 0, 5, 0], &tagged])),
        ("VXLAN-GPE", RAW, udp(9, 4790, &[&[0x0c, 0, 0, 1, 0, 0, 5, 0], &packet])),
        ("GENEVE", RAW, udp(9, 6081, &[&[0, 0, 0x65, 0x58, 0, 0, 5, 0], &frame])),
        ("GENEVE, options", RAW, udp(9, 6081, &[&[2, 0, 8, 0, 0, 0, 5, 0, 1, 2, 3, 1, 0, 0, 0, 0], &packet])),
        ("CAPWAP", RAW, udp(5247, 9, &[&[0, 0x10, 2, 0, 0, 0, 0, 0], &frame])),
        ("CAPWAP, Wi-Fi", RAW, udp(9, 5247, &[&[0, 0x10, 3, 0, 0, 0, 0, 0], &wifi([0x88, 1], 2, &packet)])),
        ("L2TP", RAW, udp(1701, 1701, &[&[0, 2, 0, 1, 0, 1, 0xff, 3, 0, 0x21], &packet])),
        (
            "L2TP, all fields",
            RAW,
            udp(1701, 1701, &[&[0x4a, 2, 0, 60, 0, 1, 0, 1, 0, 2, 0, 3, 0, 1, 0, 0, 0x21], &packet]),
        ),
        ("MPLS in UDP", RAW, udp(9, 6635, &[&[0, 1, 1, 64], &packet])),
        ("TZSP", RAW, udp(9, 37_008, &[&[1, 0, 0, 1, 0, 10, 1, 5, 1], &frame])),
        ("GRE", RAW, gre(&[0, 0, 8, 0], &packet)),
        (
            "GRE, checksum, key, sequence",
            RAW,
            gre(&[0xb0, 0, 8, 0, 1, 1, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1], &packet),
        ),
        ("GRE, Ethernet", RAW, gre(&[0x20, 0, 0x65, 0x58, 0, 0, 0, 9], &frame)),
        ("GRE, MPLS", RAW, gre(&[0, 0, 0x88, 0x47], &[&[0, 1, 1, 64][..], &packet].concat())),
        (
            "PPTP",
            RAW,
            gre(&[0x30, 0x81, 0x88, 0x0b, 0, 44, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0xff, 3, 0, 0x21], &packet),
        ),
        ("ERSPAN, type I", RAW, gre(&[0, 0, 0x88, 0xbe], &frame)),
        ("ERSPAN, type II", RAW, gre(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 5, 0, 1, 0, 0, 0, 0], &frame)),
        (
            "ERSPAN, type III",
            RAW,
            gre(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 5, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0], &frame),
        ),
        (
            "ERSPAN, type III with more",
            RAW,
            gre(
                &[
                    0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 5, 0, 1, 0, 0, 0, 9, 0, 0, 0, 1, 9, 9, 9, 9, 9, 9,
                    9, 9,
                ],
                &frame,
            ),
        ),
        ("IP in IP", RAW, ip(4, &packet)),
        ("Ethernet in IP", RAW, ip(97, &[&[0x30, 0][..], &frame].concat())),
        ("authenticated", RAW, ip(51, &[&[4, 4][..], &[0; 22], &packet].concat())),
        (
            "GTP-U in VXLAN",
            RAW,
            udp(
                9,
                4789,
                &[&[8, 0, 0, 0, 0, 0, 5, 0], &ethernet(0x800, &gtp(&[0x30, 255, 0, 40, 0, 0, 0, 9]))],
            ),
        ),
        ("two tags", 1, [&[0; 12][..], &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0], &packet].concat()),
        ("LLC and SNAP", 1, [&[0; 12][..], &[0, 48, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &packet].concat()),
        ("PPPoE", 1, ethernet(0x8864, &[&[0x11, 0, 0, 1, 0, 42, 0, 0x21][..], &packet].concat())),
        ("Wi-Fi", 105, wifi([0x08, 1], 0, &packet)),
        ("Wi-Fi, four addresses and quality", 105, wifi([0x88, 3], 8, &packet)),
        ("radiotap", 127, [&[0, 0, 8, 0, 0, 0, 0, 0][..], &wifi([0x88, 2], 2, &packet)].concat()),
        (
            "radiotap, padded",
            127,
            [&[0, 0, 9, 0, 2, 0, 0, 0, 0x20][..], &wifi([0x88, 2], 4, &packet)].concat(),
        ),
        (
            "per-packet information",
            192,
            [&[0, 0, 8, 0, 105, 0, 0, 0][..], &wifi([0x08, 1], 0, &packet)].concat(),
        ),
        ("Prism", 119, [&[0; 144][..], &wifi([0x08, 1], 0, &packet)].concat()),
        (
            "AVS",
            163,
            [&[0x80, 0x21, 0x10, 1, 0, 0, 0, 64][..], &[0; 56], &wifi([0x08, 1], 0, &packet)].concat(),
        ),
        ("NFLOG", 239, [&[2, 0, 0, 0, 8, 0, 1, 0, 0, 0, 0, 0, 44, 0, 9, 0][..], &packet].concat()),
        ("pflog", 117, [&[61, 2][..], &[0; 62], &packet].concat()),
        ("labels", 219, [&[0, 1, 1, 64][..], &packet].concat()),
    ]
}

#[test]
fn the_innermost_packet_is_found_in_every_tunnel_and_on_every_link() {
    for (name, link, frame) in opened() {
        let found = carried(link, &frame);
        assert_eq!((found.network, found.closed), (NetworkPacket::Ipv4, None), "{name}");
        assert_eq!(frame[found.offset..], inner(), "{name}");
    }
    let v6 = [&[0x60, 0, 0, 0, 0, 40, 60, 64][..], &[0; 32], &[4, 0, 0, 0, 0, 0, 0, 0], &inner()].concat();
    assert_eq!(v6[carried(RAW, &v6).offset..], inner(), "behind options of IPv6");
}

#[test]
fn what_cannot_be_read_is_named() {
    let gtp_without_ip = udp(2152, 2152, &[&[0x30, 255, 0, 4, 0, 0, 0, 9, 0, 0, 0, 0]]);
    for (words, link, frame) in [
        ("GTP-U that carries no IP", RAW, gtp_without_ip),
        ("CAPWAP with DTLS", RAW, udp(9, 5247, &[&[1, 0, 0, 0, 0, 0, 0, 0]])),
        ("IPsec ESP", RAW, ip(50, &[9; 20])),
        ("IPsec ESP in UDP", RAW, udp(4500, 4500, &[&[9; 20]])),
        ("WireGuard", RAW, udp(9, 51_820, &[&[4; 32]])),
        ("GRE that carries neither IP nor Ethernet", RAW, ip(47, &[0, 0, 0x88, 0xcc, 0, 0])),
        (
            "Wi-Fi with encryption (decrypt it with airdecap-ng, or capture behind the access point)",
            105,
            wifi([0x88, 0x41], 2, &[0; 40]),
        ),
        ("link type 150 (for private use)", 150, vec![0; 40]),
    ] {
        assert_eq!(carried(link, &frame).closed.map(|why| why.to_string()).as_deref(), Some(words));
    }
}

#[test]
fn datagrams_to_a_tunnel_s_port_that_have_not_its_header_are_datagrams() {
    for frame in [
        udp(2152, 2152, &[&[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0]]),
        udp(9, 4789, &[b"hello, world"]),
        udp(9, 6635, &[b"hello, world"]),
        udp(1701, 1701, &[&[0xc8, 2, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0]]),
    ] {
        let found = carried(RAW, &frame);
        assert_eq!((found.offset, found.tunnels, found.closed), (0, 0, None::<UnreadReason>));
    }
    assert_eq!(carried(105, &wifi([0x80, 0], 0, &[0; 40])).network, NetworkPacket::Other, "a beacon");
}

/// Frames that end anywhere, and with any byte in them, are read as far as they go.
#[test]
fn no_frame_makes_the_reader_of_tunnels_fail() {
    let mut dice = Seed(1).derive("tunnels").dice();
    for (_, link, whole) in opened() {
        for end in 0..whole.len() {
            carried(link, &whole[..end]);
        }
        for _ in 0..2_000 {
            let mut frame = whole.clone();
            for _ in 0..1 + dice.below(4) {
                let at = dice.below(frame.len() as u64) as usize;
                frame[at] = dice.bits() as u8;
            }
            let found = carried(link, &frame);
            assert!(found.tunnels <= 8);
        }
    }
}
