//! The way of a packet over a connection, as instants.

use crate::instants::{MaybeInstant, PackedInstant};

/// The way of a packet from its first byte's sending until it was complete.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SegmentFlight {
    /// The frame that brought its last missing byte, and when that came to its first link. Of a packet of several segments the
    /// instants below divide its time by all of its frames (`frame_times`).
    pub(crate) frame: PackedInstant,
    pub(crate) went: PackedInstant,
    /// How long it waited in queues, and until when the way counts as travelling.
    pub(crate) queue: PackedInstant,
    pub(crate) arrived: PackedInstant,
    /// When the segment that completed the packet was due.
    pub(crate) resumed: PackedInstant,
    /// What the packet's first segment waited for, and after it the one that completed the packet.
    pub(crate) first: WaitEnd,
    pub(crate) tail: WaitEnd,
}

impl SegmentFlight {
    /// Of a packet that no frame shows.
    pub(crate) const NONE: SegmentFlight = SegmentFlight {
        frame: PackedInstant::NONE,
        went: PackedInstant::NONE,
        queue: PackedInstant::NONE,
        arrived: PackedInstant::NONE,
        resumed: PackedInstant::NONE,
        first: WaitEnd::NONE,
        tail: WaitEnd::NONE,
    };

    /// When it came to its first link, later by what it waited in queues.
    pub(crate) fn started(&self) -> MaybeInstant {
        self.went.get().zip(self.queue.get()).map(|(went, queue)| went + queue)
    }
}

/// What ended the wait of bytes that were ready and not yet sent. From ready to the first and from the second to the last
/// Nagle's algorithm held them, in between a window did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitEnd {
    pub(crate) nagle_until: PackedInstant,
    pub(crate) socket_until: PackedInstant,
    pub(crate) held_until: PackedInstant,
    /// The frame with the acknowledgement.
    pub(crate) frame: PackedInstant,
}

impl WaitEnd {
    pub(crate) const NONE: WaitEnd = WaitEnd {
        nagle_until: PackedInstant::NONE,
        socket_until: PackedInstant::NONE,
        held_until: PackedInstant::NONE,
        frame: PackedInstant::NONE,
    };
}
