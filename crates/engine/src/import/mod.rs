//! Foreign evidence into recordings: captures, logs and tables that somebody else made.
//!
//! ```text
//!   pcapng, pcap ──► source ──► capture ──┬──► packets, control packets, network metrics
//!                                         └──► ledger ──► messages: what was published beside what was delivered
//!   log ──► log ──┐
//!   csv ──► csv ──┴──► messages
//! ```
//!
//! What is imported is read like our own: the same tables, and nothing in them asks where they came from. What the
//! evidence does not say stays empty. `docs/import.md` says what is taken from what.
//!
//! What it does not model: clocks that differ between files, decryption, MQTT over WebSocket.

mod body;
mod book;
mod capture;
mod clock;
mod conversation;
mod csv;
mod error;
mod evidence;
mod gaps;
mod headers;
mod identities;
mod ledger;
mod log;
mod options;
mod passes;
mod people;
mod plan;
mod progress;
mod source;
mod story;
mod streams;
mod subscriptions;
mod times;
mod waiting;

use std::fs;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::Duration;

use mqttlab_live::{Announcer, Interruption, Signals, Watchdog, say_at_last};
use mqttlab_plan::{Progress, Verdict};
use mqttlab_recording::{Ending, Error as Unusable};

use error::Error;
pub use options::{Evidence, Order, parse};

/// Imports what the order names, saying on standard output how far it is.
pub fn run(order: &Order) -> ExitCode {
    let mut announcer = Announcer::new(Box::new(std::io::stdout()));
    if let Err(error) = watch(order) {
        eprintln!("mqttlab-engine: cannot wait for signals: {error}");
        return ExitCode::FAILURE;
    }
    let outcome = match order.evidence {
        Evidence::Capture => capture::import(order, &mut announcer),
        Evidence::Log => log::import(order, &mut announcer),
        Evidence::Csv => csv::import(order, &mut announcer),
    };
    let (verdict, reason, code) = match outcome {
        Ok(Ending::Complete) => (Verdict::Complete, None, ExitCode::SUCCESS),
        Ok(Ending::Incomplete(reason)) => {
            (Verdict::Incomplete, Some(reason), ExitCode::from(crate::INCOMPLETE))
        }
        Err(Error::Evidence(problem)) => {
            eprintln!("mqttlab-engine: {problem}");
            return ExitCode::from(crate::WRONG);
        }
        Err(Error::Recording(error @ (Unusable::Occupied(_) | Unusable::BeingWritten(_)))) => {
            eprintln!("mqttlab-engine: {error}; choose another directory");
            return ExitCode::from(crate::WRONG);
        }
        Err(Error::Recording(error)) => (Verdict::Failed, Some(error.to_string()), ExitCode::FAILURE),
    };
    let directory = order.output.to_string_lossy().into_owned();
    announcer.say(&Progress::Done { verdict, reason, directory });
    code
}

/// An import that is stopped leaves nothing: its evidence is still there.
fn watch(order: &Order) -> std::io::Result<Watchdog> {
    let output = order.output.clone();
    // Not there, or made for us and empty.
    let fresh = fs::read_dir(&output).is_ok_and(|mut entries| entries.next().is_none()) || !output.exists();
    Watchdog::start(Signals::take()?, Duration::ZERO, i32::from(crate::INCOMPLETE), move |interruption| {
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
        let done = Progress::Done { verdict: Verdict::Failed, reason, directory };
        say_at_last(&(serde_json::to_string(&done).expect("words can be written") + "\n"));
    })
}
