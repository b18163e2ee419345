//! Who is who in a live run, as the plan's roster numbers it and the recording stores it.

use mqttlab_client::{as_published, changed_receivers, own_receivers, shares};
use mqttlab_plan::{Plan, Roster, RosterTopic};
use mqttlab_recording::{Client, Layout, Sent, Session, SummaryRule, Topic};

use crate::clock::Clock;

/// Numbers behind names.
pub struct Directory {
    layout: Layout,
    roster: Roster,
}

impl Directory {
    /// For a plan, and a run whose time begins with `clock`.
    pub fn new(plan: &Plan, clock: &Clock) -> Directory {
        let roster = Roster::of(plan);
        let layout = Layout {
            producer: "live".into(),
            seed: plan.seed.0,
            started_unix_ns: clock.started_unix_ns(),
            hosts: plan.hosts.iter().map(|host| host.name.clone()).collect(),
            links: plan.link_names(),
            clients: clients(plan),
            topics: roster
                .topics()
                .iter()
                .map(|topic| Topic {
                    name: topic.name.clone(),
                    receivers: topic.receivers,
                    shares: topic.shares.len() as u32,
                    relayed: topic.relayed,
                })
                .collect(),
            receivers: roster.receivers().to_vec(),
            changed_receivers: changed_receivers(plan, &roster),
            as_published: as_published(plan),
            own_receivers: own_receivers(&roster),
            shares: shares(&roster),
            measurement_end_ns: u64::MAX,
            late_after_ns: plan.late_after_ns(),
            inflight_limits: plan.inflight_limits(),
            expiries_s: plan.expiries_s(&roster),
            summary: plan
                .recording
                .summary
                .map(|rule| SummaryRule { fold_bytes: rule.fold_bytes, rows_most: rule.rows_most }),
            ..Layout::default()
        };
        Directory { layout, roster }
    }

    /// As the recording stores it.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The topics that somebody publishes to of their own accord, by number.
    pub fn topics(&self) -> &[RosterTopic] {
        self.roster.topics()
    }

    /// The topics that `client` publishes to of its own accord, in the order of `{topic}`.
    pub fn published(&self, client: u32) -> &[u32] {
        self.roster.published(client)
    }

    /// A topic that somebody publishes to of their own accord: its server, and its name.
    pub fn topic(&self, topic: u32) -> (usize, &str) {
        let entry = &self.roster.topics()[topic as usize];
        (entry.server, &entry.name)
    }

    /// How many deliveries a message causes: one for each receiver, and one for each shared subscription.
    pub fn deliveries(&self, row: &Sent) -> u32 {
        self.roster.deliveries(row.topic, row.publisher)
    }
}

fn clients(plan: &Plan) -> Vec<Client> {
    let of = |(group, client): (&mqttlab_plan::Group, u32)| Client {
        name: group.client_id(client),
        group: group.name.clone(),
        host: group.host_of(client) as u16,
        // What a program does with its session is in its packets alone.
        session: group
            .program
            .is_none()
            .then(|| Session { expiry_ns: group.session_expiry().map(|expiry| expiry.as_ns()) }),
        is_program: group.program.is_some(),
    };
    plan.clients().map(of).collect()
}
