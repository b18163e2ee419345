//! The run's phases, and what ends them.
//!
//! ```text
//!   connect ──► (notice) ──► warm-up ──► measurement ──► cool-down ──► disconnect
//!     all ready, or its time is over        │ time over, mean known,     │ nothing outstanding,
//!                                           │ or enough messages         │ or time over
//! ```

use mqttlab_plan::{Phases, SimPlan};
use mqttlab_units::{Duration, Instant};
use serde_json::{Value, json};

use crate::due_times::DueTimes;
use crate::ids::{ClientId, Table};
use crate::steady::Steady;
use mqttlab_client::Books;

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Connect,
    Notice,
    WarmUp,
    Measurement,
    CoolDown,
    /// Clients disconnect in order.
    Disconnect,
    Over,
}

impl Phase {
    /// In a word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Phase::Notice => "notice",
            Phase::Disconnect => "disconnect",
            Phase::Over => "over",
            _ => self.name().map_or("", |(name, _)| name),
        }
    }

    /// As the recording and the progress name it, where they do.
    pub(crate) fn name(self) -> Option<(&'static str, mqttlab_plan::Phase)> {
        match self {
            Phase::Connect => Some(("connect", mqttlab_plan::Phase::Connect)),
            Phase::WarmUp => Some(("warm_up", mqttlab_plan::Phase::WarmUp)),
            Phase::Measurement => Some(("measurement", mqttlab_plan::Phase::Measurement)),
            Phase::CoolDown => Some(("cool_down", mqttlab_plan::Phase::CoolDown)),
            Phase::Notice | Phase::Disconnect | Phase::Over => None,
        }
    }
}

/// The conductor of a run.
pub(crate) struct Conductor {
    pub(crate) phase: Phase,
    pub(crate) publish_from: Option<Instant>,
    pub(crate) measure_from: Instant,
    pub(crate) measure_until: Instant,
    phases: Phases,
    plan: SimPlan,
    steady: Steady,
    /// Why the measurement shall end before its time.
    stopped: Option<&'static str>,
    due_times: DueTimes,
    /// Deliveries to each client, as far as they are counted.
    received: Table<ClientId, u64>,
    /// Subscribers that have not received enough.
    unsatisfied: usize,
    /// Latencies since they were last asked for.
    recent: Vec<u64>,
}

impl Conductor {
    pub(crate) fn new(phases: Phases, plan: SimPlan, subscribers: usize, clients: usize) -> Conductor {
        let counts = plan.stop.as_ref().is_some_and(|stop| stop.messages_per_subscriber.is_some());
        let due_times = DueTimes::new(clients, plan.stop.is_some());
        Conductor {
            phase: Phase::Connect,
            publish_from: None,
            measure_from: Instant::ZERO,
            measure_until: Instant::from_ns(u64::MAX),
            phases,
            plan,
            steady: Steady::default(),
            stopped: None,
            due_times,
            received: std::iter::repeat_n(0, if counts { clients } else { 0 }).collect(),
            unsatisfied: subscribers,
            recent: Vec::new(),
        }
    }

    /// The clients are there, or their time is over: fixes when to publish.
    pub(crate) fn announce(&mut self, now: Instant) -> Instant {
        let publish_from = now + NOTICE;
        self.publish_from = Some(publish_from);
        self.measure_from = publish_from + self.phases.warm_up;
        self.measure_until = self.measure_from + self.phases.duration;
        self.phase = Phase::Notice;
        publish_from
    }

    /// A publisher's next message was due.
    pub(crate) fn offered(&mut self, publisher: ClientId, sequence: u32, intended: Instant) {
        self.due_times.add(publisher, sequence, intended);
    }

    /// A message was delivered to a subscriber for the first time.
    pub(crate) fn delivered(
        &mut self,
        now: Instant,
        subscriber: ClientId,
        (publisher, sequence): (ClientId, u32),
    ) {
        self.count(subscriber);
        if let Some(intended) = self.due_times.get(publisher, sequence) {
            self.measure(intended, now.since(intended));
        }
    }

