//! A file of users as a tree: TOML whose depth and length are bounded before it is parsed.
//!
//! Whoever walks a tree calls itself once a level, and a dotted key (`a.a.a = 1`) makes a level of each letter. A look at
//! the text's brackets and dots tells how deep it would become; strings and comments are passed over.

use mqttlab_fields::{Member, Node, Table, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use crate::source::line_and_column;

/// No field needs more than 6; places of experiments and settings of servers have texts as keys.
const LEVELS_MAX: usize = 32;
const TABLES_MAX: usize = 200_000;
/// In characters.
const LENGTH_MAX: usize = 16_000_000;

/// The tree of a TOML text; a byte order mark, which editors of Windows write, is passed over.
///
/// # Errors
/// Why it is none, with line and column where that is known; to stand behind the file's name.
pub fn parse(text: &str) -> Result<Node, String> {
    let read = text.strip_prefix('\u{feff}').unwrap_or(text);
    let marked = text.len() - read.len();
    check_size(read).map_err(|problem| format!(": {problem}"))?;
    let table = DeTable::parse(read).map_err(|error| not_toml(read, &error))?;
    Ok(Node { value: Value::Table(members(table.get_ref(), marked)), at: None })
}

fn members(table: &DeTable<'_>, marked: usize) -> Table {
    let members = table.iter().map(|(name, value)| Member {
        name: name.get_ref().to_string(),
        at: Some(name.span().start + marked),
        node: node(value, marked),
    });
    Table { members: members.collect() }
}

fn node(value: &Spanned<DeValue<'_>>, marked: usize) -> Node {
    let at = Some(value.span().start + marked);
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(whole) => whole_number(whole.as_str(), whole.radix()),
        DeValue::Float(real) => Value::Real(real.as_str().replace('_', "").parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(truth) => Value::Truth(*truth),
        DeValue::Datetime(moment) => Value::Moment(moment.to_string()),
        DeValue::Array(nodes) => Value::Array(nodes.iter().map(|each| node(each, marked)).collect()),
        DeValue::Table(table) => Value::Table(members(table, marked)),
    };
    Node { value, at }
}

fn whole_number(text: &str, radix: u32) -> Value {
    let digits = text.replace('_', "");
    match i128::from_str_radix(digits.trim_start_matches('+'), radix) {
        Ok(whole) => Value::Whole(whole),
        Err(_) => Value::Huge(digits),
    }
}

/// Why a text is no TOML, with the line and the column.
fn not_toml(text: &str, error: &Error) -> String {
    let problem = error.message().lines().next().unwrap_or_default().to_owned();
    let Some(span) = error.span() else { return format!(": is not TOML: {problem}") };
    let (line, column) = line_and_column(text, span.start);
    let written = text.lines().nth(line - 1).unwrap_or_default().trim_start();
    let array = written.strip_prefix("[[").and_then(|rest| rest.split("]]").next()).map(str::trim);
    let single =
        array.filter(|name| text.lines().any(|line| line.trim_start().starts_with(&format!("[{name}]"))));
    let words = if let Some(name) = single {
        format!("`[{name}]` stands above it, for one table; write `[[{name}]]` everywhere")
    } else if problem.starts_with("duplicate key") || problem.starts_with("cannot extend") {
        "a field or table is written twice; keep one".into()
    } else if is_open(written) {
        "a text is not closed; put a quote behind it".into()
    } else {
        problem
    };
    format!(":{line}: is not TOML: {words} (column {column})")
}

/// Whether a line begins a text that does not end.
fn is_open(line: &str) -> bool {
    ['"', '\''].iter().any(|quote| line.matches(*quote).count() % 2 == 1)
}

/// Refuses what is too deep or too long.
fn check_size(text: &str) -> Result<(), String> {
    // A character has up to four bytes, and most texts have none of more than one.
    if text.len() > LENGTH_MAX && text.chars().count() > LENGTH_MAX {
        let length = text.chars().count();
        return Err(format!("has {length} characters; at most {LENGTH_MAX} are read"));
    }
    let mut sizes = Sizes::default();
    let mut rest = text.as_bytes();
    while let Some(first) = rest.first() {
        let length = token(rest);
        if length == 1 {
            sizes.see(*first);
        }
        rest = &rest[length..];
    }
    sizes.see(b'\n');
    if sizes.deepest > LEVELS_MAX || sizes.dots_most >= LEVELS_MAX {
        return Err(
            "arrays, tables or dotted keys are nested too deeply; no field needs more than 6 levels".into()
        );
    }
    if sizes.opened + sizes.dots_all > TABLES_MAX {
        let count = sizes.opened + sizes.dots_all;
        return Err(format!("has {count} arrays and tables; at most {TABLES_MAX} are read"));
    }
    Ok(())
}

/// How deep a text is, and how many arrays and tables it opens.
#[derive(Default)]
struct Sizes {
    depth: usize,
    deepest: usize,
    opened: usize,
    dots: usize,
    dots_most: usize,
    dots_all: usize,
}

impl Sizes {
    fn see(&mut self, byte: u8) {
        match byte {
            b'[' | b'{' => {
                self.depth += 1;
                self.opened += 1;
                self.deepest = self.deepest.max(self.depth);
            }
            b']' | b'}' => self.depth = self.depth.saturating_sub(1),
            b'.' => self.dots += 1,
            _ => {}
        }
        if matches!(byte, b'=' | b',' | b'[' | b']' | b'{' | b'}' | b'\n') {
            // A number has one point.
            if self.dots > 1 {
                self.dots_most = self.dots_most.max(self.dots);
                self.dots_all += self.dots;
            }
            self.dots = 0;
        }
    }
}

/// The length of a string, closed or up to where the line or the text ends, of a comment, or of one byte.
fn token(rest: &[u8]) -> usize {
    let until = |from: usize, end: &[u8], escapes: bool, over_lines: bool| {
        let mut at = from;
        while at < rest.len() {
            if rest[at..].starts_with(end) {
                return at + end.len();
            }
            if rest[at] == b'\n' && !over_lines {
                return at;
            }
            at += if escapes && rest[at] == b'\\' { 2 } else { 1 };
        }
        rest.len()
    };
    match rest {
        [b'"', b'"', b'"', ..] => until(3, b"\"\"\"", true, true),
        [b'\'', b'\'', b'\'', ..] => until(3, b"'''", false, true),
        [b'"', ..] => until(1, b"\"", true, false),
        [b'\'', ..] => until(1, b"'", false, false),
        [b'#', ..] => until(1, b"\n", false, false),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_places() {
        let text = "\u{feff}a = 1\n[b]\nc = [{ d = \"x\" }]\n";
        let node = parse(text).expect("it is TOML");
        let b = node.as_table().and_then(|table| table.get("b")).and_then(Node::as_table).expect("a table");
        let c = &b.members[0];
        assert_eq!((c.name.as_str(), line_and_column(text, c.at.unwrap_or(0))), ("c", (3, 1)));
        let d = &c.node.as_array().expect("an array")[0].as_table().expect("a table").members[0];
        assert_eq!(line_and_column(text, d.at.unwrap_or(0)), (3, 8));
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_line() {
        let told = |text: &str| parse(text).expect_err("it is wrong");
        assert_eq!(
            told("name = \"a\"\nname = \"b\"\n"),
            ":2: is not TOML: a field or table is written twice; keep one (column 1)"
        );
        assert_eq!(
            told("name = \"good"),
            ":1: is not TOML: a text is not closed; put a quote behind it (column 13)"
        );
        assert_eq!(
            told("[groups]\na = 1\n[[groups]]\n"),
            ":3: is not TOML: `[groups]` stands above it, for one table; write `[[groups]]` everywhere (column 3)"
        );
        assert!(told(&format!("{} = 1", vec!["a"; 100_000].join("."))).contains("nested too deeply"));
        assert!(told(&format!("a = {}", "[".repeat(100_000))).contains("nested too deeply"));
        assert!(told(&"[[a]]\n".repeat(110_000)).contains("220000 arrays and tables"));
        assert!(told("a = \"\\").contains("not closed"));
    }
}
