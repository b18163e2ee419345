//! Who watches a run.

use mqttlab_units::Instant;

use crate::{Interruption, Progress};

/// Watches a run from outside: is told how far it is, and may end it.
pub trait RunObserver {
    /// Something happened that a user may want to see.
    fn on_progress(&mut self, progress: &Progress);

    /// Why the run shall end now, if it shall. Asked often; must cost little.
    fn cancelled(&mut self) -> Option<Interruption>;

    /// Whether figures are due, for a run that has no clock to know it by: how fast it has been since the last ones, of
    /// `events` handled and the run time `now`; `None` when none are due.
    fn figures_due(&mut self, events: u64, now: Instant) -> Option<SimulationPace> {
        let _ = (events, now);
        None
    }

    /// The same at the end of such a run, whose last figures have the counts of all of it; `None` when nobody reads them.
    fn last_figures(&mut self, events: u64, now: Instant) -> Option<SimulationPace> {
        let _ = (events, now);
        None
    }
}

/// How fast a simulation goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulationPace {
    /// Events in a second of real time.
    pub events_per_s: u64,
    /// Simulated seconds in a second of real time.
    pub speed: f64,
}
