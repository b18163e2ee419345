//! The run's one clock: `CLOCK_MONOTONIC`, counted from the start of the run.
//!
//! Parts of a run on other machines count from the same instant, as far as their clocks' offset is known (`parts`).

use mqttlab_system::clock;
use mqttlab_units::{Duration, Instant};

/// Reads run time. Copies read the same time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// What `CLOCK_MONOTONIC` said at run time zero; below zero where this machine was started after that.
    epoch_ns: i64,
    started_unix_ns: u64,
}

impl Clock {
    /// A clock whose zero is now.
    pub fn start() -> Clock {
        Clock { epoch_ns: clock::monotonic_ns() as i64, started_unix_ns: clock::unix_ns() }
    }

    /// Now, in run time.
    pub fn now(&self) -> Instant {
        self.at_raw(clock::monotonic_ns())
    }

    /// The same clock as another machine has it, whose `CLOCK_MONOTONIC` is this much behind ours.
    pub(crate) fn seen_from(&self, behind_ns: i64) -> Clock {
        Clock { epoch_ns: self.epoch_ns - behind_ns, ..*self }
    }

    /// A clock that says zero when `CLOCK_MONOTONIC` says `epoch_ns`.
    pub(crate) fn with_epoch(epoch_ns: i64, started_unix_ns: u64) -> Clock {
        Clock { epoch_ns, started_unix_ns }
    }

    /// What `CLOCK_MONOTONIC` said at run time zero.
    pub(crate) fn epoch_ns(&self) -> i64 {
        self.epoch_ns
    }

    /// The run time at which `CLOCK_MONOTONIC` says `raw_ns`.
    ///
    /// # Panics
    /// Before the start of the run.
    pub(crate) fn at_raw(&self, raw_ns: u64) -> Instant {
        let ns = raw_ns as i64 - self.epoch_ns;
        Instant::from_ns(u64::try_from(ns).expect("a run's clock is not read before the run"))
    }

    /// Run time zero in nanoseconds since 1970-01-01T00:00:00Z.
    pub fn started_unix_ns(&self) -> u64 {
        self.started_unix_ns
    }

    /// The run time at which the wall clock said `unix_ns`, if it has not been set since; zero when that was before.
    pub fn at_unix_ns(&self, unix_ns: u64) -> Instant {
        let (now, wall) = (self.now(), clock::unix_ns());
        Instant::from_ns((now.as_ns() + unix_ns).saturating_sub(wall))
    }

    /// Sleeps until a run time, or until a signal.
    pub(crate) fn sleep_until(&self, at: Instant) {
        clock::sleep_until(Duration::from_ns(at.as_ns().saturating_add_signed(self.epoch_ns)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_starts_near_zero_and_never_runs_back() {
        let clock = Clock::start();
        let first = clock.now();
        let copy = clock;
        assert!(copy.now() >= first);
        assert!(clock.started_unix_ns() > 1_700_000_000_000_000_000);
    }

    #[test]
    fn a_machine_that_was_started_later_has_the_same_run_time() {
        let here = Clock::with_epoch(5_000, 0);
        let there = here.seen_from(9_000);
        assert_eq!(
            (here.at_raw(12_000), there.at_raw(3_000)),
            (Instant::from_ns(7_000), Instant::from_ns(7_000))
        );
    }
}
