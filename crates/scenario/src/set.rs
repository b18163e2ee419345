//! Places in a scenario, as `--set` and experiments write them: `phases.duration`, `groups[0].publish.qos`,
//! `groups[*].publish.qos`, `groups[map]`.
//!
//! A place is looked up in the values of a scenario's file, before they are checked; what is written there may be wrong, and
//! the scenario's own check says so.

use mqttlab_fields::{Node, Place, Step, Table, Value, closest, shown};

/// Stands for all entries of an array.
const EVERY: &str = "*";
const LIKENESS: f64 = 0.5;

/// A step of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Towards {
    /// Into a table.
    Name(String),
    /// Into an array: a number, a name, or all.
    Index(String),
}

/// Writes a value at a place, in all places that it stands for; returns these, with numbers for names.
///
/// # Errors
/// There is no such place; in words that follow the place's name.
pub fn put(tree: &mut Node, place: &str, value: &Node) -> Result<Vec<Place>, String> {
    let steps = steps(place)?;
    let mut found = Vec::new();
    write(tree, &steps, value, &Place::default(), false, &mut found)?;
    if found.is_empty() {
        return Err("nothing in the scenario has it".into());
    }
    Ok(found)
}

/// A place in steps: `a.b[0].c`; `a.0.b` is the same as `a[0].b`.
fn steps(place: &str) -> Result<Vec<Towards>, String> {
    let wrong = || {
        let given = shown(&Node::text(place));
        format!("{given} is not a place; write it as in \"groups[0].publish.qos\"")
    };
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
    };
    let mut steps = Vec::new();
    for part in place.split('.') {
        let (name, mut rest) = part.split_at(part.find('[').unwrap_or(part.len()));
        if !is_name(name) {
            return Err(wrong());
        }
        let is_number = !steps.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        steps.push(if is_number { Towards::Index(name.into()) } else { Towards::Name(name.into()) });
        while let Some((index, behind)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            if index.is_empty() || index.contains('[') {
                return Err(wrong());
            }
            steps.push(Towards::Index(index.into()));
            rest = behind;
        }
        if !rest.is_empty() {
            return Err(wrong());
        }
    }
    Ok(steps)
}

fn write(
    here: &mut Node,
    steps: &[Towards],
    value: &Node,
    at: &Place,
    under_every: bool,
    found: &mut Vec<Place>,
) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else { return Ok(()) };
    match step {
        Towards::Name(name) => {
            let shown_here = shown(here);
            let Value::Table(table) = &mut here.value else {
                return match &here.value {
                    Value::Array(_) => Err(format!(
                        "`{name}` stands behind an array; write an index, as in \"groups[0].publish.qos\""
                    )),
                    _ if under_every => Ok(()),
                    _ => Err(format!("the scenario has {shown_here} there, not a table")),
                };
            };
            write_member(table, name, rest, value, at, under_every, found)
        }
        Towards::Index(index) => {
            let Value::Array(nodes) = &mut here.value else {
                return Err(format!("[{index}] does not stand behind an array"));
            };
            let numbers = numbers(nodes, index)?;
            for number in numbers {
                let (node, at) = (&mut nodes[number], at.then(Step::Index(number)));
                if rest.is_empty() {
                    *node = value.clone();
                    found.push(at);
                    continue;
                }
                // `subscribe = ["a/+"]` is short for a table.
                if let ([_], Value::Text(_)) = (rest, &node.value) {
                    *node = node.short_for("filter", node.clone());
                }
                write(node, rest, value, &at, under_every || index == EVERY, found)?;
            }
            Ok(())
        }
    }
}

fn write_member(
    table: &mut Table,
    name: &str,
    rest: &[Towards],
    value: &Node,
    at: &Place,
    under_every: bool,
    found: &mut Vec<Place>,
) -> Result<(), String> {
    let at = at.then(Step::Name(name.into()));
    if rest.is_empty() {
        table.put(name, value.clone());
        found.push(at);
        return Ok(());
    }
    // Of several entries only those that have the table are meant.
    if under_every && !table.has(name) {
        return Ok(());
    }
    write(table.entry(name), rest, value, &at, under_every, found)
}

