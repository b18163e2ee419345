//! Which messages stay rows of their own: those whose names hash to enough zeros.
//!
//! The choice depends on names and counts alone, so that it is the same whenever rows were added up.

use mqttlab_rows::{Layout, Sent, Unsent};
use serde::{Deserialize, Serialize};

/// Rows of messages by the number of zeros that their names' hashes end with.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    rows: Vec<u64>,
}

impl Sample {
    /// A message counts as many rows as it is to have receivers.
    pub(crate) fn count_sent(&mut self, layout: &Layout, sent: &Sent) {
        let receivers = layout.receivers_of(sent.topic, sent.publisher).len() as u64
            + u64::from(layout.shares_of(sent.topic));
        self.count(zeros(sent.publisher, sent.sequence), receivers.max(1));
    }

    pub(crate) fn count_unsent(&mut self, unsent: &Unsent) {
        self.count(zeros(unsent.publisher, unsent.sequence), 1);
    }

    fn count(&mut self, zeros: u32, rows: u64) {
        self.rows.resize(self.rows.len().max(zeros as usize + 1), 0);
        self.rows[zeros as usize] += rows;
    }

    /// How many zeros a name must have, so that no more rows than that are of the sample.
    pub(crate) fn least_zeros(&self, rows_most: u64) -> u32 {
        let mut rows: u64 = self.rows.iter().sum();
        let mut least = 0;
        while rows > rows_most && least < self.rows.len() {
            rows -= self.rows[least];
            least += 1;
        }
        least as u32
    }
}

/// The zeros that the hash of a message's name ends with.
pub(crate) fn zeros(publisher: u32, sequence: u32) -> u32 {
    // The finalizer of SplitMix64: every bit of the name changes half of the bits.
    let mut word = u64::from(publisher) << 32 | u64::from(sequence);
    word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (word ^ word >> 31).trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_halved_until_it_is_small_enough() {
        let mut sample = Sample::default();
        (0..100_000).for_each(|sequence| sample.count(zeros(3, sequence), 1));
        assert_eq!(sample.least_zeros(100_000), 0);
        assert_eq!(sample.least_zeros(60_000), 1, "half of the names have a zero");
        assert_eq!(sample.least_zeros(1_700), 6, "one name in 64 has six");
        assert_eq!(Sample::default().least_zeros(0), 0);
    }
}
