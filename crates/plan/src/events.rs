//! What changes while a run goes on: links, servers, clients.
//!
//! A plan has its events in the order of time, with absolute times. Whoever writes the plan has resolved repetitions,
//! lengths of time and shares of a group.
//!
//! What begins with an event is a change, with a number. Several events begin one change where links or clients differ.
//! The event that undoes a change has its number, as names are for readers and may be alike. Changes may overlap.
//!
//! ```text
//!  publishing begins ──────► measurement ──────► cool-down
//!  at_ns = 0                 warm_up_ns          warm_up_ns + duration_ns
//! ```
//!
//! What it does not hold: events before publishing begins. How long clients take to connect is measured, not planned.

mod kinds;
mod published;
mod subscribed;

use std::collections::BTreeSet;

use mqttlab_net::LinkChange;
use mqttlab_net::radio::{MediumChange, MobilitySpec};
use mqttlab_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::bounds::{self, NAME_BYTES_MAX};
use crate::error::{PlanError, require};
use crate::topic::TopicPattern;
use crate::{Backend, NetworkKind, Plan};

pub use kinds::ChangeKind;
pub use published::PublishingChanges;
pub use subscribed::{ChangedReceiver, SubscriptionChange, SubscriptionChanges};

/// One change, by what it acts on: the field `links`, `medium`, `server` or `clients` tells which.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Event {
    /// Of links.
    Links(LinksEvent),
    /// Of a radio channel.
    Medium(MediumEvent),
    /// Of a server.
    Server(ServerEvent),
    /// Of clients.
    Clients(ClientsEvent),
}

/// Some links change at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinksEvent {
    /// Since publishing began, the warm-up included.
    #[serde(rename = "at_ns")]
    pub at: Duration,
    /// As tables and figures show it.
    pub name: String,
    /// The number of the change that begins with it; none where it only ends others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<u32>,
    /// The numbers of the changes that it ends: its own, and those that it undoes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<u32>,
    /// The links' names.
    pub links: Vec<String>,
    /// What happens to each of them.
    pub change: LinkChange,
}

/// A radio channel changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MediumEvent {
    /// Since publishing began, the warm-up included.
    #[serde(rename = "at_ns")]
    pub at: Duration,
    /// As tables and figures show it.
    pub name: String,
    /// The number of the change that begins with it; none where it only ends others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<u32>,
    /// The numbers of the changes that it ends: its own, and those that it undoes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<u32>,
    /// The channel's name.
    pub medium: String,
    /// What happens on it.
    pub change: MediumChange,
}

/// A server changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerEvent {
    /// Since publishing began, the warm-up included.
    #[serde(rename = "at_ns")]
    pub at: Duration,
    /// As tables and figures show it.
    pub name: String,
    /// The number of the change that begins with it; none where it only ends others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<u32>,
    /// The numbers of the changes that it ends: its own, and those that it undoes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<u32>,
    /// The server's name.
    pub server: String,
    /// What happens to it.
    pub change: ServerChange,
}

/// Some clients change at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientsEvent {
    /// Since publishing began, the warm-up included.
    #[serde(rename = "at_ns")]
    pub at: Duration,
    /// As tables and figures show it.
    pub name: String,
    /// The number of the change that begins with it; none where it only ends others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<u32>,
    /// The numbers of the changes that it ends: its own, and those that it undoes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<u32>,
    /// The clients' numbers, ascending.
    pub clients: Vec<u32>,
    /// What happens to each of them.
    pub change: ClientsChange,
}

/// What happens to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerChange {
    /// Which of the changes.
    pub kind: ServerChangeKind,
    /// Whether what the server stored is still there when it starts again. Means something for `stop`, `kill` and `start`.
    pub persistence: bool,
}

/// The changes of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerChangeKind {
    /// It ends in order (SIGTERM).
    Stop,
    /// It ends at once (SIGKILL).
    Kill,
    /// It stands still (SIGSTOP).
    Pause,
    /// It goes on after a pause (SIGCONT).
    Continue,
    /// It starts again after a stop or kill.
    Start,
}

