//! Values as they are written: what TOML and JSON have in common, each with the place in its text.

use serde_json::Value as Json;

/// A value, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it is.
    pub value: Value,
    /// The byte of the text where it begins; none of a value that stands in no file.
    pub at: Option<usize>,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `true` or `false`.
    Truth(bool),
    /// A whole number.
    Whole(i128),
    /// A whole number of more than 38 digits.
    Huge(String),
    /// A number with a fraction, or none at all.
    Real(f64),
    /// A text.
    Text(String),
    /// A date or a time of TOML, as written.
    Moment(String),
    /// An array.
    Array(Vec<Node>),
    /// A table.
    Table(Table),
}

/// Members by name, in the order of the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Each name stands once.
    pub members: Vec<Member>,
}

/// A named value.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// The byte of the text where the name begins.
    pub at: Option<usize>,
    /// What it is.
    pub node: Node,
}

impl Node {
    /// A value that stands in no file.
    pub fn new(value: Value) -> Node {
        Node { value, at: None }
    }

    /// A text that stands in no file.
    pub fn text(text: impl Into<String>) -> Node {
        Node::new(Value::Text(text.into()))
    }

    /// The text, where it is one.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The table, where it is one.
    pub fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The entries, where it is an array.
    pub fn as_array(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Array(nodes) => Some(nodes),
            _ => None,
        }
    }

    /// A table with this one member, in the place of a short form.
    pub fn short_for(&self, name: &str, node: Node) -> Node {
        let member = Member { name: name.into(), at: self.at, node };
        Node { value: Value::Table(Table { members: vec![member] }), at: self.at }
    }
}

impl Table {
    /// A member by its name.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.members.iter().find(|member| member.name == name).map(|member| &member.node)
    }

    /// Whether a member is written.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Puts a member in the place of the one of this name, or behind the others.
    pub fn put(&mut self, name: &str, node: Node) {
        match self.members.iter_mut().find(|member| member.name == name) {
            Some(member) => member.node = node,
            None => self.members.push(Member { name: name.into(), at: None, node }),
        }
    }

    /// A member by its name, made an empty table where there is none.
    pub fn entry(&mut self, name: &str) -> &mut Node {
        let place = self.members.iter().position(|member| member.name == name).unwrap_or_else(|| {
            let node = Node::new(Value::Table(Table::default()));
            self.members.push(Member { name: name.into(), at: None, node });
            self.members.len() - 1
        });
        &mut self.members[place].node
    }
}

/// What JSON says; `null` is no value, and a member that has it is left out.
impl From<&Json> for Node {
    fn from(json: &Json) -> Node {
        Node::new(match json {
            Json::Null => Value::Text(String::new()),
            Json::Bool(truth) => Value::Truth(*truth),
            Json::Number(number) => match number.to_string().parse::<i128>() {
                Ok(whole) => Value::Whole(whole),
                Err(_) => Value::Real(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(items) => Value::Array(items.iter().map(Node::from).collect()),
            Json::Object(members) => {
                let members = members.iter().filter(|(_, value)| !value.is_null());
                let members = members.map(|(name, value)| Member {
                    name: name.clone(),
                    at: None,
                    node: Node::from(value),
                });
                Value::Table(Table { members: members.collect() })
            }
        })
    }
}
