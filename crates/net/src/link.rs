//! One direction of a link: a queue, a transmitter, a channel.
//!
//! ```text
//!   offer ─► policer ─► loss at entry ─► queue ─► transmitter (rate) ─► propagation (delay law) ─► loss at exit ─► at
//!              │          └ no time used   └ full: dropped  └ start … sent     └ order kept or not      └ its time is used
//!              └ too fast: dropped
//! ```
//!
//! What becomes of a frame is decided in three steps: at the entry, when the transmitter takes it, and when its last bit
//! has left; the flight cannot be changed any more. On a link that stays as it is, with a queue that is first in, first
//! out and drops what finds no room, all three are known when a frame comes: [`Link::offer`] goes through them at once, and
//! nothing has to be called back. A link that may [change](Link::change), or whose [discipline](Discipline) looks at frames
//! when they leave its queue, takes each step in its time ([`Link::enter`], [`Link::tick`]); as long as nothing changes the
//! answers of a queue with tail drop are the same. Frames must come in the order of time.
//!
//! Every knob has a seed of its own and throws its dice for the frame's [name](FrameName), so that turning one knob does
//! not change what another does to a frame, and one frame more does not change what befalls the others. Only the
//! states of burst loss and the correlation of delays go from one frame to the next.
//!
//! What it does not model: a device's own buffer behind the queue. Linux has one, which byte queue limits keep short.

mod changing;
mod following;

pub use changing::SettledFrame;
pub use following::link_traces;

use std::collections::VecDeque;
use std::sync::Arc;

use mqttlab_units::{BitRate, Bytes, Duration, Instant, Ratio, Seed};

use crate::delay::Delay;
use crate::fate::{Cause, Delivery, Fate};
use crate::loss::LossModel;
use crate::name::FrameName;
use crate::policer::Policer;
use crate::spec::{Discipline, LinkSpec, LossPlace, LossSpec, QueueSpec};
use crate::trace::TraceSpec;
use crate::traffic::{Drops, LinkTraffic};

use changing::Changing;
use following::TraceCursor;

/// One direction of a link, or a transmitter that both directions share.
///
/// There may be tens of thousands: what a clean link does not need is kept apart.
#[derive(Clone, Debug)]
pub struct Link {
    name: Box<str>,
    rate_bit_s: Option<BitRate>,
    overhead_bytes: u32,
    minimum_frame_bytes: u32,
    queue: Queue,
    /// Of a clean link.
    delay: Duration,
    keep_order: bool,
    impairments: Option<Box<Impairments>>,
    busy_until: Instant,
    last_arrival: Instant,
    last_offer: Instant,
    counters: LinkCounters,
    /// Of a link that takes each step in its time.
    changing: Option<Box<Changing>>,
    /// Of a link that follows a trace.
    trace: Option<Box<TraceCursor>>,
}

/// The knobs of a link that does more than delay.
#[derive(Clone, Debug)]
struct Impairments {
    policer: Option<Policer>,
    loss: LossModel,
    loss_at: LossPlace,
    delay: Delay,
    duplication: Knob,
    corruption: Knob,
    reordering: Knob,
    /// Every so many frames one may overtake.
    reordering_gap: u32,
    since_reordered: u32,
    /// What the channel and the policer took.
    drops: Drops,
}

/// A chance, and what its dice are derived from.
#[derive(Clone, Copy, Debug)]
struct Knob {
    chance: Ratio,
    seed: Seed,
}

/// What waits for the transmitter or is being sent.
#[derive(Clone, Debug)]
struct Queue {
    limits: QueueLimits,
    /// Each with the time when it leaves, in this order.
    frames: VecDeque<(Instant, Bytes)>,
    /// Frames of which that time is not known yet.
    undecided: u32,
    /// Of all of them.
    bytes: Bytes,
}