/// What happens to clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ClientsChange {
    /// They disconnect in order, and stay away until they return.
    Disconnect,
    /// They fall silent without a word, as after a loss of power, and stay away until they return.
    Vanish,
    /// They connect again after they disconnected or vanished.
    Return,
    /// They read nothing from their connections.
    StopReading,
    /// They read again.
    ContinueReading,
    /// They subscribe to a filter more.
    Subscribe {
        /// The filter.
        filter: TopicPattern,
        /// Its QoS.
        qos: u8,
    },
    /// They unsubscribe from a filter.
    Unsubscribe {
        /// The filter.
        filter: TopicPattern,
    },
    /// Messages that are due from now on are others, or more, or fewer.
    Publish {
        /// What becomes of publications of their group, each at most once.
        publications: Vec<PublicationChange>,
    },
    /// They publish some messages at once, besides those that are due anyway.
    Burst {
        /// Indices of publications of their group.
        publications: Vec<usize>,
        /// How many messages of each of them.
        messages: u32,
    },
}

/// What a publication is from an event on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublicationChange {
    /// Index of the publication in its group.
    pub publication: usize,
    /// The number of what its messages are: the index itself, or that of one of the group's `changed_publications`, counted on
    /// behind its `publications`.
    pub content: usize,
    /// How often messages are due; `null`: as the publication says.
    pub rate: Option<ChangedRate>,
}

/// A rate in place of a publication's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangedRate {
    /// Between two messages; `null`: none are due.
    pub interval_ns: Option<u64>,
}

impl Event {
    /// When it is due, since publishing began.
    pub fn at(&self) -> Duration {
        match self {
            Event::Links(event) => event.at,
            Event::Medium(event) => event.at,
            Event::Server(event) => event.at,
            Event::Clients(event) => event.at,
        }
    }

    /// The links that it changes.
    pub fn links(&self) -> &[String] {
        match self {
            Event::Links(event) => &event.links,
            Event::Medium(_) | Event::Server(_) | Event::Clients(_) => &[],
        }
    }

    /// As tables and figures show it.
    pub fn name(&self) -> &str {
        match self {
            Event::Links(event) => &event.name,
            Event::Medium(event) => &event.name,
            Event::Server(event) => &event.name,
            Event::Clients(event) => &event.name,
        }
    }

    /// The number of the change that begins with it.
    pub fn begins(&self) -> Option<u32> {
        match self {
            Event::Links(event) => event.begins,
            Event::Medium(event) => event.begins,
            Event::Server(event) => event.begins,
            Event::Clients(event) => event.begins,
        }
    }

    /// The numbers of the changes that it ends.
    pub fn ends(&self) -> &[u32] {
        match self {
            Event::Links(event) => &event.ends,
            Event::Medium(event) => &event.ends,
            Event::Server(event) => &event.ends,
            Event::Clients(event) => &event.ends,
        }
    }
}

/// By the field that names what it acts on, so that the message for a wrong event is about one kind of event.
impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Event, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let read = if value.get("links").is_some() {
            serde_json::from_value(value).map(Event::Links)
        } else if value.get("medium").is_some() {
            serde_json::from_value(value).map(Event::Medium)
        } else if value.get("server").is_some() {
            serde_json::from_value(value).map(Event::Server)
        } else if value.get("clients").is_some() {
            serde_json::from_value(value).map(Event::Clients)
        } else {
            return Err(D::Error::custom("an event needs one of `links`, `medium`, `server`, `clients`"));
        };
        read.map_err(D::Error::custom)
    }
}

impl Plan {
    /// Whether an event may be fired by hand while a run of this plan goes on.
    ///
    /// # Errors
    /// It acts on what is not there, has a wrong value, or is none that can be fired by hand.
    pub fn check_by_hand(&self, event: &Event) -> Result<(), PlanError> {
        let place = "event";
        check_one(self, event, &links_of(self), place)?;
        let fixed =
            "cannot be fired by hand: what clients subscribe to and publish is fixed when a run begins";
        require(!event.kind().is_fixed(), place, || {
            format!("is `{}`, which {fixed}", event.kind().as_str())
        })?;
        let refused = is_not_performed(self, event);
        require(refused.is_none(), place, || refused.unwrap_or_default())
    }
}

fn links_of(plan: &Plan) -> BTreeSet<&str> {
    plan.network.links.iter().map(|link| link.name.as_str()).collect()
}

