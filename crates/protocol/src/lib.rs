//! What a protocol is to all who have to do with one: who performs it, checks a plan of it, describes its packets.
//!
//! ```text
//!   Session       what a client's life asks of any protocol (`crates/client`)
//!   HubProtocol   all that is to be known of a protocol over datagrams with a server in the middle: its settings, its
//!                 packets, its clients, its server. Whoever performs or reads such protocols knows them by this alone.
//!   StopAndWait   a session for those of them that say one thing after the other, and repeat it until it is answered.
//! ```
//!
//! MQTT, MQTT-SN and ZeroMQ have crates of their own, for each has more than this: streams, gateways, sleepers, layers.

mod hub;
mod hubs;
mod session;
mod settings;
mod stop_and_wait;

pub use hub::{
    Envelope, Head, Hub, HubKind, HubProtocol, HubSession, Member, Message, MessageHead, ToClient,
};
pub use hubs::{HUB_PROTOCOLS, HubNumber, hub_protocol};
pub use session::{Admission, Arrived, PacketId, Receipt, Session, Step, Token};
pub use settings::{Of, Setting, Settings, SettingsProblem};
pub use stop_and_wait::{Answer, Speaker, StopAndWait};
