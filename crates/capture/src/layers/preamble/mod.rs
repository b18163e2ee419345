//! What stands before a connection's own protocol: PROXY headers, and what opens a tunnel through a proxy.
//!
//! ```text
//!   client ──► PROXY header … CONNECT host … SOCKS request ──► what the connection carries: MQTT, TLS, WebSocket
//!   server ──►                200 …          SOCKS reply   ──► likewise
//! ```
//!
//! Preambles may follow one another: a balancer adds its header in front of another one's, and a client asks a proxy for the next
//! proxy. Bytes of a preamble are bytes of TCP alone. What lies behind it keeps its offset in the TCP stream.
//!
//! Both directions are held until it is known where their preambles end. The server's answers are read as the client's requests
//! ask for them, whichever comes first in the capture. Where bytes of a preamble are missing, its direction goes on behind the hole.
//!
//! What it does not model: GSSAPI in SOCKS5, SOCKS streams whose SYN was not captured, proxies that are reached over TLS.

mod http;
mod proxy;
mod socks;

use std::collections::VecDeque;

use super::{Opened, OpenedBytes};
use crate::reassembly::{SegmentPayload, Sighting, StreamPiece};
use crate::segment::SocketEndpoint;

/// What stood before a connection's own protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preamble {
    /// What it consists of, in its order: `PROXY protocol, version 1`, `HTTP CONNECT`, `SOCKS5`.
    pub kinds: Vec<&'static str>,
    /// The client, as the innermost PROXY header names it.
    pub client: Option<SocketEndpoint>,
    /// What the last proxy was asked to connect to.
    pub target: Option<String>,
    /// Why the proxy did not connect.
    pub refusal: Option<String>,
    /// Bytes of the preamble, towards the server and from it.
    pub bytes: [u64; 2],
}

impl Preamble {
    /// The server that the proxy was asked for, where it was asked by address.
    pub fn server(&self) -> Option<SocketEndpoint> {
        let end: std::net::SocketAddr = self.target.as_ref()?.parse().ok()?;
        Some(SocketEndpoint { address: end.ip(), port: end.port() })
    }
}

/// Reads the beginning of a connection until its own protocol begins.
#[derive(Debug, Default)]
pub(crate) struct PreambleReader {
    ways: [HeldStream; 2],
    /// What the client's next bytes are a part of.
    asks: Asking,
    /// What the server owes an answer to.
    awaited: VecDeque<Answer>,
    found: Preamble,
    ready: VecDeque<Opened>,
}

/// The part of a direction that is held.
#[derive(Debug, Default)]
struct HeldStream {
    bytes: Vec<u8>,
    /// Where each piece begins, and where it was seen.
    pieces: VecDeque<(usize, Sighting)>,
    /// The offset of the first byte.
    offset: u64,
    /// Whether its preambles are over.
    is_over: bool,
}

/// What the client's next bytes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Asking {
    /// A preamble, or what lies behind it.
    #[default]
    Anything,
    /// Behind a greeting of SOCKS5: a password, or the request.
    Socks5,
}

/// What the server's next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Http,
    /// The rest of an answer's content: so many bytes, or chunks.
    HttpContent(u64),
    HttpChunks,
    Socks4,
    Socks5Method,
    Socks5Password,
    Socks5,
}

/// What bytes are the beginning of.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part<T> {
    /// More of them are needed.
    Short,
    /// A part of this length, and what it says.
    Whole(usize, T),
    /// Something else.
    Other,
}

/// What a client's part says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Request {
    /// The client's address, where the header names one.
    Proxy(&'static str, Option<SocketEndpoint>),
    Connect(String),
    Socks4(String),
    Socks5Greeting,
    Socks5Password,
    Socks5(String),
}

/// What a server's part says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Reply {
    refusal: Option<String>,
    /// What follows at once.
    next: Vec<Answer>,
    /// Whether it is provisional, so that another one follows.
    is_last: bool,
}

impl PreambleReader {
    /// Whether a client's stream that begins so may begin with a preamble, or is too short to say. Without the stream's start the
    /// beginning must be certain.
    pub(crate) fn may_begin(bytes: &[u8], from_start: bool) -> bool {
        match bytes {
            [] => false,
            _ if from_start => is_short(bytes) || request(bytes) != Part::Other,
            [4 | 5, ..] => false,
            _ => bytes.len() >= CERTAIN_MIN && request(bytes) != Part::Other,
        }
    }

    /// Whether nothing is held any more.
    pub(crate) fn is_over(&self) -> bool {
        self.ways.iter().all(|way| way.is_over) && self.ready.is_empty()
    }

