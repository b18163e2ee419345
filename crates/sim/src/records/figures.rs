//! What a simulation tells whoever watches it: counts of each group, and the figures of a progress line.

use mqttlab_client::Books;
use mqttlab_run::{Figures, GroupFigures, MESSAGES_MAX, MessageFigures, SimulationPace, Sketch, Watched};
use mqttlab_units::{Duration, Instant};

use crate::clients::groups::Groups;
use crate::hosts::wire::SimWire;
use crate::ids::{GroupId, IdTable};

/// Counts for the figures, which nothing in the simulation depends on.
pub(crate) struct SimFigures {
    groups: IdTable<GroupId, GroupCounts>,
    /// Latencies since they were last told.
    recent: Vec<u64>,
    watched: Watched,
    /// Of the messages since the last line the first ones.
    messages: Vec<MessageFigures>,
}

/// What a group's clients have done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupCounts {
    pub(crate) offered: u64,
    /// Of these, messages that no session took.
    pub(crate) unsent: u64,
    pub(crate) delivered: u64,
}

impl SimFigures {
    pub(crate) fn new(groups: &Groups) -> SimFigures {
        let counts = groups.numbers().map(|_| GroupCounts::default()).collect();
        SimFigures { groups: counts, recent: Vec::new(), watched: Watched::new(), messages: Vec::new() }
    }

    /// What a group's clients have done.
    pub(crate) fn group(&mut self, group: GroupId) -> &mut GroupCounts {
        &mut self.groups[group]
    }

    /// A delivery took so long.
    pub(crate) fn latency(&mut self, latency: Duration) {
        if self.recent.len() < RECENT_MAX {
            self.recent.push(latency.as_ns());
        }
    }

    /// A message was delivered; it is told where there is room.
    pub(crate) fn message(&mut self, told: impl FnOnce() -> MessageFigures) {
        if self.messages.len() < MESSAGES_MAX {
            self.messages.push(told());
        }
    }

    /// The figures now.
    pub(crate) fn snapshot(
        &mut self,
        now: Instant,
        pace: SimulationPace,
        books: &Books,
        groups: &Groups,
        wire: &SimWire,
    ) -> Figures {
        let [latency_p50_ns, latency_p99_ns] = self.percentiles();
        let mut sketch = Sketch::default();
        self.recent.drain(..).for_each(|ns| sketch.count(ns, 1));
        let (links, links_left_out) = self.watched.links(now, wire.traffic(now), |link| wire.link_name(link));
        let group = |(id, counts): (GroupId, &GroupCounts)| GroupFigures {
            group: groups.name_of_group(id).to_owned(),
            offered: counts.offered,
            sent: counts.offered - counts.unsent,
            delivered: counts.delivered,
        };
        Figures {
            at_ns: now.as_ns(),
            connected: books.connected.max(0) as u32,
            offered: books.offered,
            sent: books.sent,
            expected: books.expected,
            delivered: books.delivered,
            disconnects: books.disconnects,
            latency_p50_ns,
            latency_p99_ns,
            events_per_s: Some(pace.events_per_s),
            speed: Some(pace.speed),
            latency: self.watched.latencies(now, sketch),
            groups: self.groups.iter().map(group).collect(),
            links,
            links_left_out,
            messages: std::mem::take(&mut self.messages),
            ..Figures::default()
        }
    }

    /// Median and 99th percentile of the latencies since the last time, in nanoseconds.
    fn percentiles(&mut self) -> [Option<u64>; 2] {
        self.recent.sort_unstable();
        [50, 99].map(|percent| self.recent.get(self.recent.len() * percent / 100).copied())
    }
}

/// Latencies that are kept between two lines.
const RECENT_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_came_since_the_last_line() {
        let groups = Groups::new(
            Vec::new(),
            &[],
            &[],
            mqttlab_plan::SubscriptionChanges::default(),
            mqttlab_units::Seed(1),
        );
        let mut figures = SimFigures::new(&groups);
        assert_eq!(figures.percentiles(), [None; 2]);
        (1..=100).rev().for_each(|us| figures.latency(Duration::from_us(us)));
        assert_eq!(figures.percentiles(), [Some(51_000), Some(100_000)]);
    }
}
