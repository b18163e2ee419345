//! What the rules look up in a plan for each of its parts, gathered once: a search for each would cost the square of their
//! number.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Group, NetworkKind, Plan};

/// Answers of a plan whose paths and groups do not change.
pub(crate) struct Lookup<'p> {
    is_emulated: bool,
    /// From host to host.
    paths: BTreeSet<(usize, usize)>,
    brokers: usize,
    /// By the number of a server: the framings of the groups that connect to it.
    framings: BTreeMap<usize, BTreeSet<&'p str>>,
}

impl<'p> Lookup<'p> {
    /// Of a plan, right or wrong.
    pub(crate) fn of(plan: &'p Plan) -> Lookup<'p> {
        let mut framings: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
        for group in &plan.groups {
            if let Some(framing) = framing(group) {
                framings.entry(group.connects_to).or_default().insert(framing);
            }
        }
        Lookup {
            is_emulated: plan.network.kind == NetworkKind::Emulated,
            paths: plan.network.paths.iter().map(|path| (path.from, path.to)).collect(),
            brokers: plan.servers.iter().filter(|server| server.broker().is_some()).count(),
            framings,
        }
    }

    /// Whether two hosts reach each other. Only an emulated network has paths.
    pub(crate) fn has_route(&self, host: usize, other: usize) -> bool {
        let known = |from: usize, to: usize| self.paths.contains(&(from, to));
        !self.is_emulated || host == other || known(host, other) && known(other, host)
    }

    /// How many servers are brokers.
    pub(crate) fn brokers(&self) -> usize {
        self.brokers
    }

    /// A framing that differs from a group's, of groups that connect to the same server.
    pub(crate) fn another_framing(&self, group: &Group) -> Option<&'p str> {
        let all = self.framings.get(&group.connects_to)?;
        all.iter().copied().find(|&other| Some(other) != framing(group))
    }
}

fn framing(group: &Group) -> Option<&str> {
    group.tcp()?.framing.as_deref()
}
