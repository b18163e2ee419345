//! What to run, as run.
//!
//! A [`Plan`] is compiled from a scenario by the Python package and is the only thing the engine accepts: SI
//! integers with the unit as the last word of the name, every default and seed filled in, unknown fields
//! refused. Where a field may be `null`, `null` is a decision ("no limit"), never "please choose".
//! It is stored with the run as `plan.json`.
//!
//! ```text
//! scenario.toml ─► Scenario ─► Plan (JSON on stdin) ─► engine ─► Progress (JSON lines on stdout)
//! ```
//!
//! What it does not hold: anything measured, and anything that differs between two runs of the same plan, such as the
//! directory of the recording.

mod addresses;
mod arrivals;
mod arrived_messages;
mod audience;
mod bounds;
mod check;
mod credentials;
mod destination;
mod error;
mod events;
mod expiry;
mod group;
mod host;
mod limits;
mod lookup;
mod mqttsn;
mod network;
mod own_messages;
mod payload;
mod properties;
mod publications;
mod rates;
mod replay;
mod roster;
mod secret;
mod server;
mod session;
mod stages;
mod stored;
mod syntax;
mod topic;
mod wills;
pub mod zeromq;

use std::collections::BTreeMap;

use mqttlab_fields::{
    Bounds, Maybe, MicroTime, Node, PositiveShortTime, PositiveTime, Reader, Rule, Shape, Share, Time,
    Unread, fields, words,
};
use mqttlab_units::{Duration, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use addresses::AddressOwner;
pub use arrivals::{Arrivals, PublishingTime};
pub use arrived_messages::ArrivedMessages;
pub use audience::{MessageAudience, PlannedShare, PlannedSubscriptions};
pub use credentials::{ClientCredentials, CredentialList};
pub use destination::{Destination, Part};
pub use error::PlanError;
use error::require;
pub use events::{
    ChangeKind, ChangedRate, ChangedReceiver, ClientsChange, ClientsEvent, Event, LinksEvent, MediumEvent,
    PublicationChange, PublishingChanges, ServerChange, ServerChangeKind, ServerEvent, SubscriptionChange,
    SubscriptionChanges,
};
pub use group::{
    Arrival, ChangedPublication, Churn, ClientProgram, Group, HoldLaw, MqttPlan, Payload, PictureFormat,
    PingPlan, Protocol, ProtocolVersion, Publish, RateStage, Reconnect, Relay, RetainHandling, RetryPlan,
    StartPhase, Subscription, TcpTransport, TemplatePart, TimeFormat, TlsPlan, TlsVersion, Transport,
    WebSocketPlan, Will,
};
pub use host::{DiskRate, Host, HostLimits, Memory, ProcessorShare};
pub use limits::out_of_memory;
pub use mqttsn::{GatewayMode, GatewayProgram, GatewayRole, MqttSnPlan, PredefinedTopic, SleepPlan};
pub use network::{Hop, NatPlan, Network, NetworkKind, PathPlan};
pub use payload::{IdentityPlace, MessageNumber, PayloadMaker, PayloadSizes, SaidPlaces, find_place};
pub use properties::{MessageProperties, UserProperty};
pub use replay::{Replay, ReplayColumns, ReplayTable, ReplayTime, ReplayedMessage};
pub use roster::{Roster, RosterTopic};
pub use secret::{Secrets, Text, hidden, parts as secret_parts};
pub use server::{
    BrokerRole, BrokerSettings, Endpoint, EndpointTransport, ProxyRole, Readiness, Role, Server, ServerFile,
    ServerProcess, ServiceTime, Trust, WhenItDies,
};
pub use session::qos;
pub use stages::Stage;
pub use stored::{StoredMarks, StoredServers, server_ports};
pub use topic::TopicPattern;
pub use wills::PlannedWills;
pub use zeromq::{ProxyProgram, ZeroMqPlan, ZeroMqRole};

pub use mqttlab_tcp::{CongestionControl, Stack, TcpPlan};

const MS: u64 = 1_000_000;
const HOUR_NS: u64 = 3_600_000_000_000;

/// The version of this schema; the engine performs no other one.
pub const SCHEMA: u32 = 2;

/// Everything one run needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The scenario's name.
    pub name: String,
    /// The scenario's description, for the report.
    pub description: String,
    /// Who performs it.
    pub backend: Backend,
    /// What every random stream of the run is derived from, the repetition already mixed in.
    pub seed: Seed,
    /// Which of the scenario's repetitions this is, from 0.
    pub repetition: u32,
    /// When the run warms up, measures and cools down.
    pub phases: Phases,
    /// The stages of the measurement, in order; none where it is one whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// Where programs run.
    pub hosts: Vec<Host>,
    /// What lies between the hosts.
    pub network: Network,
    /// What clients connect to: brokers, gateways, proxies.
    pub servers: Vec<Server>,
    /// Clients alike, in order; client numbers run through the groups in this order.
    pub groups: Vec<Group>,
    /// What changes while the run goes on, in the order of time.
    #[serde(default)]
    pub events: Vec<Event>,
    /// What is written down.
    pub recording: RecordingPlan,
    /// How the live testbed performs it.
    pub live: LivePlan,
    /// How the simulator performs it.
    pub sim: SimPlan,
}

