//! Hosts: how many there are, their TCP, and what they have of processor, memory and disk.

use std::sync::OnceLock;

use mqttlab_fields::{
    AsPart, Flat, Maybe, Node, Reader, Rule, Shape, Table, Value, closest, did_you_mean, fields, shown,
};
use mqttlab_plan::HostLimits;
use mqttlab_tcp::TcpPlan;

use crate::document;
use crate::networks::HostTcp;
use crate::overlay::overlaid;

const MACHINES: &str = include_str!("../../../networks/machines.toml");

fields! {
    /// A machine, in a live run a network namespace; or, where it forwards, a router or switch that joins networks.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Host {
        /// Number of identical hosts: `name-0`, `name-1`, ... The clients of each group sit on them in turn. When left out,
        /// as many as there are clients where a network has `link = "each"`, else one.
        count: Option<u32> [1..=65_534],
        /// Its TCP.
        tcp: TcpPlan as HostTcp = HostTcp::usual(),
        /// A router or switch: frames between other hosts cross it. It runs neither clients nor the broker, and takes no
        /// time; what takes time are the links of its networks.
        forwards: bool = false,
        /// What its servers and programs have of processor, memory and disk.
        limits: Option<HostLimits> as Maybe<Limits>,
    }
}

impl Default for Host {
    fn default() -> Host {
        Host { count: None, tcp: HostTcp::usual(), forwards: false, limits: None }
    }
}

fields! {
    /// What the servers and programs of a host have together. A machine that `profile` names has all of it.
    #[derive(Debug)]
    pub struct LimitFields {
        /// A machine: `raspberry-pi-3` (20 % of a processor, 1000 MB, 10 MB/s) or `raspberry-pi-4` (40 %, 4000 MB, 20 MB/s);
        /// what is written beside it goes before. Only the first 20 % are fitted on data, the rest is chosen.
        profile: Option<String>,
        /// What the plan has of it.
        limits: HostLimits as Flat<HostLimits>,
    }
}

/// The rule of a host's limits: a machine by its name, and what is written beside it.
#[derive(Debug)]
pub struct Limits;

impl Rule for Limits {
    type Target = HostLimits;

    fn read(node: &Node, reader: &mut Reader) -> Option<HostLimits> {
        let given = shown(node);
        if let Some(text) = node.as_text() {
            if of_clients(text) {
                return reader.wrong(wrong_machine(text));
            }
            let near = Node::text(closest(text, names(), 0.5).or_else(|| names().next()).unwrap_or_default());
            return reader
                .wrong(format!("is {given}, but must be a table, such as {{ profile = {} }}", shown(&near)));
        }
        let whole = match node.as_table() {
            Some(written) => {
                match written.get("profile").and_then(Node::as_text).map(|name| (name, machine(name))) {
                    Some((name, None)) => {
                        return reader.below("profile", |reader| reader.wrong(wrong_machine(name)));
                    }
                    Some((_, Some(machine))) => {
                        Node { value: Value::Table(overlaid(machine, written)), at: node.at }
                    }
                    None => node.clone(),
                }
            }
            None => node.clone(),
        };
        let limits = AsPart::<LimitFields>::read(&whole, reader)?.limits;
        if limits == HostLimits::default() {
            let right = "add `processor`, `memory`, `disk_rate` or `profile`, or leave it out";
            return reader.wrong(format!("is empty; {right}"));
        }
        Some(limits)
    }

    fn shape() -> Shape {
        AsPart::<LimitFields>::shape()
    }
}

fn wrong_machine(name: &str) -> String {
    let given = shown(&Node::text(name));
    if of_clients(name) {
        return format!(
            "is {given}, which runs clients, but limits hold servers and programs; use `tcp = {{ profile = \
             \"microcontroller\" }}` for its TCP"
        );
    }
    format!("is the unknown machine {given}; {}", did_you_mean(name, names(), 0.5))
}

fn machines() -> &'static Table {
    static READ: OnceLock<Table> = OnceLock::new();
    READ.get_or_init(|| {
        let tree = document::parse(MACHINES).expect("networks/machines.toml is TOML");
        tree.as_table().cloned().expect("it is a table")
    })
}

fn below(name: &str) -> impl Iterator<Item = &'static mqttlab_fields::Member> {
    machines().get(name).and_then(Node::as_table).into_iter().flat_map(|table| &table.members)
}

fn names() -> impl Iterator<Item = &'static str> {
    below("servers").map(|member| member.name.as_str())
}

fn machine(name: &str) -> Option<&'static Table> {
    below("servers").find(|member| member.name == name)?.node.as_table()
}

fn of_clients(name: &str) -> bool {
    below("clients").any(|member| member.name == name)
}

#[cfg(test)]
mod tests {
    use mqttlab_units::Ratio;

    use super::*;

    fn read(text: &str) -> Result<HostLimits, String> {
        let tree = document::parse(text).expect("a test's TOML");
        let node = tree.as_table().and_then(|table| table.get("limits")).expect("it has limits");
        let mut reader = Reader::default();
        let read = Limits::read(node, &mut reader);
        read.ok_or_else(|| {
            let problem = reader.into_problems().remove(0);
            format!("`{}` {}", problem.place, problem.what)
        })
    }

    #[test]
    fn a_machine_has_its_limits_and_what_is_written_takes_their_place() {
        let limits =
            read("limits = { profile = \"raspberry-pi-3\", memory = \"64 MB\" }").expect("it is right");
        assert_eq!(limits.processor, Ratio::new(1, 5).ok());
        assert_eq!((limits.memory_bytes, limits.disk_bytes_s), (Some(64_000_000), Some(10_000_000)));
    }

    #[test]
    fn wrong_limits_are_told() {
        assert_eq!(
            read("limits = {}").unwrap_err(),
            "`` is empty; add `processor`, `memory`, `disk_rate` or `profile`, or leave it out"
        );
        assert!(
            read("limits = { profile = \"esp32\" }")
                .unwrap_err()
                .starts_with("`profile` is \"esp32\", which runs")
        );
        assert_eq!(
            read("limits = { profile = \"raspberry-pi\" }").unwrap_err(),
            "`profile` is the unknown machine \"raspberry-pi\"; did you mean `raspberry-pi-4`?"
        );
        assert_eq!(
            read("limits = { processor = \"0.5 %\" }").unwrap_err(),
            "`processor` is 0.5 %, but must be 1 % or more: a kernel gives out no less"
        );
        assert_eq!(
            read("limits = { memory = \"1 kB\" }").unwrap_err(),
            "`memory` is \"1 kB\", but must be 1 MiB or more"
        );
    }
}
