//! Instants that may not be known, in nanoseconds since the start of the run.

use mqttlab_recording::reading::ABSENT;

/// The two ends of a link are stamped by one clock but not by one hand: the stack is woken up to this much before or
/// after the frame's own time of arrival.
pub(crate) const SLACK_NS: i64 = 200_000;

/// An instant, if it is known.
pub(crate) type Moment = Option<i64>;

/// The instant that a table has.
pub(crate) fn known(at: i64) -> Moment {
    (at != ABSENT).then_some(at)
}

/// An instant as it is kept where there are millions: eight bytes, not sixteen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept(i64);

impl Default for Kept {
    fn default() -> Kept {
        Kept::NONE
    }
}

impl Kept {
    pub(crate) const NONE: Kept = Kept(ABSENT);

    pub(crate) fn get(self) -> Moment {
        known(self.0)
    }
}

impl From<Moment> for Kept {
    fn from(moment: Moment) -> Kept {
        Kept(moment.unwrap_or(ABSENT))
    }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

/// The earliest of those that are known.
pub(crate) fn least<const N: usize>(moments: [Moment; N]) -> Moment {
    moments.into_iter().flatten().min()
}

/// The latest of those that are known.
pub(crate) fn most<const N: usize>(moments: [Moment; N]) -> Moment {
    moments.into_iter().flatten().max()
}
