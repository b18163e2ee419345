//! Which hosts' radios sleep: client workers notify the emulator, which looks before it does anything else.
//!
//! ```text
//!   worker: a client falls asleep ──► notify ──► waiting ──► drain ──► emulator: the station's radio goes off
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
pub struct SleepNotifier {
    has_changes: AtomicBool,
    /// `None` without radios.
    pending: Mutex<Option<PendingChanges>>,
}

struct PendingChanges {
    rests: Rests,
    waiting: Vec<RadioChange>,
}

/// The radio of a host sleeps from then on, or no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RadioChange {
    pub(crate) at: Instant,
    pub(crate) host: usize,
    pub(crate) asleep: bool,
}

impl SleepNotifier {
    /// For a plan's hosts.
    pub(crate) fn of(plan: &Plan) -> SleepNotifier {
        let has_radios = !plan.network.media.is_empty();
        let pending = has_radios.then(|| PendingChanges { rests: Rests::new(plan), waiting: Vec::new() });
        SleepNotifier { has_changes: AtomicBool::new(false), pending: Mutex::new(pending) }
    }

    /// A client on this host falls asleep, or wakes up.
    pub(crate) fn notify(&self, at: Instant, host: usize, asleep: bool) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pending) = &mut *pending else { return };
        if let Some(asleep) = pending.rests.change(host, asleep) {
            pending.waiting.push(RadioChange { at, host, asleep });
            self.has_changes.store(true, Release);
        }
    }

    /// The changes since the last time. A worker that adds one at this moment is not waited for.
    pub(crate) fn drain(&self) -> Vec<RadioChange> {
        if !self.has_changes.load(Acquire) {
            return Vec::new();
        }
        let Ok(mut pending) = self.pending.try_lock() else { return Vec::new() };
        self.has_changes.store(false, Release);
        pending.as_mut().map_or(Vec::new(), |pending| std::mem::take(&mut pending.waiting))
    }
}
