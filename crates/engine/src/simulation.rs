//! A simulation, watched like any other run: signals end it, and whoever reads its progress.

use mqttlab_capture::SegmentWitness;
use mqttlab_live::{MemoryNeed, check_memory};
use mqttlab_plan::{Destination, Plan};
use mqttlab_run::{Failure, Interruption, RunOutcome};
use mqttlab_sim::{Simulation, SimulationState};
use mqttlab_system::signals::Signals;
use mqttlab_units::Instant;

use crate::observer::Lines;

/// Runs a plan in virtual time.
pub fn run(plan: Plan, destination: &Destination, lines: &mut Lines) -> RunOutcome {
    if let Err(problem) = prepare(&plan, destination, lines) {
        return RunOutcome::Failed(Failure::Setup(problem));
    }
    let witness = SegmentWitness::new(plan.server_ports());
    mqttlab_sim::run(plan, destination, Box::new(witness), lines)
}

/// Sees that there is memory, and lets signals, and the end of whoever reads, end the run.
fn prepare(plan: &Plan, destination: &Destination, lines: &mut Lines) -> Result<(), String> {
    let clients: u64 = plan.groups.iter().map(|group| u64::from(group.count)).sum();
    let need = MemoryNeed { own_bytes: mqttlab_sim::memory_needed(plan), beside_bytes: 0 };
    check_memory(need, &format!("{clients} clients, {} hosts", plan.hosts.len()))?;
    let watchdog =
        Signals::block().and_then(|signals| mqttlab_live::watchdog_of(&destination.directory, signals));
    lines.watch(watchdog.map_err(|error| format!("cannot wait for signals: {error}"))?);
    Ok(())
}

/// Simulates a plan until an instant, and returns the state there. What was recorded until then is kept as the recording
/// of an incomplete run.
pub fn run_until(plan: Plan, destination: &Destination, until: Instant) -> Result<SimulationState, String> {
    // Standard output is for the state.
    let mut lines = Lines::to(Box::new(std::io::sink()));
    prepare(&plan, destination, &mut lines)?;
    let analyser = SegmentWitness::new(plan.server_ports());
    let mut simulation = Simulation::new(plan, destination, Box::new(analyser), &mut lines)?;
    let result = simulation.run_until(until, &mut lines);
    let state = simulation.state();
    let ending = result.clone().and_then(|()| match simulation.is_over() {
        true => Ok(()),
        false => Err(Interruption::StoppedAt(simulation.now())),
    });
    let _ = simulation.finish(ending, &mut lines);
    result.map_err(|interruption| interruption.to_string()).and(state)
}
