//! Connections that are seen under several addresses: before and after address translation.
//!
//! Translation leaves a segment's sequence and acknowledgment number, options and payload as they are (RFC 3022 §4.1), also
//! from IPv4 to IPv6 (RFC 7915 §4.5). Both numbers are equal by chance once in 2^64. So two connections are one where the
//! client's first segment with payload is equal: it has the first sequence number of either end. That needs no clock, and
//! holds for a NAT behind a radio link as for a container's published port.
//!
//! ```text
//!   SYN with the first number of another connection, elsewhere ──► its frames wait
//!      first payload equals one of the other connection's ──► one connection, its frames are copies
//!      it does not, or none comes in time                 ──► another connection
//! ```
//!
//! On one link in one direction without a router between, equal numbers are those of a made capture.
//!
//! What it does not recognise: devices that change sequence numbers on their way.

use std::collections::{HashMap, VecDeque};

use mqttlab_capture::{Bits, CapturedFrame, TcpHeader};
use mqttlab_recording::NumberMap;
use mqttlab_units::{Duration, Instant};

use super::{COPIED_WITHIN, Ends, Fingerprint, FramePlace, WaitingFrame};
use crate::sorting::HeldFrame;
use crate::source::CapturedAt;

/// What is known of translated connections.
#[derive(Default)]
pub struct Translations {
    /// Sender and receiver behind translation, with those under which the connection was seen first.
    known: HashMap<Ends, Translation>,
    count: u64,
    /// Where SYNs with a sequence number were seen.
    syns: NumberMap<u32, Vec<(Ends, FramePlace)>>,
    syns_order: VecDeque<u32>,
    /// Segments with payload by their content.
    carried: NumberMap<u64, Carried>,
    carried_order: VecDeque<u64>,
    held: Vec<HeldConnection>,
    released: VecDeque<WaitingFrame>,
}

#[derive(Clone, Copy)]
struct Translation {
    first: Ends,
    /// Whether packets keep their numbers.
    keeps_ids: bool,
    /// The client's first sequence number, where its SYN was seen.
    isn: Option<u32>,
}

/// A segment that may come again with other addresses.
#[derive(Clone, Copy)]
struct Carried {
    ends: Ends,
    place: FramePlace,
    id: u16,
    at: Instant,
}

/// A connection that may be another one's behind translation.
struct HeldConnection {
    /// From the client.
    ends: Ends,
    isn: u32,
    since: Instant,
    frames: Vec<WaitingFrame>,
}

impl Translations {
    /// Connections whose addresses are translated.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The ends under which a connection was seen first, and whether its packets keep their numbers.
    pub fn canonical(&self, ends: Ends) -> (Ends, bool) {
        self.known.get(&ends).map_or((ends, true), |known| (known.first, known.keeps_ids))
    }

    /// Whether a frame waits until it is known whether its connection is another one's behind address translation. Then it
    /// comes back by [`Translations::release`].
    pub fn holds(
        &mut self,
        at: CapturedAt,
        frame: &CapturedFrame<'_>,
        segment: &TcpHeader,
        print: &Fingerprint,
    ) -> bool {
        let Some(ends) = print.ends else { return false };
        let is_first = segment.bits.has(Bits::SYN) && !segment.bits.has(Bits::ACK);
        if !self.held.is_empty() {
            self.release_old(frame.time);
            if let Some(index) = self.held_of(ends) {
                let mut copy = HeldFrame::empty();
                copy.hold(frame);
                self.held[index].frames.push((at, copy, *print));
                self.decide(index, segment, print, frame.time);
                return true;
            }
        }
        if is_first {
            return self.begins(at, frame, segment, print);
        }
        if print.carries {
            self.compare(segment, print, frame.time);
        }
        false
    }

