//! Who wants which messages. What a topic's audience is, is worked out once, and again when somebody has subscribed
//! or unsubscribed.

use std::collections::BTreeMap;

use super::TopicId;
use crate::kind::SubscriptionOptions;
use crate::topic::{Place, TopicTree, share};

#[derive(Clone, Debug, Default)]
pub(super) struct BrokerSubscriptions {
    tree: TopicTree<Subscriber>,
    shares: Vec<SharedSubscription>,
    vacant_shares: Vec<u32>,
    by_name: BTreeMap<Box<str>, u32>,
    /// Audiences by topic, valid when they are of this generation.
    audiences: Vec<TopicAudience>,
    generation: u32,
    /// For each session its place in the audience that is being worked out, counted from 1.
    seen: Vec<u32>,
}

/// Who receives a topic's messages.
#[derive(Clone, Debug, Default)]
pub(super) struct TopicAudience {
    generation: u32,
    /// Sessions, each once, with the highest QoS that one of its subscriptions grants.
    pub(super) receivers: Vec<(u32, SubscriptionOptions)>,
    /// Shared subscriptions, of which one member receives each message.
    pub(super) shares: Vec<u32>,
    /// Sessions with No Local in one of their subscriptions, by number, and what the others grant for what they publish themselves.
    own: Vec<(u32, Option<SubscriptionOptions>)>,
}

impl TopicAudience {
    /// What a receiver is granted of a message by this publisher; `None`: it does not get its own ([MQTT-3.8.3-3]).
    pub(super) fn granted(
        &self,
        receiver: u32,
        granted: SubscriptionOptions,
        publisher: u32,
    ) -> Option<SubscriptionOptions> {
        if receiver != publisher {
            return Some(granted);
        }
        let own = self.own.binary_search_by_key(&receiver, |(session, _)| *session);
        own.map_or(Some(granted), |place| self.own[place].1)
    }
}

#[derive(Clone, Copy, Debug)]
enum Subscriber {
    Session { number: u32, options: SubscriptionOptions },
    Share(u32),
}

/// A session's subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubscriptionPlace {
    Alone(Place),
    Shared(u32),
}

/// A shared subscription (MQTT 5 §4.8.2).
#[derive(Clone, Debug)]
struct SharedSubscription {
    name: Box<str>,
    place: Place,
    members: Vec<(u32, SubscriptionOptions)>,
    next: usize,
}

impl BrokerSubscriptions {
    /// A session that has some subscriptions subscribes, or subscribes again ([MQTT-3.8.4-3]): whether it did not have this one.
    pub(super) fn add(
        &mut self,
        own: &mut Vec<SubscriptionPlace>,
        filter: &str,
        session: u32,
        options: SubscriptionOptions,
    ) -> bool {
        self.generation += 1;
        self.seen.resize(self.seen.len().max(session as usize + 1), 0);
        if let Some(known) = self.find(filter).filter(|known| own.contains(known)) {
            // The same filter again replaces the subscription, and a client has no second one.
            self.regrade(known, session, options);
            return false;
        }
        let subscription = match share(filter) {
            Some((_, inner)) => SubscriptionPlace::Shared(self.join(filter, inner, session, options)),
            None => SubscriptionPlace::Alone(
                self.tree.insert(filter, Subscriber::Session { number: session, options }),
            ),
        };
        // Most clients have one subscription, and there may be thousands of clients.
        own.reserve_exact(usize::from(own.is_empty()));
        own.push(subscription);
        true
    }

    /// A session no longer subscribes to this.
    pub(super) fn remove(&mut self, own: &mut Vec<SubscriptionPlace>, filter: &str, session: u32) {
        let Some(unwanted) = self.find(filter) else { return };
        let Some(place) = own.iter().position(|known| *known == unwanted) else { return };
        own.remove(place);
        self.withdraw(unwanted, session);
    }

    /// Takes out the audience of a topic. To be put back.
    pub(super) fn take_audience(&mut self, topic: TopicId, name: &str) -> TopicAudience {
        let place = topic.0 as usize;
        if self.audiences.len() <= place {
            self.audiences.resize_with(place + 1, TopicAudience::default);
        }
        let mut audience = std::mem::take(&mut self.audiences[place]);
        if audience.generation != self.generation {
            self.work_out(name, &mut audience);
        }
        audience
    }

    pub(super) fn put_audience_back(&mut self, topic: TopicId, audience: TopicAudience) {
        self.audiences[topic.0 as usize] = audience;
    }

    /// The member of a shared subscription whose turn it is, whether or not it is there: so does Mosquitto.
    pub(super) fn next_of_share(&mut self, share: u32) -> (u32, SubscriptionOptions) {
        let share = &mut self.shares[share as usize];
        // The server may choose as it likes (§4.8.2); Mosquitto takes them in turn.
        let place = share.next % share.members.len();
        share.next = place + 1;
        share.members[place]
    }

