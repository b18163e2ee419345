//! What held a thread up: of each time in which something was due and not done, how much the thread waited for a
//! processor, how much for the recorder, how much it worked, and how much it waited for anything else.
//!
//! ```text
//!            due                                     done
//!   ──────────┼───────────────────────────────────────┼──────►
//!             │ no processor │ recorder │ … elsewhere │
//! ```
//!
//! The kernel counts a thread's waits for a processor; to read them takes some microseconds. So they are read where
//! something was late, and every 10 ms at most, so that the small waits of ordinary wake-ups do not add up to one long one.
//!
//! What it does not know: for whom the processor was needed, and what a thread waits for elsewhere (memory, a lock in the
//! kernel, an interrupt that came late because the whole machine stood still).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mqttlab_system::clock::thread_processor_time;
use mqttlab_units::{Duration, Instant};
use serde_json::{Value, json};

/// Times in which a thread was held up, and what it waited for, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadDelays {
    /// How many there were.
    pub count: u64,
    /// How long they took together.
    pub total: Duration,
    /// Of it, for a processor.
    pub run_queue: Duration,
    /// Of it, for the recorder.
    pub recorder: Duration,
    /// Of it, with work.
    pub working: Duration,
}

/// The same while the thread runs.
#[derive(Debug, Default)]
pub struct DelayCounters {
    count: AtomicU64,
    total_ns: AtomicU64,
    run_queue_ns: AtomicU64,
    recorder_ns: AtomicU64,
    working_ns: AtomicU64,
}

/// Reads a thread's own counters. Made and used on it.
pub struct DelayObserver {
    /// This thread's; `None` where the kernel counts no waits.
    schedstat: Option<File>,
    last: DelayReading,
    /// Up to when hold-ups have been counted.
    counted: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct DelayReading {
    at: Instant,
    on_processor: Duration,
    run_queue: Duration,
    recorder: Duration,
}

impl ThreadDelays {
    /// As `run.json` holds it.
    pub fn facts(&self) -> Value {
        json!({
            "count": self.count,
            "total_ns": self.total,
            "run_queue_ns": self.run_queue,
            "recorder_ns": self.recorder,
            "working_ns": self.working,
            "elsewhere_ns": self.elsewhere(),
        })
    }

    /// What is not explained.
    pub fn elsewhere(&self) -> Duration {
        self.total.saturating_sub(self.run_queue + self.recorder + self.working)
    }

    /// Whether a part explains them: half of their time at least.
    pub fn is_explained_by(&self, part: Duration) -> bool {
        !self.total.is_zero() && part.as_ns().saturating_mul(2) >= self.total.as_ns()
    }
}

impl DelayCounters {
    /// What was counted so far.
    pub fn snapshot(&self) -> ThreadDelays {
        let length = |counter: &AtomicU64| Duration::from_ns(counter.load(Relaxed));
        ThreadDelays {
            count: self.count.load(Relaxed),
            total: length(&self.total_ns),
            run_queue: length(&self.run_queue_ns),
            recorder: length(&self.recorder_ns),
            working: length(&self.working_ns),
        }
    }

    fn add(&self, held: ThreadDelays) {
        let all = [
            (&self.total_ns, held.total),
            (&self.run_queue_ns, held.run_queue),
            (&self.recorder_ns, held.recorder),
            (&self.working_ns, held.working),
        ];
        all.into_iter().for_each(|(counter, length)| {
            counter.fetch_add(length.as_ns(), Relaxed);
        });
        self.count.fetch_add(held.count, Relaxed);
    }
}

impl DelayObserver {
    /// Of the calling thread.
    pub fn of_this_thread() -> DelayObserver {
        let schedstat = File::open("/proc/thread-self/schedstat").ok();
        DelayObserver { schedstat, last: DelayReading::default(), counted: Instant::ZERO }
    }

    /// What was `due` is done `now`. `waited` is how long the thread has waited for the recorder so far.
    pub fn done(
        &mut self,
        due: Instant,
        now: Instant,
        waited: std::time::Duration,
        counters: &DelayCounters,
    ) {
        // Of several things that one hold-up delays the first has waited for all of it.
        let begun = due.max(self.counted);
        let length = now.checked_since(begun).unwrap_or(Duration::ZERO);
        if length < LEAST {
            return;
        }
        self.counted = now;
        let reading = self.read(now, waited);
        counters.add(explained(length, self.last, reading));
        self.last = reading;
    }

