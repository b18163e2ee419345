//! What is meant: a scenario as it is written becomes the plan of a run.
//!
//! ```text
//! text ─► document (TOML) ─► tree ─► set (--set) ─► Scenario ─► checks ─► routes, expansion ─► Plan
//!                                        problems: file, line, column, place, what is wrong
//! ```
//!
//! Each table of a scenario is declared once, by [`mqttlab_fields::fields!`]: here, or in the crate where it acts.
//!
//! What it does not do: run anything, and keep what a run needs at its time. That is `crates/plan`.

pub mod document;
pub mod events;
pub mod files;
pub mod host;
pub mod networks;
pub mod options;
pub mod overlay;
pub mod phases;
pub mod routes;
pub mod set;
pub mod source;
pub mod threshold;
