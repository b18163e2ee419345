//! When clients last read something from a server, and when they last handed over what it must answer.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use mqttlab_units::{Duration, Instant};

/// When clients last had to do with a server, in nanoseconds of the run; zero for never.
#[derive(Default)]
pub struct ContactCounters {
    /// A client read something.
    heard_ns: AtomicU64,
    /// A message was handed to a session that the server must acknowledge.
    asked_ns: AtomicU64,
    /// A message of QoS 0 was handed to a session that the server must pass on to a client.
    due_ns: AtomicU64,
}

/// The same as it stands, or changes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contact {
    pub(crate) heard: Option<Instant>,
    pub(crate) asked: Option<Instant>,
    pub(crate) due: Option<Instant>,
}

impl ContactCounters {
    /// Takes over changes.
    pub(crate) fn note(&self, contact: &Contact) {
        let note = |at: Option<Instant>, counter: &AtomicU64| {
            if let Some(at) = at {
                counter.fetch_max(at.since(Instant::ZERO).as_ns(), Relaxed);
            }
        };
        note(contact.heard, &self.heard_ns);
        note(contact.asked, &self.asked_ns);
        note(contact.due, &self.due_ns);
    }

    /// As they stand.
    pub(crate) fn contact(&self) -> Contact {
        let at = |counter: &AtomicU64| match counter.load(Relaxed) {
            0 => None,
            ns => Some(Instant::ZERO + Duration::from_ns(ns)),
        };
        // What was asked is read before what was heard, so that no answer seems to be missing that is there.
        let (asked, due) = (at(&self.asked_ns), at(&self.due_ns));
        Contact { heard: at(&self.heard_ns), asked, due }
    }
}
