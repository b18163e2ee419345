//! Runs the clients of a plan against a Mosquitto of their own on loopback, and reads what was recorded.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::sleep;
use std::time;

use mqttlab_live::clients::{Fleet, UnrecordedConnections};
use mqttlab_live::{Clock, Control, Directory, Schedule, Testbed};
use mqttlab_plan::Plan;
use mqttlab_recording::{Ending, Finish, HeaderAnalyser, Recorder, RunFacts, Strain, finalise};
use mqttlab_system::priority::Priority;
use mqttlab_system::process::{self, Signal};
use mqttlab_units::Duration;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::{Value, json};

/// A directory that is removed when it is dropped.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("mqttlab-fleet-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A Mosquitto on a free port, killed when it is dropped.
pub struct Mosquitto {
    process: Child,
    pub port: u16,
    scratch: Scratch,
}

impl Mosquitto {
    /// `None`, with a word, where there is no Mosquitto.
    pub fn start(settings: &str) -> Option<Mosquitto> {
        let scratch = Scratch::new();
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let directory = scratch.0.display();
        let text = format!(
            "listener {port} 127.0.0.1\nallow_anonymous true\npersistence_location {directory}/\n\
             user root\nset_tcp_nodelay true\nmax_queued_messages 0\n{settings}\n"
        );
        fs::write(scratch.0.join("mosquitto.conf"), text).unwrap();
        let process = launch(&scratch.0)?;
        let broker = Mosquitto { process, port, scratch };
        broker.wait();
        Some(broker)
    }

    /// Ends it with a signal and waits.
    pub fn end(&mut self, signal: Signal) {
        process::send(self.process.id() as i32, signal).unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again, on the same port and with the same files.
    pub fn restart(&mut self) {
        self.process = launch(&self.scratch.0).unwrap();
        self.wait();
    }

    fn wait(&self) {
        until("the broker listens", || TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok());
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn launch(directory: &Path) -> Option<Child> {
    let log = File::create(directory.join("log")).unwrap();
    let program = ["mosquitto", "/usr/sbin/mosquitto"].into_iter().find_map(|program| {
        let mut command = Command::new(program);
        command.arg("-c").arg(directory.join("mosquitto.conf")).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log.try_clone().unwrap());
        command.spawn().ok()
    });
    if program.is_none() {
        eprintln!("skipped: there is no mosquitto here");
    }
    program
}

/// Waits for what must become true, however busy the machine is.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(time::Instant::now() < deadline, "waited in vain until {what}");
        sleep(time::Duration::from_millis(5));
    }
}

/// A plan of these groups against a broker on loopback, publishing for `duration_ms`.
pub fn plan(port: u16, duration_ms: u64, groups: &[Value]) -> Plan {
    let tcp = json!({
        "profile": "linux", "congestion_control": "reno", "sack": true, "timestamps": true, "window_scaling": true,
        "rto_min_ns": 200_000_000, "rto_max_ns": 120_000_000_000_u64, "delayed_ack": true, "delayed_ack_max_ns": null,
        "initial_window_segments": 10, "mss_bytes": null, "send_buffer_bytes": null, "receive_buffer_bytes": null,
        "tail_loss_probe": true, "syn_retries": 6, "syn_linear_retries": 4,
    });
    let plan = json!({
        "schema": 2, "name": "fleet", "description": "", "backend": "live", "seed": 7, "repetition": 0,
        "phases": {
            "connect_timeout_ns": 1, "warm_up_ns": 0, "duration_ns": duration_ms * 1_000_000, "cool_down_ns": 0,
        },
        "hosts": [{ "name": "all", "address": "127.0.0.1", "tcp": tcp }],
        "network": { "kind": "external", "description": "", "mtu_bytes": 65535, "links": [], "paths": [] },
        "servers": [{
            "name": "broker", "kind": "mosquitto", "version": "", "host": 0,
            "endpoints": [{ "transport": "tcp", "address": "127.0.0.1", "port": port }],
            "process": null, "when_it_dies": "end_run",
            "role": { "broker": {
                "settings": { "tcp_nodelay": true, "max_inflight": 0, "max_queued": 0, "persistence": false },
                "service": { "per_packet_ns": 0, "per_copy_ns": 0, "jitter": [0, 1] },
            } },
        }],
        "groups": groups,
        "recording": { "packets": false, "pcapng": false, "resource_interval_ns": 1_000_000_000 },
        "live": { "real_time": false, "latency_compensation_ns": null, "port": "auto", "workers": 2 },
        "sim": { "stop": null, "detect_transient": false, "client_wake_up_ns": 0, "tcp_stacks": {} },
    });
    Plan::from_json(&plan.to_string()).expect("the test's plan is one")
}

