//! What became of a frame.

use mqttlab_units::{Instant, words};

/// What became of a frame on one link.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Delivered(Delivery),
    /// It does not.
    Dropped {
        /// Why.
        cause: Cause,
        /// The time it used on the link, where it used any before it was lost.
        air: Option<(Instant, Instant)>,
    },
}

/// When a frame that arrives does so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its first bit goes out.
    pub start: Instant,
    /// Its last bit has gone out.
    pub sent: Instant,
    /// Its last bit arrives.
    pub at: Instant,
    /// The bit that was flipped, counted from the first bit of the IP packet.
    pub corrupted_bit: Option<u64>,
    /// A copy that the link made arrives then.
    pub duplicate_at: Option<Instant>,
    /// The link has marked it instead of dropping it: congestion experienced (RFC 3168 §5).
    pub is_marked: bool,
}

words! {
    /// Why a frame was dropped or damaged. What `refused_by` names lies before the transmitter: the frame did not use the link.
    pub enum Cause {
        /// The link's queue was full.
        QueueFull = "queue_full" { frame: "its queue was full", refused_by: "queue" },
        /// Independent random loss.
        RandomLoss = "random_loss" { frame: "random loss" },
        /// The channel was in its bad state.
        BurstLoss = "burst_loss" { frame: "burst loss" },
        /// At least one of its bits was damaged on the way.
        BitError = "bit_error" { frame: "bit error" },
        /// The last permitted attempt failed: nobody acknowledged.
        RetryLimit = "retry_limit" { frame: "the last retry failed" },
        /// The last permitted attempt failed, and the receiver was out of reach.
        Unreachable = "unreachable" { frame: "out of reach" },
        /// The link was down, or went down while the frame was being sent.
        LinkDown = "link_down" { frame: "the link was down" },
        /// A translator of addresses had forgotten the connection.
        NatForgot = "nat_forgot" { frame: "the NAT had forgotten the connection" },
        /// CoDel dropped it: frames stayed in the queue for too long.
        Codel = "codel" { frame: "CoDel kept its queue short", refused_by: "queue" },
        /// It exceeded the policer's rate and burst.
        Policer = "policer" { frame: "it exceeded the policer's rate", refused_by: "policer" },
    }
}

impl Fate {
    /// When it arrives, if it does.
    pub fn delivered_at(&self) -> Option<Instant> {
        match self {
            Fate::Delivered(delivery) => Some(delivery.at),
            Fate::Dropped { .. } => None,
        }
    }
}
