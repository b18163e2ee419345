//! When to try again: exponential back-off with jitter.

use mqttlab_plan::Reconnect;
use mqttlab_units::{Dice, Duration};

/// Attempts to connect.
pub(crate) struct Retries {
    /// Whether there was an attempt before.
    has_tried: bool,
    /// Waits since the last success. The first follows an attempt in vain or the loss of a connection.
    waits: u32,
    dice: Dice,
}

impl Retries {
    /// With the random numbers that the jitter takes.
    pub(crate) fn new(dice: Dice) -> Retries {
        Retries { has_tried: false, waits: 0, dice }
    }

    /// Another attempt. Whether there was one before.
    pub(crate) fn begin(&mut self) -> bool {
        std::mem::replace(&mut self.has_tried, true)
    }

    /// The attempt succeeded: the next wait is the initial one.
    pub(crate) fn succeed(&mut self) {
        self.waits = 0;
    }

    /// How long to wait before the next attempt: each wait is twice the last, up to a maximum, spread by the jitter.
    pub(crate) fn wait(&mut self, policy: &Reconnect) -> Duration {
        let doublings = self.waits.min(32);
        self.waits = self.waits.saturating_add(1);
        let wait_ns = policy.initial.as_ns().saturating_mul(1 << doublings).min(policy.maximum.as_ns());
        let jitter = policy.jitter.as_f64() * (2.0 * self.dice.uniform() - 1.0);
        Duration::from_ns((wait_ns as f64 * (1.0 + jitter)) as u64)
    }
}
