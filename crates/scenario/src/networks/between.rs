//! Networks between two hosts.

use std::borrow::Cow;

use mqttlab_fields::{
    Maybe, Name, Node, Pair, PositiveTime, Reader, Rule, Rules, Shape, Table, Text, Unread, Value, fields,
    shown, words,
};
use mqttlab_net::ForgottenFlow;
use mqttlab_units::Duration;

use super::columns::Column;
use super::link::Link;
use super::models::{NetworkModel, NetworkModels, Placed, Placement, Way};
use super::trace::{After, Trace, TraceFile, is_shipped, read_trace};

words! {
    /// Whose the links of a network are.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LinkUse {
        /// Every client of the groups behind the links has links and a host of its own.
        Each = "each",
        /// All share the links.
        Shared = "shared",
    }
}

fields! {
    /// A translator of addresses (NAT) that forgets TCP connections which are silent for too long (RFC 5382, REQ-5).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Nat with rules {
        /// After so long without a frame of a connection, in either direction, it is forgotten. What comes from outside is
        /// dropped then, and neither end is told.
        timeout: Duration as PositiveTime,
        /// What becomes of a segment from inside then, but for a SYN: it is dropped (`drop`), or makes the mapping anew, as
        /// Linux does (`revive`; `nf_conntrack_tcp_loose`).
        forgotten: ForgottenFlow = ForgottenFlow::Drop,
    }
}

impl Rules for Nat {
    fn before<'n>(node: &'n Node, _reader: &mut Reader) -> Result<Cow<'n, Node>, String> {
        let is_short = node.as_text().is_some();
        Ok(if is_short { Cow::Owned(node.short_for("timeout", node.clone())) } else { Cow::Borrowed(node) })
    }

    fn short_form() -> Option<Shape> {
        Some(PositiveTime::shape())
    }
}

fields! {
    /// A network between two hosts: a named model, or a link for each direction.
    #[derive(Clone, Debug, PartialEq)]
    pub struct NetworkBetween with rules {
        /// The two hosts, one of them the broker's or one that forwards. `up` is the link from the first to the second.
        between: [String; 2] as Pair<Name>,
        /// What events call it; unique among the networks.
        name: Option<String> as Maybe<Name>,
        /// A named model; `mqttlab networks` lists them.
        model: Option<String> as Maybe<Text>,
        /// Where the model is applied; each model has a default.
        placement: Option<Placement>,
        /// Link from the first host to the second; not emulated when left out, `{}` on purpose. With a `model`: what is
        /// otherwise on its link towards the broker, such as `up.loss = "2 %"`.
        up: Option<Link>,
        /// Link from the second host to the first; not emulated when left out, `{}` on purpose. With a `model`: what is
        /// otherwise on its link from the broker.
        down: Option<Link>,
        /// `each`: every client of the groups behind the links has links and a host of its own; where a host has a `count`,
        /// every one of these hosts has, and clients of one host share its links. `shared`: all share the links. This is the
        /// default, with a warning where there are several clients.
        link: Option<LinkUse>,
        /// What both links follow over time, as `up.trace`; a trace of mqttlab has values for each direction.
        trace: Option<Trace> as Maybe<TraceFile>,
        /// After the last line of the trace: it begins again (`loop`, the default), or its last values stay (`hold`).
        trace_end: Option<After>,
        /// A translator of addresses between the two hosts that forgets silent TCP connections: its timeout, such as
        /// `"5 min"`, or a table. The host that is farther from the broker is inside.
        nat: Option<Nat>,
        /// The links of the model, as they are adjusted here; none of an unknown one.
        adjusted: Option<Box<[Link; 2]>> as Unread<Option<Box<[Link; 2]>>>,
    }
}

impl Rules for NetworkBetween {
    fn before<'n>(node: &'n Node, reader: &mut Reader) -> Result<Cow<'n, Node>, String> {
        let Some(table) = node.as_table() else { return Ok(Cow::Borrowed(node)) };
        if let Some(Node { value: Value::Truth(is_shared), .. }) = table.get("shared") {
            let link = if *is_shared { "shared" } else { "each" };
            return Err(format!("has `shared = {is_shared}`; write `link = \"{link}\"`"));
        }
        let placement =
            table.get("placement").and_then(Node::as_text).and_then(<Placement as mqttlab_fields::Words>::of);
        let model =
            table.get("model").and_then(Node::as_text).and_then(|name| NetworkModels::shipped().named(name));
        let placement = placement.or(model.map(|model| model.placement));
        let takes_down_alone = placement.is_some_and(Placement::takes_down_alone);
        Ok(with_trace(node, if takes_down_alone { &["down"] } else { &["up", "down"] }, reader))
    }

    fn check(&mut self, table: &Table) -> Result<(), String> {
        if self.model.is_none() && self.up.is_none() && self.down.is_none() {
            return Err("needs either a `model`, or `up` and `down`".into());
        }
        if let Some(model) = self.named() {
            self.adjust(model, table)?;
        }
        let has_delays = |link: &Option<Link>| {
            let trace = link.as_ref().and_then(|link| link.trace.as_ref());
            trace.is_some_and(|trace| trace.course.sets().contains(&Column::Delay))
        };
        if self.placement == Some(Placement::Split) && (has_delays(&self.up) || has_delays(&self.down)) {
            return Err(
                "has a trace with delays, which `placement = \"split\"` would halve; use \"both\"".into()
            );
        }
        if self.model.is_none() && self.placement.is_some() {
            return Err("has a `placement` without a `model`; leave `placement` out, or name a model".into());
        }
        if self.between[0] == self.between[1] {
            let host = shown(&Node::text(self.between[0].clone()));
            return Err(format!("joins the host {host} to itself; name two hosts in `between`"));
        }
        Ok(())
    }
}

