//! Who wants which messages. What a topic's audience is, is worked out once, and again when somebody subscribes.

use std::collections::BTreeMap;

use crate::kind::Qos;
use crate::topic::{TopicTree, share};

#[derive(Clone, Debug, Default)]
pub(super) struct Subscriptions {
    tree: TopicTree<Taker>,
    shares: Vec<Share>,
    by_name: BTreeMap<String, u32>,
    /// Filters by session, so that a session that ends need not be searched for.
    filters: BTreeMap<u32, Vec<String>>,
    /// Audiences by topic; `None` when one has to be worked out.
    audiences: Vec<Option<Audience>>,
}

/// Who receives a topic's messages.
#[derive(Clone, Debug, Default)]
pub(super) struct Audience {
    /// Sessions, each once, with the highest QoS that one of its subscriptions grants.
    pub(super) receivers: Vec<(u32, Qos)>,
    /// Shared subscriptions, of which one member receives each message.
    pub(super) shares: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
enum Taker {
    Session { number: u32, qos: Qos },
    Share(u32),
}

/// A shared subscription (MQTT 5 §4.8.2).
#[derive(Clone, Debug, Default)]
struct Share {
    members: Vec<(u32, Qos)>,
    next: usize,
}

impl Subscriptions {
    /// A session subscribes, or subscribes again.
    pub(super) fn add(&mut self, filter: &str, number: u32, qos: Qos) {
        self.remove(filter, number);
        match share(filter) {
            Some((_, inner)) => self.join_share(filter, inner, number, qos),
            None => {
                self.tree.insert(filter, Taker::Session { number, qos });
            }
        }
        self.filters.entry(number).or_default().push(filter.to_owned());
        self.audiences.clear();
    }

    /// A session no longer subscribes.
    pub(super) fn remove(&mut self, filter: &str, number: u32) {
        let Some(filters) = self.filters.get_mut(&number) else { return };
        let Some(place) = filters.iter().position(|known| known == filter) else { return };
        filters.swap_remove(place);
        self.drop_from_tree(filter, number);
        self.audiences.clear();
    }

    /// A session has ended.
    pub(super) fn remove_all(&mut self, number: u32) {
        for filter in self.filters.remove(&number).unwrap_or_default() {
            self.drop_from_tree(&filter, number);
        }
        self.audiences.clear();
    }

    /// Takes out the audience of a topic. To be put back.
    pub(super) fn take_audience(&mut self, topic: u32, name: &str) -> Audience {
        let place = topic as usize;
        if self.audiences.len() <= place {
            self.audiences.resize_with(place + 1, || None);
        }
        self.audiences[place].take().unwrap_or_else(|| self.work_out(name))
    }

    pub(super) fn put_audience_back(&mut self, topic: u32, audience: Audience) {
        if let Some(place) = self.audiences.get_mut(topic as usize) {
            *place = Some(audience);
        }
    }

    /// The next member of a shared subscription that is there, or the next one if none is.
    pub(super) fn next_of_share(&mut self, share: u32, online: impl Fn(u32) -> bool) -> Option<(u32, Qos)> {
        let share = &mut self.shares[share as usize];
        let count = share.members.len();
        let place =
            (0..count).map(|step| (share.next + step) % count).find(|&place| online(share.members[place].0));
        let place = place.or((count > 0).then(|| share.next % count.max(1)))?;
        share.next = place + 1;
        Some(share.members[place])
    }

    fn join_share(&mut self, filter: &str, inner: &str, number: u32, qos: Qos) {
        let next = self.shares.len() as u32;
        let share = *self.by_name.entry(filter.to_owned()).or_insert(next);
        if share == next {
            self.shares.push(Share::default());
            self.tree.insert(inner, Taker::Share(share));
        }
        self.shares[share as usize].members.push((number, qos));
    }

    fn drop_from_tree(&mut self, filter: &str, number: u32) {
        match self.by_name.get(filter) {
            Some(&share) => self.shares[share as usize].members.retain(|(member, _)| *member != number),
            None => {
                let unwanted =
                    |taker: &Taker| matches!(taker, Taker::Session { number: n, .. } if *n == number);
                self.tree.remove(filter, unwanted);
            }
        }
    }

    fn work_out(&self, name: &str) -> Audience {
        let mut audience = Audience::default();
        self.tree.each_match(name, |taker| match *taker {
            Taker::Session { number, qos } => audience.receivers.push((number, qos)),
            Taker::Share(share) => audience.shares.push(share),
        });
        // The highest QoS of a session's subscriptions stays.
        audience.receivers.sort_unstable_by_key(|&(number, qos)| (number, std::cmp::Reverse(qos)));
        audience.receivers.dedup_by_key(|(number, _)| *number);
        audience
    }
}
