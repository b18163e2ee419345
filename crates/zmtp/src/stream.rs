//! Packets out of a stream of bytes, however it is cut.
//!
//! Whole packets are read where they lie in the caller's buffer; only what is cut off at its end is kept. Of a message with a
//! large last frame only the beginning is gathered, unless the whole is wanted: the rest is counted and thrown away. Memory grows with
//! what has come, never with what a length promises.

use crate::command::{self, Command};
use crate::frame::FrameHeader;
use crate::greeting::{self, Greeting};
use crate::{Kind, Malformed};

/// What a connection has received of a packet that is not complete.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    greeted: bool,
    gathered: Vec<u8>,
    /// How many bytes must be there before anything can be said.
    needed: usize,
    /// Bytes of the packet that are still to come and not wanted.
    skip: u64,
}

/// A packet, or as much of it as is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raw<'a> {
    /// The greeting, which is first.
    Greeting(Greeting),
    /// A command, and the bytes of its frame.
    Command(Command<&'a [u8]>, usize),
    /// A message.
    Message(Message<'a>),
}

/// A message, or as much of it as is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its first frame.
    pub topic: &'a [u8],
    /// Its second one, perhaps not all of it; empty where there is none.
    pub payload: &'a [u8],
    /// Bytes of the second one.
    pub payload_bytes: u64,
    /// How many frames it has.
    pub frames: usize,
    /// All of its frames as they came, perhaps not all of them.
    pub bytes: &'a [u8],
    /// Bytes of all of them.
    pub len: u64,
}

/// What was found at the beginning of some bytes.
enum FoundPacket<'a> {
    /// This many bytes are needed before more can be said.
    Needs(usize),
    Whole(Raw<'a>, usize),
    /// The beginning of a large message; how many bytes it has in all.
    Large(Message<'a>, u64),
}

impl Decoder {
    /// Takes the next bytes of the stream and hands every packet that they complete to `each`. With `whole`, large
    /// messages are gathered, too.
    ///
    /// # Errors
    /// Bytes that are no packet, or what `each` says.
    pub fn feed<E: From<Malformed>>(
        &mut self,
        mut bytes: &[u8],
        whole: bool,
        mut each: impl FnMut(Raw<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            if self.skip > 0 {
                let skipped = self.skip.min(bytes.len() as u64);
                self.skip -= skipped;
                bytes = &bytes[skipped as usize..];
                if self.skip > 0 {
                    return Ok(());
                }
                self.hand_over(whole, &mut each)?;
            }
            if bytes.is_empty() {
                return Ok(());
            }
            bytes = match self.gathered.is_empty() {
                true => self.read_in_place(bytes, whole, &mut each)?,
                false => self.gather(bytes, whole, &mut each)?,
            };
        }
    }

    /// As for a new connection, with the room that it has.
    pub fn clear(&mut self) {
        self.gathered.clear();
        (self.greeted, self.needed, self.skip) = (false, 0, 0);
    }

    fn read_in_place<'a, E: From<Malformed>>(
        &mut self,
        mut bytes: &'a [u8],
        whole: bool,
        each: &mut impl FnMut(Raw<'_>) -> Result<(), E>,
    ) -> Result<&'a [u8], E> {
        loop {
            match find(bytes, self.greeted, whole)? {
                FoundPacket::Whole(raw, length) => {
                    self.greeted = true;
                    each(raw)?;
                    bytes = &bytes[length..];
                    if bytes.is_empty() {
                        return Ok(bytes);
                    }
                }
                FoundPacket::Needs(needed) => {
                    self.gathered.extend_from_slice(bytes);
                    self.needed = needed;
                    return Ok(&[]);
                }
                FoundPacket::Large(_, length) => {
                    let kept = bytes.len().min(LARGE);
                    self.gathered.extend_from_slice(&bytes[..kept]);
                    self.skip = length - kept as u64;
                    return Ok(&bytes[kept..]);
                }
            }
        }
    }

    fn gather<'a, E: From<Malformed>>(
        &mut self,
        bytes: &'a [u8],
        whole: bool,
        each: &mut impl FnMut(Raw<'_>) -> Result<(), E>,
    ) -> Result<&'a [u8], E> {
        let taken = (self.needed - self.gathered.len()).min(bytes.len());
        self.gathered.extend_from_slice(&bytes[..taken]);
        // A greeting is judged byte by byte: who speaks something else must not be waited for.
        if self.gathered.len() < self.needed && self.greeted {
            return Ok(&[]);
        }
        match find(&self.gathered, self.greeted, whole)? {
            FoundPacket::Needs(needed) => self.needed = needed,
            FoundPacket::Whole(..) => self.hand_over(whole, each)?,
            FoundPacket::Large(_, length) => self.skip = length - self.gathered.len() as u64,
        }
        Ok(&bytes[taken..])
    }

    fn hand_over<E: From<Malformed>>(
        &mut self,
        whole: bool,
        each: &mut impl FnMut(Raw<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let raw = match find(&self.gathered, self.greeted, whole)? {
            FoundPacket::Whole(raw, _) => raw,
            FoundPacket::Large(message, _) => Raw::Message(message),
            FoundPacket::Needs(_) => unreachable!("it was found before"),
        };
        self.greeted = true;
        let result = each(raw);
        self.gathered.clear();
        // One large packet must not hold its memory for the rest of the connection.
        if self.gathered.capacity() > KEEP {
            self.gathered.shrink_to(KEEP);
        }
        result
    }
}

