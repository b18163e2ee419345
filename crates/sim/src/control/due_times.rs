//! When the last messages of each publisher were due, for the latencies of the figures and of the rules that end a run.
//!
//! It forgets: the recording, which has every message, is what metrics are made from.

use std::collections::VecDeque;

use mqttlab_units::Instant;

use crate::ids::{ClientId, IdTable};

/// The due times of each publisher's last messages.
pub(crate) struct DueTimes {
    publishers: IdTable<ClientId, Recent>,
    /// How many of a publisher's messages are remembered.
    remembered: usize,
}

#[derive(Default)]
struct Recent {
    /// The latest one last.
    due: VecDeque<Instant>,
    /// One past the sequence number of the latest one.
    end: u32,
}

impl DueTimes {
    /// For so many clients, and whether a rule that must not miss the long latencies may end the run.
    pub(crate) fn new(clients: usize, for_stopping: bool) -> DueTimes {
        let publishers = std::iter::repeat_with(Recent::default).take(clients).collect();
        DueTimes { publishers, remembered: if for_stopping { REMEMBERED_FOR_STOPPING } else { REMEMBERED } }
    }

    /// Messages are looked for that are older than the figures need.
    pub(crate) fn remember_long(&mut self) {
        self.remembered = REMEMBERED_FOR_STOPPING;
    }

    /// A publisher's next message is due.
    pub(crate) fn add(&mut self, publisher: ClientId, sequence: u32, due: Instant) {
        let recent = &mut self.publishers[publisher];
        recent.end = sequence + 1;
        recent.due.push_back(due);
        if recent.due.len() > self.remembered {
            recent.due.pop_front();
        }
    }

    /// When a message was due, if that is still remembered.
    pub(crate) fn get(&self, publisher: ClientId, sequence: u32) -> Option<Instant> {
        let recent = &self.publishers[publisher];
        let age = recent.end.saturating_sub(sequence) as usize;
        recent.due.get(recent.due.len().checked_sub(age)?).copied()
    }
}

/// The live figures do not need the latency of messages that are very old.
const REMEMBERED: usize = 256;
/// The rule that ends a run must not miss the long ones.
const REMEMBERED_FOR_STOPPING: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_messages_are_remembered_and_older_ones_forgotten() {
        let mut due = DueTimes::new(2, false);
        let count = REMEMBERED as u32 + 3;
        for sequence in 0..count {
            due.add(ClientId(1), sequence, Instant::from_ns(u64::from(sequence) * 10));
        }
        let at = |sequence| due.get(ClientId(1), sequence).map(Instant::as_ns);
        assert_eq!([at(count - 1), at(3), at(2)], [Some(u64::from(count - 1) * 10), Some(30), None]);
        assert_eq!(due.get(ClientId(0), 0), None, "it has published nothing");
    }
}
