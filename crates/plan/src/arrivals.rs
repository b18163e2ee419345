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

use mqttlab_units::{Dice, Duration, Instant, Seed};

use crate::{Arrival, Group, Publish, StartPhase};

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
}

impl Arrivals {
    /// For each publication of the `client`-th client of a group, from `from` until before `until`. `seed` is the run's.
    pub fn of(group: &Group, client: u32, seed: Seed, from: Instant, until: Instant) -> Vec<Arrivals> {
        let seed = seed.derive("arrivals").derive(&group.name).index(u64::from(client));
        let arrivals = |(number, publish): (usize, &Publish)| {
            let seed = publication_seed(seed, number);
            Arrivals::new(publish, (client, group.count), seed, (from, until))
        };
        group.publications.iter().enumerate().map(arrivals).collect()
    }

    /// For one of so many clients.
    fn new(
        publish: &Publish,
        (client, count): (u32, u32),
        seed: Seed,
        (from, until): (Instant, Instant),
    ) -> Arrivals {
        let mut dice = seed.dice();
        let next = from + start_offset(publish, client, count, &mut dice);
        Arrivals {
            arrival: publish.arrival,
            dice,
            next,
            until,
            sequence: 0,
            left: publish.messages.unwrap_or(u64::MAX),
            in_burst: 0,
            burst_began: next,
        }
    }

    /// When the next message is due; `None` when there is none. Of a back-to-back client, when it begins.
    pub fn peek(&self) -> Option<Instant> {
        (self.left > 0 && self.next < self.until).then_some(self.next)
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
        let sequence = self.sequence;
        self.sequence += 1;
        self.left -= 1;
        self.advance(now);
        let intended = if self.waits_for_room() { now } else { due };
        (intended < self.until).then_some((intended, sequence))
    }

    fn advance(&mut self, now: Instant) {
        self.next = match self.arrival {
            Arrival::Constant { interval_ns } => self.next + Duration::from_ns(interval_ns),
            Arrival::Poisson { mean_interval_ns } => {
                self.next + self.dice.exponential(Duration::from_ns(mean_interval_ns))
            }
            Arrival::Burst { size, interval_ns, gap_ns } => {
                self.in_burst = (self.in_burst + 1) % size;
                if self.in_burst == 0 {
                    self.burst_began += Duration::from_ns(interval_ns);
                }
                // A burst that lasts longer than its interval runs into the next, but never back in time.
                (self.burst_began + Duration::from_ns(gap_ns) * u64::from(self.in_burst)).max(self.next)
            }
            Arrival::BackToBack => now,
        };
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
    use crate::{Payload, Protocol, TcpTransport, TopicPattern, Transport};

    fn arrivals(arrival: Arrival, start_phase: StartPhase, messages: Option<u64>, client: u32) -> Arrivals {
        let publish = Publish {
            topic: TopicPattern("t".into()),
            topics: 1,
            qos: 0,
            retain: false,
            payload: Payload::Fixed { bytes: 64 },
            arrival,
            start_phase,
            messages,
        };
        let group = group(vec![publish]);
        of(&group, client).remove(0)
    }

    fn of(group: &Group, client: u32) -> Vec<Arrivals> {
        Arrivals::of(group, client, Seed(5), Instant::from_ns(1000), Instant::from_ns(2000))
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
            connects_to: 0,
            protocol: Protocol::Mqtt(serde_json::from_value(mqtt).unwrap()),
            transport: Transport::Tcp(TcpTransport { nodelay: true, tls: None, websocket: None }),
            reconnect: serde_json::from_value(reconnect).unwrap(),
            connect_over: Duration::ZERO,
            publications,
            subscriptions: Vec::new(),
            relay: None,
            late_after: None,
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
        let publish = |arrival| Publish {
            topic: TopicPattern("t".into()),
            topics: 1,
            qos: 0,
            retain: false,
            payload: Payload::Fixed { bytes: 64 },
            arrival,
            start_phase: StartPhase::Random,
            messages: None,
        };
        let poisson = publish(Arrival::Poisson { mean_interval_ns: 100 });
        let alone: Vec<_> = of(&group(vec![poisson.clone()]), 2).into_iter().map(all).collect();
        let beside: Vec<_> = of(&group(vec![poisson.clone(), poisson]), 2).into_iter().map(all).collect();
        assert_eq!((beside.len(), &beside[0]), (2, &alone[0]));
        assert_ne!(beside[0], beside[1]);
    }
}
