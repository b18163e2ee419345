//! A link that follows a trace: where it is in the trace, and what it serves when.
//!
//! ```text
//!  run begins            publishing begins
//!  place 0 ─► … looped ─► `begins_at` ─► … ─► end ─► place 0, or the last values
//! ```
//!
//! **Values**: a frame takes as long as the rate of each row needs for its bits, so that one frame may see several rates. Where
//! the rate is 0 it waits. Delay and loss are those of the time at which its last bit leaves.
//!
//! **Opportunities** are used as by Mahimahi's `mm-link` (`LinkQueue::rationalize`): each carries so many bytes of what
//! waits then, the rest of one frame and the begin of the next included. A frame leaves whole with its last byte. A frame
//! that comes at the time of an opportunity has missed it, and what an opportunity has left over is lost.
//!
//! Nothing of it waits for a timer: what a frame meets is known when it is served, and a link at rest costs nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use mqttlab_units::{Bytes, Instant, Ratio, Seed};

use super::Link;
use crate::spec::{DelaySpec, LinkSpec, LossSpec};
use crate::trace::{LOSS_WHOLE, TraceCourse, TraceSpec, TraceValues};

/// Where a link is in its trace.
#[derive(Clone, Debug)]
pub(super) struct TraceCursor {
    trace: Arc<TraceSpec>,
    /// The link's own, for columns that the trace does not have.
    delay: DelaySpec,
    loss: LossSpec,
    /// What dice of losses are derived from.
    loss_seed: Seed,
    /// When the trace is, or would have been, at its place 0: ns since the run began.
    origin_ns: i128,
    /// The row whose delay and loss the link has.
    row: Option<usize>,
    /// Bits that a whole period carries, in bits × 10⁹.
    per_period: u128,
    /// The opportunity in use: its round, number, time, and what is left of it.
    used: Option<Opportunity>,
    /// No opportunity up to this time is used.
    floor: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Opportunity {
    round: i128,
    number: usize,
    at: Instant,
    left: u64,
}

/// What a row says beside the rate.
pub(super) struct TraceConditions {
    pub(super) delay: DelaySpec,
    pub(super) loss: LossSpec,
    pub(super) loss_seed: Seed,
}

impl TraceCursor {
    pub(super) fn new(trace: Arc<TraceSpec>, spec: &LinkSpec, loss_seed: Seed) -> TraceCursor {
        let per_period = match (&trace.course, trace.period) {
            (TraceCourse::Values(values), Some(period)) => carried(values, period.as_ns()),
            _ => 0,
        };
        TraceCursor {
            delay: spec.delay.clone(),
            loss: spec.loss.clone(),
            loss_seed,
            origin_ns: 0,
            row: None,
            per_period,
            used: None,
            floor: Instant::ZERO,
            trace,
        }
    }

    /// Publishing begins: the trace is at its `begins_at` then. `busy_until` is when the last frame is served.
    pub(super) fn begin(&mut self, at: Instant, busy_until: Instant) {
        self.origin_ns = i128::from(at.as_ns()) - i128::from(self.trace.begins_at.as_ns());
        self.row = None;
        self.release(busy_until);
    }

    /// What was served after this time was not: the link went down.
    pub(super) fn release(&mut self, until: Instant) {
        self.used = None;
        self.floor = until;
    }

    /// The link's own properties have changed.
    pub(super) fn rebase(&mut self, spec: &LinkSpec) {
        (self.delay, self.loss) = (spec.delay.clone(), spec.loss.clone());
        self.row = None;
    }

    /// Whether it says more than the rate.
    pub(super) fn has_conditions(&self) -> bool {
        matches!(&self.trace.course, TraceCourse::Values(values) if values.has_conditions())
    }

    /// From when until when a frame is served that came at `entered`, behind others until `busy_until`. `None` where the
    /// trace has no rate.
    pub(super) fn serve(
        &mut self,
        entered: Instant,
        busy_until: Instant,
        frame: Bytes,
    ) -> Option<[Instant; 2]> {
        let trace = Arc::clone(&self.trace);
        match &trace.course {
            TraceCourse::Opportunities { at_ms, bytes } => {
                Some(self.use_opportunities(at_ms, (*bytes).into(), entered, frame))
            }
            TraceCourse::Values(TraceValues { rate_bit_s: None, .. }) => None,
            TraceCourse::Values(values) => Some(self.transmit(values, entered.max(busy_until), frame)),
        }
    }

