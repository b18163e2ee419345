//! What plan and layout of a recording say that its summary needs, of every schema and whoever made it.
//!
//! Imports and older recordings know less. What they do not say has the value that excludes nothing: a program that
//! nobody described may use Nagle's algorithm, and no window of it is known.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use mqttlab_plan::server_ports;
use mqttlab_recording::{Error, Result};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

/// A window that never closes.
const UNLIMITED: i64 = 1 << 31;
/// What is not said in MQTT 5, because it is the default.
const RECEIVE_MAXIMUM_MAX: i64 = 65_535;
const ETHERNET_BYTES: i64 = 1500;
const IP_TCP_HEADERS_BYTES: i64 = 40;
const TIMESTAMPS_BYTES: i64 = 12;
/// RFC 6298 has the lower bound on the whole time-out at 1 s; Linux has 200 ms on its variable part.
const RTO_MIN_NS: i64 = 200_000_000;
const NS_PER_MS: f64 = 1e6;

/// What the plan says of a client and of its broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientSettings {
    /// Whether its socket uses Nagle's algorithm.
    pub(crate) nagle: bool,
    /// How many of its messages may be in flight.
    pub(crate) window: i64,
    /// How many of the broker's messages to it may be in flight.
    pub(crate) window_to_it: i64,
    /// Whether it takes a QoS 2 message at its PUBREL.
    pub(crate) on_release: bool,
    /// Whether its broker's socket uses Nagle's algorithm.
    pub(crate) broker_nagle: bool,
    /// Whether it is a program, of which no more is known than frames show.
    pub(crate) is_program: bool,
    /// The server that it connects to, and the broker: behind a gateway another one. Places in the plan.
    servers: [usize; 2],
}

/// Who is who, and how they are set.
#[derive(Debug, Default)]
pub(crate) struct RunSettings {
    /// By client.
    pub(crate) clients: Vec<ClientSettings>,
    /// The group of each client, as an index into `groups`, and its host.
    pub(crate) group_of: Vec<usize>,
    pub(crate) host_of: Vec<i64>,
    /// The names of groups, in the order of their first clients.
    pub(crate) groups: Vec<String>,
    /// How many links there are.
    pub(crate) links: Vec<String>,
    /// Ports that servers listen on.
    pub(crate) ports: Vec<i64>,
    /// Whether the evidence came from elsewhere.
    pub(crate) is_import: bool,
    /// The measurement, from and until.
    pub(crate) measured: (i64, i64),
    /// Stages of the measurement that do not count, from and until.
    unmeasured: Vec<(i64, i64)>,
    /// What relays append to topics.
    pub(crate) suffixes: Vec<String>,
    /// Of each host of the plan, the largest segment and whether it uses timestamps.
    stacks: Vec<(i64, bool)>,
    /// The least variable part of the time-out of each host of the layout, ms.
    rto_min_ms: Vec<f64>,
    /// The events of the plan, as it has them.
    pub(crate) events: Vec<Value>,
    pub(crate) server_names: Vec<String>,
    server_hosts: Vec<i64>,
    /// The links from one host to another.
    pub(crate) routes: Vec<((i64, i64), Vec<usize>)>,
    /// Whether the network has translators of addresses.
    pub(crate) has_nats: bool,
    /// How much before its time a frame may have been handed to a host: the emulator allows for its own cost.
    pub(crate) early_ns: i64,
    /// Whether frames were captured away from their senders' hosts: what a client's socket held is not told from the way.
    pub(crate) away_from_senders: bool,
    /// The same of the broker's host.
    pub(crate) away_from_broker: bool,
}

