//! How late this machine wakes a thread that does nothing: a timer every millisecond, as `cyclictest` has it.
//!
//! It runs beside the emulator with the same priority. Where both are late the machine is the reason; where only the
//! emulator is, the run is. It wakes a thousand times a second and takes about 5 µs each time. Every millisecond counts, those
//! too that passed while it was held up: a frame would have been due in each of them. `cyclictest` counts one
//! lateness for each time that it wakes, so that of a machine held up for 20 ms in every second it finds one wake-up in
//! 981 late, though 2 % of all frames are.
//!
//! What it does not know: which processor the emulator was on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

use mqttlab_system::priority::Priority;
use mqttlab_units::{Duration, Instant};

use crate::clock::Clock;
use crate::histogram::{AtomicHistogram, HistogramSnapshot};
use crate::verdict::thread_delays::{DelayCounters, DelayObserver, ThreadDelays};

/// A running timer. Ends when dropped.
pub struct ControlTimer {
    shared: Arc<TimerShared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct TimerShared {
    lateness: AtomicHistogram,
    held_up: DelayCounters,
    stop: AtomicBool,
}

impl ControlTimer {
    /// Starts it. Without the right to the priority it runs without, as the emulator then does.
    ///
    /// # Errors
    /// Too many threads.
    pub fn start(clock: Clock, priority: Priority) -> io::Result<ControlTimer> {
        let shared = Arc::new(TimerShared::default());
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new().name("control-timer".into()).spawn(move || {
            let _ = priority.apply();
            own.run(&clock);
        })?;
        Ok(ControlTimer { shared, thread: Some(thread) })
    }

    /// What held it up so far.
    pub fn held_up(&self) -> ThreadDelays {
        self.shared.held_up.snapshot()
    }

    /// How late it was woken so far.
    pub fn lateness(&self) -> HistogramSnapshot {
        self.shared.lateness.snapshot()
    }
}

impl Drop for ControlTimer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the control timer does not panic");
        }
    }
}

impl TimerShared {
    fn run(&self, clock: &Clock) {
        let mut observer = DelayObserver::of_this_thread();
        let mut due = clock.now() + PERIOD;
        while !self.stop.load(Relaxed) {
            // A sleep that a signal ends is counted as being in time.
            clock.sleep_until(due);
            let now = clock.now();
            observer.done(due, now, std::time::Duration::ZERO, &self.held_up);
            observer.in_time(now, std::time::Duration::ZERO);
            due = self.woken(due, now);
        }
    }

    /// Counts what was due since then, and says what is due next.
    fn woken(&self, mut due: Instant, now: Instant) -> Instant {
        // A signal may have ended the sleep before its time.
        while let Some(late) = now.checked_since(due) {
            self.lateness.count(late);
            due += PERIOD;
        }
        due
    }
}

const PERIOD: Duration = Duration::from_ms(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_millisecond_in_which_it_was_held_up_counts() {
        let shared = TimerShared::default();
        let at = |us: u64| Instant::from_ns(us * 1000);
        assert_eq!(shared.woken(at(1000), at(900)), at(1000), "woken by a signal");
        assert_eq!(shared.woken(at(1000), at(1010)), at(2000));
        assert_eq!(shared.woken(at(2000), at(22_500)), at(23_000));
        let counted = shared.lateness.snapshot();
        assert_eq!((counted.len(), counted.max()), (22, Duration::from_us(20_500)));
        assert!(
            counted.percentile(50.0).unwrap() >= Duration::from_us(9_500),
            "half of them were late by half of it"
        );
    }

    #[test]
    fn it_counts_one_lateness_a_millisecond_at_most() {
        let clock = Clock::start();
        let timer = ControlTimer::start(clock, Priority::Normal).unwrap();
        while timer.lateness().len() < 20 {
            thread::sleep(std::time::Duration::from_millis(1));
        }
        let counted = timer.lateness().len();
        assert!(counted <= clock.now().as_ns() / 1_000_000, "{counted} at {}", clock.now());
    }
}
