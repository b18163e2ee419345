//! What is counted, and what the counts mean.

mod distribution;
mod table;
mod tally;

pub use distribution::{Distribution, EXACT_MAX, SampleSummary, interpolate};
pub use table::{METRICS, Metric, MetricReading, MetricValue, Unit};
pub use tally::{Exchange, MetricTally, PublishBytes, SizeExtent};