    /// The delay and loss at a time, where these are others than at the last one asked for.
    pub(super) fn conditions(&mut self, at: Instant) -> Option<TraceConditions> {
        let TraceCourse::Values(values) = &self.trace.course else { return None };
        if !values.has_conditions() {
            return None;
        }
        let row = row_at(values, self.place(at).1);
        if self.row.replace(row) == Some(row) {
            return None;
        }
        let mean = values.delay.as_ref().map_or(self.delay.mean, |delays| delays[row]);
        let jitter = values.jitter.as_ref().map_or(self.delay.jitter, |jitters| jitters[row]);
        let loss = values.loss_ppb.as_ref().map_or_else(
            || self.loss.clone(),
            |losses| LossSpec::Bernoulli {
                probability: Ratio::new(losses[row].into(), LOSS_WHOLE.into()).unwrap_or(Ratio::ONE),
            },
        );
        let delay = DelaySpec { mean, jitter, ..self.delay.clone() };
        Some(TraceConditions { delay, loss, loss_seed: self.loss_seed })
    }

    /// How often the trace had begun again by a time, and its place then.
    fn place(&self, at: Instant) -> (i128, u64) {
        let since = i128::from(at.as_ns()) - self.origin_ns;
        match self.trace.period {
            None => (0, since.max(0) as u64),
            Some(period) => {
                let period = i128::from(period.as_ns());
                (since.div_euclid(period), since.rem_euclid(period) as u64)
            }
        }
    }

    /// The time of a place; the end of time where that lies behind it.
    fn time_of(&self, round: i128, place: u64) -> Instant {
        let period = self.trace.period.map_or(0, |period| i128::from(period.as_ns()));
        let at = self.origin_ns + round * period + i128::from(place);
        Instant::from_ns(u64::try_from(at.max(0)).unwrap_or(u64::MAX))
    }

    fn transmit(&self, values: &TraceValues, ready: Instant, frame: Bytes) -> [Instant; 2] {
        let rates = values.rate_bit_s.as_deref().unwrap_or_default();
        let mut left = (u128::from(frame.bits()) * NS_PER_S).max(1);
        let (mut round, place) = self.place(ready);
        let mut row = row_at(values, place);
        let (mut at, mut start) = (ready, None);
        loop {
            let rate = u128::from(rates[row]);
            if rate > 0 {
                start.get_or_insert(at);
            }
            let is_last = row + 1 == rates.len();
            let until = match (is_last, self.trace.period) {
                (false, _) => Some(self.time_of(round, values.at[row + 1].as_ns())),
                (true, Some(_)) => Some(self.time_of(round + 1, 0)),
                (true, None) => None,
            };
            let carried = until.map(|until| rate * u128::from(until.since(at).as_ns()));
            match (carried, until) {
                (Some(carried), Some(until)) if carried < left && until < END => {
                    left -= carried;
                    at = until;
                }
                _ if rate == 0 => return [start.unwrap_or(END), END],
                _ => {
                    let ns = u64::try_from(left.div_ceil(rate)).unwrap_or(u64::MAX);
                    return [start.unwrap_or(at), Instant::from_ns(at.as_ns().saturating_add(ns))];
                }
            }
            row = if is_last { 0 } else { row + 1 };
            if is_last {
                // Whole periods at once: a slow trace of many rows would be gone through again and again.
                let whole = (left.max(1) - 1).checked_div(self.per_period).unwrap_or(0);
                left -= whole * self.per_period;
                round += 1 + i128::try_from(whole).unwrap_or(0);
                at = self.time_of(round, 0);
            }
        }
    }

    fn use_opportunities(
        &mut self,
        at_ms: &[u32],
        bytes: u64,
        entered: Instant,
        frame: Bytes,
    ) -> [Instant; 2] {
        let mut left = frame.0.max(1);
        let mut start = None;
        // What an opportunity has left goes to a frame that waited then.
        let mut current = self.used.filter(|used| used.at > entered && used.left > 0);
        loop {
            let mut opportunity = match current.take() {
                Some(opportunity) => opportunity,
                None => match self.next_opportunity(at_ms, bytes, entered.max(self.floor)) {
                    Some(opportunity) => opportunity,
                    None => return [start.unwrap_or(END), END],
                },
            };
            start.get_or_insert(opportunity.at);
            let taken = left.min(opportunity.left);
            left -= taken;
            opportunity.left -= taken;
            self.used = Some(opportunity);
            if left == 0 {
                return [start.unwrap_or(opportunity.at), opportunity.at];
            }
        }
    }

