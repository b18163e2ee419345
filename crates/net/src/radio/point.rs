//! Places of stations.

/// A point of the plane, in metres.
pub(crate) type Point = [f64; 2];
