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
    /// For each session whether it is in the audience that is being worked out.
    seen: Vec<bool>,
}

/// Who receives a topic's messages.
#[derive(Clone, Debug, Default)]
pub(super) struct TopicAudience {
    generation: u32,
    /// Sessions, once for each copy that they get, and what it is granted.
    pub(super) receivers: Vec<(u32, SubscriptionOptions)>,
    /// Shared subscriptions, of which one member receives each message.
    pub(super) shares: Vec<u32>,
}

/// How many copies of a message a session gets whose filters overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Overlap {
    /// One, by the narrowest of them: Mosquitto 2.0.11 with 3.1 and 3.1.1, although the highest QoS was to decide
    /// ([MQTT-3.3.5-1] of 3.1.1).
    #[default]
    Once,
    /// One for each of them: Mosquitto 2.0.11 with MQTT 5, which leaves the choice (§3.3.4).
    Each,
}

#[derive(Clone, Copy, Debug)]
enum Subscriber {
    Session { number: u32, options: SubscriptionOptions, overlap: Overlap },
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
        (session, overlap): (u32, Overlap),
        options: SubscriptionOptions,
    ) -> bool {
        self.generation += 1;
        self.seen.resize(self.seen.len().max(session as usize + 1), false);
        if let Some(known) = self.find(filter).filter(|known| own.contains(known)) {
            // The same filter again replaces the subscription, and a client has no second one.
            self.regrade(known, session, options);
            return false;
        }
        let subscription = match share(filter) {
            Some((_, inner)) => SubscriptionPlace::Shared(self.join(filter, inner, session, options)),
            None => SubscriptionPlace::Alone(
                self.tree.insert(filter, Subscriber::Session { number: session, options, overlap }),
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
                        Subscriber::Session { number, options, .. } if *number == session => {
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
        let TopicAudience { generation, receivers, shares } = audience;
        receivers.clear();
        shares.clear();
        tree.each_match(name, |taker| match *taker {
            // Apart from filters of a session's own: who has both gets two copies (§4.8.2).
            Subscriber::Share(share) => shares.push(share),
            Subscriber::Session { number, options, overlap } => {
                let was_seen = std::mem::replace(&mut seen[number as usize], true);
                if !was_seen || overlap == Overlap::Each {
                    receivers.push((number, options));
                }
            }
        });
        // Only what was set is cleared: an audience costs nothing for sessions that are not in it.
        receivers.iter().for_each(|(number, _)| seen[*number as usize] = false);
        *generation = self.generation;
    }
}
