//! What may happen to a link while it is in use, as a plan says it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::LinkSpec;

/// A change of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LinkChange {
    /// It carries nothing.
    Down {
        /// What becomes of frames that wait.
        queue: DownQueue,
    },
    /// It carries frames again.
    Up,
    /// It has other properties from now on; each link keeps its name, and a link that is down stays down.
    Spec {
        /// All properties, the unchanged ones as well.
        spec: Box<LinkSpec>,
    },
}

/// What becomes of frames that wait when a link goes down, and of those that come while it is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DownQueue {
    /// They wait, as far as the queue has room.
    Keep,
    /// They are dropped.
    Drop,
}
