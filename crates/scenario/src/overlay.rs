//! Tables of data files on which others are based.

use mqttlab_fields::{Node, Reader, Rule, Shape, Table, Value};
use serde_json::{Map, Number, Value as Json};

/// The members of one table with those of another in their places.
pub fn overlaid(below: &Table, above: &Table) -> Table {
    let mut whole = below.clone();
    for member in &above.members {
        match whole.members.iter_mut().find(|other| other.name == member.name) {
            Some(other) => *other = member.clone(),
            None => whole.members.push(member.clone()),
        }
    }
    whole
}

/// A table by its name with the members of the one that it is `based_on`.
///
/// # Errors
/// There is no such table, or they are based on each other.
pub fn based_on(name: &str, tables: &Table) -> Result<Table, String> {
    let (mut whole, mut next) = (Table::default(), Some(name.to_owned()));
    for _ in 0..=tables.members.len() {
        let Some(name) = next else { return Ok(whole) };
        let table = tables.get(&name).and_then(Node::as_table).ok_or(format!("there is no `{name}`"))?;
        whole = overlaid(table, &whole);
        next = table.get("based_on").and_then(Node::as_text).map(str::to_owned);
        whole.members.retain(|member| member.name != "based_on");
    }
    Err(format!("`{name}` is based on itself"))
}

/// A table as JSON.
pub fn json(table: &Table) -> Json {
    Json::Object(
        table
            .members
            .iter()
            .map(|member| (member.name.clone(), json_of(&member.node)))
            .collect::<Map<_, _>>(),
    )
}

fn json_of(node: &Node) -> Json {
    match &node.value {
        Value::Truth(truth) => (*truth).into(),
        Value::Whole(whole) => i64::try_from(*whole).map_or(Json::Null, Json::from),
        Value::Real(real) => Number::from_f64(*real).map_or(Json::Null, Json::Number),
        Value::Text(text) | Value::Huge(text) | Value::Moment(text) => text.clone().into(),
        Value::Array(nodes) => nodes.iter().map(json_of).collect(),
        Value::Table(table) => json(table),
    }
}

/// A table as it is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableAsWritten(pub Table);

/// The rule of a table that another rule reads later.
#[derive(Debug)]
pub struct AnyTable;

impl Rule for AnyTable {
    type Target = TableAsWritten;

    fn read(node: &Node, reader: &mut Reader) -> Option<TableAsWritten> {
        match node.as_table() {
            Some(table) => Some(TableAsWritten(table.clone())),
            None => reader.wrong("must be a table"),
        }
    }

    fn shape() -> Shape {
        Shape::Map(Box::new(Shape::Truth))
    }
}
