//! What stands before MQTT, TLS and WebSocket, in every order and cut anywhere: the packets behind it stay where they are.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use mqttlab_capture::{
    AnalysedConnection, Analyser, AnalyserSettings, Bits, ConnectionProtocol, SegmentPayload, SocketEndpoint,
    TcpHeader,
};

use crate::checks::segment;

const MQTT: [&[u8]; 2] = [b"\x10\x10\0\x04MQTT\x04\x02\0\x3c\0\x04dash\xc0\0", b"\x20\x02\0\0\xd0\0"];
const PROXY_1: &[u8] = b"PROXY TCP4 192.0.2.7 10.0.0.2 51000 1883\r\n";
const PROXY_1_UNKNOWN: &[u8] = b"PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n";
const PROXY_1_IPV6: &[u8] = b"PROXY TCP6 2001:db8::7 2001:db8::1 51000 1883\r\n";
const ASK: &[u8] =
    b"CONNECT 10.0.0.9:1883 HTTP/1.1\r\nHost: 10.0.0.9:1883\r\nProxy-Connection: keep-alive\r\n\r\n";
const ASK_AGAIN: &[u8] =
    b"CONNECT 10.0.0.9:1883 HTTP/1.1\r\nHost: 10.0.0.9:1883\r\nProxy-Authorization: Basic dTpw\r\n\r\n";
const GRANTED: &[u8] = b"HTTP/1.1 200 Connection established\r\nContent-Length: 0\r\n\r\n";
const REFUSED: &[u8] =
    b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"lab\"\r\n\
    Content-Length: 12\r\n\r\nHTTP/1.1 no!";
const REFUSED_CHUNKED: &[u8] =
    b"HTTP/1.1 407 Proxy Authentication Required\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nno!\r\n\r\n0\r\n\r\n";

/// A header of PROXY version 2.
fn proxy_2(command: u8, family: u8, addresses: &[u8], fields: &[u8]) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend([0x20 | command, family]);
    header.extend(((addresses.len() + fields.len()) as u16).to_be_bytes());
    header.extend(addresses);
    header.extend(fields);
    header
}

fn proxy_2_ipv4(fields: &[u8]) -> Vec<u8> {
    proxy_2(1, 0x11, &[192, 0, 2, 7, 10, 0, 0, 2, 0xc7, 0x38, 7, 0x5b], fields)
}

/// A SOCKS5 client with a password, and its proxy; the target is a name.
fn socks_5() -> [Vec<u8>; 2] {
    let mut up = b"\x05\x02\0\x02\x01\x04user\x08password\x05\x01\0\x03\x06broker".to_vec();
    up.extend([7, 0x5b]);
    [up, b"\x05\x02\x01\0\x05\0\0\x01\x0a\0\0\x09\x9c\x40".to_vec()]
}

fn pair(up: &[u8], down: &[u8]) -> [Vec<u8>; 2] {
    [up.to_vec(), down.to_vec()]
}

/// Every preamble, by a name.
fn preambles() -> Vec<(&'static str, [Vec<u8>; 2])> {
    let [socks_up, socks_down] = socks_5();
    vec![
        ("version 1", pair(PROXY_1, b"")),
        ("version 1, unknown", pair(PROXY_1_UNKNOWN, b"")),
        ("version 1, short", pair(b"PROXY UNKNOWN\r\n", b"")),
        ("version 1, IPv6", pair(PROXY_1_IPV6, b"")),
        ("version 2", pair(&proxy_2_ipv4(b""), b"")),
        ("version 2, fields", pair(&proxy_2_ipv4(b"\x02\0\x06broker\x04\0\x03\0\0\0"), b"")),
        ("version 2, IPv6", pair(&proxy_2(1, 0x21, &[7; 36], b""), b"")),
        ("version 2, path", pair(&proxy_2(1, 0x31, &[b'/'; 216], b""), b"")),
        ("version 2, local", pair(&proxy_2(0, 0, b"", b""), b"")),
        ("two headers", pair(&[PROXY_1, &proxy_2_ipv4(b"")].concat(), b"")),
        ("tunnel", pair(ASK, GRANTED)),
        ("tunnel at the second try", pair(&[ASK, ASK_AGAIN].concat(), &[REFUSED, GRANTED].concat())),
        ("tunnel behind chunks", pair(&[ASK, ASK_AGAIN].concat(), &[REFUSED_CHUNKED, GRANTED].concat())),
        ("tunnel in a tunnel", pair(&[ASK, ASK].concat(), &[GRANTED, GRANTED].concat())),
        ("provisional answer", pair(ASK, &[b"HTTP/1.1 100 Continue\r\n\r\n", GRANTED].concat())),
        ("SOCKS4", pair(b"\x04\x01\x07\x5b\x0a\0\0\x09user\0", b"\0\x5a\0\0\0\0\0\0")),
        ("SOCKS4a", pair(b"\x04\x01\x07\x5b\0\0\0\x01\0broker\0", b"\0\x5a\0\0\0\0\0\0")),
        ("SOCKS5", [socks_up.clone(), socks_down.clone()]),
        ("header and SOCKS5", [[PROXY_1, &socks_up].concat(), socks_down]),
        (
            "SOCKS5, IPv6",
            pair(
                b"\x05\x01\0\x05\x01\0\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x09\x07\x5b",
                b"\x05\0\x05\0\0\x03\x03box\x9c\x40",
            ),
        ),
    ]
}

