//! Finding the next control packet in bytes whose framing is lost.
//!
//! A position is believed when a chain of packets starts there whose headers, types, lengths and identifiers fit
//! and which together are unlikely enough to be chance: a CONNECT or a PUBLISH whose topic is known or a long
//! printable string is worth [`BELIEVED`] points alone, short packets one point each. A PUBLISH at the start of a
//! segment is worth one more, and a chain that starts where a segment starts and ends where one ends is believed
//! with a single packet, because that is how packets are mostly sent.

use std::sync::Arc;

use super::Kind;
use super::layout::{self, Fixed, FixedRead, be16};

/// Points that make a chain credible.
const BELIEVED: u32 = 3;
/// Positions with this many bytes behind them that are not believed never will be.
pub(super) const LOOKAHEAD: usize = 1_024;
/// A chain is not followed further than this.
const CHAIN_MAX: usize = 8;
const TOPIC_CONVINCING: usize = 8;
const TOPIC_PLAUSIBLE: usize = 3;

/// What is known of the connection while searching.
pub(super) struct Clues<'a> {
    pub(super) to_server: bool,
    pub(super) level: Option<u8>,
    pub(super) topic: Option<&'a Arc<str>>,
}

/// What a chain of packets says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Belief {
    No,
    /// Nothing speaks against it, but it needs more bytes.
    Perhaps,
    Yes,
}

/// The first position that is believed to start a packet. `starts` are the positions at which segments start, in
/// order; with `last` no more bytes will come, so a chain that is merely plausible is taken.
pub(super) fn find(bytes: &[u8], starts: &[usize], last: bool, clues: &Clues<'_>) -> Option<usize> {
    let mut perhaps = None;
    for at in 0..bytes.len() {
        // Most bytes of a payload are no type at all; look at the rest only then.
        if Kind::from_first_byte(bytes[at]).is_none() {
            continue;
        }
        match chain(bytes, at, starts, clues) {
            Belief::Yes => return Some(at),
            Belief::Perhaps => perhaps = perhaps.or(Some(at)),
            Belief::No => {}
        }
    }
    perhaps.filter(|_| last)
}

fn chain(bytes: &[u8], start: usize, starts: &[usize], clues: &Clues<'_>) -> Belief {
    let (mut at, mut points) = (start, 0);
    for _ in 0..CHAIN_MAX {
        let FixedRead::Whole(fixed) = Fixed::read(&bytes[at..]) else { break };
        let body = &bytes[at + usize::from(fixed.header_len)..];
        let Some(worth) = worth(&fixed, body, clues) else { return Belief::No };
        let at_segment_start = fixed.kind == Kind::Publish && starts.binary_search(&at).is_ok();
        points += worth + u32::from(at_segment_start);
        if points >= BELIEVED {
            return Belief::Yes;
        }
        let end = at as u64 + fixed.total();
        if end > bytes.len() as u64 {
            return Belief::No;
        }
        at = end as usize;
        if at == bytes.len() {
            break;
        }
    }
    let whole_segments = starts.binary_search(&start).is_ok() && at == bytes.len();
    match points {
        0 => Belief::No,
        _ if whole_segments => Belief::Yes,
        _ if at == bytes.len() => Belief::Perhaps,
        _ => Belief::No,
    }
}

/// Points for a packet, or `None` when it cannot be one. `body` may be cut.
fn worth(fixed: &Fixed, body: &[u8], clues: &Clues<'_>) -> Option<u32> {
    let may_be_5 = clues.level.is_none_or(|level| level >= 5);
    let remaining = fixed.remaining;
    let plausible = match fixed.kind {
        Kind::Publish => return publish_worth(fixed, body, clues),
        Kind::Connect => return (clues.to_server && layout::connect(body).is_some()).then_some(BELIEVED),
        Kind::Connack => !clues.to_server && (remaining == 2 || may_be_5 && (3..512).contains(&remaining)),
        Kind::Puback | Kind::Pubrec | Kind::Pubrel | Kind::Pubcomp => {
            remaining == 2 || may_be_5 && (3..512).contains(&remaining)
        }
        Kind::Subscribe | Kind::Unsubscribe => clues.to_server && (5..65_536).contains(&remaining),
        Kind::Suback => !clues.to_server && (3..4_096).contains(&remaining),
        Kind::Unsuback => !clues.to_server && (remaining == 2 || may_be_5 && (4..4_096).contains(&remaining)),
        Kind::Pingreq => clues.to_server && remaining == 0,
        Kind::Pingresp => !clues.to_server && remaining == 0,
        Kind::Disconnect => (clues.to_server && remaining == 0) || may_be_5 && (1..512).contains(&remaining),
        Kind::Auth => may_be_5 && remaining < 512,
    };
    // Some clients set the DUP bit of packets other than PUBLISH, as MQTT 3.1 allowed.
    let usual_flags = match fixed.kind {
        Kind::Pubrel | Kind::Subscribe | Kind::Unsubscribe => 2,
        _ => 0,
    };
    let identified = !(Kind::Puback..=Kind::Unsuback).contains(&fixed.kind) || be16(body, 0) != Some(0);
    (plausible && fixed.flags & !8 == usual_flags && identified).then_some(1)
}

fn publish_worth(fixed: &Fixed, body: &[u8], clues: &Clues<'_>) -> Option<u32> {
    let level = clues.level.unwrap_or(4);
    if fixed.qos() == 3 || fixed.flags == 8 {
        return None;
    }
    fixed.wanted(body, level)?;
    let length = usize::from(be16(body, 0)?);
    let topic = &body[2..body.len().min(2 + length)];
    if length == 0 || !is_topic(topic) {
        return None;
    }
    if fixed.qos() > 0 && be16(body, 2 + length) == Some(0) {
        return None;
    }
    let known = clues.topic.is_some_and(|known| known.as_bytes() == topic);
    Some(match topic.len() {
        _ if known => BELIEVED,
        TOPIC_CONVINCING.. => BELIEVED,
        TOPIC_PLAUSIBLE.. => 2,
        _ => 1,
    })
}

/// Printable, without the wildcards that a PUBLISH may not contain [MQTT-3.3.2-2]. The last character may be cut.
fn is_topic(bytes: &[u8]) -> bool {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
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
            fixed.kind == Kind::Connect && layout::connect(&bytes[usize::from(fixed.header_len)..]).is_some()
        }
        _ => false,
    }
}
