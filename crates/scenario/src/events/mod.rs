//! Events of a scenario: what changes while a run goes on, when, and for how long.

mod action;
mod changed_link;
mod ends;
mod event;
mod times;
mod words;

pub use action::{ACTIONS, Action, Target};
pub use changed_link::ChangedLink;
pub use ends::Undone;
pub use event::{ChangedPublish, Event, Publication, Queued, WhichWay};
pub use times::{EventTimes, Times, WaitedFor};
