//! WebSocket (RFC 6455) as somebody sees it who is neither end: the upgrade, then frames without their masks.
//!
//! ```text
//!   Head ──upgrade──► Header ⇄ Payload ──hole beyond the frame, or no frame──► Searching ──► Header
//! ```
//!
//! A hole inside a frame's payload is as long inside, and the frame's end stays known; the mask goes on, because it counts
//! from the frame's first byte (§5.3). After any other hole, and in a stream whose start was not captured, the next frame
//! is searched: a header that is possible in this direction, behind which a control packet of MQTT begins that fits into
//! the frame. Where segments start that is enough, because frames are mostly sent so; elsewhere the next frame's header
//! must follow as well.
//!
//! What it does not model: extensions. Frames that use one (compression) are passed over, and count as impossible.

use super::stream_spans::StreamSpan;
use super::{Chunk, LayerTally, UNKNOWN_BYTES, WebSocketOpening};
use crate::mqtt::fits_packet;

/// One direction.
#[derive(Debug)]
pub(super) struct WebSocketDirection {
    to_server: bool,
    from_start: bool,
    /// Whether the HTTP message names MQTT as what is inside.
    names_mqtt: bool,
    state: WebSocketState,
    counts: LayerTally,
}

/// Both directions.
pub(super) fn both(from_start: [bool; 2]) -> [WebSocketDirection; 2] {
    [WebSocketDirection::new(true, from_start[0]), WebSocketDirection::new(false, from_start[1])]
}

#[derive(Debug)]
enum WebSocketState {
    /// In the HTTP message, as far as it has come.
    Head(Vec<u8>),
    /// In a frame's header, as far as it has come.
    Header(Vec<u8>, Option<StreamSpan>),
    Payload(WebSocketPayload),
    Searching(Box<WebSocketResync>),
    /// Not WebSocket.
    Other,
}

#[derive(Debug)]
struct WebSocketPayload {
    left: u64,
    key: [u8; 4],
    /// How many bytes of the payload have gone by.
    gone: u64,
    kind: WebSocketOpcode,
    /// The header, until its first byte of payload comes.
    header: Option<StreamSpan>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WebSocketOpcode {
    Data,
    Control,
    Extended,
}

/// What has come since framing was lost.
#[derive(Debug, Default)]
struct WebSocketResync {
    bytes: Vec<u8>,
    /// Position in `bytes` at which each part begins, and its place.
    parts: Vec<(usize, StreamSpan)>,
    /// Positions before it start no frame.
    from: usize,
}

/// A frame's header.
#[derive(Clone, Copy, Debug)]
struct WebSocketHeader {
    len: usize,
    payload: u64,
    key: [u8; 4],
    kind: WebSocketOpcode,
}

#[derive(Debug)]
enum HeaderRead {
    Whole(WebSocketHeader),
    TooShort,
    Impossible,
}

impl WebSocketDirection {
    /// A direction whose stream begins with the HTTP message, or in the middle.
    fn new(to_server: bool, from_start: bool) -> WebSocketDirection {
        let state = if from_start {
            WebSocketState::Head(Vec::new())
        } else {
            WebSocketState::Searching(Box::default())
        };
        WebSocketDirection { to_server, from_start, names_mqtt: false, state, counts: LayerTally::default() }
    }

    /// Whether its opening names MQTT as what is inside.
    pub(super) fn names_mqtt(&self) -> bool {
        self.names_mqtt
    }

    /// Whether the start of the stream was captured.
    pub(super) fn is_from_start(&self) -> bool {
        self.from_start
    }

    /// Whether the stream is a WebSocket.
    pub(super) fn opening(&self) -> WebSocketOpening {
        match self.state {
            WebSocketState::Head(_) => WebSocketOpening::Unknown,
            WebSocketState::Other => WebSocketOpening::Refused,
            _ => WebSocketOpening::Upgraded,
        }
    }

    /// Takes the next bytes of the stream below.
    pub(super) fn feed(&mut self, bytes: &[u8], place: StreamSpan, emit: &mut dyn FnMut(Chunk)) {
        self.absorb(bytes, place, emit);
        self.decode(emit);
    }

    fn absorb(&mut self, bytes: &[u8], place: StreamSpan, emit: &mut dyn FnMut(Chunk)) {
        let mut at = 0;
        while at < bytes.len() {
            let rest = place.part(at..bytes.len(), bytes.len());
            if let WebSocketState::Searching(search) = &mut self.state {
                return search.push(&bytes[at..], rest);
            }
            at += self.step(&bytes[at..], rest, emit);
        }
    }

