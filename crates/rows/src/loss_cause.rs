//! What the causes of lost messages have in common, and which of them is that of a datagram.

use crate::rows::LossCause;

impl From<mqttlab_net::Cause> for LossCause {
    fn from(cause: mqttlab_net::Cause) -> LossCause {
        match cause {
            mqttlab_net::Cause::QueueFull | mqttlab_net::Cause::Codel => LossCause::LinkQueueFull,
            mqttlab_net::Cause::Policer => LossCause::Policer,
            mqttlab_net::Cause::LinkDown => LossCause::LinkDown,
            mqttlab_net::Cause::RandomLoss
            | mqttlab_net::Cause::BurstLoss
            | mqttlab_net::Cause::BitError
            | mqttlab_net::Cause::RetryLimit
            | mqttlab_net::Cause::Unreachable
            // Datagrams are not for a translator of addresses.
            | mqttlab_net::Cause::NatForgot => LossCause::LinkLoss,
        }
    }
}

impl LossCause {
    /// Whether a link dropped the only datagram that carried it.
    pub fn is_dropped_by_link(self) -> bool {
        use LossCause::{LinkDown, LinkLoss, LinkQueueFull, Policer};
        matches!(self, LinkQueueFull | Policer | LinkDown | LinkLoss)
    }

    /// Whether a server gave the message up for want of room.
    pub fn is_dropped_by_server(self) -> bool {
        matches!(self, LossCause::QueueFull | LossCause::SocketFull | LossCause::OverInflight)
    }
}
