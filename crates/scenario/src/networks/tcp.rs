//! A host's TCP: a named profile, and what differs from it. The profiles are `networks/tcp.toml`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use mqttlab_fields::{AsPart, Field, Node, Reader, Rule, Shape, Table, Value, closest, fields, shown};
use mqttlab_tcp::{Stack, TcpPlan};

use crate::overlay::{AnyTable, TableAsWritten, based_on, overlaid};
use crate::{document, overlay};

const FILE: &str = include_str!("../../../../networks/tcp.toml");

fields! {
    /// A named stack.
    #[derive(Debug)]
    pub struct TcpProfile {
        /// As a scenario calls it.
        name: String,
        /// What it is.
        meaning: String,
        /// The behaviour that no kernel lets be set, by its name.
        stack: String,
        /// Whether the stack had explicit congestion notification; of one that is of no date, it may be tried.
        ecn_possible: bool = true,
        /// Its fields that differ from Linux's.
        tcp: TableAsWritten as AnyTable = TableAsWritten::default(),
    }
}

/// All profiles, in the order of the file, and the stacks' behaviour by name.
#[derive(Debug)]
pub struct TcpProfiles {
    /// In the order of the file.
    pub profiles: Vec<TcpProfile>,
    stacks: BTreeMap<String, Stack>,
}

impl TcpProfiles {
    /// Those of mqttlab.
    pub fn shipped() -> &'static TcpProfiles {
        static SHIPPED: OnceLock<TcpProfiles> = OnceLock::new();
        SHIPPED.get_or_init(|| read_profiles(FILE).expect("networks/tcp.toml is whole"))
    }

    /// A profile by its name.
    pub fn named(&self, name: &str) -> Option<&TcpProfile> {
        self.profiles.iter().find(|profile| profile.name == name)
    }

    /// The behaviour that the plan of a simulation has for a profile.
    pub fn stack(&self, profile: &TcpProfile) -> &Stack {
        &self.stacks[&profile.stack]
    }

    /// The names of all profiles.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.profiles.iter().map(|profile| profile.name.as_str())
    }
}

fn read_profiles(text: &str) -> Result<TcpProfiles, String> {
    let tree = document::parse(text)?;
    let table = tree.as_table().ok_or("is no table")?;
    let mut reader = Reader::default();
    let profiles =
        table.get("profiles").and_then(|node| <Vec<TcpProfile> as Field>::Rule::read(node, &mut reader));
    let problems = reader.into_problems();
    let profiles = profiles.ok_or_else(|| format!("has wrong profiles: {problems:?}"))?;
    let written = table.get("stacks").and_then(Node::as_table).ok_or("has no stacks")?;
    let stacks = written.members.iter().map(|member| {
        let whole = overlay::json(&based_on(&member.name, written)?);
        let stack = serde_json::from_value(whole).map_err(|error| format!("{}: {error}", member.name))?;
        Ok((member.name.clone(), stack))
    });
    Ok(TcpProfiles { profiles, stacks: stacks.collect::<Result<_, String>>()? })
}

/// The rule of a host's `tcp`: what is written, on the values of its profile.
#[derive(Debug)]
pub struct HostTcp;

impl HostTcp {
    /// Of a host that says nothing.
    pub fn usual() -> TcpPlan {
        static USUAL: OnceLock<TcpPlan> = OnceLock::new();
        let read =
            || AsPart::<TcpPlan>::read(&Node::new(Value::Table(Table::default())), &mut Reader::default());
        USUAL.get_or_init(|| read().expect("all fields have defaults")).clone()
    }
}

impl Rule for HostTcp {
    type Target = TcpPlan;

    fn read(node: &Node, reader: &mut Reader) -> Option<TcpPlan> {
        let profiles = TcpProfiles::shipped();
        if let Some(text) = node.as_text() {
            let near = Node::text(closest(text, profiles.names(), 0.5).unwrap_or("linux"));
            let right = format!("such as {{ profile = {} }}", shown(&near));
            return reader.wrong(format!("is {}, but must be a table, {right}", shown(node)));
        }
        let written = node.as_table().cloned().unwrap_or_default();
        let profile = match written.get("profile").map(|name| (name, name.as_text())) {
            // What is no text is told by the field's own rule.
            None | Some((_, None)) => profiles.named("linux"),
            Some((name, Some(text))) => match profiles.named(text) {
                None => {
                    let near = mqttlab_fields::did_you_mean(text, profiles.names(), 0.5);
                    let what = format!("is an unknown TCP profile {}; {near}", shown(name));
                    return reader.below("profile", |reader| reader.wrong(what));
                }
                found => found,
            },
        }?;
        let whole = match node.value {
            Value::Table(_) => Node { value: Value::Table(overlaid(&profile.tcp.0, &written)), at: node.at },
            _ => node.clone(),
        };
        let plan = AsPart::<TcpPlan>::read(&whole, reader)?;
        if plan.ecn && !profile.ecn_possible {
            let name = shown(&Node::text(profile.name.clone()));
            return reader.wrong(format!(
                "has `ecn = true`, but the stack of {name} did not know it; leave it out, or use the profile \"linux\""
            ));
        }
        Some(plan)
    }

    fn shape() -> Shape {
        AsPart::<TcpPlan>::shape()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TcpPlan, String> {
        let tree = document::parse(text).expect("a test's TOML");
        let node = tree.as_table().and_then(|table| table.get("tcp")).expect("it has `tcp`");
        let mut reader = Reader::default();
        let read = HostTcp::read(node, &mut reader);
        read.ok_or_else(|| {
            let problem = reader.into_problems().remove(0);
            format!("`{}` {}", problem.place, problem.what)
        })
    }

    #[test]
    fn a_profile_has_its_values_and_what_is_written_takes_their_place() {
        let plan = read("tcp = { profile = \"microcontroller\", rto_min = \"1 s\" }").expect("it is right");
        assert_eq!((plan.mss, plan.sack, plan.initial_window), (Some(536), false, 2));
        assert_eq!(plan.rto_min.as_ns(), 1_000_000_000);
        let linux = read("tcp = {}").expect("it is right");
        assert_eq!((linux.profile.as_str(), linux.sack, linux.mss), ("linux", true, None));
    }

    #[test]
    fn a_wrong_stack_is_told_with_the_nearest_one() {
        assert_eq!(
            read("tcp = \"linus\"").unwrap_err(),
            "`` is \"linus\", but must be a table, such as { profile = \"linux\" }"
        );
        assert_eq!(
            read("tcp = { profile = \"linux-2020\" }").unwrap_err(),
            "`profile` is an unknown TCP profile \"linux-2020\"; did you mean `linux-2021`?"
        );
        assert_eq!(
            read("tcp = { profile = \"netbsd-2005\", ecn = true }").unwrap_err(),
            "`` has `ecn = true`, but the stack of \"netbsd-2005\" did not know it; leave it out, or use the profile \
             \"linux\""
        );
        assert_eq!(
            read("tcp = { rto_min = \"200 s\" }").unwrap_err(),
            "`` has a minimum retransmission timeout of 200 s, but a maximum of 120 s; raise `rto_max`, or lower \
             `rto_min`"
        );
        assert_eq!(
            read("tcp = { mss = \"10 B\" }").unwrap_err(),
            "`mss` is \"10 B\", but must be 88 B or more"
        );
    }
}
