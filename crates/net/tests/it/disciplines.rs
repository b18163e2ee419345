//! CoDel and FQ-CoDel: cases worked by hand, and the machines against a slow, obvious model that follows the text of
//! RFC 8289 §5 and RFC 8290 §4.

use std::collections::BTreeMap;

use mqttlab_net::{
    Cause, DelayLaw, DelaySpec, Discipline, DownQueue, Fate, FrameName, Link, LinkChange, LinkSpec,
    LossPlace, LossSpec, QueueSpec, ReorderSpec,
};
use mqttlab_units::{BitRate, Bytes, Duration, Instant, Ratio, Seed};

const CODEL: Discipline = Discipline::Codel {
    target: Duration::from_ms(5),
    interval: Duration::from_ms(100),
    largest_frame_bytes: 1_000,
    ecn: false,
};
const FQ_CODEL: Discipline = Discipline::FqCodel {
    target: Duration::from_ms(5),
    interval: Duration::from_ms(100),
    largest_frame_bytes: 1_000,
    ecn: false,
    flows: 1_024,
    quantum_bytes: 1_000,
};

/// A link that takes 10 ms for 1000 B.
fn spec(discipline: Discipline, limit_packets: Option<u32>) -> LinkSpec {
    LinkSpec {
        name: "wire".into(),
        rate_bit_s: BitRate::from_bit_s(800_000),
        overhead_bytes: 0,
        minimum_frame_bytes: 0,
        queue: QueueSpec { limit_packets, limit_bytes: None, counts_delay_line: false, discipline },
        delay: DelaySpec {
            law: DelayLaw::Constant,
            mean: Duration::from_ms(1),
            jitter: Duration::ZERO,
            correlation: Ratio::ZERO,
            keep_order: true,
        },
        loss: LossSpec::None,
        loss_at: LossPlace::Entry,
        duplication: Ratio::ZERO,
        corruption: Ratio::ZERO,
        reordering: ReorderSpec { probability: Ratio::ZERO, gap: 1 },
        policer: None,
    }
}

