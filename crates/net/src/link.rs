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
//! Every knob has a seed of its own and throws its dice for the frame's [name](FrameName), so that turning one knob does
//! not change what another does to a frame, and one frame more does not change what befalls the others. Only the
//! states of burst loss and the correlation of delays go from one frame to the next.
//!
//! What it does not model: other queueing disciplines than tail drop, and transmitters whose rate varies.

use std::collections::VecDeque;

use mqttlab_units::{Bytes, Duration, Instant, Ratio, Seed};

use crate::delay::Delay;
use crate::fate::{Cause, Delivery, Fate};
use crate::loss::Loss;
use crate::name::FrameName;
use crate::spec::{LinkSpec, LossPlace};

/// One direction of a link, or a transmitter that both directions share.
#[derive(Clone, Debug)]
pub struct Link {
    spec: LinkSpec,
    loss: Loss,
    delay: Delay,
    duplication: Seed,
    corruption: Seed,
    reordering: Seed,
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
            duplication: stream("duplication"),
            corruption: stream("corruption"),
            reordering: stream("reordering"),
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
    pub fn offer(&mut self, now: Instant, packet: Bytes, name: FrameName) -> Fate {
        assert!(now >= self.last_offer, "a frame was offered to `{}` before the last one", self.spec.name);
        self.last_offer = now;
        let frame = self.frame_size(packet);
        self.counters.frames += 1;
        self.counters.bytes += frame;
        let lost = self.loss.strike(frame, name);
        match (lost, self.spec.loss_at) {
            (Some(cause), LossPlace::Entry) => self.lose(cause, None),
            (lost, _) => {
                let draws = self.draw(packet, name);
                self.transmit(now, frame, lost, draws)
            }
        }
    }

    /// The other knobs' draws.
    fn draw(&mut self, packet: Bytes, name: FrameName) -> Draws {
        let duplicated = happens(self.duplication, self.spec.duplication, name);
        Draws {
            corrupted_bit: self.corrupted_bit(packet, name),
            delay: self.delay.draw(name),
            copy_delay: if duplicated { Some(self.delay.draw(name.copy())) } else { None },
            overtakes: self.overtakes(name),
        }
    }

    fn corrupted_bit(&self, packet: Bytes, name: FrameName) -> Option<u64> {
        let damaged = packet.0 > 0 && happens(self.corruption, self.spec.corruption, name);
        damaged.then(|| self.corruption.index(name.copy().0).dice().below(packet.bits()))
    }

    /// Netem's reordering: every `gap`-th frame is a candidate, and leaves without waiting with this probability.
    fn overtakes(&mut self, name: FrameName) -> bool {
        let reordering = &self.spec.reordering;
        if reordering.probability.is_zero() {
            return false;
        }
        self.since_reordered += 1;
        let candidate = self.since_reordered >= reordering.gap.max(1);
        let overtakes = candidate && happens(self.reordering, reordering.probability, name);
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
                duplicate_at: draws.copy_delay.map(|delay| self.ordered(sent + delay).max(at)),
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
    delay: Duration,
    /// Of the copy, if there is one.
    copy_delay: Option<Duration>,
    overtakes: bool,
}

/// Whether a knob of this probability turns for a frame.
fn happens(knob: Seed, probability: Ratio, name: FrameName) -> bool {
    !probability.is_zero() && knob.index(name.0).dice().chance(probability)
}
