//! Numbers in words: as many digits as are read, and never in scientific notation.

/// A number to so many significant digits, without zeros at its end: `0.25`, `2,643`, `0.0000088`.
///
/// From so many digits before the point on all of them are shown, parted by commas.
pub fn plain(value: f64, digits: usize) -> String {
    ungrouped(value, digits, true)
}

/// The same; without commas where `grouped` is false.
pub(crate) fn ungrouped(value: f64, digits: usize, grouped: bool) -> String {
    if !value.is_finite() {
        return general(value, digits);
    }
    if value.abs() >= 10f64.powi(digits as i32 - 1) {
        let whole = format!("{value:.0}");
        return if grouped { with_commas(&whole) } else { whole };
    }
    let text = format!("{value:.*e}", digits - 1);
    // `LowerExp` always writes an exponent.
    let exponent: i32 = text.split_once('e').map_or(0, |(_, exponent)| exponent.parse().unwrap_or(0));
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    without_zeros(&format!("{value:.decimals$}"))
}

/// A number as `%g` of C prints it: so many significant digits, an exponent for very large and very small ones.
pub fn general(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let text = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..digits as i32).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
        return without_zeros(&format!("{value:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs())
}

/// A whole number with a comma before each three digits.
pub fn with_commas(whole: &str) -> String {
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut text = String::from(sign);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn without_zeros(text: &str) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_as_many_as_are_read() {
        let shown = [0.25, 2643.0, 0.0000088, 1e6, 123_456.7, 1_234_567.0, -0.1, 0.0, 100.0 / 3.0];
        let shown = shown.map(|value| plain(value, 6));
        assert_eq!(
            shown,
            ["0.25", "2643", "0.0000088", "1,000,000", "123,457", "1,234,567", "-0.1", "0", "33.3333"]
        );
        assert_eq!(general(1e20, 15), "1e+20");
        assert_eq!(general(0.5, 15), "0.5");
        assert_eq!(general(1e-7, 15), "1e-07");
        assert_eq!(general(f64::NAN, 15), "nan");
    }
}