    /// What was found; `None` where there was no preamble.
    pub(crate) fn found(&self) -> Option<&Preamble> {
        Some(&self.found).filter(|found| !found.kinds.is_empty())
    }

    /// Takes the next piece of a direction's stream.
    pub(crate) fn feed(&mut self, way: usize, piece: &StreamPiece<'_>) {
        match *piece {
            StreamPiece::Data { offset, payload: SegmentPayload::Bytes(bytes), seen, .. } => {
                self.ways[way].push(offset, bytes, seen);
            }
            // A simulator's streams have no preambles.
            StreamPiece::Data { .. } => {}
            StreamPiece::Missing { offset, len } => {
                if !self.ways[way].is_over && !self.found.kinds.is_empty() {
                    let held = self.ways[way].bytes.len();
                    self.take(way, held);
                }
                self.release(way);
                self.ready.push_back(Opened {
                    way,
                    offset,
                    content: OpenedBytes::Missing(len),
                    seen: Sighting::NEVER,
                });
            }
        }
        self.read();
    }

    /// No more will come.
    pub(crate) fn finish(&mut self) {
        // What began as a part of a preamble and did not end is the preamble's.
        let begun = self.asks == Asking::Socks5 || request(&self.ways[0].bytes) == Part::Short;
        let is_part = [begun && !self.found.kinds.is_empty(), !self.awaited.is_empty()];
        for (way, is_part) in is_part.into_iter().enumerate() {
            if is_part && !self.ways[way].is_over {
                let held = self.ways[way].bytes.len();
                self.take(way, held);
            }
            self.release(way);
        }
    }

    /// The next part of what lies behind the preambles.
    pub(crate) fn poll(&mut self) -> Option<Opened> {
        self.ready.pop_front()
    }

    /// The direction of the next part.
    pub(crate) fn next_way(&self) -> Option<usize> {
        self.ready.front().map(|opened| opened.way)
    }

    /// The bytes of a direction that come next, as far as they are known: they decide what the connection carries.
    pub(crate) fn ahead(&self, way: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for opened in self.ready.iter().filter(|opened| opened.way == way) {
            let OpenedBytes::Bytes(more) = &opened.content else { break };
            bytes.extend_from_slice(more);
            if bytes.len() > AHEAD_MAX {
                break;
            }
        }
        bytes
    }

    /// Reads as far as the bytes go. Each round takes bytes or ends.
    fn read(&mut self) {
        while !self.ways[0].is_over && self.read_request() {}
        while !self.ways[1].is_over && self.read_answer() {}
        for way in [0, 1] {
            if self.ways[way].is_over {
                self.release(way);
            }
        }
    }

    fn read_request(&mut self) -> bool {
        let bytes = &self.ways[0].bytes;
        if bytes.is_empty() {
            return false;
        }
        let part = match self.asks {
            Asking::Anything if is_short(bytes) => Part::Short,
            Asking::Anything => request(bytes),
            Asking::Socks5 => socks::behind_greeting(bytes),
        };
        let (len, asked) = match part {
            Part::Short if bytes.len() <= HELD_MAX => return false,
            Part::Whole(len, asked) if self.found.kinds.len().max(self.awaited.len()) < PREAMBLES_MAX => {
                (len, asked)
            }
            _ => {
                self.ways[0].is_over = true;
                return false;
            }
        };
        self.asks = if matches!(asked, Request::Socks5Greeting | Request::Socks5Password) {
            Asking::Socks5
        } else {
            Asking::Anything
        };
        self.note(asked);
        self.take(0, len);
        true
    }

    fn note(&mut self, asked: Request) {
        let found = &mut self.found;
        let (kind, answer) = match asked {
            Request::Proxy(kind, client) => {
                found.client = client.or(found.client);
                (kind, None)
            }
            Request::Connect(target) => {
                found.target = Some(target);
                ("HTTP CONNECT", Some(Answer::Http))
            }
            Request::Socks4(target) => {
                found.target = Some(target);
                ("SOCKS4", Some(Answer::Socks4))
            }
            Request::Socks5Greeting => ("SOCKS5", Some(Answer::Socks5Method)),
            Request::Socks5Password => return,
            Request::Socks5(target) => {
                found.target = Some(target);
                return;
            }
        };
        self.awaited.extend(answer);
        // A client that is refused asks again, with its password.
        if found.kinds.last() != Some(&kind) || answer.is_none() {
            found.kinds.push(kind);
        }
    }

