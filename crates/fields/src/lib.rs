//! How people write things: a tree of values, declared fields that are read from it, and all that is wrong with it.
//!
//! ```text
//! text ─► tree (Node) ──► Reader ──► the declared type, or problems: place, what is wrong, what would be right
//!                            ▲
//!                    fields! { ... } ──► JSON Schema, reference, hints for unknown fields
//! ```
//!
//! A type that is declared by [`fields!`] is read from a table, and its declaration is the only one: names, units, bounds,
//! defaults and descriptions. The same type may be what a plan carries and what a machine acts on. All mistakes of a
//! table are found, not only the first one.
//!
//! What it does not hold: any field of a scenario, files, and the text that a tree is parsed from.

mod bounds;
mod declaration;
mod digits;
mod hints;
mod macros;
mod nearest;
mod part;
mod place;
mod quantities;
mod quantity;
mod reader;
mod rule;
mod schema;
mod shown;
mod texts;
mod tree;
mod words;

pub use bounds::{Bounds, Broken, Limit};
pub use declaration::{FieldDeclaration, PartDeclaration, Shape};
pub use digits::{general, plain, with_commas};
pub use hints::{holders, instead_of};
pub use macros::{joined, plain_name};
pub use nearest::{closest, did_you_mean, some};
pub use part::{AsPart, Flat, Part, Rules, Unread};
pub use place::{Place, Step};
pub use quantities::*;
pub use quantity::{Bound, Kind};
pub use reader::{Problem, Reader};
pub use rule::{Entry, Field, List, Map, Maybe, Pair, Rule, Truth, Whole};
pub use schema::schema_of;
pub use shown::shown;
pub use texts::{Name, Text};
pub use tree::{Member, Node, Table, Value};
pub use words::{Word, Words};
