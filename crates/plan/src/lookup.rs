//! What the rules look up in a plan for each of its parts, gathered once: a search for each would cost the square of their
//! number.

use std::collections::BTreeSet;

use crate::{NetworkKind, Plan};

/// Answers of a plan whose paths and groups do not change.
pub(crate) struct Lookup {
    is_emulated: bool,
    /// From host to host.
    paths: BTreeSet<(usize, usize)>,
    brokers: usize,
}

impl Lookup {
    /// Of a plan, right or wrong.
    pub(crate) fn of(plan: &Plan) -> Lookup {
        Lookup {
            is_emulated: plan.network.kind == NetworkKind::Emulated,
            paths: plan.network.paths.iter().map(|path| (path.from, path.to)).collect(),
            brokers: plan.servers.iter().filter(|server| server.broker().is_some()).count(),
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
}
