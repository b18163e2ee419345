//! Events that somebody fires by hand while a run goes on.
//!
//! ```text
//!   conductor ──add──► HandEvents ──look──► HandAgenda of the emulator, of each worker, of the conductor itself
//! ```
//!
//! An event is told `Control::NOTICE` before its time. Who looks that often performs it
//! at its time, and nobody is woken for it.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, PoisonError};

use mqttlab_plan::Event;
use mqttlab_units::Instant;

/// All of them, in the order in which they were fired.
#[derive(Debug, Default)]
pub struct HandEvents {
    /// So that looking costs nothing where none was fired.
    count: AtomicUsize,
    all: Mutex<Vec<(Instant, Arc<Event>)>>,
}

/// What one of those who perform them has still to do.
#[derive(Debug, Default)]
pub(crate) struct HandAgenda {
    seen: usize,
    /// In the order of time.
    waiting: Vec<(Instant, Arc<Event>)>,
}

impl HandEvents {
    /// An event is to take place.
    pub(crate) fn add(&self, at: Instant, event: Arc<Event>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((at, event));
        self.count.store(all.len(), Release);
    }
}

impl HandAgenda {
    /// Learns of what was fired since the last time.
    pub(crate) fn look(&mut self, fired: &HandEvents) {
        if fired.count.load(Acquire) == self.seen {
            return;
        }
        let all = fired.all.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, event) in &all[self.seen..] {
            // Behind those of the same time.
            let place = self.waiting.partition_point(|(earlier, _)| earlier <= at);
            self.waiting.insert(place, (*at, Arc::clone(event)));
        }
        self.seen = all.len();
    }

    /// When the next one is due.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.waiting.first().map(|(at, _)| *at)
    }

    /// Takes the next one, if it is due by now.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Arc<Event>> {
        self.next_at().filter(|at| *at <= now)?;
        Some(self.waiting.remove(0).1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_reader_takes_each_event_once_in_the_order_of_time() {
        let at = |ns| Instant::from_ns(ns);
        let event = |name: &str| {
            let change = json!({ "kind": "up" });
            let event = json!({ "at_ns": 0, "name": name, "links": ["a"], "change": change });
            Arc::new(serde_json::from_value::<Event>(event).unwrap())
        };
        let (fired, [mut one, mut other]) =
            (HandEvents::default(), [HandAgenda::default(), HandAgenda::default()]);
        one.look(&fired);
        assert_eq!((one.next_at(), one.take_due(at(99))), (None, None));
        fired.add(at(30), event("end"));
        one.look(&fired);
        fired.add(at(20), event("other"));
        fired.add(at(20), event("third"));
        for agenda in [&mut one, &mut other] {
            agenda.look(&fired);
            agenda.look(&fired);
            assert_eq!((agenda.next_at(), agenda.take_due(at(19))), (Some(at(20)), None));
            let taken: Vec<_> = std::iter::from_fn(|| agenda.take_due(at(30))).collect();
            let names: Vec<&str> = taken.iter().map(|event| event.name()).collect();
            assert_eq!(names, ["other", "third", "end"]);
        }
    }
}
