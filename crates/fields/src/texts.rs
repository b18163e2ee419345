//! Texts.

use crate::declaration::Shape;
use crate::reader::Reader;
use crate::rule::{Field, Rule};
use crate::shown::shown;
use crate::tree::Node;

/// The longest name, in characters.
const NAME_MAX: usize = 40;

/// Any text; its bounds are those of its length in characters.
#[derive(Debug)]
pub struct Text;

impl Rule for Text {
    type Target = String;

    fn read(node: &Node, reader: &mut Reader) -> Option<String> {
        match node.as_text() {
            Some(text) => Some(text.to_owned()),
            None => reader.wrong(format!("is {}, but must be text in quotes", shown(node))),
        }
    }

    fn shape() -> Shape {
        Shape::Text(None)
    }

    fn amount(value: &String) -> Option<i128> {
        i128::try_from(value.chars().count()).ok()
    }
}

impl Field for String {
    type Rule = Text;
}

/// A name: of a host, a group, a run's directory.
#[derive(Debug)]
pub struct Name;

impl Rule for Name {
    type Target = String;

    fn read(node: &Node, reader: &mut Reader) -> Option<String> {
        let name = Text::read(node, reader)?;
        if name.chars().count() > NAME_MAX {
            return reader
                .wrong(format!("is {}, but must be at most {NAME_MAX} characters long", shown(node)));
        }
        let is_first = name.starts_with(|first: char| first.is_ascii_alphanumeric());
        if !is_first || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_.-".contains(letter)) {
            let right = "1 to 40 letters, digits, `_`, `.` or `-`, the first a letter or digit";
            return reader.wrong(format!("is {}, but must be {right}", shown(node)));
        }
        Some(name)
    }

    fn shape() -> Shape {
        Shape::Text(Some("field"))
    }
}