/// What of a stored plan is looked at. Its links and paths, most of it, are passed over.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredPlan {
    /// Of imports.
    sources: Option<IgnoredAny>,
    broker: Value,
    servers: Value,
    groups: Value,
    hosts: Vec<StoredHost>,
    network: Option<StoredNetwork>,
    phases: Value,
    stages: Value,
    events: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredHost {
    name: Value,
    tcp: Option<StoredStack>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredStack {
    mss_bytes: Value,
    timestamps: Value,
    rto_min_ns: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredNetwork {
    mtu_bytes: Value,
    paths: Vec<StoredPath>,
    nats: Vec<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredPath {
    from: Value,
    to: Value,
    hops: Vec<Value>,
}

/// What of a stored layout is looked at.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredLayout {
    warm_up_end_ns: Value,
    measurement_end_ns: Value,
    hosts: Vec<String>,
    links: Vec<String>,
    clients: Vec<StoredClient>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredClient {
    group: String,
    host: Value,
}

/// What of `run.json` is looked at: its links are passed over.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredRun {
    details: Value,
}

impl RunSettings {
    pub(crate) fn read(dir: &Path) -> Result<RunSettings> {
        let text = match fs::read_to_string(dir.join("plan.json")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NotARecording(dir.to_owned()));
            }
            outcome => outcome.map_err(|source| Error::Disk {
                action: "read",
                path: dir.join("plan.json"),
                source,
            })?,
        };
        let plan: StoredPlan = json(dir, "plan.json", &text)?;
        let path = dir.join("layout.json");
        let words = fs::read_to_string(&path);
        let words = words.map_err(|source| Error::Disk { action: "read", path, source })?;
        let layout: StoredLayout = json(dir, "layout.json", &words)?;
        let is_import = plan.sources.is_some();
        let details = details(dir);
        let [away_from_senders, away_from_broker] =
            if is_import { away(&details["import"]["captured_at"]) } else { [false; 2] };
        let mut settings = RunSettings {
            ports: server_ports(&plan.broker, &plan.servers).into_iter().map(i64::from).collect(),
            is_import,
            measured: (
                layout.warm_up_end_ns.as_i64().unwrap_or(0),
                // `u64::MAX` where there is no cool-down.
                layout.measurement_end_ns.as_i64().unwrap_or(i64::MAX),
            ),
            early_ns: details["emulator"]["latency_compensation_ns"].as_i64().unwrap_or(0),
            away_from_senders,
            away_from_broker,
            ..RunSettings::default()
        };
        settings.read_clients(&layout.clients);
        settings.links = layout.links;
        settings.read_plan(&plan, &layout.hosts);
        settings.unmeasured = unmeasured(&plan, settings.measured.0);
        Ok(settings)
    }

    fn read_clients(&mut self, clients: &[StoredClient]) {
        let mut known = BTreeMap::new();
        for client in clients {
            let groups = &mut self.groups;
            let index = *known.entry(client.group.as_str()).or_insert_with(|| {
                groups.push(client.group.clone());
                groups.len() - 1
            });
            self.group_of.push(index);
            self.host_of.push(client.host.as_i64().unwrap_or(-1));
        }
    }

    fn read_plan(&mut self, plan: &StoredPlan, hosts: &[String]) {
        for group in list(&plan.groups) {
            let count = group["count"].as_u64().unwrap_or(0) as usize;
            self.clients.extend(std::iter::repeat_n(client(plan, group), count));
            self.suffixes.extend(group["relay"]["topic_suffix"].as_str().map(str::to_owned));
        }
        self.suffixes.sort_unstable();
        self.suffixes.dedup();
        self.events = list(&plan.events).to_vec();
        for server in list(&plan.servers) {
            self.server_names.push(server["name"].as_str().unwrap_or("").to_owned());
            self.server_hosts.push(server["host"].as_i64().unwrap_or(-1));
        }
        if let Some(network) = &plan.network {
            self.has_nats = !network.nats.is_empty();
            self.routes = network.paths.iter().map(route).collect();
        }
        let mtu = plan.network.as_ref().and_then(|network| network.mtu_bytes.as_i64());
        let mtu = mtu.filter(|&mtu| mtu > 0).unwrap_or(ETHERNET_BYTES);
        let (mut least, unknown) = (BTreeMap::new(), StoredStack::default());
        for host in &plan.hosts {
            let tcp = host.tcp.as_ref().unwrap_or(&unknown);
            let most = tcp.mss_bytes.as_i64().filter(|&most| most > 0);
            self.stacks
                .push((most.unwrap_or(mtu - IP_TCP_HEADERS_BYTES), tcp.timestamps.as_bool().unwrap_or(true)));
            if let (Some(name), Some(rto)) = (host.name.as_str(), tcp.rto_min_ns.as_i64()) {
                least.insert(name, rto);
            }
        }
        let of = |name: &String| *least.get(name.as_str()).unwrap_or(&RTO_MIN_NS) as f64 / NS_PER_MS;
        self.rto_min_ms = hosts.iter().map(of).collect();
    }

    /// The largest segment between two hosts; `None` where the plan has neither.
    pub(crate) fn segment_bytes_max(&self, from: i64, to: i64) -> Option<i64> {
        let stack = |host: i64| usize::try_from(host).ok().and_then(|host| self.stacks.get(host)).copied();
        let (from, to) = (stack(from), stack(to));
        let most = [from, to].into_iter().flatten().map(|(most, _)| most).min()?;
        let stamped = from.is_some_and(|(_, stamps)| stamps) && to.is_some_and(|(_, stamps)| stamps);
        Some(most - if stamped { TIMESTAMPS_BYTES } else { 0 })
    }

    /// The least variable part of a host's time-out, in milliseconds.
    pub(crate) fn rto_min_ms(&self, host: i64) -> f64 {
        let known = usize::try_from(host).ok().and_then(|host| self.rto_min_ms.get(host));
        known.copied().unwrap_or(RTO_MIN_NS as f64 / NS_PER_MS)
    }

    /// Whether a server listens on one of the ports. What a capture holds beside a broker's connections is nobody's.
    pub(crate) fn is_server_s(&self, source: i64, destination: i64) -> bool {
        !self.is_import
            || self.ports.is_empty()
            || self.ports.contains(&source)
            || self.ports.contains(&destination)
    }

    /// The in-flight window towards the broker, or from it, of a client's connection, where that has one.
    pub(crate) fn window(&self, client: i64, to_broker: bool) -> Option<i64> {
        let known = usize::try_from(client).ok().and_then(|client| self.clients.get(client))?;
        let window = if to_broker { known.window } else { known.window_to_it };
        (window < UNLIMITED).then_some(window)
    }

    /// The server that a client connects to, and its broker: behind a gateway another one. Places in the plan.
    pub(crate) fn servers_of(&self, client: i64) -> [usize; 2] {
        let known = usize::try_from(client).ok().and_then(|client| self.clients.get(client));
        known.map_or([0; 2], |client| client.servers)
    }

    /// The host of a server, by its place in the plan; -1 where it is not known.
    pub(crate) fn server_host(&self, server: usize) -> i64 {
        self.server_hosts.get(server).copied().unwrap_or(-1)
    }

    /// Whether a client is a program.
    pub(crate) fn is_program(&self, client: i64) -> bool {
        let known = usize::try_from(client).ok().and_then(|client| self.clients.get(client));
        known.is_some_and(|client| client.is_program)
    }

    /// Whether an instant belongs to the measurement.
    pub(crate) fn is_measured(&self, at: i64) -> bool {
        (self.measured.0..self.measured.1).contains(&at)
            && !self.unmeasured.iter().any(|&(from, until)| (from..until).contains(&at))
    }
}