#[derive(Clone, Copy, Debug)]
struct QueueLimits {
    packets: Option<u32>,
    bytes: Option<u64>,
    counts_delay_line: bool,
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
    /// Frames dropped because they stayed in the queue for too long.
    pub dropped_codel: u64,
    /// Frames dropped by the channel, or by the policer.
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
        match spec.queue.discipline {
            Discipline::TailDrop => Link::at_rest(spec, seed),
            Discipline::Codel { .. } | Discipline::FqCodel { .. } => Link::changeable(spec, seed),
        }
    }

    fn at_rest(spec: LinkSpec, seed: Seed) -> Link {
        let impairments = Impairments::of(&spec, seed).map(Box::new);
        Link {
            name: spec.name.into(),
            rate_bit_s: spec.rate_bit_s,
            overhead_bytes: spec.overhead_bytes,
            minimum_frame_bytes: spec.minimum_frame_bytes,
            queue: Queue {
                limits: QueueLimits::of(&spec.queue),
                frames: VecDeque::new(),
                undecided: 0,
                bytes: Bytes(0),
            },
            delay: spec.delay.mean,
            keep_order: spec.delay.keep_order,
            impairments,
            busy_until: Instant::ZERO,
            last_arrival: Instant::ZERO,
            last_offer: Instant::ZERO,
            counters: LinkCounters::default(),
            changing: None,
            trace: None,
        }
    }

    /// The same link, which follows a trace; `spec` and `seed` are those that it was made of.
    #[must_use]
    pub fn following(self, trace: Arc<TraceSpec>, spec: &LinkSpec, seed: Seed) -> Link {
        let cursor = TraceCursor::new(trace, spec, stream(seed, &spec.name, "loss"));
        let impairments = match self.impairments {
            None if cursor.has_conditions() => Some(Box::new(Impairments::made(spec, seed))),
            impairments => impairments,
        };
        Link { trace: Some(Box::new(cursor)), impairments, ..self }
    }

    /// Publishing begins at `at`, from when on the trace counts, if it follows one.
    pub fn begin_trace(&mut self, at: Instant) {
        if let Some(trace) = &mut self.trace {
            trace.begin(at, self.busy_until);
        }
    }

    /// As the plan calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it has done so far.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// What it has carried and dropped so far, and what waits.
    pub fn traffic(&self, now: Instant) -> LinkTraffic {
        let mut drops = self.impairments.as_ref().map(|impairments| impairments.drops).unwrap_or_default();
        drops.note(Cause::QueueFull, self.counters.dropped_queue);
        drops.note(Cause::Codel, self.counters.dropped_codel);
        drops.note(Cause::LinkDown, self.changing.as_ref().map_or(0, |changing| changing.dropped));
        let (queue_frames, queue_bytes) = self.queued(now);
        LinkTraffic {
            frames: self.counters.delivered,
            bytes: self.counters.delivered_bytes.0,
            drops,
            marked: self.changing.as_ref().map_or(0, |changing| changing.marked),
            queue_frames: queue_frames as u64,
            queue_bytes: queue_bytes.0,
        }
    }

    /// Frames that wait or are in service, as the queue's limits count them, and their bytes.
    pub fn queued(&self, now: Instant) -> (usize, Bytes) {
        let left = self.queue.frames.iter().take_while(|(until, _)| *until <= now);
        left.fold((self.queue.len(), self.queue.bytes), |(frames, bytes), (_, size)| {
            (frames - 1, bytes - *size)
        })
    }

    /// The size that the link counts for an IP packet: its own overhead added, padded to its minimum.
    pub fn frame_size(&self, packet: Bytes) -> Bytes {
        let size = packet.0 + u64::from(self.overhead_bytes);
        Bytes(size.max(u64::from(self.minimum_frame_bytes)))
    }

    /// Sends an IP packet of this size over a link that stays as it is.
    ///
    /// # Panics
    /// When `now` is before the last offer.
    pub fn offer(&mut self, now: Instant, packet: Bytes, name: FrameName) -> Fate {
        debug_assert!(self.changing.is_none(), "what becomes of a frame is not known yet");
        match self.admit(now, packet, name) {
            Ok(frame) => {
                let times = self.transmit(now, frame);
                self.depart(times, packet, frame, name)
            }
            Err(fate) => fate,
        }
    }

    /// The frame's size, or why it does not get into the queue.
    #[inline(always)]
    fn admit(&mut self, now: Instant, packet: Bytes, name: FrameName) -> Result<Bytes, Fate> {
        assert!(now >= self.last_offer, "a frame was offered to `{}` before the last one", self.name);
        self.last_offer = now;
        let frame = self.frame_size(packet);
        self.counters.frames += 1;
        self.counters.bytes += frame;
        self.follow(now);
        // Before the queue is asked: what is lost here takes neither a place nor time.
        if let Some(impairments) = &mut self.impairments
            && let Some(cause) = impairments.refuse(now, frame, name)
        {
            return Err(self.lose(cause, None));
        }
        self.queue.depart(now);
        // FQ-CoDel takes each frame, and drops others where there is no room.
        let drops_at_tail = self.changing.as_ref().is_none_or(|changing| changing.waiting.drops_at_tail());
        if drops_at_tail && !self.queue.has_room(frame) {
            self.counters.dropped_queue += 1;
            return Err(Fate::Dropped { cause: Cause::QueueFull, air: None });
        }
        Ok(frame)
    }

    /// The transmitter takes a frame that has come at `entered` and is the first in the queue: from when until when.
    #[inline(always)]
    fn transmit(&mut self, entered: Instant, frame: Bytes) -> [Instant; 2] {
        if let Some(trace) = &mut self.trace
            && let Some([start, sent]) = trace.serve(entered, self.busy_until, frame)
        {
            self.busy_until = sent;
            self.counters.busy = self.counters.busy.saturating_add(sent.since(start));
            return [start, sent];
        }
        let serialization = self.rate_bit_s.map_or(Duration::ZERO, |rate| rate.serialization_time(frame));
        let start = entered.max(self.busy_until);
        // At 1 bit/s a long queue leaves after the end of time: no run lasts until then.
        let sent = start.saturating_add(serialization);
        self.busy_until = sent;
        self.counters.busy = self.counters.busy.saturating_add(serialization);
        [start, sent]
    }

    /// A frame has left the transmitter.
    #[inline(always)]
    fn depart(&mut self, [start, sent]: [Instant; 2], packet: Bytes, frame: Bytes, name: FrameName) -> Fate {
        self.follow(sent);
        // What the queue drops never reaches the channel, whose states it must not move.
        let (lost, draws) = match &mut self.impairments {
            None => {
                (None, Draws { corrupted_bit: None, delay: self.delay, copy_delay: None, overtakes: false })
            }
            Some(impairments) => {
                let on_the_air = impairments.loss_at == LossPlace::Exit;
                // What is lost on the air is transmitted all the same, and those behind it wait.
                let lost = on_the_air.then(|| impairments.loss.draw_loss(frame, name)).flatten();
                // For lost frames, too: the gap of reordering and the correlation of delays count whatever is sent.
                (lost, impairments.draw(packet, name))
            }
        };
        let at = self.arrival(sent, &draws);
        // netem has one queue, in which a frame counts until its delay has passed, too.
        self.queue.push(if self.queue.limits.counts_delay_line { at } else { sent }, frame);
        self.counters.queue_frames_max = self.counters.queue_frames_max.max(self.queue.len() as u32);
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
                // No copy comes before its original.
                duplicate_at: draws.copy_delay.map(|delay| self.ordered(sent.saturating_add(delay)).max(at)),
                is_marked: false,
            },
        )
    }

    /// The delay and loss of the trace at this time, if it follows one.
    #[inline(always)]
    fn follow(&mut self, at: Instant) {
        if let Some(conditions) = self.trace.as_mut().and_then(|trace| trace.conditions(at))
            && let Some(impairments) = &mut self.impairments
        {
            impairments.delay.change(conditions.delay);
            impairments.loss.change(&conditions.loss, conditions.loss_seed, 0);
        }
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
        if let Some(impairments) = &mut self.impairments {
            impairments.drops.note(cause, 1);
        }
        Fate::Dropped { cause, air }
    }

    fn arrival(&mut self, sent: Instant, draws: &Draws) -> Instant {
        // A frame that overtakes skips the delay line, as netem's reordered ones do.
        if draws.overtakes {
            return sent;
        }
        let at = self.ordered(sent.saturating_add(draws.delay));
        self.last_arrival = self.last_arrival.max(at);
        at
    }

    fn ordered(&self, at: Instant) -> Instant {
        if self.keep_order { at.max(self.last_arrival) } else { at }
    }
}