    fn read_answer(&mut self) -> bool {
        let bytes = &self.ways[1].bytes;
        let Some(&awaited) = self.awaited.front() else {
            let is_open = self.found.refusal.is_none();
            if is_open || bytes.is_empty() {
                // A server that says so much without being asked has no preamble.
                self.ways[1].is_over = is_open && (self.ways[0].is_over || bytes.len() > HELD_MAX);
                return false;
            }
            // What a proxy says of its refusal, up to the end of the connection.
            let held = bytes.len();
            self.take(1, held);
            return false;
        };
        if bytes.is_empty() {
            return false;
        }
        let part = match awaited {
            Answer::Http => http::answer(bytes),
            Answer::HttpContent(len) => http::content(bytes, len),
            Answer::HttpChunks => http::chunks(bytes),
            Answer::Socks4 => socks::reply_4(bytes),
            Answer::Socks5Method => socks::method(bytes),
            Answer::Socks5Password => socks::password(bytes),
            Answer::Socks5 => socks::reply_5(bytes),
        };
        match part {
            Part::Short if bytes.len() <= HELD_MAX => return false,
            Part::Short | Part::Other => {
                self.ways[1].is_over = true;
                return false;
            }
            Part::Whole(len, reply) => {
                if reply.is_last {
                    self.awaited.pop_front();
                }
                if matches!(awaited, Answer::Http | Answer::Socks4 | Answer::Socks5Method | Answer::Socks5) {
                    self.found.refusal = reply.refusal;
                } else {
                    self.found.refusal = reply.refusal.or(self.found.refusal.take());
                }
                for next in reply.next.into_iter().rev() {
                    self.awaited.push_front(next);
                }
                self.take(1, len);
            }
        }
        true
    }

    /// So many bytes of a direction are the preamble's.
    fn take(&mut self, way: usize, len: usize) {
        self.ways[way].drop_front(len);
        self.found.bytes[way] += len as u64;
    }

    /// Hands on what a direction holds: its preamble is over.
    fn release(&mut self, way: usize) {
        let held = &mut self.ways[way];
        held.is_over = true;
        let bytes = std::mem::take(&mut held.bytes);
        let pieces = std::mem::take(&mut held.pieces);
        let ends = pieces.iter().skip(1).map(|(begin, _)| *begin).chain([bytes.len()]);
        for (&(begin, seen), end) in pieces.iter().zip(ends) {
            let offset = held.offset + begin as u64;
            let content = OpenedBytes::Bytes(bytes[begin..end].to_vec());
            self.ready.push_back(Opened { way, offset, content, seen });
        }
    }
}

impl HeldStream {
    fn push(&mut self, offset: u64, bytes: &[u8], seen: Sighting) {
        if self.bytes.is_empty() {
            self.offset = offset;
            self.pieces.clear();
        }
        self.pieces.push_back((self.bytes.len(), seen));
        self.bytes.extend_from_slice(bytes);
    }

    fn drop_front(&mut self, len: usize) {
        self.bytes.drain(..len);
        self.offset += len as u64;
        while self.pieces.get(1).is_some_and(|(begin, _)| *begin <= len) {
            self.pieces.pop_front();
        }
        for (begin, _) in &mut self.pieces {
            *begin = begin.saturating_sub(len);
        }
        if self.bytes.is_empty() {
            self.pieces.clear();
        }
    }
}

/// What a client's bytes are a preamble of.
fn request(bytes: &[u8]) -> Part<Request> {
    match bytes.first() {
        Some(b'P') => proxy::text(bytes),
        Some(0x0d) => proxy::binary(bytes),
        Some(b'C') => http::request(bytes),
        Some(4) => socks::request_4(bytes),
        Some(5) => socks::greeting(bytes),
        _ => Part::Other,
    }
}

/// Whether bytes are the beginning of a record of TLS or of a request of HTTP, and too few to tell.
fn is_short(bytes: &[u8]) -> bool {
    let begins = |whole: &[u8]| bytes.len() < whole.len() && whole.starts_with(bytes);
    begins(&[0x16, 3]) || bytes.len() < 4 && bytes.starts_with(&[0x16, 3]) || begins(b"GET ")
}

/// A hole-free beginning of what `whole` spells.
fn spells(bytes: &[u8], whole: &[u8]) -> bool {
    let len = bytes.len().min(whole.len());
    bytes[..len] == whole[..len]
}

/// With fewer bytes a preamble is not certain where the stream's start was not captured.
const CERTAIN_MIN: usize = 8;
/// The longest part of a preamble: a header of PROXY version 2 (§2.2).
const HELD_MAX: usize = 16 + 65_535;
/// Preambles of one connection.
const PREAMBLES_MAX: usize = 8;
/// Bytes that decide what a connection carries.
const AHEAD_MAX: usize = 4096;
