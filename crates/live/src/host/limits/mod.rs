//! What this system permits, against what a plan needs: asked before anything starts, for a client that cannot connect
//! later looks like a network that loses everything.
//!
//! ```text
//!   plan ──► open files │ ports of an address │ namespaces │ processes and threads │ memory ──► start, or a sentence
//! ```
//!
//! What it does not ask: how much processor time clients take, which depends on what they do.

mod memory;
mod tasks;

use std::fs;

use mqttlab_plan::{NetworkKind, Plan};
use mqttlab_system::{cgroups, limits};

pub use memory::{MemoryNeed, check_memory};

/// Refuses a plan that needs more than there is; raises the soft limit of descriptors to the hard one. Call it before
/// threads are started and user namespaces are entered.
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
    plan.check_addresses(u64::from(to.saturating_sub(from)) + 1, &format!("{from} to {to}"))?;
    check_namespaces(plan)?;
    tasks::check(tasks_needed(plan))?;
    let (clients, hosts) = (clients(plan), plan.hosts.len());
    check_memory(memory_needed(plan), &format!("{clients} clients, {hosts} hosts"))
}

/// How many files may be open, for `mqttlab doctor`.
pub(crate) fn descriptors_in_words() -> String {
    let limit = raise_descriptors();
    format!("{limit} open files: about {} clients", limit.saturating_sub(BESIDE))
}

/// How many connections an address can have to the broker, for `mqttlab doctor`.
pub(crate) fn ports_in_words() -> String {
    let (from, to) = OWN_PORTS;
    format!("{} clients on a host (ports {from} to {to})", u64::from(to.saturating_sub(from)) + 1)
}

/// How much processor time this program may use, for `mqttlab doctor`.
pub(crate) fn processor_time_in_words() -> String {
    let quotas = cgroups::directories("cpu")
        .into_iter()
        .filter_map(|group| cgroups::quota(&group).map(|(processors, file)| (processors, file, group)));
    quotas.min_by(|(one, ..), (other, ..)| one.total_cmp(other)).map_or(
        "no quota".into(),
        |(processors, file, group)| {
            format!("a quota of {processors} processors (`{file}` of the control group {})", group.display())
        },
    )
}

/// How much memory is left, for `mqttlab doctor`.
pub(crate) fn memory_in_words() -> Result<String, String> {
    memory::in_words()
}

/// How many processes and threads there may be, for `mqttlab doctor`.
pub(crate) fn tasks_in_words() -> String {
    tasks::in_words()
}

/// A connection for each client; for each host its namespace and the ends of its device; a poller, a file and a queue
/// for each worker.
fn descriptors_needed(plan: &Plan) -> u64 {
    let workers = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    clients(plan) + plan.hosts.len() as u64 * A_HOST + workers * A_WORKER + BESIDE
}

fn tasks_needed(plan: &Plan) -> u64 {
    u64::from(plan.live.workers) + programs(plan) * TASKS_A_PROGRAM + TASKS_BESIDE
}

fn programs(plan: &Plan) -> u64 {
    plan.groups.iter().filter(|group| group.program.is_some()).map(|group| u64::from(group.count)).sum()
}

fn memory_needed(plan: &Plan) -> MemoryNeed {
    let (clients, hosts) = (clients(plan), namespaces_needed(plan));
    MemoryNeed {
        own_bytes: PROGRAM_BYTES + clients * CLIENT_BYTES,
        beside_bytes: clients * CONNECTION_BYTES + hosts * NAMESPACE_BYTES,
    }
}

/// Those of one part, where the run has several.
fn clients(plan: &Plan) -> u64 {
    plan.live.most_in_a_part(plan.groups.iter().map(|group| u64::from(group.count)).sum())
}

/// A namespace for each host; on an emulated network one more, for the wire.
fn namespaces_needed(plan: &Plan) -> u64 {
    match plan.network.kind {
        NetworkKind::External => 0,
        NetworkKind::Loopback => 1,
        NetworkKind::Veth => plan.hosts.len() as u64,
        NetworkKind::Emulated => plan.hosts.len() as u64 + 1,
    }
}

fn check_namespaces(plan: &Plan) -> Result<(), String> {
    let needed = namespaces_needed(plan);
    let text = fs::read_to_string("/proc/sys/user/max_net_namespaces").unwrap_or_default();
    match text.trim().parse::<u64>() {
        Ok(limit) if needed > limit => Err(format!(
            "this plan needs {needed} network namespaces ({} hosts), but this system permits {limit}: raise \
             `user.max_net_namespaces`, or use fewer hosts",
            plan.hosts.len()
        )),
        _ => Ok(()),
    }
}

/// The ports that the kernel gives to those who connect from this plan's hosts: in namespaces that are made, those that
/// the testbed permits.
fn ports_of(plan: &Plan) -> (u32, u32) {
    if plan.network.kind == NetworkKind::External { port_range() } else { OWN_PORTS }
}

fn port_range() -> (u32, u32) {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ports = text.split_whitespace().filter_map(|port| port.parse().ok());
    ports.next().zip(ports.next()).unwrap_or(DEFAULT_PORTS)
}

/// Raises the soft limit to the hard one, and says what it is.
fn raise_descriptors() -> u64 {
    limits::raise_open_files().unwrap_or(u64::MAX)
}

/// What the testbed sets `ip_local_port_range` to in the namespaces that it makes.
pub(crate) const OWN_PORTS: (u32, u32) = (1024, 65_535);
/// The kernel's own (net/ipv4/af_inet.c, inet_init_net).
const DEFAULT_PORTS: (u32, u32) = (32_768, 60_999);
/// Its namespace, its device and the device's counterpart.
const A_HOST: u64 = 3;
const A_WORKER: u64 = 4;
/// Standard streams, the recording's files, the broker's log, signals and timers.
const BESIDE: u64 = 32;
/// A program that performs a client, with its keeper, its init, and a thread or two.
const TASKS_A_PROGRAM: u64 = 5;
/// Conductor, watchdog and whom it warns, recorder, emulator, control timer, loopback, the broker's keeper and its init,
/// the broker, one that works in a namespace, and one to spare.
const TASKS_BESIDE: u64 = 12;
/// The program with its buffers. What memory is for was measured with 10, 2,000 and 4,000 clients and with 300 hosts on
/// Linux 6.18 and Mosquitto 2.0.11; these are a little less.
const PROGRAM_BYTES: u64 = 7_000_000;
/// A client in this program.
const CLIENT_BYTES: u64 = 2_400;
/// Both ends of its connection in the kernel (8.3 kB), and its session in the broker (1 kB).
const CONNECTION_BYTES: u64 = 9_000;
/// A network namespace with its devices (410 kB).
const NAMESPACE_BYTES: u64 = 350_000;
