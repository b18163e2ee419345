//! Until when the messages of a topic are good for certain (MQTT 5 §3.3.2.3.3), which judges of a live run's messages have to know.

use crate::{ClientsChange, Event, Group, Plan, ProtocolVersion, Role, Roster};

impl Plan {
    /// By topic of the roster: the longest expiry interval of any message, in seconds; 0 where some message is good for ever. Empty
    /// where nothing expires, or where a message that waited too long may be missing for another reason: only Mosquitto is known to
    /// drop it whatever became of it before, and it keeps nothing for a subscription at QoS 0.
    pub fn expiries_s(&self, roster: &Roster) -> Vec<u32> {
        let is_mosquitto = self
            .servers
            .iter()
            .all(|server| server.kind == "mosquitto" && matches!(server.role, Role::Broker(_)));
        if !is_mosquitto || self.subscribes_at_qos_0() {
            return Vec::new();
        }
        let mut longest: Vec<Option<u32>> = vec![None; roster.topics().len()];
        for (number, (group, _)) in self.clients().enumerate() {
            let mut topics = roster.published(number as u32);
            for (publication, publish) in group.publications.iter().enumerate() {
                let (own, others) = topics.split_at(publish.topics as usize);
                topics = others;
                let expiry_s = longest_expiry_s(group, publication);
                for &topic in own {
                    let before = &mut longest[topic as usize];
                    *before = Some(before.map_or(expiry_s, |before| longer(before, expiry_s)));
                }
            }
        }
        let expiries: Vec<u32> = longest.into_iter().map(Option::unwrap_or_default).collect();
        if expiries.iter().any(|&expiry_s| expiry_s > 0) { expiries } else { Vec::new() }
    }

    fn subscribes_at_qos_0(&self) -> bool {
        let changes = self.events.iter().filter_map(|event| match event {
            Event::Clients(event) => Some(&event.change),
            _ => None,
        });
        let mut more = changes.filter_map(|change| match change {
            ClientsChange::Subscribe { qos, .. } => Some(*qos),
            _ => None,
        });
        self.groups.iter().flat_map(|group| &group.subscriptions).any(|subscription| subscription.qos == 0)
            || more.any(|qos| qos == 0)
    }
}

/// The longest interval of a publication's messages, whatever events make of it; 0: some are good for ever.
fn longest_expiry_s(group: &Group, publication: usize) -> u32 {
    if group.mqtt().is_none_or(|mqtt| mqtt.version != ProtocolVersion::V5) {
        return 0;
    }
    let contents = group.contents().enumerate();
    let its = contents.filter(|(number, _)| group.publication_of(*number) == Some(publication));
    its.map(|(_, publish)| publish.properties.expiry_s.unwrap_or(0)).reduce(longer).unwrap_or(0)
}

/// The longer of two intervals, of which 0 has no end.
fn longer(one: u32, other: u32) -> u32 {
    if one.min(other) == 0 { 0 } else { one.max(other) }
}
