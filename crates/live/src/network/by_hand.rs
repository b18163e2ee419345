//! Changes of links that somebody fires by hand.
//!
//! A link that no event of the plan changes decides at once what becomes of a frame that comes, which costs less. From its first
//! change by hand on it takes each step in its time ([`mqttlab_net::Link::let_change`]).

use std::collections::HashMap;
use std::sync::Arc;

use mqttlab_net::LinkSpec;
use mqttlab_plan::Event;
use mqttlab_units::Instant;

use crate::by_hand::{HandAgenda, HandEvents};
use crate::network::wire::EmulatedWire;
use crate::network::wiring::Wiring;

/// Of one emulator.
pub(crate) struct LinksByHand {
    fired: Arc<HandEvents>,
    agenda: HandAgenda,
    /// As the plan has them, by name.
    links: HashMap<String, (usize, LinkSpec)>,
}

impl LinksByHand {
    pub(crate) fn new(wiring: &Wiring, fired: Arc<HandEvents>) -> LinksByHand {
        let links = wiring.links.iter().enumerate();
        let links = links.map(|(number, spec)| (spec.name.clone(), (number, spec.clone()))).collect();
        LinksByHand { fired, agenda: HandAgenda::default(), links }
    }

    /// Learns of what was fired since the last time.
    pub(crate) fn look(&mut self) {
        self.agenda.look(&self.fired);
    }

    /// When the next event is due, also one that changes no link.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.agenda.next_at()
    }

    /// Changes links whose time has come.
    pub(crate) fn perform(&mut self, wire: &mut EmulatedWire, now: Instant) {
        while let Some(event) = self.agenda.take_due(now) {
            let Event::Links(event) = &*event else { continue };
            for (number, spec) in event.links.iter().filter_map(|name| self.links.get(name)) {
                wire.change_by_hand(now, (*number, spec), &event.change);
            }
        }
    }
}