fn ms(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

/// A frame that is offered, and to which flow it belongs.
#[derive(Clone, Copy, Debug)]
struct Offer {
    at: Instant,
    flow: u64,
    size: u64,
}

/// What became of each offer: when its transmission began, or why it was dropped.
type Outcome = Result<Instant, Cause>;

fn machine(spec: &LinkSpec, offers: &[Offer], seed: Seed, is_punctual: bool) -> Vec<Option<Outcome>> {
    let mut link = Link::new(spec.clone(), seed);
    let mut outcomes = vec![None; offers.len()];
    let mut collect = |link: &mut Link| {
        while let Some(settled) = link.poll() {
            let outcome = match settled.fate {
                Fate::Delivered(delivery) => Ok(delivery.start),
                Fate::Dropped { cause, .. } => Err(cause),
            };
            let place = &mut outcomes[settled.frame as usize];
            assert_eq!(*place, None, "frame {} has two fates", settled.frame);
            assert_eq!(settled.entered, offers[settled.frame as usize].at);
            *place = Some(outcome);
        }
    };
    for (number, offer) in offers.iter().enumerate() {
        while is_punctual && link.next_deadline().is_some_and(|due| due < offer.at) {
            link.tick(link.next_deadline().unwrap());
            collect(&mut link);
        }
        let name = FrameName::nth_of(offer.flow, number as u64);
        link.enter(offer.at, number as u32, Bytes(offer.size), name);
        collect(&mut link);
    }
    while let Some(due) = link.next_deadline() {
        link.tick(due);
        collect(&mut link);
    }
    let traffic = link.traffic(Instant::from_ns(u64::MAX - 1));
    assert_eq!((traffic.queue_frames, traffic.queue_bytes), (0, 0));
    let dropped = outcomes.iter().filter(|outcome| matches!(outcome, Some(Err(_)))).count();
    assert_eq!(traffic.drops.total(), dropped as u64);
    outcomes
}

/// The numbers of what was dropped for a cause.
fn dropped(outcomes: &[Option<Outcome>], cause: Cause) -> Vec<usize> {
    let numbers = outcomes.iter().enumerate();
    numbers.filter(|(_, outcome)| **outcome == Some(Err(cause))).map(|(number, _)| number).collect()
}

/// The numbers of what was sent, in this order.
fn sent(outcomes: &[Option<Outcome>]) -> Vec<usize> {
    let starts = outcomes.iter().enumerate();
    let mut starts: Vec<_> =
        starts.filter_map(|(number, outcome)| Some((outcome.as_ref()?.ok()?, number))).collect();
    starts.sort();
    starts.into_iter().map(|(_, number)| number).collect()
}

fn all_at(at: Instant, flows: &[u64]) -> Vec<Offer> {
    flows.iter().map(|flow| Offer { at, flow: *flow, size: 1_000 }).collect()
}

/// The first frame that stays for more than 5 ms leaves at 10 ms; an interval later, at 110 ms, the first one is dropped.
/// The next drops are due at 210 ms, then 100 ms/√2, 100 ms/√3, … later: 280.7, 338.4, 388.4, 433.2, 474.0 ms.
#[test]
fn codel_drops_first_after_an_interval_and_then_faster_by_the_root() {
    let outcomes = machine(&spec(CODEL, None), &all_at(ms(0), &[1; 60]), Seed(1), true);
    let drops = dropped(&outcomes, Cause::Codel);
    assert_eq!(drops[..7], [11, 22, 31, 37, 43, 49, 54]);
    // What is dropped takes no time: the next frame goes in its place.
    assert_eq!([12, 23, 32].map(|number| outcomes[number]), [110, 210, 290].map(|at| Some(Ok(ms(at)))));
    // With one frame behind it none is dropped, however long it has stayed.
    assert!([58, 59].iter().all(|last| !drops.contains(last)), "{drops:?}");
}

#[test]
fn codel_leaves_a_queue_alone_that_empties_within_an_interval() {
    let bursts: Vec<Offer> = (0..50).flat_map(|burst| all_at(ms(200 * burst), &[1; 10])).collect();
    let outcomes = machine(&spec(CODEL, None), &bursts, Seed(1), true);
    assert_eq!(sent(&outcomes).len(), 500);
}

#[test]
fn codel_begins_again_where_it_left_off_shortly_before() {
    // 60 frames bring eight drops and an empty queue; 1.5 s later frames stay too long again, for less than 16 intervals.
    let again = |at| [all_at(ms(0), &[1; 60]), all_at(ms(at), &[1; 60])].concat();
    let second = |at| {
        let outcomes = machine(&spec(CODEL, None), &again(at), Seed(1), true);
        dropped(&outcomes, Cause::Codel).into_iter().filter(|number| *number >= 60).count()
    };
    assert!(second(1_000) > second(10_000), "{} {}", second(1_000), second(10_000));
}

#[test]
fn a_queue_under_codel_still_has_a_limit() {
    let outcomes = machine(&spec(CODEL, Some(10)), &all_at(ms(0), &[1; 15]), Seed(1), true);
    assert_eq!(dropped(&outcomes, Cause::QueueFull), [10, 11, 12, 13, 14]);
}

#[test]
fn flows_take_turns() {
    let outcomes = machine(&spec(FQ_CODEL, None), &all_at(ms(0), &[1, 1, 1, 2, 2, 2]), Seed(1), true);
    assert_eq!(sent(&outcomes), [0, 3, 1, 4, 2, 5]);
}

#[test]
fn a_flow_that_sends_little_passes_the_others() {
    let mut offers = all_at(ms(0), &[1; 8]);
    offers.extend([all_at(ms(1), &[2]), all_at(ms(35), &[2])].concat());
    let outcomes = machine(&spec(FQ_CODEL, None), &offers, Seed(1), true);
    assert_eq!(sent(&outcomes), [0, 8, 1, 2, 9, 3, 4, 5, 6, 7]);
}

#[test]
fn the_fattest_flow_makes_room_at_its_head() {
    // One is in the transmitter, three wait: half of their 3000 B are two frames.
    let offers = all_at(ms(0), &[1, 1, 1, 1, 2]);
    let outcomes = machine(&spec(FQ_CODEL, Some(4)), &offers, Seed(1), true);
    assert_eq!(dropped(&outcomes, Cause::QueueFull), [1, 2]);
    assert_eq!(sent(&outcomes), [0, 4, 3]);
}

#[test]
fn both_ends_of_a_connection_are_flows_and_all_frames_of_an_end_are_one() {
    let named = |host, ordinal, from| {
        let mut names = mqttlab_net::TcpNames::new(host, ordinal);
        let facts = |seq| mqttlab_net::TcpFacts { seq, ack: 0, length: 10, syn: false, fin: false };
        [names.name(from, &facts(10)).name, names.name(from, &facts(20)).name]
    };
    // On a link with one place for each flow, frames of one flow keep their order and frames of two take turns.
    let order = |first: [FrameName; 2], second: [FrameName; 2]| {
        let mut link = Link::new(spec(FQ_CODEL, None), Seed(1));
        for (number, name) in [first, second].concat().into_iter().enumerate() {
            link.enter(ms(0), number as u32, Bytes(1_000), name);
        }
        std::iter::from_fn(|| {
            if let Some(due) = link.next_deadline() {
                link.tick(due);
            }
            link.poll().map(|settled| settled.frame)
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(order(named(1, 0, 0), named(1, 0, 0)), [0, 1, 2, 3]);
    for other in [named(1, 0, 1), named(1, 1, 0), named(2, 0, 0)] {
        assert_eq!(order(named(1, 0, 0), other), [0, 2, 1, 3]);
    }
}

#[test]
fn a_link_takes_another_discipline_with_what_waits() {
    let mut link = Link::changeable(spec(Discipline::TailDrop, None), Seed(1));
    for (number, flow) in [1, 1, 1, 2, 2].into_iter().enumerate() {
        link.enter(ms(0), number as u32, Bytes(1_000), FrameName::nth_of(flow, number as u64));
    }
    link.change(ms(5), &LinkChange::Spec { spec: Box::new(spec(FQ_CODEL, None)) });
    link.change(ms(15), &LinkChange::Down { queue: DownQueue::Keep });
    // The second frame was being sent, and is lost. The flow that was served waits for its turn.
    link.change(ms(500), &LinkChange::Up);
    let mut found = Vec::new();
    loop {
        while let Some(settled) = link.poll() {
            found.push((settled.frame, settled.fate.delivered_at()));
        }
        let Some(due) = link.next_deadline() else { break };
        link.tick(due);
    }
    assert_eq!(
        found,
        [(0, Some(ms(11))), (1, None), (3, Some(ms(511))), (2, Some(ms(521))), (4, Some(ms(531)))]
    );
}

/// RFC 8289 §5 as it is written there, with times in ns and 0 for "none".
#[derive(Clone, Default)]
struct CodelModel {
    first_above_time: u64,
    drop_next: u64,
    count: u64,
    last_count: u64,
    dropping: bool,
}

/// A queue's frames: number, time, size.
type Frames = Vec<(usize, u64, u64)>;

/// Everything that waits, and what has become of the rest.
struct Model<'a> {
    spec: &'a LinkSpec,
    /// By the flow's place; one for all under CoDel.
    queues: BTreeMap<u64, (Frames, CodelModel, i64)>,
    new: Vec<u64>,
    old: Vec<u64>,
    outcomes: Vec<Option<Outcome>>,
    free_at: u64,
    sending: u64,
}

impl Model<'_> {
    fn settings(&self) -> (u64, u64, u64) {
        match self.spec.queue.discipline {
            Discipline::Codel { target, interval, largest_frame_bytes, .. }
            | Discipline::FqCodel { target, interval, largest_frame_bytes, .. } => {
                (target.as_ns(), interval.as_ns(), largest_frame_bytes.into())
            }
            Discipline::TailDrop => panic!("not of this test"),
        }
    }

    fn control_law(&self, time: u64, count: u64) -> u64 {
        // The largest gap whose square, times the count, is no more than the interval's square.
        let interval = self.settings().1;
        let (mut low, mut high) = (0, interval);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let fits = u128::from(middle).pow(2) * u128::from(count) <= u128::from(interval).pow(2);
            (low, high) = if fits { (middle, high) } else { (low, middle - 1) };
        }
        time + low
    }

    fn backlog(&self) -> Vec<u64> {
        self.queues.values().flat_map(|(frames, ..)| frames.iter().map(|frame| frame.2)).collect()
    }

    fn is_full_with(&self, more: &[u64], now: u64) -> bool {
        let busy = if self.free_at > now { vec![self.sending] } else { Vec::new() };
        let all = [self.backlog(), busy, more.to_vec()].concat();
        self.spec.queue.limit_packets.is_some_and(|limit| all.len() > limit as usize)
            || self.spec.queue.limit_bytes.is_some_and(|limit| all.iter().sum::<u64>() > limit)
    }

    fn dodequeue(&mut self, place: u64, now: u64) -> (Option<(usize, u64, u64)>, bool) {
        let (target, interval, largest) = self.settings();
        let (frames, codel, _) = self.queues.get_mut(&place).unwrap();
        if frames.is_empty() {
            codel.first_above_time = 0;
            return (None, false);
        }
        let frame = frames.remove(0);
        let waiting: u64 = self.backlog().iter().sum();
        let codel = &mut self.queues.get_mut(&place).unwrap().1;
        let mut ok_to_drop = false;
        if now - frame.1 < target || waiting <= largest {
            codel.first_above_time = 0;
        } else if codel.first_above_time == 0 {
            codel.first_above_time = now + interval;
        } else if now >= codel.first_above_time {
            ok_to_drop = true;
        }
        (Some(frame), ok_to_drop)
    }

    fn codel(&mut self, place: u64) -> CodelModel {
        self.queues[&place].1.clone()
    }

    fn set(&mut self, place: u64, change: impl FnOnce(&mut CodelModel)) {
        change(&mut self.queues.get_mut(&place).unwrap().1);
    }

    fn codel_dequeue(&mut self, place: u64, now: u64) -> Option<(usize, u64, u64)> {
        let (mut frame, mut ok_to_drop) = self.dodequeue(place, now);
        if self.codel(place).dropping {
            if !ok_to_drop {
                self.set(place, |codel| codel.dropping = false);
            }
            while now >= self.codel(place).drop_next && self.codel(place).dropping {
                self.outcomes[frame.unwrap().0] = Some(Err(Cause::Codel));
                self.set(place, |codel| codel.count += 1);
                (frame, ok_to_drop) = self.dodequeue(place, now);
                if ok_to_drop {
                    let codel = self.codel(place);
                    let next = self.control_law(codel.drop_next, codel.count);
                    self.set(place, |codel| codel.drop_next = next);
                } else {
                    self.set(place, |codel| codel.dropping = false);
                }
            }
        } else if ok_to_drop {
            self.outcomes[frame.unwrap().0] = Some(Err(Cause::Codel));
            (frame, _) = self.dodequeue(place, now);
            let codel = self.codel(place);
            let delta = codel.count - codel.last_count;
            let recent = (now as i64 - codel.drop_next as i64) < 16 * self.settings().1 as i64;
            let count = if delta > 1 && recent { delta } else { 1 };
            let drop_next = self.control_law(now, count);
            self.set(place, |codel| {
                *codel = CodelModel { dropping: true, count, drop_next, last_count: count, ..codel.clone() }
            });
        }
        frame
    }

    /// RFC 8290 §4.2, or CoDel's one queue.
    fn dequeue(&mut self, now: u64) -> Option<(usize, u64, u64)> {
        let Discipline::FqCodel { quantum_bytes, .. } = self.spec.queue.discipline else {
            return self.queues.contains_key(&0).then(|| self.codel_dequeue(0, now)).flatten();
        };
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let place = *list.first()?;
            let deficit = &mut self.queues.get_mut(&place).unwrap().2;
            if *deficit <= 0 {
                *deficit += i64::from(quantum_bytes);
                list.remove(0);
                self.old.push(place);
                continue;
            }
            if let Some(frame) = self.codel_dequeue(place, now) {
                self.queues.get_mut(&place).unwrap().2 -= frame.2 as i64;
                return Some(frame);
            }
            if is_new {
                self.new.remove(0);
                if !self.old.is_empty() {
                    self.old.push(place);
                }
            } else {
                self.old.remove(0);
            }
        }
    }

    fn enqueue(&mut self, place: u64, frame: (usize, u64, u64)) {
        let Discipline::FqCodel { quantum_bytes, .. } = self.spec.queue.discipline else {
            if self.is_full_with(&[frame.2], frame.1) {
                self.outcomes[frame.0] = Some(Err(Cause::QueueFull));
            } else {
                self.queues.entry(0).or_default().0.push(frame);
            }
            return;
        };
        let queue = self.queues.entry(place).or_default();
        queue.0.push(frame);
        if !self.new.contains(&place) && !self.old.contains(&place) {
            queue.2 = quantum_bytes.into();
            self.new.push(place);
        }
        while self.is_full_with(&[], frame.1) {
            let size = |frames: &Frames| frames.iter().map(|frame| frame.2).sum::<u64>();
            let most = self.queues.values().map(|(frames, ..)| size(frames)).max().unwrap();
            let fattest = *self.queues.iter().find(|(_, (frames, ..))| size(frames) == most).unwrap().0;
            let (frames, codel, _) = self.queues.get_mut(&fattest).unwrap();
            let (mut gone, mut bytes) = (0, 0);
            while gone == 0 || gone < 64 && bytes < most / 2 {
                let frame = frames.remove(0);
                self.outcomes[frame.0] = Some(Err(Cause::QueueFull));
                (gone, bytes) = (gone + 1, bytes + frame.2);
            }
            codel.count += gone;
        }
    }

    /// Lets the transmitter take frames until then.
    fn serve(&mut self, until: u64) {
        // A free transmitter asks until there is nothing: CoDel and the lists of queues see that they are empty.
        while self.free_at <= until {
            let newest =
                self.queues.values().flat_map(|(frames, ..)| frames.iter().map(|frame| frame.1)).max();
            let now = self.free_at.max(newest.unwrap_or(0));
            let Some(frame) = self.dequeue(now) else { break };
            self.outcomes[frame.0] = Some(Ok(Instant::from_ns(now)));
            let rate = self.spec.rate_bit_s.unwrap();
            self.free_at = now + rate.serialization_time(Bytes(frame.2)).as_ns();
            self.sending = frame.2;
        }
    }
}

