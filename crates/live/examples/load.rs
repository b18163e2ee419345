//! How much processor time the clients take: so many publishers and as many subscribers, each pair on a topic of
//! its own, against a broker that is running already.
//!
//! ```text
//! load ADDRESS:PORT PAIRS QOS BYTES MESSAGES [MESSAGES PER SECOND]
//! load ADDRESS:PORT PUBLISHERS:SUBSCRIBERS …                          each message goes to every subscriber
//! load ws:ADDRESS:PORT …                                              over WebSocket
//! load tls:AUTHORITY.pem:ADDRESS:PORT …                               over TLS 1.3
//! load sn:ADDRESS:PORT …                                              MQTT-SN, to a gateway
//! ```
//!
//! Without a rate every publisher goes as fast as its window and its socket allow. Prints one JSON object: what was
//! counted, and the processor time of this process from the first message offered to the last one delivered, rows
//! of the recording included.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::sleep;
use std::time;

use mqttlab_live::clients::{Fleet, UnrecordedConnections};
use mqttlab_live::{Clock, Control, Directory, Schedule, Testbed, TlsConfigs};
use mqttlab_plan::Plan;
use mqttlab_recording::Recorder;
use mqttlab_system::clock::processor_time;
use mqttlab_system::priority::Priority;
use mqttlab_units::Duration;
use serde_json::{Value, json};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, pairs, qos, bytes, messages, rest @ ..] = &arguments[..] else {
        eprintln!(
            "load [ws:|tls:AUTHORITY:|sn:]ADDRESS:PORT PAIRS|PUBLISHERS:SUBSCRIBERS QOS BYTES MESSAGES [MESSAGES PER SECOND]"
        );
        std::process::exit(2);
    };
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let (over, address) = Over::of(address);
    let (publishers, subscribers) = match pairs.split_once(':') {
        Some((publishers, subscribers)) => (number(publishers), Subscribers::ToAll(number(subscribers))),
        None => (number(pairs), Subscribers::OfOne),
    };
    let work = Work {
        over,
        server: address.parse().expect("an address and a port"),
        publishers,
        subscribers,
        qos: number(qos),
        bytes: number(bytes),
        messages: number(messages),
        rate: rest.first().map(|text| number(text)),
    };
    println!("{}", work.perform());
}

/// Who receives.
#[derive(Clone, Copy)]
enum Subscribers {
    /// Each publisher has one of its own.
    OfOne,
    /// So many, each of which receives every message.
    ToAll(u64),
}

/// What clients speak, and over what.
#[derive(PartialEq)]
enum Over {
    Tcp,
    Websocket,
    /// With the authority's certificate, as PEM.
    Tls(String),
    MqttSn,
}

impl Over {
    /// From an argument, with the rest of it.
    fn of(argument: &str) -> (Over, &str) {
        if let Some(address) = argument.strip_prefix("ws:") {
            return (Over::Websocket, address);
        }
        if let Some(address) = argument.strip_prefix("sn:") {
            return (Over::MqttSn, address);
        }
        let Some(rest) = argument.strip_prefix("tls:") else { return (Over::Tcp, argument) };
        let (authority, address) = rest.split_once(':').expect("AUTHORITY:ADDRESS:PORT");
        (Over::Tls(std::fs::read_to_string(authority).expect("a PEM file")), address)
    }

    /// As endpoints are called.
    fn name(&self) -> &'static str {
        match self {
            Over::Tcp => "tcp",
            Over::Websocket => "websocket",
            Over::Tls(_) => "tls",
            Over::MqttSn => "udp",
        }
    }
}

struct Work {
    over: Over,
    server: SocketAddr,
    publishers: u64,
    subscribers: Subscribers,
    qos: u64,
    bytes: u64,
    messages: u64,
    rate: Option<u64>,
}