/// An event acts on what there is, with values within their bounds.
fn check_one(plan: &Plan, event: &Event, links: &BTreeSet<&str>, place: &str) -> Result<(), PlanError> {
    bounds::within(event.name().len() as u64, 1, NAME_BYTES_MAX as u64, &format!("{place}.name"))?;
    match event {
        Event::Links(event) => check_links(plan, event, links, place),
        Event::Medium(event) => check_medium(plan, event, place),
        Event::Server(event) => check_server(plan, event, place),
        Event::Clients(event) => {
            let clients = plan.groups.iter().map(|group| u64::from(group.count)).sum();
            check_clients(plan, event, clients, place)
        }
    }
}

/// Events are in order, within the run, act on what there is, and are performed by the plan's backend.
pub(crate) fn check(plan: &Plan) -> Result<(), PlanError> {
    bounds::within(plan.events.len() as u64, 0, EVENTS_MAX, "events")?;
    check_times(plan)?;
    check_ends(plan)?;
    let links = links_of(plan);
    for (index, event) in plan.events.iter().enumerate() {
        check_one(plan, event, &links, &format!("events[{index}]"))?;
    }
    for (index, event) in plan.events.iter().enumerate() {
        let refused = is_not_performed(plan, event);
        require(refused.is_none(), &format!("events[{index}]"), || refused.unwrap_or_default())?;
    }
    Ok(())
}

fn check_times(plan: &Plan) -> Result<(), PlanError> {
    let phases = &plan.phases;
    let over = phases.warm_up.saturating_add(phases.duration).saturating_add(phases.cool_down);
    let mut before = Duration::ZERO;
    for (index, event) in plan.events.iter().enumerate() {
        let place = format!("events[{index}].at_ns");
        let at = event.at();
        require(at >= before, &place, || format!("is {}, before the event in front of it", at.as_ns()))?;
        require(at < over, &place, || {
            format!("is {at} after publishing begins, but the run is over after {over}")
        })?;
        before = at;
    }
    Ok(())
}

/// What ends has begun. Several events may end one change: the directions of a link get their own values back.
fn check_ends(plan: &Plan) -> Result<(), PlanError> {
    let mut begun = BTreeSet::new();
    for (index, event) in plan.events.iter().enumerate() {
        let unknown = event.ends().iter().find(|number| !begun.contains(*number));
        require(unknown.is_none(), &format!("events[{index}].ends"), || {
            format!("has {}, but no event before it begins that change", unknown.copied().unwrap_or_default())
        })?;
        begun.extend(event.begins());
    }
    Ok(())
}

fn check_server(plan: &Plan, event: &ServerEvent, place: &str) -> Result<(), PlanError> {
    let known = plan.servers.iter().any(|server| server.name == event.server);
    require(known, &format!("{place}.server"), || {
        let names: Vec<&str> = plan.servers.iter().map(|server| server.name.as_str()).collect();
        format!("is {:?}, an unknown server; known: {}", event.server, names.join(", "))
    })
}

fn check_medium(plan: &Plan, event: &MediumEvent, place: &str) -> Result<(), PlanError> {
    let named = plan.network.media.iter().find(|medium| medium.name == event.medium);
    require(named.is_some(), &format!("{place}.medium"), || {
        format!("is {:?}, which is the name of no radio channel", event.medium)
    })?;
    let Some(medium) = named else { return Ok(()) };
    match &event.change {
        MediumChange::InterfererOn { interferer } | MediumChange::InterfererOff { interferer } => {
            let known = medium.interferers.iter().any(|spec| spec.name == *interferer);
            require(known, &format!("{place}.change.interferer"), || {
                format!("is {interferer:?}, which is the name of no interferer")
            })
        }
        MediumChange::StationsOff { stations } | MediumChange::StationsOn { stations } => {
            let field = format!("{place}.change.stations");
            require(!stations.is_empty(), &field, || "is empty, but an event acts on a station".into())?;
            require(stations.is_sorted_by(|one, next| one < next), &field, || {
                "is not ascending, or has a station twice".into()
            })?;
            let last = stations.last().copied().unwrap_or_default();
            require(last < medium.stations(), &field, || {
                format!("has station {last}, but there are {}, counted from 0", medium.stations())
            })
        }
        MediumChange::StationMoved { station, position } => {
            let field = format!("{place}.change.station");
            bounds::within(*station as u64, 0, medium.stations() as u64 - 1, &field)?;
            let stands = medium.mobility == MobilitySpec::None;
            require(stands, &field, || "moves by itself, so that no event can place it".into())?;
            bounds::position(*position, &format!("{place}.change.position"))
        }
    }
}

