//! Whether a run's numbers may be believed, as `run.json` says it.

use serde::Serialize;

/// Valid, unless there is a reason why not. Who measures adds what was seen of the measuring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Validity {
    valid: bool,
    reasons: Vec<String>,
}

impl Validity {
    /// For these reasons not; without any, valid.
    pub fn of(reasons: Vec<String>) -> Validity {
        Validity { valid: reasons.is_empty(), reasons }
    }

    /// Whether there is no reason against it.
    pub fn is_valid(&self) -> bool {
        self.valid
    }

    /// A sentence each.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }
}
