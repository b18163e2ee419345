//! The hosts' TCP: a profile for each, shared by hosts alike.

use std::sync::Arc;

use mqttlab_plan::{Plan, TcpPlan};
use mqttlab_tcp::Profile;

/// Each host's TCP; hosts alike share one.
///
/// # Errors
/// A sentence, when the plan asks for what the simulator does not know.
pub(crate) fn profiles(plan: &Plan) -> Result<Vec<Arc<Profile>>, String> {
    let mut known: Vec<(&TcpPlan, Arc<Profile>)> = Vec::new();
    let mut profiles = Vec::with_capacity(plan.hosts.len());
    for host in &plan.hosts {
        if let Some((_, profile)) = known.iter().find(|(tcp, _)| **tcp == host.tcp) {
            profiles.push(Arc::clone(profile));
            continue;
        }
        let profile = profile(plan, profiles.len(), plan.network.mtu_bytes)?;
        known.push((&host.tcp, Arc::clone(&profile)));
        profiles.push(profile);
    }
    Ok(profiles)
}

/// One host's TCP over what carries IP packets of so many bytes.
///
/// # Errors
/// As above.
pub(crate) fn profile(plan: &Plan, host: usize, mtu_bytes: u32) -> Result<Arc<Profile>, String> {
    let host = &plan.hosts[host];
    let (name, control) = (&host.tcp.profile, host.tcp.congestion_control);
    if !control.is_modelled() {
        return Err(format!("host {}: the simulator has no congestion control {control:?}", host.name));
    }
    let stack = plan.sim.tcp_stacks.get(name);
    let stack = stack.ok_or_else(|| format!("host {}: `{name}` is an unknown TCP stack", host.name))?;
    let profile = Profile::new(&host.tcp, stack, mtu_bytes);
    Ok(Arc::new(profile.with_tick_phase(plan.seed.derive("timer ticks"))))
}

/// What Linux's loopback device carries.
pub(crate) const LOOPBACK_MTU_BYTES: u32 = 65_536;
