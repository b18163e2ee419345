//! The clients of a run.
