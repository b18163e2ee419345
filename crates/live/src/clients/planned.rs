//! The events of the plan that act on a worker's clients.
//!
//! Workers see to them by themselves, at the instants that follow from the schedule, so that a client's event is as punctual
//! as its messages.

use mqttlab_client::Loss;
use mqttlab_plan::{ClientsChange, ClientsEvent, Event, Plan};
use mqttlab_units::{Duration, Instant};

use super::Client;
use super::epoll::Ready;
use super::turn::ClientTurn;

/// Those that have not taken place, in the order of time.
#[derive(Default)]
pub(super) struct PlannedChanges {
    /// Places in the plan's list, the next one last.
    left: Vec<usize>,
}

impl PlannedChanges {
    /// All of a plan that act on clients.
    pub(super) fn of(plan: &Plan) -> PlannedChanges {
        let acts = |(_, event): &(usize, &Event)| matches!(event, Event::Clients(_));
        PlannedChanges {
            left: plan.events.iter().enumerate().filter(acts).map(|(place, _)| place).rev().collect(),
        }
    }

    /// When the next one is due, of clients that publish from then on.
    pub(super) fn next_at(&self, plan: &Plan, publish_from: Option<Instant>) -> Option<Instant> {
        Some(publish_from? + self.next(plan)?.at)
    }

    /// Takes the next one, if it is due by now.
    pub(super) fn take_due<'p>(
        &mut self,
        plan: &'p Plan,
        publish_from: Option<Instant>,
        now: Instant,
    ) -> Option<&'p ClientsEvent> {
        let event = self.next(plan)?;
        (publish_from? + event.at <= now).then(|| {
            self.left.pop();
            event
        })
    }

    fn next<'p>(&self, plan: &'p Plan) -> Option<&'p ClientsEvent> {
        match &plan.events[*self.left.last()?] {
            Event::Clients(event) => Some(event),
            Event::Links(_) | Event::Server(_) => None,
        }
    }
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
                let ready = Ready { client: connection.slot, readable: true, ended, writable: false };
                self.react(client, ready);
            }
            // The plan was checked: only what is performed comes here.
            ClientsChange::Subscribe { .. } | ClientsChange::Unsubscribe { .. } => {}
        }
        self.set_timer(client);
    }
}

/// The longest time until a worker looks at its events.
pub(super) fn until(next: Option<Instant>, now: Instant, otherwise: Duration) -> Duration {
    next.map_or(otherwise, |at| at.checked_since(now).unwrap_or_default().min(otherwise))
}
