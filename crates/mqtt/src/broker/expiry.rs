//! Until when a message is good (MQTT 5 §3.3.2.3.3), as Mosquitto 2.0.11 counts it: in whole seconds of the clock.
//!
//! A message that came in one second is still sent in the second in which its interval ends, and not after it (measured). A
//! retained copy is sent before that second only.

use mqttlab_units::{Duration, Instant};

/// The second of the clock in which a message's interval ends, from 0 when the clock starts; `MAX` for never. Four bytes, since each
/// delivery has it: the longest intervals end a little early, after 136 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expiry(u32);

impl Expiry {
    pub(super) const NEVER: Expiry = Expiry(u32::MAX);

    pub(super) fn new(came: Instant, interval_s: Option<u32>) -> Expiry {
        interval_s
            .map_or(Expiry::NEVER, |interval| Expiry(second(came).saturating_add(interval).min(u32::MAX - 1)))
    }

    /// Whether it is not to be sent any more.
    pub(super) fn is_over(self, now: Instant) -> bool {
        self != Expiry::NEVER && second(now) > self.0
    }

    /// Whether a retained copy is not to be sent any more.
    pub(super) fn is_over_retained(self, now: Instant) -> bool {
        self != Expiry::NEVER && second(now) >= self.0
    }

    /// What is handed on of the interval ([MQTT-3.3.2-6]).
    pub(super) fn left_s(self, now: Instant) -> Option<u32> {
        let left = self.0.saturating_sub(second(now));
        (self != Expiry::NEVER && left > 0).then_some(left)
    }
}

fn second(at: Instant) -> u32 {
    (at.as_ns() / Duration::from_s(1).as_ns()).min(u32::MAX.into()) as u32
}
