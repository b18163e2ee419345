//! A link that takes each step in its time: one that may change while frames are in it (down and up, or another spec), or
//! whose [discipline](crate::Discipline) looks at frames when they leave its queue.
//!
//! ```text
//!   enter ─► queue ─────► transmitter ─────► flight ─► poll
//!              │ down: waits     │ down: lost      └ has left: arrives
//!              └ or is dropped   └ a new rate is the next frame's
//! ```
//!
//! A link that goes **down** loses the frame that is being sent, at that instant. What has left the transmitter arrives:
//! light does not turn back. What waits either stays until the link is up again ([`DownQueue::Keep`]), as
//! behind a modem that has lost its carrier (RFC 3819, "Recovery from Subnetwork Outages", advises to keep packets), or is dropped with all that
//! come until then ([`DownQueue::Drop`]), as by Linux: `ip link set down` empties the queue (`dev_deactivate` resets its
//! discipline), and `noop_qdisc` drops what follows. Under Linux a netem delay is part of that queue, so that frames in the
//! emulated flight are lost with it; they are on the cable here, and arrive.
//!
//! Another **spec** holds from then on: its rate for the next frame that the transmitter takes, its delay, loss, copies and
//! damage for frames that leave the transmitter later, its queue and its policer for frames that come later. A smaller limit drops nothing
//! that has got in (under FQ-CoDel the next frame that comes makes room). Another discipline takes over what waits. Where a link keeps its order, a shorter delay lets no frame overtake those in flight.
//!
//! A change comes after all else that happens at its instant: a frame whose last bit leaves then has left, and one whose
//! turn comes then has begun.

use std::collections::VecDeque;

use mqttlab_units::{Bytes, Instant, Seed};

use super::{Impairments, Link, QueueLimits, stream};
use crate::change::{DownQueue, LinkChange};
use crate::discipline::{QueuedFrame, Waiting};
use crate::fate::{Cause, Fate};
use crate::name::FrameName;
use crate::spec::LinkSpec;

/// A frame whose fate on the link has been decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettledFrame {
    /// The caller's token.
    pub frame: u32,
    /// When it came to the link.
    pub entered: Instant,
    /// What becomes of it.
    pub fate: Fate,
}

/// What a link keeps that takes each step in its time.
#[derive(Clone, Debug)]
pub(super) struct Changing {
    /// As the link is now.
    spec: LinkSpec,
    seed: Seed,
    down: Option<DownQueue>,
    /// What the transmitter has, from when until when.
    in_service: Option<(QueuedFrame, [Instant; 2])>,
    /// What the transmitter has given back: it comes before all that waits.
    next: Option<QueuedFrame>,
    pub(super) waiting: Waiting,
    /// Memory for frames that the discipline drops.
    rejected: Vec<QueuedFrame>,
    settled: VecDeque<SettledFrame>,
    /// Frames that were dropped because the link was down.
    pub(super) dropped: u64,
    /// Frames that were marked instead of dropped.
    pub(super) marked: u64,
    /// Specs so far, but for the first.
    changes: u64,
}

impl Changing {
    fn new(spec: LinkSpec, seed: Seed) -> Changing {
        Changing {
            down: None,
            in_service: None,
            next: None,
            waiting: Waiting::new(&spec.queue.discipline, stream(seed, &spec.name, "flows")),
            rejected: Vec::new(),
            settled: VecDeque::new(),
            dropped: 0,
            marked: 0,
            changes: 0,
            spec,
            seed,
        }
    }
}

impl Link {
    /// A link as [`Link::new`] makes it, which may change.
    pub fn changeable(spec: LinkSpec, seed: Seed) -> Link {
        let changing = Changing::new(spec.clone(), seed);
        Link { changing: Some(Box::new(changing)), ..Link::at_rest(spec, seed) }
    }

    /// From now on it may change. `spec` and `seed` are those that it was made of. The fate of frames that have come before is
    /// decided: what waits is sent and arrives, whatever happens to the link, and what comes later waits for it.
    pub fn let_change(&mut self, spec: &LinkSpec, seed: Seed) {
        if self.changing.is_none() {
            self.changing = Some(Box::new(Changing::new(spec.clone(), seed)));
        }
    }

