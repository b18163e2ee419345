//! Who should have which topics for a time, as recordings say it.

use mqttlab_mqtt::RetainHandling;
use mqttlab_mqtt::topic::share;
use mqttlab_plan::{Plan, Roster, SubscriptionChanges};
use mqttlab_rows::{AsPublished, ChangedReceiver, Share, ShareMember};

/// Of a plan whose events change subscriptions.
pub fn changed_receivers(plan: &Plan, roster: &Roster) -> Vec<ChangedReceiver> {
    SubscriptionChanges::of(&plan.events).receivers(plan, roster).into_iter().map(row).collect()
}

/// Who should have what it publishes itself otherwise than what others publish.
pub fn own_receivers(roster: &Roster) -> Vec<ChangedReceiver> {
    roster.own_receivers().iter().cloned().map(row).collect()
}

fn row(one: mqttlab_plan::ChangedReceiver) -> ChangedReceiver {
    ChangedReceiver { topic: one.topic, client: one.client, at_first: one.at_first, flips: one.flips }
}

/// The shared subscriptions of a plan, each with its members and the topics that belong to it.
pub fn shares(roster: &Roster) -> Vec<Share> {
    let member = |&(client, qos): &(u32, u8)| ShareMember { client, qos: Some(qos) };
    let row = |share: &mqttlab_plan::PlannedShare| Share {
        filter: share.filter.clone(),
        topics: Vec::new(),
        members: share.members.iter().map(member).collect(),
        is_final: share.is_final,
    };
    let mut shares: Vec<Share> = roster.shares().iter().map(row).collect();
    for (number, topic) in (0..).zip(roster.topics()) {
        topic.shares.iter().for_each(|share| shares[*share as usize].topics.push(number));
    }
    shares
}

/// The clients that ask for Retain As Published, and whether anything stored may be sent to them.
pub fn as_published(plan: &Plan) -> Vec<AsPublished> {
    let changes = SubscriptionChanges::of(&plan.events);
    let mut found = Vec::new();
    for (number, (group, _)) in (0..).zip(plan.clients()) {
        let own = &group.subscriptions;
        if !own.iter().any(|wanted| wanted.retain_as_published) {
            continue;
        }
        let mut options: Vec<_> = own.iter().map(|wanted| (&wanted.filter, wanted.options())).collect();
        let changed = (0..).map_while(|change| changes.change(number, change));
        options.extend(changed.filter_map(|change| Some((&change.filter, change.options(group)?))));
        let is_sent_stored = options.iter().any(|(filter, wanted)| {
            share(&filter.0).is_none() && wanted.retain_handling != RetainHandling::Never
        });
        found.push(AsPublished { client: number, is_sent_stored });
    }
    found
}
