//! One direction of a link: a queue, a transmitter, a channel.
//!
//! ```text
//!   offer ─► loss at entry ─► queue ─► transmitter (rate) ─► loss on the air ─► propagation (delay law) ─► at
//!              └ no time used   └ full: dropped  └ start … sent     └ its time is used       └ order kept or not
//! ```
//!
//! A frame and a time go in, its [`Fate`] with all its times comes out at once: who waits how long is known when a
//! frame arrives, because a queue in front of one transmitter is first in, first out. Nothing has to be called back.
//! Frames must be offered in the order of time.
//!
//! Every knob has dice of its own, and each takes the same number of draws for each frame whatever the other knobs
//! say, so that turning one does not change what another does to frame number n.
//!
//! What it does not model: other queueing disciplines than tail drop, and transmitters whose rate varies.

use std::collections::VecDeque;

use mqttlab_units::{Bytes, Dice, Duration, Instant, Seed};

use crate::delay::Delay;
use crate::fate::{Cause, Delivery, Fate};
use crate::loss::Loss;
use crate::spec::{LinkSpec, LossPlace};

/// One direction of a link, or a transmitter that both directions share.
#[derive(Clone, Debug)]
pub struct Link {
    spec: LinkSpec,
    loss: Loss,
    delay: Delay,
    duplication: Dice,
    corruption: Dice,
    reordering: Dice,
    since_reordered: u32,
    busy_until: Instant,
    last_arrival: Instant,
    last_offer: Instant,
    queue: VecDeque<(Instant, Bytes)>,
    queued_bytes: Bytes,
    counters: LinkCounters,
}

/// What a link has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Frames offered.
    pub frames: u64,
    /// Their bytes as the link counts them.
    pub bytes: Bytes,
    /// Frames that arrive, without copies.
    pub delivered: u64,
    /// Bytes of these.
    pub delivered_bytes: Bytes,
    /// Frames dropped because the queue was full.
    pub dropped_queue: u64,
    /// Frames dropped by the channel.
    pub dropped_channel: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Frames damaged.
    pub corrupted: u64,
    /// Time that the transmitter was busy.
    pub busy: Duration,
    /// Most frames that waited or were in service at once.
    pub queue_frames_max: u32,
}

impl Link {
    /// A link with nothing under way. Its streams derive from `seed` by the link's name and the knob's.
    pub fn new(spec: LinkSpec, seed: Seed) -> Self {
        let stream = |knob: &str| seed.derive(&format!("{}/{knob}", spec.name));
        Link {
            loss: Loss::new(&spec.loss, stream("loss")),
            delay: Delay::new(spec.delay.clone(), stream("delay")),
            duplication: stream("duplication").dice(),
            corruption: stream("corruption").dice(),
            reordering: stream("reordering").dice(),
            since_reordered: 0,
            busy_until: Instant::ZERO,
            last_arrival: Instant::ZERO,
            last_offer: Instant::ZERO,
            queue: VecDeque::new(),
            queued_bytes: Bytes(0),
            counters: LinkCounters::default(),
            spec,
        }
    }

    /// What the link was made from.
    pub fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    /// What it has done so far.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// The size that the link counts for an IP packet: its own overhead added, padded to its minimum.
    pub fn frame_size(&self, packet: Bytes) -> Bytes {
        let size = packet.0 + u64::from(self.spec.overhead_bytes);
        Bytes(size.max(u64::from(self.spec.minimum_frame_bytes)))
    }

    /// Sends an IP packet of this size.
    ///
    /// # Panics
    /// When `now` is before the last offer.
    pub fn offer(&mut self, now: Instant, packet: Bytes) -> Fate {
        assert!(now >= self.last_offer, "a frame was offered to `{}` before the last one", self.spec.name);
        self.last_offer = now;
        let frame = self.frame_size(packet);
        self.counters.frames += 1;
        self.counters.bytes += frame;
        let lost = self.loss.strike(frame);
        let draws = self.draw(packet);
        match (lost, self.spec.loss_at) {
            (Some(cause), LossPlace::Entry) => self.lose(cause, None),
            (lost, _) => self.transmit(now, frame, lost, draws),
        }
    }

