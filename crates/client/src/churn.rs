//! When a client comes and goes, where the plan has it do so all the time.
//!
//! ```text
//!             leaves                     comes                    accepted
//!   Here ──────────────► Away ─────────────────────► Coming ────────────────► Here
//!     hold, or drawn with         always as long        └── leaves ──► Away
//!     this mean
//! ```
//!
//! Clients leave and come at instants that follow from the plan and the seed alone, so that a slow server is asked as often as a
//! fast one. Nothing is due while a client is away, and until its CONNACK: its program does not run. What was put into its
//! session before it left stays there.
//!
//! What it does not know: connections. Its owner disconnects and comes back as [`Churning::poll`] says.

use mqttlab_plan::{Churn, HoldLaw};
use mqttlab_units::{Dice, Duration, Instant};

/// Where a client that comes and goes is.
pub(crate) struct Churning {
    plan: Churn,
    stage: Stage,
    /// Nobody leaves from then on.
    until: Instant,
    dice: Dice,
}

#[derive(Clone, Copy)]
enum Stage {
    Here { leaves: Instant },
    Coming { leaves: Instant },
    Away { comes: Instant },
}

/// What a client is to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Leave,
    Come,
}

impl Churning {
    /// Of a client that is there and leaves at `leaves` for the first time.
    pub(crate) fn new(plan: Churn, leaves: Instant, until: Instant, dice: Dice) -> Churning {
        Churning { plan, stage: Stage::Here { leaves }, until, dice }
    }

    /// When the client leaves or comes next; a peek.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Here { leaves } | Stage::Coming { leaves } => (leaves < self.until).then_some(leaves),
            Stage::Away { comes } => Some(comes),
        }
    }

    /// Whether the client's program runs at an instant to come, so that a message can be due then.
    pub(crate) fn is_running_at(&self, at: Instant) -> bool {
        match self.stage {
            Stage::Here { leaves } => leaves >= self.until || at < leaves,
            Stage::Coming { .. } | Stage::Away { .. } => false,
        }
    }

    /// Whether the client has come and was not accepted yet.
    pub(crate) fn is_coming(&self) -> bool {
        matches!(self.stage, Stage::Coming { .. })
    }

    /// The other side has accepted the client.
    pub(crate) fn accepted(&mut self) {
        if let Stage::Coming { leaves } = self.stage {
            self.stage = Stage::Here { leaves };
        }
    }

    /// What the client does by now, whose first message that is not offered yet is due at `publishes`: that is offered first.
    pub(crate) fn poll(&mut self, now: Instant, publishes: Option<Instant>) -> Option<Due> {
        let at = self.next_deadline().filter(|at| *at <= now)?;
        match self.stage {
            Stage::Here { .. } if publishes.is_some_and(|due| due < at) => None,
            Stage::Here { .. } | Stage::Coming { .. } => {
                self.stage = Stage::Away { comes: at + self.plan.away };
                Some(Due::Leave)
            }
            Stage::Away { .. } => {
                self.stage = Stage::Coming { leaves: at + self.hold() };
                Some(Due::Come)
            }
        }
    }

    /// How long it stays this time.
    fn hold(&mut self) -> Duration {
        match self.plan.law {
            HoldLaw::Constant => self.plan.hold,
            // A client that leaves as it comes would never have been there.
            HoldLaw::Exponential => self.dice.exponential(self.plan.hold).max(HOLD_MIN),
        }
    }
}

const HOLD_MIN: Duration = Duration::from_ms(1);

#[cfg(test)]
mod tests {
    use mqttlab_units::Seed;

    use super::*;

    fn holds(law: HoldLaw, seed: u64) -> Vec<Duration> {
        let plan = Churn { hold: Duration::from_s(1), law, away: Duration::from_s(1) };
        let mut churning = Churning::new(plan, Instant::ZERO, Instant::ZERO, Seed(seed).dice());
        (0..2_000).map(|_| churning.hold()).collect()
    }

    #[test]
    fn times_of_stay_have_their_mean_and_are_the_same_for_a_seed() {
        assert!(holds(HoldLaw::Constant, 1).iter().all(|hold| *hold == Duration::from_s(1)));
        let drawn = holds(HoldLaw::Exponential, 1);
        assert_eq!(drawn, holds(HoldLaw::Exponential, 1));
        assert_ne!(drawn, holds(HoldLaw::Exponential, 2));
        // Four standard errors of an exponential distribution, and of the share above its mean, with n = 2,000.
        let mean = drawn.iter().map(|hold| hold.as_ns() as f64).sum::<f64>() / 2e12;
        assert!((mean - 1.0).abs() < 0.09, "{mean}");
        let above = drawn.iter().filter(|hold| **hold > Duration::from_s(1)).count() as f64 / 2e3;
        assert!((above - (-1.0_f64).exp()).abs() < 0.044, "{above}");
    }

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    /// Here for 100 ms and away for 50 ms, from 100 ms to 1 s.
    fn churning() -> Churning {
        let plan =
            Churn { hold: Duration::from_ms(100), law: HoldLaw::Constant, away: Duration::from_ms(50) };
        Churning::new(plan, ms(100), ms(1_000), Seed(1).dice())
    }

    #[test]
    fn who_is_asked_late_comes_and_goes_at_the_instants_of_the_plan() {
        let mut churning = churning();
        assert_eq!((churning.poll(ms(99), None), churning.next_deadline()), (None, Some(ms(100))));
        assert_eq!(
            (churning.poll(ms(120), None), churning.next_deadline()),
            (Some(Due::Leave), Some(ms(150)))
        );
        assert_eq!(
            (churning.poll(ms(170), None), churning.next_deadline()),
            (Some(Due::Come), Some(ms(250)))
        );
        // Not accepted in time: it leaves all the same.
        assert_eq!(
            (churning.poll(ms(250), None), churning.next_deadline()),
            (Some(Due::Leave), Some(ms(300)))
        );
    }

    #[test]
    fn what_was_due_before_it_leaves_is_offered_first() {
        let mut churning = churning();
        assert_eq!(churning.poll(ms(100), Some(ms(99))), None);
        assert_eq!(churning.poll(ms(100), Some(ms(100))), Some(Due::Leave));
    }

    #[test]
    fn its_program_runs_from_acceptance_until_it_leaves() {
        let mut churning = churning();
        let runs = |churning: &Churning| [99, 100].map(|at| churning.is_running_at(ms(at)));
        assert_eq!((runs(&churning), churning.is_coming()), ([true, false], false));
        churning.poll(ms(100), None);
        assert_eq!((churning.is_running_at(ms(160)), churning.is_coming()), (false, false));
        churning.poll(ms(150), None);
        assert_eq!((churning.is_running_at(ms(160)), churning.is_coming()), (false, true));
        churning.accepted();
        assert_eq!((churning.is_running_at(ms(160)), churning.is_coming()), (true, false));
    }

    #[test]
    fn nobody_leaves_once_it_is_over() {
        let plan = Churn { hold: Duration::from_ms(1), law: HoldLaw::Constant, away: Duration::from_ms(1) };
        let mut churning = Churning::new(plan, ms(100), ms(100), Seed(1).dice());
        assert_eq!((churning.next_deadline(), churning.poll(ms(200), None)), (None, None));
        assert!(churning.is_running_at(ms(200)));
    }
}
