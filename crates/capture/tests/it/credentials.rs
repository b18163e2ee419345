//! What clients prove themselves with is overwritten wherever a capture shows it, and nothing else is.

use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;

use mqttlab_capture::credentials::{Rewritten, SecretFields, credentials, rewrite};
use mqttlab_capture::{CaptureReader, TransportHeader, dissect};
use mqttlab_recording::pcapng::PcapngWriter;

const PASSWORD: &[u8] = b"hunter22";
const ALL: SecretFields = SecretFields { username: true, path: true };

/// A capture of one client's segments, each at an offset of its stream, in a file of its own.
struct Capture(PathBuf);

impl Capture {
    fn of(name: &str, segments: &[(u32, &[u8])]) -> Capture {
        let path = std::env::temp_dir().join(format!("mqttlab-credentials-{name}-{}", std::process::id()));
        let mut out = PcapngWriter::new(Vec::new(), "linux", "mqttlab test", "").unwrap();
        out.interface("a up", "").unwrap();
        out.packet(0, 1, &segment(ISN, 0x02, b""), None).unwrap();
        for (offset, payload) in segments {
            let sequence = ISN.wrapping_add(1).wrapping_add(*offset);
            out.packet(0, 2, &segment(sequence, 0x18, payload), Some("a comment")).unwrap();
        }
        fs::write(&path, out.into_inner()).unwrap();
        Capture(path)
    }

    fn open(&self) -> File {
        OpenOptions::new().read(true).write(true).open(&self.0).unwrap()
    }

    fn found(&self, fields: SecretFields) -> Rewritten {
        credentials(self.open(), fields).unwrap()
    }

