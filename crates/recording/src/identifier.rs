//! What a recording is called for ever: a ULID, and when it was made.
//!
//! A ULID is a time in milliseconds and 80 random bits, in 26 letters that sort by time (github.com/ulid/spec).

use std::fs::File;
use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in nanoseconds since 1970-01-01T00:00:00Z; `None` when the machine's clock says what cannot be: before 1970, or
/// later than 2262, where signed nanoseconds end.
pub fn unix_now_ns() -> Option<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    plausible(since.as_nanos())
}

fn plausible(unix_ns: u128) -> Option<u64> {
    u64::try_from(unix_ns).ok().filter(|&ns| ns > 0 && ns <= i64::MAX as u64)
}

/// A point in time as RFC 3339 writes it, in UTC, to the microsecond.
pub(crate) fn rfc3339(unix_ns: u64) -> String {
    mqttlab_units::rfc3339(unix_ns, 6)
}

/// A new identifier for something made at this time.
pub(crate) fn ulid(unix_ns: u64) -> String {
    let mut random = [0; 10];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random));
    if read.is_err() {
        // A root directory without devices: the process and the nanosecond tell apart what one machine makes.
        random[..8].copy_from_slice(&unix_ns.to_le_bytes());
        random[6..].copy_from_slice(&std::process::id().to_le_bytes());
    }
    encode(unix_ns / 1_000_000, random)
}

/// 48 bits of time and 80 random ones, five in a letter, from the top.
fn encode(unix_ms: u64, random: [u8; 10]) -> String {
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&unix_ms.to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&random);
    let number = u128::from_be_bytes(bytes);
    (0..26).rev().map(|place| char::from(LETTERS[(number >> (5 * place) & 31) as usize])).collect()
}

/// Crockford's base 32: no I, L, O or U.
const LETTERS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_that_of_the_specification() {
        // The specification's example, 01ARZ3NDEKTSV4RRFFQ69G5FAV, taken apart.
        let random = [0xd6, 0x76, 0x4c, 0x61, 0xef, 0xb9, 0x93, 0x02, 0xbd, 0x5b];
        assert_eq!(encode(1_469_922_850_259, random), "01ARZ3NDEKTSV4RRFFQ69G5FAV");
        assert_ne!(ulid(1), ulid(1));
        assert!(ulid(1_000_000_000) < ulid(1_001_000_000));
    }

    #[test]
    fn a_clock_that_is_wrong_gives_no_time() {
        assert_eq!(plausible(0), None);
        assert_eq!(plausible(u128::from(i64::MAX as u64) + 1), None);
        assert_eq!(plausible(1 << 70), None);
        assert_eq!(plausible(1_795_308_181_768_528_941), Some(1_795_308_181_768_528_941));
    }
}
