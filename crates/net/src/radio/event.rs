//! What a medium is told and tells.

use mqttlab_units::{Bytes, Instant};

use crate::fate::Cause;

/// What a medium is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A station has an IP packet for another.
    Send {
        /// The caller's token.
        frame: u64,
        /// The sending station.
        from: usize,
        /// The receiving station.
        to: usize,
        /// Size of the IP packet.
        size: Bytes,
    },
}

/// What a medium tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A frame is at its receiver, for the first time.
    Arrived {
        /// The caller's token.
        frame: u64,
        /// When it came to its sender.
        entered: Instant,
        /// When the first attempt began.
        start: Instant,
        /// When its last bit arrived.
        at: Instant,
    },
    /// The sender is done with a frame, which may be some time after it arrived.
    Finished(Finished),
}

/// A frame that a station is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The caller's token.
    pub frame: u64,
    /// The sending station.
    pub from: usize,
    /// The receiving station.
    pub to: usize,
    /// When it came to the sending station.
    pub entered: Instant,
    /// When the first attempt began; `None` where there was none.
    pub start: Option<Instant>,
    /// When the last transmission of the frame itself ended; `None` where no attempt got beyond RTS.
    pub sent: Option<Instant>,
    /// How often the station gained access for it.
    pub attempts: u32,
    /// MAC bytes of all these attempts: data and RTS frames.
    pub air_bytes: Bytes,
    /// What became of it.
    pub fate: Outcome,
}

/// What became of a frame.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It arrived, and the sender may or may not know.
    Delivered {
        /// When.
        at: Instant,
    },
    /// It did not.
    Dropped {
        /// [`Cause::QueueFull`], [`Cause::RetryLimit`], or [`Cause::Unreachable`] where its receiver could not have
        /// heard the last attempt even in silence.
        cause: Cause,
    },
}
