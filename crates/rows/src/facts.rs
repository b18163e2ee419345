//! What a producer knows of a run and the rows do not say.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::Cause;

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
    /// What the scenario itself kept from arriving until the end; of several that explain a delivery the first counts.
    #[serde(skip)]
    pub holds: Vec<Hold>,
    /// Whether all that happened follows from the scenario, as in a simulation: nothing stands still by itself, and nobody has
    /// a log.
    #[serde(skip)]
    pub is_modelled: bool,
}

/// Something of the scenario that keeps messages from arriving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// What it is.
    pub cause: HoldCause,
    /// The clients whose messages do not come or go: indices into the layout's.
    pub clients: BTreeSet<u32>,
}

/// What keeps messages from arriving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldCause {
    /// An event that nothing ended.
    Event {
        /// What it acted on, in a word such as "server"; empty: the clients themselves.
        what: String,
        /// Their names; of clients none.
        names: Vec<String>,
        /// How that was from then on, in words before the event's name, such as "down since".
        state: String,
        /// Its name.
        event: String,
        /// Links or channels one of which must have lost frames or hold some for it to keep anything; none: it does by itself.
        lossy: Vec<String>,
    },
    /// These links drop frames for this reason, if any of them has dropped one.
    Drops {
        /// Their names.
        links: Vec<String>,
        /// The reason.
        cause: Cause,
    },
}
