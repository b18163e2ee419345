//! Points in time and lengths of time, both in whole nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds since the start of the run. There is no `now()`; shells pass it in.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Instant(u64);

/// A length of time in nanoseconds, never negative.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Duration(u64);

/// An instant or none, in the room of an instant. A simulation has several for each of a million clients, most of them none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OptionalInstant(u64);

impl OptionalInstant {
    /// No instant. The end of time, which no run reaches, is none.
    pub const NONE: OptionalInstant = OptionalInstant(u64::MAX);

    /// The instant, if it is one.
    pub const fn get(self) -> Option<Instant> {
        if self.0 == u64::MAX { None } else { Some(Instant(self.0)) }
    }

    /// Whether it is none.
    pub const fn is_none(self) -> bool {
        self.0 == u64::MAX
    }

    /// Whether it is an instant that has come by `now`.
    pub const fn is_due(self, now: Instant) -> bool {
        self.0 <= now.0 && self.0 != u64::MAX
    }

    /// The earlier one; none only of two.
    pub const fn earlier(self, other: OptionalInstant) -> OptionalInstant {
        if other.0 < self.0 { other } else { self }
    }
}

impl Default for OptionalInstant {
    fn default() -> OptionalInstant {
        OptionalInstant::NONE
    }
}

impl From<Instant> for OptionalInstant {
    fn from(instant: Instant) -> OptionalInstant {
        OptionalInstant(instant.0)
    }
}

impl fmt::Debug for OptionalInstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl Instant {
    /// The start of the run.
    pub const ZERO: Instant = Instant(0);

    /// The instant `nanoseconds` after the start of the run.
    pub const fn from_ns(nanoseconds: u64) -> Self {
        Instant(nanoseconds)
    }

    /// Nanoseconds since the start of the run.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// The time since `earlier`.
    ///
    /// # Panics
    /// When `earlier` is later than `self`.
    #[track_caller]
    pub const fn since(self, earlier: Instant) -> Duration {
        match self.0.checked_sub(earlier.0) {
            Some(nanoseconds) => Duration(nanoseconds),
            None => panic!("an instant was asked for the time since a later one"),
        }
    }

    /// The instant `length` later, or the end of time, which no run reaches.
    pub const fn saturating_add(self, length: Duration) -> Instant {
        Instant(self.0.saturating_add(length.0))
    }

    /// The time since `earlier`, or `None` when `earlier` is later than `self`.
    pub const fn checked_since(self, earlier: Instant) -> Option<Duration> {
        match self.0.checked_sub(earlier.0) {
            Some(nanoseconds) => Some(Duration(nanoseconds)),
            None => None,
        }
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);

    /// A duration of `nanoseconds`.
    pub const fn from_ns(nanoseconds: u64) -> Self {
        Duration(nanoseconds)
    }

    /// A duration of `microseconds`.
    pub const fn from_us(microseconds: u64) -> Self {
        Duration(microseconds * 1_000)
    }

    /// A duration of `milliseconds`.
    pub const fn from_ms(milliseconds: u64) -> Self {
        Duration(milliseconds * 1_000_000)
    }

    /// A duration of `seconds`.
    pub const fn from_s(seconds: u64) -> Self {
        Duration(seconds * 1_000_000_000)
    }

    /// A duration of `seconds`, rounded to the nearest nanosecond; negative and not-a-number become zero.
    pub fn from_s_f64(seconds: f64) -> Self {
        Duration((seconds * 1e9).round().max(0.0) as u64)
    }

    /// Whole nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Seconds as a float, for reports and physics.
    pub fn as_s_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - other`, or zero when `other` is longer.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }

    /// `self + other`, or the longest duration there is.
    pub const fn saturating_add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }

    /// Whether this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    #[track_caller]
    fn add(self, length: Duration) -> Instant {
        Instant(self.0.checked_add(length.0).expect("an instant ran past the end of time"))
    }
}

impl AddAssign<Duration> for Instant {
    #[track_caller]
    fn add_assign(&mut self, length: Duration) {
        *self = *self + length;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    #[track_caller]
    fn sub(self, length: Duration) -> Instant {
        Instant(self.0.checked_sub(length.0).expect("an instant before the start of the run"))
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;
    #[track_caller]
    fn sub(self, earlier: Instant) -> Duration {
        self.since(earlier)
    }
}

impl Add for Duration {
    type Output = Duration;
    #[track_caller]
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.checked_add(other.0).expect("a duration overflowed"))
    }
}

impl AddAssign for Duration {
    #[track_caller]
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Duration;
    #[track_caller]
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0.checked_sub(other.0).expect("a duration would be negative"))
    }
}

impl SubAssign for Duration {
    #[track_caller]
    fn sub_assign(&mut self, other: Duration) {
        *self = *self - other;
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    #[track_caller]
    fn mul(self, factor: u64) -> Duration {
        Duration(self.0.checked_mul(factor).expect("a duration overflowed"))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            0..1_000 => (self.0 as f64, "ns"),
            1_000..1_000_000 => (self.0 as f64 / 1e3, "us"),
            1_000_000..1_000_000_000 => (self.0 as f64 / 1e6, "ms"),
            _ => (self.0 as f64 / 1e9, "s"),
        };
        write!(f, "{value} {unit}")
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{}", Duration(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "later one")]
    fn time_since_a_later_instant_panics() {
        let _ = Instant::from_ns(1).since(Instant::from_ns(2));
    }

    #[test]
    fn an_optional_instant_takes_no_more_room_than_one_and_none_comes_last() {
        assert_eq!(size_of::<OptionalInstant>(), size_of::<Instant>());
        let (early, late) =
            (OptionalInstant::from(Instant::ZERO), OptionalInstant::from(Instant::from_ns(2)));
        assert_eq!(early.get(), Some(Instant::ZERO));
        assert_eq!(OptionalInstant::default().get(), None);
        assert_eq!([OptionalInstant::NONE.earlier(late), late.earlier(early)], [late, early]);
        let due = [early, late, OptionalInstant::NONE].map(|at| at.is_due(Instant::from_ns(1)));
        assert_eq!(due, [true, false, false]);
    }

    #[test]
    fn a_duration_prints_in_its_own_scale() {
        assert_eq!(Duration::from_ms(550).to_string(), "550 ms");
        assert_eq!(Duration::from_us(1).to_string(), "1 us");
    }
}
