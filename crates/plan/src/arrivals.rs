//! When the messages of a client's publication are due: the schedule of an open loop.
//!
//! The instants follow from the plan and the seed alone. Whoever performs them may be late, but can neither delay
//! nor skip one: [`Arrivals::take`] yields them in order, each with its place in the count of its publication.
//!
//! ```text
//! constant       |     |     |     |     |          poisson   |  |       | |    |     |
//! burst (3)      |||               |||              back-to-back: due when the session has room
//! ```
//!
//! What it does not know: whether anything was sent.

mod changed;
use std::sync::Arc;

use mqttlab_units::{Dice, Duration, Instant, Seed};

use crate::rates::Rates;
use crate::{Arrival, Group, Publish, PublishingChanges, ReplayTable, StartPhase};
use changed::ChangedArrivals;

/// The messages of one publication of a client, in the order in which they are due.
#[derive(Clone, Debug)]
pub struct Arrivals {
    arrival: Arrival,
    dice: Dice,
    next: Instant,
    until: Instant,
    sequence: u64,
    left: u64,
    /// Where the next message stands in its burst, and when that began.
    in_burst: u32,
    burst_began: Instant,
    /// Where the rate changes.
    rates: Option<Box<Rates>>,
    /// Where events change it.
    changed: Option<Box<ChangedArrivals>>,
    replayed: Option<Box<Replayed>>,
}

/// A table whose rows are due.
#[derive(Clone, Debug)]
struct Replayed {
    table: Arc<ReplayTable>,
    client: u32,
    begin: Instant,
}

impl Replayed {
    fn due(&self, index: u64) -> Option<Instant> {
        self.table.due(self.client, index, self.begin)
    }
}

/// From when to when clients publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishingTime {
    /// Nothing is due before.
    pub from: Instant,
    /// The measurement begins, and with it the stages of rates.
    pub measured_from: Instant,
    /// Nothing is due from then on.
    pub until: Instant,
}

impl Arrivals {
    /// For each publication of the `client`-th client of a group, which has a number among all clients. `seed` is the run's.
    pub fn of(
        group: &Group,
        (client, number_of_client): (u32, u32),
        seed: Seed,
        time: PublishingTime,
        changes: &PublishingChanges,
    ) -> Vec<Arrivals> {
        let seed = seed.derive("arrivals").derive(&group.name).index(u64::from(client));
        let arrivals = |(number, publish): (usize, &Publish)| {
            let seed = publication_seed(seed, number);
            let changed = ChangedArrivals::of(changes.of_client(number_of_client), number, time.from);
            Arrivals::new(publish, (client, group.count), seed, time, changed)
        };
        group.publications.iter().enumerate().map(arrivals).collect()
    }

    /// For one of so many clients.
    fn new(
        publish: &Publish,
        (client, count): (u32, u32),
        seed: Seed,
        time: PublishingTime,
        changed: Option<ChangedArrivals>,
    ) -> Arrivals {
        let mut dice = seed.dice();
        let offset = start_offset(publish, client, count, &mut dice);
        let has_rate = publish.arrival != Arrival::BackToBack;
        let changes = changed.as_ref().filter(|changed| has_rate && changed.has_rates());
        let mut rates = (!publish.stages.is_empty() || changes.is_some()).then(|| {
            let rate = per_ns(publish.arrival);
            let (place, changes) =
                (rate * offset.as_ns() as f64, changes.map_or(&[][..], |changed| &changed.rates));
            let times = (time.from, time.measured_from);
            Box::new(Rates::new(rate, &publish.stages, times, place, changes))
        });
        let table = publish.replayed();
        let replayed = table.map(|table| Box::new(Replayed { table, client, begin: time.measured_from }));
        let next = match (&mut rates, &replayed) {
            (_, Some(replayed)) => replayed.due(0).unwrap_or(time.until),
            (None, None) => time.from + offset,
            (Some(rates), None) => rates.due().unwrap_or(time.until),
        };
        let until = time.until;
        Arrivals {
            arrival: publish.arrival,
            dice,
            next,
            until,
            sequence: 0,
            left: publish.messages.unwrap_or(u64::MAX),
            in_burst: 0,
            burst_began: next,
            rates,
            changed: changed.map(Box::new),
            replayed,
        }
    }

