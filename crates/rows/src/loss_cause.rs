//! What the causes of lost messages have in common, and which of them is that of a datagram.

use mqttlab_net::Cause;

use crate::rows::LossCause;

impl LossCause {
    /// Of a message whose only datagram a link dropped for this reason, or damaged.
    pub fn of_datagram(cause: Cause) -> LossCause {
        match cause {
            Cause::QueueFull | Cause::Codel => LossCause::LinkQueueFull,
            Cause::Policer => LossCause::Policer,
            Cause::LinkDown => LossCause::LinkDown,
            Cause::RandomLoss
            | Cause::BurstLoss
            | Cause::BitError
            | Cause::RetryLimit
            | Cause::Unreachable
            // Datagrams are not for a translator of addresses.
            | Cause::NatForgot => LossCause::LinkLoss,
        }
    }

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
