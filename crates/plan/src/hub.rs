//! Protocols around a hub in a plan: clients' sessions, and hubs. Which there are, and what can be set of them, is declared
//! beside each (`crates/protocol`).

use std::collections::BTreeMap;
use std::net::SocketAddr;

use mqttlab_protocol::{Envelope, HubProtocol, Member, MessageHead, Of, Settings, hub_protocol};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::{PlanError, require};
use crate::{Group, Server, ServiceTime, qos};

/// A client's session of a protocol around a hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HubPlan {
    /// The protocol's name.
    pub protocol: String,
    /// What a client calls itself; `{group}` and `{client}` (index in the group) are filled in.
    pub client_id: String,
    /// What is set of it, by name, lengths of time in nanoseconds; what is not named has its default.
    pub settings: BTreeMap<String, u64>,
}

/// A hub: what it does, for the program and for the simulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HubRole {
    /// The protocol's name.
    pub protocol: String,
    /// What is set of it, likewise.
    pub settings: BTreeMap<String, u64>,
    /// How long the simulated hub works on a datagram.
    pub service: ServiceTime,
}

/// What the hub as a program is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HubProgram {
    /// Where it listens (UDP).
    pub listen: SocketAddr,
    /// The protocol's name.
    pub protocol: String,
    /// What is set of it.
    pub settings: BTreeMap<String, u64>,
}

/// What is declared a file each, as JSON. Of protocols that have hubs the name, what it is for, the highest QoS, the bytes before a
/// topic and a payload, and what can be set of clients and hubs; of framings the name and what it is.
pub fn declared() -> serde_json::Value {
    let declared = |protocol: &&dyn HubProtocol, of: Of| {
        let settings = protocol.settings().iter().filter(|setting| setting.of == of);
        let described = settings.map(|setting| {
            json!({
                "name": setting.name,
                "default": setting.default,
                "min": setting.min,
                "max": setting.max,
                "words": setting.words,
            })
        });
        described.collect::<Vec<_>>()
    };
    let protocols = mqttlab_protocol::HUB_PROTOCOLS.iter().map(|protocol| {
        json!({
            "name": protocol.name(),
            "words": protocol.words(),
            "qos_max": protocol.qos_max().level(),
            "head_bytes": head_bytes(*protocol, "", 0),
            "client": declared(protocol, Of::Client),
            "hub": declared(protocol, Of::Hub),
        })
    });
    let framings = mqttlab_layers::FRAMINGS.iter();
    let framings = framings.map(|framing| json!({"name": framing.name(), "words": framing.words()}));
    json!({
        "hubs": protocols.collect::<Vec<_>>(),
        "framings": framings.collect::<Vec<_>>(),
    })
}

/// How long the head of a message is.
fn head_bytes(protocol: &dyn HubProtocol, topic: &str, payload_bytes: u32) -> u64 {
    let envelope = Envelope { id: u16::MAX, qos: protocol.qos_max(), dup: true };
    protocol.head(&MessageHead { envelope, topic, payload_bytes }).len() as u64
}

/// What is spoken at hubs' ports.
pub type Hubs = BTreeMap<u16, &'static dyn HubProtocol>;

impl HubPlan {
    /// The protocol.
    ///
    /// # Panics
    /// Where there is none of this name, which no plan that was checked has.
    pub fn speaks(&self) -> &'static dyn HubProtocol {
        hub_protocol(&self.protocol).expect("the plan was checked")
    }

    /// Who a client of the group is to its session.
    ///
    /// # Panics
    /// For settings that no plan that was checked has.
    pub fn member(&self, group: &Group, client: u32) -> Member {
        let filters = group.subscriptions.iter();
        let settings = Settings::new(self.speaks().settings(), Of::Client, &self.settings);
        Member {
            client_id: group.client_id(client),
            filters: filters.map(|wanted| wanted.filter.fill(&group.name, client, 0)).collect(),
            settings: settings.expect("the plan was checked"),
        }
    }
}

/// A group's clients and their server speak the same protocol, and ask of it what it has.
pub(crate) fn check(server: &Server, group: &Group, mtu: usize, place: &str) -> Result<(), PlanError> {
    let same = group.hub().map(|hub| &hub.protocol) == server.hub().map(|hub| &hub.protocol);
    require(same, &format!("{place}.connects_to"), || match (group.hub(), server.hub()) {
        (Some(hub), _) => format!("is `{}`, which is no hub of {}", server.name, hub.protocol),
        (None, _) => format!("is `{}`, a hub, which speaks something else", server.name),
    })?;
    let Some(hub) = group.hub() else { return Ok(()) };
    let protocol = hub.speaks();
    require(group.relay.is_none(), &format!("{place}.relay"), || {
        format!("is not possible with {}", hub.protocol)
    })?;
    for (index, subscription) in group.subscriptions.iter().enumerate() {
        require(
            !subscription.filter.0.starts_with("$share/"),
            &format!("{place}.subscriptions[{index}]"),
            || format!("is shared, which {} does not know", hub.protocol),
        )?;
    }
    let Some(publish) = &group.publish else { return Ok(()) };
    let allowed = qos(publish.qos) <= protocol.qos_max();
    require(allowed && !publish.retain, &format!("{place}.publish"), || {
        let most = protocol.qos_max().level();
        format!(
            "has QoS {} or is retained, but {} has QoS {most} at most and keeps nothing",
            publish.qos, hub.protocol
        )
    })?;
    let (last, topics) = (group.count.saturating_sub(1), publish.topics.saturating_sub(1));
    let (topic, payload) = (publish.topic.fill(&group.name, last, topics), publish.payload.size().0);
    let head = head_bytes(protocol, &topic, payload as u32);
    require(head + payload <= mtu as u64, &format!("{place}.publish.payload"), || {
        format!(
            "has {payload} B, but behind a head of {head} B a datagram of this MTU has room for {} B, and none is \
             fragmented",
            (mtu as u64).saturating_sub(head)
        )
    })
}

/// There is such a protocol, and what is set of it can be.
pub(crate) fn bounds(
    protocol: &str,
    of: Of,
    settings: &BTreeMap<String, u64>,
    place: &str,
) -> Result<(), PlanError> {
    let known = hub_protocol(protocol);
    require(known.is_some(), &format!("{place}.protocol"), || {
        let names: Vec<&str> =
            mqttlab_protocol::HUB_PROTOCOLS.iter().map(|protocol| protocol.name()).collect();
        format!("is {protocol:?}, but known are {}", names.join(", "))
    })?;
    let outcome =
        known.map_or(Ok(Settings::default()), |known| Settings::new(known.settings(), of, settings));
    require(outcome.is_ok(), &format!("{place}.settings"), || {
        outcome.as_ref().err().map_or(String::new(), ToString::to_string)
    })
}
