//! Why a plan is refused.

use std::fmt;

/// Why a plan is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// Not JSON, not this schema, or an unknown field.
    Syntax(String),
    /// A field has a value that cannot be run.
    Value {
        /// Where, as a JSON path.
        place: String,
        /// What is wrong, with value and limit.
        problem: String,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Syntax(problem) => write!(f, "the plan cannot be read: {problem}"),
            PlanError::Value { place, problem } => write!(f, "`{place}` {problem}"),
        }
    }
}

impl std::error::Error for PlanError {}

/// A condition that a plan must fulfil at this place.
pub(crate) fn require(holds: bool, place: &str, problem: impl FnOnce() -> String) -> Result<(), PlanError> {
    if holds { Ok(()) } else { Err(PlanError::Value { place: place.to_owned(), problem: problem() }) }
}
