//! Subscriptions that change in the course of a run.
//!
//! Changes are performed one after another: each when the one before was answered, and when the client is connected and has
//! subscribed to what it had before. What was not answered when a connection ended is asked for again on the next one.

use mqttlab_rows::EventKind;
use mqttlab_units::Instant;

use super::{Client, State};
use crate::acceptance::Rank;
use crate::facts::Who;
use crate::session::Session;
use crate::surroundings::Surroundings;
use crate::transport::{Connection, Loss, Transport};

/// How far a client is with the changes of its subscriptions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SubscriptionProgress {
    /// Changes that are due.
    due: u32,
    /// Those that were answered.
    pub(super) answered: u32,
    /// When the next one was asked for, on this connection.
    asked: Option<Instant>,
}

impl SubscriptionProgress {
    /// There is no connection any more.
    pub(super) fn forget_connection(&mut self) {
        self.asked = None;
    }

    /// The next change is asked for.
    pub(super) fn record_request(&self, who: Who, around: &mut impl Surroundings) {
        let Some((filter, subscribes)) = around.subscription_change(who, self.answered) else { return };
        let kind = if subscribes { EventKind::Subscribe } else { EventKind::Unsubscribe };
        around.event(kind, who.number, None, &filter);
    }

    /// An answer came; `false` where none was awaited.
    pub(super) fn answer(&mut self, who: Who, around: &mut impl Surroundings) -> bool {
        let Some(asked) = self.asked.take() else { return false };
        if let Some((filter, subscribes)) = around.subscription_change(who, self.answered) {
            let kind = if subscribes { EventKind::Suback } else { EventKind::Unsuback };
            let took = around.now().since(asked);
            around.event(kind, who.number, Some(took), &filter);
        }
        self.answered += 1;
        true
    }
}

impl<S: Session, C: Connection> Client<S, C> {
    /// Its next change of subscriptions is due.
    pub fn change_subscriptions<A: Surroundings + Transport<S, C>>(&mut self, around: &mut A) {
        self.subscriptions.due += 1;
        let outcome = self.ask_for_changes(around);
        self.lose_unless(around, outcome);
        self.flush(around);
    }

    /// Asks for the next change, if one is due and nothing else is to be answered first.
    pub(super) fn ask_for_changes<A: Surroundings + Transport<S, C>>(
        &mut self,
        around: &mut A,
    ) -> Result<(), Loss> {
        let SubscriptionProgress { due, answered, asked } = self.subscriptions;
        let is_ready = matches!(self.state, State::Open { .. }) && self.acceptance.rank() == Rank::Ready;
        if asked.is_some() || answered >= due || !is_ready {
            return Ok(());
        }
        let Some((_, subscribes)) = around.subscription_change(self.who, answered) else { return Ok(()) };
        self.subscriptions.asked = Some(around.now());
        self.session.change_subscription(around.now(), answered, subscribes);
        self.perform_steps(around)
    }
}