    /// When the next message is due; `None` when there is none. Of a back-to-back client, when it begins.
    pub fn peek(&self) -> Option<Instant> {
        let next = self.next_of_burst().map_or(self.next, |at| at.min(self.next));
        (self.left > 0 && next < self.until).then_some(next)
    }

    /// What a message that is due at an instant is, by its number among [`Group::contents`], where an event says it.
    pub fn content(&self, at: Instant) -> Option<usize> {
        self.changed.as_ref()?.content(at)
    }

    fn next_of_burst(&self) -> Option<Instant> {
        self.changed.as_ref()?.next_of_burst()
    }

    /// When publishing ends.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// Whether the next message is due only once the session has room for it.
    pub fn waits_for_room(&self) -> bool {
        self.arrival == Arrival::BackToBack
    }

    /// The intended time of the next message and its number in the publication, if it is due at `now`. A back-to-back message is
    /// intended for `now`.
    pub fn take(&mut self, now: Instant) -> Option<(Instant, u64)> {
        let due = self.peek().filter(|due| *due <= now)?;
        if let Some(changed) = &self.changed
            && self.waits_for_room()
            && let Some(until) = changed.paused_until(now, self.until)
        {
            self.next = until;
            return None;
        }
        let sequence = self.sequence;
        self.sequence += 1;
        self.left -= 1;
        match &mut self.changed {
            Some(changed) if changed.next_of_burst() == Some(due) => changed.take_of_burst(),
            _ => self.advance(now),
        }
        let intended = if self.waits_for_room() { now } else { due };
        (intended < self.until).then_some((intended, sequence))
    }

    /// An instant after another one: by this time, or where the rate changes by so many messages.
    fn after(&mut self, instant: Instant, time: Duration, messages: f64) -> Instant {
        let Some(rates) = &mut self.rates else { return instant + time };
        rates.skip(messages);
        rates.due().unwrap_or(self.until)
    }

    fn advance(&mut self, now: Instant) {
        if let Some(replayed) = &self.replayed {
            self.next = replayed.due(self.sequence).unwrap_or(self.until);
            return;
        }
        self.next = match self.arrival {
            Arrival::Constant { interval_ns } => self.after(self.next, Duration::from_ns(interval_ns), 1.0),
            Arrival::Poisson { mean_interval_ns } => {
                let wait = self.dice.exponential(Duration::from_ns(mean_interval_ns));
                self.after(self.next, wait, wait.as_ns() as f64 / mean_interval_ns as f64)
            }
            Arrival::Burst { size, interval_ns, gap_ns } => {
                self.in_burst = (self.in_burst + 1) % size;
                if self.in_burst == 0 {
                    self.burst_began =
                        self.after(self.burst_began, Duration::from_ns(interval_ns), size.into());
                }
                // A burst that lasts longer than its interval runs into the next, but never back in time.
                (self.burst_began + Duration::from_ns(gap_ns) * u64::from(self.in_burst)).max(self.next)
            }
            Arrival::BackToBack => now,
        };
    }
}

/// Messages per nanosecond; of a back-to-back publication nobody knows.
fn per_ns(arrival: Arrival) -> f64 {
    match arrival {
        Arrival::Constant { interval_ns } | Arrival::Poisson { mean_interval_ns: interval_ns } => {
            1.0 / interval_ns as f64
        }
        Arrival::Burst { size, interval_ns, .. } => f64::from(size) / interval_ns as f64,
        Arrival::BackToBack => 0.0,
    }
}

/// What a client's publication draws from. The first one has the client's own seed, which another one beside it does not
/// change.
pub(crate) fn publication_seed(client: Seed, number: usize) -> Seed {
    if number == 0 { client } else { client.derive("publication").index(number as u64) }
}

