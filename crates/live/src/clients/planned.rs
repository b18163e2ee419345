//! The events of the plan that act on a worker's clients.
//!
//! Workers see to them by themselves, at the instants that follow from the schedule, so that a client's event is as punctual
//! as its messages.

use mqttlab_client::Loss;
use mqttlab_plan::{ClientsChange, Event, Plan};
use mqttlab_system::poller::Ready;
use mqttlab_units::{Duration, Instant};

use super::Client;
use super::turn::ClientTurn;
use crate::due_list::DueList;

/// Places in the plan's list of the events that act on clients.
pub(super) fn changes_of(plan: &Plan) -> DueList<usize> {
    DueList::new(plan.events.iter().enumerate().filter_map(|(place, event)| match event {
        Event::Clients(event) => Some((event.at, place)),
        Event::Links(_) | Event::Medium(_) | Event::Server(_) => None,
    }))
}

impl ClientTurn<'_> {
    /// Something happens to a client.
    pub(super) fn change(&mut self, client: &mut Client, change: &ClientsChange) {
        match change {
            ClientsChange::Disconnect => {
                client.disconnect(self);
                // Nobody closes what is no connection.
                if client.connection().is_datagrams() {
                    client.lose(self, &Loss::Farewell);
                }
            }
            ClientsChange::Vanish => client.vanish(self),
            ClientsChange::Return => client.come_back(self),
            ClientsChange::StopReading => client.connection_mut().is_reading = false,
            ClientsChange::ContinueReading => {
                let connection = client.connection_mut();
                connection.is_reading = true;
                // What came meanwhile is not announced again.
                let ended = std::mem::take(&mut connection.has_unread_end);
                let ready = Ready { number: connection.slot.into(), readable: true, ended, writable: false };
                self.react(client, ready);
            }
            // The schedule has it.
            ClientsChange::Publish { .. } | ClientsChange::Burst { .. } => {}
            ClientsChange::Subscribe { .. } | ClientsChange::Unsubscribe { .. } => {
                client.change_subscriptions(self);
            }
        }
        self.set_timer(client);
    }
}

/// The longest time until a worker looks at its events.
pub(super) fn until(next: Option<Instant>, now: Instant, otherwise: Duration) -> Duration {
    next.map_or(otherwise, |at| at.checked_since(now).unwrap_or_default().min(otherwise))
}
