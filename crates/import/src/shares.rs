//! Shared subscriptions, as SUBSCRIBE packets and deliveries show them.
//!
//! `$share/` is MQTT's own. Another prefix ([`conventions::SHARING`]) counts from end to end of the capture once one delivery shows
//! that the broker knows it; without one nothing is expected of its subscribers.

use std::collections::{BTreeMap, BTreeSet};

use mqttlab_mqtt::TopicTree;
use mqttlab_mqtt::conventions::{self, SHARING};
use mqttlab_mqtt::topic::matches;

/// All shared subscriptions, by number.
#[derive(Default)]
pub struct ObservedShares {
    all: Vec<ObservedShare>,
    numbers: BTreeMap<(String, usize), u32>,
    /// Those with members.
    tree: TopicTree<u32>,
    /// The lines of the table that a delivery has shown.
    proved: BTreeSet<usize>,
}

/// A shared subscription.
pub struct ObservedShare {
    /// Its filter with the prefix.
    pub filter: String,
    /// The line of the table.
    line: usize,
    /// All clients that had it.
    pub members: BTreeSet<u32>,
    present: BTreeSet<u32>,
}

impl ObservedShares {
    /// A client was granted a filter.
    pub fn join(&mut self, filter: &str, client: u32) {
        for (line, inner) in conventions::shares(filter) {
            let next = self.all.len() as u32;
            let number = *self.numbers.entry((filter.to_owned(), line)).or_insert(next);
            if number == next {
                let (members, present) = Default::default();
                self.all.push(ObservedShare { filter: filter.to_owned(), line, members, present });
            }
            let share = &mut self.all[number as usize];
            share.members.insert(client);
            if share.present.insert(client) && share.present.len() == 1 {
                self.tree.insert(inner, number);
            }
        }
    }

    /// A client gave a filter up.
    pub fn leave(&mut self, filter: &str, client: u32) {
        for (line, inner) in conventions::shares(filter) {
            let Some(&number) = self.numbers.get(&(filter.to_owned(), line)) else { continue };
            let share = &mut self.all[number as usize];
            if share.present.remove(&client) && share.present.is_empty() {
                self.tree.remove(inner, |&known| known == number);
            }
        }
    }

    /// Whether a client was ever granted a filter that shares.
    pub fn has_had(&self, filter: &str, client: u32) -> bool {
        conventions::shares(filter).any(|(line, _)| {
            let number = self.numbers.get(&(filter.to_owned(), line));
            number.is_some_and(|&number| self.all[number as usize].members.contains(&client))
        })
    }

    /// Whether there never was one.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The share that a filter makes of a topic.
    pub fn number_of(&self, filter: &str, topic: &str) -> Option<u32> {
        let (line, _) = conventions::shares(filter).find(|(_, inner)| matches(inner, topic))?;
        self.numbers.get(&(filter.to_owned(), line)).copied()
    }

    /// The shares that a message to a topic belongs to now, by number in order.
    pub fn of(&self, topic: &str) -> Vec<u32> {
        let mut found = Vec::new();
        self.tree.each_match(topic, |&number| found.push(number));
        found.sort_unstable();
        found
    }

    /// A message of a topic reached a client by a filter, which shows that the broker knows the filter's prefix.
    pub fn prove(&mut self, filter: &str, topic: &str) {
        let mut ways = conventions::shares(filter);
        self.proved.extend(ways.find(|(_, inner)| matches(inner, topic)).map(|(line, _)| line));
    }

    /// Whether its broker is known to treat a share as one.
    pub fn is_proved(&self, share: u32) -> bool {
        let line = self.all[share as usize].line;
        line == 0 || self.proved.contains(&line)
    }

    /// All that are known, by number.
    pub fn proved(&self) -> impl Iterator<Item = (u32, &ObservedShare)> {
        (0..).zip(&self.all).filter(|(number, _)| self.is_proved(*number))
    }

    /// A sentence for each filter whose prefix may mean more than the deliveries show.
    pub fn warnings(&self) -> Vec<String> {
        let mut by_filter: BTreeMap<&str, (&ObservedShare, bool)> = BTreeMap::new();
        for (number, share) in (0..).zip(&self.all) {
            by_filter.entry(&share.filter).or_insert((share, false)).1 |= self.is_proved(number);
        }
        let unproved = by_filter.into_values().filter(|(_, is_proved)| !is_proved);
        let words = |(share, _): (&ObservedShare, bool)| {
            let known = SHARING[share.line];
            format!(
                "`{}` is a subscription to the rest of its name with {}; no delivery shows that this broker knows `{}`, so that \
                 nothing is expected there.",
                share.filter, known.of, known.prefix
            )
        };
        unproved.map(words).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_of_one_make_counts_once_a_delivery_shows_that_the_broker_knows_it() {
        let mut shares = ObservedShares::default();
        shares.join("$queue/jobs/#", 1);
        shares.join("$queue/jobs/#", 2);
        shares.join("$share/g/jobs/a", 3);
        let known = |shares: &ObservedShares| {
            let proved = shares.of("jobs/a").into_iter().filter(|&number| shares.is_proved(number));
            proved.map(|number| shares.all[number as usize].line).collect::<Vec<_>>()
        };
        assert_eq!(known(&shares), [0]);
        assert_eq!(shares.warnings().len(), 1);
        shares.prove("$queue/jobs/#", "jobs/a");
        assert_eq!((known(&shares), shares.warnings()), (vec![2, 0], vec![]));
        shares.leave("$queue/jobs/#", 1);
        assert_eq!(known(&shares).len(), 2);
        shares.leave("$queue/jobs/#", 2);
        assert_eq!(known(&shares), [0]);
    }
}
