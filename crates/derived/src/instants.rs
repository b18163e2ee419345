//! Instants that may not be known, in nanoseconds since the start of the run.

use mqttlab_recording::reading::ABSENT;

/// The two ends of a link are stamped by one clock but not by one hand: the stack is woken up to this much before or
/// after the frame's own time of arrival.
pub(crate) const SLACK_NS: i64 = 200_000;

/// An instant, if it is known.
pub(crate) type MaybeInstant = Option<i64>;

/// The instant that a table has.
pub(crate) fn known(at: i64) -> MaybeInstant {
    (at != ABSENT).then_some(at)
}

/// An instant as it is kept where there are millions: eight bytes, not sixteen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedInstant(i64);

impl Default for PackedInstant {
    fn default() -> PackedInstant {
        PackedInstant::NONE
    }
}

impl PackedInstant {
    pub(crate) const NONE: PackedInstant = PackedInstant(ABSENT);

    pub(crate) fn get(self) -> MaybeInstant {
        known(self.0)
    }
}

impl From<MaybeInstant> for PackedInstant {
    fn from(moment: MaybeInstant) -> PackedInstant {
        PackedInstant(moment.unwrap_or(ABSENT))
    }
}

impl std::fmt::Debug for PackedInstant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

/// The earliest of those that are known.
pub(crate) fn least<const N: usize>(moments: [MaybeInstant; N]) -> MaybeInstant {
    moments.into_iter().flatten().min()
}

/// The latest of those that are known.
pub(crate) fn most<const N: usize>(moments: [MaybeInstant; N]) -> MaybeInstant {
    moments.into_iter().flatten().max()
}
