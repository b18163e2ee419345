//! Sets of subscriptions: a topic matches every prefix that it begins with (RFC 29, "filters").
//!
//! A topic is looked up once for each length that some prefix has, so that thousands of prefixes of a few lengths cost little.

use std::collections::{BTreeMap, BTreeSet};

/// Who has subscribed to which prefixes.
///
/// A set, as libzmq's `generic_mtrie_t`: who subscribes to a prefix twice cancels it once. RFC 37 ("The Publish-Subscribe
/// Pattern") counts instead, and wants as many cancellations as subscriptions.
#[derive(Clone, Debug, Default)]
pub struct Prefixes {
    takers: BTreeMap<Box<[u8]>, BTreeSet<u32>>,
    /// How many prefixes have this length.
    lengths: BTreeMap<usize, u32>,
}

impl Prefixes {
    /// A taker subscribes. Says whether it is the first one of this prefix.
    pub fn add(&mut self, prefix: &[u8], taker: u32) -> bool {
        if let Some(takers) = self.takers.get_mut(prefix) {
            takers.insert(taker);
            return false;
        }
        self.takers.insert(prefix.into(), BTreeSet::from([taker]));
        *self.lengths.entry(prefix.len()).or_default() += 1;
        true
    }

    /// A taker no longer subscribes. Says whether it was the last one of this prefix.
    pub fn remove(&mut self, prefix: &[u8], taker: u32) -> bool {
        let Some(takers) = self.takers.get_mut(prefix) else { return false };
        if !takers.remove(&taker) || !takers.is_empty() {
            return false;
        }
        self.takers.remove(prefix);
        if let Some(count) = self.lengths.get_mut(&prefix.len()) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&prefix.len());
            }
        }
        true
    }

    /// A taker is gone. Calls `last` for each prefix that nobody has any more.
    pub fn forget(&mut self, taker: u32, mut last: impl FnMut(&[u8])) {
        let its = self.takers.iter().filter(|(_, takers)| takers.contains(&taker));
        let its: Vec<Box<[u8]>> = its.map(|(prefix, _)| prefix.clone()).collect();
        for prefix in its {
            if self.remove(&prefix, taker) {
                last(&prefix);
            }
        }
    }

    /// Whether somebody takes a topic.
    pub fn matches(&self, topic: &[u8]) -> bool {
        self.matching(topic).next().is_some()
    }

    /// Who takes a topic, each once.
    pub fn takers(&self, topic: &[u8]) -> BTreeSet<u32> {
        // A set, as libzmq marks a connection once (`mark_as_matching`), however many of its prefixes match.
        self.matching(topic).flatten().copied().collect()
    }

    /// All prefixes, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.takers.keys().map(|prefix| &**prefix)
    }

    fn matching(&self, topic: &[u8]) -> impl Iterator<Item = &BTreeSet<u32>> {
        // The empty prefix is among them, and matches every topic (RFC 29).
        self.lengths.range(..=topic.len()).filter_map(|(length, _)| self.takers.get(&topic[..*length]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_matches_what_it_begins_with_and_each_taker_has_it_once() {
        let mut prefixes = Prefixes::default();
        assert!(prefixes.add(b"", 1) && prefixes.add(b"a/", 1) && !prefixes.add(b"a/", 2));
        assert_eq!(prefixes.takers(b"a/b"), BTreeSet::from([1, 2]));
        assert_eq!(prefixes.takers(b"a"), BTreeSet::from([1]));
        let mut last = Vec::new();
        prefixes.forget(1, |prefix| last.push(prefix.to_vec()));
        assert_eq!(last, [b"".to_vec()]);
        assert!(!prefixes.matches(b"a") && prefixes.matches(b"a/b"));
        assert!(!prefixes.remove(b"a/", 1) && prefixes.remove(b"a/", 2) && !prefixes.remove(b"a/", 2));
        assert!(!prefixes.matches(b"a/b") && prefixes.iter().next().is_none() && prefixes.lengths.is_empty());
    }
}
