//! Records: rows as little-endian bytes of a fixed size, and words as small numbers.
//!
//! A record has no padding and no pointers, so that a file of them can be cut to its last whole record by arithmetic
//! alone. [`record!`](crate::record::record) declares a row once and derives both directions from it.

use mqttlab_net::Cause;
use mqttlab_units::{Duration, Instant};

/// A value of fixed size inside a record.
pub trait Field: Sized {
    /// How many bytes it takes.
    const SIZE: usize;
    /// Appends it.
    fn put(&self, out: &mut Vec<u8>);
    /// Reads it back from exactly `SIZE` bytes.
    fn take(bytes: &[u8]) -> Self;
    /// What it is in the record of an earlier version, which had no such field.
    fn absent() -> Self;
}

/// A row of fixed size.
pub trait Record: Sized {
    /// How many bytes it takes.
    const SIZE: usize;
    /// Appends it.
    fn put(&self, out: &mut Vec<u8>);
    /// Reads it back. Fields that lie beyond the bytes are absent: new fields come last, so that the records of
    /// an earlier version can be read.
    fn take(bytes: &[u8]) -> Self;
}

macro_rules! integer_fields {
    ($($integer:ty),*) => {$(
        impl Field for $integer {
            const SIZE: usize = size_of::<$integer>();
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn take(bytes: &[u8]) -> Self {
                <$integer>::from_le_bytes(bytes.try_into().expect("a field is cut at its own size"))
            }
            fn absent() -> Self {
                0
            }
        }
    )*};
}
integer_fields!(u8, u16, u32, u64, i64);

impl Field for bool {
    const SIZE: usize = 1;
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn take(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }
    fn absent() -> Self {
        false
    }
}

impl Field for Instant {
    const SIZE: usize = 8;
    fn put(&self, out: &mut Vec<u8>) {
        self.as_ns().put(out);
    }
    fn take(bytes: &[u8]) -> Self {
        Instant::from_ns(u64::take(bytes))
    }
    fn absent() -> Self {
        Instant::from_ns(0)
    }
}

impl Field for Duration {
    const SIZE: usize = 8;
    fn put(&self, out: &mut Vec<u8>) {
        self.as_ns().put(out);
    }
    fn take(bytes: &[u8]) -> Self {
        Duration::from_ns(u64::take(bytes))
    }
    fn absent() -> Self {
        Duration::from_ns(0)
    }
}

/// The bytes of an absent time: 584 years into the run, where nothing happens.
const ABSENT_NS: u64 = u64::MAX;
/// The bytes of an absent index.
const ABSENT_INDEX: u32 = u32::MAX;
/// The bytes of an absent number of a host or link.
const ABSENT_NUMBER: u16 = u16::MAX;
/// The bytes of an absent length: nothing measured is as low.
const ABSENT_LENGTH: i64 = i64::MIN;

impl Field for Option<Instant> {
    const SIZE: usize = 8;
    fn put(&self, out: &mut Vec<u8>) {
        self.map_or(ABSENT_NS, Instant::as_ns).put(out);
    }
    fn take(bytes: &[u8]) -> Self {
        Some(u64::take(bytes)).filter(|&ns| ns != ABSENT_NS).map(Instant::from_ns)
    }
    fn absent() -> Self {
        None
    }
}

impl Field for Option<Duration> {
    const SIZE: usize = 8;
    fn put(&self, out: &mut Vec<u8>) {
        self.map_or(ABSENT_NS, Duration::as_ns).put(out);
    }
    fn take(bytes: &[u8]) -> Self {
        Some(u64::take(bytes)).filter(|&ns| ns != ABSENT_NS).map(Duration::from_ns)
    }
    fn absent() -> Self {
        None
    }
}

impl Field for Option<u64> {
    const SIZE: usize = 8;
    fn put(&self, out: &mut Vec<u8>) {
        self.unwrap_or(u64::MAX).put(out);
    }
    fn take(bytes: &[u8]) -> Self {
        Some(u64::take(bytes)).filter(|&count| count != u64::MAX)
    }
    fn absent() -> Self {
        None
    }
}

impl Field for Option<u32> {
    const SIZE: usize = 4;
    fn put(&self, out: &mut Vec<u8>) {
        self.unwrap_or(ABSENT_INDEX).put(out);
    }
    fn take(bytes: &[u8]) -> Self {
        Some(u32::take(bytes)).filter(|&index| index != ABSENT_INDEX)
    }
    fn absent() -> Self {
        None
    }
}

