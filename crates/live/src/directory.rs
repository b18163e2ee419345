//! Who is who in a live run: the numbers of clients and topics, and who should receive what.
//!
//! Worked out from the plan before anything starts, because the recording stores it before its first row, and
//! because a message's expected deliveries are counted when it is sent.
//!
//! What it does not know: shared subscriptions (`$share/...`), whose receiver the broker chooses. Nothing is
//! expected of them, so nothing of theirs counts as lost.

use std::collections::{BTreeMap, BTreeSet};

use mqttlab_plan::{Group, Plan};
use mqttlab_recording::{Client, Layout, Topic};

use crate::clock::Clock;
use crate::wire::DIRECT;

/// Numbers behind names.
pub struct Directory {
    layout: Layout,
    numbers: BTreeMap<String, u32>,
    /// For each client the topics it publishes to, in the order of `{topic}`; empty when it does not publish.
    published: Vec<Vec<u32>>,
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
                late_after_ns: plan.groups.iter().filter_map(|group| group.late_after).min().map(|late| late.as_ns()),
                ..Layout::default()
            },
            numbers: BTreeMap::new(),
            published: Vec::new(),
        };
        let filters = Filters::new(plan);
        for group in &plan.groups {
            for client in 0..group.count {
                let topics = directory.published_by(group, client);
                directory.published.push(topics);
            }
        }
        directory.add_relayed(plan, &filters);
        directory.find_receivers(&filters);
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

    /// The number of a topic, relayed ones included.
    pub fn topic(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
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

    /// Topics of messages that relays make of others. A relay that hears itself would make endless ones; what
    /// comes after `RELAY_ROUNDS` is not expected.
    fn add_relayed(&mut self, plan: &Plan, filters: &Filters) {
        let starts = plan.client_numbers();
        let mut known = 0;
        for _ in 0..RELAY_ROUNDS {
            let fresh: Vec<String> = self.layout.topics[known..].iter().map(|topic| topic.name.clone()).collect();
            known = self.layout.topics.len();
            for name in fresh {
                let receivers = filters.matching(&name);
                for (group, start) in plan.groups.iter().zip(&starts) {
                    let Some(relay) = &group.relay else { continue };
                    if receivers.range(*start..start + group.count).next().is_some() {
                        self.number(format!("{name}{}", relay.topic_suffix));
                    }
                }
            }
        }
    }

    fn find_receivers(&mut self, filters: &Filters) {
        let mut sets: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        for topic in &mut self.layout.topics {
            let receivers: Vec<u32> = filters.matching(&topic.name).into_iter().collect();
            let next = sets.len() as u32;
            topic.receivers = *sets.entry(receivers).or_insert(next);
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

/// All subscriptions, so that a topic's receivers are found without asking every client.
#[derive(Default)]
struct Filters {
    exact: BTreeMap<String, BTreeSet<u32>>,
    wild: BTreeMap<String, BTreeSet<u32>>,
}

impl Filters {
    fn new(plan: &Plan) -> Filters {
        let mut filters = Filters::default();
        for (group, start) in plan.groups.iter().zip(plan.client_numbers()) {
            for subscription in &group.subscriptions {
                for client in 0..group.count {
                    filters.add(subscription.filter.fill(&group.name, client, 0), start + client);
                }
            }
        }
        filters
    }

    fn add(&mut self, filter: String, client: u32) {
        if filter.starts_with("$share/") {
            return;
        }
        let map = if filter.contains(['+', '#']) { &mut self.wild } else { &mut self.exact };
        map.entry(filter).or_default().insert(client);
    }

    fn matching(&self, topic: &str) -> BTreeSet<u32> {
        let mut receivers = self.exact.get(topic).cloned().unwrap_or_default();
        for (filter, clients) in &self.wild {
            if matches(filter, topic) {
                receivers.extend(clients);
            }
        }
        receivers
    }
}

/// Whether a topic belongs to a filter (MQTT 5 §4.7).
fn matches(filter: &str, topic: &str) -> bool {
    // [MQTT-4.7.2-1]: a filter that starts with a wildcard does not match topics that start with `$`.
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut levels = topic.split('/');
    for wanted in filter.split('/') {
        if wanted == "#" {
            return true;
        }
        match levels.next() {
            Some(level) if wanted == "+" || wanted == level => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

const RELAY_ROUNDS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_as_the_specification_says() {
        let table = [
            ("a/b", "a/b", true),
            ("a/+", "a/b", true),
            ("a/+", "a/b/c", false),
            ("a/#", "a", true),
            ("a/#", "a/b/c", true),
            ("#", "$SYS/x", false),
            ("+/b", "/b", true),
            ("a/b", "a/b/", false),
        ];
        for (filter, topic, expected) in table {
            assert_eq!(matches(filter, topic), expected, "{filter} and {topic}");
        }
    }
}
