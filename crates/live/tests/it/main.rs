//! The integration tests of the testbed, as one program.

mod emulation;
mod fleet_delivery;
mod fleet_faults;
mod fleet_packets;
mod fleet_support;
mod support;
mod tcp_knobs;
