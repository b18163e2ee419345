//! Events by which clients subscribe and unsubscribe: what each client asks for, and whose messages it should have when.
//!
//! A client performs its changes one after another, each when the one before was answered. So after how many of them it is says
//! what it subscribes to.

use std::collections::BTreeMap;

use mqttlab_mqtt::{SubscriptionOptions, topic};

use super::{ClientsChange, Event};
use crate::{Group, Plan, Roster, Subscription, TopicPattern, qos};

/// What the events of a plan make of clients' subscriptions, by client.
#[derive(Clone, Debug, Default)]
pub struct SubscriptionChanges {
    changes: Vec<SubscriptionChange>,
    /// Places in `changes`, in the order of time.
    of: BTreeMap<u32, Vec<u32>>,
}

/// One change of a client's subscriptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionChange {
    /// The filter.
    pub filter: TopicPattern,
    /// The QoS that is asked for; `None`: it unsubscribes.
    pub qos: Option<u8>,
}

impl SubscriptionChange {
    /// The options that a client of this group asks for: those of its group's subscription with the same filter, but for the QoS.
    /// `None`: it unsubscribes.
    pub fn options(&self, group: &Group) -> Option<SubscriptionOptions> {
        let own = group.subscriptions.iter().find(|own| own.filter == self.filter);
        let qos = qos(self.qos?);
        Some(SubscriptionOptions { qos, ..own.map_or_else(Default::default, Subscription::options) })
    }
}

/// Whether a client should have the messages of a topic, as its subscriptions change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedReceiver {
    /// The client.
    pub client: u32,
    /// The topic, by its number in the roster.
    pub topic: u32,
    /// Whether it should before the first change.
    pub at_first: bool,
    /// The changes of the client, by number, by each of which that becomes otherwise.
    pub flips: Vec<u32>,
}

impl ChangedReceiver {
    /// Whether it should at no time.
    pub fn never(&self) -> bool {
        !self.at_first && self.flips.is_empty()
    }
}

impl SubscriptionChanges {
    /// Of a plan's events.
    pub fn of(events: &[Event]) -> SubscriptionChanges {
        let mut found = SubscriptionChanges::default();
        for event in events {
            let Event::Clients(event) = event else { continue };
            let (filter, qos) = match &event.change {
                ClientsChange::Subscribe { filter, qos } => (filter.clone(), Some(*qos)),
                ClientsChange::Unsubscribe { filter } => (filter.clone(), None),
                _ => continue,
            };
            let place = found.changes.len() as u32;
            found.changes.push(SubscriptionChange { filter, qos });
            event.clients.iter().for_each(|client| found.of.entry(*client).or_default().push(place));
        }
        found
    }

    /// How many changes a client has.
    pub fn count(&self, client: u32) -> u32 {
        self.of.get(&client).map_or(0, |places| places.len() as u32)
    }

    /// A change of a client, by its number among these.
    pub fn change(&self, client: u32, number: u32) -> Option<&SubscriptionChange> {
        let place = *self.of.get(&client)?.get(number as usize)?;
        self.changes.get(place as usize)
    }

    /// What the `index`-th client of a group, which has a number among all clients, subscribes to after so many changes: filters as
    /// they are written, and their options.
    pub fn filters<'a>(
        &'a self,
        group: &'a Group,
        client: u32,
        changes: u32,
    ) -> Vec<(&'a TopicPattern, SubscriptionOptions)> {
        let own = group.subscriptions.iter();
        let mut found: Vec<_> = own.map(|wanted| (&wanted.filter, wanted.options())).collect();
        for number in 0..changes {
            let Some(change) = self.change(client, number) else { break };
            found.retain(|(filter, _)| **filter != change.filter);
            found.extend(change.options(group).map(|options| (&change.filter, options)));
        }
        found
    }

    /// Which clients should have which topics for a time. What relays make of a topic is left aside: nobody knows how long a copy
    /// takes.
    pub fn receivers(&self, plan: &Plan, roster: &Roster) -> Vec<ChangedReceiver> {
        let starts = plan.client_numbers();
        let mut found = Vec::new();
        for (&client, places) in &self.of {
            let number = starts.partition_point(|start| *start <= client) - 1;
            let (group, index) = (&plan.groups[number], client - starts[number]);
            let server = plan.serving(group);
            let steps: Vec<Vec<String>> = (0..=places.len() as u32)
                .map(|changes| {
                    let filters = self.filters(group, client, changes);
                    filters.iter().map(|(filter, _)| filter.fill(&group.name, index, 0)).collect()
                })
                .collect();
            let topics =
                (0..).zip(roster.topics()).filter(|(_, entry)| entry.server == server && !entry.relayed);
            for (topic, entry) in topics {
                let has =
                    |filters: &Vec<String>| filters.iter().any(|filter| topic::matches(filter, &entry.name));
                let has: Vec<bool> = steps.iter().map(has).collect();
                let flips = (0..).zip(has.windows(2)).filter(|(_, pair)| pair[0] != pair[1]);
                let flips: Vec<u32> = flips.map(|(change, _)| change).collect();
                if !flips.is_empty() {
                    found.push(ChangedReceiver { client, topic, at_first: has[0], flips });
                }
            }
        }
        found
    }
}
