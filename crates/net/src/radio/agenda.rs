//! What will happen on a medium, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use mqttlab_units::Instant;

/// Events to come, each of one station or interferer. Ends of frames go before all else that happens at the same time, so that a
/// frame does not interfere with one that begins when it ends; other equal times keep the order of insertion.
#[derive(Clone, Debug, Default)]
pub(crate) struct RadioAgenda {
    entries: BinaryHeap<Reverse<AgendaEntry>>,
    made: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AgendaEntry {
    pub(crate) at: Instant,
    order: u64,
    pub(crate) station: u32,
    pub(crate) event: RadioEvent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RadioEvent {
    /// The station's transmission ends.
    End,
    /// Its turn may have come.
    Turn,
    /// A short interframe space has passed.
    Respond,
    /// An answer should have come.
    Timeout,
    /// What is heard of an interferer may change; the number is the interferer's.
    Interference,
}

impl RadioAgenda {
    pub(crate) fn add(&mut self, at: Instant, station: u32, event: RadioEvent) {
        // The highest bit of the order puts whatever is no end behind all ends of the same instant.
        let late = if event == RadioEvent::End { 0 } else { 1 << 63 };
        self.entries.push(Reverse(AgendaEntry { at, order: self.made | late, station, event }));
        self.made += 1;
    }

    /// The next event, if it is due.
    pub(crate) fn take(&mut self, now: Instant) -> Option<AgendaEntry> {
        self.next().filter(|at| *at <= now)?;
        self.entries.pop().map(|Reverse(entry)| entry)
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.entries.peek().map(|Reverse(entry)| entry.at)
    }
}
