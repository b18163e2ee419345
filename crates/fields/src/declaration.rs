//! What is declared of tables and their fields: for hints, the JSON Schema, the reference and forms.

use crate::bounds::{Bounds, Limit};
use crate::digits::plain;
use crate::quantity::Kind;

/// What may be written.
#[derive(Clone, Debug)]
pub enum Shape {
    /// `true` or `false`.
    Truth,
    /// A whole number.
    Whole,
    /// Any number; its bounds are in thousandths.
    Number,
    /// A text, with an example where one helps.
    Text(Option<&'static str>),
    /// One of these, each with what it means.
    Words(&'static [(&'static str, &'static str)]),
    /// One of these numbers.
    Numbers(&'static [i64]),
    /// A number with a unit.
    Quantity(&'static Kind),
    /// A table.
    Table(fn() -> &'static PartDeclaration),
    /// An array.
    Array(Box<Shape>),
    /// A table of names that the user chooses.
    Map(Box<Shape>),
    /// One of these.
    Either(Vec<Shape>),
}

/// A table that is declared.
#[derive(Debug)]
pub struct PartDeclaration {
    /// Its type's name.
    pub name: &'static str,
    /// What it is.
    pub description: String,
    /// Its fields, in order.
    pub fields: Vec<FieldDeclaration>,
}

/// A field that is declared.
#[derive(Clone, Debug)]
pub struct FieldDeclaration {
    /// As it is written.
    pub name: &'static str,
    /// What it does.
    pub description: String,
    /// What may be written.
    pub shape: Shape,
    /// In the least unit; of a text or an array, of its length.
    pub bounds: Bounds,
    /// Whether something must be written.
    pub is_needed: bool,
    /// What holds where nothing is written, as it would be written.
    pub default: Option<String>,
}

impl PartDeclaration {
    /// A field by its name.
    pub fn field(&self, name: &str) -> Option<&FieldDeclaration> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The names of all fields, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().map(|field| field.name)
    }
}

impl Shape {
    /// The first table in it.
    pub fn table(&self) -> Option<&'static PartDeclaration> {
        match self {
            Shape::Table(declaration) => Some(declaration()),
            Shape::Array(inner) | Shape::Map(inner) => inner.table(),
            Shape::Either(shapes) => shapes.iter().find_map(Shape::table),
            _ => None,
        }
    }

    /// The words that it may be.
    pub fn words(&self) -> Vec<&'static str> {
        match self {
            Shape::Words(words) => words.iter().map(|(word, _)| *word).collect(),
            Shape::Array(inner) | Shape::Map(inner) => inner.words(),
            Shape::Either(shapes) => shapes.iter().flat_map(Shape::words).collect(),
            _ => Vec::new(),
        }
    }

    /// The kind of quantity that it is.
    pub fn kind(&self) -> Option<&'static Kind> {
        match self {
            Shape::Quantity(kind) => Some(kind),
            Shape::Either(shapes) => shapes.iter().find_map(Shape::kind),
            _ => None,
        }
    }

    /// A broken bound as a message says it, in the unit that a file has.
    pub(crate) fn limit_in_words(&self, limit: Limit) -> String {
        let written = |amount: i128| match (self, self.kind()) {
            (_, Some(kind)) => kind.written(amount),
            (Shape::Number, None) => plain(amount as f64 / 1000.0, 6),
            (_, None) => amount.to_string(),
        };
        match (self, limit) {
            (Shape::Array(_), Limit::Least(_)) => "an array with more entries".into(),
            (Shape::Array(_), _) => "an array with fewer entries".into(),
            (Shape::Text(_), Limit::Least(least)) => format!("at least {least} character long"),
            (Shape::Text(_), Limit::Most(most)) => format!("at most {most} characters long"),
            (_, Limit::Least(least)) => format!("{} or more", written(least)),
            (_, Limit::Most(most)) => format!("{} or less", written(most)),
            (_, Limit::Below(below)) => format!("less than {}", written(below)),
        }
    }
}
