//! A probe's lines on standard output: how far it is, and at last what it found.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use mqttlab_live::Watchdog;
use mqttlab_plan::Plan;
use mqttlab_system::namespaces::Privilege;
use mqttlab_system::signals::Signals;
use serde_json::{Value, json};

/// Measures the plan's paths.
pub fn run(plan: &Plan, seconds: u64) -> ExitCode {
    with_watchdog(|| {
        let mut say = |done: f64, what: &str| print(&json!({ "event": "probe", "done": done, "what": what }));
        let length = mqttlab_units::Duration::from_s(seconds);
        let found = mqttlab_live::probe::probe(plan, length, &mut say).map_err(|error| error.to_string())?;
        print(&json!({ "event": "probed", "found": found }));
        Ok(())
    })
}

/// Tries the machine.
pub fn measure(length: mqttlab_units::Duration) -> ExitCode {
    with_watchdog(|| {
        let mut say =
            |done: f64, what: &str| print(&json!({ "event": "measure", "done": done, "what": what }));
        let found = mqttlab_live::measure::measure(length, &mut say);
        let found = found.map_err(|error| format!("this machine cannot be measured: {error}"))?;
        print(&json!({ "event": "measured", "found": found }));
        Ok(())
    })
}

/// Gets the right to make namespaces, and works until it is done or somebody asks for the end; nothing is left then.
pub fn with_watchdog(work: impl FnOnce() -> Result<(), String>) -> ExitCode {
    let cannot_wait = |error: io::Error| format!("cannot wait for signals: {error}");
    let done = Signals::block().map_err(cannot_wait).and_then(|signals| {
        Privilege::acquire().map_err(|error| error.to_string())?;
        let status = i32::from(crate::INCOMPLETE);
        Watchdog::start(signals, Duration::ZERO, status, |_| {}).map_err(cannot_wait)?;
        work()
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            crate::stderr::complain(problem);
            ExitCode::FAILURE
        }
    }
}

/// Whether anybody reads is the watchdog's to know.
pub fn print(line: &Value) {
    let mut out = io::stdout();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
