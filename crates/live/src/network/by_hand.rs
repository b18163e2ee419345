//! Changes of links and radio channels that somebody fires by hand.
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
use crate::network::wiring::{Change, Wiring};

/// Of one emulator.
pub(crate) struct LinksByHand {
    fired: Arc<HandEvents>,
    agenda: HandAgenda,
    /// As the plan has them, by name.
    links: HashMap<String, (usize, LinkSpec)>,
    /// The numbers of radio channels, by name.
    media: HashMap<String, usize>,
}

impl LinksByHand {
    pub(crate) fn new(wiring: &Wiring, fired: Arc<HandEvents>) -> LinksByHand {
        let links = wiring.links.iter().enumerate();
        let links = links.map(|(number, spec)| (spec.name.clone(), (number, spec.clone()))).collect();
        let media =
            wiring.media.iter().enumerate().map(|(number, spec)| (spec.name.clone(), number)).collect();
        LinksByHand { fired, agenda: HandAgenda::default(), links, media }
    }

    /// Learns of what was fired since the last time.
    pub(crate) fn look(&mut self) {
        self.agenda.look(&self.fired);
    }

    /// When the next event is due, also one that changes neither.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.agenda.next_at()
    }

    /// Changes what is due.
    pub(crate) fn perform(&mut self, wire: &mut EmulatedWire, now: Instant) {
        while let Some(event) = self.agenda.take_due(now) {
            match &*event {
                Event::Links(event) => {
                    for (number, spec) in event.links.iter().filter_map(|name| self.links.get(name)) {
                        wire.change_by_hand(now, (*number, spec), &event.change);
                    }
                }
                Event::Medium(event) => {
                    if let Some(&medium) = self.media.get(&event.medium) {
                        wire.change(now, &Change::Medium { medium, change: event.change.clone() });
                    }
                }
                // Performed by those who run servers and clients.
                Event::Server(_) | Event::Clients(_) => {}
            }
        }
    }
}