fn find(bytes: &[u8], greeted: bool, whole: bool) -> Result<FoundPacket<'_>, Malformed> {
    if !greeted {
        return Ok(match greeting::decode(bytes)? {
            Some(greeting) => FoundPacket::Whole(Raw::Greeting(greeting), greeting::BYTES),
            None => FoundPacket::Needs(greeting::BYTES),
        });
    }
    let Some(header) = FrameHeader::peek(bytes)? else { return Ok(FoundPacket::Needs(header_needs(bytes))) };
    if !header.command {
        return find_message(bytes, whole);
    }
    // Before anything is gathered: a length is only a promise.
    if header.body_len > COMMAND_MAX {
        return Err(Malformed::TooLong(header.body_len));
    }
    let length = header.frame_len();
    Ok(match bytes.get(header.header_len..length) {
        Some(body) => FoundPacket::Whole(Raw::Command(command::decode(body)?, length), length),
        None => FoundPacket::Needs(length),
    })
}

fn find_message(bytes: &[u8], whole: bool) -> Result<FoundPacket<'_>, Malformed> {
    let (mut start, mut frames) = (0, 0);
    let (mut topic, mut payload, mut payload_bytes): (&[u8], &[u8], _) = (&[], &[], 0);
    loop {
        let rest = &bytes[start..];
        let Some(header) = FrameHeader::peek(rest)? else {
            return Ok(FoundPacket::Needs(start + header_needs(rest)));
        };
        if header.command {
            // Between the frames of a message no command may stand (RFC 37's grammar).
            return Err(Malformed::OutOfPlace(Kind::Command));
        }
        // Before the sums below, which a length near 2^63 would overflow.
        if header.body_len > MESSAGE_MAX - start.min(MESSAGE_MAX as usize) as u64 {
            return Err(Malformed::TooLong(header.body_len));
        }
        // RFC 37 has no such bound; without one empty frames could go on for ever.
        if frames == FRAMES_MAX {
            return Err(Malformed::TooManyFrames);
        }
        let end = start + header.frame_len();
        let body = &rest[header.header_len..rest.len().min(header.frame_len())];
        match frames {
            0 => topic = body,
            1 => (payload, payload_bytes) = (body, header.body_len),
            _ => {}
        }
        frames += 1;
        let message = |bytes| Message { topic, payload, payload_bytes, frames, bytes, len: end as u64 };
        if bytes.len() < end {
            // The whole topic must be among what is gathered.
            let begins = start + header.header_len <= LARGE;
            let is_large = !whole && frames == 2 && !header.more && begins && end > LARGE;
            return Ok(match is_large {
                true if bytes.len() >= LARGE => FoundPacket::Large(message(bytes), end as u64),
                true => FoundPacket::Needs(LARGE),
                false => FoundPacket::Needs(end),
            });
        }
        if !header.more {
            return Ok(FoundPacket::Whole(Raw::Message(message(&bytes[..end])), end));
        }
        start = end;
    }
}

/// How many bytes a frame's header needs whose beginning this is.
fn header_needs(bytes: &[u8]) -> usize {
    // The second bit says that the length has eight bytes.
    if bytes.first().is_some_and(|flags| flags & 2 != 0) { 9 } else { 2 }
}