    /// Nothing is late. To be called often.
    pub fn in_time(&mut self, now: Instant, waited: std::time::Duration) {
        if now.checked_since(self.last.at).is_some_and(|passed| passed >= STALE) {
            self.last = self.read(now, waited);
        }
    }

    fn read(&self, at: Instant, waited: std::time::Duration) -> DelayReading {
        let mut bytes = [0; 64];
        let read = self.schedstat.as_ref().and_then(|file| file.read_at(&mut bytes, 0).ok()).unwrap_or(0);
        let text = std::str::from_utf8(&bytes[..read]).unwrap_or_default();
        // Time on a processor, time waiting for one, turns.
        let waiting = text.split_whitespace().nth(1).and_then(|ns| ns.parse().ok()).unwrap_or(0);
        DelayReading {
            at,
            on_processor: thread_processor_time(),
            run_queue: Duration::from_ns(waiting),
            recorder: Duration::from_ns(waited.as_nanos() as u64),
        }
    }
}

/// What of a hold-up lies between two readings.
fn explained(length: Duration, before: DelayReading, after: DelayReading) -> ThreadDelays {
    let mut left = length;
    let mut part = |grown: Duration| {
        let part = grown.min(left);
        left = left.saturating_sub(part);
        part
    };
    let run_queue = part(after.run_queue.saturating_sub(before.run_queue));
    let recorder = part(after.recorder.saturating_sub(before.recorder));
    // Some work is done between any two readings; a thread that has too much of it does nothing else.
    let (worked, passed) =
        (after.on_processor.saturating_sub(before.on_processor), after.at.since(before.at));
    let is_busy = worked.as_ns() as f64 >= BUSY_PART * passed.as_ns() as f64;
    let working = if is_busy { part(worked) } else { Duration::ZERO };
    ThreadDelays { count: 1, total: length, run_queue, recorder, working }
}

/// What is late by less is not held up: any network bears it (validity).
const LEAST: Duration = Duration::from_us(100);
/// A reading that is older says too little of what was late.
const STALE: Duration = Duration::from_ms(10);
/// A thread that works this much has no time left.
const BUSY_PART: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_ms(ms)
    }

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    #[test]
    fn frames_that_one_hold_up_delays_count_it_once() {
        let (mut observer, counters) = (DelayObserver::of_this_thread(), DelayCounters::default());
        let nothing = std::time::Duration::ZERO;
        // 20 ms without the thread, in which a frame was due every millisecond.
        (0..20).for_each(|due| observer.done(at(100 + due), at(120), nothing, &counters));
        let seen = counters.snapshot();
        assert_eq!((seen.count, seen.total), (1, ms(20)));
        observer.done(at(121), at(121), nothing, &counters);
        assert_eq!(counters.snapshot(), seen, "in time");
    }

    #[test]
    fn a_hold_up_is_cut_into_what_it_was_waited_for() {
        let before = DelayReading { at: at(90), ..DelayReading::default() };
        let after = |run_queue, recorder, on_processor| DelayReading {
            at: at(110),
            on_processor,
            run_queue,
            recorder,
        };
        let queue = explained(ms(10), before, after(ms(9), ms(0), ms(3)));
        assert_eq!((queue.run_queue, queue.working, queue.elsewhere()), (ms(9), ms(0), ms(1)));
        let recorder = explained(ms(10), before, after(ms(0), ms(8), ms(3)));
        assert!(
            recorder.is_explained_by(recorder.recorder) && !recorder.is_explained_by(recorder.elsewhere())
        );
        let busy = explained(ms(10), before, after(ms(0), ms(0), ms(19)));
        assert_eq!((busy.working, busy.elsewhere()), (ms(10), ms(0)));
        let elsewhere = explained(ms(10), before, after(ms(0), ms(0), ms(3)));
        assert_eq!(elsewhere.elsewhere(), ms(10));
        // More than the hold-up took is of what was before it.
        assert_eq!(explained(ms(10), before, after(ms(12), ms(5), ms(0))).run_queue, ms(10));
    }

    #[test]
    fn a_thread_that_waits_for_the_recorder_says_so() {
        // The kernel's own count may grow meanwhile, on a machine that has other work.
        let mut observer =
            DelayObserver { schedstat: None, last: DelayReading::default(), counted: Instant::ZERO };
        let counters = DelayCounters::default();
        observer.in_time(at(50), std::time::Duration::ZERO);
        observer.done(at(51), at(56), std::time::Duration::from_millis(5), &counters);
        let seen = counters.snapshot();
        assert_eq!((seen.total, seen.recorder), (ms(5), ms(5)));
    }
}
