//! How many QoS 1 and 2 messages a broker takes from a client at a time, and what becomes of more.
//!
//! MQTT 5 tells the client (Receive Maximum, §3.2.2.3.3), and one that sends more breaks the protocol. Before MQTT 5 nothing
//! tells it. Mosquitto 2.0.11 counts all the same, and acknowledges what exceeds its count as if it had taken it.

/// What is left of a client's quota.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveQuota {
    left: u16,
    most: u16,
}

impl ReceiveQuota {
    /// No limit but the number of packet identifiers.
    pub(super) const NONE: ReceiveQuota = ReceiveQuota { left: u16::MAX, most: u16::MAX };

    /// For a connection whose session has so many QoS 2 messages without PUBREL.
    pub(super) fn new(most: u16, unreleased: usize) -> ReceiveQuota {
        ReceiveQuota { left: (usize::from(most)).saturating_sub(unreleased) as u16, most }
    }

    /// Whether another message is taken.
    pub(super) fn has_room(self) -> bool {
        self.left > 0
    }

    /// A QoS 2 message is taken.
    pub(super) fn take(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// A PUBACK or PUBCOMP leaves. It gives a place back even where its message was not taken (measured).
    pub(super) fn give_back(&mut self) {
        // A repeated PUBREL is answered again, and must not raise it above its start (§4.9 has the same rule).
        self.left = self.left.saturating_add(1).min(self.most);
    }
}
