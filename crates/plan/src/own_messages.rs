//! Whether a client should have what it publishes itself. A subscription with No Local does not bring it (MQTT 5 §3.8.3.1).

use mqttlab_mqtt::topic::{matches, share};

use crate::{ChangedReceiver, Plan, RosterTopic, SubscriptionChanges};

/// Of clients that ask for No Local: the topics that they publish to and whose messages by others they should have, but not, or not
/// always, their own. In the order of clients and topics.
pub(crate) fn own_receivers(
    plan: &Plan,
    topics: &[RosterTopic],
    published: &[Vec<u32>],
) -> Vec<ChangedReceiver> {
    let changes = SubscriptionChanges::of(&plan.events);
    let mut found = Vec::new();
    for ((client, (group, index)), published) in (0..).zip(plan.clients()).zip(published) {
        if !group.subscriptions.iter().any(|wanted| wanted.no_local) {
            continue;
        }
        let steps: Vec<Vec<(String, bool)>> = (0..=changes.count(client))
            .map(|done| {
                let filters = changes.filters(group, client, done).into_iter();
                let filled =
                    filters.map(|(filter, options)| (filter.fill(&group.name, index, 0), options.no_local));
                filled.filter(|(filter, _)| share(filter).is_none()).collect()
            })
            .collect();
        let mut published = published.clone();
        published.sort_unstable();
        published.dedup();
        for topic in published {
            let name = &topics[topic as usize].name;
            let has = |is_own: bool| -> Vec<bool> {
                let brings =
                    |(filter, no_local): &(String, bool)| !(is_own && *no_local) && matches(filter, name);
                steps.iter().map(|filters| filters.iter().any(brings)).collect()
            };
            let own = has(true);
            if own != has(false) {
                let flips = (0..).zip(own.windows(2)).filter(|(_, pair)| pair[0] != pair[1]);
                let flips = flips.map(|(change, _)| change).collect();
                found.push(ChangedReceiver { client, topic, at_first: own[0], flips });
            }
        }
    }
    found
}
