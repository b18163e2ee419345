//! What is counted, and what the counts mean.

mod distribution;
mod rows;
mod table;
mod tally;

pub use distribution::{Distribution, EXACT_MAX, Summary, interpolate};
pub use rows::{rows, towards};
pub use table::{METRICS, Metric, Reading, Unit, Value};
pub use tally::{Exchange, Extent, PublishBytes, Tally};
