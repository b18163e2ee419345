//! The wills of a plan's clients, for who receives one: no payload of a will says whose it is.

use crate::Plan;

/// Every group's will, by server.
#[derive(Clone, Debug, Default)]
pub struct PlannedWills {
    wills: Vec<GroupWill>,
}

/// The will of a group's clients.
#[derive(Clone, Debug)]
struct GroupWill {
    server: usize,
    topic: String,
    payload: Vec<u8>,
    /// Its client, where there is one alone.
    client: Option<u32>,
}

impl PlannedWills {
    /// Those of a plan.
    pub fn of(plan: &Plan) -> PlannedWills {
        let groups = plan.groups.iter().zip(plan.client_numbers());
        let wills = groups.filter_map(|(group, start)| {
            let will = group.will()?;
            Some(GroupWill {
                server: plan.serving(group),
                topic: will.topic.clone(),
                payload: will.payload.clone().into_bytes(),
                client: (group.count == 1).then_some(start),
            })
        });
        PlannedWills { wills: wills.collect() }
    }

    /// Whether what a server has delivered is a will: its client, where it can be one client's alone. `begin`: the payload's first
    /// bytes, as many as were read.
    pub fn find(&self, server: usize, topic: &str, begin: &[u8], payload_bytes: u32) -> Option<Option<u32>> {
        let is_it = |will: &&GroupWill| {
            will.server == server
                && will.payload.len() == payload_bytes as usize
                && will.topic == topic
                && will.payload.starts_with(begin)
        };
        let mut found = self.wills.iter().filter(is_it);
        let first = found.next()?;
        Some(first.client.filter(|_| found.next().is_none()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.wills.is_empty()
    }
}
