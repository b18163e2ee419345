//! Two messages of a flow of which the second came next, after a connection had ended.

use mqttlab_units::Instant;
use serde::{Deserialize, Serialize};

/// A message that reached a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Arrival {
    pub(crate) sequence: u32,
    pub(crate) sent_ns: u64,
    pub(crate) received_ns: u64,
    /// The QoS of the delivery.
    pub(crate) qos: u8,
}

/// Two messages of which the second came next, after a connection had ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Turn {
    /// `None`: nothing had come before.
    pub(crate) before: Option<Arrival>,
    pub(crate) after: Arrival,
}

impl Turn {
    /// Whether a message lies between the two.
    pub(crate) fn holds(&self, sequence: u32) -> bool {
        self.before.is_none_or(|before| before.sequence < sequence) && sequence < self.after.sequence
    }

    /// When the two were sent; from the start on where nothing came before.
    pub(crate) fn sent(&self) -> (Instant, Instant) {
        let before = self.before.map_or(Instant::ZERO, |before| Instant::from_ns(before.sent_ns));
        (before, Instant::from_ns(self.after.sent_ns))
    }

    /// When the two were received; from the start on where nothing came before.
    pub(crate) fn received(&self) -> (Instant, Instant) {
        let before = self.before.map_or(Instant::ZERO, |before| Instant::from_ns(before.received_ns));
        (before, Instant::from_ns(self.after.received_ns))
    }

    /// The QoS at which the second came.
    pub(crate) fn qos(&self) -> u8 {
        self.after.qos
    }
}