    /// The first opportunity behind the one in use, and behind this time.
    fn next_opportunity(&self, at_ms: &[u32], bytes: u64, after: Instant) -> Option<Opportunity> {
        let at = |number: usize| u64::from(at_ms[number]) * NS_PER_MS;
        let following = |round: i128, number: usize| match number < at_ms.len() {
            true => Some((round, number)),
            false => self.trace.period.map(|_| (round + 1, 0)),
        };
        let made = |(round, number): (i128, usize)| {
            let at = self.time_of(round, at(number));
            (at < END).then_some(Opportunity { round, number, at, left: bytes })
        };
        if let Some(used) = self.used {
            let next = following(used.round, used.number + 1).and_then(made)?;
            if next.at > after {
                return Some(next);
            }
        }
        let (round, place) = self.place(after);
        // Before the trace begins all of it lies ahead.
        let is_before = self.trace.period.is_none() && i128::from(after.as_ns()) < self.origin_ns;
        let number =
            if is_before { 0 } else { at_ms.partition_point(|at| u64::from(*at) * NS_PER_MS <= place) };
        following(round, number).and_then(made)
    }
}

impl Link {
    /// A link of a plan, which may change, or follow its trace.
    pub fn planned(
        spec: LinkSpec,
        seed: Seed,
        may_change: bool,
        traces: &BTreeMap<String, Arc<TraceSpec>>,
    ) -> Link {
        let followed = traces.get(&spec.name).map(|trace| (Arc::clone(trace), spec.clone()));
        let link = if may_change { Link::changeable(spec, seed) } else { Link::new(spec, seed) };
        match followed {
            Some((trace, spec)) => link.following(trace, &spec, seed),
            None => link,
        }
    }
}

/// The trace of each link that follows one, by its name.
pub fn link_traces(traces: Vec<TraceSpec>) -> BTreeMap<String, Arc<TraceSpec>> {
    let shared = traces.into_iter().map(Arc::new);
    shared
        .flat_map(|trace| trace.links.clone().into_iter().map(move |name| (name, Arc::clone(&trace))))
        .collect()
}

/// Bits that go through in a period, in bits × 10⁹.
fn carried(values: &TraceValues, period_ns: u64) -> u128 {
    let ends = values.at.iter().skip(1).map(|at| at.as_ns()).chain([period_ns]);
    let rows = values.rate_bit_s.iter().flatten().zip(&values.at).zip(ends);
    rows.map(|((rate, from), until)| u128::from(*rate) * u128::from(until - from.as_ns())).sum()
}

fn row_at(values: &TraceValues, place: u64) -> usize {
    values.at.partition_point(|at| at.as_ns() <= place).saturating_sub(1)
}

const NS_PER_S: u128 = 1_000_000_000;
const NS_PER_MS: u64 = 1_000_000;
/// Behind every run.
const END: Instant = Instant::from_ns(u64::MAX);

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use mqttlab_units::{BitRate, Duration};

    use super::*;
    use crate::fate::Fate;
    use crate::name::FrameName;
    use crate::{DelayLaw, DownQueue, LinkChange, LossPlace, QueueSpec, ReorderSpec};

    fn spec(rate_bit_s: u64) -> LinkSpec {
        LinkSpec {
            name: "a/up".into(),
            rate_bit_s: BitRate::from_bit_s(rate_bit_s),
            overhead_bytes: 0,
            minimum_frame_bytes: 0,
            queue: QueueSpec {
                limit_packets: None,
                limit_bytes: None,
                counts_delay_line: false,
                discipline: crate::spec::Discipline::TailDrop,
            },
            delay: DelaySpec {
                law: DelayLaw::Constant,
                mean: Duration::ZERO,
                jitter: Duration::ZERO,
                correlation: Ratio::ZERO,
                keep_order: true,
            },
            loss: LossSpec::None,
            loss_at: LossPlace::Exit,
            duplication: Ratio::ZERO,
            corruption: Ratio::ZERO,
            reordering: ReorderSpec { probability: Ratio::ZERO, gap: 1 },
            policer: None,
        }
    }

