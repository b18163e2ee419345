//! Who watches a simulation, and how it ends.

use mqttlab_plan::{Progress, Verdict};

/// Who watches a run.
pub trait Audience {
    /// Something to be passed on.
    fn hear(&mut self, progress: &Progress);
    /// Something to be read before the numbers are trusted.
    fn warn(&mut self, text: String);
    /// Everything that was warned of.
    fn warnings(&self) -> Vec<String>;
    /// Why the run shall end now, if it shall.
    fn interruption(&mut self) -> Option<String>;
    /// Whether it is time for figures; then how many events were handled in a second of processor time.
    fn wants_figures(&mut self, events: u64) -> Option<u64>;
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason, when it did not complete.
    pub reason: Option<String>,
}