words! {
    /// Live testbed or simulator.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Backend {
        /// Real brokers and real TCP in real time.
        Live = "live",
        /// Virtual time.
        Sim = "sim",
    }
}

fields! {
    /// The run's three phases, one after the other. Publishing begins when every client has connected and subscribed (or
    /// `connect_timeout` has passed) and ends with the measurement.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct Phases {
        /// How long clients may take to connect and subscribe before publishing begins.
        #[serde(rename = "connect_timeout_ns")]
        connect_timeout: Duration as PositiveTime = Duration::from_s(60),
        /// Publishing that is not counted.
        #[serde(rename = "warm_up_ns")]
        warm_up: Duration as Time = Duration::ZERO,
        /// Publishing that is counted. With `stages` it is left out: it is how long they last in all.
        #[serde(rename = "duration_ns")]
        duration: Duration as PositiveTime,
        /// Waiting for messages under way; ends early when there are none.
        #[serde(rename = "cool_down_ns")]
        cool_down: Duration as Time = Duration::from_s(10),
    }
}

fields! {
    /// What is written down beside messages, events and resources.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct RecordingPlan {
        /// Every frame on every link, with its fate.
        packets: bool as Unread<bool>,
        /// Write captures for Wireshark: of a live run one for each link, of a simulation `run.pcapng` with all links.
        pcapng: bool = false,
        /// Keep what every message that arrives carries, up to 8 MiB each, to be looked at: as much disk as was received.
        #[serde(default)]
        payloads: bool = false,
        /// How often CPU and memory are sampled.
        #[serde(rename = "resource_interval_ns")]
        resource_interval: Duration as PositiveShortTime [MS..] = Duration::from_ms(500),
        /// How often both ends of every TCP connection are asked for their state: time-out, windows, waiting bytes. More
        /// rarely where that would cost much.
        #[serde(rename = "tcp_state_interval_ns", default = "a_second")]
        tcp_state_interval: Duration as PositiveShortTime [10 * MS..] = a_second(),
        /// Of messages keep sums and a sample; `null`: a row of each.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<SummaryPlan> as Unread<Option<SummaryPlan>>,
    }
}

/// How messages are added up while a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SummaryPlan {
    /// Rows of so many bytes are added up at once.
    pub fold_bytes: u64,
    /// So many rows of the table of messages are kept at most.
    pub rows_most: u64,
}

/// What plans had that did not say how often TCP's states are sampled.
fn a_second() -> Duration {
    Duration::from_s(1)
}

fields! {
    /// How the live testbed performs the plan.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct LivePlan {
        /// Ask for real-time priority (SCHED_FIFO); a refusal is recorded as a warning.
        real_time: bool = true,
        /// Subtracted from every emulated delay; calibrated at the start when left out.
        #[serde(rename = "latency_compensation_ns")]
        latency_compensation: Option<Duration> as Maybe<MicroTime> [..=HOUR_NS],
        /// Measure each emulated path for this long before the run, and keep it beside its model.
        #[serde(rename = "probe_ns", default)]
        probe: Option<Duration> as Maybe<PositiveTime>,
        /// Device between namespaces and emulator.
        port: PortKind = PortKind::Auto,
        /// Threads that run the clients, in each part.
        workers: u32 [1..=64] = 1,
        /// Engines that share the clients, for more than one machine drives: with `--cluster` a worker each, else all on this
        /// machine. Needs `network = "external"`; see docs/explanation/live.md.
        #[serde(default = "one")]
        parts: u32 [1..=64] = 1,
    }
}

