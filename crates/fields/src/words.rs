//! Words of which a field has one.

use std::marker::PhantomData;

use crate::declaration::Shape;
use crate::nearest::closest;
use crate::reader::Reader;
use crate::rule::Rule;
use crate::shown::shown;
use crate::tree::{Node, Value};

/// A type that [`words!`](crate::words) declares.
pub trait Words: Sized {
    /// All words, each with what it means.
    fn all() -> &'static [(&'static str, &'static str)];

    /// What others call them, each with the right word.
    fn also() -> &'static [(&'static str, &'static str)];

    /// What a word stands for.
    fn of(word: &str) -> Option<Self>;

    /// The word for it.
    fn word(&self) -> &'static str;
}

/// The rule of a word.
#[derive(Debug)]
pub struct Word<W>(PhantomData<W>);

impl<W: Words> Rule for Word<W> {
    type Target = W;

    fn read(node: &Node, reader: &mut Reader) -> Option<W> {
        if let Some(word) = node.as_text().and_then(W::of) {
            return Some(word);
        }
        let given = match &node.value {
            Value::Text(text) => text.clone(),
            _ => shown(node),
        };
        let known = || W::all().iter().map(|(word, _)| *word);
        let lower = given.to_lowercase();
        let also = W::also().iter().find(|(also, _)| *also == lower).map(|(_, right)| *right);
        let near = also.or_else(|| closest(&given, known(), 0.5));
        let hint = near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
        let all = known().collect::<Vec<_>>().join(", ");
        reader.wrong(format!("is {}, but must be one of {all}{hint}", shown(node)))
    }

    fn shape() -> Shape {
        Shape::Words(W::all())
    }
}