    /// Hides, and returns the payloads. Checksums must be right, lengths the same, and a second time finds nothing.
    fn hidden(&self, fields: SecretFields) -> Vec<Vec<u8>> {
        let before = fs::metadata(&self.0).unwrap().len();
        rewrite(&self.open(), self.found(fields)).unwrap();
        assert_eq!(fs::metadata(&self.0).unwrap().len(), before);
        assert!(self.found(fields).is_empty(), "it is done");
        let bytes = fs::read(&self.0).unwrap();
        let mut reader = CaptureReader::new(&bytes[..]).unwrap();
        let mut payloads = Vec::new();
        while let Some(frame) = reader.next_frame().unwrap() {
            assert_eq!(sum(frame.data), 0xffff, "the checksum is right");
            let TransportHeader::Tcp(_, payload) = dissect(&frame) else { panic!("a segment") };
            payloads.push(payload.to_vec());
        }
        payloads.remove(0);
        payloads
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A segment over IPv4 with its checksum.
fn segment(sequence: u32, bits: u8, payload: &[u8]) -> Vec<u8> {
    let total = 40 + payload.len() as u16;
    let mut bytes = vec![0x45, 0, (total >> 8) as u8, total as u8, 0, 0, 0, 0, 64, 6, 0, 0];
    bytes.extend([10, 0, 0, 2, 10, 0, 0, 1]);
    bytes.extend([0x9c, 0x40, 0x07, 0x5b]);
    bytes.extend(sequence.to_be_bytes());
    bytes.extend([0, 0, 0, 1, 0x50, bits, 0xff, 0xff, 0, 0, 0, 0]);
    bytes.extend_from_slice(payload);
    let checksum = !(sum(&bytes) as u16);
    bytes[36..38].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// The sum in ones' complement of a segment and its pseudo header: 0xffff where its checksum is right.
fn sum(packet: &[u8]) -> u32 {
    let length = packet.len() as u32 - 20;
    let words =
        packet[12..].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum = words.sum::<u32>() + 6 + length;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

fn field(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat()
}

fn connect(level: u8, password: &[u8]) -> Vec<u8> {
    let properties = if level == 5 { vec![9, 0x15, 0, 1, b'x', 0x16, 0, 2, b'o', b'k'] } else { Vec::new() };
    let head = [&field(b"MQTT")[..], &[level, 0xc2, 0, 60], &properties].concat();
    let body = [head, field(b"sensor"), field(b"alice"), field(password)].concat();
    [&[0x10, body.len() as u8][..], &body].concat()
}

fn replaced(bytes: &[u8], what: &[&[u8]]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for what in what {
        let at = bytes.windows(what.len()).position(|window| window == *what).unwrap();
        bytes[at..at + what.len()].fill(b'*');
    }
    bytes
}

/// A frame of WebSocket's, as a client sends it.
fn masked(key: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    mqttlab_framing::frame::encode(mqttlab_framing::frame::Opcode::Binary, Some(key), payload, &mut out);
    out
}

#[test]
fn of_connect_the_password_goes_and_the_user_name_where_it_is_secret() {
    let packet = connect(4, PASSWORD);
    let sent = [&packet[..], b"\x30\x03\x00\x01t"].concat();
    let capture = Capture::of("plain", &[(0, &sent)]);
    assert_eq!(capture.hidden(SecretFields::default()), [replaced(&sent, &[PASSWORD])]);
    let capture = Capture::of("named", &[(0, &sent)]);
    assert_eq!(capture.hidden(ALL), [replaced(&sent, &[PASSWORD, b"alice"])]);
}

#[test]
fn passwords_of_every_length_leave_the_checksum_right() {
    for length in 1..40_u8 {
        let packet = connect(4, &vec![0xf0 ^ length; length.into()]);
        let stars = replaced(&packet, &[&vec![0xf0 ^ length; length.into()]]);
        assert_eq!(
            Capture::of(&format!("length-{length}"), &[(0, &packet)]).hidden(ALL)[0][30..],
            stars[30..]
        );
    }
}

#[test]
fn authentication_data_goes_from_connect_and_from_auth() {
    let packet = connect(5, PASSWORD);
    let auth = [0xf0, 10, 0x18, 8, 0x15, 0, 1, b'x', 0x16, 0, 1, b'k'];
    let publish = b"\x30\x04\x00\x01t\x00";
    let capture = Capture::of(
        "auth",
        &[(0, &packet), (packet.len() as u32, &auth), (packet.len() as u32 + 12, publish)],
    );
    let hidden = capture.hidden(SecretFields::default());
    assert_eq!(hidden[0], replaced(&packet, &[b"ok", PASSWORD]));
    assert_eq!((hidden[1].last(), &hidden[2][..]), (Some(&b'*'), &publish[..]));
}

#[test]
fn a_password_that_segments_share_goes_from_each_and_from_what_is_sent_again() {
    let packet = connect(4, PASSWORD);
    let cut = packet.len() - 3;
    let (first, second) = packet.split_at(cut);
    let stars = replaced(&packet, &[PASSWORD]);
    let expected = [&stars[cut..], &stars[..cut], &stars[5..], &stars[cut..]];
    let capture =
        Capture::of("shared", &[(cut as u32, second), (0, first), (5, &packet[5..]), (cut as u32, second)]);
    assert_eq!(capture.hidden(SecretFields::default()), expected);
}

#[test]
fn where_bytes_are_missing_or_wrong_all_that_came_goes() {
    let packet = connect(4, PASSWORD);
    // Its first part never came to the file; its end did not; a length in it is wrong.
    let late = Capture::of("late", &[(20, &packet[20..])]).hidden(SecretFields::default());
    assert_eq!(late, [vec![b'*'; packet.len() - 20]]);
    let cut = packet.len() - 3;
    let short = Capture::of("cut", &[(0, &packet[..cut])]).hidden(SecretFields::default());
    assert_eq!(short, [[&packet[..2], &vec![b'*'; cut - 2]].concat()]);
    let mut wrong = packet.clone();
    wrong[13] ^= 0x40;
    let hidden = Capture::of("wrong", &[(0, &wrong)]).hidden(SecretFields::default());
    assert_eq!(hidden, [[&packet[..2], &vec![b'*'; packet.len() - 2]].concat()]);
}

#[test]
fn behind_websocket_a_password_becomes_asterisks_behind_the_same_mask() {
    let request = b"GET /mqtt?token=abc HTTP/1.1\r\nHost: broker\r\n\r\n";
    let (packet, key) = (connect(4, PASSWORD), [1, 0xfe, 0x37, 0x99]);
    let parts = packet.split_at(25);
    let frames = [masked(key, parts.0), masked([9; 4], parts.1)].concat();
    let stars = replaced(&packet, &[PASSWORD, b"alice"]);
    let expected = [masked(key, &stars[..25]), masked([9; 4], &stars[25..])].concat();
    let capture = Capture::of("websocket", &[(0, request), (request.len() as u32, &frames)]);
    assert_eq!(capture.hidden(ALL), [replaced(request, &[b"/mqtt?token=abc"]), expected]);
}

#[test]
fn other_protocols_and_directions_stay_as_they_are() {
    for other in [&b"\x16\x03\x01\x00\x05hello"[..], b"\x20\x02\x00\x00", b"POST / HTTP/1.1\r\n", b"\xff\x00"]
    {
        assert!(Capture::of("other", &[(0, other)]).found(ALL).is_empty());
    }
    let anonymous = b"\x10\x0e\x00\x04MQTT\x04\x02\x00\x3c\x00\x02id";
    assert!(Capture::of("anonymous", &[(0, anonymous)]).found(ALL).is_empty());
}

const ISN: u32 = u32::MAX - 10;
