//! What clients count. Many share one set of books: a worker's, or the whole run's.

/// Counts of clients and of their messages. A shell may settle them with its own figures and begin anew, so that all but
/// totals are changes and may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Clients that the other side has accepted.
    pub connected: i32,
    /// Clients that are connected and subscribed.
    pub ready: i32,
    /// Clients that gave up for good: refused, or no reconnect.
    pub failed: u32,
    /// Clients that have nothing left to do.
    pub gone: u32,
    /// Clients whose schedule holds messages that they have not offered.
    pub publishing: i32,
    /// Messages that were due.
    pub offered: u64,
    /// Messages handed to sessions.
    pub sent: u64,
    /// Deliveries that the messages sent should cause.
    pub expected: u64,
    /// Deliveries, repetitions not counted.
    pub delivered: u64,
    /// Deliveries of what no client published: wills, and messages from elsewhere.
    pub foreign: u64,
    /// Messages of QoS 1 and 2 handed to sessions whose last acknowledgement is missing.
    pub unacknowledged: i64,
    /// Connections lost.
    pub disconnects: u64,
}

impl Books {
    /// Whether every delivery and every acknowledgement that is expected has come.
    pub fn is_settled(&self) -> bool {
        self.delivered >= self.expected && self.unacknowledged <= 0
    }
}
