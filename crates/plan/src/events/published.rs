//! Events that change what clients publish: what the plan must say of them, and what they are to each client.
//!
//! A message is what its publication is when it is due. So both backends have the same messages, however late one of them performs
//! an event.

use std::collections::{BTreeMap, BTreeSet};

use mqttlab_units::Duration;

use super::{ClientsChange, ClientsEvent, Event, PublicationChange};
use crate::bounds::{self, LONGEST};
use crate::error::{PlanError, require};
use crate::{Arrival, Group, Plan};

/// What the events of a plan make of clients' publications, by client.
#[derive(Clone, Debug, Default)]
pub struct PublishingChanges {
    changes: Vec<(Duration, ClientsChange)>,
    /// Places in `changes`, in the order of time.
    of: BTreeMap<u32, Vec<u32>>,
}

impl PublishingChanges {
    /// Of a plan's events.
    pub fn of(events: &[Event]) -> PublishingChanges {
        let mut found = PublishingChanges::default();
        for event in events {
            let Event::Clients(event) = event else { continue };
            if let ClientsChange::Publish { .. } | ClientsChange::Burst { .. } = event.change {
                let place = found.changes.len() as u32;
                found.changes.push((event.at, event.change.clone()));
                event.clients.iter().for_each(|client| found.of.entry(*client).or_default().push(place));
            }
        }
        found
    }

    /// What happens to a client's publications, since publishing began, in the order of time.
    pub(crate) fn of_client(&self, client: u32) -> impl Iterator<Item = &(Duration, ClientsChange)> {
        self.of.get(&client).into_iter().flatten().map(|place| &self.changes[*place as usize])
    }
}

/// The group of an event's clients, which publishes.
fn group_of<'p>(plan: &'p Plan, event: &ClientsEvent, place: &str) -> Result<&'p Group, PlanError> {
    let starts = plan.client_numbers();
    let groups: BTreeSet<usize> =
        event.clients.iter().map(|client| starts.partition_point(|start| start <= client) - 1).collect();
    require(groups.len() == 1, &format!("{place}.clients"), || {
        format!("are of {} groups, but publications are those of one", groups.len())
    })?;
    Ok(&plan.groups[groups.first().copied().unwrap_or_default()])
}

/// Each publication is one of the group, and given once.
fn each_once(group: &Group, publications: impl Iterator<Item = usize>, place: &str) -> Result<(), PlanError> {
    let (mut seen, count) = (BTreeSet::new(), group.publications.len());
    for publication in publications {
        require(publication < count, place, || {
            format!("has publication {publication}, but `{}` has {count}, counted from 0", group.name)
        })?;
        require(seen.insert(publication), place, || format!("has publication {publication} twice"))?;
    }
    require(!seen.is_empty(), place, || "is empty, but an event acts on a publication".into())
}

pub(super) fn check_change(
    plan: &Plan,
    event: &ClientsEvent,
    publications: &[PublicationChange],
    place: &str,
) -> Result<(), PlanError> {
    let group = group_of(plan, event, place)?;
    let place = format!("{place}.change.publications");
    each_once(group, publications.iter().map(|change| change.publication), &place)?;
    for (index, change) in publications.iter().enumerate() {
        let place = format!("{place}[{index}]");
        require(group.publication_of(change.content) == Some(change.publication), &place, || {
            format!("has content {}, which is none of publication {}", change.content, change.publication)
        })?;
        let Some(interval) = change.rate.and_then(|rate| rate.interval_ns) else { continue };
        bounds::within(interval, 1_000, LONGEST.as_ns(), &format!("{place}.rate.interval_ns"))?;
        let is_closed = group.publications[change.publication].arrival == Arrival::BackToBack;
        require(!is_closed, &format!("{place}.rate"), || {
            "has an interval, but each message of a back-to-back publication follows the last".into()
        })?;
    }
    Ok(())
}

pub(super) fn check_burst(
    plan: &Plan,
    event: &ClientsEvent,
    (publications, messages): (&[usize], u32),
    place: &str,
) -> Result<(), PlanError> {
    let group = group_of(plan, event, place)?;
    bounds::within(messages.into(), 1, BURST_MAX, &format!("{place}.change.messages"))?;
    let place = format!("{place}.change.publications");
    each_once(group, publications.iter().copied(), &place)?;
    let is_closed = |publication: &usize| group.publications[*publication].arrival == Arrival::BackToBack;
    require(!publications.iter().any(is_closed), &place, || {
        "has a back-to-back publication, each of whose messages follows the last".into()
    })
}

/// As of a burst that recurs.
const BURST_MAX: u64 = 1_000_000;