/// `places` has the place of each flow, which the hash gives it.
fn model(spec: &LinkSpec, offers: &[Offer], places: &BTreeMap<u64, u64>) -> Vec<Option<Outcome>> {
    let mut model = Model {
        spec,
        queues: BTreeMap::new(),
        new: Vec::new(),
        old: Vec::new(),
        outcomes: vec![None; offers.len()],
        free_at: 0,
        sending: 0,
    };
    for (number, offer) in offers.iter().enumerate() {
        model.serve(offer.at.as_ns());
        model.enqueue(places[&offer.flow], (number, offer.at.as_ns(), offer.size));
        model.serve(offer.at.as_ns());
    }
    model.serve(u64::MAX);
    model.outcomes
}

#[test]
fn the_machines_do_what_a_slow_model_of_the_rfcs_does() {
    let mut seen: BTreeMap<(bool, Cause), usize> = BTreeMap::new();
    for seed in 0..120 {
        let mut dice = Seed(seed).derive("offers").dice();
        let (target, interval) =
            (Duration::from_ms(1 + dice.below(10)), Duration::from_ms(10 + dice.below(100)));
        let flows = 1 + dice.below(12);
        let is_fq = dice.below(2) == 0;
        let discipline = if is_fq {
            // As many places as no two flows share one; fewer of them below.
            let quantum_bytes = 200 + dice.below(1_500) as u32;
            Discipline::FqCodel {
                target,
                interval,
                largest_frame_bytes: 1_000,
                ecn: false,
                flows: 65_536,
                quantum_bytes,
            }
        } else {
            Discipline::Codel { target, interval, largest_frame_bytes: 1_000, ecn: false }
        };
        let mut spec = spec(discipline, (dice.below(2) == 0).then_some(5 + dice.below(60) as u32));
        spec.queue.limit_bytes = (dice.below(2) == 0).then_some(5_000 + dice.below(40_000));
        let mut now = 0;
        let offers: Vec<Offer> = (0..600)
            .map(|_| {
                // Bursts and rests, at a load between two thirds and twice of what the link carries.
                now += if dice.below(40) == 0 { dice.below(300_000_000) } else { dice.below(14_000_000) };
                let flow = dice.below(flows).min(dice.below(flows));
                Offer { at: Instant::from_ns(now), flow, size: 40 + dice.below(1_400) }
            })
            .collect();
        let places = places_of(seed, flows);
        let expected = model(&spec, &offers, &places);
        for is_punctual in [true, false] {
            let found = machine(&spec, &offers, Seed(seed), is_punctual);
            for (number, offer) in offers.iter().enumerate() {
                assert_eq!(
                    found[number], expected[number],
                    "seed {seed}, frame {number}: {offer:?}, {spec:?}"
                );
            }
        }
        for cause in expected.iter().filter_map(|outcome| outcome.as_ref()?.err()) {
            *seen.entry((is_fq, cause)).or_insert(0) += 1;
        }
    }
    // The conditions were in force.
    let all = [false, true].into_iter().flat_map(|is_fq| [(is_fq, Cause::QueueFull), (is_fq, Cause::Codel)]);
    assert!(all.into_iter().all(|key| seen.get(&key).is_some_and(|count| *count > 50)), "{seen:?}");
}

/// The place of each flow on the link of this seed: the lowest number wins a tie, so that the order counts.
fn places_of(seed: u64, flows: u64) -> BTreeMap<u64, u64> {
    let perturbation = Seed(seed).derive("wire/flows");
    (0..flows).map(|flow| (flow, perturbation.index(flow).0 % 65_536)).collect()
}
