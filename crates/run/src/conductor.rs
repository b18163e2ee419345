//! The phases of a run, and what ends each.
//!
//! ```text
//!   connect ──► notice ──► warm-up ──► measurement ──► cool-down ──► disconnect ──► over
//!     all ready,                          told enough,   nothing         all gone,
//!     or its time over                    or time over   outstanding,    or time over
//!                                                        or time over
//! ```
//!
//! A machine without a clock: asked at [`RunConductor::deadline`], or whenever something may have changed, whether the present
//! stage [is over](RunConductor::is_over), and told to [go on](RunConductor::next). When clients publish is fixed when they have
//! connected, so that all of them know it before it begins.

use mqttlab_plan::{Phases, PublishingTime};
use mqttlab_units::{Duration, Instant};

use crate::RunPhase;

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStage {
    /// Clients connect and subscribe.
    Connect,
    /// They are told when to publish.
    Notice,
    /// They publish; not counted.
    WarmUp,
    /// They publish; counted.
    Measurement,
    /// What is under way arrives.
    CoolDown,
    /// Clients disconnect in order.
    Disconnect,
    /// Nothing is left to do.
    Over,
}

/// When the clients publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Publishing begins: the instant that start phases count from.
    pub publish_from: Instant,
    /// The warm-up is over: messages intended from here on are measured.
    pub measure_from: Instant,
    /// Publishing ends: nothing is offered whose intended time is this or later.
    pub measure_until: Instant,
}

/// How a run's clients stand, asked only where it decides.
pub trait RunStanding {
    /// How many clients there are.
    fn clients(&self) -> u32;

    /// Clients that are connected and subscribed, or have given up.
    fn gathered(&self) -> u32;

    /// Whether the measurement has found what it was to find.
    fn has_measured_enough(&self) -> bool;

    /// Whether everything that was due has been offered, and has arrived and been acknowledged.
    fn is_settled(&self) -> bool;

    /// Whether all clients have disconnected, and nothing is under way.
    fn is_gone(&self) -> bool;
}

/// The phases of one run.
#[derive(Clone, Debug)]
pub struct RunConductor {
    phases: Phases,
    stage: RunStage,
    began: Instant,
    schedule: Option<Schedule>,
}

impl RunStage {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            RunStage::Notice => "notice",
            RunStage::Disconnect => "disconnect",
            RunStage::Over => "over",
            RunStage::Connect | RunStage::WarmUp | RunStage::Measurement | RunStage::CoolDown => {
                self.phase().map_or("", RunPhase::name)
            }
        }
    }

    /// The phase that begins with it, for observers and the recording; a stage without one belongs to the phase before.
    pub fn phase(self) -> Option<RunPhase> {
        match self {
            RunStage::Connect => Some(RunPhase::Connect),
            RunStage::WarmUp => Some(RunPhase::WarmUp),
            RunStage::Measurement => Some(RunPhase::Measurement),
            RunStage::CoolDown => Some(RunPhase::CoolDown),
            RunStage::Notice | RunStage::Disconnect | RunStage::Over => None,
        }
    }
}

impl RunConductor {
    /// Of a run whose clients begin to connect.
    pub fn new(phases: Phases, now: Instant) -> RunConductor {
        RunConductor { phases, stage: RunStage::Connect, began: now, schedule: None }
    }

    /// Where the run is.
    pub fn stage(&self) -> RunStage {
        self.stage
    }

    /// When clients publish; known from the notice on.
    pub fn schedule(&self) -> Option<Schedule> {
        self.schedule
    }

    /// When the present stage ends at the latest; `None` once the run is over.
    pub fn deadline(&self) -> Option<Instant> {
        let schedule = || self.schedule.expect("the schedule is fixed when the clients have connected");
        match self.stage {
            RunStage::Connect => Some(self.began + self.phases.connect_timeout),
            RunStage::Notice => Some(schedule().publish_from),
            RunStage::WarmUp => Some(schedule().measure_from),
            RunStage::Measurement => Some(schedule().measure_until),
            RunStage::CoolDown => Some(schedule().measure_until + self.phases.cool_down),
            RunStage::Disconnect => Some(self.began + FAREWELL),
            RunStage::Over => None,
        }
    }

