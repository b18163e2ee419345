//! Ports used again: which SYN begins a connection, and which segments still belong to the one before.
//!
//! ```text
//!   SYN with another number ────────────────► another connection, as in Wireshark
//!   SYN with the same number ─┬─ behind FIN or RST, or long after ──► another connection
//!                             └─ answered with another number ──────► another connection, at the answer
//! ```
//!
//! A SYN may be an old duplicate, which the server answers with an acknowledgment of the connection that it has (RFC 5961 §4).
//! So the earlier connection goes on until a segment belongs to the new one. Segments of an earlier connection that come
//! later than that tell nothing of the new one.

use mqttlab_units::Duration;

use super::ServerDirection;
use super::connection::ConnectionFollower;
use super::flags;
use crate::segment::{Bits, TcpHeader};

impl ConnectionFollower {
    /// Whether a SYN, or the answer to one, opens another connection between the same ends. Without a FIN or an RST an equal
    /// number is a repetition, unless it comes so late that no host repeats a SYN any more: a client that has its answer
    /// repeats none at all (RFC 9293 §3.10.7.4); one without gives up after some two minutes. Hosts without a clock for their
    /// numbers (RFC 6528) begin with the same one after every restart.
    pub(super) fn is_another(&self, syn: &TcpHeader) -> bool {
        if syn.bits.has(Bits::ACK) {
            return self.begun_again(syn).is_some();
        }
        let Some(base) = self.ways[self.direction(syn) as usize].half.base else { return false };
        let is_answered = self.handshake.synchronized && self.handshake.initial_rtt.is_some();
        let silence = if is_answered { COPIED_WITHIN } else { SYN_REPEATED_WITHIN };
        let is_late = syn.time.checked_since(self.last_time).is_some_and(|passed| passed > silence);
        base != syn.sequence || is_late || (self.handshake.synchronized && self.is_ending)
    }

    /// The repeated SYN that this SYN of the server's answers with a number of another connection.
    pub(super) fn begun_again(&self, answer: &TcpHeader) -> Option<&TcpHeader> {
        let base = self.ways[self.direction(answer) as usize].half.base?;
        let syn = self.repeated_syn.as_deref().filter(|_| base != answer.sequence)?;
        (answer.acknowledgment == syn.sequence.wrapping_add(1) && answer.source == syn.destination)
            .then_some(syn)
    }

    /// Remembers a SYN that comes when the handshake is over: its answer tells whether it begins a connection.
    pub(super) fn note_repeated_syn(&mut self, segment: &TcpHeader) {
        let is_open = self.handshake.synchronized && self.handshake.initial_rtt.is_some();
        if is_open && segment.bits.has(Bits::SYN) && !segment.bits.has(Bits::ACK) {
            self.repeated_syn = Some(Box::new(*segment));
        }
    }

    /// Begins with a SYN that was counted where it was seen.
    pub(super) fn begin_with(&mut self, syn: &TcpHeader) {
        let direction = self.direction(syn);
        let [to_server, from_server] = &mut self.ways;
        let (forward, reverse) = match direction {
            ServerDirection::ToServer => (to_server, from_server),
            ServerDirection::FromServer => (from_server, to_server),
        };
        flags::judge(&mut forward.half, &mut reverse.half, None, syn);
        forward.stream.start(syn.sequence);
        forward.from_start = true;
        self.handshake(syn);
    }

    /// Whether a connection that the ends had before may go on, because nothing ended it.
    pub(super) fn may_go_on(&self) -> bool {
        !self.is_ending && self.handshake.initial_rtt.is_some()
    }

    /// Whether a segment belongs to the connection that the ends had before: it does not fit the SYN of this one, and fits
    /// that one's numbers.
    pub(super) fn is_of_predecessor(&self, segment: &TcpHeader) -> bool {
        let Some(predecessor) = &self.predecessor else { return false };
        !segment.bits.has(Bits::SYN) && !self.follows_syn(segment) && predecessor.fits(segment)
    }

    /// Whether a segment is the first one behind the SYN, either way.
    fn follows_syn(&self, segment: &TcpHeader) -> bool {
        let direction = self.direction(segment);
        let begins =
            |way: ServerDirection| self.ways[way as usize].half.base.map(|base| base.wrapping_add(1));
        let answers = segment.bits.has(Bits::ACK).then_some(segment.acknowledgment);
        match direction {
            ServerDirection::ToServer => begins(direction) == Some(segment.sequence),
            ServerDirection::FromServer => answers.is_some() && begins(ServerDirection::ToServer) == answers,
        }
    }

    /// Whether both numbers of a segment are near those that come next.
    fn fits(&self, segment: &TcpHeader) -> bool {
        let direction = self.direction(segment);
        let is_near = |way: ServerDirection, number: u32| {
            let next = self.ways[way as usize].half.next;
            next.is_some_and(|next| (number.wrapping_sub(next) as i32).unsigned_abs() < NEAR)
        };
        let answers = segment.bits.has(Bits::ACK);
        is_near(direction, segment.sequence)
            && (!answers || is_near(direction.opposite(), segment.acknowledgment))
    }

    /// Whether a segment is of an earlier connection between the same ends: its numbers lie in front of what began with a
    /// SYN. Of FIN and RST, which end a connection, also those far behind it: a host takes none that is outside of its
    /// window (RFC 9293 §3.10.7.4, RFC 5961 §3).
    pub(super) fn is_stale(&self, direction: ServerDirection, segment: &TcpHeader) -> bool {
        if segment.bits.has(Bits::SYN) {
            return false;
        }
        let [way, other] = [direction, direction.opposite()].map(|way| &self.ways[way as usize]);
        let is_before = |begun: &super::connection::DirectionState, number: u32| {
            begun.from_start && begun.stream.is_before_start(number)
        };
        let ends = segment.bits.any(Bits::FIN.and(Bits::RST));
        let is_beyond = ends
            && way.from_start
            && way.half.next.is_some_and(|next| segment.sequence.wrapping_sub(next) as i32 > BEYOND);
        // An RST that answers a SYN has no number of its own.
        let has_number = !segment.bits.has(Bits::RST) || segment.sequence != 0;
        (has_number && (is_before(way, segment.sequence) || is_beyond))
            || (segment.bits.has(Bits::ACK) && is_before(other, segment.acknowledgment))
    }
}

/// The network may show a frame again for so long.
const COPIED_WITHIN: Duration = Duration::from_s(10);
/// Linux repeats a SYN six times, and gives up after 127 s.
const SYN_REPEATED_WITHIN: Duration = Duration::from_s(130);
/// Numbers of one connection's next segments are nearer to each other than this, with few segments missing.
const NEAR: u32 = 1 << 20;
/// So many bytes are no hole in a capture.
const BEYOND: i32 = 1 << 26;
