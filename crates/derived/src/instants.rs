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
#[inline]
pub(crate) fn least<const N: usize>(moments: [MaybeInstant; N]) -> MaybeInstant {
    // One less, and what is not known is the greatest of all.
    let below = moments.map(|moment| moment.unwrap_or(ABSENT).wrapping_sub(1));
    known(below.into_iter().fold(i64::MAX, i64::min).wrapping_add(1))
}

/// The latest of those that are known.
#[inline]
pub(crate) fn most<const N: usize>(moments: [MaybeInstant; N]) -> MaybeInstant {
    let numbers = moments.map(|moment| moment.unwrap_or(ABSENT));
    known(numbers.into_iter().fold(ABSENT, i64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_neither_the_earliest_nor_the_latest() {
        let far = [Some(i64::MAX), Some(ABSENT + 1)];
        assert_eq!((least([None, Some(3), Some(-2)]), most([None, Some(3), Some(-2)])), (Some(-2), Some(3)));
        assert_eq!((least([None, Some(i64::MAX)]), most([Some(ABSENT + 1), None])), (far[0], far[1]));
        assert_eq!((least([None; 3]), most([None; 3])), (None, None));
    }
}
