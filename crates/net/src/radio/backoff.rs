//! A station's wait for the medium: interframe spaces, the backoff's slots, and the network allocation vector.

use mqttlab_units::{Dice, Duration, Instant};

use super::timing::Timing;

/// When the medium was and will be free, as one station knows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carrier {
    /// Nothing on the air since.
    idle_since: Instant,
    /// A reception with errors forbids access until.
    deferred_until: Instant,
    /// Others have reserved the medium until.
    reserved_until: Instant,
    /// Others have asked for it until, but unless somebody answers them, only `reserved_until` holds.
    requested_until: Instant,
    /// A frame was spoilt since the medium became busy.
    spoilt: bool,
}

impl Carrier {
    /// The medium falls silent.
    pub(crate) fn silent(&mut self, now: Instant, timing: &Timing) {
        self.idle_since = now;
        if std::mem::take(&mut self.spoilt) {
            // EIFS (§10.3.2.3.7): it could not read for how long the others go on, and leaves room for an ACK.
            self.deferred_until = now + timing.eifs;
        }
    }

    /// The station waits from here as from the end of a frame.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.idle_since = self.idle_since.max(now);
    }

    /// A frame was received with errors.
    pub(crate) fn spoil(&mut self) {
        self.spoilt = true;
    }

    /// A frame was received without: whatever came before, the station knows what goes on.
    pub(crate) fn hear(&mut self) {
        self.spoilt = false;
        // A frame without errors ends EIFS (§10.3.2.3.7).
        self.deferred_until = Instant::ZERO;
    }

    /// A frame for another station reserves the medium.
    pub(crate) fn reserve(&mut self, now: Instant, until: Instant) {
        // The reservation is over, and so is the request that went with it.
        if now >= self.reserved_until {
            self.requested_until = Instant::ZERO;
        }
        // A duration field only ever raises the network allocation vector (§10.3.2.4).
        self.reserved_until = self.reserved_until.max(until);
    }

    /// An RTS for another station asks for the medium. Where nobody begins to send within the time in which the
    /// CTS and what follows must come, the request is void (IEEE 802.11-2016 §10.3.2.4).
    pub(crate) fn request(&mut self, now: Instant, until: Instant, timing: &Timing) {
        if until > self.reserved_until {
            self.reserve(now, now + timing.nav_timeout);
            self.requested_until = until;
        }
    }

    /// The station begins to receive a frame, so a request that it heard is answered.
    pub(crate) fn answered(&mut self, now: Instant) {
        if now < self.reserved_until {
            self.reserved_until = self.reserved_until.max(self.requested_until);
        }
    }

    /// Whether others have reserved the medium.
    pub(crate) fn is_reserved(&self, now: Instant) -> bool {
        now < self.reserved_until
    }

    /// When slots may be counted, if nothing comes.
    pub(crate) fn free_from(&self, timing: &Timing) -> Instant {
        // DIFS after both the physical and the virtual carrier are free, or EIFS where that ends later.
        (self.idle_since.max(self.reserved_until) + timing.difs).max(self.deferred_until)
    }
}

/// A station's turn: the slots that it must still wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff {
    state: BackoffState,
    slots: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BackoffState {
    /// Nothing to wait for.
    #[default]
    Off,
    /// The medium is busy.
    Frozen,
    /// Slots count from there.
    Counting { from: Instant },
    /// No slots, but a space that must pass first; if something comes in between, slots are drawn.
    Spacing { until: Instant },
}

impl Backoff {
    /// Draws slots, frozen at first.
    pub(crate) fn draw(&mut self, dice: &mut Dice, window: u32) {
        // Uniform over 0 to CW, both included (§10.3.3).
        self.slots = dice.below(u64::from(window) + 1) as u32;
        self.state = BackoffState::Frozen;
    }

    /// The station's turn has come, or there is nothing to wait for.
    pub(crate) fn stop(&mut self) {
        self.state = BackoffState::Off;
    }

    /// Whether there is nothing to wait for. A wait without a frame that is over ends here.
    pub(crate) fn is_off(&mut self, now: Instant, timing: &Timing) -> bool {
        if self.expiry(timing).is_some_and(|expiry| expiry <= now) {
            self.state = BackoffState::Off;
        }
        self.state == BackoffState::Off
    }

    /// The medium is idle, and so far nobody has waited: no slots, if it stays so until then.
    pub(crate) fn space(&mut self, until: Instant) {
        self.state = BackoffState::Spacing { until };
    }

    /// No slots, whatever comes in between: the next silence of a DIFS will do.
    pub(crate) fn wait(&mut self, until: Instant) {
        self.slots = 0;
        self.state = BackoffState::Counting { from: until };
    }

    /// The medium is idle.
    pub(crate) fn resume(&mut self, carrier: &Carrier, timing: &Timing) {
        if self.state == BackoffState::Frozen {
            self.state = BackoffState::Counting { from: carrier.free_from(timing) };
        }
    }

    /// The medium is busy. A turn that comes in this very instant is not lost: the station cannot know yet.
    pub(crate) fn freeze(
        &mut self,
        now: Instant,
        ready: bool,
        dice: &mut Dice,
        window: u32,
        timing: &Timing,
    ) {
        let Some(expiry) = self.expiry(timing) else { return };
        match self.state {
            _ if expiry == now && ready => {}
            // It ran out with nothing to send: the backoff after the last frame is over.
            _ if expiry <= now => self.state = BackoffState::Off,
            // Busy before a DIFS had passed: now a backoff is due (§10.3.4.3).
            BackoffState::Spacing { .. } => self.draw(dice, window),
            BackoffState::Counting { from } => {
                // Only slots that were idle as a whole count (§10.3.4.3).
                let counted = now.checked_since(from).map_or(0, |time| time.as_ns() / timing.slot.as_ns());
                self.slots -= counted as u32;
                self.state = BackoffState::Frozen;
            }
            BackoffState::Off | BackoffState::Frozen => {}
        }
    }

    /// When its turn comes, if nothing else does.
    pub(crate) fn expiry(&self, timing: &Timing) -> Option<Instant> {
        match self.state {
            BackoffState::Off | BackoffState::Frozen => None,
            BackoffState::Counting { from } => Some(from + slots(self.slots, timing.slot)),
            BackoffState::Spacing { until } => Some(until),
        }
    }
}

fn slots(count: u32, slot: Duration) -> Duration {
    slot * u64::from(count)
}
