//! Fields of links that an event sets.

use mqttlab_fields::{AsPart, Entry, FieldDeclaration, Member, Node, Part, Reader, Rule, Shape, Table};

use crate::networks::Link;

/// Fields of links with new values, as they are written; whether they go with a link's others is asked of the whole link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangedLink(pub Table);

/// A link follows its trace from the beginning on.
const NEVER_CHANGED: [&str; 2] = ["trace", "trace_end"];

impl ChangedLink {
    /// The names of the fields that an event may set.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Link::declaration().names().filter(|name| !NEVER_CHANGED.contains(name))
    }
}

/// The rule of these fields, which stand in the event's own table.
#[derive(Debug)]
pub struct LinkFields;

impl Rule for LinkFields {
    type Target = ChangedLink;

    fn read(node: &Node, reader: &mut Reader) -> Option<ChangedLink> {
        let table = node.as_table()?;
        LinkFields::take(
            Entry { table, name: "", bounds: mqttlab_fields::Bounds::default() },
            || None,
            reader,
        )
    }

    fn shape() -> Shape {
        AsPart::<Link>::shape()
    }

    fn take(
        entry: Entry<'_>,
        _default: impl FnOnce() -> Option<ChangedLink>,
        reader: &mut Reader,
    ) -> Option<ChangedLink> {
        let before = reader.count();
        let changed: Vec<&Member> = ChangedLink::names()
            .filter_map(|name| entry.table.members.iter().find(|member| member.name == name))
            .collect();
        for member in &changed {
            let alone = Table { members: vec![(*member).clone()] };
            let mut of_link = Reader::in_directory(reader.directory().map(Into::into));
            Link::take(&alone, &mut of_link);
            // What a field does not go with may be the link's own.
            for problem in of_link.into_problems().into_iter().filter(|problem| !problem.place.0.is_empty()) {
                reader.at(problem.place, problem.what);
            }
        }
        let members = changed.into_iter().cloned().collect();
        (reader.count() == before).then_some(ChangedLink(Table { members }))
    }

    fn declare(_field: FieldDeclaration, fields: &mut Vec<FieldDeclaration>) {
        let of_links = Link::declaration().fields.iter().filter(|field| !NEVER_CHANGED.contains(&field.name));
        fields.extend(of_links.cloned().map(|field| FieldDeclaration {
            description: format!("Of the links: {}", field.description),
            is_needed: false,
            default: None,
            ..field
        }));
    }
}