/// From the start of publishing to the first message.
fn start_offset(publish: &Publish, client: u32, count: u32, dice: &mut Dice) -> Duration {
    let interval_ns = match publish.arrival {
        Arrival::Constant { interval_ns } | Arrival::Burst { interval_ns, .. } => interval_ns,
        Arrival::Poisson { mean_interval_ns } => mean_interval_ns,
        Arrival::BackToBack => 0,
    };
    match (publish.start_phase, publish.arrival) {
        (StartPhase::Synchronised, _) => Duration::ZERO,
        (StartPhase::Even, _) => {
            let share = u128::from(interval_ns) * u128::from(client) / u128::from(count.max(1));
            Duration::from_ns(share as u64)
        }
        // A Poisson process has no memory: the wait for its first event is like every other.
        (StartPhase::Random, Arrival::Poisson { .. }) => dice.exponential(Duration::from_ns(interval_ns)),
        (StartPhase::Random, _) => Duration::from_ns(dice.below(interval_ns.max(1))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ChangedRate, ClientsChange, Payload, Protocol, PublicationChange, RateStage, TcpTransport,
        TopicPattern, Transport,
    };

    fn publish(arrival: Arrival, start_phase: StartPhase) -> Publish {
        Publish {
            topic: TopicPattern("t".into()),
            topics: 1,
            qos: 0,
            retain: false,
            properties: crate::MessageProperties::default(),
            payload: Payload::Fixed { bytes: 64 },
            arrival,
            start_phase,
            stages: Vec::new(),
            messages: None,
            replay: None,
        }
    }

    fn arrivals(arrival: Arrival, start_phase: StartPhase, messages: Option<u64>, client: u32) -> Arrivals {
        let publish = Publish { messages, ..publish(arrival, start_phase) };
        let group = group(vec![publish]);
        of(&group, client).remove(0)
    }

    fn of(group: &Group, client: u32) -> Vec<Arrivals> {
        let [from, until] = [1000, 2000].map(Instant::from_ns);
        let time = PublishingTime { from, measured_from: from, until };
        Arrivals::of(group, (client, client), Seed(5), time, &PublishingChanges::default())
    }

    fn group(publications: Vec<Publish>) -> Group {
        let mqtt = serde_json::json!({
            "version": "5", "client_id": "c", "keep_alive_s": 0, "clean_session": true, "session_expiry_s": 0,
            "max_inflight": 1, "max_queued": 0, "receive_maximum": 1, "deliver_on_release": true,
            "retry": null, "username": null, "password": null, "will": null,
        });
        let reconnect = serde_json::json!({
            "enabled": false, "initial_ns": 0, "maximum_ns": 0, "jitter": serde_json::to_value(mqttlab_units::Ratio::ZERO).unwrap(),
            "connect_timeout_ns": 0,
        });
        Group {
            name: "g".into(),
            count: 4,
            host: 0,
            host_step: 0,
            hosts_in_turn: None,
            connects_to: 0,
            protocol: Protocol::Mqtt(serde_json::from_value(mqtt).unwrap()),
            transport: Transport::Tcp(TcpTransport { nodelay: true, tls: None, websocket: None }),
            reconnect: serde_json::from_value(reconnect).unwrap(),
            connect_over: Duration::ZERO,
            publications,
            changed_publications: Vec::new(),
            subscriptions: Vec::new(),
            relay: None,
            late_after: None,
            churn: None,
            program: None,
        }
    }

    fn all(mut arrivals: Arrivals) -> Vec<(u64, u64)> {
        let late = Instant::from_ns(1_000_000);
        std::iter::from_fn(|| arrivals.take(late)).map(|(at, sequence)| (at.as_ns(), sequence)).collect()
    }

    #[test]
    fn constant_arrivals_fill_the_time_and_stop_before_its_end() {
        let constant = Arrival::Constant { interval_ns: 250 };
        let expected = [(1000, 0), (1250, 1), (1500, 2), (1750, 3)];
        assert_eq!(all(arrivals(constant, StartPhase::Synchronised, None, 1)), expected);
        assert_eq!(all(arrivals(constant, StartPhase::Synchronised, Some(2), 1)), expected[..2]);
        assert_eq!(all(arrivals(constant, StartPhase::Even, Some(1), 3)), [(1187, 0)]);
    }

    #[test]
    fn bursts_begin_on_their_own_clock() {
        let burst = Arrival::Burst { size: 3, interval_ns: 400, gap_ns: 10 };
        let times: Vec<u64> =
            all(arrivals(burst, StartPhase::Synchronised, None, 0)).iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [1000, 1010, 1020, 1400, 1410, 1420, 1800, 1810, 1820]);
    }

    #[test]
    fn poisson_arrivals_have_the_mean_they_are_asked_for_and_differ_by_client() {
        let poisson = Arrival::Poisson { mean_interval_ns: 100 };
        let count = |client| all(arrivals(poisson, StartPhase::Random, None, client)).len() as f64;
        let total: f64 = (0..1000).map(count).sum();
        // Ten expected of each of a thousand clients; five standard deviations of their Poisson sum.
        assert!((total - 10_000.0).abs() < 500.0, "{total}");
        let times = |client| all(arrivals(poisson, StartPhase::Random, None, client));
        assert_ne!(times(0), times(1));
        assert_eq!(times(2), times(2));
    }

    #[test]
    fn nothing_is_taken_before_it_is_due() {
        let constant = Arrival::Constant { interval_ns: 250 };
        let mut arrivals = arrivals(constant, StartPhase::Synchronised, None, 0);
        assert_eq!(arrivals.take(Instant::from_ns(999)), None);
        assert_eq!(arrivals.take(Instant::from_ns(1100)), Some((Instant::from_ns(1000), 0)));
        assert_eq!(arrivals.take(Instant::from_ns(1100)), None);
        assert_eq!(arrivals.peek(), Some(Instant::from_ns(1250)));
    }

    #[test]
    fn back_to_back_messages_are_intended_when_there_is_room() {
        let mut arrivals = arrivals(Arrival::BackToBack, StartPhase::Random, Some(2), 0);
        assert!(arrivals.waits_for_room());
        assert_eq!(arrivals.take(Instant::from_ns(1300)), Some((Instant::from_ns(1300), 0)));
        assert_eq!(arrivals.take(Instant::from_ns(1300)), Some((Instant::from_ns(1300), 1)));
        assert_eq!(arrivals.take(Instant::from_ns(1300)), None);
    }

    #[test]
    fn a_random_start_lies_within_the_first_interval() {
        for client in 0..100 {
            let first =
                arrivals(Arrival::Constant { interval_ns: 900 }, StartPhase::Random, None, client).peek();
            assert!((1000..1900).contains(&first.unwrap().as_ns()));
        }
    }

    #[test]
    fn one_publication_more_leaves_the_others_as_they_were() {
        let poisson = publish(Arrival::Poisson { mean_interval_ns: 100 }, StartPhase::Random);
        let alone: Vec<_> = of(&group(vec![poisson.clone()]), 2).into_iter().map(all).collect();
        let beside: Vec<_> = of(&group(vec![poisson.clone(), poisson]), 2).into_iter().map(all).collect();
        assert_eq!((beside.len(), &beside[0]), (2, &alone[0]));
        assert_ne!(beside[0], beside[1]);
    }

    const MS: u64 = 1_000_000;

    fn stage(length_ms: u64, from_per_s: u64, to_per_s: u64) -> RateStage {
        let interval = |per_s: u64| (per_s > 0).then(|| 1_000_000_000 / per_s);
        RateStage {
            length: Duration::from_ms(length_ms),
            from_interval_ns: interval(from_per_s),
            to_interval_ns: interval(to_per_s),
        }
    }

    /// When messages are due, in milliseconds, of 4 s with a warm-up of 1 s, or of the first ones.
    fn staged(arrival: Arrival, stages: Vec<RateStage>, most: usize) -> Vec<f64> {
        let publish = Publish { stages, ..publish(arrival, StartPhase::Synchronised) };
        let at = |s| Instant::ZERO + Duration::from_s(s);
        let time = PublishingTime { from: at(0), measured_from: at(1), until: at(4) };
        let none = PublishingChanges::default();
        let mut arrivals = Arrivals::of(&group(vec![publish]), (0, 0), Seed(5), time, &none).remove(0);
        let due = std::iter::from_fn(|| arrivals.take(at(100)));
        due.take(most).map(|(at, _)| at.as_ns() as f64 / MS as f64).collect()
    }

    fn in_each_second(due: &[f64]) -> [usize; 4] {
        [0.0, 1e3, 2e3, 3e3].map(|from| due.iter().filter(|&&at| (from..from + 1e3).contains(&at)).count())
    }

    #[test]
    fn steps_and_ramps_begin_with_the_measurement_and_the_last_rate_stays() {
        let constant = Arrival::Constant { interval_ns: 500 * MS };
        let due = staged(constant, vec![stage(500, 10, 10), stage(500, 0, 0)], usize::MAX);
        assert_eq!(due, [0.0, 500.0, 1000.0, 1100.0, 1200.0, 1300.0, 1400.0, 1500.0]);
        // From none to 10 a second within a second: the n-th at the root of n / 5.
        let due = staged(constant, vec![stage(1000, 0, 10)], 6);
        let expected = [0.0, 500.0, 1000.0, 1447.2136, 1632.4555, 1774.5967];
        assert!(due.iter().zip(expected).all(|(at, expected)| (at - expected).abs() < 1e-3), "{due:?}");
        // Down again to none, and then five a second.
        let due = staged(constant, vec![stage(1000, 100, 0), stage(1000, 5, 5)], usize::MAX);
        assert_eq!(in_each_second(&due), [2, 50, 5, 5]);
    }

    #[test]
    fn bursts_and_poisson_arrivals_follow_the_rate() {
        let burst = Arrival::Burst { size: 4, interval_ns: 1000 * MS, gap_ns: MS };
        let due = staged(burst, vec![stage(1000, 8, 8), stage(1000, 40, 40), stage(1, 0, 0)], usize::MAX);
        assert_eq!(due[..9], [0.0, 1.0, 2.0, 3.0, 1000.0, 1001.0, 1002.0, 1003.0, 1500.0]);
        assert_eq!(in_each_second(&due), [4, 8, 40, 4], "the burst of the last instant is whole");
        let poisson = Arrival::Poisson { mean_interval_ns: MS };
        let due = staged(poisson, vec![stage(1000, 4000, 0), stage(1000, 0, 6000)], usize::MAX);
        for (found, expected) in in_each_second(&due).into_iter().zip([1000.0, 2000.0, 3000.0, 6000.0]) {
            assert!((found as f64 - expected).abs() < 4.0 * f64::sqrt(expected), "{found}, not {expected}");
        }
        assert!(due.is_sorted());
    }

    #[test]
    fn a_rate_that_stays_is_the_rate_without_stages() {
        let constant = Arrival::Constant { interval_ns: 333_333_333 };
        let [plain, one] =
            [vec![], vec![stage(100, 3, 3), stage(700, 3, 3)]].map(|stages| staged(constant, stages, 12));
        assert!(plain.iter().zip(&one).all(|(one, other)| (one - other).abs() < 1e-5), "{plain:?} {one:?}");
    }

    /// When messages are due, in milliseconds, in 4 s at synchronised clients, and what they are, with events.
    fn changed(
        arrival: Arrival,
        stages: Vec<RateStage>,
        events: &[(u64, ClientsChange)],
    ) -> Vec<(u64, usize)> {
        let at = |s| Instant::ZERO + Duration::from_s(s);
        let time = PublishingTime { from: at(0), measured_from: at(1), until: at(4) };
        let events: Vec<_> =
            events.iter().map(|(at, change)| (Duration::from_ms(*at), change.clone())).collect();
        let publish = Publish { stages, ..publish(arrival, StartPhase::Synchronised) };
        let changed = ChangedArrivals::of(events.iter(), 0, time.from);
        let mut arrivals = Arrivals::new(&publish, (0, 1), Seed(5), time, changed);
        let due = std::iter::from_fn(|| arrivals.take(at(100)));
        let due: Vec<Instant> = due.map(|(at, _)| at).collect();
        due.iter().map(|&at| (at.as_ns() / MS, arrivals.content(at).unwrap_or(0))).collect()
    }

    fn change(content: usize, rate: Option<Option<u64>>) -> ClientsChange {
        let rate = rate.map(|interval_ns| ChangedRate { interval_ns });
        ClientsChange::Publish { publications: vec![PublicationChange { publication: 0, content, rate }] }
    }

    fn times(due: &[(u64, usize)]) -> Vec<u64> {
        due.iter().map(|(at, _)| *at).collect()
    }

    #[test]
    fn an_event_changes_the_rate_and_another_one_gives_it_back() {
        let constant = Arrival::Constant { interval_ns: 400 * MS };
        // Half of an interval is over at 1 s; the other half takes half of the new one.
        let events = [(1000, change(0, Some(Some(100 * MS)))), (1500, change(0, None))];
        let due = times(&changed(constant, Vec::new(), &events));
        assert_eq!(due[..8], [0, 400, 800, 1050, 1150, 1250, 1350, 1450], "{due:?}");
        assert_eq!(due[8..], [1700, 2100, 2500, 2900, 3300, 3700], "{due:?}");
    }

    #[test]
    fn a_pause_holds_the_schedule_where_it_is() {
        let constant = Arrival::Constant { interval_ns: 400 * MS };
        let events = [(1000, change(0, Some(None))), (2000, change(0, None))];
        let due = times(&changed(constant, Vec::new(), &events));
        assert_eq!(due, [0, 400, 800, 2200, 2600, 3000, 3400, 3800]);
        let never = times(&changed(constant, Vec::new(), &events[..1]));
        assert_eq!(never, [0, 400, 800]);
        let many = changed(Arrival::Poisson { mean_interval_ns: MS }, Vec::new(), &events);
        assert_eq!(many.iter().filter(|(at, _)| (1000..2000).contains(at)).count(), 0);
        assert!(many.len() > 2_700, "{}", many.len());
    }

    #[test]
    fn what_gives_a_rate_back_gives_back_the_stage_of_that_time() {
        let constant = Arrival::Constant { interval_ns: 500 * MS };
        // A ramp from 10 to 30 a second, without its middle half second.
        let events = [(1250, change(0, Some(None))), (1750, change(0, None))];
        let due = times(&changed(constant, vec![stage(1000, 10, 30), stage(1000, 0, 0)], &events));
        let within = |from: u64, until: u64| due.iter().filter(|at| (from..until).contains(at)).count();
        assert_eq!((within(0, 1000), within(1250, 1750), within(2000, 4000)), (2, 0, 0), "{due:?}");
        // 0.25 s at 12.5 a second in the mean, which begins with a message, and 0.25 s at 27.5.
        assert_eq!((within(1000, 1250), within(1750, 2000)), (4, 7), "{due:?}");
    }

    #[test]
    fn a_message_is_what_its_publication_is_when_it_is_due() {
        let constant = Arrival::Constant { interval_ns: 1000 * MS };
        let events = [(1000, change(1, None)), (2000, change(2, None)), (2000, change(0, None))];
        assert_eq!(changed(constant, Vec::new(), &events), [(0, 0), (1000, 1), (2000, 0), (3000, 0)]);
    }

    #[test]
    fn a_burst_comes_besides_what_is_due_and_counts_with_it() {
        let constant = Arrival::Constant { interval_ns: 1000 * MS };
        let burst = ClientsChange::Burst { publications: vec![0], messages: 3 };
        let other = ClientsChange::Burst { publications: vec![1], messages: 9 };
        let events = [(500, other), (1500, burst.clone()), (2000, burst)];
        let due = times(&changed(constant, Vec::new(), &events));
        assert_eq!(due, [0, 1000, 1500, 1500, 1500, 2000, 2000, 2000, 2000, 3000]);
    }

    #[test]
    fn back_to_back_messages_pause() {
        let at = |ms: u64| Instant::from_ns(ms * MS);
        let time = PublishingTime { from: at(0), measured_from: at(0), until: at(4000) };
        let events: Vec<_> =
            [(1000, change(0, Some(None))), (2000, change(0, None)), (3000, change(0, Some(None)))]
                .map(|(at, change)| (Duration::from_ms(at), change))
                .into();
        let changed = ChangedArrivals::of(events.iter(), 0, time.from);
        let publish = publish(Arrival::BackToBack, StartPhase::Random);
        let mut arrivals = Arrivals::new(&publish, (0, 1), Seed(5), time, changed);
        assert_eq!(arrivals.take(at(999)), Some((at(999), 0)));
        assert_eq!((arrivals.take(at(1000)), arrivals.peek()), (None, Some(at(2000))));
        assert_eq!(arrivals.take(at(2500)), Some((at(2500), 1)));
        assert_eq!((arrivals.take(at(3000)), arrivals.peek()), (None, None), "it does not go on");
    }
}
