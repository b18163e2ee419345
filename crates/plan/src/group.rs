//! Groups of clients alike: to which server they connect, which protocol they speak over which transport, and what they
//! publish and subscribe to.

use std::collections::BTreeMap;
use std::sync::Arc;

use mqttlab_mqtt::SubscriptionOptions;
use mqttlab_units::{Duration, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::credentials::CredentialList;
use crate::properties::MessageProperties;
use crate::publications;
use crate::secret::{self, Text};
use crate::{MqttSnPlan, Replay, ServerFile, TopicPattern, ZeroMqPlan, qos};

/// Clients alike. A client may publish, subscribe, relay, or several of these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Unique, as reports call it.
    pub name: String,
    /// How many clients.
    pub count: u32,
    /// Index of the host of the first client.
    pub host: usize,
    /// Client `i` sits on host `host + i * host_step`: 0 puts all on one host, 1 gives each its own.
    pub host_step: usize,
    /// After so many clients the next one sits on the first host again. Left out: there is a host for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts_in_turn: Option<u32>,
    /// Index of the server that they connect to.
    pub connects_to: usize,
    /// What they speak.
    pub protocol: Protocol,
    /// What carries it.
    pub transport: Transport,
    /// What happens after a connection is lost.
    pub reconnect: Reconnect,
    /// The clients come and go all the time. Left out: they stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub churn: Option<Churn>,
    /// The group's clients open their connections evenly over this time.
    #[serde(rename = "connect_over_ns")]
    pub connect_over: Duration,
    /// What each client publishes, each with a schedule of its own; empty for nothing.
    #[serde(alias = "publish", deserialize_with = "publications::read")]
    pub publications: Vec<Publish>,
    /// What events make of publications for a time. Numbered behind the publications.
    #[serde(default)]
    pub changed_publications: Vec<ChangedPublication>,
    /// What each client subscribes to.
    pub subscriptions: Vec<Subscription>,
    /// Republishes what it receives; `null` for none.
    pub relay: Option<Relay>,
    /// A delivery later than this after its intended time counts as late; `null` for never.
    #[serde(rename = "late_after_ns")]
    pub late_after: Option<Duration>,
    /// The program that performs the clients, one process each, in live runs; `null`: the engine performs them.
    #[serde(default)]
    pub program: Option<ClientProgram>,
}

/// A program that is a client. It publishes and subscribes as it likes, and is observed by the frames that it exchanges.
/// In arguments, environment and file texts `{address}` and `{port}` stand for its server's, `{group}` and `{client}` for its group
/// and its number there, `{client_id}` for the MQTT client identifier that it should take, and `{directory}` for a private scratch
/// directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientProgram {
    /// The program and its arguments.
    pub command: Vec<Text>,
    /// Set in addition to the engine's own environment.
    pub environment: BTreeMap<String, Text>,
    /// Written to the scratch directory before the start.
    pub files: Vec<ServerFile>,
    /// A part of the line of its output that says that it has connected and subscribed; `null`: it counts as ready when it has
    /// been started.
    pub ready_line: Option<String>,
}

/// A protocol, and a client's session of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// MQTT 3.1, 3.1.1 or 5.
    Mqtt(MqttPlan),
    /// MQTT-SN 1.2, to a gateway.
    MqttSn(MqttSnPlan),
    /// ZMTP 3.1, to a proxy of ZeroMQ.
    #[serde(rename = "zeromq")]
    ZeroMq(ZeroMqPlan),
}

/// What carries a protocol's packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// A TCP connection, and what lies between it and the protocol.
    Tcp(TcpTransport),
    /// UDP datagrams, each with one packet, none of them fragmented.
    Udp,
}

/// The clients' end of a TCP connection; the rest is its host's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpTransport {
    /// TCP_NODELAY on the clients' sockets (Nagle's algorithm off).
    pub nodelay: bool,
    /// TLS on it; `null` for none.
    #[serde(default)]
    pub tls: Option<TlsPlan>,
    /// WebSocket on it, or on TLS; `null` for none.
    #[serde(default)]
    pub websocket: Option<WebSocketPlan>,
}