    /// The other knobs' draws, the same number for every frame.
    fn draw(&mut self, packet: Bytes) -> Draws {
        let damaged = self.corruption.chance(self.spec.corruption);
        let bit = self.corruption.bits();
        let corrupted_bit = (damaged && packet.0 > 0).then(|| bit % packet.bits());
        let duplicated = self.duplication.chance(self.spec.duplication);
        let delay = self.delay.draw();
        let copy_delay = if self.spec.duplication.is_zero() { delay } else { self.delay.draw() };
        Draws { corrupted_bit, duplicated, delay, copy_delay, overtakes: self.overtakes() }
    }

    /// Netem's reordering: every `gap`-th frame is a candidate, and leaves without waiting with this probability.
    fn overtakes(&mut self) -> bool {
        let lucky = self.reordering.chance(self.spec.reordering.probability);
        self.since_reordered += 1;
        let candidate = self.since_reordered >= self.spec.reordering.gap.max(1);
        let overtakes = lucky && candidate && !self.spec.reordering.probability.is_zero();
        if overtakes {
            self.since_reordered = 0;
        }
        overtakes
    }

    fn transmit(&mut self, now: Instant, frame: Bytes, lost: Option<Cause>, draws: Draws) -> Fate {
        self.depart(now);
        if !self.has_room(frame) {
            self.counters.dropped_queue += 1;
            return Fate::Dropped { cause: Cause::QueueFull, air: None };
        }
        let serialization =
            self.spec.rate_bit_s.map_or(Duration::ZERO, |rate| rate.serialization_time(frame));
        let start = now.max(self.busy_until);
        let sent = start + serialization;
        self.busy_until = sent;
        self.counters.busy += serialization;
        let at = self.arrival(sent, &draws);
        self.enqueue(if self.spec.queue.counts_delay_line { at } else { sent }, frame);
        if let Some(cause) = lost {
            return self.lose(cause, Some((start, sent)));
        }
        self.deliver(
            frame,
            Delivery {
                start,
                sent,
                at,
                corrupted_bit: draws.corrupted_bit,
                duplicate_at: draws.duplicated.then(|| self.ordered(sent + draws.copy_delay).max(at)),
            },
        )
    }

    fn deliver(&mut self, frame: Bytes, delivery: Delivery) -> Fate {
        self.counters.delivered += 1;
        self.counters.delivered_bytes += frame;
        self.counters.corrupted += u64::from(delivery.corrupted_bit.is_some());
        self.counters.duplicated += u64::from(delivery.duplicate_at.is_some());
        Fate::Delivered(delivery)
    }

    fn lose(&mut self, cause: Cause, air: Option<(Instant, Instant)>) -> Fate {
        self.counters.dropped_channel += 1;
        Fate::Dropped { cause, air }
    }

    fn arrival(&mut self, sent: Instant, draws: &Draws) -> Instant {
        // A frame that overtakes skips the delay line, as netem's reordered ones do.
        if draws.overtakes {
            return sent;
        }
        let at = self.ordered(sent + draws.delay);
        self.last_arrival = self.last_arrival.max(at);
        at
    }

    fn ordered(&self, at: Instant) -> Instant {
        if self.spec.delay.keep_order { at.max(self.last_arrival) } else { at }
    }

    /// Takes what has left the queue by `now` out of its count.
    fn depart(&mut self, now: Instant) {
        while let Some(&(until, size)) = self.queue.front() {
            if until > now {
                break;
            }
            self.queue.pop_front();
            self.queued_bytes = self.queued_bytes - size;
        }
    }

    fn has_room(&self, frame: Bytes) -> bool {
        let limits = &self.spec.queue;
        limits.limit_packets.is_none_or(|limit| self.queue.len() < limit as usize)
            && limits.limit_bytes.is_none_or(|limit| (self.queued_bytes + frame).0 <= limit)
    }

    fn enqueue(&mut self, until: Instant, frame: Bytes) {
        self.queue.push_back((until, frame));
        self.queued_bytes += frame;
        self.counters.queue_frames_max = self.counters.queue_frames_max.max(self.queue.len() as u32);
    }
}

#[derive(Clone, Copy)]
struct Draws {
    corrupted_bit: Option<u64>,
    duplicated: bool,
    delay: Duration,
    copy_delay: Duration,
    overtakes: bool,
}
