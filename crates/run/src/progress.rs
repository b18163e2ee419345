//! What the engine says while it works: one JSON object a line on standard output; `docs/reference/progress.md` says it for readers.

use mqttlab_plan::Event;
use mqttlab_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::Figures;

/// One line of the engine's standard output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Progress {
    /// This engine performs part 0 of a run that is split, and the other parts are to come there.
    Leading {
        /// Address and port.
        address: String,
    },
    /// A phase begins.
    Phase {
        /// Which.
        phase: RunPhase,
        /// Run time.
        at_ns: u64,
        /// How long it will take at most, 0 when unknown.
        length_ns: u64,
    },
    /// An event took place: one of the plan's, which come in its order, or one that was fired by hand.
    Change {
        /// Run time.
        at_ns: u64,
        /// As tables and figures show it.
        name: String,
        /// What changed, as the plan would have it, where it was fired by hand.
        #[serde(skip_serializing_if = "Option::is_none")]
        by_hand: Option<Box<Event>>,
    },
    /// How it goes, about four times a second.
    Tick(Box<Figures>),
    /// Read this before you trust the numbers. Also stored with the run.
    Warning {
        /// A sentence.
        text: String,
    },
    /// The run is over; always the last line.
    Done {
        /// How it ended.
        verdict: RunVerdict,
        /// A sentence when it did not complete.
        reason: Option<String>,
        /// The recording.
        directory: String,
    },
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// Namespaces, links, broker.
    Setup,
    /// Clients connect and subscribe.
    Connect,
    /// Publishing, not counted.
    WarmUp,
    /// Publishing, counted.
    Measurement,
    /// Waiting for what is under way.
    CoolDown,
    /// Writing the recording.
    Finalise,
}

impl Progress {
    /// A phase begins, and takes this long at most; zero for unknown.
    pub fn begin(phase: RunPhase, at: Instant, length: Duration) -> Progress {
        Progress::Phase { phase, at_ns: at.as_ns(), length_ns: length.as_ns() }
    }
}

impl RunPhase {
    /// Its word in the recording and in progress lines.
    pub fn name(self) -> &'static str {
        match self {
            RunPhase::Setup => "setup",
            RunPhase::Connect => "connect",
            RunPhase::WarmUp => "warm_up",
            RunPhase::Measurement => "measurement",
            RunPhase::CoolDown => "cool_down",
            RunPhase::Finalise => "finalise",
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunVerdict {
    /// As planned.
    Complete,
    /// Cut short, by the user, the broker or the disk; what was recorded is kept and marked.
    Incomplete,
    /// Nothing was measured.
    Failed,
}