impl LivePlan {
    /// How many of so many clients a part has at most.
    pub fn most_in_a_part(&self, clients: u64) -> u64 {
        clients.div_ceil(u64::from(self.parts.max(1)))
    }
}

/// What plans had that did not say into how many parts a run is split.
fn one() -> u32 {
    1
}

words! {
    /// The device between a namespace and the emulator.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum PortKind {
        /// TUN where it can be opened, AF_PACKET on veth elsewhere.
        Auto = "auto",
        /// TUN.
        Tun = "tun",
        /// AF_PACKET on one end of a veth pair.
        Packet = "packet",
    }
}

fields! {
    /// How the simulator performs the plan.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct SimPlan {
        /// Stop early.
        stop: Option<StopRule>,
        /// Detect the end of the initial transient, and mark its messages as warm-up, instead of using `warm_up`.
        detect_transient: bool = false,
        /// Time from the arrival of data at a client until its program reads it, together with all data that has arrived by
        /// then.
        #[serde(rename = "client_wake_up_ns")]
        client_wake_up: Duration as MicroTime [..=HOUR_NS] = Duration::from_us(50),
        /// The behaviour of the hosts' TCP that no kernel lets be set, by the name of their profile.
        tcp_stacks: BTreeMap<String, Stack> as Unread<BTreeMap<String, Stack>>,
    }
}

fields! {
    /// When a simulation may stop early: when any of these is reached.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct StopRule {
        /// Half width of the mean latency's 95 % confidence interval, by batch means, relative to the mean.
        relative_accuracy_ppm / "relative_accuracy": Option<u32> as Maybe<Accuracy>,
        /// Stop when every subscriber has received this many messages.
        messages_per_subscriber: Option<u64> [1..1_i128 << 63],
        /// Stop when so many deliveries are expected and have not been made: a backlog, whose latency has no mean.
        deliveries_outstanding: Option<u64> [1..1_i128 << 63],
    }
}

/// The rule of an accuracy: a ratio above 0, in parts per million.
#[derive(Debug)]
pub struct Accuracy;

impl Rule for Accuracy {
    type Target = u32;

    fn read(node: &Node, reader: &mut Reader) -> Option<u32> {
        let (above, below): (u64, u64) = Share::read(node, reader)?.into();
        if above == 0 {
            return reader.wrong(
                "is 0 %, but must be above 0 %: no run is long enough for an exact mean; write \"1 %\"",
            );
        }
        Some((1e6 * above as f64 / below as f64).round_ties_even().max(1.0) as u32)
    }

    fn shape() -> Shape {
        Share::shape()
    }

    fn own_bounds() -> Bounds {
        Bounds::of(1..)
    }

    fn amount(value: &u32) -> Option<i128> {
        Some((*value).into())
    }
}

impl Plan {
    /// Reads and checks a plan.
    ///
    /// # Errors
    /// [`PlanError::Syntax`] with the JSON path where the text is not a plan of this schema, or the first
    /// rule that the plan breaks, with the field's place, value and limit.
    pub fn from_json(text: &str) -> Result<Plan, PlanError> {
        let mut plan: Plan = serde_json::from_str(text).map_err(|error| syntax::explain(text, &error))?;
        check::check(&plan)?;
        plan.read_lists()?;
        Ok(plan)
    }

    /// Reads and checks a plan, behind which the values of its secrets may stand: an object with a value for each mark.
    /// A secret that is not there has none.
    ///
    /// # Errors
    /// As [`Plan::from_json`]; no message has a value of a secret.
    pub fn with_secrets(text: &str) -> Result<Plan, PlanError> {
        let mut read = serde_json::Deserializer::from_str(text).into_iter::<Plan>();
        let plan = read.next().unwrap_or_else(|| serde_json::from_str(text));
        let mut plan = plan.map_err(|error| syntax::explain(text, &error))?;
        let behind = text[read.byte_offset()..].trim();
        let secrets = if behind.is_empty() { Ok(Secrets::new()) } else { serde_json::from_str(behind) };
        let secrets =
            secrets.map_err(|_| PlanError::Syntax("what stands behind it is no object of secrets".into()))?;
        for (_, text) in plan.texts() {
            text.reveal(&secrets);
        }
        check::check(&plan)?;
        plan.read_lists()?;
        Ok(plan)
    }