    /// How long the present stage's phase takes at most, as planned; zero for a stage without a phase.
    pub fn length(&self) -> Duration {
        match self.stage {
            RunStage::Connect => self.phases.connect_timeout,
            RunStage::WarmUp => self.phases.warm_up,
            RunStage::Measurement => self.phases.duration,
            RunStage::CoolDown => self.phases.cool_down,
            RunStage::Notice | RunStage::Disconnect | RunStage::Over => Duration::ZERO,
        }
    }

    /// Whether the present stage is over: its time is, or it need not last as long.
    pub fn is_over(&self, now: Instant, standing: &impl RunStanding) -> bool {
        self.deadline().is_some_and(|deadline| now >= deadline) || self.is_over_early(now, standing)
    }

    /// Whether the present stage need not last as long as it may.
    pub fn is_over_early(&self, now: Instant, standing: &impl RunStanding) -> bool {
        match self.stage {
            RunStage::Connect => standing.gathered() >= standing.clients(),
            RunStage::Measurement => standing.has_measured_enough(),
            // Messages intended just before the end may still be on their way into their sessions.
            RunStage::CoolDown => {
                let ended = self.schedule.map_or(Instant::ZERO, |schedule| schedule.measure_until);
                now >= ended + SETTLE && standing.is_settled()
            }
            RunStage::Disconnect => standing.is_gone(),
            RunStage::Notice | RunStage::WarmUp | RunStage::Over => false,
        }
    }

    /// Ends the present stage; the one that begins. A measurement that ends before its time moves its end in the
    /// schedule: what is due later is not offered.
    pub fn next(&mut self, now: Instant) -> RunStage {
        self.stage = match self.stage {
            RunStage::Connect => {
                self.schedule = Some(Schedule::after(now + NOTICE, &self.phases));
                RunStage::Notice
            }
            RunStage::Notice => RunStage::WarmUp,
            RunStage::WarmUp => RunStage::Measurement,
            RunStage::Measurement => {
                if let Some(schedule) = &mut self.schedule {
                    schedule.measure_until = schedule.measure_until.min(now);
                }
                RunStage::CoolDown
            }
            RunStage::CoolDown => RunStage::Disconnect,
            RunStage::Disconnect | RunStage::Over => RunStage::Over,
        };
        self.began = now;
        self.stage
    }

    /// Takes a schedule that somebody else has made, who conducts the whole of which this is a part. At the notice.
    pub fn follow(&mut self, schedule: Schedule) {
        self.schedule = Some(schedule);
    }

    /// What is to be said of clients that had not connected when publishing began.
    pub fn warning_of_missing(&self, ready: u32, clients: u32) -> Option<String> {
        (ready < clients).then(|| {
            format!(
                "{} of {clients} clients had not connected and subscribed when publishing began \
                 (phases.connect_timeout is {})",
                clients - ready,
                self.phases.connect_timeout
            )
        })
    }
}

impl Schedule {
    /// When messages are due.
    pub fn publishing(&self) -> PublishingTime {
        PublishingTime {
            from: self.publish_from,
            measured_from: self.measure_from,
            until: self.measure_until,
        }
    }

    /// Publishing begins then.
    fn after(publish_from: Instant, phases: &Phases) -> Schedule {
        let measure_from = publish_from + phases.warm_up;
        Schedule { publish_from, measure_from, measure_until: measure_from + phases.duration }
    }
}