    /// A client's SYN: whether its connection waits.
    fn begins(
        &mut self,
        at: CapturedAt,
        frame: &CapturedFrame<'_>,
        segment: &TcpHeader,
        print: &Fingerprint,
    ) -> bool {
        let ends = [segment.source, segment.destination];
        if self.known.get(&ends).is_some_and(|known| known.isn != Some(segment.sequence)) {
            // The ports are used again.
            self.known.remove(&ends);
            self.known.remove(&reversed(ends));
        }
        if self.known.contains_key(&ends) {
            return false;
        }
        if self.compare(segment, print, frame.time) {
            // The other one may wait itself, for a third.
            let Some(index) = self.held_of(ends) else { return false };
            let mut copy = HeldFrame::empty();
            copy.hold(frame);
            self.held[index].frames.push((at, copy, *print));
            return true;
        }
        let syns = self.syns.entry(segment.sequence).or_default();
        if syns.is_empty() {
            self.syns_order.push_back(segment.sequence);
        }
        let is_candidate = syns.iter().any(|(other, place)| *other != ends && *place != print.place)
            && !syns.contains(&(ends, print.place))
            && self.held.len() < HELD_MAX;
        if !syns.iter().any(|(other, _)| *other == ends) && syns.len() < SYNS_ALIKE_MAX {
            syns.push((ends, print.place));
        }
        if self.syns_order.len() > SYNS_MAX
            && let Some(oldest) = self.syns_order.pop_front()
        {
            self.syns.remove(&oldest);
        }
        if is_candidate {
            let mut copy = HeldFrame::empty();
            copy.hold(frame);
            let (isn, since) = (segment.sequence, frame.time);
            self.held.push(HeldConnection { ends, isn, since, frames: vec![(at, copy, *print)] });
        }
        is_candidate
    }

    /// A frame of a connection that waits: its client's first payload decides.
    fn decide(&mut self, index: usize, segment: &TcpHeader, print: &Fingerprint, at: Instant) {
        let held = &self.held[index];
        let [from, _] = self.canonical([segment.source, segment.destination]).0;
        let is_client_s = held.ends[0] == from && segment.payload_len > 0;
        if !is_client_s && held.frames.len() < WAITING_MAX {
            return;
        }
        let held = self.held.remove(index);
        if is_client_s && let Some(other) = self.other(print) {
            self.learn(held.ends, other, other.id == print.id && print.id != 0, Some(held.isn));
        } else {
            self.remember(print, at);
        }
        self.released.extend(held.frames);
    }

    /// Compares a segment with those of other connections, which may have waited for it. Says whether it is one's.
    fn compare(&mut self, segment: &TcpHeader, print: &Fingerprint, at: Instant) -> bool {
        let Some(ends) = print.ends else { return false };
        if self.known.contains_key(&ends) {
            return false;
        }
        let Some(other) = self.other(print) else {
            self.remember(print, at);
            return false;
        };
        let keeps_ids = print.id != 0 && print.id == other.id;
        let is_soon = at.checked_since(other.at).is_some_and(|passed| passed < COPIED_WITHIN);
        // Tools that make captures, and those that make them anonymous, count from zero.
        let are_random = segment.sequence.max(segment.acknowledgment) > SMALL;
        let is_syn = segment.bits.has(Bits::SYN);
        if (keeps_ids && is_soon) || (!is_syn && are_random) {
            self.learn(ends, other, keeps_ids, is_syn.then_some(segment.sequence));
            return true;
        }
        self.remember(print, at);
        false
    }

    /// The equal segment of another connection, elsewhere.
    fn other(&self, print: &Fingerprint) -> Option<Carried> {
        let ends = print.ends?;
        let other = *self.carried.get(&print.content)?;
        let is_another =
            other.ends != ends && self.canonical(other.ends).0 != ends && other.place != print.place;
        is_another.then_some(other)
    }

    fn remember(&mut self, print: &Fingerprint, at: Instant) {
        let Some(ends) = print.ends else { return };
        let carried = Carried { ends, place: print.place, id: print.id, at };
        if self.carried.insert(print.content, carried).is_none() {
            self.carried_order.push_back(print.content);
        }
        if self.carried_order.len() > CARRIED_MAX
            && let Some(oldest) = self.carried_order.pop_front()
        {
            self.carried.remove(&oldest);
        }
    }

    fn learn(&mut self, ends: Ends, other: Carried, keeps_ids: bool, isn: Option<u32>) {
        let first = self.canonical(other.ends).0;
        if self.known.contains_key(&ends) {
            // What was taken for a copy of this one is one of the other.
            let of_this = |known: &&mut Translation| known.first == ends || known.first == reversed(ends);
            for known in self.known.values_mut().filter(of_this) {
                known.first = if known.first == ends { first } else { reversed(first) };
            }
        }
        for (ends, first) in [(ends, first), (reversed(ends), reversed(first))] {
            self.known.insert(ends, Translation { first, keeps_ids, isn });
            let own = self.known.entry(first).or_insert(Translation { first, keeps_ids, isn });
            own.keeps_ids &= keeps_ids;
        }
        self.count += 1;
    }

