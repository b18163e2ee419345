//! Rules by which values are read, and the simple ones.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use crate::bounds::{Bounds, Broken};
use crate::declaration::{FieldDeclaration, Shape};
use crate::place::Place;
use crate::reader::Reader;
use crate::shown::shown;
use crate::tree::{Node, Table, Value};

/// How a value of one type is read.
pub trait Rule {
    /// What is read.
    type Target;

    /// Reads a value; of a wrong one the reader has the problem.
    fn read(node: &Node, reader: &mut Reader) -> Option<Self::Target>;

    /// What may be written.
    fn shape() -> Shape;

    /// What it is where nothing is written; none where something must be.
    fn absent() -> Option<Self::Target> {
        None
    }

    /// What bounds are compared with: the whole number that a value is in its least unit, or the length of a text.
    fn amount(_value: &Self::Target) -> Option<i128> {
        None
    }

    /// Bounds that every value has, whatever a field says.
    fn own_bounds() -> Bounds {
        Bounds::default()
    }

    /// The first bound that a value breaks: of a value that was not read by this rule, such as a plan's.
    fn broken(value: &Self::Target, bounds: Bounds) -> Option<Broken> {
        let amount = Self::amount(value)?;
        let limit = Self::own_bounds().broken_by(amount).or_else(|| bounds.broken_by(amount))?;
        Some(Broken { place: Place::default(), amount, limit })
    }

    /// Reads a field of a table.
    fn take(
        entry: Entry<'_>,
        default: impl FnOnce() -> Option<Self::Target>,
        reader: &mut Reader,
    ) -> Option<Self::Target> {
        let Some(node) = entry.table.get(entry.name) else {
            let found = default().or_else(Self::absent);
            return found.or_else(|| reader.below(entry.name, |reader| reader.wrong("is missing; add it")));
        };
        reader.below(entry.name, |reader| {
            let value = Self::read(node, reader)?;
            match Self::amount(&value).and_then(|amount| entry.bounds.broken_by(amount)) {
                Some(limit) => {
                    let limit = Self::shape().limit_in_words(limit);
                    reader.wrong(format!("is {}, but must be {limit}", shown(node)))
                }
                None => Some(value),
            }
        })
    }

    /// Adds what it declares to the fields of its table.
    fn declare(field: FieldDeclaration, fields: &mut Vec<FieldDeclaration>) {
        fields.push(FieldDeclaration {
            shape: Self::shape(),
            is_needed: field.is_needed && Self::absent().is_none(),
            ..field
        });
    }
}

/// A type that has a rule of its own.
pub trait Field: Sized {
    /// The rule that reads it.
    type Rule: Rule<Target = Self>;
}

/// A field of a table that is read.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The table.
    pub table: &'a Table,
    /// The field's name.
    pub name: &'a str,
    /// Its bounds.
    pub bounds: Bounds,
}

/// `true` or `false`.
#[derive(Debug)]
pub struct Truth;

impl Rule for Truth {
    type Target = bool;

    fn read(node: &Node, reader: &mut Reader) -> Option<bool> {
        match node.value {
            Value::Truth(truth) => Some(truth),
            _ => reader.wrong(format!("is {}, but must be true or false", shown(node))),
        }
    }

    fn shape() -> Shape {
        Shape::Truth
    }
}

impl Field for bool {
    type Rule = Truth;
}

/// A whole number without a unit.
#[derive(Debug)]
pub struct Whole<T>(PhantomData<T>);

impl<T: TryFrom<i128> + Copy + Into<i128>> Rule for Whole<T> {
    type Target = T;

    fn read(node: &Node, reader: &mut Reader) -> Option<T> {
        let found = match &node.value {
            Value::Whole(whole) => T::try_from(*whole).ok(),
            Value::Huge(_) => None,
            _ => return reader.wrong(format!("is {}, but must be a whole number", shown(node))),
        };
        // Its own bounds are narrower than the type's, and are told.
        found.or_else(|| reader.wrong(format!("is {}, but must be a smaller number", shown(node))))
    }

    fn shape() -> Shape {
        Shape::Whole
    }

    fn amount(value: &T) -> Option<i128> {
        Some((*value).into())
    }

    fn take(entry: Entry<'_>, default: impl FnOnce() -> Option<T>, reader: &mut Reader) -> Option<T> {
        let node = entry.table.get(entry.name);
        // A number beyond the type's bounds is told the field's.
        if let Some(Node { value: Value::Whole(whole), .. }) = node
            && let Some(limit) = entry.bounds.broken_by(*whole)
        {
            let limit = Shape::Whole.limit_in_words(limit);
            return reader
                .below(entry.name, |reader| reader.wrong(format!("is {whole}, but must be {limit}")));
        }
        let Some(node) = node else {
            let found = default();
            return found.or_else(|| reader.below(entry.name, |reader| reader.wrong("is missing; add it")));
        };
        reader.below(entry.name, |reader| Self::read(node, reader))
    }
}

