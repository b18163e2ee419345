//! Tables that are declared: how they are read, and the hooks that a type may have.

use std::borrow::Cow;
use std::marker::PhantomData;

use crate::bounds::{Bounds, Broken};
use crate::declaration::{FieldDeclaration, PartDeclaration, Shape};
use crate::hints;
use crate::reader::{Problem, Reader};
use crate::rule::{Entry, Field, Rule};
use crate::shown::shown;
use crate::tree::{Node, Table};

/// Fields of the largest table that a message lists instead of an example.
const FIELDS_MAX: usize = 6;

/// A type that [`fields!`](crate::fields) declares.
pub trait Part: Rules + Field {
    /// What is declared.
    fn declaration() -> &'static PartDeclaration;

    /// Reads the fields of a table; unknown ones are not looked at.
    fn take(table: &Table, reader: &mut Reader) -> Option<Self>;

    /// The first declared bound that a value breaks: of one that was not read, such as a plan's.
    fn broken(&self) -> Option<Broken>;
}

/// What a type does beside reading its fields.
pub trait Rules: Sized {
    /// Makes the table of a short form, such as a text; or completes what is written.
    ///
    /// # Errors
    /// What is wrong, in words that follow the field's name.
    fn before<'n>(node: &'n Node, _reader: &mut Reader) -> Result<Cow<'n, Node>, String> {
        Ok(Cow::Borrowed(node))
    }

    /// What is written instead of a table, for the schema.
    fn short_form() -> Option<Shape> {
        None
    }

    /// Checks what fields say together; `table` has what was written.
    ///
    /// # Errors
    /// What is wrong, in words that follow the field's name.
    fn check(&mut self, _table: &Table) -> Result<(), String> {
        Ok(())
    }
}

impl Reader {
    /// Reads a whole file.
    ///
    /// # Errors
    /// All that is wrong, in the order of reading.
    pub fn read<P: Part>(self, node: &Node) -> Result<P, Vec<Problem>> {
        let mut reader = self.with_top(P::declaration());
        let read = AsPart::<P>::read(node, &mut reader);
        let problems = reader.into_problems();
        read.filter(|_| problems.is_empty()).ok_or(problems)
    }
}

/// The rule of a declared type: a table whose fields are known.
#[derive(Debug)]
pub struct AsPart<P>(PhantomData<P>);

impl<P: Part> Rule for AsPart<P> {
    type Target = P;

    fn read(node: &Node, reader: &mut Reader) -> Option<P> {
        let node = match P::before(node, reader) {
            Ok(node) => node,
            Err(what) => return reader.wrong(what),
        };
        let Some(table) = node.as_table() else {
            return reader.wrong(format!(
                "is {}, but must be {}",
                shown(&node),
                table_in_words(P::declaration())
            ));
        };
        let before = reader.count();
        let read = P::take(table, reader);
        for member in &table.members {
            if P::declaration().field(&member.name).is_none() {
                let instead = hints::instead_of(&member.name, P::declaration(), reader.top());
                reader.below(member.name.as_str(), |reader| {
                    reader.wrong::<()>(format!("is an unknown field{instead}"))
                });
            }
        }
        let mut part = read.filter(|_| reader.count() == before)?;
        match part.check(table) {
            Ok(()) => Some(part),
            Err(what) => reader.wrong(what),
        }
    }

    fn broken(value: &P, _bounds: Bounds) -> Option<Broken> {
        value.broken()
    }

    fn shape() -> Shape {
        let table = Shape::Table(P::declaration);
        P::short_form().map_or_else(|| table.clone(), |short| Shape::Either(vec![table.clone(), short]))
    }
}

/// A table in the words of a message, by the fields that it needs, or else by those that it may have.
fn table_in_words(part: &PartDeclaration) -> String {
    let needed: Vec<_> = part.fields.iter().filter(|field| field.is_needed).collect();
    if !needed.is_empty() {
        let needed: Vec<_> = needed.iter().map(|field| format!("{} = ...", field.name)).collect();
        return format!("a table, such as {{ {} }}", needed.join(", "));
    }
    if (1..=FIELDS_MAX).contains(&part.fields.len()) {
        let names: Vec<_> = part.names().map(|name| format!("`{name}`")).collect();
        return format!("a table of {}", names.join(", "));
    }
    "a table, such as { ... }".into()
}

/// The rule of fields that stand in the table of another type.
#[derive(Debug)]
pub struct Flat<P>(PhantomData<P>);

impl<P: Part> Rule for Flat<P> {
    type Target = P;

    fn read(node: &Node, reader: &mut Reader) -> Option<P> {
        AsPart::<P>::read(node, reader)
    }

    fn shape() -> Shape {
        AsPart::<P>::shape()
    }

    fn broken(value: &P, _bounds: Bounds) -> Option<Broken> {
        value.broken()
    }

    fn take(entry: Entry<'_>, _default: impl FnOnce() -> Option<P>, reader: &mut Reader) -> Option<P> {
        let mut part = P::take(entry.table, reader)?;
        match part.check(entry.table) {
            Ok(()) => Some(part),
            Err(what) => reader.wrong(what),
        }
    }

