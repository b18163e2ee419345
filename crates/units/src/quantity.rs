//! Amounts of data and the rates at which links carry them.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Duration;

/// A number of bytes (octets).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// Bits per second, never zero: a link without a limit has no `BitRate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u64", into = "u64")]
pub struct BitRate(u64);

impl Bytes {
    /// The size in bits.
    pub const fn bits(self) -> u64 {
        self.0 * 8
    }
}

impl BitRate {
    /// `None` when `bits_per_second` is zero.
    pub const fn from_bit_s(bits_per_second: u64) -> Option<Self> {
        if bits_per_second == 0 { None } else { Some(BitRate(bits_per_second)) }
    }

    /// Bits per second.
    pub const fn as_bit_s(self) -> u64 {
        self.0
    }

    /// How long the link is busy with `size`, rounded up to a whole nanosecond.
    pub const fn serialization_time(self, size: Bytes) -> Duration {
        // Only of more than two gigabytes are there more than 64 bits, which take ten times as long to divide.
        match size.bits().checked_mul(1_000_000_000) {
            Some(bit_ns) => Duration::from_ns(bit_ns.div_ceil(self.0)),
            None => {
                let bit_ns = size.bits() as u128 * 1_000_000_000;
                Duration::from_ns(bit_ns.div_ceil(self.0 as u128) as u64)
            }
        }
    }
}

impl TryFrom<u64> for BitRate {
    type Error = &'static str;
    fn try_from(bits_per_second: u64) -> Result<Self, Self::Error> {
        BitRate::from_bit_s(bits_per_second).ok_or("a rate is 0 bit/s, but must be at least 1 bit/s")
    }
}

impl From<BitRate> for u64 {
    fn from(rate: BitRate) -> u64 {
        rate.0
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    #[track_caller]
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.checked_sub(other.0).expect("a size would be negative"))
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(sizes: I) -> Bytes {
        Bytes(sizes.map(|size| size.0).sum())
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1_000 => write!(f, "{} bit/s", self.0),
            1_000..1_000_000 => write!(f, "{} kbit/s", self.0 as f64 / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{} Mbit/s", self.0 as f64 / 1e6),
            _ => write!(f, "{} Gbit/s", self.0 as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_438_byte_frame_takes_219_ms_at_16_kbit_s() {
        let rate = BitRate::from_bit_s(16_000).unwrap();
        assert_eq!(rate.serialization_time(Bytes(438)), Duration::from_ms(219));
    }

    #[test]
    fn serialization_rounds_up_so_that_no_link_is_faster_than_its_rate() {
        let rate = BitRate::from_bit_s(3_000_000_000).unwrap();
        assert_eq!(rate.serialization_time(Bytes(1)), Duration::from_ns(3));
    }
}
