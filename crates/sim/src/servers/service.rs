//! How long a server works on a packet.

use mqttlab_plan::ServiceTime;
use mqttlab_units::{Dice, Duration, Seed};

/// Service times around their means.
pub(crate) struct ServiceTimes {
    means: ServiceTime,
    dice: Dice,
}

impl ServiceTimes {
    /// Of a server of this name.
    pub(crate) fn new(means: ServiceTime, name: &str, seed: Seed) -> ServiceTimes {
        ServiceTimes { means, dice: seed.derive(&format!("{name}/service")).dice() }
    }

    /// For a packet that has come.
    pub(crate) fn per_packet(&mut self) -> Duration {
        self.around(self.means.per_packet)
    }

    /// For a copy that is sent.
    pub(crate) fn per_copy(&mut self) -> Duration {
        self.around(self.means.per_copy)
    }

    fn around(&mut self, mean: Duration) -> Duration {
        if mean.is_zero() || self.means.jitter.is_zero() {
            return mean;
        }
        let factor = 1.0 + self.means.jitter.as_f64() * self.dice.normal();
        Duration::from_ns((mean.as_ns() as f64 * factor.max(0.0)) as u64)
    }
}
