//! Which bytes can be a control packet, and where the next one starts when framing is lost.
//!
//! A position is believed when a chain of possible packets starts there that random bytes would hardly make: every
//! field that has to have one of few values counts the bits that it fixes (type and flags, lengths that add up, a
//! printable topic, a known reason code), and [`BELIEVED_BITS`] of them are wanted. A start and an end where
//! segments start and end count too, because that is how packets are mostly sent. A megabyte of random payload
//! holds such a chain once in a thousand times.
//!
//! Candidates whose chain leads beyond the bytes that are there wait for more, within [`WAITING_BYTES_MAX`].

use std::sync::Arc;

use super::Kind;
use super::connect;
use super::layout::{self, Fixed, FixedRead, Varint, be16};

/// Bits that a chain must fix to be believed.
const BELIEVED_BITS: u32 = 30;
/// A chain that starts where a segment starts: there are a thousand times fewer of these than of bytes.
const SEGMENT_START_BITS: u32 = 9;
/// A chain that ends where the last segment ends.
const SEGMENT_END_BITS: u32 = 9;
/// A chain is not followed further than this.
pub(super) const WAITING_BYTES_MAX: usize = 256 << 10;
/// Chains that wait at once.
const CANDIDATES_MAX: usize = 128;
/// Control packets other than PUBLISH that are longer are not judged.
const BODY_MAX: u32 = 4_096;

/// What is known of the connection while searching.
pub(super) struct Clues<'a> {
    pub(super) to_server: bool,
    pub(super) level: Option<u8>,
    pub(super) topic: Option<&'a Arc<str>>,
}

/// A position that may start a chain of packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    start: usize,
    /// Where its next packet starts.
    at: usize,
    bits: u32,
    packets: u32,
}

/// What a packet's first bytes say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StartJudgement {
    Impossible,
    /// Nothing speaks against it, but it needs more bytes.
    Short,
    /// It is possible, and fixes so many bits.
    Bits(u32),
}

/// What became of a candidate.
enum Advanced {
    Dead,
    Waits,
    Believed,
}

/// Candidates in bytes that are gathered while framing is lost.
#[derive(Debug, Default)]
pub(super) struct ResyncCandidates {
    waiting: Vec<Candidate>,
    scanned: usize,
}

impl ResyncCandidates {
    /// The first position that is believed to start a packet. `is_start` says where segments start.
    pub(super) fn find(
        &mut self,
        bytes: &[u8],
        is_start: impl Fn(usize) -> bool,
        clues: &Clues<'_>,
    ) -> Option<usize> {
        let mut believed: Option<usize> = None;
        self.waiting.retain_mut(|candidate| match candidate.advance(bytes, clues) {
            Advanced::Dead => false,
            Advanced::Waits => true,
            Advanced::Believed => {
                believed = Some(believed.map_or(candidate.start, |start| start.min(candidate.start)));
                true
            }
        });
        for at in std::mem::replace(&mut self.scanned, bytes.len())..bytes.len() {
            if believed.is_some() {
                break;
            }
            // Most bytes of a payload are no type at all; look at the rest only then.
            if Kind::from_number(bytes[at] >> 4).is_none() {
                continue;
            }
            let bits = if is_start(at) { SEGMENT_START_BITS } else { 0 };
            let mut candidate = Candidate { start: at, at, bits, packets: 0 };
            match candidate.advance(bytes, clues) {
                Advanced::Dead => {}
                Advanced::Waits => self.waiting.push(candidate),
                Advanced::Believed => believed = Some(at),
            }
        }
        if self.waiting.len() > CANDIDATES_MAX {
            self.waiting.drain(..self.waiting.len() - CANDIDATES_MAX);
        }
        believed.map(|start| self.first_of_chain(start))
    }

    /// From where on bytes are needed: nothing before can start a packet any more.
    pub(super) fn needed_from(&mut self, len: usize) -> usize {
        let least = len.saturating_sub(WAITING_BYTES_MAX);
        self.waiting.retain(|candidate| candidate.start >= least);
        self.waiting.iter().map(|candidate| candidate.start).min().unwrap_or(len)
    }

    /// The first `excess` bytes are gone.
    pub(super) fn shift(&mut self, excess: usize) {
        self.scanned = self.scanned.saturating_sub(excess);
        for candidate in &mut self.waiting {
            candidate.start -= excess;
            candidate.at -= excess;
        }
    }

