//! Where the values of a scenario come from: lines and columns of problems.

use mqttlab_fields::{Node, Place, Problem, Step, Value};

/// A file, and the values that were set beside it.
#[derive(Debug)]
pub struct Source {
    /// As messages call the file.
    name: String,
    /// The text that the values stand in.
    text: String,
    /// Places that were set otherwise, as they are written.
    replaced: Vec<String>,
    /// By what, such as `on the command line`.
    replaced_by: String,
}

/// A problem with the file, line and column.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PlacedProblem {
    /// The file.
    pub file: String,
    /// From 1; none of what stands nowhere, as a missing field.
    pub line: Option<usize>,
    /// In characters, from 1.
    pub column: Option<usize>,
    /// The field, such as `groups[0].publish.qos`; empty for the whole file.
    pub place: String,
    /// What is wrong.
    pub problem: String,
    /// All of it in one line.
    pub text: String,
}

impl Source {
    /// A file of this name and text.
    pub fn new(name: &str, text: &str) -> Source {
        Source {
            name: name.into(),
            text: text.into(),
            replaced: Vec::new(),
            replaced_by: "on the command line".into(),
        }
    }

    /// Notes that a place was set otherwise.
    pub fn replace(&mut self, place: String) {
        self.replaced.push(place);
    }

    /// A problem of the tree that was read, with file, line and column.
    pub fn placed(&self, tree: &Node, problem: &Problem) -> PlacedProblem {
        let place = problem.place.to_string();
        let shown = if place.is_empty() { String::new() } else { format!("`{place}` ") };
        let is_set = self.replaced.iter().any(|other| {
            format!("{place}.").starts_with(&format!("{other}.")) || place.starts_with(&format!("{other}["))
        });
        let at = if is_set { None } else { offset_of(tree, &problem.place) };
        let (line, column) = at.map(|at| line_and_column(&self.text, at)).unzip();
        let begin = match line {
            _ if is_set => format!("{}, as set {}: ", self.name, self.replaced_by),
            Some(line) => format!("{}:{line}: ", self.name),
            None => format!("{}: ", self.name),
        };
        PlacedProblem {
            file: self.name.clone(),
            line,
            column,
            text: format!("{begin}{shown}{}", problem.what),
            place,
            problem: problem.what.clone(),
        }
    }
}

/// The byte at which the value of a place stands: its name, or the deepest table or entry above it that is written.
fn offset_of(tree: &Node, place: &Place) -> Option<usize> {
    let (mut here, mut found) = (tree, None);
    for step in &place.0 {
        let (node, at) = match (step, &here.value) {
            (Step::Name(name), Value::Table(table)) => {
                let Some(member) = table.members.iter().find(|member| member.name == *name) else { break };
                (&member.node, member.at)
            }
            (Step::Index(index), Value::Array(nodes)) => {
                let Some(node) = nodes.get(*index) else { break };
                (node, node.at)
            }
            _ => break,
        };
        (here, found) = (node, at.or(found));
    }
    found
}

/// The line and the column of a byte of a text, both from 1, the column in characters.
pub fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(at)];
    let begin = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[begin..].chars().count() + 1)
}
