//! The parts of a delivery's latency, in the order in which they pass.

use std::ops::{AddAssign, Index, IndexMut};

/// A part, as the columns of `attribution` name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LatencyPart {
    Schedule,
    Session,
    Sleep,
    Register,
    SenderNagle,
    SenderSocket,
    Retry,
    QueueToBroker,
    WireToBroker,
    RetransmissionToBroker,
    Gateway,
    Handshake,
    /// What no frame shows: from the one client's socket to the other's, or as far as frames are there.
    Undivided,
    Broker,
    BrokerWindow,
    BrokerNagle,
    BrokerSocket,
    QueueToSubscriber,
    WireToSubscriber,
    RetransmissionToSubscriber,
    Release,
    Delivery,
    /// What the recording names beside packets and frames: these take their time of the others (`holds`).
    SenderUnconnected,
    LinkDown,
    NatForgot,
    BrokerPaused,
    SubscriberUnconnected,
    ReaderStopped,
}

impl LatencyPart {
    /// Its column in `attribution`, of those that are spans of `holds`.
    pub(crate) fn column(self) -> &'static str {
        match self {
            LatencyPart::SenderUnconnected => "sender_unconnected_ns",
            LatencyPart::LinkDown => "link_down_ns",
            LatencyPart::NatForgot => "nat_forgot_ns",
            LatencyPart::BrokerPaused => "broker_paused_ns",
            LatencyPart::SubscriberUnconnected => "subscriber_unconnected_ns",
            LatencyPart::ReaderStopped => "reader_stopped_ns",
            part => unreachable!("nothing is held by {part:?}"),
        }
    }
}

/// Nanoseconds of each part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LatencyParts([i64; LatencyPart::ReaderStopped as usize + 1]);

impl Index<LatencyPart> for LatencyParts {
    type Output = i64;

    fn index(&self, part: LatencyPart) -> &i64 {
        &self.0[part as usize]
    }
}

impl IndexMut<LatencyPart> for LatencyParts {
    fn index_mut(&mut self, part: LatencyPart) -> &mut i64 {
        &mut self.0[part as usize]
    }
}

impl AddAssign for LatencyParts {
    fn add_assign(&mut self, other: LatencyParts) {
        self.0.iter_mut().zip(other.0).for_each(|(part, more)| *part += more);
    }
}
