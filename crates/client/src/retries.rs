//! When to try again: exponential back-off with jitter.

use mqttlab_plan::Reconnect;
use mqttlab_units::{Dice, Duration};

/// Attempts to connect.
pub(crate) struct Retries {
    /// Attempts since the last success.
    attempts: u32,
    /// Whether the other side has ever accepted.
    accepted: bool,
    dice: Dice,
}

impl Retries {
    /// With the random numbers that the jitter takes.
    pub(crate) fn new(dice: Dice) -> Retries {
        Retries { attempts: 0, accepted: false, dice }
    }

    /// Another attempt. Whether there was one before, or a success.
    pub(crate) fn begin(&mut self) -> bool {
        let again = self.attempts > 0 || self.accepted;
        self.attempts += 1;
        again
    }

    /// The attempt succeeded.
    pub(crate) fn succeed(&mut self) {
        (self.attempts, self.accepted) = (0, true);
    }

    /// How long to wait before the next attempt: doubled with each in vain, up to a maximum, spread by the jitter.
    pub(crate) fn wait(&mut self, policy: &Reconnect) -> Duration {
        // The first attempt in vain waits for the initial time, undoubled.
        let doublings = self.attempts.saturating_sub(1).min(32);
        let wait_ns = policy.initial.as_ns().saturating_mul(1 << doublings).min(policy.maximum.as_ns());
        let jitter = policy.jitter.as_f64() * (2.0 * self.dice.uniform() - 1.0);
        Duration::from_ns((wait_ns as f64 * (1.0 + jitter)) as u64)
    }
}