macro_rules! whole {
    ($($type:ty),*) => { $( impl Field for $type { type Rule = Whole<$type>; } )* };
}
whole!(u8, u16, u32, u64, i64);

/// What may be left out.
#[derive(Debug)]
pub struct Maybe<R>(PhantomData<R>);

impl<R: Rule> Rule for Maybe<R> {
    type Target = Option<R::Target>;

    fn read(node: &Node, reader: &mut Reader) -> Option<Self::Target> {
        R::read(node, reader).map(Some)
    }

    fn shape() -> Shape {
        R::shape()
    }

    fn absent() -> Option<Self::Target> {
        Some(None)
    }

    fn amount(value: &Self::Target) -> Option<i128> {
        value.as_ref().and_then(R::amount)
    }

    fn broken(value: &Self::Target, bounds: Bounds) -> Option<Broken> {
        R::broken(value.as_ref()?, bounds)
    }

    fn take(
        entry: Entry<'_>,
        default: impl FnOnce() -> Option<Self::Target>,
        reader: &mut Reader,
    ) -> Option<Self::Target> {
        if !entry.table.has(entry.name) {
            return default().or(Some(None));
        }
        R::take(entry, || None, reader).map(Some)
    }
}

impl<T: Field> Field for Option<T> {
    type Rule = Maybe<T::Rule>;
}

/// An array; its bounds are those of its length.
#[derive(Debug)]
pub struct List<R>(PhantomData<R>);

impl<R: Rule> Rule for List<R> {
    type Target = Vec<R::Target>;

    fn read(node: &Node, reader: &mut Reader) -> Option<Self::Target> {
        let Some(nodes) = node.as_array() else {
            let top = reader.place().0.len() == 1;
            return reader.wrong(if node.as_table().is_some() && top {
                format!(
                    "is one table, but must be an array of tables; write the heading `[[{}]]`",
                    reader.place()
                )
            } else {
                format!("is {}, but must be an array, such as [...]", shown(node))
            });
        };
        let before = reader.count();
        let mut read = Vec::with_capacity(nodes.len());
        for (number, node) in nodes.iter().enumerate() {
            read.extend(reader.below(number, |reader| R::read(node, reader)));
        }
        (reader.count() == before).then_some(read)
    }

    fn shape() -> Shape {
        Shape::Array(Box::new(R::shape()))
    }

    fn amount(value: &Self::Target) -> Option<i128> {
        i128::try_from(value.len()).ok()
    }

    fn broken(value: &Self::Target, bounds: Bounds) -> Option<Broken> {
        let amount = value.len() as i128;
        let length = bounds.broken_by(amount).map(|limit| Broken { place: Place::default(), amount, limit });
        let each = || {
            value.iter().enumerate().find_map(|(number, one)| {
                R::broken(one, Bounds::default()).map(|broken| broken.below(number))
            })
        };
        length.or_else(each)
    }
}

impl<T: Field> Field for Vec<T> {
    type Rule = List<T::Rule>;
}

/// An array of two.
#[derive(Debug)]
pub struct Pair<R>(PhantomData<R>);

impl<R: Rule> Rule for Pair<R> {
    type Target = [R::Target; 2];

    fn read(node: &Node, reader: &mut Reader) -> Option<Self::Target> {
        match node.as_array() {
            Some([first, second]) => {
                let first = reader.below(0, |reader| R::read(first, reader));
                let second = reader.below(1, |reader| R::read(second, reader));
                Some([first?, second?])
            }
            Some(few) if few.len() < 2 => {
                reader.below(few.len(), |reader| reader.wrong("is missing; add it"))
            }
            Some(_) => reader.wrong(format!("is {}, but must be an array with fewer entries", shown(node))),
            None => reader.wrong(format!("is {}, but must be an array, such as [...]", shown(node))),
        }
    }

    fn shape() -> Shape {
        Shape::Array(Box::new(R::shape()))
    }
}

/// A table by name.
#[derive(Debug)]
pub struct Map<N, R>(PhantomData<(N, R)>);

impl<N: Rule<Target = String>, R: Rule> Rule for Map<N, R> {
    type Target = BTreeMap<String, R::Target>;

    fn read(node: &Node, reader: &mut Reader) -> Option<Self::Target> {
        let Some(table) = node.as_table() else {
            return reader.wrong(format!("is {}, but must be a table, such as {{ ... }}", shown(node)));
        };
        let before = reader.count();
        let mut read = BTreeMap::new();
        for member in &table.members {
            reader.below(member.name.as_str(), |reader| {
                let name = N::read(&Node::text(member.name.clone()), reader);
                let value = R::read(&member.node, reader);
                read.extend(name.zip(value));
            });
        }
        (reader.count() == before).then_some(read)
    }

    fn shape() -> Shape {
        Shape::Map(Box::new(R::shape()))
    }
}
