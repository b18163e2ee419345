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
fn date(mut days: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    while days >= days_of(year, month) {
        days -= days_of(year, month);
        month += 1;
    }
    (year, month, days + 1)
}

/// Nanoseconds since 1970 of a date as ISO 8601 writes it: `2026-11-27T19:27:47.5Z`, with a space in the place of the `T`, with
/// another offset from UTC, or without one, which is UTC. Seconds may be left out. `None` of other texts, and before 1970.
pub fn unix_ns_of_date(text: &str) -> Option<u64> {
    let (day, time) = text.split_at_checked(10)?;
    let [year, month, date] = numbers::<3>(day, '-')?;
    let time = time.strip_prefix(['T', 't', ' '])?;
    let (time, offset_s) = match time.find(['Z', 'z', '+', '-']) {
        None => (time, 0),
        Some(at) => (&time[..at], offset_s(&time[at..])?),
    };
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [hour, minute, second] = match numbers::<3>(whole, ':') {
        Some(found) => found,
        None => numbers::<2>(whole, ':').map(|[hour, minute]| [hour, minute, 0])?,
    };
    // A leap second has the number 60 (RFC 3339 §5.6).
    let is_right = (1..=12).contains(&month) && date >= 1 && hour < 24 && minute < 60 && second <= 60;
    if !is_right
        || year < 1970
        || date > days_of(year, month)
        || !fraction.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let days: u64 = (1970..year).map(|year| 365 + u64::from(is_leap(year))).sum::<u64>()
        + (1..month).map(|month| days_of(year, month)).sum::<u64>()
        + date
        - 1;
    let seconds = (days * 86_400 + hour * 3600 + minute * 60 + second).checked_add_signed(-offset_s)?;
    let digits = format!("{:0<9}", &fraction[..fraction.len().min(9)]);
    seconds.checked_mul(1_000_000_000)?.checked_add(digits.parse().ok()?)
}

/// `+02:00`, `+0200`, `+02` or `Z`.
fn offset_s(text: &str) -> Option<i64> {
    if text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, digits) = (if text.starts_with('-') { -1 } else { 1 }, text[1..].replace(':', ""));
    let is_offset = matches!(digits.len(), 2 | 4) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: i64 = is_offset.then(|| digits.parse().ok())??;
    let (hours, minutes) = if digits.len() == 2 { (number, 0) } else { (number / 100, number % 100) };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

fn numbers<const N: usize>(text: &str, between: char) -> Option<[u64; N]> {
    let parts = text.split(between).map(|part| {
        let is_number = (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse().ok())?
    });
    parts.collect::<Option<Vec<u64>>>()?.try_into().ok()
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// How many days a month has, counted from 1.
fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
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

    #[test]
    fn a_date_is_read_as_it_is_written_and_in_other_ways() {
        for unix_ns in [0, 951_782_400_000_000_000, 1_735_689_599_123_456_789, 4_107_542_400_000_000_000] {
            assert_eq!(unix_ns_of_date(&rfc3339(unix_ns, 9)), Some(unix_ns));
        }
        for (text, seconds) in [
            ("2024-12-31 23:59", Some(1_735_689_540)),
            ("2024-12-31T23:59:59", Some(1_735_689_599)),
            ("2025-01-01T01:59:59+02:00", Some(1_735_689_599)),
            ("2024-12-31T15:59:59-0800", Some(1_735_689_599)),
            ("2024-12-31T15:59:59-08", Some(1_735_689_599)),
            ("2023-02-29T00:00:00Z", None),
            ("2024-13-01T00:00:00Z", None),
            ("2024-12-31T24:00:00Z", None),
            ("2024-12-31", None),
            ("1969-12-31T23:00:00Z", None),
            ("2024-12-31T00:00:00.x", None),
            ("2024-12-31T00:00:00+1", None),
            ("2024-12-3é 00:00", None),
        ] {
            assert_eq!(unix_ns_of_date(text), seconds.map(|seconds: u64| seconds * 1_000_000_000), "{text}");
        }
    }
}
