//! Quantities as people write them: a number, a blank, a unit. `k` is 1000, `Ki` is 1024.
//!
//! A number without a unit is refused, and the message says what would be right. All arithmetic is exact until the least
//! unit, to which a value is rounded, halves to even. Every quantity has bounds, so that 64 bits hold what is computed
//! from it.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};

use crate::digits::plain;
use crate::nearest::closest;
use crate::shown::{quoted_short, shown};
use crate::tree::{Node, Value};

/// A kind of quantity.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// With an article.
    pub name: &'static str,
    /// Its units, each as a fraction of least units.
    pub units: &'static [(&'static str, i64, i64)],
    /// The unit that a bare number is proposed with.
    pub usual: &'static str,
    /// As it is written.
    pub example: &'static str,
    /// The least value.
    pub least: Bound,
    /// How it is said that the least is no value itself, such as `longer than`; empty where it is one.
    pub beyond: &'static str,
    /// The most.
    pub most: Bound,
}

/// A bound of a kind of quantity, in its least unit, and as it is written.
#[derive(Clone, Copy, Debug)]
pub struct Bound(pub i64, pub &'static str);

/// Nanoseconds of units of time, from the longest on, as limits are written.
const TIMES: [(i128, &str); 4] =
    [(3_600_000_000_000, "h"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
const SIZES: [(i128, &str); 2] = [(1 << 20, "MiB"), (1_000_000, "MB")];
/// A number of so many characters is not repeated in a proposal.
const LONG: usize = 20;

/// What others write for a unit.
const SPELLINGS: &[(&str, &[&str])] = &[
    ("s", &["sec", "secs", "second", "seconds"]),
    ("min", &["m", "mins", "minute", "minutes"]),
    ("h", &["hr", "hrs", "hour", "hours"]),
    ("ms", &["msec", "msecs", "millisecond", "milliseconds"]),
    ("us", &["usec", "usecs", "microsecond", "microseconds"]),
    ("bit/s", &["bps", "b/s", "bits/s", "bit/sec"]),
    ("kbit/s", &["kbps", "kb/s", "kbits/s", "kbit"]),
    ("Mbit/s", &["mbps", "mb/s", "mbits/s", "mbit"]),
    ("Gbit/s", &["gbps", "gb/s", "gbits/s", "gbit"]),
    ("B", &["byte", "bytes"]),
    ("kB", &["kb", "k", "kbyte", "kbytes"]),
    ("/s", &["hz", "/sec", "per second", "msg/s", "messages/s"]),
    ("%", &["percent", "pct"]),
];

impl Kind {
    /// The quantity in its least unit, rounded.
    ///
    /// # Errors
    /// What is wrong, in words that follow the field's name.
    pub fn read(&self, node: &Node) -> Result<i128, String> {
        self.read_exactly(node).map(|value| rounded(&value))
    }

    /// The quantity in its least unit.
    ///
    /// # Errors
    /// What is wrong, in words that follow the field's name: the accepted units or the bounds, and an example.
    pub fn read_exactly(&self, node: &Node) -> Result<BigRational, String> {
        let given = shown(node);
        let text = match &node.value {
            Value::Text(text) => text,
            Value::Real(real) if !real.is_finite() => return Err(self.not_one(&given)),
            Value::Whole(_) | Value::Huge(_) | Value::Real(_) => {
                return Err(format!("is {given}, which has no unit; {}", self.with_unit(&given)));
            }
            _ => {
                return Err(format!(
                    "is {given}, but must be {} as text, such as \"{}\"",
                    self.name, self.example
                ));
            }
        };
        let Some((number, unit)) = number_and_unit(text) else { return Err(self.not_one(&given)) };
        let Some(first) = unit.chars().next() else {
            return Err(format!("is {given}, which has no unit; {}", self.with_unit(number)));
        };
        if first.is_numeric() {
            return Err(format!("is {given}, which has too many digits for {}", self.name));
        }
        if first == ',' || first == '.' {
            let right = format!("write it with a decimal point, such as \"1.5 {}\"", self.usual);
            return Err(format!("is {given}, which is not a number; {right}"));
        }
        let Some(factor) = self.factor(unit) else {
            let wrong = format!("{} is not a unit of {}", quoted_short(unit), self.name);
            return Err(format!("is {given}, but {wrong}; {}", self.near(number, unit)));
        };
        let value = exact(number) * factor;
        self.within(&value).map_err(|limit| format!("is {given}, but must be {limit}"))?;
        Ok(value)
    }

    /// An amount of least units as a file has it.
    pub fn written(&self, amount: i128) -> String {
        let is = |unit: &str| self.units.iter().any(|(name, ..)| *name == unit);
        let scale: &[(i128, &str)] = if is("ms") {
            &TIMES
        } else if is("KiB") {
            &SIZES
        } else {
            &[]
        };
        let unit = scale.iter().find(|(factor, _)| amount >= *factor && amount % factor == 0);
        match unit {
            Some((factor, unit)) => format!("{} {unit}", plain((amount / factor) as f64, 6)),
            None if is("KiB") => format!("{amount} B"),
            None => {
                let usual = self.units.iter().find(|(unit, ..)| *unit == self.usual);
                let factor = usual.map_or(1.0, |(_, above, below)| *above as f64 / *below as f64);
                format!("{} {}", plain(amount as f64 / factor, 6), self.usual)
            }
        }
    }

    fn within(&self, value: &BigRational) -> Result<(), String> {
        let least = BigRational::from_integer(self.least.0.into());
        if *value < least || (!self.beyond.is_empty() && *value == least) {
            return Err(match self.beyond {
                "" => format!("{} or more", self.least.1),
                beyond => format!("{beyond} {}", self.least.1),
            });
        }
        if *value > BigRational::from_integer(self.most.0.into()) {
            return Err(format!("{} or less", self.most.1));
        }
        Ok(())
    }

    fn not_one(&self, given: &str) -> String {
        let right = format!("write a number and {}, such as \"{}\"", self.accepted(), self.example);
        format!("is {given}, which is not {}; {right}", self.name)
    }

    fn factor(&self, unit: &str) -> Option<BigRational> {
        let (_, above, below) = self.units.iter().find(|(name, ..)| *name == unit)?;
        Some(BigRational::new((*above).into(), (*below).into()))
    }

    fn accepted(&self) -> String {
        let accepted: Vec<_> =
            self.units.iter().map(|(name, ..)| *name).filter(|unit| *unit != "µs").collect();
        match accepted[..] {
            [unit] => unit.into(),
            _ => format!("one of {}", accepted.join(", ")),
        }
    }

    fn with_unit(&self, number: &str) -> String {
        if number.len() >= LONG {
            return format!("write {} behind it", self.accepted());
        }
        let positive = if self.least.0 >= 0 { number.trim_start_matches(['+', '-']) } else { number };
        let others = if self.units.len() == 1 {
            String::new()
        } else {
            format!(" (or another unit: {})", self.accepted())
        };
        format!("write \"{positive} {}\"{others}", self.unit_for(positive))
    }

    /// The usual unit, or the first one with which a number lies within the bounds.
    fn unit_for(&self, number: &str) -> &'static str {
        let Some((number, "")) = number_and_unit(number) else { return self.usual };
        let amount = exact(number);
        let units = self.units.iter().map(|(unit, ..)| *unit);
        let whole = |bound: i64| BigRational::from_integer(bound.into());
        let bounds = whole(self.least.0)..=whole(self.most.0);
        let fits = |unit: &&str| self.factor(unit).is_some_and(|factor| bounds.contains(&(&amount * factor)));
        [self.usual].into_iter().chain(units).find(fits).unwrap_or(self.usual)
    }

    fn near(&self, number: &str, unit: &str) -> String {
        let units = || self.units.iter().map(|(unit, ..)| *unit);
        let lower = unit.to_lowercase();
        let spelled = SPELLINGS.iter().find(|(_, others)| others.contains(&lower.as_str()));
        let spelled = spelled.map(|(right, _)| *right).filter(|right| units().any(|unit| unit == *right));
        let right = spelled
            .or_else(|| units().find(|other| other.to_lowercase() == lower))
            .or_else(|| closest(unit, units(), 0.7));
        match right.filter(|_| number.len() < LONG) {
            Some(right) => format!("did you mean \"{number} {right}\"?"),
            None => format!("use {}, such as \"{}\"", self.accepted(), self.example),
        }
    }
}

/// A number, and what stands behind it; none where a text does not begin with one. Single underscores stand between
/// digits, as in TOML's numbers. No more digits than a quantity needs: a million of them would take minutes.
pub(crate) fn number_and_unit(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let bytes = text.as_bytes();
    let mut at = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let whole = digits(&bytes[at..], 30, true);
    if whole == 0 {
        return None;
    }
    at += whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(&bytes[at + 1..], 30, false);
        at += if fraction > 0 { 1 + fraction } else { 0 };
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(&bytes[(at + 1 + sign).min(bytes.len())..], 3, false);
        at += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    Some((&text[..at], text[at..].trim_start()))
}

/// The length of up to so many digits.
fn digits(bytes: &[u8], most: usize, underscores: bool) -> usize {
    let (mut at, mut count) = (0, 0);
    while count < most {
        let apart = usize::from(underscores && count > 0 && bytes.get(at) == Some(&b'_'));
        if !bytes.get(at + apart).is_some_and(u8::is_ascii_digit) {
            break;
        }
        at += apart + 1;
        count += 1;
    }
    at
}

/// The number that a text of [`number_and_unit`] is.
pub(crate) fn exact(number: &str) -> BigRational {
    let number = number.replace('_', "").to_lowercase();
    let (mantissa, exponent) = number.split_once('e').unwrap_or((&number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: BigInt = format!("{whole}{fraction}").parse().unwrap_or_default();
    let power = exponent.parse::<i32>().unwrap_or(0) - fraction.len() as i32;
    let ten = BigRational::from_integer(10.into());
    BigRational::from_integer(digits) * ten.pow(power)
}

/// The nearest whole number, of two the even one.
pub(crate) fn rounded(value: &BigRational) -> i128 {
    let below = value.floor();
    let beyond_half = (value - &below) * BigInt::from(2) - BigRational::from_integer(1.into());
    let is_odd = !(below.to_integer() % BigInt::from(2)).is_zero();
    let up = beyond_half.is_positive() || (beyond_half.is_zero() && is_odd);
    let whole = below.to_integer() + BigInt::from(u8::from(up));
    whole.to_i128().unwrap_or(i128::MAX)
}

/// The fraction with a denominator up to this that is nearest to a value; of two the one with the smaller denominator.
pub(crate) fn with_denominator(value: &BigRational, most: i128) -> (u64, u64) {
    let most = BigInt::from(most);
    let (mut before, mut here) = ((BigInt::zero(), BigInt::from(1)), (BigInt::from(1), BigInt::zero()));
    let (mut above, mut below) = (value.numer().clone(), value.denom().clone());
    if below <= most {
        return parts(&above, &below);
    }
    // Convergents of the continued fraction, and the last semiconvergent.
    loop {
        let whole = &above / &below;
        let denominator = &before.1 + &whole * &here.1;
        if denominator > most {
            break;
        }
        let numerator = &before.0 + &whole * &here.0;
        before = std::mem::replace(&mut here, (numerator, denominator));
        let rest = &above - &whole * &below;
        above = std::mem::replace(&mut below, rest);
    }
    let times = (&most - &before.1) / &here.1;
    let semi = (&before.0 + &times * &here.0, &before.1 + &times * &here.1);
    let nearer = BigInt::from(2) * &below * (&before.1 + &times * &here.1) <= *value.denom();
    let (numerator, denominator) = if nearer { here } else { semi };
    parts(&numerator, &denominator)
}

fn parts(numerator: &BigInt, denominator: &BigInt) -> (u64, u64) {
    (numerator.to_u64().unwrap_or(u64::MAX), denominator.to_u64().unwrap_or(u64::MAX))
}

/// What a ratio without a unit may mean; none for what is no such number.
pub(crate) fn bare_ratio(node: &Node) -> Option<String> {
    let number = match &node.value {
        Value::Whole(whole) => *whole as f64,
        Value::Real(real) => *real,
        Value::Text(text) => text.trim().replace('_', "").parse().ok()?,
        _ => return None,
    };
    if !(0.0..=100.0).contains(&number) {
        return None;
    }
    let percent = |value: f64| format!("\"{} %\"", crate::digits::ungrouped(value, 12, false));
    if number > 0.0 && number <= 1.0 {
        return Some(format!("write {} or {}", percent(100.0 * number), percent(number)));
    }
    Some(format!("write {}", percent(number)))
}