/// A group with nothing to do; the tests set what matters to them.
pub fn group(name: &str, count: u32) -> Value {
    json!({
        "name": name, "count": count, "host": 0, "host_step": 0, "connects_to": 0,
            "transport": { "tcp": { "nodelay": true } },
        "protocol": { "mqtt": {
            "version": "3.1.1", "client_id": "{group}-{client}", "keep_alive_s": 60, "clean_session": true,
            "session_expiry_s": 0, "max_inflight": 20, "max_queued": 100_000, "receive_maximum": 65535, "deliver_on_release": false,
            "retry": null, "username": null, "password": null, "will": null,
        } },
        "reconnect": {
            "enabled": true, "initial_ns": 20_000_000, "maximum_ns": 200_000_000, "jitter": [1, 10],
            "connect_timeout_ns": 10_000_000_000_u64,
        },
        "connect_over_ns": 0, "publish": null, "subscriptions": [], "relay": null, "late_after_ns": null,
    })
}

pub fn publisher(name: &str, count: u32, topic: &str, qos: u8, interval_us: u64) -> Value {
    let mut publisher = group(name, count);
    publisher["publish"] = json!({
        "topic": topic, "topics": 1, "qos": qos, "retain": false, "payload": { "kind": "fixed", "bytes": 64 },
        "arrival": { "kind": "constant", "interval_ns": interval_us * 1000 }, "start_phase": "synchronised",
        "messages": null,
    });
    publisher
}

pub fn subscriber(name: &str, count: u32, filter: &str, qos: u8) -> Value {
    let mut subscriber = group(name, count);
    subscriber["subscriptions"] = json!([{ "filter": filter, "qos": qos }]);
    subscriber
}

/// A fleet at work, and the books it keeps.
pub struct Performance {
    pub plan: Arc<Plan>,
    pub control: Arc<Control>,
    pub directory: Arc<Directory>,
    recorder: Recorder,
    fleet: Fleet,
    scratch: Scratch,
}

impl Performance {
    /// Starts all clients of a plan. They record what they know of their packets, where the plan wants packets.
    pub fn start(plan: Plan) -> Performance {
        let unrecorded = UnrecordedConnections::of(&plan, &[]);
        Performance::start_unseen(plan, unrecorded)
    }

    /// The same, of these connections.
    pub fn start_unseen(plan: Plan, unrecorded: UnrecordedConnections) -> Performance {
        let (scratch, clock) = (Scratch::new(), Clock::start());
        let directory = Arc::new(Directory::new(&plan, &clock));
        let recorder = Recorder::create(&scratch.0, &plan.to_json(), directory.layout()).unwrap();
        let control = Arc::new(Control::new(clock, Priority::Normal, plan.groups.len()));
        let sockets = Arc::new(Testbed::build(&plan).unwrap().sockets());
        let plan = Arc::new(plan);
        let (of_fleet, of_control) = (Arc::clone(&directory), Arc::clone(&control));
        let fleet =
            Fleet::start(Arc::clone(&plan), sockets, of_fleet, &recorder, of_control, unrecorded).unwrap();
        Performance { plan, control, directory, recorder, fleet, scratch }
    }