    fn declare(_field: FieldDeclaration, fields: &mut Vec<FieldDeclaration>) {
        fields.extend(P::declaration().fields.iter().cloned());
    }
}

/// The rule of a field that no file has: it is its default until somebody sets it.
#[derive(Debug)]
pub struct Unread<T>(PhantomData<T>);

impl<T: Default> Rule for Unread<T> {
    type Target = T;

    fn read(_node: &Node, _reader: &mut Reader) -> Option<T> {
        Some(T::default())
    }

    fn shape() -> Shape {
        Shape::Truth
    }

    fn take(_entry: Entry<'_>, default: impl FnOnce() -> Option<T>, _reader: &mut Reader) -> Option<T> {
        Some(default().unwrap_or_default())
    }

    fn declare(_field: FieldDeclaration, _fields: &mut Vec<FieldDeclaration>) {}
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use mqttlab_units::{BitRate, Ratio};

    use super::*;
    use crate::{DataRate, Share, Size, Value, fields, schema_of, words};

    words! {
        /// Where loss happens.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Place {
            /// Before the queue.
            Entry = "entry",
            /// On the air.
            Exit = "exit",
        }
    }

    fields! {
        /// Loss.
        #[derive(Debug, PartialEq)]
        pub struct Loss {
            /// How often.
            loss: Ratio as Share = Ratio::ZERO,
            /// Where.
            loss_at: Place = Place::Exit,
        }
    }

    fields! {
        /// A link.
        #[derive(Debug, PartialEq)]
        pub struct Link with rules {
            /// Data rate.
            rate: Option<BitRate> as crate::Maybe<DataRate>,
            /// What is lost.
            lost: Loss as Flat<Loss>,
            /// Added to each packet.
            overhead: u64 as Size [0..=65_535] = 0,
            /// A number.
            count: u32 [1..=10],
            /// A word of Rust.
            r#for: Option<String>,
        }
    }

    impl Rules for Link {
        fn check(&mut self, _table: &Table) -> Result<(), String> {
            if self.lost.loss == Ratio::ONE { Err("loses all".into()) } else { Ok(()) }
        }
    }

    fn check(json: &str, expected: &Expect) {
        let node = Node::from(&serde_json::from_str(json).expect("a test's JSON"));
        let told = match Reader::default().read::<Link>(&node) {
            Ok(link) => format!("{link:?}"),
            Err(problems) => {
                let each = problems.iter().map(|problem| format!("`{}` {}", problem.place, problem.what));
                each.collect::<Vec<_>>().join("\n")
            }
        };
        expected.assert_eq(&told);
    }

    #[test]
    fn all_that_is_wrong_is_told_in_the_order_of_the_fields() {
        check(
            r#"{"rate": 5, "loss": 0.5, "loss_at": "exti", "overhead": "1 MB", "count": 11, "bandwidth": 1}"#,
            &expect![[r#"
                `rate` is 5, which has no unit; write "5 bit/s" (or another unit: one of bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s)
                `loss` is 0.5, which has no unit; write "50 %" or "0.5 %"
                `loss_at` is "exti", but must be one of entry, exit; did you mean "exit"?
                `overhead` is "1 MB", but must be 65535 B or less
                `count` is 11, but must be 10 or less
                `bandwidth` is an unknown field; did you mean `rate`?"#]],
        );
        check(r#"{"loss": "100 %"}"#, &expect!["`count` is missing; add it"]);
        check(r#"{"loss": "100 %", "count": 1}"#, &expect!["`` loses all"]);
        check(r#""fast""#, &expect![[r#"`` is "fast", but must be a table, such as { count = ... }"#]]);
        check(
            r#"{"count": -1, "for": 7}"#,
            &expect![[r#"
            `count` is -1, but must be 1 or more
            `for` is 7, but must be text in quotes"#]],
        );
    }

    #[test]
    fn what_is_written_is_read_and_the_rest_has_its_default() {
        check(
            r#"{"count": 3, "loss": "1 %"}"#,
            &expect![[
                r#"Link { rate: None, lost: Loss { loss: Ratio { numerator: 1, denominator: 100 }, loss_at: Exit }, overhead: 0, count: 3, for: None }"#
            ]],
        );
    }

    #[test]
    fn the_schema_has_names_units_bounds_and_descriptions() {
        let schema = schema_of(Link::declaration(), "a link");
        assert_eq!(schema["required"], serde_json::json!(["count"]));
        assert_eq!(schema["properties"]["count"]["maximum"], 10);
        assert_eq!(schema["properties"]["rate"]["x-units"][1], "kbit/s");
        assert_eq!(schema["properties"]["loss_at"]["enum"], serde_json::json!(["entry", "exit"]));
        assert_eq!(schema["properties"]["for"]["description"], "A word of Rust.");
        assert!(matches!(Node::from(&schema).value, Value::Table(_)));
    }
}
