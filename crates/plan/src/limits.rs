//! The rules for a host's limits: their bounds, and on which hosts there may be some.
//!
//! Live, a host is limited by a control group for its servers and programs. Our own clients are threads of the engine,
//! which no control group holds apart from the emulator; simulated, they take no time that a share could lengthen. So a
//! host with limits has none of them, in either backend.

use std::collections::BTreeMap;

use mqttlab_units::Ratio;

use crate::bounds::declared;
use crate::error::{PlanError, require};
use crate::{Backend, HostLimits, Plan};

pub(crate) fn check(plan: &Plan) -> Result<(), PlanError> {
    if plan.hosts.iter().all(|host| host.limits.is_none()) {
        return Ok(());
    }
    for (index, host) in plan.hosts.iter().enumerate() {
        if let Some(limits) = &host.limits {
            check_bounds(limits, &format!("hosts[{index}].limits"))?;
        }
    }
    check_clients(plan)?;
    check_servers(plan)
}

fn check_bounds(limits: &HostLimits, place: &str) -> Result<(), PlanError> {
    declared(limits, place)?;
    let share = limits.processor.unwrap_or(Ratio::ONE);
    require(share.as_f64() >= 0.01, &format!("{place}.processor"), || {
        format!("is {share:?}, but must be between 1 % and 100 % of one processor")
    })
}

fn check_clients(plan: &Plan) -> Result<(), PlanError> {
    for group in plan.groups.iter().filter(|group| group.program.is_none()) {
        let limited = (0..group.count)
            .map(|client| group.host_of(client))
            .find(|host| plan.hosts[*host].limits.is_some());
        require(limited.is_none(), &format!("hosts[{}].limits", limited.unwrap_or_default()), || {
            format!(
                "holds servers and programs, but the clients of group `{}` are the engine's own; move them to another host",
                group.name
            )
        })?;
    }
    Ok(())
}

fn check_servers(plan: &Plan) -> Result<(), PlanError> {
    let mut seen: BTreeMap<usize, &str> = BTreeMap::new();
    for server in &plan.servers {
        let Some(limits) = &plan.hosts[server.host].limits else { continue };
        let (name, place) = (&server.name, format!("hosts[{}].limits", server.host));
        if plan.backend == Backend::Live {
            require(server.process.is_some(), &place, || {
                format!("is set, but `{name}` runs elsewhere, out of reach; leave it out")
            })?;
            continue;
        }
        let other = seen.insert(server.host, name);
        require(other.is_none(), &place, || {
            let other = other.unwrap_or_default();
            format!(
                "is shared by `{other}` and `{name}`, but a simulated host with limits has one server; use two hosts"
            )
        })?;
        let knows_memory = server.broker().is_some() || limits.memory_bytes.is_none();
        require(knows_memory, &format!("{place}.memory_bytes"), || {
            format!("is set, but of simulated servers only a broker has memory, and `{name}` is none")
        })?;
    }
    Ok(())
}

/// How a program ended that needed more memory than its host has.
pub fn out_of_memory(memory_bytes: u64) -> String {
    let memory = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")]
        .into_iter()
        .find(|(unit, _)| memory_bytes.is_multiple_of(*unit))
        .map_or(format!("{memory_bytes} B"), |(unit, name)| format!("{} {name}", memory_bytes / unit));
    format!("killed for memory: its host has {memory}")
}
