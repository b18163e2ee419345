//! What is said about a run beside its rows: `run.json`, or `incomplete.json` when it ended before its end.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// What the producer knows about a run and the rows do not say.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunFacts {
    /// Who made the recording: `live`, `simulator` or `import`. For the reader's eyes; no metric asks.
    pub producer: String,
    /// The run's seed.
    pub seed: u64,
    /// Versions by name: the engine, the broker, the kernel.
    pub versions: BTreeMap<String, String>,
    /// What to read before trusting the numbers.
    pub warnings: Vec<String>,
    /// How late the emulator and the senders were, and whether that spoils the run.
    pub validity: Value,
    /// Anything else worth keeping: network models in force, TCP settings, counters of stations.
    pub details: BTreeMap<String, Value>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As planned.
    Complete,
    /// Before its end, and why.
    Incomplete(String),
}