impl Field for Option<u16> {
    const SIZE: usize = 2;
    fn put(&self, out: &mut Vec<u8>) {
        self.unwrap_or(ABSENT_NUMBER).put(out);
    }
    fn take(bytes: &[u8]) -> Self {
        Some(u16::take(bytes)).filter(|&number| number != ABSENT_NUMBER)
    }
    fn absent() -> Self {
        None
    }
}

impl Field for Option<i64> {
    const SIZE: usize = 8;
    fn put(&self, out: &mut Vec<u8>) {
        self.unwrap_or(ABSENT_LENGTH).put(out);
    }
    fn take(bytes: &[u8]) -> Self {
        Some(i64::take(bytes)).filter(|&length| length != ABSENT_LENGTH)
    }
    fn absent() -> Self {
        None
    }
}

/// Declares a row, and how it becomes a record.
macro_rules! record {
    ($(#[$outer:meta])* pub struct $row:ident { $($(#[$inner:meta])* pub $field:ident: $kind:ty,)* }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $row { $($(#[$inner])* pub $field: $kind,)* }

        impl $crate::record::Record for $row {
            const SIZE: usize = 0 $(+ <$kind as $crate::record::Field>::SIZE)*;

            fn put(&self, out: &mut Vec<u8>) {
                $($crate::record::Field::put(&self.$field, out);)*
            }

            fn take(bytes: &[u8]) -> Self {
                let mut at = 0;
                $(
                    let size = <$kind as $crate::record::Field>::SIZE;
                    let $field = match bytes.get(at..at + size) {
                        Some(bytes) => <$kind as $crate::record::Field>::take(bytes),
                        None => <$kind as $crate::record::Field>::absent(),
                    };
                    at += size;
                )*
                debug_assert_eq!(at, <Self as $crate::record::Record>::SIZE);
                $row { $($field,)* }
            }
        }
    };
}
pub(crate) use record;

/// A word in a record: its number. A spool is read by the program that wrote it or by a later one, so an unknown number is
/// damage; the first word is then as good as any other.
macro_rules! fields_of_words {
    ($($word:ty),* $(,)?) => {$(
        impl $crate::record::Field for $word {
            const SIZE: usize = 1;
            fn put(&self, out: &mut Vec<u8>) {
                out.push(*self as u8);
            }
            fn take(bytes: &[u8]) -> Self {
                *<$word>::ALL.get(usize::from(bytes[0])).unwrap_or(&<$word>::ALL[0])
            }
            fn absent() -> Self {
                <$word>::ALL[0]
            }
        }
    )*};
}
pub(crate) use fields_of_words;

/// Counted from 1: nothing happened to most frames, and that is 0.
impl Field for Option<Cause> {
    const SIZE: usize = 1;
    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.map_or(0, |cause| cause as u8 + 1));
    }
    fn take(bytes: &[u8]) -> Self {
        usize::from(bytes[0]).checked_sub(1).and_then(|number| Cause::ALL.get(number)).copied()
    }
    fn absent() -> Self {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    record! {
        /// A row of every kind of field.
        pub struct Everything {
            /// A small integer.
            pub small: u8,
            /// A time.
            pub at: Instant,
            /// An absent time.
            pub never: Option<Instant>,
            /// An absent index.
            pub nobody: Option<u32>,
            /// A truth.
            pub truth: bool,
        }
    }

    #[test]
    fn a_record_is_as_long_as_its_fields_and_reads_back() {
        let row = Everything { small: 7, at: Instant::from_ns(9), never: None, nobody: None, truth: true };
        let mut bytes = Vec::new();
        row.put(&mut bytes);
        assert_eq!(bytes.len(), Everything::SIZE);
        assert_eq!(Everything::SIZE, 1 + 8 + 8 + 4 + 1);
        assert_eq!(Everything::take(&bytes), row);
    }

    #[test]
    fn a_cause_is_counted_from_one_and_none_is_zero() {
        for (number, cause) in [None].into_iter().chain(Cause::ALL.iter().copied().map(Some)).enumerate() {
            let mut bytes = Vec::new();
            cause.put(&mut bytes);
            assert_eq!(
                (bytes.as_slice(), <Option<Cause> as Field>::take(&bytes)),
                ([number as u8].as_slice(), cause)
            );
        }
        // Of a later version.
        assert_eq!(<Option<Cause> as Field>::take(&[u8::MAX]), None);
    }

    #[test]
    fn fields_that_an_earlier_version_did_not_have_are_absent() {
        let row = Everything { small: 7, at: Instant::from_ns(9), never: None, nobody: Some(3), truth: true };
        let mut bytes = Vec::new();
        row.put(&mut bytes);
        let earlier = Everything { nobody: None, truth: false, ..row };
        assert_eq!(Everything::take(&bytes[..1 + 8 + 8]), earlier);
    }
}
