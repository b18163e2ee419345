//! Links that change, against a slow, obvious model: each frame alone, by what the link was at each instant.

use std::collections::BTreeMap;

use mqttlab_net::{
    BurstLoss, Cause, DelayLaw, DelaySpec, Delivery, Discipline, DownQueue, Fate, FrameName, Link,
    LinkChange, LinkSpec, LossPlace, LossSpec, Network, Output, QueueSpec, ReorderSpec,
};
use mqttlab_units::{BitRate, Bytes, Dice, Duration, Instant, Ratio, Seed};

fn spec(dice: &mut Dice) -> LinkSpec {
    let mut is = |share: u64| dice.below(100) < share;
    let [some_rate, packets, bytes, counts, order, jitter, exit, loss, copies, overtakes] =
        [90, 40, 40, 30, 60, 60, 50, 50, 40, 30].map(&mut is);
    let percent = |is: bool, percent: u64| Ratio::new(if is { percent } else { 0 }, 100).unwrap();
    LinkSpec {
        name: "wire".into(),
        rate_bit_s: if some_rate { BitRate::from_bit_s(200_000 + dice.below(4_000_000)) } else { None },
        overhead_bytes: dice.below(40) as u32,
        minimum_frame_bytes: 64,
        queue: QueueSpec {
            limit_packets: packets.then_some(3 + dice.below(20) as u32),
            limit_bytes: bytes.then_some(3_000 + dice.below(12_000)),
            counts_delay_line: counts,
            discipline: Discipline::TailDrop,
        },
        delay: DelaySpec {
            law: if jitter { DelayLaw::Uniform } else { DelayLaw::Constant },
            mean: Duration::from_us(1_000 + dice.below(40_000)),
            jitter: Duration::from_us(900),
            correlation: Ratio::ZERO,
            keep_order: order,
        },
        loss: if loss { LossSpec::Bernoulli { probability: percent(true, 10) } } else { LossSpec::None },
        loss_at: if exit { LossPlace::Exit } else { LossPlace::Entry },
        duplication: percent(copies, 5),
        corruption: percent(copies, 5),
        reordering: ReorderSpec { probability: percent(overtakes, 20), gap: 1 },
        policer: None,
    }
}

#[derive(Debug)]
struct OfferedFrame {
    at: Instant,
    size: Bytes,
}

/// What is done to a link, and when. No two changes at one instant.
struct Schedule {
    seed: Seed,
    first: LinkSpec,
    changes: BTreeMap<Instant, LinkChange>,
    offers: Vec<OfferedFrame>,
}

impl Schedule {
    fn drawn(seed: Seed) -> Schedule {
        let mut dice = seed.derive("schedule").dice();
        let first = spec(&mut dice);
        let mut changes = BTreeMap::new();
        for _ in 0..dice.below(12) {
            let queue = if dice.below(2) == 0 { DownQueue::Keep } else { DownQueue::Drop };
            let change = match dice.below(4) {
                0 => LinkChange::Down { queue },
                1 | 2 => LinkChange::Up,
                _ => LinkChange::Spec { spec: Box::new(spec(&mut dice)) },
            };
            changes.insert(Instant::from_ns(dice.below(400_000_000)), change);
        }
        let mut now = Instant::ZERO;
        let offers = (0..200).map(|_| {
            // Some come at once.
            now += Duration::from_ns(dice.below(4).min(1) * dice.below(4_000_000));
            OfferedFrame { at: now, size: Bytes(40 + dice.below(1_460)) }
        });
        let offers = offers.collect();
        Schedule { seed, first, changes, offers }
    }

    /// The spec after the changes before an instant, or also those at it.
    fn spec_at(&self, at: Instant, inclusive: bool) -> &LinkSpec {
        let specs = self.changes.iter().filter(|(when, _)| **when < at || inclusive && **when == at);
        let mut specs = specs.filter_map(|(_, change)| match change {
            LinkChange::Spec { spec } => Some(&**spec),
            _ => None,
        });
        specs.next_back().unwrap_or(&self.first)
    }

    /// What the link does with its queue, if it is down after the changes before an instant.
    fn down_at(&self, at: Instant) -> Option<DownQueue> {
        let changes = self.changes.iter().filter(|(when, _)| **when < at);
        let mut states = changes.filter_map(|(_, change)| match change {
            LinkChange::Down { queue } => Some(Some(*queue)),
            LinkChange::Up => Some(None),
            LinkChange::Spec { .. } => None,
        });
        states.next_back().flatten()
    }

