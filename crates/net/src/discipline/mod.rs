//! What waits in front of a transmitter: which frame it takes next, and which frames are dropped.
//!
//! ```text
//!   push ─► tail drop: one list, first in, first out
//!         ─► CoDel:     the same list; drops at its head while frames stay too long
//!         ─► FQ-CoDel:  a list for each flow with its own CoDel, served in turns
//!   pull ◄─
//! ```
//!
//! Contract: times never run back. Each frame that was pushed comes out once, by `pull` or among the dropped ones.
//!
//! What it does not know: limits of the queue's length. The link keeps the sum, because the frame in the transmitter counts.

mod codel;
mod fq_codel;

use std::collections::VecDeque;

use mqttlab_units::{Bytes, Instant, Seed};

use crate::name::FrameName;
use crate::spec::Discipline;

use codel::{Codel, CodelQueue};
use fq_codel::FqCodel;

/// A frame that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedFrame {
    /// The caller's.
    pub token: u32,
    /// When it came.
    pub entered: Instant,
    /// The IP packet.
    pub packet: Bytes,
    /// What the link counts for it.
    pub frame: Bytes,
    pub name: FrameName,
    /// CoDel has marked it instead of dropping it.
    pub is_marked: bool,
}

/// Frames that wait, by discipline.
#[derive(Clone, Debug)]
pub(crate) enum Waiting {
    TailDrop(VecDeque<QueuedFrame>),
    Codel(CodelQueue),
    FqCodel(Box<FqCodel>),
}

impl Waiting {
    /// Nothing waits. `seed` is for the places of flows.
    pub fn new(discipline: &Discipline, seed: Seed) -> Waiting {
        match *discipline {
            Discipline::TailDrop => Waiting::TailDrop(VecDeque::new()),
            Discipline::Codel { target, interval, largest_frame_bytes, ecn } => {
                Waiting::Codel(CodelQueue::new(Codel::new(target, interval, largest_frame_bytes, ecn)))
            }
            Discipline::FqCodel { target, interval, largest_frame_bytes, ecn, flows, quantum_bytes } => {
                let codel = Codel::new(target, interval, largest_frame_bytes, ecn);
                Waiting::FqCodel(Box::new(FqCodel::new(codel, flows, quantum_bytes, seed)))
            }
        }
    }

    /// Another discipline, or other settings. What waits stays, in the order in which it came; what CoDel has learned goes.
    pub fn change(&mut self, discipline: &Discipline, seed: Seed) {
        let mut frames = self.drain();
        frames.sort_by_key(|frame| frame.entered);
        *self = Waiting::new(discipline, seed);
        for frame in frames {
            self.push(frame);
        }
    }

    /// A frame comes.
    pub fn push(&mut self, frame: QueuedFrame) {
        match self {
            Waiting::TailDrop(frames) => frames.push_back(frame),
            Waiting::Codel(queue) => queue.push(frame),
            Waiting::FqCodel(queue) => queue.push(frame),
        }
    }

    /// The transmitter takes a frame. Frames that are dropped instead go to `dropped`.
    pub fn pull(&mut self, now: Instant, dropped: &mut Vec<QueuedFrame>) -> Option<QueuedFrame> {
        match self {
            Waiting::TailDrop(frames) => frames.pop_front(),
            Waiting::Codel(queue) => queue.pull(now, dropped),
            Waiting::FqCodel(queue) => queue.pull(now, dropped),
        }
    }

    /// Frames that make room in a queue that is too long; none where the newest frame is the one that finds no room.
    pub fn make_room(&mut self, dropped: &mut Vec<QueuedFrame>) {
        if let Waiting::FqCodel(queue) = self {
            queue.make_room(dropped);
        }
    }

    /// Whether a frame that finds no room is dropped itself.
    pub fn drops_at_tail(&self) -> bool {
        !matches!(self, Waiting::FqCodel(_))
    }

    /// Takes all frames out.
    pub fn drain(&mut self) -> Vec<QueuedFrame> {
        match self {
            Waiting::TailDrop(frames) => frames.drain(..).collect(),
            Waiting::Codel(queue) => queue.drain(),
            Waiting::FqCodel(queue) => queue.drain(),
        }
    }
}
