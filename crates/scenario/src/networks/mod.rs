//! Networks as a scenario writes them: links, named networks, TCP.

mod link;
mod tcp;

pub use link::{Link, Queue};
pub use tcp::{HostTcp, TcpProfile, TcpProfiles};
