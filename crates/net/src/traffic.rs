//! What a link or a medium has carried so far, for whoever watches a run go on.
//!
//! What it does not know: rates. Whoever looks twice can tell them.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

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

/// Dropped frames by cause. As text it has the causes that occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops([u64; Cause::ALL.len()]);

impl Drops {
    /// So many frames more were dropped for this cause.
    pub fn note(&mut self, cause: Cause, frames: u64) {
        self.0[cause as usize] += frames;
    }

    /// Those of one cause.
    pub fn of(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Serialize for Drops {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let met = Cause::ALL.iter().map(|&cause| (cause, self.of(cause)));
        serializer.collect_map(met.filter(|(_, frames)| *frames > 0))
    }
}

impl<'de> Deserialize<'de> for Drops {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Drops, D::Error> {
        let met: BTreeMap<String, u64> = BTreeMap::deserialize(deserializer)?;
        Ok(Drops(std::array::from_fn(|number| {
            met.get(Cause::ALL[number].as_str()).copied().unwrap_or_default()
        })))
    }
}
