//! What all workers of a fleet read and none changes.

use std::io;
use std::sync::Arc;

use mqttlab_mqtt::client::ClientOptions;
use mqttlab_mqtt::{Qos, Version};
use mqttlab_plan::{Arrival, Group, PayloadMaker, Plan, qos};
use mqttlab_units::Seed;

use super::order::SentInOrder;
use crate::control::{Control, SocketFactory};
use crate::directory::Directory;

pub(super) struct Shared {
    pub(super) plan: Arc<Plan>,
    pub(super) control: Arc<Control>,
    pub(super) sockets: Arc<dyn SocketFactory>,
    pub(super) directory: Arc<Directory>,
    pub(super) order: SentInOrder,
    /// The number of the first client of each group.
    pub(super) starts: Vec<u32>,
    pub(super) groups: Vec<GroupFacts>,
}

/// What a group's plan means for its clients, worked out once.
pub(super) struct GroupFacts {
    pub(super) version: Version,
    pub(super) options: ClientOptions,
    pub(super) payloads: Option<PayloadMaker>,
    pub(super) publish_qos: Qos,
    pub(super) back_to_back: bool,
    pub(super) relay_qos: Qos,
}

impl Shared {
    /// # Errors
    /// A payload's file cannot be read.
    pub(super) fn new(
        plan: Arc<Plan>,
        sockets: Arc<dyn SocketFactory>,
        directory: Arc<Directory>,
        control: Arc<Control>,
    ) -> io::Result<Shared> {
        let groups =
            plan.groups.iter().map(|group| GroupFacts::new(group, plan.seed)).collect::<io::Result<_>>()?;
        let order = SentInOrder::new(&plan, &directory);
        Ok(Shared { starts: plan.client_numbers(), plan, control, sockets, directory, order, groups })
    }

    pub(super) fn group(&self, group: usize) -> &Group {
        &self.plan.groups[group]
    }
}

impl GroupFacts {
    fn new(group: &Group, seed: Seed) -> io::Result<GroupFacts> {
        let seed = seed.derive("payload").derive(&group.name);
        let publish = group.publish.as_ref();
        Ok(GroupFacts {
            version: group.mqtt.version.version(),
            options: group.session_options(),
            payloads: publish.map(|publish| PayloadMaker::new(&publish.payload, seed)).transpose()?,
            publish_qos: publish.map_or(Qos::AtMostOnce, |publish| qos(publish.qos)),
            back_to_back: publish.is_some_and(|publish| publish.arrival == Arrival::BackToBack),
            relay_qos: group.relay.as_ref().map_or(Qos::AtMostOnce, |relay| qos(relay.qos)),
        })
    }
}
