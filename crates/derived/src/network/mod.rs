//! What the frames sum to: of the run, of each direction, link, group and connection, and of slices of time.

pub(crate) mod frame_rows;
pub(crate) mod frame_sums;
pub(crate) mod frames;
pub(crate) mod links;
pub(crate) mod scopes;
