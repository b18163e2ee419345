//! Times at the beginning of a log's lines, and how fine they are.
//!
//! A line may have two: what a program wrote, behind what the program that took the line wrote (`journalctl`, `docker logs
//! -t`, `ts`). The first one that is finer than a second counts, else the first.
//!
//! What it does not model: times without a date, and names of months other than English ones.

use mqttlab_units::Instant;

use crate::timestamps::{self, unit_of};

/// A point in time, and the unit that its writer counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Since 1970; of a time without a year, since the beginning of some year.
    pub at: Instant,
    /// What its last digit counts, in nanoseconds.
    pub resolution_ns: u64,
    /// Whether it says the year.
    pub has_year: bool,
}

/// The time in what stands before a line's message. A date without a zone is `utc_offset_s` ahead of UTC.
pub fn stamp(prefix: &str, utc_offset_s: i64) -> Option<Stamp> {
    let words: Vec<&str> = prefix.split_whitespace().map(bare).filter(|word| !word.is_empty()).collect();
    let mut found = None;
    let mut place = 0;
    while place < words.len() {
        // Readers of a recording have signed times.
        let told = read(&words[place..], utc_offset_s);
        let Some((stamp, taken)) = told.filter(|(stamp, _)| i64::try_from(stamp.at.as_ns()).is_ok()) else {
            place += 1;
            continue;
        };
        if stamp.resolution_ns < NS_PER_S {
            return Some(stamp);
        }
        found = found.or(Some(stamp));
        place += taken;
    }
    found
}

/// A word without what stands around it: `[2026-11-28T19:54:38]:`.
fn bare(word: &str) -> &str {
    word.trim_matches(['[', ']', '(', ')', '|', ',']).trim_end_matches(':').trim_matches(['[', ']'])
}

fn read(words: &[&str], utc_offset_s: i64) -> Option<(Stamp, usize)> {
    let first = *words.first()?;
    if is_date(first) {
        if first.len() > DATE {
            return Some((at(first, utc_offset_s)?, 1));
        }
        let joined = format!("{first}T{}", words.get(1)?);
        return Some((at(&joined, utc_offset_s)?, 2));
    }
    if let Some(month) = MONTHS.iter().position(|month| *month == first) {
        let day: u32 = words.get(1)?.parse().ok()?;
        let joined = format!("1970-{:02}-{day:02}T{}", month + 1, words.get(2)?);
        return Some((Stamp { has_year: false, ..at(&joined, utc_offset_s)? }, 3));
    }
    let whole = first.split('.').next()?;
    // From 2001 on; a smaller number is something else.
    let is_epoch = whole.len() >= EPOCH_DIGITS && whole.bytes().all(|byte| byte.is_ascii_digit());
    is_epoch.then(|| number(first)).flatten().map(|stamp| (stamp, 1))
}

fn is_date(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() >= DATE && bytes[4] == b'-' && bytes[7] == b'-' && bytes[..4].iter().all(u8::is_ascii_digit)
}

fn at(date: &str, utc_offset_s: i64) -> Option<Stamp> {
    let at = timestamps::read(date, unit_of("").1, utc_offset_s).ok()?;
    Some(Stamp { at, resolution_ns: resolution(date), has_year: true })
}

/// Seconds since 1970, or milliseconds where there are so many digits.
fn number(text: &str) -> Option<Stamp> {
    let whole = text.split('.').next()?.len();
    let (column, unit_ns) = match whole {
        ..=11 => ("_s", NS_PER_S),
        12..=14 => ("_ms", 1_000_000),
        15..=17 => ("_us", 1_000),
        _ => ("_ns", 1),
    };
    let at = timestamps::read(text, unit_of(column).1, 0).ok()?;
    Some(Stamp { at, resolution_ns: resolution(text).min(unit_ns).max(1), has_year: true })
}

/// What the last digit of a fraction counts.
fn resolution(text: &str) -> u64 {
    let fraction = text.rfind(['.', ',']).map_or("", |point| &text[point + 1..]);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count().min(9);
    NS_PER_S / 10_u64.pow(digits as u32)
}

const NS_PER_S: u64 = 1_000_000_000;
const DATE: usize = 10;
const EPOCH_DIGITS: usize = 10;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

#[cfg(test)]
mod tests {
    use super::*;

    fn told(prefix: &str) -> Option<(u64, u64)> {
        stamp(prefix, 3_600).map(|stamp| (stamp.at.as_ns(), stamp.resolution_ns))
    }

    #[test]
    fn a_line_begins_with_seconds_or_a_date() {
        assert_eq!(told("1795895652: "), Some((1_795_895_652_000_000_000, NS_PER_S)));
        assert_eq!(told("2026-11-28T20:54:12: "), Some((1_795_895_652_000_000_000, NS_PER_S)));
        assert_eq!(told("[2026-11-28 20:54:12.250]: "), Some((1_795_895_652_250_000_000, 1_000_000)));
        assert_eq!(told(""), None);
        assert_eq!(told("20:54:12 "), None);
    }

    #[test]
    fn the_finer_time_of_who_took_the_line_counts() {
        let docker = told("2026-11-28T19:54:12.123456789Z 1795895652: ");
        assert_eq!(docker, Some((1_795_895_652_123_456_789, 1)));
        let journal = told("2026-11-28T19:54:12.123456+0000 host mosquitto[77]: 1795895652: ");
        assert_eq!(journal, Some((1_795_895_652_123_456_000, 1_000)));
        assert_eq!(told("1795895652.25 1795895652: "), Some((1_795_895_652_250_000_000, 10_000_000)));
    }

    #[test]
    fn a_system_log_has_no_year() {
        let found = stamp("Nov 28 19:54:12 host mosquitto[77]: ", 0).unwrap();
        assert!(!found.has_year);
        assert_eq!(found.resolution_ns, NS_PER_S);
    }
}
