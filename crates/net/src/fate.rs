//! What became of a frame.

use mqttlab_units::Instant;

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

/// Why a frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The queue was full.
    QueueFull,
    /// Independent loss.
    RandomLoss,
    /// The channel was in its bad state.
    BurstLoss,
    /// At least one of its bits was damaged on the way.
    BitError,
    /// The last permitted attempt failed: nobody acknowledged.
    RetryLimit,
    /// The last permitted attempt failed, and the receiver was out of reach.
    Unreachable,
    /// CoDel dropped it: frames stayed in the queue for too long.
    Codel,
    /// The link was down, or went down while the frame was being sent.
    LinkDown,
    /// A translator of addresses had forgotten the connection.
    NatForgot,
    /// It exceeded the policer's rate and burst.
    Policer,
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