/// TLS, with certificates that are made for the run, or with whom a server that runs elsewhere says to trust.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsPlan {
    /// The only version that the clients speak.
    pub version: TlsVersion,
    /// A client that has connected before resumes its session, as far as it has got tickets.
    pub resumption: bool,
    /// The server asks for a certificate, and each client has one.
    pub client_certificate: bool,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TlsVersion {
    /// RFC 5246.
    #[serde(rename = "1.2")]
    V12,
    /// RFC 8446.
    #[serde(rename = "1.3")]
    V13,
}

/// WebSocket (RFC 6455), a binary frame for each packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSocketPlan {
    /// The resource that the clients ask for.
    pub path: Text,
}

/// Protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProtocolVersion {
    /// MQTT 3.1 (protocol level 3).
    #[serde(rename = "3.1")]
    V31,
    /// MQTT 3.1.1 (protocol level 4).
    #[serde(rename = "3.1.1")]
    V311,
    /// MQTT 5.0 (protocol level 5).
    #[serde(rename = "5")]
    V5,
}

/// A client's session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MqttPlan {
    /// Protocol version.
    pub version: ProtocolVersion,
    /// Client identifier; `{group}` and `{client}` (index in the group, `{client:04}` with four digits at least) are filled in,
    /// as in the user name and the password. `{{client}}` is the text `{client}`.
    pub client_id: String,
    /// Keep-alive interval in seconds; 0 switches it off.
    pub keep_alive_s: u16,
    /// Clean session (3.x) or clean start (5).
    pub clean_session: bool,
    /// Session expiry interval in seconds (5 only; 3.x sessions that are not clean never expire).
    pub session_expiry_s: u32,
    /// Unacknowledged QoS 1 and 2 messages that the client sends ahead.
    pub max_inflight: u16,
    /// Messages that wait in the client behind these, or for a connection; what exceeds it is counted as unsent.
    pub max_queued: u32,
    /// Deliver a QoS 2 message when its PUBREL comes (method A of MQTT 3.1.1 §4.3.3, as Paho does), not already
    /// when its PUBLISH does (method B).
    pub deliver_on_release: bool,
    /// Receive maximum that the client announces (5 only).
    pub receive_maximum: u16,
    /// Topics of a connection that the client sends by an alias, as far as the broker takes them (5 only).
    #[serde(default)]
    pub topic_aliases: u16,
    /// Topic aliases that the broker may give on the way to the client (5 only).
    #[serde(default)]
    pub topic_alias_maximum: u16,
    /// Timed repetition of unacknowledged packets, as MQTT 3.1 had it; `null` for none.
    pub retry: Option<RetryPlan>,
    /// What the keep-alive interval counts.
    #[serde(default)]
    pub ping: PingPlan,
    /// User name; `null` for none.
    pub username: Option<Text>,
    /// Password; `null` for none.
    #[serde(deserialize_with = "secret::always")]
    pub password: Option<Text>,
    /// A list of the clients' identifiers, user names and passwords, as far as it has columns for them. The first line has
    /// `mqttlab credentials` and the columns, each other line a client, with tabs between the fields. Left out: none.
    #[serde(default, deserialize_with = "secret::always", skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Text>,
    /// The list, when it has been read.
    #[serde(skip)]
    pub credential_list: Option<Arc<CredentialList>>,
    /// Last will; `null` for none.
    pub will: Option<Will>,
}

/// What makes a client ping its broker, and leave one that does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PingPlan {
    /// A keep-alive interval without anything sent; it leaves when no PINGRESP has come within another. Plans without
    /// the field have it.
    #[default]
    Sent,
    /// An interval without anything sent or without anything heard, in whole seconds, as libmosquitto does. It looks when
    /// it sends or hears something, and when it has sent nothing for an interval. It leaves when, with a PINGREQ
    /// unanswered, another interval passes without anything heard or without anything sent.
    Silence,
    /// An interval since the last PINGREQ, whatever else was sent or heard, as paho-mqtt does. It leaves when no PINGRESP
    /// has come within another.
    Interval,
}

/// MQTT 3.1's timed repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryPlan {
    /// Time until an unacknowledged packet is sent again.
    #[serde(rename = "interval_ns")]
    pub interval: Duration,
}

/// A message that the broker publishes when the client vanishes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Will {
    /// Topic.
    pub topic: String,
    /// Payload as text.
    pub payload: String,
    /// Quality of service, 0 to 2.
    pub qos: u8,
    /// Retained.
    pub retain: bool,
}