    /// Bytes of the stream below are missing.
    pub(super) fn miss(&mut self, len: u64, emit: &mut dyn FnMut(Chunk)) {
        match &mut self.state {
            WebSocketState::Other => {}
            WebSocketState::Payload(payload) if len <= payload.left => {
                let WebSocketPayload { kind, .. } = *payload;
                payload.gone += len;
                payload.left -= len;
                payload.header = None;
                if payload.left == 0 {
                    self.state = WebSocketState::Header(Vec::new(), None);
                }
                if kind == WebSocketOpcode::Data {
                    emit(Chunk::missing(len));
                }
            }
            _ => self.lose(emit),
        }
    }

    /// No more will come; what was counted.
    pub(super) fn finish(&mut self) -> LayerTally {
        if let WebSocketState::Searching(search) = &mut self.state {
            self.counts.skipped_bytes += search.bytes.len() as u64;
            **search = WebSocketResync::default();
        }
        self.counts
    }

    /// Takes bytes up to the next change of state; none when that is a loss of framing.
    fn step(&mut self, bytes: &[u8], place: StreamSpan, emit: &mut dyn FnMut(Chunk)) -> usize {
        match &mut self.state {
            WebSocketState::Head(head) => {
                let before = head.len();
                head.extend_from_slice(bytes);
                let end = end_of_head(head, before);
                let used = end.unwrap_or(head.len()) - before;
                self.counts.overhead_bytes += used as u64;
                if let Some(end) = end {
                    let text = String::from_utf8_lossy(&head[..end]).to_ascii_lowercase();
                    let opens = opens_websocket(&text, self.to_server);
                    self.names_mqtt = opens && names(&text, "sec-websocket-protocol", "mqtt");
                    self.state =
                        if opens { WebSocketState::Header(Vec::new(), None) } else { WebSocketState::Other };
                } else if head.len() > HEAD_MAX {
                    self.state = WebSocketState::Other;
                }
                used
            }
            WebSocketState::Header(begun, at) => {
                let before = begun.len();
                let wanted = HEADER_MAX.min(before + bytes.len());
                begun.extend_from_slice(&bytes[..wanted - before]);
                let seen = place.part(0..wanted - before, bytes.len()).behind(*at);
                match WebSocketHeader::read(begun, self.to_server) {
                    HeaderRead::Whole(header) => {
                        let seen = place.part(0..header.len - before, bytes.len()).behind(*at);
                        self.begin(header, seen, emit);
                        header.len - before
                    }
                    HeaderRead::TooShort => {
                        *at = Some(seen);
                        wanted - before
                    }
                    HeaderRead::Impossible => {
                        self.counts.skipped_bytes += before as u64;
                        self.counts.impossible += 1;
                        self.lose(emit);
                        0
                    }
                }
            }
            WebSocketState::Payload(payload) => {
                let len = usize::try_from(payload.left).unwrap_or(usize::MAX).min(bytes.len());
                let here = place.part(0..len, bytes.len()).behind(payload.header.take());
                match payload.kind {
                    WebSocketOpcode::Data => emit(Chunk::data(payload.unmask(&bytes[..len]), here)),
                    WebSocketOpcode::Control => self.counts.overhead_bytes += len as u64,
                    WebSocketOpcode::Extended => self.counts.skipped_bytes += len as u64,
                }
                payload.gone += len as u64;
                payload.left -= len as u64;
                if payload.left == 0 {
                    self.state = WebSocketState::Header(Vec::new(), None);
                }
                len
            }
            WebSocketState::Searching(_) => 0,
            WebSocketState::Other => bytes.len(),
        }
    }

    /// A frame begins. What an extension made of its payload nobody reads, so that packets may lie in it.
    fn begin(&mut self, header: WebSocketHeader, seen: StreamSpan, emit: &mut dyn FnMut(Chunk)) {
        self.counts.overhead_bytes += header.len as u64;
        if header.kind == WebSocketOpcode::Extended {
            self.counts.impossible += 1;
            emit(Chunk::missing(UNKNOWN_BYTES));
        }
        let WebSocketHeader { payload, key, kind, .. } = header;
        self.state = if payload == 0 {
            WebSocketState::Header(Vec::new(), None)
        } else {
            WebSocketState::Payload(WebSocketPayload {
                left: payload,
                key,
                gone: 0,
                kind,
                header: Some(seen),
            })
        };
    }

