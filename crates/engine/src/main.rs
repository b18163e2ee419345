//! The engine program: a plan in, a recording out.
//!
//! ```text
//!   plan (JSON) ──► standard input │ engine │ standard output ──► progress (one JSON object a line)
//!                                  └───┬────┘
//!                                  recording
//! ```
//!
//! It joins the rooms: `live` or `sim` performs, `recording` keeps, `capture` reads the frames. What it does not
//! do: read scenarios, choose defaults, or compute metrics.

mod arguments;
mod hiding;
mod import;
mod memory;
mod observer;
mod probe;
mod simulation;
mod stderr;

use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

use arguments::EngineCommand;
use mqttlab_capture::FrameWitness;
use mqttlab_derived::summarise;
use mqttlab_import::{MQTT_PORT, ProgramReader};
use mqttlab_plan::{Backend, Destination, GatewayProgram, Plan, ProxyProgram, Secrets, StoredServers};
use mqttlab_recording::{KEY_LOG, UNHIDDEN, recover, snapshot};
use mqttlab_run::{RunObserver, RunOutcome, RunVerdict};
use mqttlab_servers::{gateway, proxy};
use mqttlab_units::Instant;
use observer::Lines;
use stderr::complain;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments::parse(&arguments) {
        Ok(EngineCommand::Run(destination)) => with_whole_plan(|plan| run(plan, &destination)),
        Ok(EngineCommand::RunUntil(destination, until)) => {
            with_whole_plan(|plan| run_until(plan, &destination, until))
        }
        Ok(EngineCommand::Check) => with_plan(|_| ExitCode::SUCCESS),
        Ok(EngineCommand::Probe(seconds)) => with_plan(|plan| probe::run(&plan, seconds)),
        Ok(EngineCommand::Schema) => {
            print_line(&serde_json::to_string_pretty(&Plan::schema()).expect("a schema can be written"))
        }
        Ok(EngineCommand::Doctor) => doctor(),
        Ok(EngineCommand::Measure(length)) => probe::measure(length),
        Ok(EngineCommand::Recover { directory, out, secrets }) => {
            with_secrets(secrets, |values| recover_to(&directory, out.as_deref(), values))
        }
        Ok(EngineCommand::Hide { directory, secrets }) => {
            with_secrets(secrets, |values| print_json(hiding::hide(&directory, values)))
        }
        Ok(EngineCommand::Snapshot { directory, out }) => {
            print_json(snapshot(&directory, &out, &mut witness_of(&directory)))
        }
        Ok(EngineCommand::Summarise { directory, out }) => {
            memory::keep_freed();
            print_json(summarise(&directory, out.as_deref().unwrap_or(&directory)))
        }
        Ok(EngineCommand::Import(order)) => import::run(&order),
        Ok(EngineCommand::Gateway(settings)) => run_gateway(&settings),
        Ok(EngineCommand::Proxy(settings)) => run_proxy(&settings),
        Ok(EngineCommand::Version) => print_line(&format!("mqttlab-engine {}", env!("CARGO_PKG_VERSION"))),
        Ok(EngineCommand::Help) => print_line(arguments::HELP.trim_end()),
        Err(problem) => {
            complain(format_args!("{problem} (see mqttlab-engine --help)"));
            ExitCode::from(WRONG)
        }
    }
}

fn with_plan(work: impl FnOnce(Plan) -> ExitCode) -> ExitCode {
    worked(read_plan(), work)
}

/// As [`with_plan`], of a plan whose secrets are all known.
fn with_whole_plan(work: impl FnOnce(Plan) -> ExitCode) -> ExitCode {
    let whole = |mut plan: Plan| plan.need_secrets().map(|()| plan).map_err(|error| error.to_string());
    worked(read_plan().and_then(whole), work)
}

fn worked(plan: Result<Plan, String>, work: impl FnOnce(Plan) -> ExitCode) -> ExitCode {
    match plan {
        Ok(plan) => work(plan),
        Err(problem) => {
            complain(problem);
            ExitCode::from(WRONG)
        }
    }
}

/// The plan of standard input, with the values of its secrets where they stand behind it. Its text, megabytes for thousands of
/// hosts, is not kept.
fn read_plan() -> Result<Plan, String> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(|error| format!("the plan cannot be read: {error}"))?;
    Plan::with_secrets(&text).map_err(|error| error.to_string())
}

/// With the values of secrets on standard input, where they are there: an object with a value for each mark.
fn with_secrets(are_there: bool, work: impl FnOnce(Option<&[String]>) -> ExitCode) -> ExitCode {
    if !are_there {
        return work(None);
    }
    let mut text = String::new();
    let read = io::stdin().read_to_string(&mut text).map_err(|error| error.to_string());
    let read = read.and_then(|_| serde_json::from_str(&text).map_err(|_| "no JSON object of texts".into()));
    match read {
        Ok(secrets) => work(Some(&Secrets::into_values(secrets).collect::<Vec<String>>())),
        Err(problem) => {
            complain(format_args!("the secrets of standard input: {problem}"));
            ExitCode::from(WRONG)
        }
    }
}