    fn trace(course: TraceCourse, period_ms: Option<u64>) -> Arc<TraceSpec> {
        let (name, links) = ("t".into(), vec!["a/up".into()]);
        let period = period_ms.map(Duration::from_ms);
        let trace = TraceSpec { name, links, begins_at: Duration::ZERO, period, course };
        trace.check().unwrap();
        Arc::new(trace)
    }

    fn opportunities(at_ms: &[u32], period_ms: u64) -> Arc<TraceSpec> {
        trace(TraceCourse::Opportunities { at_ms: at_ms.to_vec(), bytes: 1_500 }, Some(period_ms))
    }

    fn rates(rows: &[(u64, u64)], period_ms: Option<u64>) -> Arc<TraceSpec> {
        let at = rows.iter().map(|(ms, _)| Duration::from_ms(*ms)).collect();
        let rate_bit_s = Some(rows.iter().map(|(_, rate)| *rate).collect());
        trace(TraceCourse::Values(TraceValues { at, rate_bit_s, ..TraceValues::default() }), period_ms)
    }

    fn link(trace: Arc<TraceSpec>) -> Link {
        Link::new(spec(1_000_000), Seed(1)).following(trace, &spec(1_000_000), Seed(1))
    }

    fn ms(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    /// When a frame begins and ends to be sent, in ms.
    fn sent(link: &mut Link, at: u64, bytes: u64) -> (f64, f64) {
        match link.offer(ms(at), Bytes(bytes), FrameName::nth(at)) {
            Fate::Delivered(found) => (found.start.as_ns() as f64 / 1e6, found.sent.as_ns() as f64 / 1e6),
            Fate::Dropped { cause, .. } => panic!("{cause:?}"),
        }
    }

    #[test]
    fn a_frame_takes_as_long_as_the_rates_that_it_sees_need_for_its_bits() {
        let mut one = link(rates(&[(0, 1_000_000), (10, 100_000), (20, 1_000_000)], None));
        // 8,000 bits in the first 8 ms; of the second frame 2,000 bits until 10 ms, 1,000 until 20 ms, and 5,000.
        assert_eq!(sent(&mut one, 0, 1_000), (0.0, 8.0));
        assert_eq!(sent(&mut one, 0, 1_000), (8.0, 25.0));
        assert_eq!(sent(&mut one, 100, 1_000), (100.0, 108.0), "the last row holds");
    }

    #[test]
    fn where_the_rate_is_0_frames_wait_and_what_is_half_sent_goes_on_afterwards() {
        let mut one = link(rates(&[(0, 1_000_000), (4, 0), (50, 1_000_000)], Some(100)));
        assert_eq!(sent(&mut one, 0, 1_000), (0.0, 54.0));
        assert_eq!(sent(&mut one, 104, 500), (150.0, 154.0), "the trace has begun again at 100 ms");
        let mut gone = link(rates(&[(0, 1_000_000), (4, 0)], None));
        assert_eq!(sent(&mut gone, 10, 1_000).1, u64::MAX as f64 / 1e6);
    }

    #[test]
    fn a_trace_of_one_rate_is_a_link_of_that_rate() {
        let mut plain = Link::new(spec(777_777), Seed(1));
        let mut traced = link(rates(&[(0, 777_777)], None));
        let mut looped = link(rates(&[(0, 777_777)], Some(3)));
        for at in [0, 0, 1, 40, 41, 9_000] {
            let expected = sent(&mut plain, at, 1 + at);
            assert_eq!(sent(&mut traced, at, 1 + at), expected);
            let found = sent(&mut looped, at, 1 + at);
            assert!((found.1 - expected.1).abs() < 1e-4, "in ms, each round rounded: {found:?} {expected:?}");
        }
        // 12 kbit at 1 bit/s, in rows of 1 ms: 12,000 s, which are whole periods at once.
        let mut slow = link(rates(&[(0, 1), (1, 1)], Some(2)));
        assert_eq!(sent(&mut slow, 0, 1_500), (0.0, 12_000_000.0));
    }

    #[test]
    fn a_trace_counts_from_the_time_at_which_publishing_begins() {
        let mut one = link(rates(&[(0, 1_000_000), (10, 100_000)], Some(20)));
        one.begin_trace(ms(1_005));
        assert_eq!(sent(&mut one, 1_000, 100), (1_000.0, 1_005.0 + 0.3), "before, it is as at its end");
        assert_eq!(sent(&mut one, 1_006, 100), (1_006.0, 1_006.8));
    }

    #[test]
    fn delay_and_loss_are_those_of_the_time_at_which_a_frame_has_left() {
        let values = TraceValues {
            at: [0, 10, 20].map(Duration::from_ms).to_vec(),
            delay: Some([5, 50, 50].map(Duration::from_ms).to_vec()),
            loss_ppb: Some(vec![0, 0, 1_000_000_000]),
            ..TraceValues::default()
        };
        let mut one = link(trace(TraceCourse::Values(values), Some(30)));
        let mut arrival = |at: u64| match one.offer(ms(at), Bytes(125), FrameName::nth(at)) {
            Fate::Delivered(found) => Some(found.at.as_ns() / 1_000_000),
            Fate::Dropped { .. } => None,
        };
        assert_eq!([0, 9, 15, 22, 181].map(&mut arrival), [Some(6), Some(60), Some(66), None, Some(187)]);
    }

    /// `LinkQueue` of Mahimahi (src/frontend/link_queue.cc), step by step.
    struct MmLink<'a> {
        schedule: &'a [u32],
        next: usize,
        base: u64,
        queue: VecDeque<(usize, u64)>,
        left: u64,
        departed: Vec<(usize, u64)>,
    }

