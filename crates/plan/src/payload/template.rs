//! A text with places that every message fills in.
//!
//! ```text
//! {"mqttlab":"┌ identity as text ┐", "id": "┌ client ┐", "n": ┌ sequence ┐, "v": ┌ number ┐}   ... spaces up to a size
//! ```
//!
//! A part is written by one function, into bytes, or into a counter where only the length is wanted. Each random part has a
//! stream of its own, by its place, so that one more does not change the others.

use std::fmt::{self, Write};
use std::sync::Arc;

use mqttlab_units::{Seed, rfc3339};

use super::{MessageNumber, TEXT_IDENTITY_BYTES};
use crate::{TemplatePart, TimeFormat};

/// What writes the messages of a publication.
#[derive(Clone, Debug)]
pub struct Template {
    parts: Arc<[TemplatePart]>,
    /// A shorter text has spaces at its end.
    bytes: usize,
    /// Of all messages, where they do not differ.
    same_len: Option<usize>,
    seed: Seed,
}

impl Template {
    pub(super) fn new(parts: &[TemplatePart], bytes: Option<u64>, seed: Seed) -> Template {
        let bytes = bytes.unwrap_or(0) as usize;
        let [least, most] = bounds(parts, u32::MAX).map(|text| text.max(bytes));
        let same_len = (least == most).then_some(least);
        Template { parts: parts.into(), bytes, same_len, seed }
    }

    /// The length of a message.
    pub(super) fn len(&self, message: MessageNumber) -> usize {
        self.same_len.unwrap_or_else(|| self.text_len(message, self.parts.len()).max(self.bytes))
    }

    /// Where a message has its identity.
    pub(super) fn identity_at(&self, message: MessageNumber) -> usize {
        let number = self.parts.iter().position(|part| *part == TemplatePart::Identity);
        self.text_len(message, number.expect("the plan was checked: a template has an identity"))
    }

    /// Appends a message that is due at `unix_ns`; zeros stand for its identity.
    pub(super) fn write(&self, message: MessageNumber, unix_ns: u64, out: &mut Vec<u8>) {
        let start = out.len();
        self.write_parts(message, unix_ns, self.parts.len(), &mut Appended(out));
        out.resize(out.len().max(start + self.bytes), b' ');
    }

    /// The length of the first parts of a message. A time always has as many digits.
    fn text_len(&self, message: MessageNumber, count: usize) -> usize {
        let mut counted = Counted(0);
        self.write_parts(message, 0, count, &mut counted);
        counted.0
    }

    fn write_parts(&self, message: MessageNumber, unix_ns: u64, count: usize, out: &mut impl Write) {
        let seed = self.seed.index(u64::from(message.client)).index(message.sequence);
        for (part, number) in self.parts[..count].iter().zip(0..) {
            write_part(part, message, unix_ns, seed.index(number), out).expect("memory takes every text");
        }
    }
}

