//! A value in a message: as it is written, shortened where it is long.

use crate::digits::general;
use crate::tree::{Node, Value};

/// Longer ones are shortened, in characters.
const LENGTH_MAX: usize = 60;
/// Entries of an array or a table that are shown.
const ENTRIES_MAX: usize = 20;
/// A longer array is only called one, in characters.
const ARRAY_MAX: usize = 1000;
const DIGITS_MAX: usize = 40;

/// As a message shows it.
pub fn shown(node: &Node) -> String {
    shortened(match &node.value {
        Value::Truth(truth) => truth.to_string(),
        Value::Whole(whole) => whole.to_string(),
        Value::Huge(digits) if digits.trim_start_matches('-').len() > DIGITS_MAX => {
            return format!("a number of more than {DIGITS_MAX} digits");
        }
        Value::Huge(digits) => digits.clone(),
        Value::Real(real) => general(*real, 15),
        Value::Text(text) => quoted(text),
        Value::Moment(moment) => moment.clone(),
        Value::Array(nodes) => {
            let all: Vec<_> = nodes.iter().map(shown).collect();
            if all.iter().map(|one| one.len() + 2).sum::<usize>() >= ARRAY_MAX {
                return "a long array".into();
            }
            format!("[{}]", all[..all.len().min(ENTRIES_MAX)].join(", "))
        }
        Value::Table(table) => {
            let members = table.members.iter().take(ENTRIES_MAX);
            let members: Vec<_> =
                members.map(|member| format!("{} = {}", member.name, shown(&member.node))).collect();
            format!("{{ {} }}", members.join(", "))
        }
    })
}

/// A text in quotes, with what cannot be printed escaped.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown = String::from("\"");
    for letter in text.chars() {
        match letter {
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            _ if is_printed(letter) => shown.push(letter),
            _ if (letter as u32) < 0x100 => shown.push_str(&format!("\\x{:02x}", letter as u32)),
            _ if (letter as u32) < 0x1_0000 => shown.push_str(&format!("\\u{:04x}", letter as u32)),
            _ => shown.push_str(&format!("\\U{:08x}", letter as u32)),
        }
    }
    shown.push('"');
    shown
}

/// The same, no longer than other values are shown.
pub(crate) fn quoted_short(text: &str) -> String {
    shortened(quoted(text))
}

/// A mark that is put on a letter has no escape of its own, though it cannot be printed alone.
fn is_printed(letter: char) -> bool {
    letter == ' ' || (!letter.is_whitespace() && !letter.is_control() && is_assigned(letter))
}

fn is_assigned(letter: char) -> bool {
    let escaped = letter.escape_debug().to_string();
    !escaped.starts_with("\\u") || matches!(letter as u32, 0x300..=0x36f)
}

fn shortened(text: String) -> String {
    if text.chars().count() <= LENGTH_MAX {
        return text;
    }
    text.chars().take(LENGTH_MAX - 3).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_they_are_written() {
        let long = Node::text("x".repeat(100));
        assert_eq!(shown(&long).len(), 60);
        assert!(shown(&long).ends_with("..."));
        assert_eq!(shown(&Node::text("a'b\"c\u{0}\n")), "\"a'b\"c\\x00\\n\"");
        assert_eq!(shown(&Node::new(Value::Real(0.01))), "0.01");
        assert_eq!(shown(&Node::new(Value::Whole(250_000))), "250000");
        let table = Node::text("5 s").short_for("probability", Node::new(Value::Real(0.25)));
        assert_eq!(shown(&table), "{ probability = 0.25 }");
        assert_eq!(shown(&Node::new(Value::Array(vec![Node::text("5 s")]))), "[\"5 s\"]");
    }
}