/// The beginning of a message that is larger than this: room for the longest topic, and for an identity behind it.
const LARGE: usize = 96 << 10;
/// The longest message that is taken, as MQTT has it.
const MESSAGE_MAX: u64 = 256 << 20;
/// The longest command: room for the longest topic.
const COMMAND_MAX: u64 = 96 << 10;
const FRAMES_MAX: usize = 1024;
/// A connection keeps this much room when nothing is cut off.
const KEEP: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SocketType, frame};
    use proptest::prelude::*;

    fn message(frames: &[&[u8]], out: &mut Vec<u8>) {
        for (number, body) in frames.iter().enumerate() {
            frame::message_header(body.len(), number + 1 < frames.len(), out);
            out.extend_from_slice(body);
        }
    }

    fn stream(large: usize) -> Vec<u8> {
        let mut stream = Vec::new();
        greeting::encode(&mut stream);
        command::ready(SocketType::Pub, None, &mut stream);
        command::subscribe(true, b"a/", 1, &mut stream);
        message(&[b"a/b", b"payload"], &mut stream);
        message(&[b"a/b", b""], &mut stream);
        message(&[b"", &[7; 300], b"third"], &mut stream);
        message(&[b"a/b", &vec![9; large]], &mut stream);
        message(&[b"alone"], &mut stream);
        stream
    }

    /// What was seen: kind, bytes of topic and payload, of the payload that are there.
    fn fed(stream: &[u8], pieces: usize, whole: bool) -> Vec<(Kind, usize, u64, usize)> {
        let (mut decoder, mut seen) = (Decoder::default(), Vec::new());
        for piece in stream.chunks(pieces) {
            let fed = decoder.feed(piece, whole, |raw| {
                seen.push(match raw {
                    Raw::Greeting(_) => (Kind::Greeting, 0, 0, 0),
                    Raw::Command(command, _) => (command.kind(), 0, 0, 0),
                    Raw::Message(message) => {
                        assert!(message.len >= message.bytes.len() as u64);
                        (Kind::Message, message.topic.len(), message.payload_bytes, message.payload.len())
                    }
                });
                Ok::<(), Malformed>(())
            });
            fed.unwrap();
        }
        seen
    }

    #[test]
    fn packets_are_the_same_however_the_stream_is_cut() {
        let stream = stream(1000);
        let expected = fed(&stream, stream.len(), true);
        let kinds: Vec<Kind> = expected.iter().map(|packet| packet.0).collect();
        use Kind::{Greeting, Message, Ready, Subscribe};
        assert_eq!(kinds, [Greeting, Ready, Subscribe, Message, Message, Message, Message, Message]);
        assert_eq!(expected[5], (Message, 0, 300, 300));
        for pieces in 1..stream.len() {
            assert_eq!(fed(&stream, pieces, true), expected, "pieces of {pieces}");
            assert_eq!(fed(&stream, pieces, false), expected, "pieces of {pieces}");
        }
    }

    #[test]
    fn of_a_large_message_only_the_beginning_is_gathered_unless_all_is_wanted() {
        let stream = stream(1_000_000);
        for pieces in [1, 1000, 50_000, 200_000, 2_000_000] {
            let seen = fed(&stream, pieces, false);
            assert_eq!((seen.len(), seen[6].2), (8, 1_000_000), "pieces of {pieces}");
            assert!(seen[6].3 == 1_000_000 || seen[6].3 < LARGE, "pieces of {pieces}: {}", seen[6].3);
            assert_eq!(fed(&stream, pieces, true)[6].3, 1_000_000);
        }
    }

    #[test]
    fn hostile_lengths_and_frames_are_refused_before_they_cost_anything() {
        let feed = |bytes: &[u8]| {
            let mut decoder = Decoder::default();
            let mut stream = Vec::new();
            greeting::encode(&mut stream);
            stream.extend_from_slice(bytes);
            let outcome = decoder.feed(&stream, true, |_| Ok::<(), Malformed>(()));
            assert!(decoder.gathered.capacity() <= stream.len().max(KEEP) * 2);
            outcome
        };
        let vast = 1_u64 << 63;
        let header = |flags: u8, length: u64| [&[flags][..], &length.to_be_bytes()].concat();
        assert_eq!(feed(&header(2, vast)), Err(Malformed::TooLong(vast)));
        assert_eq!(feed(&header(2, MESSAGE_MAX + 1)), Err(Malformed::TooLong(MESSAGE_MAX + 1)));
        assert_eq!(feed(&header(6, COMMAND_MAX + 1)), Err(Malformed::TooLong(COMMAND_MAX + 1)));
        assert_eq!(feed(&header(2, MESSAGE_MAX)), Ok(()), "it may still come");
        assert_eq!(feed(&[1, 0].repeat(FRAMES_MAX + 1)), Err(Malformed::TooManyFrames));
        assert_eq!(feed(&[1, 1, b'a', 4, 0]), Err(Malformed::OutOfPlace(Kind::Command)));
        assert_eq!(feed(&[4, 0]), Err(Malformed::Command));
    }

    #[test]
    fn who_speaks_something_else_is_refused_at_the_first_byte_and_a_cut_greeting_waits() {
        let mut decoder = Decoder::default();
        let refused = decoder.feed(b"G", false, |_| Ok::<(), Malformed>(()));
        assert_eq!(refused, Err(Malformed::NotZmtp));
        let mut decoder = Decoder::default();
        let mut bytes = Vec::new();
        greeting::encode(&mut bytes);
        assert_eq!(decoder.feed(&bytes[..30], false, |_| Err(Malformed::Command)), Ok(()));
        decoder.clear();
        assert_eq!(decoder.feed(&bytes[30..31], false, |_| Ok::<(), Malformed>(())), Err(Malformed::NotZmtp));
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..600), pieces in 1..64usize, greeted: bool
        ) {
            let mut stream = Vec::new();
            if greeted {
                greeting::encode(&mut stream);
            }
            stream.extend_from_slice(&bytes);
            let mut decoder = Decoder::default();
            for piece in stream.chunks(pieces) {
                if decoder.feed(piece, false, |_| Ok::<(), Malformed>(())).is_err() {
                    break;
                }
            }
            prop_assert!(decoder.gathered.len() <= stream.len());
        }
    }
}
