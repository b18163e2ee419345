//! The kinds of quantities, and the rules that read them.

use std::marker::PhantomData;

use mqttlab_units::{BitRate, Duration, Ratio};

use crate::bounds::Bounds;
use crate::declaration::Shape;
use crate::quantity::{self, Bound, Kind};
use crate::reader::Reader;
use crate::rule::{Field, Rule};
use crate::shown::shown;
use crate::tree::{Node, Value};

const HOUR_NS: i64 = 3_600_000_000_000;
/// The longest time: 366 days.
const DURATION_NS_MAX: i64 = 8784 * HOUR_NS;
/// A ratio's denominator, at most.
const DENOMINATOR_MAX: i128 = 1_000_000_000_000;
const S: i128 = 1_000_000_000;

const TIMES: &[(&str, i64, i64)] = &[
    ("ns", 1, 1),
    ("us", 1_000, 1),
    ("µs", 1_000, 1),
    ("ms", 1_000_000, 1),
    ("s", 1_000_000_000, 1),
    ("min", 60_000_000_000, 1),
    ("h", HOUR_NS, 1),
];

/// A length of time, in nanoseconds.
pub const DURATION: Kind = Kind {
    name: "a length of time",
    units: TIMES,
    usual: "s",
    example: "550 ms",
    least: Bound(0, "0 s"),
    beyond: "",
    most: Bound(DURATION_NS_MAX, "8784 h (366 days)"),
};
const POSITIVE: Kind = Kind { beyond: "longer than", ..DURATION };
const SHORT: Kind = Kind { usual: "ms", ..DURATION };
const POSITIVE_SHORT: Kind = Kind { usual: "ms", ..POSITIVE };
const MICRO: Kind = Kind { usual: "us", ..DURATION };
const MOMENT: Kind = Kind {
    name: "a time",
    example: "30 s",
    least: Bound(-DURATION_NS_MAX, "-8784 h (366 days)"),
    ..DURATION
};
/// A delay, in nanoseconds.
pub const DELAY: Kind =
    Kind { name: "a delay", usual: "ms", example: "50 ms", most: Bound(HOUR_NS, "1 h"), ..DURATION };
/// A data rate, in bit/s.
pub const RATE: Kind = Kind {
    name: "a data rate",
    units: &[
        ("bit/s", 1, 1),
        ("kbit/s", 1_000, 1),
        ("Mbit/s", 1_000_000, 1),
        ("Gbit/s", 1_000_000_000, 1),
        ("B/s", 8, 1),
        ("kB/s", 8_000, 1),
        ("MB/s", 8_000_000, 1),
    ],
    usual: "bit/s",
    example: "250 kbit/s",
    least: Bound(1, "1 bit/s"),
    beyond: "",
    most: Bound(100_000_000_000, "100 Gbit/s"),
};
/// A number of bytes.
pub const SIZE: Kind = Kind {
    name: "a size",
    units: &[("B", 1, 1), ("kB", 1_000, 1), ("MB", 1_000_000, 1), ("KiB", 1 << 10, 1), ("MiB", 1 << 20, 1)],
    usual: "B",
    example: "200 B",
    least: Bound(0, "0 B"),
    beyond: "",
    most: Bound(1 << 40, "1 TiB"),
};
/// Thousandths of a second's part: how often something happens.
const FREQUENCY: Kind = Kind {
    name: "a rate",
    units: &[("/s", 1, 1), ("/min", 1, 60), ("/h", 1, 3600)],
    usual: "/s",
    example: "100 /s",
    least: Bound(0, "0 /s"),
    beyond: "",
    most: Bound(1_000_000, "1000000 /s"),
};
const LENGTH: Kind = Kind {
    name: "a length",
    units: &[("mm", 1, 1), ("m", 1_000, 1), ("km", 1_000_000, 1)],
    usual: "m",
    example: "150 m",
    least: Bound(0, "0 m"),
    beyond: "",
    most: Bound(1_000_000_000, "1000 km"),
};
const SPEED: Kind = Kind {
    name: "a speed",
    units: &[("mm/s", 1, 1), ("m/s", 1_000, 1), ("km/h", 1_000_000, 3600)],
    usual: "m/s",
    example: "1.5 m/s",
    least: Bound(0, "0 m/s"),
    beyond: "",
    most: Bound(1_000_000, "1000 m/s"),
};
const CURRENT: Kind = Kind {
    name: "a current",
    units: &[("nA", 1, 1), ("uA", 1_000, 1), ("µA", 1_000, 1), ("mA", 1_000_000, 1), ("A", 1_000_000_000, 1)],
    usual: "uA",
    example: "10 uA",
    least: Bound(0, "0 A"),
    beyond: "",
    most: Bound(4_000_000_000, "4 A"),
};
const POWER: Kind = Kind {
    name: "a power",
    units: &[("dBm", 1_000, 1)],
    usual: "dBm",
    example: "20 dBm",
    least: Bound(-200_000, "-200 dBm"),
    beyond: "",
    most: Bound(100_000, "100 dBm"),
};
const GAIN: Kind = Kind {
    name: "a level",
    units: &[("dB", 1_000, 1)],
    usual: "dB",
    example: "4 dB",
    least: Bound(-100_000, "-100 dB"),
    beyond: "",
    most: Bound(100_000, "100 dB"),
};
/// Thousandths of a bandwidth-delay product.
pub const PRODUCTS: Kind = Kind {
    name: "a number of bandwidth-delay products",
    units: &[("BDP", 1_000, 1)],
    usual: "BDP",
    example: "1 BDP",
    least: Bound(1, "0.001 BDP"),
    beyond: "",
    most: Bound(1_000_000, "1000 BDP"),
};
const RATIO: Kind = Kind {
    name: "a ratio",
    units: &[("%", 1, 100)],
    usual: "%",
    example: "1 %",
    least: Bound(0, "0 %"),
    beyond: "",
    most: Bound(1, "100 %"),
};