    pub fn clients(&self) -> u32 {
        *self.plan.client_numbers().last().unwrap()
    }

    pub fn wait_until_ready(&self) {
        let all = self.clients();
        until("every client is ready", || self.control.figures.ready.load(Relaxed) == all);
    }

    /// Announces when to publish.
    pub fn begin(&self) -> Schedule {
        let publish_from = self.control.now() + Control::NOTICE * 2;
        let measure_until = publish_from + self.plan.phases.duration;
        let schedule = Schedule { publish_from, measure_from: publish_from, measure_until };
        self.control.announce(schedule);
        schedule
    }

    /// Waits until everything that was offered has been dealt with.
    pub fn wait_until_settled(&self, schedule: Schedule) {
        let over = schedule.measure_until + Duration::from_ms(100);
        until("the run is settled", || self.control.now() >= over && self.control.is_settled());
    }

    /// Says goodbye and reads the recording.
    pub fn end(self) -> ValidityEvidence {
        self.control.stop();
        self.fleet.join().unwrap();
        assert!(self.recorder.close().failure.is_none());
        let finish = Finish {
            facts: RunFacts::default(),
            ending: Ending::Complete,
            strain: Strain::default(),
            rows_missing: false,
            claim: None,
            analyser: &mut HeaderAnalyser::default(),
            captures: false,
        };
        finalise(&self.scratch.0, finish).unwrap();
        ValidityEvidence {
            messages: rows(&self.scratch.0.join("messages.parquet")),
            packets: rows(&self.scratch.0.join("control_packets.parquet")),
            events: rows(&self.scratch.0.join("events.parquet")),
            clients: rows(&self.scratch.0.join("clients.parquet")),
            control: self.control,
        }
    }
}

/// Connects, publishes, settles and ends: for plans in which nothing goes wrong.
pub fn perform(plan: Plan) -> ValidityEvidence {
    let performance = Performance::start(plan);
    performance.wait_until_ready();
    let schedule = performance.begin();
    performance.wait_until_settled(schedule);
    performance.end()
}

/// What a run has left.
pub struct ValidityEvidence {
    pub messages: Vec<BTreeMap<String, Value>>,
    pub events: Vec<BTreeMap<String, Value>>,
    pub clients: Vec<BTreeMap<String, Value>>,
    pub packets: Vec<BTreeMap<String, Value>>,
    pub control: Arc<Control>,
}

impl ValidityEvidence {
    /// Rows of messages by fate.
    pub fn fates(&self) -> BTreeMap<&str, usize> {
        count(self.messages.iter().map(|row| row["fate"].as_str().unwrap()))
    }

    /// Events by kind.
    pub fn events(&self) -> BTreeMap<&str, usize> {
        count(self.events.iter().map(|row| row["kind"].as_str().unwrap()))
    }

    /// Whether some event of this kind says so.
    pub fn says(&self, kind: &str, words: &str) -> bool {
        let detail =
            |row: &BTreeMap<String, Value>| row["detail"].as_str().unwrap_or_default().contains(words);
        self.events.iter().any(|row| row["kind"] == kind && detail(row))
    }
}

fn count<'a>(words: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    words.for_each(|word| *counts.entry(word).or_default() += 1);
    counts
}

fn rows(path: &Path) -> Vec<BTreeMap<String, Value>> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let columns =
        |row: Row| row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect();
    reader.get_row_iter(None).unwrap().map(|row| columns(row.unwrap())).collect()
}

fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(value) => json!(value),
        Field::Str(value) => json!(value),
        Field::Double(value) => json!(value),
        number => number.to_string().parse::<i64>().map_or_else(|_| json!(number.to_string()), Value::from),
    }
}

/// A listener whose connections are handled one after the other, for what no real broker does on demand.
pub fn fake_broker(handle: impl FnMut(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(handle));
    address
}

const PATIENCE: time::Duration = time::Duration::from_secs(60);