/// What happens after a connection is lost: wait, then try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reconnect {
    /// Try at all.
    pub enabled: bool,
    /// Wait before the first attempt.
    #[serde(rename = "initial_ns")]
    pub initial: Duration,
    /// Each further wait is twice the last, up to this.
    #[serde(rename = "maximum_ns")]
    pub maximum: Duration,
    /// Each wait is drawn evenly from this part of itself above and below it.
    pub jitter: Ratio,
    /// Time for a TCP connection and CONNACK before the attempt counts as failed.
    #[serde(rename = "connect_timeout_ns")]
    pub connect_timeout: Duration,
}

/// Clients that come and go: from the begin of publishing to its end each leaves, stays away, comes, and so on. The first leave
/// one after another, evenly over the two times together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Churn {
    /// From a client's coming, which opens a connection, to its leaving with a DISCONNECT.
    #[serde(rename = "hold_ns")]
    pub hold: Duration,
    /// Whether that is always as long, or drawn with this mean.
    pub law: HoldLaw,
    /// From its leaving to its coming.
    #[serde(rename = "away_ns")]
    pub away: Duration,
}

/// How long clients that come and go stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HoldLaw {
    /// Always as long.
    Constant,
    /// Exponentially distributed, at least 1 ms.
    Exponential,
}

/// A publication: messages of one kind that a client publishes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    /// Topic; see [`TopicPattern`].
    pub topic: TopicPattern,
    /// How many topics `{topic}` runs through, message by message; 1 when the pattern has none.
    pub topics: u32,
    /// Quality of service, 0 to 2.
    pub qos: u8,
    /// Retained.
    pub retain: bool,
    /// What the packets say of the messages (MQTT 5 only).
    #[serde(default)]
    pub properties: MessageProperties,
    /// What is in the messages.
    pub payload: Payload,
    /// When messages are due.
    pub arrival: Arrival,
    /// When the first one is due.
    pub start_phase: StartPhase,
    /// Rates from the beginning of the measurement on, one after another, in place of that of `arrival`. The last one's end
    /// stays. Empty: the rate does not change.
    #[serde(default)]
    pub stages: Vec<RateStage>,
    /// Publish this many messages at most, warm-up included; `null` for no limit.
    pub messages: Option<u64>,
    /// Messages from a table, from the beginning of the measurement on, in place of the schedule; `null` for none.
    #[serde(default)]
    pub replay: Option<Replay>,
}

/// What an event makes of a publication: another payload, another QoS. Its topics, and when messages are due, are those of
/// the publication.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangedPublication {
    /// Index of the publication.
    pub publication: usize,
    /// What it is meanwhile.
    pub publish: Publish,
}

/// What is in a message. Every payload of 9 B or more carries its identity, a smaller one the end of its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Payload {
    /// A repeated pattern of this many bytes.
    Fixed {
        /// Size in bytes.
        bytes: u64,
    },
    /// Random bytes, drawn anew for every message.
    Random {
        /// Size in bytes.
        bytes: u64,
    },
    /// A GPS position as a GeoJSON feature of about 400 B (andersen2021).
    Gps,
    /// A 20 × 20 JPEG as text in JSON, about 1300 B (andersen2021).
    Image,
    /// The bytes of a file, the same in every message.
    File {
        /// The file.
        path: std::path::PathBuf,
        /// Its size when the plan was made.
        bytes: u64,
    },
    /// A picture as a file, which has its identity in a comment.
    Picture {
        /// Of which format.
        format: PictureFormat,
        /// Size in bytes.
        bytes: u64,
    },
    /// A text with places that every message fills in. One of its parts is the identity.
    Template {
        /// What tables call it: `template`, `alert` or `report`.
        name: String,
        /// One after the other.
        parts: Vec<TemplatePart>,
        /// A shorter message has spaces at its end, up to this size; `null`: it ends where its text ends.
        bytes: Option<u64>,
    },
}

/// The format of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PictureFormat {
    /// ITU-T T.81, baseline.
    Jpeg,
    /// ISO/IEC 15948, without compression.
    Png,
}