    /// The next frame that waits no more.
    pub fn release(&mut self) -> Option<WaitingFrame> {
        self.released.pop_front()
    }

    /// None waits any more.
    pub fn release_all(&mut self) {
        self.released.extend(self.held.drain(..).flat_map(|held| held.frames));
    }

    /// Where the connection between these ends waits, or the one that it is behind translation.
    fn held_of(&self, ends: Ends) -> Option<usize> {
        let own = self.canonical(ends).0;
        self.held.iter().position(|held| held.is_between(own))
    }

    fn release_old(&mut self, now: Instant) {
        let is_old =
            |held: &HeldConnection| now.checked_since(held.since).is_some_and(|passed| passed > PATIENCE);
        let old: Vec<HeldConnection> = self.held.extract_if(.., |held| is_old(held)).collect();
        self.released.extend(old.into_iter().flat_map(|held| held.frames));
    }
}

impl HeldConnection {
    fn is_between(&self, ends: Ends) -> bool {
        self.ends == ends || reversed(self.ends) == ends
    }
}

/// The first frames of all captures: connections that were open before.
#[derive(Default)]
pub struct FirstLook {
    carried: NumberMap<u64, (Carried, u32)>,
    begun: Vec<Ends>,
    /// How many equal segments connections have, which is the first one, and whether packets keep their numbers.
    alike: HashMap<(Ends, Ends), (u32, bool)>,
}

impl FirstLook {
    /// Takes a segment into account. Those of one capture come in the order of their times.
    pub fn add(&mut self, print: &Fingerprint, segment: &TcpHeader) {
        let Some(ends) = print.ends else { return };
        if print.is_syn {
            self.begun.push(ends);
            self.begun.push(reversed(ends));
            return;
        }
        if !print.carries || segment.sequence.max(segment.acknowledgment) <= SMALL {
            return;
        }
        let here = Carried { ends, place: print.place, id: print.id, at: segment.time };
        let (other, _) = *self.carried.entry(print.content).or_insert((here, segment.payload_len));
        if other.ends != ends && other.place != print.place {
            let (first, second) = if other.at <= here.at { (other, here) } else { (here, other) };
            let keeps_ids = first.id != 0 && first.id == second.id;
            let alike = self.alike.entry((first.ends, second.ends)).or_insert((0, true));
            *alike = (alike.0 + 1, alike.1 && keeps_ids);
        }
    }

    /// What follows. What was seen first in one direction may be second in the other.
    pub fn conclude(self, translations: &mut Translations) {
        let mut alike: Vec<_> = self.alike.into_iter().collect();
        alike.sort_unstable_by_key(|((first, _), (count, _))| (std::cmp::Reverse(*count), *first));
        for ((first, second), (_, keeps_ids)) in alike {
            let is_new =
                !translations.known.contains_key(&second) && !translations.known.contains_key(&first);
            if is_new && !self.begun.contains(&first) && !self.begun.contains(&second) {
                let place = FramePlace { link: 0, on_link: 0 };
                let other = Carried { ends: first, place, id: 0, at: Instant::ZERO };
                translations.learn(second, other, keeps_ids, None);
            }
        }
    }
}

fn reversed([from, to]: Ends) -> Ends {
    [to, from]
}

/// A connection waits for its client's first payload for so long: as long as a frame may be on its way.
const PATIENCE: Duration = Duration::from_s(10);
/// Frames of a connection that wait.
const WAITING_MAX: usize = 64;
/// Connections that wait at once.
const HELD_MAX: usize = 64;
/// Sequence numbers of SYNs that are remembered; the oldest is forgotten first.
const SYNS_MAX: usize = 1 << 14;
/// Connections with one number of their SYNs that are remembered.
const SYNS_ALIKE_MAX: usize = 8;
/// Segments that may come again with other addresses; the oldest is forgotten first.
const CARRIED_MAX: usize = 1 << 15;
/// Numbers up to this are counted from zero.
const SMALL: u32 = 1 << 16;
