//! Points in time as tables write them: ISO 8601, or numbers in a unit.

use mqttlab_units::Instant;

use super::options::offset_s;

/// What a number in a column of times counts, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeUnit(u64);

/// A column's name without the unit that it ends with, and the unit; seconds when it names none.
pub fn unit_of(column: &str) -> (&str, TimeUnit) {
    let units = [("_ns", 1), ("_us", 1_000), ("_ms", 1_000_000), ("_s", NS_PER_S)];
    for (suffix, ns) in units {
        if let Some(stem) = column.strip_suffix(suffix) {
            return (stem, TimeUnit(ns));
        }
    }
    (column, TimeUnit(NS_PER_S))
}

/// Reads a point in time. A date without a zone is `utc_offset_s` ahead of UTC.
///
/// # Errors
/// The end of a sentence that begins with the column's name.
pub fn read(text: &str, unit: TimeUnit, utc_offset_s: i64) -> Result<Instant, String> {
    let ns = if text.contains('-') { date(text, utc_offset_s) } else { number(text, unit) };
    ns.map(Instant::from_ns).ok_or_else(|| {
        format!(
            "is `{text}`, but must be a date and time like 2018-05-29T23:20:20.163+02:00, or a number: of seconds, \
             unless the column's name ends with _ms, _us or _ns"
        )
    })
}

/// A decimal number, without a detour through floating point: nanoseconds since 1970 have 19 digits.
fn number(text: &str, unit: TimeUnit) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let kept = &fraction[..fraction.len().min(9)];
    let part: u64 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
    let part = u128::from(part) * u128::from(unit.0) / 10_u128.pow(kept.len() as u32);
    whole.parse::<u64>().ok()?.checked_mul(unit.0)?.checked_add(part as u64)
}

/// `YYYY-MM-DD`, a `T` or a blank, `HH:MM:SS`, a fraction, and a zone.
fn date(text: &str, utc_offset_s: i64) -> Option<u64> {
    let (date, clock) = (text.get(..10)?, text.get(11..)?);
    if !matches!(text.as_bytes()[10], b'T' | b't' | b' ') {
        return None;
    }
    let zone = clock.find(['Z', 'z', '+', '-']);
    let (clock, offset) = match zone {
        Some(at) => (&clock[..at], offset_s(&clock[at..]).ok()?),
        None => (clock, utc_offset_s),
    };
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (parts.next()?.parse::<i64>().ok()?, parts.next()?.parse::<i64>().ok()?);
    let second_ns = number(&parts.next()?.replace(',', "."), TimeUnit(NS_PER_S))?;
    let plausible = (1970..2500).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && second_ns < 61 * NS_PER_S;
    let seconds = days_since_epoch(year, month, day) * 86_400 + hour * 3_600 + minute * 60 - offset;
    let seconds = u64::try_from(seconds).ok().filter(|_| plausible)?;
    seconds.checked_mul(NS_PER_S)?.checked_add(second_ns)
}

/// Days of the Gregorian calendar from 1970-01-01, counting years from March so that the leap day comes last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

const NS_PER_S: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(text: &str, column: &str) -> Option<u64> {
        read(text, unit_of(column).1, 7_200).ok().map(Instant::as_ns)
    }

    #[test]
    fn numbers_are_exact_in_every_unit() {
        assert_eq!(ns("1527628820163000001", "sent_ns"), Some(1_527_628_820_163_000_001));
        assert_eq!(ns("1527628820.163000001", "sent"), Some(1_527_628_820_163_000_001));
        assert_eq!(
            [ns("1.5", "sent_ms"), ns("2", "sent_us"), ns("3.25", "sent_s")],
            [Some(1_500_000), Some(2_000), Some(3_250_000_000)]
        );
    }

    #[test]
    fn dates_are_read_with_and_without_a_zone() {
        let expected = Some(1_527_628_820_163_000_000);
        for text in ["2018-05-29T23:20:20.163+02:00", "2018-05-29 23:20:20,163", "2018-05-29T21:20:20.163Z"] {
            assert_eq!(ns(text, "sent"), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "x",
            "-1",
            "1e9",
            ".5",
            "2018-05-29",
            "2018-13-29T00:00:00Z",
            "2018-05-29T24:00:00Z",
            "99999999999999999999",
            "2018-05-29T00:00",
            "é018-05-29T00:00:00Z",
        ] {
            assert_eq!(ns(text, "sent"), None, "{text}");
        }
    }
}