/// A part of a template. What is random follows from the seed, the client, and the number of the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TemplatePart {
    /// The same in every message.
    Text {
        /// The text.
        text: String,
    },
    /// Who the message is, in 46 characters.
    Identity,
    /// The client's number in its group.
    Client {
        /// So many digits at least.
        width: u8,
    },
    /// How many messages the client has offered before, in all its publications.
    Sequence {
        /// So many digits at least.
        width: u8,
    },
    /// When the message is due.
    Time {
        /// How it is written.
        format: TimeFormat,
    },
    /// A number drawn evenly from a range.
    Number {
        /// The least, in units of its last decimal.
        low: i64,
        /// The greatest.
        high: i64,
        /// Digits behind the point; 0 for none and no point.
        decimals: u8,
    },
    /// Hexadecimal digits.
    Hex {
        /// How many.
        digits: u32,
    },
    /// One of several texts, each as likely as the others.
    Choice {
        /// The texts.
        choices: Vec<String>,
    },
    /// A random UUID (RFC 9562, version 4).
    Uuid,
}

/// How a time is written in a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimeFormat {
    /// Seconds since 1970.
    S,
    /// Milliseconds since 1970.
    Ms,
    /// Microseconds since 1970.
    Us,
    /// Nanoseconds since 1970.
    Ns,
    /// RFC 3339 (a profile of ISO 8601), in UTC with milliseconds.
    Iso,
}

/// When messages are due. The schedule is open loop: a late system does not delay it, except for
/// [`Arrival::BackToBack`], which is closed by its nature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrival {
    /// One every interval.
    Constant {
        /// The interval.
        interval_ns: u64,
    },
    /// A Poisson process.
    Poisson {
        /// Mean interval.
        mean_interval_ns: u64,
    },
    /// Several at once, then a pause.
    Burst {
        /// Messages in a burst.
        size: u32,
        /// From the start of one burst to the start of the next.
        interval_ns: u64,
        /// Between the messages of a burst.
        gap_ns: u64,
    },
    /// The next message is due as soon as the session takes it: the in-flight window has room (QoS 1, 2) and
    /// the socket accepts bytes.
    BackToBack,
}

/// A part of the time in which a rate stays, or changes evenly from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateStage {
    /// How long it lasts.
    #[serde(rename = "length_ns")]
    pub length: Duration,
    /// Between two messages when it begins; `null`: none are due.
    pub from_interval_ns: Option<u64>,
    /// Between two messages when it ends; `null`: none are due.
    pub to_interval_ns: Option<u64>,
}

/// When the first message is due, within the first interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartPhase {
    /// A random offset for each client.
    Random,
    /// The group's clients evenly spread.
    Even,
    /// All at once.
    Synchronised,
}

/// A subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Subscription {
    /// Topic filter; see [`TopicPattern`]; wildcards allowed.
    pub filter: TopicPattern,
    /// Maximum quality of service, 0 to 2.
    pub qos: u8,
    /// When the broker sends what was retained (MQTT 5 §3.8.3.1). Left out: at each SUBSCRIBE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retain_handling: Option<RetainHandling>,
    /// Whether the broker sends RETAIN as it was published (MQTT 5 §3.8.3.1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retain_as_published: bool,
    /// Whether the broker does not send what the client itself publishes (MQTT 5 §3.8.3.1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_local: bool,
}

impl Subscription {
    /// What SUBSCRIBE asks for.
    pub fn options(&self) -> SubscriptionOptions {
        let retain_handling = self.retain_handling.map_or_else(Default::default, Into::into);
        SubscriptionOptions {
            qos: qos(self.qos),
            retain_handling,
            retain_as_published: self.retain_as_published,
            no_local: self.no_local,
        }
    }
}

/// When a subscription is sent what was retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetainHandling {
    /// At each SUBSCRIBE.
    Send,
    /// Only if the session did not have the subscription.
    New,
    /// Never.
    Never,
}

impl From<RetainHandling> for mqttlab_mqtt::RetainHandling {
    fn from(handling: RetainHandling) -> mqttlab_mqtt::RetainHandling {
        match handling {
            RetainHandling::Send => mqttlab_mqtt::RetainHandling::Send,
            RetainHandling::New => mqttlab_mqtt::RetainHandling::New,
            RetainHandling::Never => mqttlab_mqtt::RetainHandling::Never,
        }
    }
}

/// Republishing: every message received goes out again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Relay {
    /// Appended to the topic of the message received.
    pub topic_suffix: String,
    /// Quality of service of the copy, 0 to 2.
    pub qos: u8,
}