    /// Whether it takes each step in its time: [`Link::enter`] is for it, and [`Link::offer`] for the others.
    #[inline]
    pub fn is_stepwise(&self) -> bool {
        self.changing.is_some()
    }

    /// As it is now, if it takes each step in its time.
    pub fn spec(&self) -> Option<&LinkSpec> {
        self.changing.as_ref().map(|changing| &changing.spec)
    }

    /// Sends an IP packet of this size over a link that takes each step in its time; `token` is the caller's. What becomes of it is told by
    /// [`Link::poll`] when it is decided.
    ///
    /// # Panics
    /// When `now` is before an earlier call's, or the link is [one step](Link::is_stepwise).
    pub fn enter(&mut self, now: Instant, token: u32, packet: Bytes, name: FrameName) {
        self.tick(now);
        // Before all dice: a link that is down has no channel.
        let admitted = match self.changing().down {
            Some(DownQueue::Drop) => self.admit_nothing(packet),
            _ => self.admit(now, packet, name),
        };
        match admitted {
            Ok(frame) => {
                self.queue.push_undecided(frame);
                self.changing().waiting.push(QueuedFrame {
                    token,
                    entered: now,
                    packet,
                    frame,
                    name,
                    is_marked: false,
                });
                self.make_room();
                self.counters.queue_frames_max = self.counters.queue_frames_max.max(self.queue.len() as u32);
                self.tick(now);
            }
            Err(fate) => self.settle(SettledFrame { frame: token, entered: now, fate }),
        }
    }

    /// Time has passed: frames have left the transmitter, and it has taken the next.
    ///
    /// # Panics
    /// When the link is [one step](Link::is_stepwise).
    pub fn tick(&mut self, now: Instant) {
        while let Some((frame, service)) = self.changing().in_service.take().or_else(|| self.serve()) {
            if service[1] > now {
                self.changing().in_service = Some((frame, service));
                return;
            }
            self.queue.pull(frame.frame);
            let mut fate = self.depart(service, frame.packet, frame.frame, frame.name);
            if let Fate::Delivered(delivery) = &mut fate {
                delivery.is_marked = frame.is_marked;
                self.changing().marked += u64::from(frame.is_marked);
            }
            self.settle(SettledFrame { frame: frame.token, entered: frame.entered, fate });
        }
    }

    /// The transmitter, which is free, takes a frame out of the queue.
    fn serve(&mut self) -> Option<(QueuedFrame, [Instant; 2])> {
        // Frames wait behind one that is being sent, or came just now: a free transmitter has taken all others.
        let now = self.busy_until.max(self.last_offer);
        let changing = self.changing();
        if changing.down.is_some() {
            return None;
        }
        if let Some(frame) = changing.next.take() {
            return Some((frame, self.transmit(now, frame.frame)));
        }
        let mut dropped = std::mem::take(&mut changing.rejected);
        let taken = changing.waiting.pull(now, &mut dropped);
        self.counters.dropped_codel += dropped.len() as u64;
        self.reject(dropped, Cause::Codel);
        let frame = taken?;
        Some((frame, self.transmit(now, frame.frame)))
    }

    /// Drops what has no room under a discipline that does not drop the frame that comes.
    fn make_room(&mut self) {
        if self.changing().waiting.drops_at_tail() {
            return;
        }
        while self.queue.is_too_long() {
            let changing = self.changing();
            let mut dropped = std::mem::take(&mut changing.rejected);
            changing.waiting.make_room(&mut dropped);
            let count = dropped.len() as u64;
            self.counters.dropped_queue += count;
            self.reject(dropped, Cause::QueueFull);
            if count == 0 {
                // All of it is being sent, or flies.
                return;
            }
        }
    }

    fn reject(&mut self, mut frames: Vec<QueuedFrame>, cause: Cause) {
        for frame in frames.drain(..) {
            self.queue.pull(frame.frame);
            let fate = Fate::Dropped { cause, air: None };
            self.settle(SettledFrame { frame: frame.token, entered: frame.entered, fate });
        }
        self.changing().rejected = frames;
    }

