//! Clients that leave in the course of a run, in order or without a word, and come back.
//!
//! ```text
//!          disconnect                the other side closes
//!   Here ─────────────► Leaving ─────────────────────────► Away ──► come back: Here, and connects at once
//!     └──────────────── vanish ──────────────────────────►
//! ```
//!
//! Who disconnects says DISCONNECT and waits for the other side's end of the connection, as at the end of a run. Its program goes on
//! meanwhile: messages of QoS 1 and 2 wait in its session. So does who comes and goes all the time ([`Churning`]). Who vanishes has lost its power: nothing is offered, and what was due is
//! unsent. What its session held is there when it comes back, as from a store on its disk.

use mqttlab_plan::PublishingTime;
use mqttlab_rows::EventKind;
use mqttlab_units::{Duration, Instant, Seed};

use super::{Client, State};
use crate::churn::{Churning, Due};
use crate::session::Session;
use crate::surroundings::Surroundings;
use crate::transport::{Connection, Loss, Transport};

/// Whether a client takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Here,
    /// It has said goodbye, and its connection is not closed yet.
    Leaving,
    Away,
    /// It is without power.
    Silent,
}

impl<S: Session, C: Connection> Client<S, C> {
    /// Disconnects in order and stays away. A shell over datagrams, whose other side closes nothing, says
    /// [`Client::lose`] next.
    pub fn disconnect<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A) {
        if self.is_gone() || self.presence != Presence::Here {
            return;
        }
        self.presence = Presence::Leaving;
        // Before it was accepted there is nothing to say.
        if !self.is_open() || !self.session.is_online() {
            return self.lose(around, &Loss::Farewell);
        }
        self.session.disconnect(around.now());
        let outcome = self.perform_steps(around);
        self.lose_unless(around, outcome);
        self.flush(around);
    }

    /// Falls silent, and stays away.
    pub fn vanish<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A) {
        if self.is_gone() || self.presence == Presence::Silent {
            return;
        }
        self.rest(around, false);
        around.vanish(self.who, &mut self.connection);
        self.forget_connection(around);
        (self.presence, self.state) = (Presence::Silent, State::Away);
        around.event(EventKind::Note, self.who.number, None, "vanished");
    }

    /// Takes part again, if it was away: connects at once.
    pub fn come_back<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A) {
        if self.is_gone() || self.presence == Presence::Here {
            return;
        }
        // The other side has not closed yet.
        if self.state != State::Away {
            self.lose(around, &Loss::Farewell);
        }
        (self.presence, self.state) = (Presence::Here, State::Waiting(around.now()));
    }

    /// It is known when clients publish, and with that when those that come and go do so. The first leave one after another, so
    /// that all of them together come evenly. `seed` is the run's.
    pub fn begin_churn(&mut self, time: PublishingTime, seed: Seed) {
        let Some(plan) = self.facts.churn else { return };
        let (_, count) = self.facts.connect_over;
        // Nanoseconds times clients do not fit 64 bits.
        let period_ns = u128::from((plan.hold + plan.away).as_ns());
        let first =
            Duration::from_ns((period_ns * u128::from(self.who.index) / u128::from(count.max(1))) as u64);
        let dice = seed.derive("churn").index(u64::from(self.who.number.0)).dice();
        self.churning = Some(Box::new(Churning::new(plan, time.from + first, time.until, dice)));
    }

    /// When it comes or goes next; a peek.
    pub(super) fn next_churn(&self, around: &impl Surroundings) -> Option<Instant> {
        let is_over = around.is_leaving() || self.is_gone();
        self.churning.as_ref().filter(|_| !is_over)?.next_deadline()
    }

    /// Whether its program runs at an instant to come.
    pub(super) fn is_running_at(&self, at: Instant) -> bool {
        self.churning.as_ref().is_none_or(|churning| churning.is_running_at(at))
    }

    /// It may be time to come or to go.
    pub(super) fn attend_churn<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A) {
        if self.next_churn(around).is_none_or(|at| at > around.now()) {
            return;
        }
        let publishes = self.next_publish(around).map(|(due, _)| due);
        match self.churning.as_mut().and_then(|churning| churning.poll(around.now(), publishes)) {
            Some(Due::Leave) => {
                self.note_unaccepted(around);
                self.disconnect(around);
            }
            Some(Due::Come) => self.come_back(around),
            None => {}
        }
    }
}