    fn next(&self, from: Instant, wanted: impl Fn(&LinkChange) -> bool) -> Option<Instant> {
        self.changes.range(from..).find(|(_, change)| wanted(change)).map(|(when, _)| *when)
    }
}

/// A frame in the model.
struct ModelFrame {
    /// `None`: it is still in the link at the end.
    fate: Option<Fate>,
    /// When it no longer counts in the queue; `None` where it never did.
    leaves: Option<Instant>,
}

struct Model<'a> {
    schedule: &'a Schedule,
    frames: Vec<ModelFrame>,
    free_at: Instant,
    /// When the link last went down while it was sending.
    lost_at: Option<Instant>,
    last_arrival: Instant,
}

const END: Instant = Instant::from_ns(u64::MAX);

impl Model<'_> {
    fn of(schedule: &Schedule) -> Vec<Option<Fate>> {
        let mut model = Model {
            schedule,
            frames: Vec::new(),
            free_at: Instant::ZERO,
            lost_at: None,
            last_arrival: Instant::ZERO,
        };
        for number in 0..schedule.offers.len() {
            let frame = model.frame(number as u64);
            model.frames.push(frame);
        }
        model.frames.into_iter().map(|frame| frame.fate).collect()
    }

    /// What a link of this spec that has met no other frame does to this one.
    fn alone(&self, spec: LinkSpec, at: Instant, size: Bytes, number: u64) -> Fate {
        let queue = QueueSpec {
            limit_packets: None,
            limit_bytes: None,
            counts_delay_line: false,
            discipline: Discipline::TailDrop,
        };
        let spec = LinkSpec { queue, rate_bit_s: None, ..spec };
        Link::new(spec, self.schedule.seed).offer(at, size, FrameName::nth(number))
    }

    fn is_lost(&self, spec: &LinkSpec, place: LossPlace, at: Instant, size: Bytes, number: u64) -> bool {
        spec.loss_at == place && self.alone(spec.clone(), at, size, number).delivered_at().is_none()
    }

    fn frame(&mut self, number: u64) -> ModelFrame {
        let OfferedFrame { at: entered, size } = self.schedule.offers[number as usize];
        let dropped = |cause, air, leaves| ModelFrame { fate: Some(Fate::Dropped { cause, air }), leaves };
        let spec = self.schedule.spec_at(entered, false);
        if self.schedule.down_at(entered) == Some(DownQueue::Drop) {
            return dropped(Cause::LinkDown, None, None);
        }
        if self.is_lost(spec, LossPlace::Entry, entered, size, number) {
            return dropped(Cause::RandomLoss, None, None);
        }
        let bytes = self.bytes(spec, size);
        if !self.has_room(spec, entered, bytes) {
            return dropped(Cause::QueueFull, None, None);
        }
        let mut start = entered.max(self.free_at);
        // The one before it may have been lost because the link went down.
        let begins_down = self.lost_at == Some(start) || self.schedule.down_at(start).is_some();
        if begins_down {
            start = self.schedule.next(start, |change| *change == LinkChange::Up).unwrap_or(END);
        }
        let drops = |change: &LinkChange| *change == LinkChange::Down { queue: DownQueue::Drop };
        if let Some(emptied) = self.schedule.next(entered, drops).filter(|emptied| *emptied < start) {
            return dropped(Cause::LinkDown, None, Some(emptied));
        }
        if start == END {
            return ModelFrame { fate: None, leaves: Some(END) };
        }
        self.send(number, start, begins_down, bytes)
    }

    fn send(&mut self, number: u64, start: Instant, begins_by_up: bool, bytes: Bytes) -> ModelFrame {
        let size = self.schedule.offers[number as usize].size;
        let rate = self.schedule.spec_at(start, begins_by_up).rate_bit_s;
        let sent = start + rate.map_or(Duration::ZERO, |rate| rate.serialization_time(bytes));
        let goes_down = |change: &LinkChange| matches!(change, LinkChange::Down { .. });
        if let Some(down) = self.schedule.next(start, goes_down).filter(|down| *down < sent) {
            (self.free_at, self.lost_at) = (down, Some(down));
            let fate = Fate::Dropped { cause: Cause::LinkDown, air: Some((start, down)) };
            return ModelFrame { fate: Some(fate), leaves: Some(down) };
        }
        self.free_at = sent;
        let spec = self.schedule.spec_at(sent, begins_by_up && start == sent);
        let delay = DelaySpec { keep_order: false, ..spec.delay.clone() };
        let whole = LinkSpec { loss: LossSpec::None, delay, ..spec.clone() };
        let Fate::Delivered(flight) = self.alone(whole, sent, size, number) else { panic!("lost twice") };
        let ordered = |at: Instant| if spec.delay.keep_order { at.max(self.last_arrival) } else { at };
        let overtakes = flight.at == sent;
        let at = if overtakes { sent } else { ordered(flight.at) };
        if !overtakes {
            self.last_arrival = self.last_arrival.max(at);
        }
        let ordered = |at: Instant| if spec.delay.keep_order { at.max(self.last_arrival) } else { at };
        let leaves = Some(if spec.queue.counts_delay_line { at } else { sent });
        if self.is_lost(spec, LossPlace::Exit, sent, size, number) {
            let fate = Fate::Dropped { cause: Cause::RandomLoss, air: Some((start, sent)) };
            return ModelFrame { fate: Some(fate), leaves };
        }
        // A copy's delay: that of a link that makes no other difference than another name.
        let copy = flight.duplicate_at.map(|copy_at| ordered(copy_at.max(sent)).max(at));
        let delivery = Delivery { start, sent, at, duplicate_at: copy, ..flight };
        ModelFrame { fate: Some(Fate::Delivered(delivery)), leaves }
    }

    fn bytes(&self, spec: &LinkSpec, size: Bytes) -> Bytes {
        Link::new(spec.clone(), self.schedule.seed).frame_size(size)
    }

    fn has_room(&self, spec: &LinkSpec, now: Instant, bytes: Bytes) -> bool {
        let present = self.frames.iter().enumerate();
        let present = present.filter(|(_, frame)| frame.leaves.is_some_and(|leaves| leaves > now));
        let present = present.map(|(number, _)| {
            let offer = &self.schedule.offers[number];
            self.bytes(self.schedule.spec_at(offer.at, false), offer.size).0
        });
        let present: Vec<u64> = present.collect();
        spec.queue.limit_packets.is_none_or(|limit| present.len() < limit as usize)
            && spec.queue.limit_bytes.is_none_or(|limit| present.iter().sum::<u64>() + bytes.0 <= limit)
    }
}