    /// The next frame whose fate has been decided.
    pub fn poll(&mut self) -> Option<SettledFrame> {
        self.changing.as_mut()?.settled.pop_front()
    }

    /// When a fate will be decided, if nothing changes; to be told then by [`Link::tick`].
    pub fn next_deadline(&self) -> Option<Instant> {
        let (_, [_, sent]) = self.changing.as_ref()?.in_service?;
        Some(sent)
    }

    /// The link changes.
    ///
    /// # Panics
    /// When `now` is before an earlier call's, or the link is [one step](Link::is_stepwise).
    pub fn change(&mut self, now: Instant, change: &LinkChange) {
        self.tick(now);
        match change {
            LinkChange::Down { queue } => self.go_down(now, *queue),
            LinkChange::Up => {
                let was_down = self.changing().down.take().is_some();
                // What has waited begins now.
                self.busy_until = self.busy_until.max(now);
                if let Some(trace) = self.trace.as_mut().filter(|_| was_down) {
                    trace.release(now);
                }
            }
            LinkChange::Spec { spec } => self.replace(now, spec),
        }
        self.tick(now);
    }

    fn changing(&mut self) -> &mut Changing {
        self.changing.as_mut().expect("the link takes each step in its time")
    }

    fn settle(&mut self, frame: SettledFrame) {
        self.changing().settled.push_back(frame);
    }

    fn admit_nothing(&mut self, packet: Bytes) -> Result<Bytes, Fate> {
        self.counters.frames += 1;
        self.counters.bytes += self.frame_size(packet);
        self.changing().dropped += 1;
        Err(Fate::Dropped { cause: Cause::LinkDown, air: None })
    }

    fn go_down(&mut self, now: Instant, queue: DownQueue) {
        self.changing().down = Some(queue);
        if let Some((frame, [start, sent])) = self.changing().in_service.take() {
            self.counters.busy = self.counters.busy.saturating_sub(sent.since(start.max(now)));
            self.busy_until = now;
            match start <= now {
                true => self.lose_to_outage(frame, Some((start, now))),
                // Its trace would have served it later: it is the next one again.
                false => self.changing().next = Some(frame),
            }
        }
        if queue == DownQueue::Drop {
            let next = self.changing().next.take();
            for frame in next.into_iter().chain(self.changing().waiting.drain()) {
                self.lose_to_outage(frame, None);
            }
        }
        if let Some(trace) = &mut self.trace {
            trace.release(now);
        }
    }

    fn lose_to_outage(&mut self, frame: QueuedFrame, air: Option<(Instant, Instant)>) {
        self.changing().dropped += 1;
        self.queue.pull(frame.frame);
        let fate = Fate::Dropped { cause: Cause::LinkDown, air };
        self.settle(SettledFrame { frame: frame.token, entered: frame.entered, fate });
    }

    fn replace(&mut self, now: Instant, spec: &LinkSpec) {
        let changing = self.changing.as_mut().expect("the link takes each step in its time");
        // One spec may be for several links: each keeps its name, and with it its streams.
        let spec = LinkSpec { name: changing.spec.name.clone(), ..spec.clone() };
        changing.changes += 1;
        if let Some(trace) = &mut self.trace {
            trace.rebase(&spec);
        }
        match &mut self.impairments {
            Some(impairments) => {
                impairments.change(now, &changing.spec, &spec, changing.seed, changing.changes);
            }
            None => self.impairments = Impairments::of(&spec, changing.seed).map(Box::new),
        }
        self.rate_bit_s = spec.rate_bit_s;
        self.overhead_bytes = spec.overhead_bytes;
        self.minimum_frame_bytes = spec.minimum_frame_bytes;
        self.queue.limits = QueueLimits::of(&spec.queue);
        if spec.queue.discipline != changing.spec.queue.discipline {
            let flows = stream(changing.seed, &spec.name, "flows");
            changing.waiting.change(&spec.queue.discipline, flows);
        }
        self.delay = spec.delay.mean;
        self.keep_order = spec.delay.keep_order;
        changing.spec = spec;
    }
}