    impl MmLink<'_> {
        fn rationalize(&mut self, now: u64) {
            while self.base + u64::from(self.schedule[self.next]) <= now {
                let at = self.base + u64::from(self.schedule[self.next]);
                self.next += 1;
                if self.next == self.schedule.len() {
                    self.next = 0;
                    self.base += u64::from(self.schedule[self.schedule.len() - 1]);
                }
                let mut bytes = 1_500;
                while bytes > 0 && !self.queue.is_empty() {
                    if self.left == 0 {
                        self.left = self.queue[0].1;
                    }
                    let amount = self.left.min(bytes);
                    self.left -= amount;
                    bytes -= amount;
                    if self.left == 0 {
                        let (frame, _) = self.queue.pop_front().unwrap();
                        self.departed.push((frame, at));
                    }
                }
            }
        }
    }

    #[test]
    fn opportunities_are_used_as_by_mahimahi() {
        for seed in 0..50 {
            let mut dice = Seed(seed).dice();
            let mut schedule: Vec<u32> = (0..1 + dice.below(30)).map(|_| dice.below(200) as u32).collect();
            schedule.sort_unstable();
            *schedule.last_mut().unwrap() += 1;
            let period = (*schedule.last().unwrap()).into();
            let mut ours = link(opportunities(&schedule, period));
            let mut theirs = MmLink {
                schedule: &schedule,
                next: 0,
                base: 0,
                queue: VecDeque::new(),
                left: 0,
                departed: Vec::new(),
            };
            let (mut at, mut expected) = (0, Vec::new());
            for frame in 0..100 {
                at += if dice.below(3) == 0 { dice.below(100) } else { 0 };
                let size = 40 + dice.below(1_461);
                theirs.rationalize(at);
                theirs.queue.push_back((frame, size));
                expected.push((frame, sent(&mut ours, at, size).1 as u64));
            }
            theirs.rationalize(10_000_000);
            assert_eq!(theirs.departed, expected, "seed {seed}: {schedule:?}");
        }
    }

    #[test]
    fn a_link_that_goes_down_uses_opportunities_of_the_time_after_it() {
        let (made, trace) = (spec(1_000_000), opportunities(&[10, 20, 30, 40], 40));
        for (queue, expected) in [(DownQueue::Keep, vec![40, 50]), (DownQueue::Drop, vec![40])] {
            let mut one =
                Link::changeable(made.clone(), Seed(1)).following(Arc::clone(&trace), &made, Seed(1));
            one.enter(ms(1), 0, Bytes(1_500), FrameName::nth(0));
            one.change(ms(5), &LinkChange::Down { queue });
            one.change(ms(35), &LinkChange::Up);
            one.enter(ms(36), 1, Bytes(1_500), FrameName::nth(1));
            one.tick(ms(1_000));
            let mut sent = Vec::new();
            while let Some(settled) = one.poll() {
                if let Fate::Delivered(delivery) = settled.fate {
                    sent.push(delivery.sent.since(Instant::ZERO).as_ns() / 1_000_000);
                }
            }
            assert_eq!(sent, expected);
            assert_eq!(one.counters().busy, Duration::ZERO);
        }
    }
}
