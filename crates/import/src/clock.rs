//! The recording's clock: nanoseconds since the first thing that was seen.

use mqttlab_units::Instant;

/// Turns points in time since 1970 into points in time since the start of the recording.
#[derive(Clone, Copy, Debug)]
pub struct CaptureClock {
    start: Instant,
}

impl CaptureClock {
    /// A clock whose zero is `start`, counted from 1970.
    pub fn starting(start: Instant) -> CaptureClock {
        CaptureClock { start }
    }

    /// Zero, counted from 1970.
    pub fn start_unix_ns(self) -> u64 {
        self.start.as_ns()
    }

    /// A point in time since 1970 on this clock. What was before the start is at the start.
    pub fn at(self, time: Instant) -> Instant {
        Instant::from_ns(time.as_ns().saturating_sub(self.start.as_ns()))
    }

    /// Whether a point in time since 1970 was before the start.
    pub fn is_before(self, time: Instant) -> bool {
        time < self.start
    }
}