impl Work {
    fn perform(&self) -> Value {
        let scratch = std::env::temp_dir().join(format!("mqttlab-load-{}", std::process::id()));
        let (mut plan, clock) = (self.plan(), Clock::start());
        let directory = Arc::new(Directory::new(&plan, &clock));
        let recorder = Recorder::create(&scratch, &plan.to_json(), directory.layout()).expect("a recording");
        let control = Arc::new(Control::new(clock, Priority::Normal, plan.groups.len()));
        let secured = TlsConfigs::of(&mut plan, &scratch).expect("TLS");
        let sockets = Arc::new(Testbed::build(&plan).expect("a testbed").sockets().secured(secured));
        let clients = *plan.client_numbers().last().expect("there is an end");
        let fleet = Fleet::start(
            Arc::new(plan),
            sockets,
            directory,
            &recorder,
            Arc::clone(&control),
            UnrecordedConnections::default(),
        );
        let fleet = fleet.expect("a fleet");
        let figures = &control.figures;
        wait(|| figures.ready.load(Relaxed) == clients);
        let publish_from = control.now() + Control::NOTICE * 2;
        let measure_until = publish_from + Duration::from_s(3600);
        control.announce(Schedule { publish_from, measure_from: publish_from, measure_until });
        wait(|| control.now() >= publish_from);
        let (began, used) = (time::Instant::now(), processor_time());
        let total = self.messages / self.publishers * self.publishers;
        wait(|| figures.offered.load(Relaxed) == total && control.is_settled());
        let (wall, used) = (began.elapsed(), processor_time().saturating_sub(used));
        control.stop();
        fleet.join().expect("workers that end well");
        assert!(recorder.close().failure.is_none(), "a recording");
        let (latency, lateness) = (figures.latency.snapshot(), figures.sender_lateness.all());
        let us = |time: Option<Duration>| time.map(|time| time.as_ns() as f64 / 1e3);
        std::fs::remove_dir_all(&scratch).expect("what was made can be removed");
        json!({
            "sent": figures.sent.load(Relaxed),
            "delivered": figures.delivered.load(Relaxed),
            "wall_s": wall.as_secs_f64(),
            "cpu_s": used.as_s_f64(),
            "cpu_s_per_100k": used.as_s_f64() * 1e5 / total as f64,
            "latency_p50_us": us(latency.percentile(50.0)),
            "latency_p99_us": us(latency.percentile(99.0)),
            "sender_lateness_p99_us": us(lateness.percentile(99.0)),
            "sender_lateness_max_us": us(Some(lateness.max())),
        })
    }

    fn plan(&self) -> Plan {
        let tcp = json!({
            "profile": "linux", "congestion_control": "reno", "sack": true, "timestamps": true,
            "window_scaling": true, "rto_min_ns": 200_000_000, "rto_max_ns": 120_000_000_000_u64,
            "delayed_ack": true, "delayed_ack_max_ns": null, "initial_window_segments": 10, "mss_bytes": null,
            "send_buffer_bytes": null, "receive_buffer_bytes": null, "tail_loss_probe": true, "syn_retries": 6,
            "syn_linear_retries": 4,
        });
        let plan = json!({
            "schema": 2, "name": "load", "description": "", "backend": "live", "seed": 1, "repetition": 0,
            "phases": { "connect_timeout_ns": 1, "warm_up_ns": 0, "duration_ns": 1, "cool_down_ns": 0 },
            "hosts": [{ "name": "all", "address": "127.0.0.1", "tcp": tcp }],
            "network": { "kind": "external", "description": "", "mtu_bytes": 65535, "links": [], "paths": [] },
            "servers": self.servers(),
            "groups": [self.publishers(), self.subscribers()],
            "recording": { "packets": false, "pcapng": false, "resource_interval_ns": 1_000_000_000 },
            "live": { "real_time": false, "latency_compensation_ns": null, "port": "auto", "workers": 1 },
            "sim": { "stop": null, "detect_transient": false, "client_wake_up_ns": 0, "tcp_stacks": {} },
        });
        Plan::from_json(&plan.to_string()).expect("the plan is one")
    }

