//! Progress on standard output, one JSON object a line, and what ends a run from outside.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use mqttlab_live::Watchdog;
use mqttlab_run::{Interruption, Progress, RunObserver, SimulationPace};

/// Writes progress lines for whoever started the engine.
pub struct Lines {
    out: Box<dyn Write + Send>,
    is_broken: bool,
    watchdog: Option<Watchdog>,
    /// When the last figures were given, how many events there had been, and at what time of the simulation.
    last: Instant,
    events: u64,
    simulated: mqttlab_units::Instant,
}

impl Lines {
    /// On standard output.
    pub fn new() -> Lines {
        Lines::to(Box::new(io::stdout()))
    }

    /// Elsewhere.
    pub fn to(out: Box<dyn Write + Send>) -> Lines {
        Lines {
            out,
            is_broken: false,
            watchdog: None,
            last: Instant::now(),
            events: 0,
            simulated: Default::default(),
        }
    }

    /// Ends the run when this has been told to, too.
    pub fn watch(&mut self, watchdog: Watchdog) {
        self.watchdog = Some(watchdog);
    }
}

impl RunObserver for Lines {
    fn on_progress(&mut self, progress: &Progress) {
        let line = serde_json::to_string(progress).expect("progress is made of strings and numbers") + "\n";
        let written = self.out.write_all(line.as_bytes()).and_then(|()| self.out.flush());
        self.is_broken |= matches!(written, Err(error) if error.kind() == io::ErrorKind::BrokenPipe);
    }

    fn cancelled(&mut self) -> Option<Interruption> {
        let told = self.watchdog.as_ref().and_then(|watchdog| watchdog.interruption().cloned());
        told.or(self.is_broken.then_some(Interruption::Abandoned))
    }

    fn figures_due(&mut self, events: u64, now: mqttlab_units::Instant) -> Option<SimulationPace> {
        (self.last.elapsed() >= INTERVAL).then(|| self.pace(events, now))
    }

    fn last_figures(&mut self, events: u64, now: mqttlab_units::Instant) -> Option<SimulationPace> {
        Some(self.pace(events, now))
    }
}

impl Lines {
    /// How fast the simulation has been since the last figures.
    fn pace(&mut self, events: u64, now: mqttlab_units::Instant) -> SimulationPace {
        // Two figures may be given at one instant of the clock.
        let passed = self.last.elapsed().max(CLOCK_STEP);
        let simulated = now.checked_since(self.simulated).unwrap_or_default();
        let pace = SimulationPace {
            events_per_s: ((events - self.events) as f64 / passed.as_secs_f64()) as u64,
            speed: simulated.as_s_f64() / passed.as_secs_f64(),
        };
        (self.last, self.events, self.simulated) = (Instant::now(), events, now);
        pace
    }
}

const CLOCK_STEP: Duration = Duration::from_micros(1);
/// Between two lines of figures.
const INTERVAL: Duration = Duration::from_millis(250);