    /// A candidate too weak alone is believed when it leads exactly to one that is.
    fn first_of_chain(&self, mut start: usize) -> usize {
        while let Some(before) =
            self.waiting.iter().find(|candidate| candidate.packets > 0 && candidate.at == start)
        {
            if before.start >= start {
                break;
            }
            start = before.start;
        }
        start
    }
}

impl Candidate {
    fn advance(&mut self, bytes: &[u8], clues: &Clues<'_>) -> Advanced {
        loop {
            let end = if self.packets > 0 && self.at == bytes.len() { SEGMENT_END_BITS } else { 0 };
            if self.bits + end >= BELIEVED_BITS && self.packets > 0 {
                return Advanced::Believed;
            }
            if self.at - self.start > WAITING_BYTES_MAX {
                return Advanced::Dead;
            }
            let Some(rest) = bytes.get(self.at..) else { return Advanced::Waits };
            let fixed = match Fixed::read(rest) {
                FixedRead::Whole(fixed) => fixed,
                FixedRead::TooShort => return Advanced::Waits,
                FixedRead::Invalid => return Advanced::Dead,
            };
            match judge(&fixed, &rest[usize::from(fixed.header_len)..], clues) {
                StartJudgement::Impossible => return Advanced::Dead,
                StartJudgement::Short => return Advanced::Waits,
                StartJudgement::Bits(bits) => {
                    self.bits += bits;
                    self.packets += 1;
                    self.at = self.at.saturating_add(fixed.total() as usize);
                }
            }
        }
    }
}

/// Whether a packet may have this fixed header, in this direction and at this protocol level (MQTT 5 §2.1, §3).
pub(super) fn may_be(fixed: &Fixed, to_server: bool, level: Option<u8>) -> bool {
    let may_be_5 = level.is_none_or(|level| level >= 5);
    let remaining = fixed.remaining;
    let plausible = match fixed.kind {
        Kind::Connect => to_server && remaining >= 12,
        Kind::Connack => !to_server && (remaining == 2 || may_be_5 && remaining > 2),
        Kind::Publish => {
            return fixed.qos() != 3 && (fixed.qos() > 0 || fixed.flags & 8 == 0) && remaining >= 2;
        }
        Kind::Puback | Kind::Pubrec | Kind::Pubrel | Kind::Pubcomp => {
            remaining == 2 || may_be_5 && remaining > 2
        }
        Kind::Subscribe => to_server && remaining >= 6,
        Kind::Unsubscribe => to_server && remaining >= 5,
        Kind::Suback => !to_server && remaining >= 3,
        Kind::Unsuback => !to_server && (remaining == 2 || may_be_5 && remaining > 3),
        Kind::Pingreq => to_server && remaining == 0,
        Kind::Pingresp => !to_server && remaining == 0,
        Kind::Disconnect => to_server && remaining == 0 || may_be_5,
        Kind::Auth => level.is_some_and(|level| level >= 5),
    };
    // Some clients set the DUP bit of packets other than PUBLISH, as MQTT 3.1 allowed.
    plausible && fixed.flags & !8 == usual_flags(fixed.kind)
}

/// Whether the first bytes after the fixed header can be those of a packet that was seen whole.
pub(super) fn body_may_be(fixed: &Fixed, body: &[u8], clues: &Clues<'_>) -> bool {
    judge(fixed, body, clues) != StartJudgement::Impossible
}

fn usual_flags(kind: Kind) -> u8 {
    if matches!(kind, Kind::Pubrel | Kind::Subscribe | Kind::Unsubscribe) { 2 } else { 0 }
}

