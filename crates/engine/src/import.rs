//! Imports: their arguments into an order, their progress into lines, their end into an exit status.

use std::fs;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use mqttlab_import::{ImportError, ImportObserver, ImportOrder, ImportProgress};
use mqttlab_live::{Watchdog, write_last_line};
use mqttlab_recording::{Ending, Error as Unusable, Reason};
use mqttlab_run::{Announcer, Interruption, Progress, RunPhase, RunVerdict};
use mqttlab_system::signals::Signals;
use mqttlab_units::Instant;
use serde::Serialize;

/// Imports what the order names, saying on standard output how far it is.
pub fn run(order: &ImportOrder) -> ExitCode {
    let mut lines = crate::observer::Lines::new();
    let mut announcer = Announcer::new(&mut lines);
    if let Err(error) = watch(order) {
        crate::stderr::complain(format_args!("cannot wait for signals: {error}"));
        return ExitCode::FAILURE;
    }
    let outcome = mqttlab_import::import(order, &mut ImportFollower(&mut announcer));
    let (verdict, reason, code) = match outcome {
        Ok(Ending::Complete) => (RunVerdict::Complete, None, ExitCode::SUCCESS),
        Ok(Ending::Incomplete(reason)) => {
            let words = match reason {
                Reason::Evidence { problems } => problems.join("; "),
                other => format!("{other:?}"),
            };
            (RunVerdict::Incomplete, Some(words), ExitCode::from(crate::INCOMPLETE))
        }
        Err(ImportError::Evidence(problem)) => {
            crate::stderr::complain(problem);
            return ExitCode::from(crate::WRONG);
        }
        Err(ImportError::Recording(error @ (Unusable::Occupied(_) | Unusable::BeingWritten(_)))) => {
            crate::stderr::complain(format_args!("{error}; choose another directory"));
            return ExitCode::from(crate::WRONG);
        }
        Err(ImportError::Recording(error)) => {
            (RunVerdict::Failed, Some(error.to_string()), ExitCode::FAILURE)
        }
    };
    crate::sum_up(&order.output);
    let directory = order.output.to_string_lossy().into_owned();
    announcer.say(&Progress::Done { verdict, reason, directory });
    code
}

/// An import that is stopped leaves nothing: its evidence is still there.
fn watch(order: &ImportOrder) -> std::io::Result<Watchdog> {
    let output = order.output.clone();
    // Not there, or made for us and empty.
    let fresh = fs::read_dir(&output).is_ok_and(|mut entries| entries.next().is_none()) || !output.exists();
    Watchdog::start(Signals::block()?, Duration::ZERO, i32::from(crate::INCOMPLETE), move |interruption| {
        // The thread that reads may be making a file at this moment.
        while fresh
            && fs::remove_dir_all(&output).is_err_and(|error| error.kind() == ErrorKind::DirectoryNotEmpty)
        {
        }
        let why = match interruption {
            Interruption::Signal(name) => format!("the import was stopped by {name}"),
            other => other.to_string(),
        };
        let reason = Some(why + "; nothing was kept");
        let directory = output.to_string_lossy().into_owned();
        let done = Progress::Done { verdict: RunVerdict::Failed, reason, directory };
        write_last_line(&(serde_json::to_string(&done).expect("words can be written") + "\n"));
    })
}

/// Follows an import with lines on standard output.
struct ImportFollower<'a, 'b>(&'a mut Announcer<'b>);

#[derive(Serialize)]
struct ImportLine {
    event: &'static str,
    read_bytes: u64,
    /// `null` when the evidence comes through a pipe.
    total_bytes: Option<u64>,
    rows: u64,
}

impl ImportObserver for ImportFollower<'_, '_> {
    fn on_reading(&mut self, reading: ImportProgress) {
        let ImportProgress { read_bytes, total_bytes, rows } = reading;
        let line = ImportLine { event: "import", read_bytes, total_bytes, rows };
        let text = serde_json::to_string(&line).expect("numbers can be written");
        let mut out = std::io::stdout();
        // Whoever does not listen may still want the recording.
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }

    fn on_writing(&mut self, end: Instant) {
        self.0.phase(RunPhase::Finalise, end, mqttlab_units::Duration::ZERO);
    }

    fn on_warning(&mut self, words: &str) {
        self.0.warn(words.to_owned());
    }
}
