//! A simulation's audience: progress on standard output, signals, the clock on the wall.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mqttlab_capture::SegmentWitness;
use mqttlab_live::{Announcer, Outcome};
use mqttlab_plan::{Plan, Progress};
use mqttlab_sim::Audience;

/// Runs a plan in virtual time.
pub fn run(plan: Plan, announcer: &mut Announcer) -> Outcome {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // Where a handler cannot be had the signal ends the program, and the recording says that it is incomplete.
        let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
    }
    let witness = SegmentWitness::new(vec![plan.broker.port]);
    let mut watcher = Watcher { announcer, stop, last: Instant::now(), events: 0 };
    let outcome = mqttlab_sim::run(plan, Box::new(witness), &mut watcher);
    Outcome { verdict: outcome.verdict, reason: outcome.reason }
}

struct Watcher<'a> {
    announcer: &'a mut Announcer,
    stop: Arc<AtomicBool>,
    /// When the last figures were given, and how many events there had been.
    last: Instant,
    events: u64,
}

impl Audience for Watcher<'_> {
    fn hear(&mut self, progress: &Progress) {
        self.announcer.say(progress);
    }

    fn warn(&mut self, text: String) {
        self.announcer.warn(text);
    }

    fn warnings(&self) -> Vec<String> {
        self.announcer.warnings().to_vec()
    }

    fn has_had_enough(&mut self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.announcer.is_broken()
    }

    fn wants_figures(&mut self, events: u64) -> Option<u64> {
        let passed = self.last.elapsed();
        if passed < INTERVAL {
            return None;
        }
        let rate = (events - self.events) as f64 / passed.as_secs_f64();
        (self.last, self.events) = (Instant::now(), events);
        Some(rate as u64)
    }
}

/// Between two lines of figures.
const INTERVAL: Duration = Duration::from_millis(250);