fn judge(fixed: &Fixed, body: &[u8], clues: &Clues<'_>) -> StartJudgement {
    if !may_be(fixed, clues.to_server, clues.level) {
        return StartJudgement::Impossible;
    }
    if fixed.kind == Kind::Publish {
        return judge_publish(fixed, body, clues);
    }
    if fixed.kind == Kind::Connect {
        return match connect::read(body) {
            Some(_) => StartJudgement::Bits(2 * BELIEVED_BITS),
            None if body.len() < 12 => StartJudgement::Short,
            None => StartJudgement::Impossible,
        };
    }
    if fixed.remaining > BODY_MAX {
        return StartJudgement::Impossible;
    }
    let Some(body) = body.get(..fixed.remaining as usize) else { return StartJudgement::Short };
    let identified = (Kind::Puback..=Kind::Unsuback).contains(&fixed.kind);
    if identified && be16(body, 0) == Some(0) {
        return StartJudgement::Impossible;
    }
    let may_be_5 = clues.level.is_none_or(|level| level >= 5);
    let bits = match fixed.kind {
        Kind::Subscribe | Kind::Unsubscribe => return judge_filters(fixed.kind, body, clues.level),
        Kind::Suback => codes_bits(&body[2..], clues.level),
        _ if fixed.remaining == 0 || fixed.remaining == 2 && identified => Some(8),
        Kind::Connack => connack_bits(body, may_be_5),
        Kind::Unsuback if may_be_5 => codes_bits(&body[2..], Some(5)),
        Kind::Disconnect | Kind::Auth => reason_bits(fixed.kind, body),
        _ => reason_bits(fixed.kind, &body[2..]),
    };
    // Type and flags; the DUP bit is left open.
    bits.map_or(StartJudgement::Impossible, |bits| StartJudgement::Bits(7 + bits))
}

fn judge_publish(fixed: &Fixed, body: &[u8], clues: &Clues<'_>) -> StartJudgement {
    let level = clues.level.unwrap_or(4);
    if fixed.wanted(body, level).is_none() {
        return StartJudgement::Impossible;
    }
    let Some(length) = be16(body, 0).map(usize::from) else { return StartJudgement::Short };
    // An empty topic stands for an alias, which only MQTT 5 has (§3.3.2.3.4).
    if length == 0 {
        return if clues.level.is_some_and(|level| level >= 5) {
            StartJudgement::Bits(12)
        } else {
            StartJudgement::Impossible
        };
    }
    let topic = &body[2..body.len().min(2 + length)];
    if !is_topic(topic, topic.len() < length) {
        return StartJudgement::Impossible;
    }
    if fixed.qos() > 0 && be16(body, 2 + length) == Some(0) {
        return StartJudgement::Impossible;
    }
    if topic.len() < length && topic.len() < TOPIC_JUDGED {
        return StartJudgement::Short;
    }
    let known = clues.topic.is_some_and(|known| known.as_bytes() == topic);
    // Type and flags; the length's upper byte; three in eight bytes are printable, about 1.4 bits each.
    let printable = topic.len().min(TOPIC_JUDGED) as u32 * 7 / 5;
    let length_bits = if length < 256 { 8 } else { 0 };
    StartJudgement::Bits(
        4 + length_bits + if known { printable.max(8 * length.min(4) as u32) } else { printable },
    )
}

/// A SUBSCRIBE or UNSUBSCRIBE whose filters add up to its length.
fn judge_filters(kind: Kind, body: &[u8], level: Option<u8>) -> StartJudgement {
    let read = |properties: bool| {
        let mut rest = &body[2..];
        if properties {
            let Varint::Value(length, size) = layout::variable_length(rest) else { return None };
            rest = rest.get(usize::from(size) + length as usize..)?;
        }
        let mut bits = 0;
        while !rest.is_empty() {
            let length = usize::from(be16(rest, 0)?);
            let filter = rest.get(2..2 + length)?;
            let printable = std::str::from_utf8(filter).is_ok_and(|text| !text.chars().any(char::is_control));
            if length == 0 || !printable {
                return None;
            }
            bits += 8 + length.min(TOPIC_JUDGED) as u32 * 7 / 5;
            rest = &rest[2 + length..];
            if kind == Kind::Subscribe {
                let (&options, after) = rest.split_first()?;
                if options & 3 == 3 || options & 0xc0 != 0 {
                    return None;
                }
                bits += 2;
                rest = after;
            }
        }
        (bits > 0).then_some(bits)
    };
    let bits = match level {
        Some(level) => read(level >= 5),
        None => read(false).or_else(|| read(true)),
    };
    bits.map_or(StartJudgement::Impossible, |bits| StartJudgement::Bits(7 + bits))
}

fn connack_bits(body: &[u8], may_be_5: bool) -> Option<u32> {
    let (&flags, &code) = (body.first()?, body.get(1)?);
    if flags > 1 {
        return None;
    }
    if body.len() == 2 {
        return (code <= 5).then_some(8 + 7 + 5);
    }
    (may_be_5 && (code == 0 || code >= 0x80) && properties_fill(&body[2..])).then_some(7 + 1 + 8)
}

