//! A simulation's audience: progress on standard output, signals, the clock on the wall.

use std::time::{Duration, Instant};

use mqttlab_capture::SegmentWitness;
use mqttlab_live::{Announcer, MemoryNeed, Outcome, Signals, Watchdog, check_memory};
use mqttlab_plan::{Destination, Plan, Progress, Verdict};
use mqttlab_sim::{Audience, Simulation, SimulationState};

/// Runs a plan in virtual time.
pub fn run(plan: Plan, destination: &Destination, announcer: &mut Announcer) -> Outcome {
    let watchdog = match prepare(&plan, destination) {
        Ok(watchdog) => watchdog,
        Err(reason) => return Outcome { verdict: Verdict::Failed, reason: Some(reason) },
    };
    let witness = SegmentWitness::new(plan.server_ports());
    let mut watcher = Watcher { announcer, watchdog, last: Instant::now(), events: 0 };
    let outcome = mqttlab_sim::run(plan, destination, Box::new(witness), &mut watcher);
    Outcome { verdict: outcome.verdict, reason: outcome.reason }
}

fn prepare(plan: &Plan, destination: &Destination) -> Result<Watchdog, String> {
    let clients: u64 = plan.groups.iter().map(|group| u64::from(group.count)).sum();
    let need = MemoryNeed { own_bytes: mqttlab_sim::memory_needed(plan), beside_bytes: 0 };
    check_memory(need, &format!("{clients} clients, {} hosts", plan.hosts.len()))?;
    let signals =
        Signals::take().and_then(|signals| mqttlab_live::watchdog_of(&destination.directory, signals));
    signals.map_err(|error| format!("cannot wait for signals: {error}"))
}

/// Simulates a plan until an instant, and returns the state there. What was recorded until then is kept as the recording
/// of an incomplete run.
pub fn run_until(
    plan: Plan,
    destination: &Destination,
    until: mqttlab_units::Instant,
) -> Result<SimulationState, String> {
    // Standard output is for the state.
    let mut announcer = Announcer::new(Box::new(std::io::sink()));
    let watchdog = prepare(&plan, destination)?;
    let analyser = SegmentWitness::new(plan.server_ports());
    let mut watcher = Watcher { announcer: &mut announcer, watchdog, last: Instant::now(), events: 0 };
    let mut simulation = Simulation::new(plan, destination, Box::new(analyser), &mut watcher)?;
    let result = simulation.run_until(until, &mut watcher);
    let state = simulation.state();
    let ending = result.clone().and_then(|()| match simulation.is_over() {
        true => Ok(()),
        false => Err(format!("it was stopped at {} of simulated time, as asked", simulation.now())),
    });
    simulation.finish(ending, &mut watcher);
    result.and(state)
}

struct Watcher<'a> {
    announcer: &'a mut Announcer,
    watchdog: Watchdog,
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

    fn interruption(&mut self) -> Option<String> {
        self.watchdog.interruption().map(ToString::to_string)
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
