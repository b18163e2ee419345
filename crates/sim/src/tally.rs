//! What has been counted in a simulation so far: for the figures of a run that goes on, and for what ends its phases.

/// What has been counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunTally {
    /// Clients whose connections were accepted.
    pub(crate) connected: i32,
    /// Clients that are connected and have their subscriptions.
    pub(crate) ready: i32,
    /// Clients that have given up.
    pub(crate) failed: u32,
    /// Clients that have nothing left to do.
    pub(crate) gone: u32,
    /// Messages that were due.
    pub(crate) offered: u64,
    /// Messages that a session took.
    pub(crate) sent: u64,
    /// First deliveries.
    pub(crate) delivered: u64,
    /// Deliveries that what was sent should cause.
    pub(crate) expected: u64,
    /// Messages of QoS 1 and 2 whose last acknowledgement is not there.
    pub(crate) unacknowledged: i64,
    /// Connections lost.
    pub(crate) disconnects: u64,
}

impl RunTally {
    /// Whether nothing is outstanding.
    pub(crate) fn is_settled(&self) -> bool {
        self.delivered >= self.expected && self.unacknowledged <= 0
    }
}