fn check_links(
    plan: &Plan,
    event: &LinksEvent,
    known: &BTreeSet<&str>,
    place: &str,
) -> Result<(), PlanError> {
    require(!event.links.is_empty(), &format!("{place}.links"), || {
        "is empty, but an event acts on a link".into()
    })?;
    let mut seen = BTreeSet::new();
    for name in &event.links {
        require(known.contains(name.as_str()), &format!("{place}.links"), || {
            format!("has {name:?}, which is the name of no link")
        })?;
        require(seen.insert(name), &format!("{place}.links"), || format!("has {name:?} twice"))?;
    }
    match &event.change {
        LinkChange::Spec { spec } => {
            bounds::link(spec, plan.network.mtu_bytes, &format!("{place}.change.spec"))
        }
        LinkChange::Down { .. } | LinkChange::Up => Ok(()),
    }
}

fn check_clients(plan: &Plan, event: &ClientsEvent, clients: u64, place: &str) -> Result<(), PlanError> {
    let list = format!("{place}.clients");
    require(!event.clients.is_empty(), &list, || "is empty, but an event acts on a client".into())?;
    require(event.clients.is_sorted_by(|one, next| one < next), &list, || {
        "is not ascending, or has a client twice".into()
    })?;
    let last = event.clients.last().copied().unwrap_or_default();
    require(u64::from(last) < clients, &list, || {
        format!("has client {last}, but there are {clients} clients, counted from 0")
    })?;
    let filter = match &event.change {
        ClientsChange::Subscribe { filter, qos } => {
            bounds::within((*qos).into(), 0, 2, &format!("{place}.change.qos"))?;
            filter
        }
        ClientsChange::Unsubscribe { filter } => filter,
        ClientsChange::Publish { publications } => {
            return published::check_change(plan, event, publications, place);
        }
        ClientsChange::Burst { publications, messages } => {
            return published::check_burst(plan, event, (publications, *messages), place);
        }
        _ => return Ok(()),
    };
    bounds::filter(filter, "group", &format!("{place}.change.filter"))
}

/// Why a plan's backend does not perform an event; nothing where it does. An event is performed or refused, never
/// passed over.
fn is_not_performed(plan: &Plan, event: &Event) -> Option<String> {
    if plan.live.parts > 1 && plan.backend == Backend::Live {
        return Some("is an event, but a run of several parts performs none".into());
    }
    if let Event::Server(event) = event
        && plan.backend == Backend::Live
        && plan.servers.iter().any(|server| server.name == event.server && server.process.is_none())
    {
        return Some(format!("is an event of `{}`, which somebody else runs", event.server));
    }
    match event {
        Event::Clients(event) => cannot_change_clients(plan, event),
        Event::Links(_) | Event::Medium(_) | Event::Server(_) => None,
    }
}

/// Why a plan's backend cannot do this to clients, where they are what they are.
fn cannot_change_clients(plan: &Plan, event: &ClientsEvent) -> Option<String> {
    let starts = plan.client_numbers();
    for number in &event.clients {
        let place = starts.partition_point(|start| start <= number) - 1;
        let group = &plan.groups[place];
        if group.program.is_some() {
            return Some(format!("has client {number}, which a program of `{}` performs", group.name));
        }
        let changed = match &event.change {
            ClientsChange::Subscribe { filter, .. } | ClientsChange::Unsubscribe { filter } => Some(filter),
            _ => None,
        };
        if changed.is_some() && group.mqtt().is_none() {
            return Some(format!(
                "has client {number}, which does not speak MQTT and keeps its subscriptions"
            ));
        }
        if changed.is_some_and(|filter| filter.0.starts_with("$share/")) {
            return Some("changes a shared subscription, which no backend does yet".into());
        }
        let host = group.host_of(number - starts[place]);
        let is_carried =
            plan.network.kind == NetworkKind::Emulated && host != plan.servers[group.connects_to].host;
        if event.change == ClientsChange::Vanish && plan.backend == Backend::Live && !is_carried {
            let problem =
                "whose frames cross no emulated network: nothing could keep its kernel from saying goodbye";
            return Some(format!("lets client {number} vanish, {problem}"));
        }
    }
    None
}

/// Each is an entry of the agenda, and a row.
const EVENTS_MAX: u64 = 100_000;
