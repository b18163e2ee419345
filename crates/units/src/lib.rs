//! Quantities: instants, durations, bytes, bit rates, ratios, places, sets of positions, random streams derived by
//! name, words, and numbers counted by size.
//!
//! Every other crate speaks in these types, so that a length of time can never be added to a size, and a
//! probability is a fraction of integers that two languages print alike. `k` is 1000 everywhere.
//! Subtracting a later instant from an earlier one is our bug and panics; it never takes an absolute value.
//!
//! What it does not model: time zones, clocks. An [`Instant`] counts from the start of a run.

mod calendar;
mod dice;
mod histogram;
mod place;
mod quantity;
mod range_set;
mod ratio;
mod time;
mod words;

pub use calendar::{rfc3339, unix_ns_of_date};
pub use dice::{Dice, Seed};
pub use histogram::Histogram;
pub use place::GeoPoint;
pub use quantity::{BitRate, Bytes};
pub use range_set::RangeSet;
pub use ratio::{Ratio, RatioError};
pub use time::{Duration, Instant, OptionalInstant};
pub use words::{Entry, Word};