impl NetworkBetween {
    /// The named network; none without one, or of an unknown name.
    pub fn named(&self) -> Option<&'static NetworkModel> {
        NetworkModels::shipped().named(self.model.as_ref()?)
    }

    /// Links towards the server and away from it.
    pub fn placed(&self, upwards: bool) -> Placed {
        if let (Some(model), Some(links)) = (self.named(), &self.adjusted) {
            let [up, down] = (**links).clone();
            return self.placement.unwrap_or(model.placement).place(up, down);
        }
        let (up, down) = if upwards { (&self.up, &self.down) } else { (&self.down, &self.up) };
        Placed { up: up.clone(), down: down.clone(), is_shared: false }
    }

    fn adjust(&mut self, model: &NetworkModel, table: &Table) -> Result<(), String> {
        let link = |name: &str, way| {
            let own = if way == Way::Up { &self.up } else { &self.down };
            let trace = own.as_ref().and_then(|own| own.trace.clone());
            let mut written = table.get(name).and_then(Node::as_table).cloned().unwrap_or_default();
            // The trace was read already, from beside the scenario.
            written.members.retain(|member| !matches!(member.name.as_str(), "trace" | "trace_end"));
            if let Some(course) = trace.as_ref().map(|trace| &trace.course) {
                for column in course.sets() {
                    written.put(column.name(), course.written(column));
                }
            }
            let link = model.adjusted(way, Some(&written));
            let mut link =
                link.map_err(|what| format!("has a `{name}` that does not go with its `model`: it {what}"))?;
            link.trace_end = own.as_ref().and_then(|own| own.trace_end);
            link.trace = trace;
            Ok::<Link, String>(link)
        };
        let links = [link("up", Way::Up)?, link("down", Way::Down)?];
        let placement = self.placement.unwrap_or(model.placement);
        if self.up.is_some() && placement.takes_down_alone() {
            let word = mqttlab_fields::Words::word(&placement);
            return Err(format!(
                "has `up`, but `placement` is \"{word}\", which takes the link from the broker alone; write it in `down`, \
                 or use another `placement`"
            ));
        }
        self.adjusted = Some(Box::new(links));
        Ok(())
    }
}

fields! {
    /// The link between a switch and the broker, behind the networks that lead to the switch.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Trunk with rules {
        /// From the switch to the broker.
        up: Link,
        /// From the broker to the switch.
        down: Link,
        /// What both links follow over time, as `up.trace`.
        trace: Option<Trace> as Maybe<TraceFile>,
        /// After the last line of the trace: it begins again (`loop`, the default), or its last values stay (`hold`).
        trace_end: Option<After>,
    }
}

impl Rules for Trunk {
    fn before<'n>(node: &'n Node, reader: &mut Reader) -> Result<Cow<'n, Node>, String> {
        Ok(with_trace(node, &["up", "down"], reader))
    }
}

/// A network whose links follow its trace, each in its own direction.
fn with_trace<'n>(node: &'n Node, ways: &[&str], reader: &Reader) -> Cow<'n, Node> {
    let Some(table) = node.as_table() else { return Cow::Borrowed(node) };
    // What is wrong with the file is told by the field.
    let Some(written) = table.get("trace").filter(|written| read_trace(written, reader.directory()).is_ok())
    else {
        return Cow::Borrowed(node);
    };
    let name = written.as_text().unwrap_or_default();
    let mut whole = table.clone();
    for way in ways {
        let link = table.get(way);
        if link.is_some_and(|link| link.as_table().is_none()) {
            continue;
        }
        let mut made = Table::default();
        let followed =
            if is_shipped(name) && !name.contains('/') { format!("{name}/{way}") } else { name.into() };
        made.put("trace", Node { value: Value::Text(followed), at: written.at });
        if let Some(end) = table.get("trace_end") {
            made.put("trace_end", end.clone());
        }
        for member in link.and_then(Node::as_table).into_iter().flat_map(|link| &link.members) {
            made.put(&member.name, member.node.clone());
        }
        let at = link.and_then(|link| link.at);
        whole.put(way, Node { value: Value::Table(made), at });
    }
    Cow::Owned(Node { value: Value::Table(whole), at: node.at })
}