    /// Reads the lists of credentials, and the tables of messages that are replayed.
    fn read_lists(&mut self) -> Result<(), PlanError> {
        for (index, group) in self.groups.iter_mut().enumerate() {
            if let Protocol::Mqtt(MqttPlan { credentials: Some(list), credential_list, .. }) =
                &mut group.protocol
            {
                let place = format!("groups[{index}].protocol.mqtt.credentials");
                *credential_list = CredentialList::read(list, group.count, &place)?;
            }
            for (number, publish) in group.publications.iter_mut().enumerate() {
                let Some(replay) = &mut publish.replay else { continue };
                let place = format!("groups[{index}].publications[{number}].replay");
                replay.read(&publish.topic.0, group.count, &place)?;
                let topics = replay.topics().len();
                require(topics.max(1) == publish.topics as usize, &place, || {
                    format!("has {topics} topics, but `topics` is {}", publish.topics)
                })?;
            }
        }
        Ok(())
    }

    /// Makes sure that all secrets have their values.
    ///
    /// # Errors
    /// The first that has none, with its place.
    pub fn need_secrets(&mut self) -> Result<(), PlanError> {
        let secrets = Secrets::new();
        let missing =
            self.texts().into_iter().find_map(|(place, text)| (!text.reveal(&secrets)).then_some(place));
        missing.map_or(Ok(()), |place| {
            let problem = "is a secret, and a plan that was kept does not have its value; run the scenario, which says \
                           where the value is";
            Err(PlanError::Value { place, problem: problem.into() })
        })
    }

    /// Whether it has secrets, with or without their values.
    pub fn has_secrets(&mut self) -> bool {
        self.texts().iter().any(|(_, text)| text.is_secret())
    }

    /// The values of its secrets, as far as they are known.
    pub fn secret_values(&mut self) -> Vec<String> {
        let texts = self.texts().into_iter().filter(|(_, text)| text.is_secret() && text.has_value());
        texts.map(|(_, text)| text.as_str().to_owned()).collect()
    }

    /// All texts that may be secrets, with their places.
    fn texts(&mut self) -> Vec<(String, &mut Text)> {
        let mut found = Vec::new();
        for (index, server) in self.servers.iter_mut().enumerate() {
            if let Some(process) = &mut server.process {
                let ServerProcess { command, environment, files, .. } = process;
                found.extend(program_texts(
                    &format!("servers[{index}].process"),
                    command,
                    environment,
                    files,
                ));
            }
        }
        for (index, group) in self.groups.iter_mut().enumerate() {
            if let Protocol::Mqtt(mqtt) = &mut group.protocol {
                let place = format!("groups[{index}].protocol.mqtt");
                found.extend(mqtt.username.as_mut().map(|text| (format!("{place}.username"), text)));
                found.extend(mqtt.password.as_mut().map(|text| (format!("{place}.password"), text)));
                found.extend(mqtt.credentials.as_mut().map(|text| (format!("{place}.credentials"), text)));
            }
            if let Transport::Tcp(TcpTransport { websocket: Some(websocket), .. }) = &mut group.transport {
                found.push((format!("groups[{index}].transport.tcp.websocket.path"), &mut websocket.path));
            }
            if let Some(ClientProgram { command, environment, files, .. }) = &mut group.program {
                found.extend(program_texts(&format!("groups[{index}].program"), command, environment, files));
            }
        }
        found
    }

    /// The plan's type as a JSON Schema (draft 2020-12), for who writes plans in another language.
    pub fn schema() -> serde_json::Value {
        let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
        settings.into_generator().into_root_schema_for::<Plan>().to_value()
    }

    /// The plan as it is stored with the run.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a plan holds nothing that JSON cannot")
    }

    /// The number of the first client of each group, and one past the last client.
    pub fn client_numbers(&self) -> Vec<u32> {
        let mut next = 0;
        let mut starts = vec![0];
        for group in &self.groups {
            next += group.count;
            starts.push(next);
        }
        starts
    }
}

/// What a program is told that may be secret, with the places.
fn program_texts<'a>(
    place: &str,
    command: &'a mut [Text],
    environment: &'a mut BTreeMap<String, Text>,
    files: &'a mut [ServerFile],
) -> Vec<(String, &'a mut Text)> {
    let command = command.iter_mut().enumerate();
    let mut found: Vec<_> =
        command.map(|(index, text)| (format!("{place}.command[{index}]"), text)).collect();
    found.extend(environment.iter_mut().map(|(name, text)| (format!("{place}.environment.{name}"), text)));
    found.extend(files.iter_mut().map(|file| (format!("{place}.files.{:?}", file.path), &mut file.text)));
    found
}
