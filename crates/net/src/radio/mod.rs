//! IEEE 802.11: stations that share a channel and contend for it.
//!
//! ```text
//!   Send ─► queue ─► turn (DIFS, backoff) ─► RTS ─SIFS─ CTS ─SIFS─ data ─SIFS─ ACK ─► Finished
//!                      ▲                      └────── nothing heard ──────┘ │
//!                      └─ window doubled, until the retry limit ────────────┘ └─► Arrived
//! ```
//!
//! A [`Medium`] is the distributed coordination function (IEEE 802.11-2016 §10.3) of all its stations, and the air
//! between them. Every transmission adds its power at every station that it reaches; a station senses the sum, and
//! receives a frame if that stands out of noise and all else from its first bit to its last. Collisions, hidden
//! and exposed stations, and capture are not rules, but follow from the powers.
//!
//! Contract: as [`Network`](crate::Network). `handle` with times that never run back, drain `poll` until `None`,
//! call `tick` at `next_deadline` (which may come to nothing). Every frame sent gives one [`Finished`], and if it
//! arrived, one `Arrived` before. Equal times are ordered by insertion, but ends of frames go first.
//!
//! Cost: a transmission costs two visits to each station within reach, and some pushes on a heap; nothing is
//! allocated once queues and rows of neighbours have grown. Path losses are computed when a station first sends,
//! and again at its first transmission of each refresh interval where stations move.
//!
//! What it does not model: propagation time (0.5 µs over 150 m, part of the slot), fading within a frame, rate
//! adaptation, fragments, broadcast, beacons and association, power save, other channels,
//! and the time that carrier sensing takes: a transmission is sensed as soon as it begins, except by stations whose
//! turn comes in the same instant.

mod agenda;
mod air_time;
mod backoff;
mod change;
mod channel;
mod counters;
mod energy;
mod event;
mod fading;
mod field;
mod frame_errors;
mod interference;
mod interferer;
#[cfg(test)]
mod kolmogorov;
mod level;
mod medium;
mod pair;
mod point;
mod preset;
mod receiver;
mod report;
mod shadowing;
mod spec;
mod station;
mod timing;
mod walk;
mod whereabouts;

pub use air_time::AirTime;
pub use change::MediumChange;
pub use counters::{StationCounters, Tally, Traffic};
pub use energy::EnergyProfile;
pub use event::{Finished, Input, Outcome, Output};
pub use fading::{AsFading, FadingFields, FadingLaw, FadingSpec};
pub use medium::Medium;
pub use preset::{ENERGY_PRESETS, PRESETS};
pub use report::StationReport;
pub use shadowing::ShadowingSpec;
pub use spec::{
    ChannelSpec, DutySpec, ErrorModel, InterfererSpec, MacSpec, MediumError, MediumSpec, MobilitySpec,
    Modulation, PhySpec, PlacementSpec, Position, RadioSpec,
};
pub use whereabouts::Whereabouts;