/// MQTT in WebSocket frames, behind the upgrade.
fn websocket() -> [Vec<u8>; 2] {
    let mut up = b"GET /mqtt HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n".to_vec();
    let mut down =
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
            .to_vec();
    up.extend([0x82, 0x80 | MQTT[0].len() as u8, 0, 0, 0, 0]);
    up.extend(MQTT[0]);
    down.extend([0x82, MQTT[1].len() as u8]);
    down.extend(MQTT[1]);
    [up, down]
}

/// Streams of a connection with TLS, and the secrets of it.
fn tls() -> ([Vec<u8>; 2], Vec<u8>) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/tls/tls13");
    let bytes = fs::read(file).expect("a corpus file");
    let [secrets, up] = [1, 3].map(|at| usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]])));
    let (key_log, streams) = bytes[5..].split_at(secrets);
    (pair(&streams[..up], &streams[up..]), key_log.to_vec())
}

struct Sent<'a> {
    secrets: &'a [u8],
    size: usize,
    port: u16,
    with_syn: bool,
    /// Segments of the client swapped in the capture.
    swapped: bool,
}

const SENT: Sent<'static> = Sent { secrets: &[], size: 1448, port: 1883, with_syn: true, swapped: false };

/// The packets of both streams, with their places, and the connection.
fn analysed(
    streams: &[Vec<u8>; 2],
    sent: &Sent<'_>,
) -> (Vec<(usize, u64, u64, &'static str)>, AnalysedConnection) {
    let end = |last, port| SocketEndpoint { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port };
    let ends = [end(1, 40_000), end(2, sent.port)];
    let mut analyser = Analyser::new(AnalyserSettings::default());
    analyser.add_secrets(sent.secrets);
    let mut segments = Vec::new();
    if sent.with_syn {
        segments.push((0, 999, Bits::SYN, &[][..]));
        segments.push((1, 999, Bits::SYN.and(Bits::ACK), &[][..]));
    }
    for (way, stream) in streams.iter().enumerate() {
        let first = segments.len();
        for (index, part) in stream.chunks(sent.size).enumerate() {
            segments.push((way, 1000 + (index * sent.size) as u32, Bits::ACK, part));
        }
        if sent.swapped && segments.len() > first + 1 {
            segments.swap(first, first + 1);
        }
    }
    let mut found = Vec::new();
    for (way, sequence, bits, bytes) in segments {
        let header = TcpHeader { sequence, bits, ..segment([ends[way], ends[1 - way]], bytes.len()) };
        let packets = analyser.segment(&header, SegmentPayload::Bytes(bytes)).packets;
        found.extend(packets.iter().cloned());
    }
    found.extend(analyser.flush().iter().cloned());
    let mut places: Vec<_> = found
        .iter()
        .map(|completed| {
            let packet = &completed.packet;
            (completed.direction as usize, packet.start, packet.end, packet.kind.name())
        })
        .collect();
    places.sort_unstable();
    let mut connections = analyser.finish().connections;
    assert_eq!(connections.len(), 1);
    (places, connections.remove(0))
}

#[test]
fn packets_behind_every_preamble_are_those_without_it_however_the_streams_are_cut() {
    let (tls, secrets) = tls();
    for (inside, inner, secrets) in [
        ("MQTT", pair(MQTT[0], MQTT[1]), &[][..]),
        ("WebSocket", websocket(), &[][..]),
        ("TLS", tls, secrets.as_slice()),
    ] {
        let (plain, _) = analysed(&inner, &Sent { secrets, ..SENT });
        assert!(plain.len() >= 4, "{inside}: {plain:?}");
        for (name, [up, down]) in preambles() {
            let lengths = [up.len() as u64, down.len() as u64];
            let streams = [[up, inner[0].clone()].concat(), [down, inner[1].clone()].concat()];
            let shifted: Vec<_> = plain
                .iter()
                .map(|&(way, start, end, kind)| (way, start + lengths[way], end + lengths[way], kind))
                .collect();
            for size in [1, 2, 7, 31, 1448] {
                for port in [1883, 3128] {
                    let sent = Sent { secrets, size, port, ..SENT };
                    let (found, connection) = analysed(&streams, &sent);
                    assert_eq!(found, shifted, "{inside} behind {name}, {size} B, port {port}");
                    assert_eq!(connection.protocol, ConnectionProtocol::Mqtt);
                    assert_eq!(connection.preamble.expect("a preamble").bytes, lengths, "{name}");
                    let skipped = connection.directions.iter().map(|way| way.skipped_bytes + way.impossible);
                    assert_eq!(skipped.sum::<u64>(), 0, "{inside} behind {name}, {size} B");
                }
            }
        }
    }
}

#[test]
fn a_preamble_is_found_without_a_syn_and_where_the_capture_swaps_its_segments() {
    for (name, [up, down]) in preambles() {
        let streams = [[&up, MQTT[0]].concat(), [&down, MQTT[1]].concat()];
        let (whole, _) = analysed(&streams, &SENT);
        let (swapped, connection) = analysed(&streams, &Sent { size: 20, swapped: true, ..SENT });
        assert_eq!(swapped, whole, "{name}");
        assert!(connection.preamble.is_some(), "{name}");
        if !matches!(up[0], 4 | 5) {
            let (found, _) = analysed(&streams, &Sent { with_syn: false, ..SENT });
            assert_eq!(found, whole, "{name}");
        }
    }
}

fn facts(up: &[u8], down: &[u8]) -> mqttlab_capture::Preamble {
    *analysed(&pair(up, down), &SENT).1.preamble.expect("a preamble")
}

#[test]
fn the_client_and_the_target_are_those_that_the_preamble_names() {
    let client = |up: &[u8]| facts(up, b"").client.map(|end| (end.address.to_string(), end.port));
    let ipv4 = Some(("192.0.2.7".to_owned(), 51_000));
    assert_eq!(client(PROXY_1), ipv4);
    assert_eq!(client(&proxy_2_ipv4(b"")), ipv4);
    assert_eq!(client(PROXY_1_IPV6), Some(("2001:db8::7".to_owned(), 51_000)));
    assert_eq!(client(PROXY_1_UNKNOWN), None);
    assert_eq!(client(&proxy_2(0, 0x11, &[9; 12], b"")), None, "the balancer's own connection");
    assert_eq!(client(&[&proxy_2(1, 0x11, &[9; 12], b""), PROXY_1].concat()), ipv4, "the innermost one");
    assert_eq!(facts(ASK, GRANTED).server().map(|end| end.port), Some(1883));
    let [up, down] = socks_5();
    assert_eq!(facts(&up, &down).target.as_deref(), Some("broker:1883"));
    assert_eq!(facts(b"\x04\x01\x07\x5b\x0a\0\0\x09user\0", b"").target.as_deref(), Some("10.0.0.9:1883"));
}

#[test]
fn a_proxy_s_refusal_is_named_and_its_content_is_no_mqtt() {
    for (up, down, words) in [
        (ASK, REFUSED, "HTTP 407 Proxy Authentication Required"),
        (ASK, &b"HTTP/1.0 502 Bad Gateway\r\n\r\n<html>no</html>"[..], "HTTP 502 Bad Gateway"),
        (b"\x05\x01\0", b"\x05\xff", "SOCKS5: no method of authentication is accepted"),
        (b"\x05\x01\x02\x01\x01u\x01p", b"\x05\x02\x01\x01", "SOCKS5: user name or password is wrong"),
        (
            b"\x05\x01\0\x05\x01\0\x01\x0a\0\0\x09\x07\x5b",
            b"\x05\0\x05\x05\0\x01\0\0\0\0\0\0",
            "SOCKS5: connection refused",
        ),
        (b"\x04\x01\x07\x5b\x0a\0\0\x09\0", b"\0\x5b\0\0\0\0\0\0", "SOCKS4: rejected or failed"),
    ] {
        for size in [1, 1448] {
            let (found, connection) = analysed(&pair(up, down), &Sent { size, ..SENT });
            assert!(found.is_empty());
            assert_eq!(connection.protocol, ConnectionProtocol::Unknown, "{words}");
            let preamble = connection.preamble.expect("a preamble");
            assert_eq!(preamble.refusal.as_deref(), Some(words));
            assert_eq!(preamble.bytes, [up.len() as u64, down.len() as u64], "{words}");
            assert!(connection.directions.iter().all(|way| way.impossible + way.skipped_bytes == 0));
        }
    }
}

#[test]
fn a_hole_in_a_preamble_loses_the_preamble_and_no_more() {
    let mut analyser_sees = [[ASK, MQTT[0]].concat(), [GRANTED, MQTT[1]].concat()];
    // The proxy's answer begins behind its first ten bytes.
    analyser_sees[1].drain(..10);
    let (found, connection) = analysed(&analyser_sees, &SENT);
    assert!(found.iter().any(|(way, _, _, kind)| (*way, *kind) == (0, "CONNECT")), "{found:?}");
    assert!(connection.preamble.is_some());
}

#[test]
fn another_protocol_at_the_brokers_port_leaves_its_first_bytes() {
    for stream in
        [&b"SSH-2.0-OpenSSH_9.2\r\n"[..], b"\x01\x02\x03\x04", b"PROXY TCP4 nowhere\r\n", b"\x05\x00\x01"]
    {
        let (_, connection) = analysed(&pair(stream, b""), &SENT);
        assert_eq!(connection.strange_bytes.as_deref(), Some(stream));
        assert!(connection.preamble.is_none());
    }
    let (_, connection) = analysed(&pair(MQTT[0], MQTT[1]), &SENT);
    assert_eq!((connection.strange_bytes, connection.preamble), (None, None));
}
