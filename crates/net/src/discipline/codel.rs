//! CoDel, "Controlled Delay Active Queue Management" (RFC 8289).
//!
//! A queue is bad when no frame gets through it in less than `target` for a whole `interval`. Then the frame at its head is
//! dropped, and the next ones at intervals that shrink with the root of their number, until a frame stays for less.
//!
//! ```text
//!              stays ≥ target for an interval: drop
//!   not dropping ─────────────────────────────────► dropping ──┐ at `drop_next`: drop,
//!              ◄───────────────────────────────────            ◄┘ then interval / √count later
//!                 a frame stays for less, or too little waits
//! ```
//!
//! With ECN a frame whose sender understands it is marked in the place of being dropped, and leaves (Linux).
//!
//! As in RFC 8289 §5, whose pseudocode this is. Linux differs in rounding: it counts in 1,024 ns, and takes the root by one
//! Newton step each time. The root is exact to the nanosecond here.

use std::collections::VecDeque;

use mqttlab_units::{Bytes, Duration, Instant};

use super::QueuedFrame;

/// What CoDel has seen of a queue, and what it will do.
#[derive(Clone, Debug)]
pub(super) struct Codel {
    target: Duration,
    interval: Duration,
    /// With no more than this behind a frame, nothing is dropped: the transmitter would run dry.
    largest_frame: Bytes,
    /// Frames of ECN-capable transports are marked instead of dropped.
    ecn: bool,
    /// An interval after frames began to stay too long; `None` while they do not.
    first_above: Option<Instant>,
    drop_next: Instant,
    /// Drops since dropping began, more or less: it begins where it ended shortly before.
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// What CoDel takes frames from.
pub(super) trait Backlog {
    /// The next frame leaves it.
    fn pull(&mut self) -> Option<QueuedFrame>;
    /// Bytes that are still in it.
    fn bytes(&self) -> Bytes;
}

/// A queue, first in, first out, under CoDel.
#[derive(Clone, Debug)]
pub(crate) struct CodelQueue {
    codel: Codel,
    frames: FrameList,
}

/// Frames first in, first out, and their bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct FrameList {
    frames: VecDeque<QueuedFrame>,
    bytes: Bytes,
}

impl Codel {
    pub fn new(target: Duration, interval: Duration, largest_frame_bytes: u32, ecn: bool) -> Codel {
        Codel {
            target,
            interval,
            largest_frame: Bytes(largest_frame_bytes.into()),
            ecn,
            first_above: None,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    /// The next frame that is not dropped.
    pub fn pull(
        &mut self,
        now: Instant,
        backlog: &mut impl Backlog,
        dropped: &mut Vec<QueuedFrame>,
    ) -> Option<QueuedFrame> {
        let (mut frame, mut too_long) = self.examine(now, backlog);
        if self.dropping {
            self.dropping &= too_long;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if self.marks(&mut frame) {
                    self.drop_next = self.after(self.drop_next);
                    return frame;
                }
                dropped.extend(frame);
                (frame, too_long) = self.examine(now, backlog);
                self.dropping = too_long;
                if too_long {
                    self.drop_next = self.after(self.drop_next);
                }
            }
        } else if too_long {
            if !self.marks(&mut frame) {
                dropped.extend(frame);
                (frame, _) = self.examine(now, backlog);
            }
            self.begin_dropping(now);
        }
        frame
    }

    /// Marks a frame in the place of dropping it, where its sender understands that (RFC 3168 §5). It leaves the queue, and
    /// the next one waits for its turn (Linux, `codel_dequeue`).
    fn marks(&self, frame: &mut Option<QueuedFrame>) -> bool {
        let Some(frame) = frame.as_mut().filter(|frame| self.ecn && frame.name.is_ect) else { return false };
        frame.is_marked = true;
        true
    }

    /// Frames were dropped for another reason: the queue needs more of it (Linux, `fq_codel_drop`).
    pub fn note_drops(&mut self, frames: u32) {
        self.count = self.count.saturating_add(frames);
    }

    /// The first frame leaves the queue, and whether it may be dropped: `dodequeue` of RFC 8289 §5.7.
    fn examine(&mut self, now: Instant, backlog: &mut impl Backlog) -> (Option<QueuedFrame>, bool) {
        let Some(frame) = backlog.pull() else {
            self.first_above = None;
            return (None, false);
        };
        if now.since(frame.entered) < self.target || backlog.bytes() <= self.largest_frame {
            self.first_above = None;
            return (Some(frame), false);
        }
        let is_too_long = match self.first_above {
            None => {
                self.first_above = Some(now.saturating_add(self.interval));
                false
            }
            Some(first_above) => now >= first_above,
        };
        (Some(frame), is_too_long)
    }

    fn begin_dropping(&mut self, now: Instant) {
        self.dropping = true;
        // What was needed shortly before is a good guess for what is needed now (RFC 8289 §5.6).
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now < self.drop_next.saturating_add(self.interval * RECENT_INTERVALS);
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = self.after(now);
        self.last_count = self.count;
    }

    /// The control law: interval / √count later.
    fn after(&self, time: Instant) -> Instant {
        let square = u128::from(self.interval.as_ns()).pow(2);
        let gap = (square / u128::from(self.count.max(1))).isqrt();
        time.saturating_add(Duration::from_ns(u64::try_from(gap).unwrap_or(u64::MAX)))
    }
}

impl CodelQueue {
    pub(super) fn new(codel: Codel) -> CodelQueue {
        CodelQueue { codel, frames: FrameList::default() }
    }

    pub fn push(&mut self, frame: QueuedFrame) {
        self.frames.push(frame);
    }

    pub fn pull(&mut self, now: Instant, dropped: &mut Vec<QueuedFrame>) -> Option<QueuedFrame> {
        self.codel.pull(now, &mut self.frames, dropped)
    }

    pub fn drain(&mut self) -> Vec<QueuedFrame> {
        self.frames.drain()
    }
}

impl FrameList {
    pub fn push(&mut self, frame: QueuedFrame) {
        self.bytes += frame.frame;
        self.frames.push_back(frame);
    }

    pub fn drain(&mut self) -> Vec<QueuedFrame> {
        self.bytes = Bytes(0);
        self.frames.drain(..).collect()
    }
}

impl Backlog for FrameList {
    fn pull(&mut self) -> Option<QueuedFrame> {
        let frame = self.frames.pop_front()?;
        self.bytes = self.bytes - frame.frame;
        Some(frame)
    }

    fn bytes(&self) -> Bytes {
        self.bytes
    }
}

/// Dropping that ended no longer ago than this is gone on with.
const RECENT_INTERVALS: u64 = 16;