/// What the link itself does; it is told of the time at its deadlines, or only when something happens to it.
fn machine(schedule: &Schedule, is_punctual: bool) -> Vec<Option<Fate>> {
    let mut link = Link::changeable(schedule.first.clone(), schedule.seed);
    let mut fates = vec![None; schedule.offers.len()];
    let mut collect = |link: &mut Link| {
        while let Some(settled) = link.poll() {
            let place: &mut Option<Fate> = &mut fates[settled.frame as usize];
            assert_eq!(settled.entered, schedule.offers[settled.frame as usize].at);
            assert_eq!(place.replace(settled.fate), None, "frame {} has two fates", settled.frame);
        }
    };
    let mut changes = schedule.changes.iter().peekable();
    let mut offers = schedule.offers.iter().enumerate().peekable();
    loop {
        let due = [changes.peek().map(|(at, _)| **at), offers.peek().map(|(_, offer)| offer.at)];
        let next = due.into_iter().flatten().min();
        if let Some(deadline) = link.next_deadline()
            && (next.is_none() || is_punctual && next.is_some_and(|next| deadline <= next))
        {
            link.tick(deadline);
        } else if let Some((number, offer)) = offers.next_if(|(_, offer)| Some(offer.at) == next) {
            link.enter(offer.at, number as u32, offer.size, FrameName::nth(number as u64));
        } else if let Some((at, change)) = changes.next() {
            link.change(*at, change);
        } else {
            break;
        }
        collect(&mut link);
    }
    let known = fates.iter().flatten().count();
    let late = Instant::from_ns(u64::MAX - 1);
    assert_eq!(link.traffic(late).queue_frames as usize, fates.len() - known, "what has no fate waits");
    fates
}

#[test]
fn a_link_that_changes_does_to_each_frame_what_it_is_at_each_step() {
    let (mut by_cause, mut waiting) = (BTreeMap::new(), 0);
    for seed in 0..100 {
        let schedule = Schedule::drawn(Seed(seed));
        let expected = Model::of(&schedule);
        for is_punctual in [true, false] {
            let found = machine(&schedule, is_punctual);
            for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let frame = &schedule.offers[number];
                assert_eq!(found, expected, "seed {seed}, {number}: {frame:?} {:?}", schedule.changes);
            }
        }
        for fate in &expected {
            match fate {
                Some(Fate::Dropped { cause, air }) => {
                    *by_cause.entry((*cause, air.is_some())).or_insert(0) += 1;
                }
                Some(Fate::Delivered(_)) => {}
                None => waiting += 1,
            }
        }
    }
    // The conditions were in force.
    let expected = [
        (Cause::QueueFull, false),
        (Cause::RandomLoss, false),
        (Cause::RandomLoss, true),
        (Cause::LinkDown, false),
        (Cause::LinkDown, true),
    ];
    assert_eq!(by_cause.keys().copied().collect::<Vec<_>>(), expected);
    assert!(by_cause.values().all(|count| *count > 10) && waiting > 10, "{by_cause:?} {waiting}");
}

