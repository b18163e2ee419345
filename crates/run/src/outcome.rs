//! How a run ended, and why.

use std::fmt;

use crate::{Interruption, Progress, RunVerdict};

/// How a run ended.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// As planned.
    Complete,
    /// Cut short; what was recorded is kept and marked.
    Incomplete(Failure),
    /// Nothing was measured.
    Failed(Failure),
}

/// Why a run did not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It could not be set up: what was missing.
    Setup(String),
    /// It ended before its time.
    Interrupted(Interruption),
    /// Its recording could not be finished.
    Recording {
        /// What had ended it before, if anything had.
        interruption: Option<Interruption>,
        /// What went wrong, and what helps.
        problem: String,
    },
}

impl RunOutcome {
    /// Of a run that went on to its end, or was interrupted.
    pub fn of(result: Result<(), Interruption>) -> RunOutcome {
        match result {
            Ok(()) => RunOutcome::Complete,
            Err(interruption) => RunOutcome::Incomplete(Failure::Interrupted(interruption)),
        }
    }

    /// Of such a run whose recording could not be finished.
    pub fn unfinished(result: Result<(), Interruption>, problem: String) -> RunOutcome {
        RunOutcome::Incomplete(Failure::Recording { interruption: result.err(), problem })
    }

    /// In a word.
    pub fn verdict(&self) -> RunVerdict {
        match self {
            RunOutcome::Complete => RunVerdict::Complete,
            RunOutcome::Incomplete(_) => RunVerdict::Incomplete,
            RunOutcome::Failed(_) => RunVerdict::Failed,
        }
    }

    /// Why it did not complete.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            RunOutcome::Complete => None,
            RunOutcome::Incomplete(failure) | RunOutcome::Failed(failure) => Some(failure),
        }
    }

    /// The same in a sentence.
    pub fn reason(&self) -> Option<String> {
        self.failure().map(ToString::to_string)
    }

    /// The last progress line of a run that leaves its recording there.
    pub fn done(&self, directory: &str) -> Progress {
        Progress::Done { verdict: self.verdict(), reason: self.reason(), directory: directory.to_owned() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Setup(problem) => f.write_str(problem),
            Failure::Interrupted(interruption) => interruption.fmt(f),
            Failure::Recording { interruption, problem } => {
                // What came first is said first: the second is often its consequence.
                if let Some(interruption) = interruption {
                    write!(f, "{interruption}; ")?;
                }
                write!(f, "the recording could not be finished: {problem}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_says_how_and_why() {
        let interrupted = || Err(Interruption::Signal("SIGTERM"));
        let table = [
            (RunOutcome::of(Ok(())), RunVerdict::Complete, None),
            (RunOutcome::of(interrupted()), RunVerdict::Incomplete, Some("the run was stopped by SIGTERM")),
            (
                RunOutcome::unfinished(interrupted(), "no space left".into()),
                RunVerdict::Incomplete,
                Some("the run was stopped by SIGTERM; the recording could not be finished: no space left"),
            ),
            (
                RunOutcome::unfinished(Ok(()), "no space left".into()),
                RunVerdict::Incomplete,
                Some("the recording could not be finished: no space left"),
            ),
            (
                RunOutcome::Failed(Failure::Setup("no /dev/net/tun".into())),
                RunVerdict::Failed,
                Some("no /dev/net/tun"),
            ),
        ];
        for (outcome, verdict, reason) in table {
            assert_eq!((outcome.verdict(), outcome.reason().as_deref()), (verdict, reason), "{outcome:?}");
        }
    }
}
