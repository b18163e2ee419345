//! Whose radios may be off: what client workers tell the emulator, which looks before it does anything else.
//!
//! ```text
//!   worker: a client falls asleep ──► tell ──► waiting ──► take ──► emulator: the station's radio goes off
//! ```
//!
//! Nobody is woken for it. What the emulator learns late it does as of then, for on the air of that station nothing has
//! happened meanwhile.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, PoisonError};

use mqttlab_client::Rests;
use mqttlab_plan::Plan;
use mqttlab_units::Instant;

/// Between workers and the emulator.
#[derive(Default)]
pub struct RestDesk {
    told: AtomicBool,
    /// Nothing where there are no radios.
    told_of: Mutex<Option<Told>>,
}

struct Told {
    rests: Rests,
    waiting: Vec<Change>,
}

/// A host rests from then on, or no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) at: Instant,
    pub(crate) host: usize,
    pub(crate) rests: bool,
}

impl RestDesk {
    /// For a plan's hosts.
    pub(crate) fn of(plan: &Plan) -> RestDesk {
        let has_radios = !plan.network.media.is_empty();
        let told_of = has_radios.then(|| Told { rests: Rests::new(plan), waiting: Vec::new() });
        RestDesk { told: AtomicBool::new(false), told_of: Mutex::new(told_of) }
    }

    /// A client on this host falls asleep, or wakes up.
    pub(crate) fn tell(&self, at: Instant, host: usize, asleep: bool) {
        let mut told_of = self.told_of.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(told) = &mut *told_of else { return };
        if let Some(rests) = told.rests.change(host, asleep) {
            told.waiting.push(Change { at, host, rests });
            self.told.store(true, Release);
        }
    }

    /// What was told since the last time. A worker that is telling is not waited for.
    pub(crate) fn take(&self) -> Vec<Change> {
        if !self.told.load(Acquire) {
            return Vec::new();
        }
        let Ok(mut told_of) = self.told_of.try_lock() else { return Vec::new() };
        self.told.store(false, Release);
        told_of.as_mut().map_or(Vec::new(), |told| std::mem::take(&mut told.waiting))
    }
}