/// From when everybody is ready to when they publish: it takes time to tell them.
pub const NOTICE: Duration = Duration::from_ms(200);
/// From the end of the measurement, how long a run is not settled whatever its counters say.
pub const SETTLE: Duration = Duration::from_ms(100);
/// How long clients may take to disconnect in order.
pub const FAREWELL: Duration = Duration::from_ms(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Clients {
        gathered: u32,
        measured: bool,
        settled: bool,
        gone: bool,
    }

    impl RunStanding for Clients {
        fn clients(&self) -> u32 {
            3
        }

        fn gathered(&self) -> u32 {
            self.gathered
        }

        fn has_measured_enough(&self) -> bool {
            self.measured
        }

        fn is_settled(&self) -> bool {
            self.settled
        }

        fn is_gone(&self) -> bool {
            self.gone
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    fn conductor() -> RunConductor {
        let [connect_timeout, warm_up, duration, cool_down] =
            [5_000, 100, 1_000, 2_000].map(Duration::from_ms);
        RunConductor::new(Phases { connect_timeout, warm_up, duration, cool_down }, at(10))
    }

    #[test]
    fn every_stage_ends_when_its_time_is_over() {
        let (mut conductor, idle) = (conductor(), Clients::default());
        let mut told = Vec::new();
        while let Some(deadline) = conductor.deadline() {
            let before = Instant::from_ns(deadline.as_ns() - 1);
            assert!(!conductor.is_over(before, &idle) && conductor.is_over(deadline, &idle), "{conductor:?}");
            told.push((conductor.stage(), deadline));
            conductor.next(deadline);
        }
        let expected = [
            (RunStage::Connect, at(5_010)),
            (RunStage::Notice, at(5_210)),
            (RunStage::WarmUp, at(5_310)),
            (RunStage::Measurement, at(6_310)),
            (RunStage::CoolDown, at(8_310)),
            (RunStage::Disconnect, at(8_810)),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn stages_end_early_when_nothing_is_left_to_wait_for() {
        let mut conductor = conductor();
        let mut clients = Clients { gathered: 2, ..Clients::default() };
        assert!(!conductor.is_over(at(20), &clients), "one is missing");
        clients.gathered = 3;
        assert!(conductor.is_over(at(20), &clients));
        assert_eq!(conductor.next(at(20)), RunStage::Notice);
        let schedule = Schedule { publish_from: at(220), measure_from: at(320), measure_until: at(1_320) };
        assert_eq!(conductor.schedule(), Some(schedule));
        assert!(!conductor.is_over(at(219), &clients), "a notice is never cut short");
        conductor.next(at(220));
        conductor.next(at(320));
        clients.measured = true;
        assert!(conductor.is_over(at(800), &clients));
        assert_eq!(conductor.next(at(800)), RunStage::CoolDown);
        assert_eq!(conductor.schedule().unwrap().measure_until, at(800), "what is due later is not offered");
        clients.settled = true;
        assert!(!conductor.is_over(at(899), &clients), "messages may be on their way into their sessions");
        assert!(conductor.is_over(at(900), &clients));
        assert_eq!(conductor.next(at(900)), RunStage::Disconnect);
        clients.gone = true;
        assert!(conductor.is_over(at(901), &clients));
        assert_eq!(conductor.next(at(901)), RunStage::Over);
        assert!(!conductor.is_over(at(100_000), &clients), "what is over does not end again");
    }

    #[test]
    fn a_measurement_that_takes_its_time_keeps_its_end() {
        let mut conductor = conductor();
        for now in [at(20), at(220), at(320)] {
            conductor.next(now);
        }
        // A real clock comes a little late.
        conductor.next(at(1_400));
        assert_eq!(conductor.schedule().unwrap().measure_until, at(1_320));
        assert_eq!((conductor.deadline(), conductor.length()), (Some(at(3_320)), Duration::from_s(2)));
    }

    #[test]
    fn who_follows_keeps_the_others_times() {
        let mut conductor = conductor();
        conductor.next(at(20));
        let schedule = Schedule { publish_from: at(400), measure_from: at(500), measure_until: at(900) };
        conductor.follow(schedule);
        assert_eq!((conductor.schedule(), conductor.deadline()), (Some(schedule), Some(at(400))));
        conductor.next(at(400));
        conductor.next(at(500));
        assert_eq!(conductor.deadline(), Some(at(900)));
    }

    #[test]
    fn missing_clients_are_warned_of() {
        assert_eq!(conductor().warning_of_missing(3, 3), None);
        let warning = conductor().warning_of_missing(1, 3).unwrap();
        assert!(
            warning.starts_with("2 of 3 clients") && warning.ends_with("(phases.connect_timeout is 5 s)"),
            "{warning}"
        );
    }
}