#[test]
fn a_link_that_may_change_and_does_not_is_as_one_that_may_not() {
    let ratio = |permille| Ratio::new(permille, 1000).unwrap();
    for seed in 0..60 {
        let mut schedule = Schedule::drawn(Seed(seed));
        schedule.changes.clear();
        // What goes from one frame to the next, too.
        schedule.first.delay.correlation = ratio(500);
        schedule.first.reordering.gap = 3;
        if seed % 2 == 0 {
            schedule.first.loss = LossSpec::GilbertElliott(BurstLoss {
                good_to_bad: ratio(100),
                bad_to_good: ratio(300),
                loss_good: Ratio::ZERO,
                loss_bad: ratio(800),
            });
        }
        let mut link = Link::new(schedule.first.clone(), schedule.seed);
        let offers = schedule.offers.iter().zip(0..);
        let whole: Vec<Option<Fate>> = offers
            .map(|(offer, number)| Some(link.offer(offer.at, offer.size, FrameName::nth(number))))
            .collect();
        assert_eq!(machine(&schedule, true), whole, "seed {seed}: {:?}", schedule.first);
    }
}

pub(crate) fn wire(rate_bit_s: u64, delay_ms: u64) -> LinkSpec {
    let mut spec = spec(&mut Seed(0).dice());
    spec.rate_bit_s = BitRate::from_bit_s(rate_bit_s);
    (spec.overhead_bytes, spec.minimum_frame_bytes) = (0, 0);
    spec.queue = QueueSpec {
        limit_packets: None,
        limit_bytes: None,
        counts_delay_line: false,
        discipline: Discipline::TailDrop,
    };
    spec.delay.law = DelayLaw::Constant;
    spec.delay.mean = Duration::from_ms(delay_ms);
    spec.delay.keep_order = true;
    (spec.loss, spec.loss_at) = (LossSpec::None, LossPlace::Entry);
    [spec.duplication, spec.corruption, spec.reordering.probability] = [Ratio::ZERO; 3];
    spec
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

/// Two links of 8 bits in a millisecond and 5 ms, the first of which may change.
fn two_links() -> Network {
    let links = vec![Link::changeable(wire(8_000, 5), Seed(1)), Link::new(wire(8_000, 5), Seed(1))];
    Network::new(links, vec![vec![0, 1]])
}

/// When frames came to the ends of their paths.
fn arrivals(network: &mut Network) -> Vec<(u64, Instant)> {
    std::iter::from_fn(|| network.poll())
        .filter_map(|output| match output {
            Output::Arrived { frame, at, .. } => Some((frame, at)),
            Output::Crossed { .. } => None,
        })
        .collect()
}

#[test]
fn what_has_left_the_transmitter_arrives_what_is_being_sent_is_lost_and_what_waits_waits() {
    let mut network = two_links();
    for frame in 0..3 {
        network.handle(at(0), frame, FrameName::nth(frame), 0, Bytes(100));
    }
    // At 102 ms the first one is on the cable, the second has 98 ms to go.
    network.change(at(102), 0, &LinkChange::Down { queue: DownQueue::Keep });
    let lost: Vec<Output> = std::iter::from_fn(|| network.poll()).collect();
    let air = Some((at(100), at(102)));
    let fate = Fate::Dropped { cause: Cause::LinkDown, air };
    let entered = at(0);
    assert_eq!(lost[1], Output::Crossed { frame: 1, copy: 0, link: 0, hop: 0, entered, fate });
    network.tick(at(1_000));
    assert_eq!(arrivals(&mut network), [(0, at(210))]);
    assert_eq!((network.next_deadline(), network.in_transit()), (None, 1), "it waits for the link");
    network.change(at(1_000), 0, &LinkChange::Up);
    assert_eq!(network.next_deadline(), Some(at(1_100)));
    network.tick(at(5_000));
    assert_eq!(arrivals(&mut network), [(2, at(1_210))]);
    assert_eq!(network.traffic(at(5_000)).next().unwrap().drops.of(Cause::LinkDown), 1);
}

#[test]
fn a_queue_that_is_dropped_takes_what_comes_until_the_link_is_up() {
    let mut network = two_links();
    let send = |network: &mut Network, ms: u64, frame: u64| {
        network.handle(at(ms), frame, FrameName::nth(frame), 0, Bytes(100));
    };
    send(&mut network, 0, 0);
    send(&mut network, 0, 1);
    network.change(at(50), 0, &LinkChange::Down { queue: DownQueue::Drop });
    send(&mut network, 60, 2);
    assert_eq!(network.in_transit(), 0);
    network.change(at(70), 0, &LinkChange::Up);
    send(&mut network, 70, 3);
    network.tick(at(5_000));
    assert_eq!(arrivals(&mut network), [(3, at(70 + 210))]);
    assert_eq!(network.traffic(at(5_000)).next().unwrap().drops.of(Cause::LinkDown), 3);
}

#[test]
fn another_rate_is_the_next_frames_and_another_delay_that_of_the_next_flight() {
    let mut network = two_links();
    for frame in 0..3 {
        network.handle(at(0), frame, FrameName::nth(frame), 0, Bytes(100));
    }
    // The first one is on the cable for 2 ms more. The second is being sent, at the old rate, and flies without delay.
    network.change(at(103), 0, &LinkChange::Spec { spec: Box::new(wire(800_000, 0)) });
    network.tick(at(5_000));
    // The second link takes 100 ms for each.
    assert_eq!(arrivals(&mut network), [(0, at(210)), (1, at(310)), (2, at(410))]);
}

#[test]
fn a_shorter_delay_lets_no_frame_overtake_where_order_is_kept() {
    for (keep_order, expected) in
        [(true, [(0, at(200)), (1, at(200))]), (false, [(1, at(151)), (0, at(200))])]
    {
        let spec = |delay_ms: u64| {
            let mut spec = wire(800_000, delay_ms);
            spec.delay.keep_order = keep_order;
            spec.rate_bit_s = None;
            spec
        };
        let links = vec![Link::changeable(spec(200), Seed(1))];
        let mut network = Network::new(links, vec![vec![0]]);
        network.handle(at(0), 0, FrameName::nth(0), 0, Bytes(100));
        network.change(at(100), 0, &LinkChange::Spec { spec: Box::new(spec(1)) });
        network.handle(at(150), 1, FrameName::nth(1), 0, Bytes(100));
        network.tick(at(5_000));
        assert_eq!(arrivals(&mut network), expected);
    }
}

#[test]
fn a_link_that_may_change_from_some_time_on_has_decided_what_came_before() {
    let ms = |ms| Instant::ZERO + Duration::from_ms(ms);
    let spec = LinkSpec {
        rate_bit_s: BitRate::from_bit_s(1_000_000),
        queue: QueueSpec {
            limit_packets: None,
            limit_bytes: None,
            counts_delay_line: false,
            discipline: Discipline::TailDrop,
        },
        delay: DelaySpec {
            law: DelayLaw::Constant,
            mean: Duration::from_ms(5),
            jitter: Duration::ZERO,
            correlation: Ratio::ZERO,
            keep_order: true,
        },
        loss: LossSpec::None,
        overhead_bytes: 0,
        duplication: Ratio::ZERO,
        corruption: Ratio::ZERO,
        reordering: ReorderSpec { probability: Ratio::ZERO, gap: 1 },
        ..spec(&mut Seed(1).dice())
    };
    let mut network = Network::new(vec![Link::new(spec.clone(), Seed(1))], vec![vec![0]]);
    // 8 ms each on the wire.
    for frame in 0..3 {
        network.handle(ms(0), frame, FrameName::nth(frame), 0, Bytes(1_000));
    }
    network.let_change(0, &spec, Seed(1));
    network.change(ms(10), 0, &LinkChange::Down { queue: DownQueue::Drop });
    network.handle(ms(11), 3, FrameName::nth(3), 0, Bytes(1_000));
    network.change(ms(12), 0, &LinkChange::Up);
    // The transmitter is taken until 24 ms.
    network.handle(ms(13), 4, FrameName::nth(4), 0, Bytes(1_000));
    network.let_change(0, &spec, Seed(1));
    network.tick(ms(99));
    let mut arrived = Vec::new();
    let mut dropped = Vec::new();
    while let Some(output) = network.poll() {
        match output {
            Output::Arrived { frame, at, .. } => arrived.push((frame, at)),
            Output::Crossed { frame, fate: Fate::Dropped { cause, .. }, .. } => dropped.push((frame, cause)),
            Output::Crossed { .. } => {}
        }
    }
    assert_eq!(arrived, [(0, ms(13)), (1, ms(21)), (2, ms(29)), (4, ms(37))]);
    assert_eq!(dropped, [(3, Cause::LinkDown)]);
}
