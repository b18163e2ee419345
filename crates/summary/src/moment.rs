//! Instants that may not be known, in nanoseconds since the start of the run.

use mqttlab_recording::reading::ABSENT;

/// An instant, if it is known.
pub(crate) type Moment = Option<i64>;

/// The instant that a table has.
pub(crate) fn known(at: i64) -> Moment {
    (at != ABSENT).then_some(at)
}

/// The earliest of those that are known.
pub(crate) fn least<const N: usize>(moments: [Moment; N]) -> Moment {
    moments.into_iter().flatten().min()
}

/// The latest of those that are known.
pub(crate) fn most<const N: usize>(moments: [Moment; N]) -> Moment {
    moments.into_iter().flatten().max()
}
