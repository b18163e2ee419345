//! A client's TCP connection: its socket, what waits to be written, what was read of a packet.

use std::os::fd::OwnedFd;

use mqttlab_client::Connection;

use super::incoming::Incoming;
use super::order::ReceivedInOrder;
use super::outbox::Outbox;

/// What the fleet keeps for one client.
pub(super) struct StreamConnection {
    /// The client's place among its worker's.
    pub(super) slot: u32,
    /// From the beginning of opening to the end.
    pub(super) socket: Option<OwnedFd>,
    pub(super) outbox: Outbox,
    pub(super) incoming: Incoming,
    /// What it has received of messages too small to say who they are. It outlives connections.
    pub(super) order: ReceivedInOrder,
}

/// Topic and payload of a message that is repeated.
#[derive(Default)]
pub(super) struct RelayedMessage {
    pub(super) topic: String,
    pub(super) payload: Vec<u8>,
}

impl Connection for StreamConnection {
    type Relayed = RelayedMessage;
}

impl StreamConnection {
    pub(super) fn new(slot: u32) -> StreamConnection {
        StreamConnection {
            slot,
            socket: None,
            outbox: Outbox::default(),
            incoming: Incoming::default(),
            order: ReceivedInOrder::default(),
        }
    }
}
