//! A link that may change while frames are in it: down and up, or another spec.
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
//! damage for frames that leave the transmitter later, its queue for frames that come later. A smaller limit drops nothing
//! that has got in. Where a link keeps its order, a shorter delay lets no frame overtake those in flight.
//!
//! A change comes after all else that happens at its instant: a frame whose last bit leaves then has left, and one whose
//! turn comes then has begun.

use std::collections::VecDeque;

use mqttlab_units::{Bytes, Instant, Seed};

use super::{Impairments, Link, UNDECIDED};
use crate::change::{DownQueue, LinkChange};
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

/// What a link keeps that may change.
#[derive(Clone, Debug)]
pub(super) struct Changing {
    /// As the link is now.
    spec: LinkSpec,
    seed: Seed,
    down: Option<DownQueue>,
    /// First in, first out; all but the first wait.
    waiting: VecDeque<WaitingFrame>,
    settled: VecDeque<SettledFrame>,
    /// Frames that were dropped because the link was down.
    pub(super) dropped: u64,
    /// Specs so far, but for the first.
    changes: u64,
}

/// A frame that waits, or is being sent.
#[derive(Clone, Copy, Debug)]
struct WaitingFrame {
    token: u32,
    entered: Instant,
    packet: Bytes,
    frame: Bytes,
    name: FrameName,
    /// From when until when the transmitter has it; `None` while it waits.
    service: Option<[Instant; 2]>,
}

impl Link {
    /// A link as [`Link::new`] makes it, which may change.
    pub fn changeable(spec: LinkSpec, seed: Seed) -> Link {
        let changing = Changing {
            spec: spec.clone(),
            seed,
            down: None,
            waiting: VecDeque::new(),
            settled: VecDeque::new(),
            dropped: 0,
            changes: 0,
        };
        Link { changing: Some(Box::new(changing)), ..Link::new(spec, seed) }
    }

    /// Whether it was made to change.
    #[inline]
    pub fn is_changeable(&self) -> bool {
        self.changing.is_some()
    }

    /// As it is now, if it may change.
    pub fn spec(&self) -> Option<&LinkSpec> {
        self.changing.as_ref().map(|changing| &changing.spec)
    }

    /// Sends an IP packet of this size over a link that may change; `token` is the caller's. What becomes of it is told by
    /// [`Link::poll`] when it is decided.
    ///
    /// # Panics
    /// When `now` is before an earlier call's, or the link was not made to change.
    pub fn enter(&mut self, now: Instant, token: u32, packet: Bytes, name: FrameName) {
        self.tick(now);
        // Before all dice: a link that is down has no channel.
        let admitted = match self.changing().down {
            Some(DownQueue::Drop) => self.admit_nothing(packet),
            _ => self.admit(now, packet, name),
        };
        match admitted {
            Ok(frame) => {
                self.queue.push(UNDECIDED, frame);
                let present = self.queue.frames.len() as u32;
                self.counters.queue_frames_max = self.counters.queue_frames_max.max(present);
                let frame = WaitingFrame { token, entered: now, packet, frame, name, service: None };
                self.changing().waiting.push_back(frame);
                self.tick(now);
            }
            Err(fate) => self.settle(SettledFrame { frame: token, entered: now, fate }),
        }
    }

    /// Time has passed: frames have left the transmitter, and it has taken the next.
    ///
    /// # Panics
    /// When the link was not made to change.
    pub fn tick(&mut self, now: Instant) {
        while let Some(&first) = self.changing().waiting.front() {
            let service = match first.service {
                Some(service) => service,
                None if self.changing().down.is_some() => return,
                None => self.transmit(first.entered, first.frame),
            };
            if service[1] > now {
                self.changing().waiting[0].service = Some(service);
                return;
            }
            self.changing().waiting.pop_front();
            self.queue.pull();
            let fate = self.depart(service, first.packet, first.frame, first.name);
            self.settle(SettledFrame { frame: first.token, entered: first.entered, fate });
        }
    }

    /// The next frame whose fate has been decided.
    pub fn poll(&mut self) -> Option<SettledFrame> {
        self.changing.as_mut()?.settled.pop_front()
    }

    /// When a fate will be decided, if nothing changes; to be told then by [`Link::tick`].
    pub fn next_deadline(&self) -> Option<Instant> {
        let [_, sent] = self.changing.as_ref()?.waiting.front()?.service?;
        Some(sent)
    }

    /// The link changes.
    ///
    /// # Panics
    /// When `now` is before an earlier call's, or the link was not made to change.
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
            LinkChange::Spec { spec } => self.replace(spec),
        }
        self.tick(now);
    }

    fn changing(&mut self) -> &mut Changing {
        self.changing.as_mut().expect("the link was made to change")
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
        while let Some(&first) = self.changing().waiting.front() {
            let service = first.service.filter(|[start, _]| *start <= now);
            if let Some([start, sent]) = first.service.filter(|[start, _]| *start > now) {
                // Its trace would have served it later.
                self.counters.busy = self.counters.busy.saturating_sub(sent.since(start));
                self.busy_until = now;
                self.changing().waiting[0].service = None;
            }
            if service.is_none() && queue == DownQueue::Keep {
                break;
            }
            let air = service.map(|[start, sent]| {
                self.counters.busy = self.counters.busy.saturating_sub(sent.since(now));
                self.busy_until = now;
                (start, now)
            });
            self.changing().waiting.pop_front();
            self.changing().dropped += 1;
            self.queue.pull();
            let fate = Fate::Dropped { cause: Cause::LinkDown, air };
            self.settle(SettledFrame { frame: first.token, entered: first.entered, fate });
        }
        if let Some(trace) = &mut self.trace {
            trace.release(now);
        }
    }

    fn replace(&mut self, spec: &LinkSpec) {
        let changing = self.changing.as_mut().expect("the link was made to change");
        // One spec may be for several links: each keeps its name, and with it its streams.
        let spec = LinkSpec { name: changing.spec.name.clone(), ..spec.clone() };
        changing.changes += 1;
        if let Some(trace) = &mut self.trace {
            trace.rebase(&spec);
        }
        match &mut self.impairments {
            Some(impairments) => impairments.change(&changing.spec, &spec, changing.seed, changing.changes),
            None => self.impairments = Impairments::of(&spec, changing.seed).map(Box::new),
        }
        self.rate_bit_s = spec.rate_bit_s;
        self.overhead_bytes = spec.overhead_bytes;
        self.minimum_frame_bytes = spec.minimum_frame_bytes;
        self.queue.limits = spec.queue.clone();
        self.delay = spec.delay.mean;
        self.keep_order = spec.delay.keep_order;
        changing.spec = spec;
    }
}
