//! Where a capture shows what clients prove themselves with, and other bytes in its place.
//!
//! ```text
//!   TCP, client to server │ CONNECT … user name, password, authentication data │ AUTH … data │ (not read any further)
//!                         │ GET path HTTP/1.1 … │ frame: mask, CONNECT … │
//! ```
//!
//! A client's stream is read from its SYN on, or from the first segment that begins as one does. It is put together from
//! all copies of its segments. Where bytes are missing, or the packet is malformed, all that has come of it counts.
//! [`rewrite`] keeps lengths. A transport checksum that was right is right afterwards.
//!
//! What it does not model: AUTH packets later in a stream (MQTT 5 §4.12.1), and what is in TLS.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use mqttlab_mqtt::packet::{self, Packet};
use mqttlab_mqtt::property::Value;
use mqttlab_mqtt::{FixedHeader, Kind, Version};

use crate::error::CaptureError;
use crate::link::NetworkPacket;
use crate::reader::{CaptureReader, CapturedFrame};
use crate::segment::{Bits, SocketEndpoint, TransportHeader, dissect};

/// Other bytes for a file, by their places in it.
pub type Rewritten = BTreeMap<u64, u8>;

/// Which fields are secret beside passwords and authentication data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecretFields {
    /// User names.
    pub username: bool,
    /// The resource that WebSocket asks for.
    pub path: bool,
}

/// Asterisks for the credentials of all connections in a capture. Those that are asterisks already are left out.
///
/// # Errors
/// It is no capture, contradicts its own format, or cannot be read.
pub fn credentials(file: impl Read, fields: SecretFields) -> Result<Rewritten, CaptureError> {
    let mut reader = CaptureReader::new(BufReader::new(file))?;
    let mut streams = HashMap::<[SocketEndpoint; 2], ClientStream>::new();
    let mut found = Rewritten::new();
    while let Some((frame, place)) = reader.next_placed()? {
        let TransportHeader::Tcp(header, payload) = dissect(&frame) else { continue };
        let ends = [header.source, header.destination];
        if header.bits.has(Bits::SYN) {
            // The port was used before, or this is the first segment.
            if let Some(mut earlier) = streams.remove(&ends) {
                earlier.end(fields, &mut found);
            }
            streams
                .insert(ends, ClientStream { start: header.sequence.wrapping_add(1), ..Default::default() });
        }
        if payload.is_empty() || header.bits.has(Bits::SYN) {
            continue;
        }
        let starts = || ClientStream { start: header.sequence, ..Default::default() };
        let stream = streams.entry(ends).or_insert_with(starts);
        let at = place + (payload.as_ptr() as usize - frame.data.as_ptr() as usize) as u64;
        stream.take(header.sequence, payload, at, fields, &mut found);
    }
    streams.into_values().for_each(|mut stream| stream.end(fields, &mut found));
    Ok(found)
}

/// Writes bytes into a capture, and into its transport checksums what these change.
///
/// # Errors
/// It cannot be read as a capture, or not be written to.
pub fn rewrite(file: &File, mut bytes: Rewritten) -> Result<(), CaptureError> {
    let mut checksums = Rewritten::new();
    let mut reader = CaptureReader::new(BufReader::new(file))?;
    while let Some((frame, place)) = reader.next_placed()? {
        let mut changed = bytes.range(place..place + frame.data.len() as u64).peekable();
        if changed.peek().is_none() {
            continue;
        }
        let changed = changed.map(|(&at, &new)| ((at - place) as usize, new));
        if let Some((at, checksum)) = checksum(&frame, changed) {
            checksums.extend((place + at as u64..).zip(checksum.to_be_bytes()));
        }
    }
    bytes.append(&mut checksums);
    write(file, &bytes).map_err(CaptureError::Io)
}

/// Writes bytes at their places, neighbours together.
///
/// # Errors
/// The file cannot be written to.
pub fn write(file: &File, bytes: &Rewritten) -> io::Result<()> {
    let (mut at, mut run) = (0, Vec::new());
    for (&place, &byte) in bytes {
        if place != at + run.len() as u64 {
            file.write_all_at(&run, at)?;
            (at, run) = (place, Vec::new());
        }
        run.push(byte);
    }
    file.write_all_at(&run, at)
}

/// The bytes that one end of a connection has sent first.
#[derive(Default)]
struct ClientStream {
    /// The sequence number of its first byte.
    start: u32,
    /// The segments that have come, copies too.
    copies: Vec<SegmentCopy>,
    /// What is secret in it, with its mask, once it is known.
    secret: Option<Vec<(Range<usize>, Mask)>>,
}

/// A segment as it stands in a file.
struct SegmentCopy {
    offset: usize,
    place: u64,
    payload: Box<[u8]>,
}

