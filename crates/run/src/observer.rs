//! Who watches a run.

use crate::{Interruption, Progress};

/// Watches a run from outside: is told how far it is, and may end it.
pub trait Observer {
    /// Something happened that a user may want to see.
    fn on_progress(&mut self, progress: &Progress);

    /// Why the run shall end now, if it shall. Asked often; must cost little.
    fn cancelled(&mut self) -> Option<Interruption>;

    /// Whether live figures are due, for a run that has no clock to know it by: how many of the `events` handled so far
    /// there were in a second of real time since the last figures; `None` when none are due.
    fn events_per_s(&mut self, events: u64) -> Option<u64> {
        let _ = events;
        None
    }
}
