//! Logs and tables of other tools: recognised by what is in them, read where they tell of single messages, and otherwise named
//! with what they lack and the nearest way that works.
//!
//! ```text
//!   Mosquitto's log, EMQX's log ──► broker_events ──► broker_state ──► messages
//!   MQTTLoader's records ──► timeline ──► messages
//!   emqtt-bench, k6, JMeter, summaries ──► a sentence
//! ```
//!
//! `docs/how-to/import.md` has the table of tools.

mod broker_clock;
mod broker_events;
mod broker_log;
mod broker_state;
mod emqx;
mod lines;
mod mosquitto;
mod mqttloader;
mod stamps;
mod unread;

use std::path::Path;

use mqttlab_recording::Ending;

use super::error::{ImportError, Result};
use super::options::ImportOrder;
use super::progress::ImportObserver;
use super::source;
use broker_log::LoggingBroker;

/// What a file is, by its first lines.
enum ToolFile {
    Broker(LoggingBroker),
    MqttLoader,
    /// Not read; the sentence says what it is, what it lacks and what to do instead.
    Unread(String),
}

/// Imports files of a tool that is known; `None` where the first file is of none.
///
/// # Errors
/// As those of an import; and where the files are of a tool whose output tells of no single message, or of several tools.
pub fn import(order: &ImportOrder, observer: &mut dyn ImportObserver) -> Result<Option<Ending>> {
    let mut kinds = Vec::new();
    for file in &order.files {
        // An empty file belongs to the others.
        if let Some(kind) = recognise(file, order.unpacked_max)? {
            kinds.push((file, kind));
        }
    }
    let mut several = kinds.iter().map(|(_, kind)| kind.name());
    let first = several.next();
    if let Some(other) = several.find(|other| Some(*other) != first) {
        let words = format!(
            "is {}, and another file is {other}; import them one after the other",
            first.unwrap_or_default()
        );
        return Err(ImportError::in_file(kinds[0].0, words));
    }
    match kinds.into_iter().next() {
        None => Ok(None),
        Some((file, ToolFile::Unread(words))) => Err(ImportError::in_file(file, words)),
        Some((_, ToolFile::Broker(broker))) => broker_log::import(order, broker, observer).map(Some),
        Some((_, ToolFile::MqttLoader)) => mqttloader::import(order, observer).map(Some),
    }
}

impl ToolFile {
    fn name(&self) -> &'static str {
        match self {
            ToolFile::Broker(LoggingBroker::Mosquitto) => "a log of Mosquitto",
            ToolFile::Broker(LoggingBroker::Emqx) => "a log of EMQX",
            ToolFile::MqttLoader => "MQTTLoader's records",
            ToolFile::Unread(_) => "output of a tool that is not read",
        }
    }
}

/// What a file is; `None` where its first lines are of no tool that is known.
fn recognise(file: &Path, unpacked_max: Option<u64>) -> Result<Option<ToolFile>> {
    let head = source::head(file, unpacked_max)?;
    if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        let words = "is UTF-16 text, as PowerShell writes it; convert it with: iconv -f UTF-16 -t UTF-8";
        return Ok(Some(ToolFile::Unread(words.into())));
    }
    let head = String::from_utf8_lossy(&head);
    let head = head.trim_start_matches('\u{feff}');
    Ok(kind_of(head))
}

fn kind_of(head: &str) -> Option<ToolFile> {
    let lines = || head.lines().take(LINES_READ);
    if lines().any(mosquitto::is_line) {
        return Some(ToolFile::Broker(LoggingBroker::Mosquitto));
    }
    if lines().any(emqx::is_line) {
        return Some(ToolFile::Broker(LoggingBroker::Emqx));
    }
    if lines().next().is_some_and(mqttloader::is_line) {
        return Some(ToolFile::MqttLoader);
    }
    unread::kind_of(head).map(|words| ToolFile::Unread(words.into()))
}

/// Lines that may say what a file is: a log may begin with others.
const LINES_READ: usize = 200;
