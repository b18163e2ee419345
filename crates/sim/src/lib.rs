//! The simulator: the same plan in virtual time.
//!
//! ```text
//!   plan ──► clients ──► sessions ──► TCP endpoints ──► links, radio ──► TCP ──► broker model ──► … ──► recording
//! ```
//!
//! Discrete events in integer nanoseconds, one thread a run. The sessions, the links and the schedules are the very
//! machines that a live run drives; TCP and the broker are models. The same plan gives the same recording, byte by
//! byte, on every machine.
//!
//! What it does not model: the time that hosts take to compute (but for the broker's service time), payload bytes,
//! ARP, and clients other than the lab's own.

mod clients;
mod control;
mod hosts;
mod ids;
mod message_tokens;
mod records;
mod servers;
mod simulation;
mod state;
mod topics;

use mqttlab_plan::{Destination, Plan};
use mqttlab_recording::SegmentAnalyser;
use mqttlab_run::{Failure, RunObserver, RunOutcome};

pub use control::limits::memory_needed;
pub use hosts::wire::FrameCounts;
pub use simulation::Simulation;
pub use state::{
    ClientState, HostState, LinkState, ServerState, SessionState, SimCounts, SimulationState, SocketState,
};

/// Runs a plan and leaves its recording at `destination`.
pub fn run(
    plan: Plan,
    destination: &Destination,
    analyser: Box<dyn SegmentAnalyser>,
    observer: &mut dyn RunObserver,
) -> RunOutcome {
    match Simulation::new(plan, destination, analyser, observer) {
        Ok(mut simulation) => {
            let result = simulation.run(observer);
            simulation.finish(result, observer)
        }
        Err(problem) => RunOutcome::Failed(Failure::Setup(problem)),
    }
}
