//! Networks as a scenario writes them: links, named networks, TCP.

mod between;
mod columns;
mod link;
mod models;
mod radio;
mod tcp;
mod trace;

pub use between::{LinkUse, Nat, NetworkBetween, Trunk};
pub use columns::Column;
pub use link::{LOSSES, Link, Queue};
pub use models::{NetworkModel, NetworkModels, Placed, Placement, Way};
pub use radio::{Interferer, MEDIUM, Mobility, Radio};
pub use tcp::{HostTcp, TcpProfile, TcpProfiles};
pub use trace::{After, Trace, TraceFile, is_shipped, read_trace, shipped};