    fn find(&self, filter: &str) -> Option<SubscriptionPlace> {
        match share(filter) {
            Some(_) => self.by_name.get(filter).map(|&share| SubscriptionPlace::Shared(share)),
            None => self.tree.find(filter).map(SubscriptionPlace::Alone),
        }
    }

    /// Mosquitto takes over the QoS alone, although all options were to be replaced ([MQTT-3.8.4-3], measured with 2.0.11).
    fn regrade(&mut self, subscription: SubscriptionPlace, session: u32, granted: SubscriptionOptions) {
        match subscription {
            SubscriptionPlace::Alone(place) => {
                for taker in self.tree.at(place) {
                    match taker {
                        Subscriber::Session { number, options } if *number == session => {
                            options.qos = granted.qos;
                        }
                        _ => {}
                    }
                }
            }
            // To subscribe again does not make a second member (§4.8.2).
            SubscriptionPlace::Shared(share) => {
                let mut members = self.shares[share as usize].members.iter_mut();
                if let Some((_, options)) = members.find(|(member, _)| *member == session) {
                    options.qos = granted.qos;
                }
            }
        }
    }

    fn join(&mut self, filter: &str, inner: &str, session: u32, options: SubscriptionOptions) -> u32 {
        // The whole text decides: another share name with the same filter is another subscription (§4.8.2).
        if let Some(&share) = self.by_name.get(filter) {
            let there = &mut self.shares[share as usize];
            // It comes behind all others, whose turn is before its own: Mosquitto's list begins with whoever is next.
            let last = there.next % there.members.len();
            there.members.insert(last, (session, options));
            there.next = last + 1;
            return share;
        }
        let vacant = self.vacant_shares.pop();
        let number = vacant.unwrap_or(self.shares.len() as u32);
        let place = self.tree.insert(inner, Subscriber::Share(number));
        let share =
            SharedSubscription { name: filter.into(), place, members: vec![(session, options)], next: 0 };
        match vacant {
            Some(number) => self.shares[number as usize] = share,
            None => self.shares.push(share),
        }
        self.by_name.insert(filter.into(), number);
        number
    }

    /// A session that had this subscription has it no longer.
    pub(super) fn withdraw(&mut self, subscription: SubscriptionPlace, session: u32) {
        self.generation += 1;
        match subscription {
            SubscriptionPlace::Alone(place) => {
                let unwanted = |taker: &Subscriber| matches!(taker, Subscriber::Session { number, .. } if *number == session);
                self.tree.remove_at(place, unwanted);
            }
            SubscriptionPlace::Shared(number) => self.leave(number, session),
        }
    }

    fn leave(&mut self, number: u32, session: u32) {
        let share = &mut self.shares[number as usize];
        let Some(place) = share.members.iter().position(|(member, _)| *member == session) else { return };
        share.members.remove(place);
        // Whose turn it is does not change when somebody before leaves.
        share.next -= usize::from(place < share.next);
        // It lasts as long as one session has it (§4.8.2).
        if share.members.is_empty() {
            self.by_name.remove(&share.name);
            self.tree.remove_at(
                share.place,
                |taker| matches!(taker, Subscriber::Share(share) if *share == number),
            );
            self.vacant_shares.push(number);
        }
    }

    fn work_out(&mut self, name: &str, audience: &mut TopicAudience) {
        let BrokerSubscriptions { tree, seen, .. } = self;
        let TopicAudience { generation, receivers, shares, own } = audience;
        receivers.clear();
        shares.clear();
        own.clear();
        tree.each_match(name, |taker| match *taker {
            // Apart from filters of a session's own: who has both gets two copies (§4.8.2).
            Subscriber::Share(share) => shares.push(share),
            Subscriber::Session { number, options } => {
                let seen = &mut seen[number as usize];
                if *seen == 0 {
                    receivers.push((number, options));
                    *seen = receivers.len() as u32;
                }
                // One copy, at the highest QoS of the session's subscriptions ([MQTT-3.3.4-2]).
                let granted = &mut receivers[*seen as usize - 1].1;
                *granted = granted.merged(options);
                if options.no_local {
                    own.push((number, None));
                }
            }
        });
        own.sort_unstable_by_key(|(number, _)| *number);
        own.dedup_by_key(|(number, _)| *number);
        if !own.is_empty() {
            work_out_own(tree, name, own);
        }
        // Only what was set is cleared: an audience costs nothing for sessions that are not in it.
        receivers.iter().for_each(|(number, _)| seen[*number as usize] = 0);
        *generation = self.generation;
    }
}

/// A subscription without No Local brings a session its own messages, whatever its others say: so does Mosquitto.
fn work_out_own(tree: &TopicTree<Subscriber>, name: &str, own: &mut [(u32, Option<SubscriptionOptions>)]) {
    tree.each_match(name, |taker| {
        let Subscriber::Session { number, options } = *taker else { return };
        if !options.no_local
            && let Ok(place) = own.binary_search_by_key(&number, |(session, _)| *session)
        {
            let granted = &mut own[place].1;
            *granted = Some(granted.map_or(options, |known| known.merged(options)));
        }
    });
}