/// A mask of WebSocket (RFC 6455 §5.3), from the byte at which the payload begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mask {
    key: [u8; 4],
    from: usize,
}

impl ClientStream {
    fn take(
        &mut self,
        sequence: u32,
        payload: &[u8],
        place: u64,
        fields: SecretFields,
        found: &mut Rewritten,
    ) {
        let offset = sequence.wrapping_sub(self.start) as usize;
        // Later than any credentials, or before the stream began.
        if offset >= HEAD_MAX {
            return;
        }
        let payload = payload[..payload.len().min(HEAD_MAX - offset)].into();
        let copy = SegmentCopy { offset, place, payload };
        if let Some(secret) = &self.secret {
            copy.hide(secret, found);
            return;
        }
        self.copies.push(copy);
        if let Some(secret) = secret_ranges(&self.beginning(), fields, false) {
            self.settle(secret, found);
        } else if self.copies.len() >= COPIES_MAX {
            self.end(fields, found);
        }
    }

    /// Nothing more comes of it.
    fn end(&mut self, fields: SecretFields, found: &mut Rewritten) {
        if self.secret.is_some() {
            return;
        }
        let here = self.beginning();
        let mut secret = secret_ranges(&here, fields, true).unwrap_or_default();
        // Bytes that are missing may be anywhere in a field.
        if !secret.is_empty() || here.is_empty() {
            secret.push((here.len()..HEAD_MAX, Mask::default()));
        }
        self.settle(secret, found);
    }

    /// All bytes from the first on, up to the first that is missing.
    fn beginning(&self) -> Vec<u8> {
        let mut copies: Vec<&SegmentCopy> = self.copies.iter().collect();
        copies.sort_by_key(|copy| copy.offset);
        let mut bytes = Vec::new();
        for copy in copies {
            if copy.offset > bytes.len() {
                break;
            }
            bytes.extend_from_slice(copy.payload.get(bytes.len() - copy.offset..).unwrap_or_default());
        }
        bytes
    }

    fn settle(&mut self, secret: Vec<(Range<usize>, Mask)>, found: &mut Rewritten) {
        std::mem::take(&mut self.copies).iter().for_each(|copy| copy.hide(&secret, found));
        self.secret = Some(secret);
    }
}

impl SegmentCopy {
    fn hide(&self, secret: &[(Range<usize>, Mask)], found: &mut Rewritten) {
        for (range, mask) in secret {
            for place in range.start.max(self.offset)..range.end.min(self.offset + self.payload.len()) {
                let (byte, at) = (STAR ^ mask.at(place), place - self.offset);
                if self.payload[at] != byte {
                    found.insert(self.place + at as u64, byte);
                }
            }
        }
    }
}

impl Mask {
    fn at(self, place: usize) -> u8 {
        self.key[(place - self.from.min(place)) % 4]
    }
}

/// What is secret at the beginning of a client's stream; `None` as long as more has to come. `is_all` where nothing will.
fn secret_ranges(bytes: &[u8], fields: SecretFields, is_all: bool) -> Option<Vec<(Range<usize>, Mask)>> {
    let mut found = Vec::new();
    let &first = bytes.first()?;
    if first == CONNECT {
        let places = (0..bytes.len()).map(|place| (place, Mask::default())).collect::<Vec<_>>();
        return in_packets(bytes, &places, fields, is_all, found);
    }
    if !b"GET ".starts_with(&bytes[..bytes.len().min(4)]) {
        // TLS, a proxy's preamble, a server, another protocol.
        return Some(found);
    }
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let Some(head) = end.map(|end| end + 4) else {
        return (is_all || bytes.len() >= REQUEST_MAX).then(|| vec![(0..bytes.len(), Mask::default())]);
    };
    if fields.path {
        let line = bytes[4..head].iter().position(|&byte| byte == b' ').map_or(head, |end| 4 + end);
        found.push((4..line, Mask::default()));
    }
    let (inner, places) = unmasked(bytes, head);
    if inner.first().is_some_and(|&first| first != CONNECT) {
        return Some(found);
    }
    in_packets(&inner, &places, fields, is_all, found)
}