fn write_part(
    part: &TemplatePart,
    message: MessageNumber,
    unix_ns: u64,
    seed: Seed,
    out: &mut impl Write,
) -> fmt::Result {
    match part {
        TemplatePart::Text { text } => out.write_str(text),
        TemplatePart::Identity => write!(out, "{:0TEXT_IDENTITY_BYTES$}", 0),
        TemplatePart::Client { width } => {
            write!(out, "{:0width$}", message.client, width = usize::from(*width))
        }
        TemplatePart::Sequence { width } => {
            write!(out, "{:0width$}", message.sequence, width = usize::from(*width))
        }
        TemplatePart::Time { format } => write_time(*format, unix_ns, out),
        TemplatePart::Number { low, high, decimals } => {
            let above = seed.dice().below(high.abs_diff(*low).saturating_add(1));
            write_number(low.saturating_add_unsigned(above), *decimals, out)
        }
        TemplatePart::Hex { digits } => {
            let mut dice = seed.dice();
            for begin in (0..*digits).step_by(16) {
                let bits = format!("{:016x}", dice.bits());
                out.write_str(&bits[..16.min(digits - begin) as usize])?;
            }
            Ok(())
        }
        TemplatePart::Choice { choices } => {
            out.write_str(&choices[seed.dice().below(choices.len() as u64) as usize])
        }
        TemplatePart::Uuid => {
            let mut dice = seed.dice();
            let [high, low] = [dice.bits(), dice.bits()];
            // RFC 9562 §5.4: the version in four bits, the variant in two.
            let (high, low) = (high & !0xf000 | 0x4000, low & (u64::MAX >> 2) | 1 << 63);
            write!(out, "{:08x}-{:04x}-{:04x}-", high >> 32, high >> 16 & 0xffff, high & 0xffff)?;
            write!(out, "{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff)
        }
    }
}

fn write_time(format: TimeFormat, unix_ns: u64, out: &mut impl Write) -> fmt::Result {
    // Zeros before the times of 2001 and earlier, so that all are of one length until 2286.
    match format {
        TimeFormat::S => write!(out, "{:010}", unix_ns / 1_000_000_000),
        TimeFormat::Ms => write!(out, "{:013}", unix_ns / 1_000_000),
        TimeFormat::Us => write!(out, "{:016}", unix_ns / 1_000),
        TimeFormat::Ns => write!(out, "{unix_ns:019}"),
        TimeFormat::Iso => out.write_str(&rfc3339(unix_ns, 3)),
    }
}

fn write_number(value: i64, decimals: u8, out: &mut impl Write) -> fmt::Result {
    if decimals == 0 {
        return write!(out, "{value}");
    }
    let (one, width) = (10_u64.pow(u32::from(decimals)), usize::from(decimals));
    let sign = if value < 0 { "-" } else { "" };
    write!(out, "{sign}{}.{:0width$}", value.unsigned_abs() / one, value.unsigned_abs() % one)
}

/// The shortest and the longest text, in bytes, of messages of clients up to `last_client`.
pub(super) fn bounds(parts: &[TemplatePart], last_client: u32) -> [usize; 2] {
    let mut sums = [0, 0];
    for part in parts {
        let [least, most] = part_bounds(part, last_client);
        sums = [sums[0] + least, sums[1] + most];
    }
    sums
}

fn part_bounds(part: &TemplatePart, last_client: u32) -> [usize; 2] {
    let of = |part: &TemplatePart, client, sequence| {
        let mut counted = Counted(0);
        let message = MessageNumber { client, sequence };
        write_part(part, message, 0, Seed(0), &mut counted).expect("a counter takes every text");
        counted.0
    };
    let among = |lens: &mut dyn Iterator<Item = usize>| {
        lens.fold([usize::MAX, 0], |[least, most], len| [least.min(len), most.max(len)])
    };
    match part {
        TemplatePart::Number { low, high, decimals } => {
            // Of a range across zero, zero is the shortest.
            let values = [*low, *high, 0.clamp(*low, *high)];
            let fixed = |value| TemplatePart::Number { low: value, high: value, decimals: *decimals };
            among(&mut values.into_iter().map(|value| of(&fixed(value), 0, 0)))
        }
        TemplatePart::Choice { choices } => among(&mut choices.iter().map(String::len)),
        _ => [of(part, 0, 0), of(part, last_client, u64::from(u32::MAX))],
    }
}

struct Appended<'a>(&'a mut Vec<u8>);

impl Write for Appended<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

struct Counted(usize);

impl Write for Counted {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> TemplatePart {
        TemplatePart::Text { text: text.into() }
    }

    fn number(low: i64, high: i64, decimals: u8) -> TemplatePart {
        TemplatePart::Number { low, high, decimals }
    }