impl QueueLimits {
    fn of(spec: &QueueSpec) -> QueueLimits {
        let QueueSpec { limit_packets: packets, limit_bytes: bytes, counts_delay_line, discipline: _ } =
            *spec;
        QueueLimits { packets, bytes, counts_delay_line }
    }
}

impl Queue {
    fn len(&self) -> usize {
        self.frames.len() + self.undecided as usize
    }

    /// Takes what has left by `now` out of the count.
    fn depart(&mut self, now: Instant) {
        while let Some((_, size)) = self.frames.pop_front_if(|(until, _)| *until <= now) {
            self.bytes = self.bytes - size;
        }
    }

    fn has_room(&self, frame: Bytes) -> bool {
        self.limits.packets.is_none_or(|limit| self.len() < limit as usize)
            && self.limits.bytes.is_none_or(|limit| (self.bytes + frame).0 <= limit)
    }

    /// Whether more is in it than has room.
    fn is_too_long(&self) -> bool {
        self.limits.packets.is_some_and(|limit| self.len() > limit as usize)
            || self.limits.bytes.is_some_and(|limit| self.bytes.0 > limit)
    }

    fn push(&mut self, until: Instant, frame: Bytes) {
        if self.frames.capacity() == 0 {
            // Most queues never hold more than the frame that is being sent.
            self.frames.reserve_exact(1);
        }
        // Behind those that leave before it: where the delay line counts, a frame that overtakes leaves first.
        let place = self.frames.partition_point(|(earlier, _)| *earlier <= until);
        self.frames.insert(place, (until, frame));
        self.bytes += frame;
    }