/// What is secret in packets, of whose bytes the places in the stream are known.
fn in_packets(
    bytes: &[u8],
    places: &[(usize, Mask)],
    fields: SecretFields,
    is_all: bool,
    mut found: Vec<(Range<usize>, Mask)>,
) -> Option<Vec<(Range<usize>, Mask)>> {
    let mut hide = |range: Range<usize>| {
        found.extend(places[range].iter().map(|&(place, mask)| (place..place + 1, mask)));
    };
    let (mut at, mut version) = (0, Version::V5);
    loop {
        let rest = &bytes[at..];
        let header = match FixedHeader::peek(rest) {
            Ok(Some(header)) if matches!(header.kind, Kind::Connect | Kind::Auth) => header,
            Ok(None) if !is_all => return None,
            _ => return Some(found),
        };
        let Some(body) = rest.get(header.header_len..header.packet_len()) else {
            if is_all {
                hide(at + header.header_len..bytes.len());
                return Some(found);
            }
            return None;
        };
        let start = at + header.header_len;
        let range = |field: &[u8]| {
            let from = start + (field.as_ptr() as usize - body.as_ptr() as usize);
            from..from + field.len()
        };
        let properties = match packet::decode(header, body, version) {
            Ok(Packet::Connect(connect)) => {
                connect.password.into_iter().for_each(|password| hide(range(password)));
                let username = connect.username.filter(|_| fields.username);
                username.into_iter().for_each(|name| hide(range(name.as_bytes())));
                version = connect.version;
                Some(connect.properties)
            }
            Ok(Packet::Auth(auth)) => Some(auth.properties),
            // A malformed one may have a password anywhere.
            _ => {
                hide(start..start + body.len());
                None
            }
        };
        for (id, value) in properties.iter().flat_map(|properties| properties.iter()) {
            if let (AUTHENTICATION_DATA, Value::Binary(data)) = (id, value) {
                hide(range(data));
            }
        }
        at += header.packet_len();
        if version != Version::V5 {
            return Some(found);
        }
    }
}

/// The payloads of a client's WebSocket frames, as far as they have come, each byte with its place and mask.
fn unmasked(bytes: &[u8], mut at: usize) -> (Vec<u8>, Vec<(usize, Mask)>) {
    let (mut inner, mut places) = (Vec::new(), Vec::new());
    while let Some(&[first, second]) = bytes.get(at..at + 2) {
        let (length, long) = match second & 0x7f {
            126 => (bytes.get(at + 2..at + 4).map(number), 2),
            127 => (bytes.get(at + 2..at + 10).map(number), 8),
            short => (Some(u64::from(short)), 0),
        };
        let key_at = at + 2 + long;
        let masked = if second & 0x80 != 0 { 4 } else { 0 };
        let (Some(length), Some(key)) = (length, bytes.get(key_at..key_at + masked)) else { break };
        let from = key_at + masked;
        let mask = Mask { key: key.try_into().unwrap_or_default(), from };
        let end = from.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        if first & 0x0f < CONTROL {
            let payload = from..end.min(bytes.len());
            inner.extend(payload.clone().map(|place| bytes[place] ^ mask.at(place)));
            places.extend(payload.map(|place| (place, mask)));
        }
        at = end.min(bytes.len());
    }
    (inner, places)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// The place of a frame's transport checksum, and what it becomes when bytes change (RFC 1624): as wrong as it was before
/// where offloading had left it wrong.
fn checksum(frame: &CapturedFrame<'_>, changed: impl Iterator<Item = (usize, u8)>) -> Option<(usize, u16)> {
    let (payload, length, within) = match dissect(frame) {
        TransportHeader::Tcp(header, payload) => (payload, header.header_len as usize, 16),
        TransportHeader::Udp(_, payload) => (payload, 8, 6),
        TransportHeader::Other => return None,
    };
    debug_assert!(frame.carried().network != NetworkPacket::Other);
    let start = (payload.as_ptr() as usize - frame.data.as_ptr() as usize).checked_sub(length)?;
    let at = start + within;
    let before = u16::from_be_bytes(frame.data.get(at..at + 2)?.try_into().ok()?);
    if within == 6 && before == 0 {
        // UDP without a checksum (RFC 768).
        return None;
    }
    let mut sum = i64::from(!before);
    for (place, new) in changed.filter(|&(place, _)| place >= start + length) {
        let change = i64::from(new) - i64::from(frame.data[place]);
        sum += if (place - start).is_multiple_of(2) { change << 8 } else { change };
    }
    let sum = match sum.rem_euclid(0xffff) {
        // In ones' complement this is zero, too; a sum over a header is never the other one.
        0 => 0xffff,
        sum => sum as u16,
    };
    let after = if within == 6 && !sum == 0 { 0xffff } else { !sum };
    Some((at, after))
}

const STAR: u8 = b'*';
const CONNECT: u8 = 0x10;
/// Opcodes from here on are control frames (RFC 6455 §5.2).
const CONTROL: u8 = 8;
/// MQTT 5 §3.1.2.11.10.
const AUTHENTICATION_DATA: u8 = 0x16;
/// A will of 64 KiB may stand before the password, and WebSocket's request before that.
const HEAD_MAX: usize = 1 << 18;
/// Nor is its beginning in more segments than these.
const COPIES_MAX: usize = 4096;
/// A request of WebSocket that is longer is none.
const REQUEST_MAX: usize = 1 << 16;
