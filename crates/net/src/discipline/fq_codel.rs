//! FQ-CoDel, "The Flow Queue CoDel Packet Scheduler and Active Queue Management Algorithm" (RFC 8290).
//!
//! ```text
//!   frame ─► hash of its flow ─► one of `flows` queues, each with its own CoDel
//!                                   │ was empty
//!                                   ▼                   credit used up, or empty
//!                              new queues ─────────────────► old queues ─┐
//!                                   │ served first              ▲ │      │ empty: in no list
//!                                   ▼                           └─┘ credit used up
//!                               transmitter ◄── queue at the head, while it has credit
//! ```
//!
//! A queue has credit for `quantum` bytes a turn, and may overdraw it by one frame (§4.2). A flow that sends
//! little finds its queue empty, is new each time, and passes the others.
//!
//! A flow is a direction of a connection: what the hash of a packet's addresses, protocol and ports is in Linux (§4.1). Two
//! flows may share a queue. Where RFC 8290 leaves a choice, this is Linux's `sch_fq_codel`: a queue that is too long loses
//! frames at the head of its fattest flow, half of its bytes and 64 frames at most (`fq_codel_drop`); CoDel drops nothing
//! while no more than one frame's bytes wait in all queues together (`codel_should_drop` by the backlog of all).

use std::collections::{BTreeMap, VecDeque};

use mqttlab_units::{Bytes, Instant, Seed};

use super::QueuedFrame;
use super::codel::{Backlog, Codel, FrameList};

/// Queues by flow.
#[derive(Clone, Debug)]
pub(crate) struct FqCodel {
    /// As each queue's CoDel begins.
    codel: Codel,
    flows_max: u32,
    quantum: i64,
    seed: Seed,
    /// Queues that were used, by the hashes of their flows.
    flows: BTreeMap<u32, Flow>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    /// Of all queues.
    bytes: Bytes,
}

#[derive(Clone, Debug)]
struct Flow {
    frames: FrameList,
    codel: Codel,
    /// Bytes that it may still send in its turn.
    credit: i64,
    is_listed: bool,
}

/// A flow's queue, with the bytes of all.
struct FlowBacklog<'a> {
    frames: &'a mut FrameList,
    bytes: &'a mut Bytes,
}

impl FqCodel {
    pub(super) fn new(codel: Codel, flows_max: u32, quantum_bytes: u32, seed: Seed) -> FqCodel {
        FqCodel {
            codel,
            flows_max: flows_max.max(1),
            // Without any credit no queue would ever be served.
            quantum: i64::from(quantum_bytes.max(1)),
            seed,
            flows: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: Bytes(0),
        }
    }

    /// A frame comes: `fq_codel_enqueue`.
    pub fn push(&mut self, frame: QueuedFrame) {
        let place = (self.seed.index(frame.name.flow).0 % u64::from(self.flows_max)) as u32;
        let flow = self.flows.entry(place).or_insert_with(|| Flow {
            frames: FrameList::default(),
            codel: self.codel.clone(),
            credit: 0,
            is_listed: false,
        });
        self.bytes += frame.frame;
        flow.frames.push(frame);
        if !flow.is_listed {
            (flow.is_listed, flow.credit) = (true, self.quantum);
            self.new.push_back(place);
        }
    }

    /// The transmitter takes a frame: RFC 8290 §4.2.
    pub fn pull(&mut self, now: Instant, dropped: &mut Vec<QueuedFrame>) -> Option<QueuedFrame> {
        loop {
            let (is_new, place) = match self.new.front() {
                Some(place) => (true, *place),
                None => (false, *self.old.front()?),
            };
            let flow = self.flows.get_mut(&place).expect("a listed queue was used");
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                self.take_first(is_new);
                self.old.push_back(place);
                continue;
            }
            let mut backlog = FlowBacklog { frames: &mut flow.frames, bytes: &mut self.bytes };
            if let Some(frame) = flow.codel.pull(now, &mut backlog, dropped) {
                flow.credit -= frame.frame.0 as i64;
                return Some(frame);
            }
            // A queue that comes back as a new one at once would starve the old ones: it goes round with these first.
            let goes_round = is_new && !self.old.is_empty();
            flow.is_listed = goes_round;
            self.take_first(is_new);
            if goes_round {
                self.old.push_back(place);
            }
        }
    }

    /// The queues are too long: the one with most bytes loses half of them, or [`DROPS_AT_ONCE`] frames; one at least.
    pub fn make_room(&mut self, dropped: &mut Vec<QueuedFrame>) {
        // Of equal ones the first.
        let fattest = self.flows.values_mut().rev().max_by_key(|flow| flow.frames.bytes());
        let Some(flow) = fattest else { return };
        let half = flow.frames.bytes().0 / 2;
        let mut backlog = FlowBacklog { frames: &mut flow.frames, bytes: &mut self.bytes };
        let (mut frames, mut bytes) = (0, 0);
        while let Some(frame) = backlog.pull() {
            dropped.push(frame);
            (frames, bytes) = (frames + 1, bytes + frame.frame.0);
            if frames == DROPS_AT_ONCE || bytes >= half {
                break;
            }
        }
        flow.codel.note_drops(frames);
    }

    pub fn drain(&mut self) -> Vec<QueuedFrame> {
        self.bytes = Bytes(0);
        (self.new, self.old) = (VecDeque::new(), VecDeque::new());
        let flows = self.flows.values_mut();
        flows
            .flat_map(|flow| {
                flow.is_listed = false;
                flow.frames.drain()
            })
            .collect()
    }

    fn take_first(&mut self, is_new: bool) {
        if is_new { &mut self.new } else { &mut self.old }.pop_front();
    }
}

impl Backlog for FlowBacklog<'_> {
    fn pull(&mut self) -> Option<QueuedFrame> {
        let frame = self.frames.pull()?;
        *self.bytes = *self.bytes - frame.frame;
        Some(frame)
    }

    fn bytes(&self) -> Bytes {
        *self.bytes
    }
}

/// As Linux's `drop_batch`.
const DROPS_AT_ONCE: u32 = 64;
