//! Clients that come and go all the time, as the plan has it.
//!
//! ```text
//!             leaves                     comes                    CONNACK
//!   Here ──────────────► Away ─────────────────────► Coming ────────────────► Here
//!     hold, or drawn with         always as long        └── leaves ──► Away
//!     this mean
//! ```
//!
//! Clients leave and come at instants that follow from the plan and the seed alone, so that a slow server is asked as often as a
//! fast one. Nothing is due while a client is away, and until its CONNACK: its program does not run. What was put into its
//! session before it left stays there.

use mqttlab_plan::{Churn, HoldLaw, PublishingTime};
use mqttlab_units::{Dice, Duration, Instant, Seed};

use super::Client;
use crate::session::Session;
use crate::surroundings::Surroundings;
use crate::transport::{Connection, Transport};

/// Where a client that comes and goes is.
pub(super) struct Churning {
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

impl Churning {
    fn next(&self) -> Option<Instant> {
        match self.stage {
            Stage::Here { leaves } | Stage::Coming { leaves } => (leaves < self.until).then_some(leaves),
            Stage::Away { comes } => Some(comes),
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

impl<S: Session, C: Connection> Client<S, C> {
    /// It is known when clients publish, and with that when those that come and go do so. The first leave one after another, so
    /// that all of them together come evenly. `seed` is the run's.
    pub fn begin_churn(&mut self, time: PublishingTime, seed: Seed) {
        let Some(plan) = self.facts.churn else { return };
        let (_, count) = self.facts.connect_over;
        // Nanoseconds times clients do not fit 64 bits.
        let period_ns = u128::from((plan.hold + plan.away).as_ns());
        let first =
            Duration::from_ns((period_ns * u128::from(self.who.index) / u128::from(count.max(1))) as u64);
        self.churning = Some(Box::new(Churning {
            plan,
            stage: Stage::Here { leaves: time.from + first },
            until: time.until,
            dice: seed.derive("churn").index(u64::from(self.who.number.0)).dice(),
        }));
    }

    /// When it leaves or comes next; a peek.
    pub(super) fn next_churn(&self, around: &impl Surroundings) -> Option<Instant> {
        if around.is_leaving() || self.is_gone() {
            return None;
        }
        self.churning.as_ref()?.next()
    }

    /// Whether a message that its schedule has is not due, because it is not there then.
    pub(super) fn is_not_due(&self, intended: Instant) -> bool {
        self.churning.as_ref().is_some_and(|churning| match churning.stage {
            Stage::Here { leaves } => leaves < churning.until && intended >= leaves,
            Stage::Coming { .. } | Stage::Away { .. } => true,
        })
    }

    /// Whether it has come and was not accepted yet.
    pub(super) fn is_coming(&self) -> bool {
        self.churning.as_ref().is_some_and(|churning| matches!(churning.stage, Stage::Coming { .. }))
    }

    /// The other side has accepted it.
    pub(super) fn note_arrival(&mut self) {
        if let Some(churning) = &mut self.churning
            && let Stage::Coming { leaves } = churning.stage
        {
            churning.stage = Stage::Here { leaves };
        }
    }

    /// It may be time to leave or to come.
    pub(super) fn attend_churn<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A) {
        let Some(at) = self.next_churn(around).filter(|at| *at <= around.now()) else { return };
        // What was due before is offered first.
        let is_behind = self.schedule.is_some() && self.next_publish(around).is_some_and(|(due, _)| due < at);
        let Some(churning) = &mut self.churning else { return };
        match churning.stage {
            Stage::Here { .. } if is_behind => {}
            Stage::Here { .. } | Stage::Coming { .. } => {
                churning.stage = Stage::Away { comes: at + churning.plan.away };
                self.note_unaccepted(around);
                self.disconnect(around);
            }
            Stage::Away { .. } => {
                let leaves = at + churning.hold();
                churning.stage = Stage::Coming { leaves };
                self.come_back(around);
            }
        }
    }
}

const HOLD_MIN: Duration = Duration::from_ms(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(law: HoldLaw, seed: u64) -> Vec<Duration> {
        let plan = Churn { hold: Duration::from_s(1), law, away: Duration::from_s(1) };
        let stage = Stage::Here { leaves: Instant::ZERO };
        let mut churning = Churning { plan, stage, until: Instant::ZERO, dice: Seed(seed).dice() };
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
}