/// The entries of an array that an index stands for.
fn numbers(nodes: &[Node], index: &str) -> Result<Vec<usize>, String> {
    if index == EVERY {
        return Ok((0..nodes.len()).collect());
    }
    let is_number = index.len() <= 18 && index.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(number) = index.parse::<usize>().ok().filter(|_| is_number) {
        if number < nodes.len() {
            return Ok(vec![number]);
        }
        let most =
            if nodes.is_empty() { "has none".into() } else { format!("has {}, counted from 0", nodes.len()) };
        return Err(format!("the scenario {most}: there is no [{number}]"));
    }
    let found: Vec<usize> = (0..nodes.len()).filter(|number| is_named(&nodes[*number], index)).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let known: Vec<&str> =
        nodes.iter().filter_map(|node| node.as_table()?.get("name").and_then(Node::as_text)).collect();
    let hint = match closest(index, known.iter().copied(), LIKENESS) {
        Some(near) => format!("did you mean [{near}]?"),
        None if known.is_empty() => "known: none has a name".into(),
        None => format!("known: {}", known.join(", ")),
    };
    Err(format!("nothing there is named {}; {hint}", shown(&Node::text(index))))
}

/// Whether an entry has this name, or is a network that joins a host of this name.
fn is_named(node: &Node, name: &str) -> bool {
    let Some(table) = node.as_table() else { return false };
    let joins = table.get("between").and_then(Node::as_array).unwrap_or_default();
    table.get("name").and_then(Node::as_text) == Some(name)
        || joins.iter().any(|host| host.as_text() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;

    const SCENARIO: &str = "[phases]\nduration = \"5 s\"\n[[groups]]\nname = \"map\"\npublish = { qos = 0 }\n[[groups]]\n\
                            name = \"log\"\nsubscribe = [\"a/+\"]\n[[networks]]\nbetween = [\"field\", \"broker\"]\n";

    fn set(place: &str) -> Result<Vec<String>, String> {
        let mut tree = document::parse(SCENARIO).expect("a test's TOML");
        let places = put(&mut tree, place, &Node::new(Value::Whole(1)))?;
        Ok(places.iter().map(Place::to_string).collect())
    }

    #[test]
    fn a_place_stands_for_one_or_for_several() {
        assert_eq!(set("phases.duration"), Ok(vec!["phases.duration".into()]));
        assert_eq!(set("sim.stop.messages"), Ok(vec!["sim.stop.messages".into()]));
        assert_eq!(set("groups[map].publish.qos"), Ok(vec!["groups[0].publish.qos".into()]));
        assert_eq!(set("groups.1.count"), Ok(vec!["groups[1].count".into()]));
        assert_eq!(set("groups[*].count"), Ok(vec!["groups[0].count".into(), "groups[1].count".into()]));
        // Of all groups those that publish.
        assert_eq!(set("groups[*].publish.qos"), Ok(vec!["groups[0].publish.qos".into()]));
        assert_eq!(set("groups[1].subscribe[0].qos"), Ok(vec!["groups[1].subscribe[0].qos".into()]));
        assert_eq!(set("networks[field].up.loss"), Ok(vec!["networks[0].up.loss".into()]));
    }

    #[test]
    fn a_wrong_place_is_told_with_the_nearest_one() {
        assert_eq!(
            set("groups[maps].count").unwrap_err(),
            "nothing there is named \"maps\"; did you mean [map]?"
        );
        assert_eq!(
            set("groups[7].count").unwrap_err(),
            "the scenario has 2, counted from 0: there is no [7]"
        );
        assert_eq!(
            set("groups.count").unwrap_err(),
            "`count` stands behind an array; write an index, as in \"groups[0].publish.qos\""
        );
        assert_eq!(set("phases.duration.x").unwrap_err(), "the scenario has \"5 s\" there, not a table");
        assert_eq!(set("events[*].at").unwrap_err(), "[*] does not stand behind an array");
        assert!(set("a b").unwrap_err().ends_with("write it as in \"groups[0].publish.qos\""));
        assert!(set("a[").is_err() && set("").is_err() && set("a[0]b").is_err());
    }
}