/// A reason code, and properties that fill the rest (MQTT 5 §2.4).
fn reason_bits(kind: Kind, rest: &[u8]) -> Option<u32> {
    let (&code, properties) = rest.split_first()?;
    let known = match kind {
        Kind::Pubrel | Kind::Pubcomp => matches!(code, 0 | 0x92),
        Kind::Disconnect => matches!(code, 0 | 4) || (0x80..=0xa2).contains(&code),
        Kind::Auth => matches!(code, 0 | 0x18 | 0x19),
        _ => matches!(code, 0 | 0x10 | 0x80 | 0x83 | 0x87 | 0x90 | 0x91 | 0x97 | 0x99),
    };
    let whole = properties.is_empty() || properties_fill(properties);
    (known && whole).then_some(2 + if properties.is_empty() { 0 } else { 8 })
}

/// Reason codes of a SUBACK or an UNSUBACK, behind properties in MQTT 5.
fn codes_bits(rest: &[u8], level: Option<u8>) -> Option<u32> {
    let known = |codes: &[u8]| {
        let usual = |&code: &u8| code <= 2 || code == 0x11 || (0x80..=0xa2).contains(&code);
        (!codes.is_empty() && codes.iter().all(usual)).then_some(5 + 2 * codes.len().min(8) as u32)
    };
    let behind_properties = || {
        let Varint::Value(length, size) = layout::variable_length(rest) else { return None };
        known(rest.get(usize::from(size) + length as usize..)?)
    };
    match level {
        Some(5..) => behind_properties(),
        Some(_) => known(rest),
        None => known(rest).or_else(behind_properties),
    }
}

/// Whether a property length is the length of what follows it.
fn properties_fill(bytes: &[u8]) -> bool {
    matches!(layout::variable_length(bytes),
        Varint::Value(length, size) if usize::from(size) + length as usize == bytes.len())
}

/// Printable, without the wildcards that a PUBLISH may not contain [MQTT-3.3.2-2]. The last character may be `cut`.
fn is_topic(bytes: &[u8], cut: bool) -> bool {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if cut && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.chars().any(|character| character.is_control() || matches!(character, '+' | '#'))
}

/// Whether the first bytes of a client's stream are a CONNECT, so that a connection to any port is known as MQTT.
pub(crate) fn starts_as_connect(bytes: &[u8]) -> bool {
    match Fixed::read(bytes) {
        FixedRead::Whole(fixed) => {
            fixed.kind == Kind::Connect && connect::read(&bytes[usize::from(fixed.header_len)..]).is_some()
        }
        _ => false,
    }
}

/// Whether more bytes may make a CONNECT of these: some clients write it in parts.
pub(crate) fn may_start_as_connect(bytes: &[u8]) -> bool {
    let begins = |rest: &[u8]| NAMES.iter().any(|name| name.starts_with(&rest[..rest.len().min(name.len())]));
    match Fixed::read(bytes) {
        FixedRead::Whole(fixed) if fixed.kind == Kind::Connect => {
            let rest = &bytes[usize::from(fixed.header_len)..];
            begins(rest) && connect::read(rest).is_none() && rest.len() < CONNECT_JUDGED
        }
        FixedRead::TooShort => bytes.first().is_none_or(|first| *first == CONNECT),
        FixedRead::Whole(_) | FixedRead::Invalid => false,
    }
}

/// Whether a control packet that begins so fills `len` bytes; `None` when that takes more of it to say.
pub(crate) fn fits_packet(head: &[u8], len: u64, to_server: bool) -> Option<bool> {
    match Fixed::read(head) {
        FixedRead::Whole(fixed) => Some(fixed.total() == len && may_be(&fixed, to_server, None)),
        FixedRead::TooShort if (head.len() as u64) < len => None,
        FixedRead::TooShort | FixedRead::Invalid => Some(false),
    }
}

/// The protocol's names, with their lengths (MQTT 5 §3.1.2.1; MQTT 3.1 §3.1).
const NAMES: [&[u8]; 2] = [b"\0\x04MQTT", b"\0\x06MQIsdp"];
/// Behind these bytes of it, the longer name, level, flags and keep-alive, a CONNECT is known.
const CONNECT_JUDGED: usize = 12;
/// The first byte of a CONNECT.
const CONNECT: u8 = 0x10;
/// Characters of a topic that count.
const TOPIC_JUDGED: usize = 64;