/// The stages that do not count, in run time: in a plan times count from when publishing begins.
fn unmeasured(plan: &StoredPlan, warm_up_end: i64) -> Vec<(i64, i64)> {
    let time = |value: &Value| value.as_i64().unwrap_or(0);
    let began = warm_up_end - time(&plan.phases["warm_up_ns"]);
    let left_out = |stage: &&Value| stage["measured"] == false;
    let found = list(&plan.stages).iter().filter(left_out);
    found.map(|stage| (began + time(&stage["from_ns"]), began + time(&stage["until_ns"]))).collect()
}

/// Settings of a group's clients. A window of 0 is no limit for Mosquitto.
fn client(plan: &StoredPlan, group: &Value) -> ClientSettings {
    // The first schema had `mqtt` and `tcp_nodelay` in the group, and one `broker` in the plan.
    let protocol = &group["protocol"];
    let session = match (protocol.is_null(), protocol["mqtt_sn"].is_null()) {
        (true, _) => &group["mqtt"],
        (false, true) => &protocol["mqtt"],
        (false, false) => &protocol["mqtt_sn"],
    };
    let transport = &group["transport"]["tcp"]["nodelay"];
    let nodelay = transport.as_bool().or(group["tcp_nodelay"].as_bool());
    let connects_to = group["connects_to"].as_u64().unwrap_or(0) as usize;
    let mut server = &plan.servers[connects_to];
    let mut servers = [connects_to; 2];
    // Behind a gateway it is the gateway to which the broker's sockets and windows are.
    if let Some(behind) = server["role"]["gateway"]["broker"].as_u64() {
        servers[1] = behind as usize;
        server = &plan.servers[servers[1]];
    }
    let broker = if server.is_null() { &plan.broker } else { &server["role"]["broker"] };
    let settings = &broker["settings"];
    let (window, window_to_it) = windows(session, settings);
    ClientSettings {
        nagle: !nodelay.unwrap_or(false),
        window,
        window_to_it,
        on_release: session["deliver_on_release"].as_bool().unwrap_or(true),
        // A proxy of ZeroMQ always switches it off, as libzmq does.
        broker_nagle: !settings["tcp_nodelay"].as_bool().unwrap_or(server["role"]["zeromq"].is_object()),
        is_program: !group["program"].is_null(),
        servers,
    }
}

