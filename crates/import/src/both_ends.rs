//! Captures of mqttlab's own, which say when each frame left and when it arrived.
//!
//! ```text
//!   frame at its sender ──► the analyser: packets, marks, round trips
//!   the same at its receiver ──► StreamJoin: when each packet was complete there ──► conversations and the matcher
//! ```
//!
//! A packet happens when it arrives, as for a broker or client: a subscription is in force when the broker has it, and a
//! message is delivered when its receiver's host has it. So an import of what a run exported has the times of the run.
//!
//! Behind a frame that the capture lacks nothing of that direction is ever complete. From there on a packet arrives with the
//! frame that shows its end.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

use mqttlab_capture::mqtt::CapturedPacket;
use mqttlab_capture::{Bits, Completed, JoinedPacket, ServerDirection, StreamJoin};
use mqttlab_recording::{Frame, FrameFate, Transit};
use mqttlab_units::{Duration, Instant};

/// Packets and ends of connections on their way to their receivers.
#[derive(Default)]
pub struct BothEnds {
    join: StreamJoin,
    /// What frames carry that have more links to cross, by their numbers.
    under_way: BTreeMap<u64, SegmentRange>,
    /// FINs and RSTs by their arrival, and those that wait for packets before them.
    closings: BinaryHeap<Reverse<Closing>>,
    held: Vec<Closing>,
    /// Directions of connections of which frames are missing.
    broken: HashSet<(u32, ServerDirection)>,
    /// Packets of these.
    loose: Vec<JoinedPacket>,
}

/// What happens at a receiver.
pub enum ReceiverEvent {
    /// A packet is complete, or never will be.
    Packet(Box<JoinedPacket>),
    /// A connection ends.
    Closing(Closing),
}

/// The end of a connection, as its FIN or RST says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Closing {
    /// When it arrives.
    pub at: Instant,
    /// The connection's number.
    pub connection: u32,
    /// Whose end closes.
    pub direction: ServerDirection,
    is_reset: bool,
}

impl Closing {
    /// The flag that says so.
    pub fn bits(self) -> Bits {
        if self.is_reset { Bits::RST } else { Bits::FIN }
    }
}

/// A segment's bytes in its stream, and its flags.
#[derive(Clone, Copy)]
pub struct SegmentRange {
    /// The connection's number.
    pub connection: u32,
    /// Which direction of it.
    pub direction: ServerDirection,
    /// Where its payload begins, and its length.
    pub start: u64,
    /// See above.
    pub bytes: u32,
    /// Flags of TCP.
    pub bits: Bits,
}

impl BothEnds {
    /// Packets whose last byte a segment at its sender shows; `arrival` is when that segment arrives.
    pub fn expect(&mut self, completed: &Completed, arrival: Option<Instant>) {
        let Completed { connection, direction, packet } = completed;
        let (connection, direction) = (*connection as u32, *direction);
        let packet: CapturedPacket = packet.clone();
        if self.broken.contains(&(connection, direction)) {
            self.loose.push(JoinedPacket { connection, direction, packet, complete: arrival, segments: 1 });
        } else {
            self.join.expect(connection, direction, packet);
        }
    }

    /// A segment comes to its first link, at this time.
    pub fn enter_first_link(&mut self, carried: SegmentRange, transit: &Transit, at: Instant) {
        if carried.bytes > 0 {
            self.join.sent(carried.connection, carried.direction, carried.range());
        }
        self.cross(carried, transit, at);
    }

    /// A frame comes to a further link of its path. Answers what it carries.
    pub fn enter_next_link(&mut self, transit: &Transit, at: Instant) -> Option<SegmentRange> {
        let carried = self.under_way.remove(&transit.frame)?;
        self.cross(carried, transit, at);
        Some(carried)
    }

    fn cross(&mut self, carried: SegmentRange, transit: &Transit, at: Instant) {
        let Some(arrives) = arrival(transit, at) else { return };
        if !transit.is_last() {
            if self.under_way.len() >= UNDER_WAY_MAX {
                self.under_way.pop_first();
            }
            self.under_way.insert(transit.frame, carried);
            return;
        }
        let SegmentRange { connection, direction, bits, .. } = carried;
        if carried.bytes > 0 {
            self.join.arrived(connection, direction, carried.range(), arrives);
        }
        if bits.any(Bits::FIN.and(Bits::RST)) {
            let is_reset = bits.has(Bits::RST);
            self.closings.push(Reverse(Closing { at: arrives, connection, direction, is_reset }));
        }
    }

    /// Frames of this direction are missing: its streams cannot be followed byte by byte any more.
    pub fn distrust(&mut self, connection: u32, direction: ServerDirection) {
        if self.broken.insert((connection, direction)) {
            self.join.give_up_on(connection, direction);
        }
    }

    /// Nothing more comes.
    pub fn end(&mut self) {
        self.join.advance(Instant::from_ns(u64::MAX));
        self.join.give_up();
    }

    /// The next thing that has happened by `now`, before which nothing more can be told to arrive.
    pub fn next(&mut self, now: Instant) -> Option<ReceiverEvent> {
        if let Some(joined) = self.packet() {
            return Some(joined);
        }
        while let Some(&Reverse(closing)) = self.closings.peek().filter(|Reverse(closing)| closing.at <= now)
        {
            self.join.advance(closing.at);
            if let Some(joined) = self.packet() {
                return Some(joined);
            }
            self.closings.pop();
            if closing.is_reset || !self.join.awaits(closing.connection, closing.direction) {
                return Some(ReceiverEvent::Closing(closing));
            }
            self.held.push(closing);
        }
        self.join.advance(now);
        if let Some(joined) = self.packet() {
            return Some(joined);
        }
        let join = &self.join;
        let free = |closing: &Closing| !join.awaits(closing.connection, closing.direction);
        let place = self.held.iter().position(free)?;
        Some(ReceiverEvent::Closing(self.held.remove(place)))
    }

    fn packet(&mut self) -> Option<ReceiverEvent> {
        let joined = self.join.poll().or_else(|| (!self.loose.is_empty()).then(|| self.loose.remove(0)))?;
        Some(ReceiverEvent::Packet(Box::new(joined)))
    }
}

impl SegmentRange {
    fn range(self) -> std::ops::Range<u64> {
        self.start..self.start + u64::from(self.bytes)
    }
}

/// When a frame arrives whole at the end of its link.
pub fn arrival(transit: &Transit, at: Instant) -> Option<Instant> {
    let arrives = transit.fate == FrameFate::Delivered;
    transit.delivered.filter(|_| arrives).map(|after| at + after)
}

/// A frame's row with the times that a capture says; `row` has what it was captured with.
pub fn row(transit: &Transit, row: Frame) -> Frame {
    let at = |after: Option<Duration>| after.map(|after| row.entered + after);
    Frame {
        hop: transit.hop,
        hops: transit.hops,
        frame: transit.frame,
        frame_bytes: transit.frame_bytes.unwrap_or(row.frame_bytes),
        start: at(transit.start),
        sent: at(transit.sent),
        delivered: at(transit.delivered),
        fate: transit.fate,
        cause: transit.cause,
        repetition: transit.repetition,
        ..row
    }
}

/// Frames that are remembered while under way; the oldest is forgotten first.
const UNDER_WAY_MAX: usize = 1 << 18;
