//! What a link or a medium has carried so far, for whoever watches a run go on.
//!
//! What it does not know: rates. Whoever looks twice can tell them.

use crate::fate::Cause;

/// What a link, or a medium, has done so far, and what waits there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkTraffic {
    /// Frames that arrive at its end, copies not counted.
    pub frames: u64,
    /// Their bytes as the link counts them; of a medium, all MAC bytes on the air, repetitions and answers included.
    pub bytes: u64,
    /// Frames that were dropped.
    pub drops: Drops,
    /// Frames that were marked instead of dropped; they arrive.
    pub marked: u64,
    /// Frames that wait for the transmitter or are being sent, of all stations of a medium.
    pub queue_frames: u64,
    /// Their bytes.
    pub queue_bytes: u64,
}

/// Dropped frames by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// The queue was full.
    pub queue_full: u64,
    /// Independent loss.
    pub random_loss: u64,
    /// The channel was in its bad state.
    pub burst_loss: u64,
    /// At least one bit was damaged.
    pub bit_error: u64,
    /// The last permitted attempt failed.
    pub retry_limit: u64,
    /// The same, and the receiver was out of reach.
    pub unreachable: u64,
    /// CoDel dropped it.
    pub codel: u64,
    /// The link was down.
    pub link_down: u64,
    /// A translator of addresses had forgotten the connection.
    pub nat_forgot: u64,
    /// They exceeded a policer.
    pub policer: u64,
}

impl Drops {
    /// So many frames more were dropped for this cause.
    pub fn note(&mut self, cause: Cause, frames: u64) {
        let count = match cause {
            Cause::QueueFull => &mut self.queue_full,
            Cause::RandomLoss => &mut self.random_loss,
            Cause::BurstLoss => &mut self.burst_loss,
            Cause::BitError => &mut self.bit_error,
            Cause::RetryLimit => &mut self.retry_limit,
            Cause::Unreachable => &mut self.unreachable,
            Cause::Codel => &mut self.codel,
            Cause::LinkDown => &mut self.link_down,
            Cause::NatForgot => &mut self.nat_forgot,
            Cause::Policer => &mut self.policer,
        };
        *count += frames;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        let Drops {
            queue_full,
            random_loss,
            burst_loss,
            bit_error,
            retry_limit,
            unreachable,
            codel,
            link_down,
            nat_forgot,
            policer,
        } = self;
        queue_full
            + random_loss
            + burst_loss
            + bit_error
            + retry_limit
            + unreachable
            + codel
            + link_down
            + nat_forgot
            + policer
    }
}