    /// A latency. It counts when its message was due in the measurement.
    fn measure(&mut self, intended: Instant, latency: Duration) {
        if self.recent.len() < RECENT_MAX {
            self.recent.push(latency.as_ns());
        }
        if self.phase != Phase::Measurement || intended < self.measure_from {
            return;
        }
        let full = self.steady.add(intended, latency.as_ns() as f64);
        let wanted = self.plan.stop.as_ref().and_then(|stop| stop.relative_accuracy_ppm);
        if let Some(ppm) = wanted.filter(|_| full)
            && let Some(estimate) = self.steady.estimate(self.plan.detect_transient)
            && estimate.relative_accuracy * 1e6 <= f64::from(ppm)
        {
            self.stopped = Some("the mean latency has the accuracy that was asked for");
        }
    }

    fn count(&mut self, subscriber: ClientId) {
        let wanted = self.plan.stop.as_ref().and_then(|stop| stop.messages_per_subscriber);
        let Some(wanted) = wanted.filter(|_| self.phase == Phase::Measurement) else { return };
        let received = &mut self.received[subscriber];
        *received += 1;
        if *received == wanted {
            self.unsatisfied -= 1;
            if self.unsatisfied == 0 {
                self.stopped =
                    Some("every subscriber has received the number of messages that was asked for");
            }
        }
    }

    /// Whether the present phase need not last as long as it may. `network_is_idle` is asked only where it decides.
    pub(crate) fn is_phase_over(
        &self,
        now: Instant,
        books: &Books,
        clients: usize,
        network_is_idle: impl FnOnce() -> bool,
    ) -> bool {
        match self.phase {
            Phase::Connect => books.ready as u32 + books.failed >= clients as u32,
            Phase::Measurement => self.wants_to_stop(),
            Phase::CoolDown => now >= self.settled_from() && books.is_settled(),
            Phase::Disconnect => books.gone as usize >= clients && network_is_idle(),
            Phase::Notice | Phase::WarmUp | Phase::Over => false,
        }
    }

    /// Whether the run is over, and clients disconnect.
    pub(crate) fn is_leaving(&self) -> bool {
        matches!(self.phase, Phase::Disconnect | Phase::Over)
    }

    /// Whether the measurement is to end before its time.
    pub(crate) fn wants_to_stop(&self) -> bool {
        self.phase == Phase::Measurement && self.stopped.is_some()
    }

    /// When the present phase ends at the latest.
    pub(crate) fn phase_ends(&self, began: Instant) -> Instant {
        match self.phase {
            Phase::Connect => began + self.phases.connect_timeout,
            Phase::Notice => self.publish_from.unwrap_or(began),
            Phase::WarmUp => self.measure_from,
            Phase::Measurement => self.measure_until,
            Phase::CoolDown => self.measure_until + self.phases.cool_down,
            Phase::Disconnect | Phase::Over => began + DISCONNECT,
        }
    }

    /// Until when messages under way are waited for even if none is outstanding.
    fn settled_from(&self) -> Instant {
        self.measure_until + SETTLE
    }

    /// When the steady state began, where that is to be found out.
    pub(crate) fn steady_from(&self) -> Option<Instant> {
        if !self.plan.detect_transient {
            return None;
        }
        self.steady.estimate(true)?.steady_from
    }

    /// Median and 99th percentile of the latencies since the last time, in nanoseconds.
    pub(crate) fn take_recent(&mut self) -> [Option<u64>; 2] {
        self.recent.sort_unstable();
        let at = |percent: usize| self.recent.get(self.recent.len() * percent / 100).copied();
        let percentiles = [at(50), at(99)];
        self.recent.clear();
        percentiles
    }

    /// For the recording.
    pub(crate) fn facts(&self) -> Value {
        let estimate = self.steady.estimate(self.plan.detect_transient);
        json!({
            "publish_from_ns": self.publish_from,
            "measure_from_ns": self.measure_from,
            "measure_until_ns": self.measure_until,
            "stopped": self.stopped,
            "mean_latency_ns": estimate.map(|estimate| estimate.mean),
            "mean_latency_relative_accuracy":
                estimate.map(|estimate| estimate.relative_accuracy).filter(|accuracy| accuracy.is_finite()),
            "steady_from_ns": estimate.and_then(|estimate| estimate.steady_from),
        })
    }
}