    /// From here on the next frame is searched.
    fn lose(&mut self, emit: &mut dyn FnMut(Chunk)) {
        if let WebSocketState::Searching(search) = &self.state {
            self.counts.skipped_bytes += search.bytes.len() as u64;
        }
        self.state = WebSocketState::Searching(Box::default());
        emit(Chunk::missing(UNKNOWN_BYTES));
    }

    /// Goes on behind what has come since framing was lost, as far as frames are found in it. Each round passes a frame or
    /// ends, so rounds are bounded by bytes.
    fn decode(&mut self, emit: &mut dyn FnMut(Chunk)) {
        while let WebSocketState::Searching(search) = &mut self.state
            && !search.bytes.is_empty()
        {
            let Some(at) = search.find(self.to_server) else {
                self.counts.skipped_bytes += search.forget();
                return;
            };
            let search = std::mem::take(search);
            self.counts.skipped_bytes += at as u64;
            self.state = WebSocketState::Header(Vec::new(), None);
            for (place, bytes) in search.parts_from(at) {
                self.absorb(bytes, place, emit);
            }
        }
    }
}

impl WebSocketPayload {
    fn unmask(&self, bytes: &[u8]) -> Vec<u8> {
        let keys = self.key.iter().cycle().skip((self.gone % 4) as usize);
        bytes.iter().zip(keys).map(|(byte, key)| byte ^ key).collect()
    }
}

impl WebSocketHeader {
    /// Reads a header out of bytes that may end too early (§5.2).
    fn read(bytes: &[u8], masked: bool) -> HeaderRead {
        let &[first, second, ref rest @ ..] = bytes else { return HeaderRead::TooShort };
        let (opcode, reserved) = (first & 0x0f, first & 0x70);
        let is_control = opcode & 8 != 0;
        let is_known = matches!(opcode, 0..=2 | 8..=10);
        // A client masks every frame, a server none (§5.1); only data may be in fragments (§5.5).
        if !is_known || (second & 0x80 != 0) != masked || is_control && (first & 0x80 == 0 || reserved != 0) {
            return HeaderRead::Impossible;
        }
        let (payload, length_bytes) = match second & 0x7f {
            126 => match rest.first_chunk() {
                Some(length) => (u64::from(u16::from_be_bytes(*length)), 2),
                None => return HeaderRead::TooShort,
            },
            127 => match rest.first_chunk() {
                Some(length) => (u64::from_be_bytes(*length), 8),
                None => return HeaderRead::TooShort,
            },
            short => (u64::from(short), 0),
        };
        if is_control && payload > 125 || payload >> 63 != 0 {
            return HeaderRead::Impossible;
        }
        let mut key = [0; 4];
        if masked {
            let Some(found) = rest[length_bytes..].first_chunk() else { return HeaderRead::TooShort };
            key = *found;
        }
        let kind = match (is_control, reserved) {
            (true, _) => WebSocketOpcode::Control,
            (false, 0) => WebSocketOpcode::Data,
            (false, _) => WebSocketOpcode::Extended,
        };
        let len = 2 + length_bytes + if masked { 4 } else { 0 };
        HeaderRead::Whole(WebSocketHeader { len, payload, key, kind })
    }
}

/// Whether a frame begins with these bytes, as far as they tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderJudgement {
    No,
    /// It may, and ends here.
    Perhaps(usize),
    /// Too few bytes to say.
    Short,
}

/// Judges the header and the control packet behind it. Only whole data frames in one fragment are believed.
fn judge(bytes: &[u8], to_server: bool) -> HeaderJudgement {
    if bytes.first().is_some_and(|&first| first != FIRST_OF_BINARY) {
        return HeaderJudgement::No;
    }
    let header = match WebSocketHeader::read(bytes, to_server) {
        HeaderRead::Whole(header) => header,
        HeaderRead::TooShort => return HeaderJudgement::Short,
        HeaderRead::Impossible => return HeaderJudgement::No,
    };
    let behind = &bytes[header.len..];
    let payload =
        WebSocketPayload { left: header.payload, key: header.key, gone: 0, kind: header.kind, header: None };
    let head = payload.unmask(&behind[..behind.len().min(PACKET_HEADER_MAX)]);
    match fits_packet(&head, header.payload, to_server) {
        Some(true) => HeaderJudgement::Perhaps(header.len.saturating_add(header.payload as usize)),
        Some(false) => HeaderJudgement::No,
        None => HeaderJudgement::Short,
    }
}

