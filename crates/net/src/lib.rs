//! What happens to a frame: links, channels, radio.

mod spec;

pub use spec::{DelayLaw, DelaySpec, LinkSpec, LossPlace, LossSpec, QueueSpec, ReorderSpec};
