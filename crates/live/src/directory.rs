//! Who is who in a live run: the numbers of clients and topics, and who should receive what.
//!
//! Worked out from the plan before anything starts, because the recording stores it before its first row, and
//! because a message's expected deliveries are counted when it is sent.
//!
//! What it does not know: which member of a shared subscription (`$share/...`) the broker chooses. The recording
//! expects nothing of any of them, so that nothing of theirs counts as lost; the live figures expect one delivery.

use std::collections::BTreeMap;

use mqttlab_plan::{Group, Plan};
use mqttlab_recording::{Client, Layout, Topic};

use crate::clients::Subscriptions;
use crate::clock::Clock;
use crate::wire::DIRECT;

/// Numbers behind names.
pub struct Directory {
    layout: Layout,
    numbers: BTreeMap<String, u32>,
    /// For each client the topics it publishes to, in the order of `{topic}`; empty when it does not publish.
    published: Vec<Vec<u32>>,
    /// For each topic how many deliveries a message causes.
    deliveries: Vec<u32>,
}

impl Directory {
    /// For a plan, and a run whose time begins with `clock`.
    pub fn new(plan: &Plan, clock: &Clock) -> Directory {
        let mut directory = Directory {
            layout: Layout {
                producer: "live".into(),
                seed: plan.seed.0,
                started_unix_ns: clock.started_unix_ns(),
                hosts: plan.hosts.iter().map(|host| host.name.clone()).collect(),
                links: links(plan),
                clients: plan.groups.iter().flat_map(clients).collect(),
                measurement_end_ns: u64::MAX,
                late_after_ns: plan
                    .groups
                    .iter()
                    .filter_map(|group| group.late_after)
                    .min()
                    .map(|late| late.as_ns()),
                ..Layout::default()
            },
            numbers: BTreeMap::new(),
            published: Vec::new(),
            deliveries: Vec::new(),
        };
        for group in &plan.groups {
            for client in 0..group.count {
                let topics = directory.published_by(group, client);
                directory.published.push(topics);
            }
        }
        directory.find_receivers(&Subscriptions::of(plan));
        directory
    }

    /// As the recording stores it.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The topics that `client` publishes to of its own accord, in the order of `{topic}`.
    pub fn published(&self, client: u32) -> &[u32] {
        &self.published[client as usize]
    }

    /// How many deliveries a message to `topic` causes: one for each receiver, and one for each shared subscription.
    pub fn deliveries(&self, topic: u32) -> u32 {
        self.deliveries[topic as usize]
    }

    fn published_by(&mut self, group: &Group, client: u32) -> Vec<u32> {
        let Some(publish) = &group.publish else { return Vec::new() };
        (0..publish.topics).map(|topic| self.number(publish.topic.fill(&group.name, client, topic))).collect()
    }

    fn number(&mut self, name: String) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(name.clone()).or_insert_with(|| {
            self.layout.topics.push(Topic { name, receivers: 0 });
            next
        })
    }

    fn find_receivers(&mut self, subscriptions: &Subscriptions<'_>) {
        let mut sets: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        for topic in &mut self.layout.topics {
            let audience = subscriptions.audience(&topic.name);
            self.deliveries.push(audience.clients.len() as u32 + audience.shares);
            let next = sets.len() as u32;
            topic.receivers = *sets.entry(audience.clients.into_iter().collect()).or_insert(next);
        }
        self.layout.receivers = vec![Vec::new(); sets.len()];
        for (set, index) in sets {
            self.layout.receivers[index as usize] = set;
        }
    }
}

/// The plan's links, and one that stands for the directions without any.
fn links(plan: &Plan) -> Vec<String> {
    let direct = plan.network.paths.iter().any(|path| path.hops.is_empty()).then(|| DIRECT.to_owned());
    plan.network.links.iter().map(|link| link.name.clone()).chain(direct).collect()
}

fn clients(group: &Group) -> impl Iterator<Item = Client> + '_ {
    (0..group.count).map(|client| Client {
        name: client_id(group, client),
        group: group.name.clone(),
        host: (group.host + client as usize * group.host_step) as u16,
    })
}

/// The MQTT client identifier of the `client`-th client of a group.
pub fn client_id(group: &Group, client: u32) -> String {
    group.mqtt.client_id.replace("{group}", &group.name).replace("{client}", &client.to_string())
}