/// Whether a stream whose start was not captured seems to be a WebSocket with MQTT: a segment begins with a whole frame.
pub(crate) fn begun(bytes: &[u8], to_server: bool) -> bool {
    matches!(judge(bytes, to_server), HeaderJudgement::Perhaps(_))
}

impl WebSocketResync {
    fn push(&mut self, bytes: &[u8], place: StreamSpan) {
        self.parts.push((self.bytes.len(), place));
        self.bytes.extend_from_slice(bytes);
    }

    /// The first position that is believed to start a frame.
    fn find(&mut self, to_server: bool) -> Option<usize> {
        let starts = self.parts.len().saturating_sub(STARTS_JUDGED);
        let at_start = self.parts[starts..].iter().map(|(at, _)| *at);
        let believed = at_start.filter(|&at| begun(&self.bytes[at..], to_server)).min();
        if believed.is_some() {
            return believed;
        }
        while self.from < self.bytes.len() {
            let rest = &self.bytes[self.from..];
            match judge(rest, to_server) {
                HeaderJudgement::No => {}
                HeaderJudgement::Short => return None,
                HeaderJudgement::Perhaps(end) if end > SEARCHED_MAX / 2 => {}
                HeaderJudgement::Perhaps(end) => match rest.get(end) {
                    None if end == rest.len() => return Some(self.from),
                    None => return None,
                    Some(&next) if next & 0x70 == 0 && matches!(next & 0x0f, 0..=2 | 8..=10) => {
                        return Some(self.from);
                    }
                    Some(_) => {}
                },
            }
            self.from += 1;
        }
        None
    }

    /// Gives up what can start no frame, and what is too long ago; returns how many bytes these are.
    fn forget(&mut self) -> u64 {
        let excess = self.from.max(self.bytes.len().saturating_sub(SEARCHED_MAX));
        self.bytes.drain(..excess);
        self.from -= self.from.min(excess);
        let covering = self.parts.iter().rposition(|(at, _)| *at <= excess).unwrap_or(0);
        let whole = self.parts.get(covering + 1).map_or(self.bytes.len() + excess, |(at, _)| *at);
        let mut parts = self.parts.split_off(covering);
        if let Some((at, place)) = parts.first_mut() {
            *place = place.part(excess - *at..whole - *at, whole - *at);
        }
        for (at, _) in &mut parts {
            *at = at.saturating_sub(excess);
        }
        if self.bytes.is_empty() {
            parts.clear();
        }
        self.parts = parts;
        excess as u64
    }

    /// What has come from a position on, with its places.
    fn parts_from(&self, from: usize) -> impl Iterator<Item = (StreamSpan, &[u8])> {
        let ends = self.parts.iter().skip(1).map(|(at, _)| *at).chain([self.bytes.len()]);
        self.parts.iter().zip(ends).filter(move |(_, end)| *end > from).map(move |(&(at, place), end)| {
            let start = at.max(from);
            (place.part(start - at..end - at, end - at), &self.bytes[start..end])
        })
    }
}

/// Where the HTTP message ends that these bytes begin (RFC 9112 §2.1); the first `before` of them hold no end.
fn end_of_head(bytes: &[u8], before: usize) -> Option<usize> {
    let from = before.saturating_sub(3);
    bytes[from..].windows(4).position(|window| window == b"\r\n\r\n").map(|at| from + at + 4)
}

/// Whether an HTTP message, in small letters, asks for a WebSocket, or grants it (RFC 6455 §4.1, §4.2.2).
fn opens_websocket(head: &str, to_server: bool) -> bool {
    let begins = if to_server { head.starts_with("get ") } else { head.split(' ').nth(1) == Some("101") };
    begins && names(head, "upgrade", "websocket")
}

/// Whether a header of this name has a value that contains `word`: the subprotocol of MQTT 3.1 is `mqttv3.1`.
fn names(head: &str, header: &str, word: &str) -> bool {
    let fields = head.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
    fields.into_iter().any(|(name, value)| name.trim() == header && value.contains(word))
}

/// FIN and the opcode of binary data.
const FIRST_OF_BINARY: u8 = 0x82;
const HEADER_MAX: usize = 14;
/// The longest fixed header of a control packet.
const PACKET_HEADER_MAX: usize = 5;
/// The longest HTTP message that may open a WebSocket.
const HEAD_MAX: usize = 16 * 1024;
/// Bytes in which a frame is searched at once.
const SEARCHED_MAX: usize = 64 * 1024;
/// Starts of segments that are judged again when more has come: one may be too short for a header.
const STARTS_JUDGED: usize = 4;
