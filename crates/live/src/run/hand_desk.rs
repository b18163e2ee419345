//! Takes events that are asked for by hand, and keeps what became of them.
//!
//! ```text
//!   HandSocket ──question──► HandDesk: checked as the plan's are ──► HandEvents ──► whoever performs them
//!                               └── has taken place ──► by-hand.jsonl
//! ```
//!
//! The plan stays as it was. An event that is fired while clients connect, or after the measurement, is refused, as a
//! scenario's is that lies there.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mqttlab_plan::{Event, Plan};
use mqttlab_recording::BY_HAND;
use mqttlab_run::{RunConductor, RunStage};
use mqttlab_units::{Duration, Instant};
use serde_json::{Value, json};

use crate::by_hand::HandAgenda;
use crate::control::Control;
use crate::run::hand_socket::HandSocket;

/// Of a run that goes on.
pub(crate) struct HandDesk {
    socket: HandSocket,
    agenda: HandAgenda,
    file: PathBuf,
    /// What was asked for in the words of a scenario, by the event that begins it.
    written: Vec<(Arc<Event>, Value)>,
}

impl HandDesk {
    /// Where a run takes events by hand: not where several engines share it, and not on a file system without sockets.
    pub(crate) fn open(plan: &Plan, directory: &Path) -> Option<HandDesk> {
        let socket = (plan.live.parts == 1).then(|| HandSocket::open(directory))?.ok()?;
        let (agenda, file) = (HandAgenda::default(), directory.join(BY_HAND));
        Some(HandDesk { socket, agenda, file, written: Vec::new() })
    }

    /// Answers what has been asked since the last time.
    pub(crate) fn attend(&mut self, plan: &Plan, control: &Control, conductor: &RunConductor) {
        let HandDesk { socket, agenda, written, .. } = self;
        socket.attend(|question| match question.get("fire").and_then(Value::as_array) {
            None => standing(control.now(), conductor),
            Some(asked) => {
                let fired = fire(asked, plan, control, conductor);
                fired.map_or_else(
                    |problem| json!({ "refused": problem }),
                    |events| {
                        let told =
                            events.iter().map(|(at, event)| json!({ "at_ns": at, "name": event.name() }));
                        let answer = json!({ "fired": told.collect::<Vec<_>>() });
                        let first = events.into_iter().next().map(|(_, event)| event);
                        let kept = first.zip(question.get("written").cloned());
                        written.extend(kept);
                        answer
                    },
                )
            }
        });
        agenda.look(&control.by_hand);
    }

    /// When the next one is due.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.agenda.next_at()
    }

    /// Takes the next one, if it is due by now.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Arc<Event>> {
        self.agenda.take_due(now)
    }

    /// An event took place at this time.
    ///
    /// # Errors
    /// It cannot be written down.
    pub(crate) fn note(&mut self, at: Instant, event: &Arc<Event>) -> io::Result<()> {
        let mut line = json!({ "at_ns": at, "event": **event });
        if let Some(place) = self.written.iter().position(|(begun, _)| Arc::ptr_eq(begun, event)) {
            line["written"] = self.written.swap_remove(place).1;
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&self.file)?;
        file.write_all(format!("{line}\n").as_bytes())
    }
}

/// Where the run is.
fn standing(now: Instant, conductor: &RunConductor) -> Value {
    let since = conductor.schedule().and_then(|schedule| now.checked_since(schedule.publish_from));
    json!({ "stage": conductor.stage().name(), "since_publishing_ns": since })
}

/// Lets events take place that were asked for: all of them, or none.
fn fire(
    asked: &[Value],
    plan: &Plan,
    control: &Control,
    conductor: &RunConductor,
) -> Result<Vec<(Instant, Arc<Event>)>, String> {
    let schedule = conductor.schedule();
    let begun = match conductor.stage() {
        RunStage::Connect | RunStage::Notice => None,
        RunStage::WarmUp | RunStage::Measurement => schedule.map(|schedule| schedule.publish_from),
        RunStage::CoolDown | RunStage::Disconnect | RunStage::Over => {
            return Err("the measurement is over; events take place before its end".into());
        }
    };
    let publish_from =
        begun.ok_or("clients are still connecting; events take place from the warm-up on: try again")?;
    if asked.is_empty() || asked.len() > FIRED_MAX {
        return Err(format!("{} events are asked for at once, but must be 1 to {FIRED_MAX}", asked.len()));
    }
    // Whoever performs them looks for them this often.
    let first = control.now() + Control::NOTICE;
    let read = |one: &Value| {
        let at = first + Duration::from_ns(one["after_ns"].as_u64().unwrap_or_default().min(LATEST_NS));
        let mut event = one["event"].clone();
        event["at_ns"] = json!(at.since(publish_from));
        let event: Event = serde_json::from_value(event).map_err(|error| error.to_string())?;
        plan.check_by_hand(&event).map_err(|error| error.to_string())?;
        Ok((at, Arc::new(event)))
    };
    let events: Vec<(Instant, Arc<Event>)> = asked.iter().map(read).collect::<Result<_, String>>()?;
    events.iter().for_each(|(at, event)| control.by_hand.add(*at, Arc::clone(event)));
    Ok(events)
}

/// An event and its end, link by link.
const FIRED_MAX: usize = 10_000;
/// No run lasts a year.
const LATEST_NS: u64 = 366 * 86_400 * 1_000_000_000;
