//! Who should receive what.
//!
//! A message reaches everyone whose filter matches its topic, once each however many filters do, and everyone whose
//! filter matches the topic of a copy that a relay makes of it: the copy carries the same identity. Of a shared
//! subscription (MQTT 5 §4.8.2) one member receives it, and the broker chooses which: such a delivery is
//! expected, but of nobody in particular. A server's messages reach only its own clients.
//!
//! What it does not model: who is connected, and brokers that deliver once for each matching filter.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Backend, ClientsChange, Event, Plan, Relay, zeromq};
use mqttlab_mqtt::TopicTree;
use mqttlab_mqtt::topic::share;
use mqttlab_zmtp::prefixes::Prefixes;

/// Every subscription of a plan.
pub struct PlannedSubscriptions<'p> {
    plan: &'p Plan,
    /// By server.
    trees: Vec<TopicTree<PlannedTaker>>,
    /// Of proxies of ZeroMQ, whose subscriptions are prefixes.
    prefixes: Vec<Prefixes>,
    shares: Vec<PlannedShare>,
}

/// A shared subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedShare {
    /// `$share/NAME/FILTER`.
    pub filter: String,
    /// Index of the server.
    pub server: usize,
    /// The clients that have it, in their order, with the quality of service that each asks for.
    pub members: Vec<(u32, u8)>,
    /// Whether the server chooses once for each message, and holds none at QoS 0 for a member that is away: so does Mosquitto, and
    /// the simulated broker, for clients that are connected to it.
    pub is_final: bool,
}

/// Who receives a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageAudience {
    /// Clients, by number.
    pub clients: BTreeSet<u32>,
    /// Shared subscriptions, by number.
    pub shares: BTreeSet<u32>,
    /// Whether a relay makes copies.
    pub relayed: bool,
}

#[derive(Clone, Copy)]
struct PlannedTaker {
    group: usize,
    of: TakerKind,
}

#[derive(Clone, Copy)]
enum TakerKind {
    Client(u32),
    Share(u32),
}

impl<'p> PlannedSubscriptions<'p> {
    /// All of them, by filter.
    pub fn of(plan: &'p Plan) -> PlannedSubscriptions<'p> {
        let mut trees: Vec<TopicTree<PlannedTaker>> = plan.servers.iter().map(|_| TopicTree::new()).collect();
        let mut prefixes = vec![Prefixes::default(); plan.servers.len()];
        let (mut shares, mut numbers) = (Vec::new(), BTreeMap::new());
        for (group, (members, start)) in plan.groups.iter().zip(plan.client_numbers()).enumerate() {
            let server = plan.serving(members);
            let tree = &mut trees[server];
            for subscription in &members.subscriptions {
                for client in 0..members.count {
                    let filter = subscription.filter.fill(&members.name, client, 0);
                    if members.zeromq().is_some() {
                        prefixes[server].add(zeromq::prefix(&filter).as_bytes(), start + client);
                        continue;
                    }
                    let Some((_, inner)) = share(&filter) else {
                        tree.insert(&filter, PlannedTaker { group, of: TakerKind::Client(start + client) });
                        continue;
                    };
                    let next = shares.len() as u32;
                    let share = *numbers.entry((server, filter.clone())).or_insert(next);
                    if share == next {
                        tree.insert(inner, PlannedTaker { group, of: TakerKind::Share(share) });
                        let is_final =
                            plan.backend == Backend::Sim || plan.servers[server].kind == "mosquitto";
                        let filter = filter.clone();
                        shares.push(PlannedShare { filter, server, members: Vec::new(), is_final });
                    }
                    let share = &mut shares[share as usize];
                    share.join(start + client, subscription.qos);
                    // A gateway may hold what the broker has sent, and what programs do their frames tell alone.
                    share.is_final &= members.mqtt().is_some()
                        && members.connects_to == server
                        && members.program.is_none();
                }
            }
        }
        // Who ever subscribes may receive it; when it did, its recording says.
        let starts = plan.client_numbers();
        for event in &plan.events {
            let Event::Clients(event) = event else { continue };
            let ClientsChange::Subscribe { filter, .. } = &event.change else { continue };
            for client in &event.clients {
                let group = starts.partition_point(|start| start <= client) - 1;
                let members = &plan.groups[group];
                let filter = filter.fill(&members.name, client - starts[group], 0);
                let taker = PlannedTaker { group, of: TakerKind::Client(*client) };
                trees[plan.serving(members)].insert(&filter, taker);
            }
        }
        PlannedSubscriptions { plan, trees, prefixes, shares }
    }

    /// Shared subscriptions, by number.
    pub fn shares(&self) -> &[PlannedShare] {
        &self.shares
    }

    /// Who receives what is published to a server's `topic`, copies by relays included. A relay that hears itself would make
    /// endless copies; what comes after `RELAY_ROUNDS` is not expected.
    pub fn audience(&self, server: usize, topic: &str) -> MessageAudience {
        let (mut clients, mut shares) = (self.prefixes[server].takers(topic.as_bytes()), BTreeSet::new());
        let mut names = BTreeSet::from([topic.to_owned()]);
        let mut relayed = false;
        for _ in 0..=RELAY_ROUNDS {
            let mut copies = BTreeSet::new();
            for name in &names {
                self.trees[server].each_match(name, |taker| {
                    match taker.of {
                        TakerKind::Client(client) => clients.insert(client),
                        TakerKind::Share(share) => shares.insert(share),
                    };
                    copies
                        .extend(self.relay(taker.group).map(|relay| format!("{name}{}", relay.topic_suffix)));
                });
            }
            relayed |= !copies.is_empty();
            names = copies;
        }
        MessageAudience { clients, shares, relayed }
    }

    fn relay(&self, group: usize) -> Option<&Relay> {
        self.plan.groups[group].relay.as_ref()
    }
}

impl PlannedShare {
    /// Clients come in their order. A second subscription takes the place of the first (§4.8.2).
    fn join(&mut self, client: u32, qos: u8) {
        match self.members.binary_search_by_key(&client, |(member, _)| *member) {
            Ok(place) => self.members[place].1 = qos,
            Err(place) => self.members.insert(place, (client, qos)),
        }
    }
}

const RELAY_ROUNDS: usize = 4;
