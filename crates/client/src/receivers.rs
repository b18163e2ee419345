//! Who should have which topics for a time, as recordings say it.

use mqttlab_plan::{Plan, Roster, SubscriptionChanges};
use mqttlab_rows::ChangedReceiver;

/// Of a plan whose events change subscriptions.
pub fn changed_receivers(plan: &Plan, roster: &Roster) -> Vec<ChangedReceiver> {
    let found = SubscriptionChanges::of(&plan.events).receivers(plan, roster);
    let row = |one: mqttlab_plan::ChangedReceiver| ChangedReceiver {
        topic: one.topic,
        client: one.client,
        at_first: one.at_first,
        flips: one.flips,
    };
    found.into_iter().map(row).collect()
}
