//! Foreign evidence into recordings: captures, logs and tables that somebody else made.
//!
//! ```text
//!   pcapng, pcap ──► source ──► capture ──┬──► packets, control packets, network metrics
//!                                         └──► matcher ──► messages: what was published beside what was delivered
//!   log ──► log ──┐
//!   csv ──► csv ──┼──► messages
//!   other tools ──► tools ──┘
//! ```
//!
//! What is imported is read like our own: the same tables, and nothing in them asks where they came from. What the
//! evidence does not say stays empty. `docs/how-to/import.md` says what is taken from what.
//!
//! What it does not model: clocks of several files that drift.

mod acknowledged;
mod body;
mod both_ends;
mod capture;
mod capture_point;
mod causes;
mod clock;
mod clock_offsets;
mod clocks;
mod completeness;
mod content_order;
mod content_parts;
mod content_queues;
mod conversations;
mod csv;
mod dedup;
mod delays;
mod error;
mod gaps;
mod headers;
mod identities;
mod log;
mod matcher;
mod message;
mod mqttsn;
mod options;
mod output;
mod participants;
mod passages;
mod plan;
mod positions;
mod preambles;
mod programs;
mod progress;
mod row_texts;
mod servers;
mod shares;
mod sorting;
mod source;
mod strangers;
mod streams;
mod subscription_options;
mod subscriptions;
mod timeline;
mod timestamps;
mod tools;
mod unproven;
mod wills;

use mqttlab_recording::Ending;

pub use error::{ImportError, Result};
pub use options::{EvidenceKind, ImportOrder, MQTT_PORT, parse};
pub use programs::ProgramReader;
pub use progress::{ImportObserver, ImportProgress};

/// Imports what the order names. A recording whose evidence ends early is [`Ending::Incomplete`].
pub fn import(order: &ImportOrder, observer: &mut dyn ImportObserver) -> Result<Ending> {
    match order.evidence {
        EvidenceKind::Capture => capture::import(order, observer),
        EvidenceKind::Log | EvidenceKind::Csv => {
            if let Some(ending) = tools::import(order, observer)? {
                return Ok(ending);
            }
            if order.evidence == EvidenceKind::Csv {
                csv::import(order, observer)
            } else {
                log::import(order, observer)
            }
        }
    }
}
