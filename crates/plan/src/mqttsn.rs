//! MQTT-SN in a plan: clients' sessions, and gateways.

use std::net::SocketAddr;
use std::sync::Arc;

use mqttlab_mqttsn::client::{ClientOptions, Sleep};
use mqttlab_mqttsn::gateway::{GatewayOptions, Mode};
use mqttlab_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Group, ServiceTime, Will};

/// A client's session of MQTT-SN 1.2.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MqttSnPlan {
    /// Client identifier; `{group}` and `{client}` (index in the group) are filled in.
    pub client_id: String,
    /// Keep-alive interval in seconds; 0 switches it off.
    pub keep_alive_s: u16,
    /// Clean session.
    pub clean_session: bool,
    /// Publishes at QoS −1, without ever connecting.
    pub without_connection: bool,
    /// T_retry: time until a packet that was not answered is sent again.
    #[serde(rename = "retry_ns")]
    pub retry: Duration,
    /// N_retry: how often it is sent again before the gateway is given up.
    pub retries: u32,
    /// T_WAIT: time to wait after "rejected: congestion".
    #[serde(rename = "wait_ns")]
    pub wait: Duration,
    /// Messages that wait in the client; what exceeds it is counted as unsent.
    pub max_queued: u32,
    /// Deliver a QoS 2 message when its PUBREL comes, not already when its PUBLISH does.
    pub deliver_on_release: bool,
    /// Topics of two octets are not registered.
    pub short_topics: bool,
    /// Topics that client and gateway know beforehand.
    pub predefined_topics: Vec<PredefinedTopic>,
    /// Looks for a gateway with SEARCHGW of this radius first; `null` for not.
    pub search_radius: Option<u8>,
    /// Sleeps while there is nothing to do; `null` for never.
    pub sleep: Option<SleepPlan>,
    /// Last will; `null` for none.
    pub will: Option<Will>,
}

/// A topic that both sides know beforehand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PredefinedTopic {
    /// Its identifier.
    pub id: u16,
    /// Its name.
    pub name: String,
}

/// How a client sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SleepPlan {
    /// How long the gateway shall wait for the next sign of life, in seconds.
    pub duration_s: u16,
    /// From one awakening to the next.
    #[serde(rename = "wake_every_ns")]
    pub wake_every: Duration,
    /// How long it stays active without anything to do.
    #[serde(rename = "linger_ns")]
    pub linger: Duration,
    /// What is published waits for the next awakening.
    pub publish_when_awake: bool,
}

/// A gateway: what it does, for the program and for the simulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewayRole {
    /// Index of the broker that it connects to.
    pub broker: usize,
    /// How clients reach the broker.
    pub mode: GatewayMode,
    /// GwId of ADVERTISE and GWINFO.
    pub id: u8,
    /// Client identifier of its own connection to the broker.
    pub client_id: String,
    /// Keep-alive interval of that connection in seconds.
    pub keep_alive_s: u16,
    /// T_retry towards clients.
    #[serde(rename = "retry_ns")]
    pub retry: Duration,
    /// N_retry towards clients.
    pub retries: u32,
    /// Unacknowledged messages of QoS 1 and 2 towards one client; 0 for no limit.
    pub window: u32,
    /// Messages kept for one client.
    pub buffer: u32,
    /// Clients at once.
    pub clients_max: u32,
    /// Unacknowledged messages on its own connection to the broker.
    pub broker_window: u16,
    /// Messages that wait for that connection.
    pub broker_queue: u32,
    /// A repeated PUBLISH of QoS 1 is acknowledged again and not published twice.
    pub filter_duplicates: bool,
    /// From one ADVERTISE to the next; `null` for none.
    #[serde(rename = "advertise_ns")]
    pub advertise: Option<Duration>,
    /// Topics that it knows beforehand.
    pub predefined_topics: Vec<PredefinedTopic>,
    /// How long the simulated gateway works on a packet.
    pub service: ServiceTime,
}

/// How clients reach the broker through a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GatewayMode {
    /// Each over a connection of its own.
    Transparent,
    /// All over one.
    Aggregating,
}

/// What the gateway as a program is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayProgram {
    /// Where it listens (UDP).
    pub listen: SocketAddr,
    /// Where the broker does (TCP).
    pub broker: SocketAddr,
    /// What it does; `broker` means nothing here.
    pub role: GatewayRole,
}

impl GatewayRole {
    /// How its machine is configured.
    pub fn options(&self) -> GatewayOptions {
        GatewayOptions {
            id: self.id,
            mode: match self.mode {
                GatewayMode::Transparent => Mode::Transparent,
                GatewayMode::Aggregating => Mode::Aggregating,
            },
            client_id: self.client_id.as_str().into(),
            keep_alive: Duration::from_s(self.keep_alive_s.into()),
            retry: self.retry,
            retries: self.retries,
            window: self.window,
            buffer: self.buffer,
            clients_max: self.clients_max,
            broker_window: self.broker_window,
            broker_queue: self.broker_queue,
            filter_duplicates: self.filter_duplicates,
            advertise: self.advertise,
            predefined: self
                .predefined_topics
                .iter()
                .map(|topic| (topic.id, Arc::from(&*topic.name)))
                .collect(),
        }
    }
}

impl MqttSnPlan {
    /// How its machine is configured. The delay of a search is drawn by whoever makes the client.
    pub fn options(&self, group: &Group) -> ClientOptions {
        ClientOptions {
            clean: self.clean_session,
            will: self.will.is_some(),
            without_connection: self.without_connection,
            keep_alive: Duration::from_s(self.keep_alive_s.into()),
            retry: self.retry,
            retries: self.retries,
            wait: self.wait,
            max_queued: self.max_queued,
            subscriptions: group.subscriptions.len() as u32,
            deliver_on_release: self.deliver_on_release,
            search: None,
            sleep: self.sleep.map(|sleep| Sleep {
                duration_s: sleep.duration_s,
                every: sleep.wake_every,
                linger: sleep.linger,
                publish_when_awake: sleep.publish_when_awake,
            }),
        }
    }

    /// The identifier of a topic that is known beforehand.
    pub fn predefined(&self, name: &str) -> Option<u16> {
        self.predefined_topics.iter().find(|topic| topic.name == name).map(|topic| topic.id)
    }
}