/// From when all clients are ready to when they publish; as in a live run, where it takes time to tell them.
const NOTICE: Duration = Duration::from_ms(200);
/// Messages due just before the end may still be on their way into their sessions.
const SETTLE: Duration = Duration::from_ms(100);
/// For disconnecting in order.
const DISCONNECT: Duration = Duration::from_ms(500);
/// Latencies that are kept for the live figures.
const RECENT_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use mqttlab_plan::StopRule;

    use super::*;

    fn conductor(stop: Option<StopRule>) -> Conductor {
        let [connect_timeout, warm_up, duration, cool_down] = [5, 1, 10, 3].map(Duration::from_s);
        let phases = Phases { connect_timeout, warm_up, duration, cool_down };
        Conductor::new(
            phases,
            SimPlan {
                stop,
                detect_transient: false,
                client_wake_up: Duration::ZERO,
                tcp_stacks: std::collections::BTreeMap::new(),
            },
            2,
            3,
        )
    }

    fn at(s: u64) -> Instant {
        Instant::ZERO + Duration::from_s(s)
    }

    #[test]
    fn publishing_is_announced_and_the_measurement_follows_the_warm_up() {
        let mut conductor = conductor(None);
        assert_eq!(conductor.phase_ends(Instant::ZERO), at(5));
        let from = conductor.announce(at(2));
        assert_eq!(from, at(2) + NOTICE);
        assert_eq!(conductor.measure_until.since(from), Duration::from_s(11));
        conductor.phase = Phase::CoolDown;
        assert_eq!(conductor.phase_ends(at(20)), conductor.measure_until + Duration::from_s(3));
    }

    #[test]
    fn connecting_is_over_when_every_client_is_ready_or_has_given_up() {
        let conductor = conductor(None);
        let over = |ready, failed| {
            let tally = Books { ready, failed, ..Books::default() };
            conductor.is_phase_over(at(1), &tally, 3, || unreachable!("the network does not matter yet"))
        };
        assert_eq!([over(3, 0), over(2, 1), over(2, 0)], [true, true, false]);
    }

    #[test]
    fn the_run_waits_for_what_is_outstanding_and_then_for_the_network() {
        let mut conductor = conductor(None);
        conductor.announce(Instant::ZERO);
        conductor.phase = Phase::CoolDown;
        let settled = Books { expected: 4, delivered: 4, gone: 3, ..Books::default() };
        let owing = Books { unacknowledged: 1, ..settled };
        let late = conductor.measure_until + Duration::from_s(1);
        let over = |conductor: &Conductor, now, tally, idle| conductor.is_phase_over(now, tally, 3, || idle);
        assert!(over(&conductor, late, &settled, false) && !over(&conductor, late, &owing, false));
        assert!(!over(&conductor, conductor.measure_until, &settled, false), "some may be on their way");
        conductor.phase = Phase::Disconnect;
        assert!(over(&conductor, late, &settled, true) && !over(&conductor, late, &settled, false));
    }

    #[test]
    fn a_measurement_ends_when_every_subscriber_has_enough() {
        let rule = StopRule { relative_accuracy_ppm: None, messages_per_subscriber: Some(2) };
        let mut conductor = conductor(Some(rule));
        conductor.announce(Instant::ZERO);
        conductor.phase = Phase::Measurement;
        let (publisher, [one, other]) = (ClientId(0), [ClientId(1), ClientId(2)]);
        conductor.offered(publisher, 0, at(2));
        for subscriber in [one, one, one, other] {
            conductor.delivered(at(3), subscriber, (publisher, 0));
        }
        assert!(!conductor.wants_to_stop(), "one of them has received three, the other one");
        conductor.delivered(at(3), other, (publisher, 0));
        assert!(conductor.wants_to_stop());
        assert_eq!(conductor.take_recent(), [Some(1_000_000_000); 2]);
    }
}
