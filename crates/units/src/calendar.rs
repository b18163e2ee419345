//! Points in time as people write them: RFC 3339 in UTC, by the Gregorian calendar.

/// A point in time as RFC 3339 writes it, in UTC, with so many decimals of a second, from 1 to 9.
pub fn rfc3339(unix_ns: u64, decimals: u32) -> String {
    let seconds = unix_ns / 1_000_000_000;
    let fraction = unix_ns % 1_000_000_000 / 10_u64.pow(9 - decimals.clamp(1, 9));
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let width = decimals.clamp(1, 9) as usize;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:0width$}Z")
}

/// The date that is `days` after 1970-01-01, in the Gregorian calendar.
fn date(mut days: u64) -> (u64, usize, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // Each as `date -u -d @SECONDS` prints it.
        assert_eq!(rfc3339(0, 6), "1970-01-01T00:00:00.000000Z");
        assert_eq!(rfc3339(951_782_400_000_000_000, 6), "2000-02-29T00:00:00.000000Z");
        assert_eq!(rfc3339(1_735_689_599_123_456_789, 6), "2024-12-31T23:59:59.123456Z");
        assert_eq!(rfc3339(1_735_689_599_023_456_789, 3), "2024-12-31T23:59:59.023Z");
        assert_eq!(rfc3339(4_107_542_400_000_000_000, 6), "2100-03-01T00:00:00.000000Z");
    }
}
