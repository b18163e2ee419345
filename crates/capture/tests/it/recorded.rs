//! Frames of our own recordings: what the sender did is told apart from what the links did.

use mqttlab_capture::FrameWitness;
use mqttlab_recording::{Client, Direction, Frame, FrameAnalyser, FrameFate, Layout, Towards};
use mqttlab_units::{Duration, Instant};
use mqttlab_zmtp::{SocketType, command, greeting};

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const BROKER: [u8; 4] = [10, 0, 0, 2];
const SYN: u8 = 2;
const ACK: u8 = 16;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

/// An IP packet with a TCP segment between port 40000 and 1883.
fn packet(up: bool, flags: u8, seq: u32, ack: u32, payload: &[u8]) -> Vec<u8> {
    let length = 40 + payload.len() as u16;
    let mut bytes = vec![0x45, 0];
    bytes.extend(length.to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    let (source, destination) = if up { (CLIENT, BROKER) } else { (BROKER, CLIENT) };
    bytes.extend(source);
    bytes.extend(destination);
    let (source, destination) = if up { (40_000_u16, 1883) } else { (1883, 40_000_u16) };
    bytes.extend(source.to_be_bytes());
    bytes.extend(destination.to_be_bytes());
    bytes.extend(seq.to_be_bytes());
    bytes.extend(ack.to_be_bytes());
    bytes.extend([5 << 4, flags, 1, 0, 0, 0, 0, 0]);
    bytes.extend(payload);
    bytes
}

fn frame(number: u64, up: bool, entered_ms: u64, bytes: &[u8]) -> Frame {
    let entered = at(entered_ms);
    Frame {
        link: u16::from(!up),
        direction: if up { Direction::Up } else { Direction::Down },
        hop: 0,
        hops: 1,
        frame: number,
        from_host: u16::from(up),
        to_host: u16::from(!up),
        frame_bytes: bytes.len() as u32,
        entered,
        start: Some(entered),
        sent: Some(entered),
        delivered: Some(entered + Duration::from_ms(20)),
        fate: FrameFate::Delivered,
        cause: None,
        repetition: None,
    }
}

/// A witness that has seen a handshake.
fn connected() -> FrameWitness {
    let mut witness = FrameWitness::new(vec![1883]);
    let handshake = [
        packet(true, SYN, 999, 0, &[]),
        packet(false, SYN | ACK, 4999, 1000, &[]),
        packet(true, ACK, 1000, 5000, &[]),
    ];
    for (number, bytes) in handshake.iter().enumerate() {
        witness.frame(&frame(number as u64, number != 1, 20 * number as u64, bytes), bytes);
    }
    witness
}

fn completed(witness: &mut FrameWitness) -> Vec<(Option<u64>, u32)> {
    let mut rows = Vec::new();
    witness.control_packets(true, &mut |row| rows.push((row.complete_ns, row.segments.unwrap())));
    rows
}

fn metric(witness: &mut FrameWitness, name: &str) -> f64 {
    let mut value = f64::NAN;
    witness.network_metrics(&mut |row| {
        if row.scope == "run" && row.metric == name {
            value = row.value;
        }
    });
    value
}

/// PINGREQ.
const PING: [u8; 2] = [0xc0, 0];

#[test]
fn a_copy_that_the_link_made_was_not_sent_but_it_arrives() {
    let mut witness = connected();
    let bytes = packet(true, ACK, 1000, 5000, &PING);
    let original = frame(3, true, 60, &bytes);
    assert_eq!(witness.frame(&original, &bytes).mqtt, Some("PINGREQ"));
    let copy = Frame {
        frame: 4,
        delivered: Some(at(70)),
        fate: FrameFate::Duplicated,
        ..frame(3, true, 60, &bytes)
    };
    let headers = witness.frame(&copy, &bytes);
    assert_eq!((headers.connection, headers.marks, headers.mqtt), (Some(0), None, None));
    // It was earlier than what it copies, at 80 ms.
    assert_eq!(completed(&mut witness), [(Some(70_000_000), 1)]);
    assert_eq!(metric(&mut witness, "frames"), 4.0);
    assert_eq!(metric(&mut witness, "tcp_analysis_retransmissions"), 0.0);
}

#[test]
fn a_copy_made_on_one_link_arrives_over_the_next() {
    let mut witness = connected();
    let bytes = packet(true, ACK, 1000, 5000, &PING);
    let original = Frame { hops: 2, ..frame(3, true, 60, &bytes) };
    let copy = Frame { frame: 4, fate: FrameFate::Duplicated, ..original };
    witness.frame(&original, &bytes);
    witness.frame(&copy, &bytes);
    let second = Frame { hop: 1, delivered: Some(at(130)), ..original };
    let lost = Frame { fate: FrameFate::Dropped, delivered: None, ..second };
    witness.frame(&lost, &bytes);
    witness.frame(&Frame { frame: 4, ..second }, &bytes);
    assert_eq!(completed(&mut witness), [(Some(130_000_000), 1)]);
}

#[test]
fn frames_on_later_links_keep_the_number_of_their_connection_when_its_ports_are_used_again() {
    let mut witness = connected();
    let data = packet(true, ACK, 1000, 5000, &PING);
    let bare = packet(true, ACK, 1000, 5000, &[]);
    let [first_data, first_bare] = [3, 4].map(|number| Frame { hops: 2, ..frame(number, true, 60, &data) });
    witness.frame(&first_data, &data);
    witness.frame(&first_bare, &bare);
    let syn = packet(true, SYN, 77_000, 0, &[]);
    let reused = Frame { hops: 2, ..frame(5, true, 70, &syn) };
    assert_eq!(witness.frame(&reused, &syn).connection, Some(1));
    let late = |frame: Frame| Frame { hop: 1, entered: at(80), ..frame };
    let headers = witness.frame(&late(first_data), &data);
    assert_eq!((headers.connection, headers.stream_offset), (Some(0), Some(0)));
    let headers = witness.frame(&late(first_bare), &bare);
    assert_eq!((headers.connection, headers.stream_offset), (Some(0), None), "a bare acknowledgement");
    assert_eq!(witness.frame(&late(reused), &syn).connection, Some(1));
    let next = packet(true, ACK, 77_001, 1, &PING);
    let headers = witness.frame(&frame(6, true, 90, &next), &next);
    assert_eq!((headers.connection, headers.stream_offset), (Some(1), Some(0)));
}

#[test]
fn a_round_trip_counts_in_the_direction_of_the_data() {
    let mut witness = connected();
    let data = packet(true, ACK, 1000, 5000, &PING);
    let ack = packet(false, ACK, 5000, 1002, &[]);
    witness.frame(&frame(3, true, 60, &data), &data);
    witness.frame(&frame(4, false, 90, &ack), &ack);
    completed(&mut witness);
    let mut seen = Vec::new();
    witness.network_metrics(&mut |row| {
        let trips = ["tcp_analysis_ack_rtt_s_count", "tcp_analysis_ack_rtt_s_max"].contains(&row.metric);
        if row.scope == "direction" && trips {
            seen.push((row.direction, (1000.0 * row.value).round()));
        }
    });
    // The SYN, at 0, and the data; the broker's SYN, at 20.
    let (to_broker, to_client) = (Some(Towards::Broker), Some(Towards::Client));
    assert_eq!(seen, [(to_broker, 2000.0), (to_broker, 30.0), (to_client, 1000.0), (to_client, 20.0)]);
}

#[test]
fn a_frame_that_the_sender_repeats_is_a_retransmission() {
    let mut witness = connected();
    let bytes = packet(true, ACK, 1000, 5000, &PING);
    let lost = Frame { fate: FrameFate::Dropped, delivered: None, ..frame(3, true, 60, &bytes) };
    witness.frame(&lost, &bytes);
    let again = witness.frame(&frame(4, true, 360, &bytes), &bytes);
    assert_eq!((again.marks, again.mqtt), (Some("retransmission"), None));
    assert_eq!(completed(&mut witness), [(Some(380_000_000), 2)]);
    assert_eq!(metric(&mut witness, "tcp_analysis_retransmissions"), 1.0);
}

/// Rows since they were last asked for: towards the broker or not, what, and of which client.
fn told(witness: &mut FrameWitness, end: bool) -> Vec<(Towards, String, Option<u32>)> {
    let mut rows = Vec::new();
    witness.control_packets(end, &mut |row| rows.push((row.direction, row.kind.to_owned(), row.client)));
    rows
}

/// A server that greets and is ready before a frame of the client's READY: what it sends, as one segment.
fn greeted_by_a_server_that_did_not_wait() -> FrameWitness {
    let mut witness = connected();
    let client =
        Client { name: "sub-0".into(), group: "sub".into(), host: 1, session: None, is_program: false };
    witness.begin(&Layout { clients: vec![client], ..Layout::default() });
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    greeting::encode(&mut ours);
    greeting::encode(&mut theirs);
    command::ready(SocketType::Xpub, None, &mut theirs);
    let (up, down) = (packet(true, ACK, 1000, 5000, &ours), packet(false, ACK, 5000, 1064, &theirs));
    witness.frame(&frame(3, true, 60, &up), &up);
    witness.frame(&frame(4, false, 80, &down), &down);
    // Somebody else's frame, behind the arrival of both.
    let other = packet(true, ACK, 1064, 5000, &[]);
    witness.frame(&frame(5, true, 105, &other), &other);
    witness
}

#[test]
fn what_a_zeromq_server_says_before_its_client_has_a_name_waits_for_that() {
    let mut witness = greeted_by_a_server_that_did_not_wait();
    assert_eq!(told(&mut witness, false), []);
    let mut ready = Vec::new();
    command::ready(SocketType::Sub, Some("sub-0"), &mut ready);
    let bytes = packet(true, ACK, 1064, 5000, &ready);
    witness.frame(&frame(6, true, 106, &bytes), &bytes);
    let row = |towards, kind: &str| (towards, kind.to_owned(), Some(0));
    let expected = [
        row(Towards::Broker, "GREETING"),
        row(Towards::Client, "GREETING"),
        row(Towards::Client, "READY"),
        row(Towards::Broker, "READY"),
    ];
    assert_eq!(told(&mut witness, true), expected);
}

#[test]
fn a_zeromq_client_that_never_says_its_name_has_none_and_nothing_is_lost() {
    let mut witness = greeted_by_a_server_that_did_not_wait();
    assert_eq!(told(&mut witness, false), []);
    let kinds: Vec<_> =
        told(&mut witness, true).into_iter().map(|(_, kind, client)| (kind, client)).collect();
    assert_eq!(kinds, ["GREETING", "GREETING", "READY"].map(|kind| (kind.to_owned(), None)));
}
