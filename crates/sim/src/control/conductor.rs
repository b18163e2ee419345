//! When a simulation goes on from one stage to the next: the run's conductor, and what may end a measurement before its
//! time: the mean latency known well enough, enough messages received, or so many outstanding that there is no mean.

use mqttlab_client::Books;
use mqttlab_plan::{Phases, SimPlan};
use mqttlab_run::{RunStage, RunStanding};
use mqttlab_units::{Duration, Instant};
use serde_json::{Value, json};

use crate::control::due_times::DueTimes;
use crate::control::steady_state::SteadyState;
use crate::ids::{ClientId, IdTable};

/// How the clients of a simulation stand.
struct SimStanding<'a, F> {
    books: &'a Books,
    clients: u32,
    wants_to_stop: bool,
    network_is_idle: F,
}

impl<F: Fn() -> bool> RunStanding for SimStanding<'_, F> {
    fn clients(&self) -> u32 {
        self.clients
    }

    fn gathered(&self) -> u32 {
        self.books.ready as u32 + self.books.failed
    }

    fn has_measured_enough(&self) -> bool {
        self.wants_to_stop
    }

    fn is_settled(&self) -> bool {
        self.books.is_settled()
    }

    fn is_gone(&self) -> bool {
        self.books.gone >= self.clients && (self.network_is_idle)()
    }
}

/// The conductor of a run.
pub(crate) struct SimConductor {
    stages: mqttlab_run::RunConductor,
    plan: SimPlan,
    steady: SteadyState,
    /// Why the measurement shall end before its time.
    stopped: Option<&'static str>,
    due_times: DueTimes,
    /// Deliveries to each client, as far as they are counted.
    received: IdTable<ClientId, u64>,
    /// Subscribers that have not received enough.
    unsatisfied: usize,
}

impl SimConductor {
    pub(crate) fn new(phases: Phases, plan: SimPlan, subscribers: usize, clients: usize) -> SimConductor {
        let counts = plan.stop.as_ref().is_some_and(|stop| stop.messages_per_subscriber.is_some());
        let due_times = DueTimes::new(clients, plan.stop.is_some());
        SimConductor {
            stages: mqttlab_run::RunConductor::new(phases, Instant::ZERO),
            plan,
            steady: SteadyState::default(),
            stopped: None,
            due_times,
            received: std::iter::repeat_n(0, if counts { clients } else { 0 }).collect(),
            unsatisfied: subscribers,
        }
    }

    /// Where the run is.
    pub(crate) fn stage(&self) -> RunStage {
        self.stages.stage()
    }

    /// The run's stages, to be asked when the present one ends, and how long its phase is.
    pub(crate) fn stages(&self) -> &mqttlab_run::RunConductor {
        &self.stages
    }

    /// Ends the present stage; the one that begins.
    pub(crate) fn next(&mut self, now: Instant) -> RunStage {
        self.stages.next(now)
    }

    /// When the measurement begins and ends, as far as that is known.
    pub(crate) fn measurement(&self) -> [Instant; 2] {
        let unknown = [Instant::ZERO, Instant::from_ns(u64::MAX)];
        self.stages.schedule().map_or(unknown, |schedule| [schedule.measure_from, schedule.measure_until])
    }

    /// A publisher's next message was due.
    pub(crate) fn offered(&mut self, publisher: ClientId, sequence: u32, intended: Instant) {
        self.due_times.add(publisher, sequence, intended);
    }

    /// Messages are asked for by [`due`](Self::due).
    pub(crate) fn remember_long(&mut self) {
        self.due_times.remember_long();
    }

    /// When a message was due, where that is still known.
    pub(crate) fn due(&self, publisher: ClientId, sequence: u32) -> Option<Instant> {
        self.due_times.get(publisher, sequence)
    }

    /// A message was delivered to a subscriber for the first time. Its latency, where it is known when it was due.
    pub(crate) fn delivered(
        &mut self,
        now: Instant,
        subscriber: ClientId,
        (publisher, sequence): (ClientId, u32),
    ) -> Option<Duration> {
        self.count(subscriber);
        let intended = self.due_times.get(publisher, sequence)?;
        let latency = now.since(intended);
        self.measure(intended, latency);
        Some(latency)
    }

