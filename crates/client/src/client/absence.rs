//! Clients that leave in the course of a run, in order or without a word, and come back.
//!
//! ```text
//!          disconnect                the other side closes
//!   Here ─────────────► Leaving ─────────────────────────► Away ──► come back: Here, and connects at once
//!     └──────────────── vanish ──────────────────────────►
//! ```
//!
//! Who disconnects says DISCONNECT and waits for the other side's end of the connection, as at the end of a run. Its program goes on
//! meanwhile: messages of QoS 1 and 2 wait in its session. Who vanishes has lost its power: nothing is offered, and what was due is
//! unsent. What its session held is there when it comes back, as from a store on its disk.

use mqttlab_rows::EventKind;

use super::{Client, State};
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
}
