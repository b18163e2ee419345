//! What this system permits, against what a plan needs: asked before anything starts, for a client that cannot connect
//! later looks like a network that loses everything.
//!
//! What it does not ask: how much memory and processor time clients take, which depends on what they do.

use std::collections::BTreeMap;
use std::fs;

use mqttlab_plan::{NetworkKind, Plan};

/// Refuses a plan that needs more than there is; raises the soft limit of descriptors to the hard one.
///
/// # Errors
/// A sentence with the limit, the need and the remedy.
pub(crate) fn check(plan: &Plan) -> Result<(), String> {
    let (needed, limit) = (descriptors_needed(plan), raise_descriptors());
    if needed > limit {
        return Err(format!(
            "this plan needs about {needed} open files ({} clients and what runs beside them), but this program may open \
             {limit}: raise the limit (`ulimit -Hn {needed}`, or LimitNOFILE of the service), or use fewer clients",
            clients(plan)
        ));
    }
    let (from, to) = ports_of(plan);
    let ports = u64::from(to.saturating_sub(from)) + 1;
    match crowded_host(plan).filter(|(_, clients)| *clients > ports) {
        Some((host, clients)) => Err(format!(
            "{clients} clients connect from {host}, which has one address and {ports} ports ({from} to {to}): spread them \
             over several hosts (hosts.NAME.count), or widen net.ipv4.ip_local_port_range"
        )),
        None => Ok(()),
    }
}

/// How many files may be open, for `mqttlab doctor`.
pub(crate) fn descriptors_in_words() -> String {
    let limit = raise_descriptors();
    format!("{limit} open files: about {} clients", limit.saturating_sub(BESIDE))
}

/// How many connections an address can have to the broker, for `mqttlab doctor`.
pub(crate) fn ports_in_words() -> String {
    let (from, to) = DEFAULT_PORTS;
    format!("{} clients on a host (ports {from} to {to})", u64::from(to.saturating_sub(from)) + 1)
}

/// A connection for each client; for each host its namespace and the ends of its device; a poller, a file and a queue
/// for each worker.
fn descriptors_needed(plan: &Plan) -> u64 {
    let workers = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    clients(plan) + plan.hosts.len() as u64 * A_HOST + workers * A_WORKER + BESIDE
}

fn clients(plan: &Plan) -> u64 {
    plan.groups.iter().map(|group| u64::from(group.count)).sum()
}

/// The source address with the most clients: a host's, or the machine's own where the network is not made.
fn crowded_host(plan: &Plan) -> Option<(String, u64)> {
    if plan.network.kind == NetworkKind::External {
        return Some(("this machine".into(), clients(plan)));
    }
    let mut by_host = BTreeMap::<usize, u64>::new();
    for group in &plan.groups {
        if group.host_step == 0 {
            *by_host.entry(group.host).or_default() += u64::from(group.count);
        } else {
            (0..group.count).for_each(|client| *by_host.entry(group.host_of(client)).or_default() += 1);
        }
    }
    let (host, clients) = by_host.into_iter().max_by_key(|(_, clients)| *clients)?;
    Some((plan.hosts.get(host).map_or_else(|| "a host".into(), |host| host.name.clone()), clients))
}

/// The ports that the kernel gives to those who connect from this plan's hosts: a namespace that is made begins with the
/// kernel's default, whatever the machine's own is.
fn ports_of(plan: &Plan) -> (u32, u32) {
    if plan.network.kind == NetworkKind::External { port_range() } else { DEFAULT_PORTS }
}

fn port_range() -> (u32, u32) {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ports = text.split_whitespace().filter_map(|port| port.parse().ok());
    ports.next().zip(ports.next()).unwrap_or(DEFAULT_PORTS)
}

/// Raises the soft limit to the hard one, and says what it is.
fn raise_descriptors() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a local.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return u64::MAX;
        }
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0 { raised.rlim_cur } else { limit.rlim_cur }
    }
}

/// `ip_local_port_range` of a new namespace (Linux, net/ipv4/af_inet.c, inet_init_net).
const DEFAULT_PORTS: (u32, u32) = (32_768, 60_999);
/// Its namespace, its device and the device's counterpart.
const A_HOST: u64 = 3;
const A_WORKER: u64 = 4;
/// Standard streams, the recording's files, the broker's log, signals and timers.
const BESIDE: u64 = 32;
