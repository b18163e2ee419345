//! When things happen: the clock with its agenda, the stages of a run, and what ends a stage early.

pub(crate) mod conductor;
pub(crate) mod due_times;
pub(crate) mod event;
pub(crate) mod event_queue;
pub(crate) mod limits;
pub(crate) mod steady_state;