/// Declares rules that read a quantity of a kind.
macro_rules! quantities {
    ($( $(#[$about:meta])* $rule:ident: $kind:expr => $target:ty, $read:expr, $amount:expr $(, $own:expr)?; )*) => { $(
        $(#[$about])*
        #[derive(Debug)]
        pub struct $rule;

        impl Rule for $rule {
            type Target = $target;

            fn read(node: &Node, reader: &mut Reader) -> Option<$target> {
                const KIND: Kind = $kind;
                let read: fn(&Kind, &Node) -> Result<$target, String> = $read;
                read(&KIND, node).map_or_else(|what| reader.wrong(what), Some)
            }

            fn shape() -> Shape {
                const KIND: Kind = $kind;
                Shape::Quantity(&KIND)
            }

            fn amount(value: &$target) -> Option<i128> {
                let amount: fn($target) -> i128 = $amount;
                Some(amount(*value))
            }

            $( fn own_bounds() -> Bounds {
                Bounds::of($own)
            } )?
        }
    )* };
}

fn time(kind: &Kind, node: &Node) -> Result<Duration, String> {
    kind.read(node).map(|ns| Duration::from_ns(ns as u64))
}

fn longer(kind: &Kind, node: &Node) -> Result<Duration, String> {
    match time(kind, node)? {
        Duration::ZERO => Err(format!("is {}, but must be longer than 0 s", shown(node))),
        time => Ok(time),
    }
}

fn ns(time: Duration) -> i128 {
    time.as_ns().into()
}

quantities! {
    /// A length of time, zero or more.
    Time: DURATION => Duration, time, ns, ..=DURATION_NS_MAX;
    /// A length of time above zero.
    PositiveTime: POSITIVE => Duration, longer, ns, 1..=DURATION_NS_MAX;
    /// A length of time that is usually in milliseconds.
    ShortTime: SHORT => Duration, time, ns, ..=DURATION_NS_MAX;
    /// The same above zero.
    PositiveShortTime: POSITIVE_SHORT => Duration, longer, ns, 1..=DURATION_NS_MAX;
    /// A length of time that is usually in microseconds.
    MicroTime: MICRO => Duration, time, ns, ..=DURATION_NS_MAX;
    /// A length of time that the protocol carries in whole seconds.
    Seconds: DURATION => Duration, seconds, ns, ..=DURATION_NS_MAX;
    /// A delay, up to an hour.
    Delay: DELAY => Duration, time, ns, ..=HOUR_NS;
    /// Bits per second, from 1 bit/s to 100 Gbit/s.
    DataRate: RATE => BitRate, data_rate, |rate| rate.as_bit_s().into(), ..=100_000_000_000_i64;
    /// The time between events, from their rate.
    Interval: FREQUENCY => Duration, interval, ns;
    /// The same, and zero for a rate of none at all.
    IntervalOrNone: FREQUENCY => Duration, interval_or_none, ns;
}

fn seconds(kind: &Kind, node: &Node) -> Result<Duration, String> {
    let ns = kind.read(node)?;
    if ns % S == 0 {
        return Ok(Duration::from_ns(ns as u64));
    }
    // Halves to even, as everywhere.
    let whole = ((ns as f64 / S as f64).round_ties_even() as u64).max(1);
    Err(format!("is {}, but MQTT carries whole seconds; the nearest is \"{whole} s\"", shown(node)))
}

fn data_rate(kind: &Kind, node: &Node) -> Result<BitRate, String> {
    kind.read(node).map(|rate| BitRate::from_bit_s(rate as u64).expect("the least rate is 1 bit/s"))
}

fn size(kind: &Kind, node: &Node) -> Result<i128, String> {
    let exact = kind.read_exactly(node)?;
    let whole = quantity::rounded(&exact);
    if exact.is_integer() {
        return Ok(whole);
    }
    Err(format!("is {}, which is not a whole number of bytes; the nearest is \"{whole} B\"", shown(node)))
}

fn interval(kind: &Kind, node: &Node) -> Result<Duration, String> {
    let exact = Kind { beyond: "above", ..*kind }.read_exactly(node)?;
    let ns = quantity::rounded(&(exact.recip() * num_bigint::BigInt::from(S)));
    Ok(Duration::from_ns(ns.clamp(1, DURATION_NS_MAX.into()) as u64))
}

fn interval_or_none(kind: &Kind, node: &Node) -> Result<Duration, String> {
    let exact = kind.read_exactly(node)?;
    if exact == num_rational::BigRational::from_integer(0.into()) {
        return Ok(Duration::ZERO);
    }
    interval(kind, node)
}

/// Declares rules that read a quantity as a number of least units, of any integer type.
macro_rules! amounts {
    ($( $(#[$about:meta])* $rule:ident<$default:ty>: $kind:expr, $read:expr; )*) => { $(
        $(#[$about])*
        #[derive(Debug)]
        pub struct $rule<T = $default>(PhantomData<T>);

        impl<T: TryFrom<i128> + Copy + Into<i128>> Rule for $rule<T> {
            type Target = T;

            fn read(node: &Node, reader: &mut Reader) -> Option<T> {
                const KIND: Kind = $kind;
                let read: fn(&Kind, &Node) -> Result<i128, String> = $read;
                let amount = read(&KIND, node).map_or_else(|what| reader.wrong(what), Some)?;
                // A field whose type is narrower than its quantity has bounds that are narrower than its type.
                T::try_from(amount).ok().or_else(|| reader.wrong(format!("is {}, which is beyond its bounds", shown(node))))
            }

            fn shape() -> Shape {
                const KIND: Kind = $kind;
                Shape::Quantity(&KIND)
            }

            fn amount(value: &T) -> Option<i128> {
                Some((*value).into())
            }
        }
    )* };
}

amounts! {
    /// Nanoseconds from the beginning of the measurement; below zero before it.
    Moment<i64>: MOMENT, Kind::read;
    /// Whole bytes.
    Size<u64>: SIZE, size;
    /// Thousandths of a bandwidth-delay product.
    Products<u64>: PRODUCTS, Kind::read;
    /// Millimetres.
    Length<u64>: LENGTH, Kind::read;
    /// Millimetres per second.
    Speed<u64>: SPEED, Kind::read;
    /// Nanoamperes.
    Current<u64>: CURRENT, Kind::read;
    /// Thousandths of a dBm.
    Power<i64>: POWER, Kind::read;
    /// Thousandths of a dB.
    Gain<i64>: GAIN, Kind::read;
}

/// A number without a unit, in thousandths.
#[derive(Debug)]
pub struct Thousandths;

impl Rule for Thousandths {
    type Target = u32;

    fn read(node: &Node, reader: &mut Reader) -> Option<u32> {
        let number = match node.value {
            Value::Whole(whole) => whole as f64,
            Value::Real(real) if real.is_finite() => real,
            Value::Real(_) => {
                return reader.wrong(format!("is {}, but must be a finite number", shown(node)));
            }
            _ => return reader.wrong(format!("is {}, but must be a number", shown(node))),
        };
        Some((1000.0 * number).round_ties_even() as u32)
    }

    fn shape() -> Shape {
        Shape::Number
    }

    fn amount(value: &u32) -> Option<i128> {
        Some((*value).into())
    }
}

/// A fraction between 0 and 1, from `"1 %"` or `"1/3"`.
#[derive(Debug)]
pub struct Share;

impl Rule for Share {
    type Target = Ratio;

    fn read(node: &Node, reader: &mut Reader) -> Option<Ratio> {
        ratio(node).map_or_else(|what| reader.wrong(what), Some)
    }

    fn shape() -> Shape {
        Shape::Quantity(&RATIO)
    }
}

impl Field for Ratio {
    type Rule = Share;
}

fn ratio(node: &Node) -> Result<Ratio, String> {
    let exact = match node.as_text().and_then(fraction) {
        Some((above, below)) if below == 0 || above > below => {
            return Err(format!("is {}, but must be 100 % (1/1) or less", shown(node)));
        }
        Some((above, below)) => num_rational::BigRational::new(above.into(), below.into()),
        None => match quantity::bare_ratio(node) {
            Some(right) => return Err(format!("is {}, which has no unit; {right}", shown(node))),
            None => RATIO.read_exactly(node)?,
        },
    };
    let (numerator, denominator) = quantity::with_denominator(&exact, DENOMINATOR_MAX);
    Ok(Ratio::new(numerator, denominator).expect("a ratio is at most 1"))
}

/// The numbers of `"1/3"`.
fn fraction(text: &str) -> Option<(u64, u64)> {
    let (above, below) = text.split_once('/')?;
    let number = |text: &str| {
        let text = text.trim();
        let is_one = (1..=18).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit());
        is_one.then(|| text.parse().ok()).flatten()
    };
    Some((number(above)?, number(below)?))
}

/// Width and height in millimetres, from `"150 m x 150 m"`.
#[derive(Debug)]
pub struct Area;

impl Rule for Area {
    type Target = (u64, u64);

    fn read(node: &Node, reader: &mut Reader) -> Option<(u64, u64)> {
        area(node).map_or_else(|what| reader.wrong(what), Some)
    }

    fn shape() -> Shape {
        Shape::Text(Some("150 m x 150 m"))
    }
}

fn area(node: &Node) -> Result<(u64, u64), String> {
    let parts: Vec<_> = node.as_text().unwrap_or_default().split(['x', '×']).collect();
    let [width, height] = parts[..] else {
        let right = "write width and height, such as \"150 m x 150 m\"";
        return Err(format!("is {}, which is not an area; {right}", shown(node)));
    };
    let mm = |text: &str| LENGTH.read(&Node::text(text.trim())).map(|mm| mm as u64);
    let (width, height) = (mm(width)?, mm(height)?);
    if width == 0 || height == 0 {
        return Err(format!("is {}, but must be wider and higher than 0 m", shown(node)));
    }
    Ok((width, height))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told<R: Rule>(node: &Node) -> Result<R::Target, String> {
        let mut reader = Reader::default();
        let read = R::read(node, &mut reader);
        read.ok_or_else(|| reader.into_problems().remove(0).what)
    }

    fn text<R: Rule>(text: &str) -> Result<R::Target, String> {
        told::<R>(&Node::text(text))
    }

    #[test]
    fn quantities_are_exact_numbers_of_least_units() {
        assert_eq!(text::<Time>("1.5 ms"), Ok(Duration::from_ns(1_500_000)));
        assert_eq!(text::<Time>(" 1_000  us "), Ok(Duration::from_ms(1)));
        assert_eq!(text::<Time>("2.5 ns"), Ok(Duration::from_ns(2)));
        assert_eq!(text::<DataRate>("250 kbit/s").map(BitRate::as_bit_s), Ok(250_000));
        assert_eq!(text::<Size>("1 KiB"), Ok(1024));
        assert_eq!(text::<Interval>("3 /s"), Ok(Duration::from_ns(333_333_333)));
        assert_eq!(text::<Share>("1/3"), Ratio::new(1, 3).map_err(|_| String::new()));
        assert_eq!(text::<Share>("2.5 %"), Ratio::new(1, 40).map_err(|_| String::new()));
        assert_eq!(text::<Speed>("3.6 km/h"), Ok(1000));
        assert_eq!(text::<Power>("-90 dBm"), Ok(-90_000));
        assert_eq!(text::<Area>("150 m x 0.2 km"), Ok((150_000, 200_000)));
    }

    #[test]
    fn a_wrong_quantity_is_told_with_the_nearest_right_one() {
        let wrong = |rule: Result<Duration, String>| rule.unwrap_err();
        assert_eq!(
            wrong(told::<Time>(&Node::new(Value::Whole(5)))),
            "is 5, which has no unit; write \"5 s\" (or another unit: one of ns, us, ms, s, min, h)"
        );
        assert_eq!(
            wrong(text::<Time>("5 sec")),
            "is \"5 sec\", but \"sec\" is not a unit of a length of time; did you mean \"5 s\"?"
        );
        assert_eq!(
            wrong(text::<Time>("1,5 s")),
            "is \"1,5 s\", which is not a number; write it with a decimal point, such as \"1.5 s\""
        );
        assert_eq!(wrong(text::<PositiveTime>("0 s")), "is \"0 s\", but must be longer than 0 s");
        assert_eq!(
            text::<Share>("0.01").unwrap_err(),
            "is \"0.01\", which has no unit; write \"1 %\" or \"0.01 %\""
        );
        assert_eq!(
            text::<Size>("1.5 B").unwrap_err(),
            "is \"1.5 B\", which is not a whole number of bytes; the nearest is \"2 B\""
        );
    }
}