fn recover_to(directory: &Path, out: Option<&Path>, values: Option<&[String]>) -> ExitCode {
    let made = out.unwrap_or(directory);
    let recovered = recover(directory, out, &mut witness_of(directory)).map_err(|error| error.to_string());
    let hidden = recovered.and_then(|summary| {
        sum_up(made);
        if made.join(UNHIDDEN).exists() {
            hiding::hide(made, values)?;
        }
        Ok(summary)
    });
    print_json(hidden)
}

fn run(mut plan: Plan, destination: &Destination) -> ExitCode {
    let directory = destination.directory.to_string_lossy().into_owned();
    let mut lines = Lines::new();
    let secrets = plan.has_secrets().then(|| (plan.secret_values(), plan.to_json()));
    let outcome = perform(plan, destination, &mut lines);
    let hidden = secrets
        .map_or(Ok(()), |(values, text)| hiding::hide_after_run(&destination.directory, &text, &values));
    if let Err(problem) = hidden {
        complain(format_args!("secrets could not be hidden: {problem}"));
    }
    // A run that was stopped has no time to lose.
    if outcome.verdict() == RunVerdict::Complete {
        sum_up(&destination.directory);
    }
    lines.on_progress(&outcome.done(&directory));
    match outcome.verdict() {
        RunVerdict::Complete => ExitCode::SUCCESS,
        RunVerdict::Failed => ExitCode::FAILURE,
        RunVerdict::Incomplete => ExitCode::from(INCOMPLETE),
    }
}

/// Makes the derived tables of a recording that has come to its end. Where that fails, for want of room, readers make them
/// for themselves; the recording is whole without, so that not even a mistake of ours takes the run's result with it.
fn sum_up(directory: &Path) {
    let is_finished = ["run.json", "incomplete.json"].iter().any(|name| directory.join(name).exists());
    if is_finished {
        memory::keep_freed();
        let _ = std::panic::catch_unwind(|| summarise(directory, directory));
    }
}

fn perform(plan: Plan, destination: &Destination, lines: &mut Lines) -> RunOutcome {
    match plan.backend {
        Backend::Live => {
            let mut witness = witness(plan.server_ports(), &destination.directory);
            mqttlab_live::run(plan, destination, lines, &mut witness)
        }
        Backend::Sim => simulation::run(plan, destination, lines),
    }
}

fn run_until(plan: Plan, destination: &Destination, until: Instant) -> ExitCode {
    if plan.backend == Backend::Live {
        complain("`backend` is live, but only a simulation can be stopped to be looked at");
        return ExitCode::from(WRONG);
    }
    print_json(simulation::run_until(plan, destination, until))
}

/// The MQTT-SN gateway, until a signal ends it.
fn run_gateway(path: &Path) -> ExitCode {
    serve(path, |settings: &GatewayProgram| {
        gateway::run(settings, io::stdout())
            .map_err(|error| format!("the gateway at {}: {error}", settings.listen))
    })
}

/// The proxy of ZeroMQ, until a signal ends it.
fn run_proxy(path: &Path) -> ExitCode {
    serve(path, |settings: &ProxyProgram| {
        proxy::run(settings, io::stdout())
            .map_err(|error| format!("the proxy at {}: {error}", settings.publishers))
    })
}

/// Performs a server with the settings of a file.
fn serve<S: serde::de::DeserializeOwned>(
    path: &Path,
    perform: impl FnOnce(&S) -> Result<(), String>,
) -> ExitCode {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let settings = std::fs::read_to_string(path).map_err(|error| named(&error));
    let settings = settings.and_then(|text| serde_json::from_str(&text).map_err(|error| named(&error)));
    match settings.map(|settings| perform(&settings)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(problem)) => {
            complain(problem);
            ExitCode::FAILURE
        }
        Err(problem) => {
            complain(problem);
            ExitCode::from(WRONG)
        }
    }
}

fn doctor() -> ExitCode {
    let findings = serde_json::to_string_pretty(&mqttlab_live::doctor::examine());
    print_line(&findings.expect("a JSON value can be written"))
}

/// Who reads the frames of a recording that is there already.
fn witness_of(directory: &Path) -> FrameWitness {
    let plan = std::fs::read_to_string(directory.join("plan.json"));
    let servers = StoredServers::read(&plan.unwrap_or_default());
    let ports = Some(servers.ports()).filter(|ports| !ports.is_empty());
    witness(ports.unwrap_or(vec![MQTT_PORT]), directory)
}

/// Who reads the frames of servers that listen on these ports, programs' messages and what is in TLS included.
fn witness(ports: Vec<u16>, directory: &Path) -> FrameWitness {
    let reader = Box::new(ProgramReader::new());
    FrameWitness::new(ports).with_key_log(directory.join(KEY_LOG)).with_reader(reader)
}

fn print_json<E: std::fmt::Display>(outcome: Result<impl serde::Serialize, E>) -> ExitCode {
    match outcome {
        Ok(found) => print_line(&serde_json::to_string_pretty(&found).expect("it can be written as JSON")),
        Err(error) => {
            complain(error);
            ExitCode::FAILURE
        }
    }
}

/// Prints, and does not mind when nobody reads.
fn print_line(text: &str) -> ExitCode {
    use io::Write;
    let _ = writeln!(io::stdout(), "{text}");
    ExitCode::SUCCESS
}

const WRONG: u8 = 2;
const INCOMPLETE: u8 = 3;