/// The links of a path; radio channels have none.
fn route(path: &StoredPath) -> ((i64, i64), Vec<usize>) {
    let end = |host: &Value| host.as_i64().unwrap_or(-1);
    let links = path.hops.iter().filter_map(|hop| hop["link"].as_u64());
    ((end(&path.from), end(&path.to)), links.map(|link| link as usize).collect())
}

/// The windows that are in force on a client's connection: of the client, and of its broker. Before MQTT 5 neither end can tell
/// the other of a limit; in MQTT 5 each does (§3.1.2.11.3, §3.2.2.3.3). Mosquitto takes a client's receive maximum in the place
/// of its own limit, and 65535 is not sent.
fn windows(session: &Value, settings: &Value) -> (i64, i64) {
    let window = |value: &Value| value.as_i64().filter(|&most| most > 0).unwrap_or(UNLIMITED);
    let (own, broker) = (window(&session["max_inflight"]), window(&settings["max_inflight"]));
    if session["version"] != "5" {
        return (own, broker);
    }
    let told = session["receive_maximum"].as_i64().filter(|&most| (1..RECEIVE_MAXIMUM_MAX).contains(&most));
    (own.min(broker), told.unwrap_or(broker))
}

fn details(dir: &Path) -> Value {
    let run =
        ["run.json", "incomplete.json"].into_iter().find_map(|name| fs::read_to_string(dir.join(name)).ok());
    let run: StoredRun = run.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    run.details
}

/// Whether a capture was taken away from the clients' hosts, and from the broker's. Imports of earlier versions do not say it.
fn away(captured_at: &Value) -> [bool; 2] {
    ["at_clients", "at_broker"].map(|end| captured_at[end] != true)
}

fn json<T: DeserializeOwned>(dir: &Path, name: &str, text: &str) -> Result<T> {
    serde_json::from_str(text)
        .map_err(|error| Error::Damaged { path: dir.join(name), what: error.to_string() })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
