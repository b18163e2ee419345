//! When a client's messages are due: its publications side by side, counted together.
//!
//! A message has two numbers. Its place in its publication tells its topic, its number among all messages of the client tells
//! it apart. The latter follows the order of hand-over, so that of two messages the later one has the higher number.

use mqttlab_plan::Arrivals;
use mqttlab_units::Instant;

/// The messages of a client that are not yet due.
pub(crate) struct Schedule {
    /// By publication.
    arrivals: Vec<Arrivals>,
    sequence: u64,
}

/// A message that is due.
#[derive(Clone, Copy)]
pub(crate) struct DueMessage {
    /// What it is, by its number among what the group's messages may be: that of its publication, where no event has changed
    /// it.
    pub(crate) content: usize,
    pub(crate) intended: Instant,
    /// Its place in its publication.
    pub(crate) index: u64,
    /// Its number among all messages of the client.
    pub(crate) sequence: u64,
}

impl Schedule {
    /// `None` where no message is due ever.
    pub(crate) fn of(arrivals: Vec<Arrivals>) -> Option<Schedule> {
        let schedule = Schedule { arrivals, sequence: 0 };
        (!schedule.is_over()).then_some(schedule)
    }

    /// Whether no message is left.
    pub(crate) fn is_over(&self) -> bool {
        self.arrivals.iter().all(|arrivals| arrivals.peek().is_none())
    }

    /// When the next message is due, and of which publication it is. Of a back-to-back publication for whose messages there is no
    /// room, when publishing ends.
    pub(crate) fn next(&self, now: Instant, has_room: impl Fn(usize) -> bool) -> Option<(Instant, usize)> {
        let due = |(number, arrivals): (usize, &Arrivals)| {
            let due = arrivals.peek()?;
            let waits = arrivals.waits_for_room() && !has_room(arrivals.content(now).unwrap_or(number));
            Some((if waits { arrivals.until() } else { due }, number))
        };
        self.arrivals.iter().enumerate().filter_map(due).min()
    }

    /// The next message of a publication, if it is due at `now`.
    pub(crate) fn take(&mut self, publication: usize, now: Instant) -> Option<DueMessage> {
        let (intended, index) = self.arrivals[publication].take(now)?;
        self.sequence += 1;
        let content = self.arrivals[publication].content(intended).unwrap_or(publication);
        Some(DueMessage { content, intended, index, sequence: self.sequence - 1 })
    }

    /// The next message that is due at `now` whether or not there is room.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<DueMessage> {
        let due = |(number, arrivals): (usize, &Arrivals)| {
            Some((arrivals.peek().filter(|due| *due <= now && !arrivals.waits_for_room())?, number))
        };
        let (_, publication) = self.arrivals.iter().enumerate().filter_map(due).min()?;
        self.take(publication, now)
    }
}