    fn every_part() -> Vec<TemplatePart> {
        let times = [TimeFormat::S, TimeFormat::Ms, TimeFormat::Us, TimeFormat::Ns, TimeFormat::Iso];
        let mut parts = vec![
            text("{\"é\": "),
            TemplatePart::Client { width: 0 },
            TemplatePart::Identity,
            TemplatePart::Sequence { width: 3 },
            number(-25, 1000, 0),
            number(-995, -5, 2),
            TemplatePart::Hex { digits: 19 },
            TemplatePart::Choice { choices: vec!["a".into(), "longer".into(), String::new()] },
            TemplatePart::Uuid,
        ];
        parts.extend(times.map(|format| TemplatePart::Time { format }));
        parts
    }

    fn written(template: &Template, client: u32, sequence: u64) -> String {
        let mut out = b"before ".to_vec();
        template.write(MessageNumber { client, sequence }, 1_700_000_000_123_456_789, &mut out);
        String::from_utf8(out.split_off(7)).unwrap()
    }

    #[test]
    fn a_message_is_as_long_as_it_was_said_to_be() {
        for bytes in [None, Some(100), Some(250), Some(5000)] {
            let template = Template::new(&every_part(), bytes, Seed(3));
            let [least, most] = bounds(&every_part(), 99_999);
            for (client, sequence) in (0..2000_u32).map(|n| (n * 49, u64::from(n) * 2_000_003)) {
                let message = MessageNumber { client, sequence };
                let (made, padded) = (written(&template, client, sequence), bytes.unwrap_or(0) as usize);
                assert_eq!(made.len(), template.len(message), "{made}");
                assert!((least.max(padded)..=most.max(padded)).contains(&made.len()), "{made}");
                let at = template.identity_at(message);
                assert!(made.as_bytes()[at..at + TEXT_IDENTITY_BYTES].iter().all(|byte| *byte == b'0'));
                assert!(made.len() == made.trim_end().len() || made.len() == padded, "{made}");
            }
        }
    }

    #[test]
    fn parts_are_written_as_people_expect() {
        let one = |part: TemplatePart| written(&Template::new(&[part], None, Seed(1)), 7, 42);
        assert_eq!(one(TemplatePart::Client { width: 4 }), "0007");
        assert_eq!(one(TemplatePart::Sequence { width: 0 }), "42");
        assert_eq!(one(number(-5, -5, 2)), "-0.05");
        assert_eq!(one(number(1234, 1234, 1)), "123.4");
        assert_eq!(one(number(i64::MAX, i64::MAX, 0)), i64::MAX.to_string());
        let time = |format| one(TemplatePart::Time { format });
        assert_eq!(time(TimeFormat::S), "1700000000");
        assert_eq!(time(TimeFormat::Ms), "1700000000123");
        assert_eq!(time(TimeFormat::Us), "1700000000123456");
        assert_eq!(time(TimeFormat::Ns), "1700000000123456789");
        assert_eq!(time(TimeFormat::Iso), "2023-11-14T22:13:20.123Z");
        let uuid = one(TemplatePart::Uuid);
        let groups: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!((groups, &uuid[14..15]), (vec![8, 4, 4, 4, 12], "4"));
        assert!("89ab".contains(&uuid[19..20]), "{uuid}");
    }

    #[test]
    fn draws_fill_their_range_evenly_and_repeat_when_made_again() {
        let template = Template::new(&[number(-2, 2, 0), text(" "), number(-2, 2, 0)], None, Seed(9));
        let mut counts = std::collections::BTreeMap::new();
        let mut alike = 0;
        for sequence in 0..10_000 {
            let made = written(&template, 1, sequence);
            assert_eq!(made, written(&template, 1, sequence));
            let (first, second) = made.split_once(' ').unwrap();
            *counts.entry(first.to_owned()).or_insert(0) += 1;
            alike += i32::from(first == second);
        }
        assert_eq!(counts.len(), 5);
        // Five standard deviations of a binomial with n = 10,000, p = 0.2: 200.
        assert!(
            counts.values().chain([&alike]).all(|count| (1800..2200).contains(count)),
            "{counts:?} {alike}"
        );
        assert_ne!(written(&template, 1, 3).repeat(2), written(&template, 2, 3).repeat(2));
    }
}
