//! The integration tests of links and of the radio channel, as one program.

mod changes;
mod disciplines;
mod links;
mod marks;
mod nat;
mod policer;
mod queues;
mod radio;
