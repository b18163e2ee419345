//! What a producer knows of a run and the rows do not say.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// What the producer knows about a run and the rows do not say.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunFacts {
    /// Versions by name: the engine, the broker, the kernel.
    pub versions: BTreeMap<String, String>,
    /// What to read before trusting the numbers.
    pub warnings: Vec<String>,
    /// How late the emulator and the senders were, and whether that spoils the run.
    pub validity: Value,
    /// Anything else worth keeping: network models in force, TCP settings, counters of stations.
    pub details: BTreeMap<String, Value>,
}
