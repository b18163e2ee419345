//! The timers of an endpoint, and the clocks that can make them late.

use mqttlab_units::{Duration, Instant, OptionalInstant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a timer that is due at some instant really fires: never earlier, often later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Granularity {
    /// Exactly when due.
    Exact,
    /// At ticks of two clocks that all timers of the host share, as in the BSDs and lwIP; a period of zero is exact.
    FastSlow {
        /// Period of the fast timer, which sends delayed acknowledgements.
        #[serde(rename = "fast_ns")]
        fast: Duration,
        /// Period of the slow timer, for everything else.
        #[serde(rename = "slow_ns")]
        slow: Duration,
    },
    /// Linux's timer wheel: ticks, of which long timers use only every 8th, 64th, … (each level of the wheel
    /// reaches 63 of its own ticks; measured: 490 ms becomes 512, 1960 becomes 1984 with 4 ms ticks).
    Wheel {
        /// One jiffy.
        #[serde(rename = "tick_ns")]
        tick: Duration,
    },
}

/// What the retransmission timer is running for. One at a time, as RFC 8985 §8 and Linux have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// SYN or SYN-ACK.
    Handshake,
    /// RFC 6298.
    Timeout,
    /// RFC 8985 §7.
    TailProbe,
    /// RFC 8985 §6: the time by which a reordered segment would have come.
    Reordering,
    /// RFC 9293 §3.8.6.1.
    WindowProbe,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EndpointTimers {
    pub retransmission: Option<(Purpose, Instant)>,
    pub ack: OptionalInstant,
    /// Of acknowledgements beyond a gap that wait for each other.
    pub compression: OptionalInstant,
    pub keep_alive: OptionalInstant,
    pub time_wait: OptionalInstant,
}

impl EndpointTimers {
    /// The earliest of all.
    pub fn next(&self) -> Option<Instant> {
        // Asked after everything that happens to an endpoint: these compare without a branch for each timer.
        let retransmission = self.retransmission.map(|(_, at)| at.into()).unwrap_or_default();
        let acknowledging = self.ack.earlier(self.compression);
        let idle = self.keep_alive.earlier(self.time_wait);
        acknowledging.earlier(idle).earlier(retransmission).get()
    }

    /// Whether the retransmission timer is running for this purpose.
    pub fn runs_for(&self, purpose: Purpose) -> bool {
        self.retransmission.is_some_and(|(running, _)| running == purpose)
    }

    /// Whether the retransmission timer is running for nothing, or for what `purpose` gives way to.
    pub fn is_free_or(&self, purpose: Purpose) -> bool {
        self.retransmission.is_none_or(|(running, _)| running == purpose)
    }

    pub fn stop_all(&mut self) {
        *self = EndpointTimers::default();
    }
}

impl Granularity {
    /// When a delayed acknowledgement that may wait for `delay` leaves.
    pub(crate) fn ack_deadline(self, now: Instant, delay: Duration) -> Instant {
        match self {
            // The fast timer ticks whether or not somebody waits: the delay is up to one period, not a period and more.
            Granularity::FastSlow { fast, .. } if !fast.is_zero() => next_multiple(now, fast),
            _ => self.deadline(now, delay),
        }
    }

    /// When a timer set for `delay` fires.
    pub(crate) fn deadline(self, now: Instant, delay: Duration) -> Instant {
        match self {
            Granularity::FastSlow { slow, .. } if !slow.is_zero() => round_up(now + delay, slow),
            Granularity::Wheel { tick } => {
                // Counted in whole ticks, from the last one on (Linux `kernel/time/timer.c`).
                let delay = Duration::from_ns(delay.as_ns().next_multiple_of(tick.as_ns()));
                let mut step = tick;
                while delay.as_ns() >= step.as_ns() * 63 {
                    step = step * 8;
                }
                round_up(now + delay, step)
            }
            _ => now + delay,
        }
    }
}

fn round_up(at: Instant, period: Duration) -> Instant {
    Instant::from_ns(at.as_ns().next_multiple_of(period.as_ns()))
}

fn next_multiple(after: Instant, period: Duration) -> Instant {
    round_up(after + Duration::from_ns(1), period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wheel_is_coarse_for_long_timers_as_measured_on_linux() {
        let wheel = Granularity::Wheel { tick: Duration::from_ms(4) };
        let fires = |ms| wheel.deadline(Instant::ZERO, Duration::from_ms(ms)).as_ns() / 1_000_000;
        assert_eq!([fires(41), fires(245), fires(490), fires(980), fires(1960)], [44, 248, 512, 992, 1984]);
    }

    #[test]
    fn the_fast_timer_cuts_an_acknowledgements_delay_short() {
        let ticks = Granularity::FastSlow { fast: Duration::from_ms(200), slow: Duration::ZERO };
        let now = Instant::from_ns(390_000_000);
        assert_eq!(ticks.ack_deadline(now, Duration::from_ms(200)), Instant::from_ns(400_000_000));
        assert_eq!(ticks.ack_deadline(Instant::ZERO, Duration::from_ms(200)), Instant::from_ns(200_000_000));
    }
}