    /// A latency. It counts when its message was due in the measurement.
    fn measure(&mut self, intended: Instant, latency: Duration) {
        if self.stage() != RunStage::Measurement || intended < self.measurement()[0] {
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
        let Some(wanted) = wanted.filter(|_| self.stage() == RunStage::Measurement) else { return };
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

    /// A backlog may be too long for a mean.
    fn weigh(&mut self, books: &Books) {
        let bound = self.plan.stop.as_ref().and_then(|stop| stop.deliveries_outstanding);
        let Some(bound) = bound.filter(|_| self.stage() == RunStage::Measurement) else { return };
        if books.expected.saturating_sub(books.delivered) >= bound {
            self.stopped = Some(BACKLOG);
        }
    }

    /// Whether the present phase need not last as long as it may. `network_is_idle` is asked only where it decides.
    pub(crate) fn is_phase_over(
        &mut self,
        now: Instant,
        books: &Books,
        clients: usize,
        network_is_idle: impl Fn() -> bool,
    ) -> bool {
        self.weigh(books);
        let wants_to_stop = self.stopped.is_some();
        let clients = clients as u32;
        self.stages.is_over_early(now, &SimStanding { books, clients, wants_to_stop, network_is_idle })
    }

    /// Whether the run is over, and clients disconnect.
    pub(crate) fn is_leaving(&self) -> bool {
        matches!(self.stage(), RunStage::Disconnect | RunStage::Over)
    }

    /// Whether the measurement is to end before its time.
    pub(crate) fn wants_to_stop(&self) -> bool {
        self.stage() == RunStage::Measurement && self.stopped.is_some()
    }

    /// When the steady state began, where that is to be found out.
    pub(crate) fn steady_from(&self) -> Option<Instant> {
        if !self.plan.detect_transient {
            return None;
        }
        self.steady.estimate(true)?.steady_from
    }

    /// For the recording.
    pub(crate) fn facts(&self) -> Value {
        let estimate = self.steady.estimate(self.plan.detect_transient);
        let [measure_from, measure_until] = self.measurement();
        json!({
            "publish_from_ns": self.stages.schedule().map(|schedule| schedule.publish_from),
            "measure_from_ns": measure_from,
            "measure_until_ns": measure_until,
            "stopped": self.stopped,
            "mean_latency_ns": estimate.map(|estimate| estimate.mean),
            "mean_latency_relative_accuracy":
                estimate.map(|estimate| estimate.relative_accuracy).filter(|accuracy| accuracy.is_finite()),
            "steady_from_ns": estimate.and_then(|estimate| estimate.steady_from),
        })
    }
}

const BACKLOG: &str = "as many deliveries are outstanding as are to end the measurement";

#[cfg(test)]
mod tests {
    use mqttlab_plan::StopRule;

    use super::*;

    const NEVER: StopRule =
        StopRule { relative_accuracy_ppm: None, messages_per_subscriber: None, deliveries_outstanding: None };

    fn conductor(stop: Option<StopRule>) -> SimConductor {
        let [connect_timeout, warm_up, duration, cool_down] = [5, 1, 10, 3].map(Duration::from_s);
        let phases = Phases { connect_timeout, warm_up, duration, cool_down };
        SimConductor::new(
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

    /// Goes on to a stage, a second each.
    fn go_to(conductor: &mut SimConductor, stage: RunStage) -> Instant {
        let mut now = Instant::ZERO;
        while conductor.stage() != stage {
            conductor.next(now);
            now += Duration::from_s(1);
        }
        now
    }

    #[test]
    fn connecting_is_over_when_every_client_is_ready_or_has_given_up() {
        let mut conductor = conductor(None);
        let mut over = |ready, failed| {
            let books = Books { ready, failed, ..Books::default() };
            conductor.is_phase_over(at(1), &books, 3, || unreachable!("the network does not matter yet"))
        };
        assert_eq!([over(3, 0), over(2, 1), over(2, 0)], [true, true, false]);
    }

    #[test]
    fn the_run_waits_for_what_is_outstanding_and_then_for_the_network() {
        let mut conductor = conductor(None);
        go_to(&mut conductor, RunStage::CoolDown);
        let settled = Books { expected: 4, delivered: 4, gone: 3, ..Books::default() };
        let owing = Books { unacknowledged: 1, ..settled };
        let until = conductor.measurement()[1];
        let late = until + Duration::from_s(1);
        let over =
            |conductor: &mut SimConductor, now, books, idle| conductor.is_phase_over(now, books, 3, || idle);
        assert!(over(&mut conductor, late, &settled, false) && !over(&mut conductor, late, &owing, false));
        assert!(!over(&mut conductor, until, &settled, false), "some may be on their way");
        go_to(&mut conductor, RunStage::Disconnect);
        assert!(over(&mut conductor, late, &settled, true) && !over(&mut conductor, late, &settled, false));
    }

    #[test]
    fn a_measurement_ends_when_every_subscriber_has_enough() {
        let rule = StopRule { messages_per_subscriber: Some(2), ..NEVER };
        let mut conductor = conductor(Some(rule));
        go_to(&mut conductor, RunStage::Measurement);
        let (publisher, [one, other]) = (ClientId(0), [ClientId(1), ClientId(2)]);
        conductor.offered(publisher, 0, at(2));
        for subscriber in [one, one, one, other] {
            let latency = conductor.delivered(at(3), subscriber, (publisher, 0));
            assert_eq!(latency, Some(Duration::from_s(1)));
        }
        assert!(!conductor.wants_to_stop(), "one of them has received three, the other one");
        conductor.delivered(at(3), other, (publisher, 0));
        assert!(conductor.wants_to_stop());
    }

    #[test]
    fn a_measurement_ends_when_a_backlog_is_as_long_as_it_may_be() {
        let mut conductor = conductor(Some(StopRule { deliveries_outstanding: Some(100), ..NEVER }));
        let owing = |delivered| Books { expected: 1_000, delivered, ready: 3, ..Books::default() };
        let over = |conductor: &mut SimConductor, books| conductor.is_phase_over(at(3), &books, 3, || false);
        go_to(&mut conductor, RunStage::WarmUp);
        assert!(!over(&mut conductor, owing(0)), "what is not measured may wait");
        go_to(&mut conductor, RunStage::Measurement);
        assert!(!over(&mut conductor, owing(901)) && !conductor.wants_to_stop());
        assert!(over(&mut conductor, owing(900)) && conductor.wants_to_stop());
    }
}
