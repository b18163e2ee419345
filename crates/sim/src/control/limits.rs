//! What a simulation needs before it starts: memory, and a port for each connection.
//!
//! What it does not count: messages in queues, of which there may be any number later.

use mqttlab_plan::Plan;

use crate::hosts::ports::{FIRST_PORT, PORTS};

/// How many bytes of memory a simulation of this plan takes at least.
pub fn memory_needed(plan: &Plan) -> u64 {
    let clients: u64 = plan.groups.iter().map(|group| u64::from(group.count)).sum();
    let client_bytes = if plan.recording.packets { CLIENT_BYTES + ANALYSIS_BYTES } else { CLIENT_BYTES };
    PROGRAM_BYTES + clients * client_bytes + plan.hosts.len() as u64 * HOST_BYTES
}

/// Refuses what cannot be told apart by addresses.
///
/// # Errors
/// A sentence with the limit, the need and the remedy.
pub(crate) fn check(plan: &Plan) -> Result<(), String> {
    let last = u32::from(FIRST_PORT) + PORTS - 1;
    plan.check_addresses(PORTS.into(), &format!("{FIRST_PORT} to {last}"))
}

/// The program with its buffers. What memory is for was measured with 20,000 clients; these are a little less.
const PROGRAM_BYTES: u64 = 8_000_000;
/// A client, its connection's two ends, and its session in the broker.
const CLIENT_BYTES: u64 = 3_700;
/// What the analysis of a connection's frames takes.
const ANALYSIS_BYTES: u64 = 2_900;
/// A host with its links.
const HOST_BYTES: u64 = 1_000;