    /// What clients connect to is the first one. Behind a gateway there is a broker, to which nobody here does.
    fn servers(&self) -> Value {
        let service = json!({ "per_packet_ns": 0, "per_copy_ns": 0, "jitter": [0, 1] });
        let broker = json!({ "broker": {
            "settings": { "tcp_nodelay": true, "max_inflight": 100, "max_queued": 0, "persistence": false },
            "service": service,
        } });
        let server = |name: &str, transport: &str, port: u16, role: &Value| {
            json!({
                "name": name, "kind": "external", "version": "", "host": 0,
                "endpoints": [{ "transport": transport, "address": self.server.ip(), "port": port }],
                "process": null, "trust": null, "when_it_dies": "end_run", "role": role,
            })
        };
        let mut first = server("broker", self.over.name(), self.server.port(), &broker);
        if let Over::Tls(authorities) = &self.over {
            first["trust"] = json!({ "authorities": authorities, "name": null });
        }
        if self.over != Over::MqttSn {
            return json!([first]);
        }
        let gateway = json!({ "gateway": {
            "broker": 1, "mode": "transparent", "id": 1, "client_id": "gateway", "keep_alive_s": 60,
            "retry_ns": 10_000_000_000_u64, "retries": 3, "window": 0, "buffer": 1_000_000, "clients_max": 10_000,
            "broker_window": 100, "broker_queue": 1_000_000, "filter_duplicates": true, "advertise_ns": null,
            "predefined_topics": [], "service": service,
        } });
        json!([
            server("gateway", "udp", self.server.port(), &gateway),
            server("broker", "tcp", 1883, &broker)
        ])
    }

    fn publishers(&self) -> Value {
        let arrival = match self.rate {
            None => json!({ "kind": "back_to_back" }),
            Some(rate) => {
                json!({ "kind": "constant", "interval_ns": self.publishers * 1_000_000_000 / rate })
            }
        };
        let mut publishers = self.group("publisher", self.publishers);
        publishers["publish"] = json!({
            "topic": "load/{client}", "topics": 1, "qos": self.qos, "retain": false,
            "payload": { "kind": "fixed", "bytes": self.bytes }, "arrival": arrival, "start_phase": "even",
            "messages": self.messages / self.publishers,
        });
        publishers
    }

    fn subscribers(&self) -> Value {
        let (count, filter) = match self.subscribers {
            Subscribers::OfOne => (self.publishers, "load/{client}"),
            Subscribers::ToAll(count) => (count, "load/#"),
        };
        let mut subscribers = self.group("subscriber", count);
        subscribers["subscriptions"] = json!([{ "filter": filter, "qos": self.qos }]);
        subscribers
    }

    fn group(&self, name: &str, count: u64) -> Value {
        json!({
            "name": name, "count": count, "host": 0, "host_step": 0, "connects_to": 0,
            "transport": self.transport(),
            "protocol": self.protocol(),
            "reconnect": {
                "enabled": false, "initial_ns": 0, "maximum_ns": 0, "jitter": [0, 1],
                "connect_timeout_ns": 30_000_000_000_u64,
            },
            "connect_over_ns": count * 200_000, "publish": null, "subscriptions": [], "relay": null,
            "late_after_ns": null,
        })
    }
}

impl Work {
    fn transport(&self) -> Value {
        let tls = matches!(self.over, Over::Tls(_))
            .then(|| json!({ "version": "1.3", "resumption": false, "client_certificate": false }));
        let websocket = (self.over == Over::Websocket).then(|| json!({ "path": "/mqtt" }));
        match self.over {
            Over::MqttSn => json!("udp"),
            _ => json!({ "tcp": { "nodelay": true, "tls": tls, "websocket": websocket } }),
        }
    }

    fn protocol(&self) -> Value {
        if self.over == Over::MqttSn {
            return json!({ "mqtt_sn": {
                "client_id": "{group}-{client}", "keep_alive_s": 60, "clean_session": true,
                "without_connection": false, "retry_ns": 1_000_000_000, "retries": 3, "wait_ns": 1_000_000_000,
                "max_queued": 1_000_000, "deliver_on_release": false, "short_topics": false,
                "predefined_topics": [], "search_radius": null, "sleep": null, "will": null,
            } });
        }
        json!({ "mqtt": {
            "version": "3.1.1", "client_id": "{group}-{client}", "keep_alive_s": 60, "clean_session": true,
            "session_expiry_s": 0, "max_inflight": 100, "max_queued": 1_000_000, "receive_maximum": 65535,
            "deliver_on_release": false, "retry": null, "username": null, "password": null, "will": null,
        } })
    }
}

fn wait(mut holds: impl FnMut() -> bool) {
    while !holds() {
        sleep(time::Duration::from_millis(2));
    }
}
