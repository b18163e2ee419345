//! The run's phases, and what ends them.
//!
//! ```text
//!   connect ──► (notice) ──► warm-up ──► measurement ──► cool-down ──► farewell
//!     all ready, or its time is over        │ time over, mean known,     │ nothing outstanding,
//!                                           │ or enough messages         │ or time over
//! ```

use mqttlab_plan::{Phases, Plan, SimPlan};
use mqttlab_units::{Duration, Instant};
use serde_json::{Value, json};

use crate::steady::Steady;

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Connect,
    Notice,
    WarmUp,
    Measurement,
    CoolDown,
    Farewell,
    Over,
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
    /// Deliveries to each client, as far as they are counted.
    received: Vec<u64>,
    /// Subscribers that have not received enough.
    hungry: usize,
    /// Latencies since they were last asked for.
    recent: Vec<u64>,
}

impl Conductor {
    pub(crate) fn new(plan: &Plan, subscribers: usize, clients: usize) -> Conductor {
        let counts = plan.sim.stop.as_ref().is_some_and(|stop| stop.messages_per_subscriber.is_some());
        Conductor {
            phase: Phase::Connect,
            publish_from: None,
            measure_from: Instant::ZERO,
            measure_until: Instant::from_ns(u64::MAX),
            phases: plan.phases,
            plan: plan.sim.clone(),
            steady: Steady::default(),
            stopped: None,
            received: vec![0; if counts { clients } else { 0 }],
            hungry: subscribers,
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

    /// A message was delivered. It counts when it was due in the measurement.
    pub(crate) fn measure(&mut self, intended: Instant, latency: Duration) {
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

    /// A client has received a message.
    pub(crate) fn count(&mut self, subscriber: u32) {
        let wanted = self.plan.stop.as_ref().and_then(|stop| stop.messages_per_subscriber);
        let Some(wanted) = wanted.filter(|_| self.phase == Phase::Measurement) else { return };
        let received = &mut self.received[subscriber as usize];
        *received += 1;
        if *received == wanted {
            self.hungry -= 1;
            if self.hungry == 0 {
                self.stopped =
                    Some("every subscriber has received the number of messages that was asked for");
            }
        }
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
            Phase::Farewell | Phase::Over => began + FAREWELL,
        }
    }

    /// Until when messages under way are waited for even if none is outstanding.
    pub(crate) fn settled_from(&self) -> Instant {
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

/// From when everybody is ready to when they publish; as in a live run, where it takes time to tell them.
const NOTICE: Duration = Duration::from_ms(200);
/// Messages due just before the end may still be on their way into their sessions.
const SETTLE: Duration = Duration::from_ms(100);
/// For disconnecting in order.
const FAREWELL: Duration = Duration::from_ms(500);
/// Latencies that are kept for the live figures.
const RECENT_MAX: usize = 65_536;
