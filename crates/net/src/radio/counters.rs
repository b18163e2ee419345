//! What stations have done so far.

use super::air_time::AirTime;
use super::timing::FrameKind;

/// What one station has done so far. Bytes are those of MAC frames, header and check sequence included, without
/// preambles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationCounters {
    /// Sent, every attempt.
    pub sent: Traffic,
    /// Received without error, for this station, copies of data frames included.
    pub received: Traffic,
    /// Received without error, for another station.
    pub overheard: Traffic,
    /// Frames of which the preamble was received and the rest was spoilt by other transmissions.
    pub collisions: u64,
    /// Frames of which the preamble was received, but which were too weak for their rate.
    pub weak: u64,
    /// Frames lost in the channel's bad state.
    pub channel_errors: u64,
    /// Data frames that had been received before.
    pub duplicates: u64,
    /// Attempts of this station that were answered by neither CTS nor ACK.
    pub failures: u64,
    /// Attempts after a frame's first.
    pub retries: u64,
    /// Frames acknowledged, or known to have arrived when the station gave up on them.
    pub delivered: u64,
    /// Frames dropped at the retry limit.
    pub dropped_retry_limit: u64,
    /// Frames dropped at the retry limit, their receiver being out of reach.
    pub dropped_unreachable: u64,
    /// Frames dropped because the queue was full.
    pub dropped_queue: u64,
    /// Most frames that waited or were being sent at once.
    pub queue_frames_max: u32,
    /// What the radio did with its time.
    pub time: AirTime,
}

/// Frames by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Data.
    pub data: Tally,
    /// Acknowledgements.
    pub ack: Tally,
    /// Requests to send.
    pub rts: Tally,
    /// Clear to send.
    pub cts: Tally,
}

/// Frames and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub frames: u64,
    /// Their MAC bytes.
    pub bytes: u64,
}

impl Traffic {
    /// All kinds together.
    pub fn total(&self) -> Tally {
        let kinds = [self.data, self.ack, self.rts, self.cts];
        Tally {
            frames: kinds.iter().map(|tally| tally.frames).sum(),
            bytes: kinds.iter().map(|tally| tally.bytes).sum(),
        }
    }

    pub(crate) fn count(&mut self, kind: FrameKind, bytes: u32) {
        let tally = match kind {
            FrameKind::Data => &mut self.data,
            FrameKind::Ack => &mut self.ack,
            FrameKind::Rts => &mut self.rts,
            FrameKind::Cts => &mut self.cts,
        };
        tally.frames += 1;
        tally.bytes += u64::from(bytes);
    }
}
