//! The events of a plan: which is due, and when the next one is.

use mqttlab_plan::{Event, Plan};
use mqttlab_units::Instant;

/// Those that have not taken place.
pub(crate) struct PlannedEvents<'a> {
    /// In the order of time.
    left: &'a [Event],
}

impl<'a> PlannedEvents<'a> {
    /// All of a plan.
    pub(crate) fn of(plan: &'a Plan) -> PlannedEvents<'a> {
        PlannedEvents { left: &plan.events }
    }

    /// When the next one is due, of clients that publish from then on.
    pub(crate) fn next_at(&self, publish_from: Instant) -> Option<Instant> {
        Some(publish_from + self.left.first()?.at())
    }

    /// Takes the next one, if it is due by now.
    pub(crate) fn take_due(&mut self, now: Instant, publish_from: Instant) -> Option<&'a Event> {
        let (event, left) = self.left.split_first()?;
        (publish_from + event.at() <= now).then(|| {
            self.left = left;
            event
        })
    }
}
