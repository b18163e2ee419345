//! The life of a run, whoever performs it: its phases, who watches it, and how it ends.
//!
//! ```text
//!   connect ──► notice ──► warm-up ──► measurement ──► cool-down ──► disconnect ──► finalise
//!     └────────────┴─────────── interruption ─────────────┴──► what was recorded is kept, and marked
//! ```
//!
//! The simulator and the live testbed step one [`RunConductor`], each by its own clock; what they say goes to a [`RunObserver`];
//! and both end with a [`RunOutcome`]. An import has no phases, but is watched and ends in the same way.
//!
//! What it does not model: what happens within a phase, and whether a number may be believed (who measures says that).

mod announcer;
mod conductor;
mod figures;
mod holds;
mod interruption;
mod observer;
mod outcome;
mod progress;
mod stations;
mod validity;

pub use announcer::{Announcer, Warnings};
pub use conductor::{FAREWELL, NOTICE, RunConductor, RunStage, RunStanding, SETTLE, Schedule};
pub use figures::{
    Figures, GroupFigures, LINKS_MAX, LinkFigures, MESSAGES_MAX, MessageFigures, RecentLatency,
    ServerFigures, Sketch, Watched,
};
pub use holds::Holds;
pub use interruption::Interruption;
pub use observer::{RunObserver, SimulationPace};
pub use outcome::{Failure, RunOutcome};
pub use progress::{Progress, RunPhase, RunVerdict};
pub use stations::Stations;
pub use validity::Validity;