    /// A frame comes whose time to leave is not known yet.
    fn push_undecided(&mut self, frame: Bytes) {
        self.undecided += 1;
        self.bytes += frame;
    }

    /// A frame whose time to leave was not known leaves.
    fn pull(&mut self, frame: Bytes) {
        self.undecided -= 1;
        self.bytes = self.bytes - frame;
    }
}

/// A random stream of a link.
fn stream(seed: Seed, link: &str, knob: &str) -> Seed {
    seed.derive(&format!("{link}/{knob}"))
}

impl Impairments {
    /// `None` for a link that only takes its time.
    fn of(spec: &LinkSpec, seed: Seed) -> Option<Impairments> {
        let chances = [spec.duplication, spec.corruption, spec.reordering.probability];
        if spec.loss == LossSpec::None
            && spec.delay.is_constant()
            && chances.iter().all(|chance| chance.is_zero())
            && spec.policer.is_none()
        {
            return None;
        }
        Some(Impairments::made(spec, seed))
    }

    fn made(spec: &LinkSpec, seed: Seed) -> Impairments {
        let stream = |knob: &str| stream(seed, &spec.name, knob);
        let knob = |name: &str, chance: Ratio| Knob { chance, seed: stream(name) };
        Impairments {
            policer: spec.policer.as_ref().map(|spec| Policer::new(spec, Instant::ZERO)),
            loss: LossModel::new(&spec.loss, stream("loss")),
            loss_at: spec.loss_at,
            delay: Delay::new(spec.delay.clone(), stream("delay")),
            duplication: knob("duplication", spec.duplication),
            corruption: knob("corruption", spec.corruption),
            reordering: knob("reordering", spec.reordering.probability),
            reordering_gap: spec.reordering.gap,
            since_reordered: 0,
            drops: Drops::default(),
        }
    }

    /// Other knobs from now on; what goes from one frame to the next goes on.
    fn change(&mut self, now: Instant, before: &LinkSpec, spec: &LinkSpec, seed: Seed, number: u64) {
        match (&mut self.policer, &spec.policer) {
            (Some(policer), Some(spec)) => policer.change(spec, now),
            (policer, spec) => *policer = spec.as_ref().map(|spec| Policer::new(spec, now)),
        }
        if spec.loss != before.loss {
            self.loss.change(&spec.loss, stream(seed, &spec.name, "loss"), number);
        }
        self.loss_at = spec.loss_at;
        self.delay.change(spec.delay.clone());
        self.duplication.chance = spec.duplication;
        self.corruption.chance = spec.corruption;
        self.reordering.chance = spec.reordering.probability;
        self.reordering_gap = spec.reordering.gap;
    }

    /// Why a frame that comes does not reach the queue. What the policer drops never reaches the channel, whose states it
    /// must not move.
    fn refuse(&mut self, now: Instant, frame: Bytes, name: FrameName) -> Option<Cause> {
        if self.policer.as_mut().is_some_and(|policer| !policer.passes(now, frame)) {
            return Some(Cause::Policer);
        }
        (self.loss_at == LossPlace::Entry).then(|| self.loss.draw_loss(frame, name)).flatten()
    }

    /// What all knobs but the loss do to a frame.
    fn draw(&mut self, packet: Bytes, name: FrameName) -> Draws {
        let duplicated = self.duplication.draw(name);
        Draws {
            corrupted_bit: self.corrupted_bit(packet, name),
            delay: self.delay.draw(name),
            // By dice of its own, or the copy would arrive with its original.
            copy_delay: if duplicated { Some(self.delay.draw(name.copy())) } else { None },
            overtakes: self.overtakes(name),
        }
    }

    fn corrupted_bit(&self, packet: Bytes, name: FrameName) -> Option<u64> {
        let damaged = packet.0 > 0 && self.corruption.draw(name);
        // Not the dice that decided on damage: its throw was low, and would tie the place to it.
        damaged.then(|| self.corruption.seed.index(name.copy().dice).dice().below(packet.bits()))
    }

    /// Netem's reordering: every `gap`-th frame is a candidate, and leaves without waiting with this probability.
    fn overtakes(&mut self, name: FrameName) -> bool {
        self.since_reordered = self.since_reordered.saturating_add(1);
        // `netem_enqueue` counts on until a candidate does overtake: the gap is the least distance between two.
        let candidate = self.since_reordered >= self.reordering_gap.max(1);
        let overtakes = candidate && self.reordering.draw(name);
        if overtakes {
            self.since_reordered = 0;
        }
        overtakes
    }
}

impl Knob {
    fn draw(&self, name: FrameName) -> bool {
        !self.chance.is_zero() && self.seed.index(name.dice).dice().chance(self.chance)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_link_is_small() {
        assert!(size_of::<Link>() <= 296, "{}", size_of::<Link>());
    }
}
