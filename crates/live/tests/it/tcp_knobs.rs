//! Each TCP field of a plan, turned, moves something on the wire or in the kernel.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mqttlab_live::network::port::Port;
use mqttlab_live::{SocketFactory, Testbed};
use mqttlab_system::poller::{PollFd, PollFlags, poll};
use mqttlab_system::sockets;
use serde_json::{Value, json};

/// Two hosts, and a wire that keeps every frame.
struct Tapped {
    testbed: Testbed,
    frames: Arc<Mutex<Vec<Segment>>>,
    /// Frames of the client are thrown away while this is true.
    deaf: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    pump: Option<JoinHandle<()>>,
}

/// What a test asks of a TCP segment.
#[derive(Clone, Debug)]
struct Segment {
    from: usize,
    is_syn: bool,
    sequence: u32,
    payload_bytes: usize,
    options: Vec<(u8, Vec<u8>)>,
}

impl Tapped {
    fn new(tcp: &Value) -> Option<Tapped> {
        if !crate::support::namespaces_are_permitted() {
            return None;
        }
        let mut testbed = Testbed::build(&crate::support::plan(tcp)).unwrap();
        let ports = testbed.take_ports();
        let (frames, deaf, stop) =
            (Arc::default(), Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let pump = thread::spawn({
            let (frames, deaf, stop) = (Arc::clone(&frames), Arc::clone(&deaf), Arc::clone(&stop));
            move || {
                while !stop.load(Ordering::Relaxed) {
                    pump(&ports, &frames, &deaf);
                }
            }
        });
        Some(Tapped { testbed, frames, deaf, stop, pump: Some(pump) })
    }

    /// A connection from the client to a listener on the broker's host: both ends.
    fn connect(&self) -> (TcpStream, TcpStream) {
        let address = self.testbed.server_address(0);
        let listener = self.testbed.namespace(0).unwrap().run(|| TcpListener::bind(address)).unwrap();
        let socket = self.testbed.sockets().socket(1, 0).unwrap();
        connect(&socket, address);
        let (accepted, _) = listener.accept().unwrap();
        let client = TcpStream::from(socket);
        client.set_nonblocking(false).unwrap();
        (client, accepted)
    }

    fn segments(&self) -> Vec<Segment> {
        self.frames.lock().unwrap().clone()
    }

    fn syn_options(&self, from: usize) -> Vec<(u8, Vec<u8>)> {
        let segments = self.segments();
        segments
            .into_iter()
            .find(|segment| segment.from == from && segment.is_syn)
            .expect("a SYN was sent")
            .options
    }
}

impl Drop for Tapped {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.pump.take().map(JoinHandle::join);
    }
}

fn pump(ports: &[Port], frames: &Mutex<Vec<Segment>>, deaf: &AtomicBool) {
    let mut buffer = [0; 2048];
    let mut idle = true;
    for from in 0..2 {
        while let Some(length) = ports[from].read(&mut buffer).unwrap() {
            idle = false;
            frames.lock().unwrap().extend(parse(from, &buffer[..length]));
            if from == 0 || !deaf.load(Ordering::Relaxed) {
                ports[1 - from].write(&buffer[..length]).unwrap();
            }
        }
    }
    if idle {
        thread::sleep(Duration::from_micros(200));
    }
}

fn parse(from: usize, packet: &[u8]) -> Option<Segment> {
    let header = usize::from(packet[0] & 15) * 4;
    if packet[9] != 6 {
        return None;
    }
    let segment = &packet[header..];
    let data = usize::from(segment[12] >> 4) * 4;
    let mut options = Vec::new();
    let mut rest = &segment[20..data];
    while let [kind, tail @ ..] = rest {
        match kind {
            0 => break,
            1 => rest = tail,
            _ => {
                let length = usize::from(tail[0]);
                options.push((*kind, rest[2..length].to_vec()));
                rest = &rest[length..];
            }
        }
    }
    let sequence = u32::from_be_bytes(segment[4..8].try_into().unwrap());
    let payload_bytes = segment.len() - data;
    Some(Segment { from, is_syn: segment[13] & 2 != 0, sequence, payload_bytes, options })
}

/// Connects a non-blocking socket and waits for it.
fn connect(socket: &OwnedFd, address: SocketAddr) {
    sockets::connect(socket, address).unwrap();
    let ready = poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(mqttlab_units::Duration::from_s(10)));
    assert_eq!(ready.unwrap(), 1, "the connection was made within ten seconds");
}

fn with(field: &str, value: Value) -> Value {
    let mut tcp = crate::support::tcp();
    tcp[field] = value;
    tcp
}

const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const TIMESTAMPS: u8 = 8;

#[test]
fn sack_timestamps_and_window_scaling_are_offered_only_when_wanted() {
    let fields = [("sack", SACK_PERMITTED), ("timestamps", TIMESTAMPS), ("window_scaling", WINDOW_SCALE)];
    for (field, option) in fields {
        for wanted in [true, false] {
            let Some(tapped) = Tapped::new(&with(field, json!(wanted))) else { return };
            let _ends = tapped.connect();
            for from in 0..2 {
                let offered = tapped.syn_options(from).iter().any(|(kind, _)| *kind == option);
                assert_eq!(offered, wanted, "{field} by host {from}");
            }
        }
    }
}

#[test]
fn the_syn_announces_the_mss() {
    for (wanted, announced) in [(json!(536), 536u16), (Value::Null, 1460)] {
        let Some(tapped) = Tapped::new(&with("mss_bytes", wanted)) else { return };
        let _ends = tapped.connect();
        for from in 0..2 {
            let mss = tapped.syn_options(from).into_iter().find(|(kind, _)| *kind == MSS).unwrap().1;
            assert_eq!(mss, announced.to_be_bytes(), "of host {from}");
        }
    }
}

#[test]
fn both_ends_of_a_connection_have_the_congestion_control() {
    for wanted in ["reno", "cubic", "bbr"] {
        let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
        if !known.split_whitespace().any(|name| name == wanted) {
            eprintln!("skipped: this kernel has no {wanted}");
            continue;
        }
        let Some(tapped) = Tapped::new(&with("congestion_control", json!(wanted))) else { return };
        let (client, broker) = tapped.connect();
        assert_eq!(sockets::congestion_control(client.as_fd()).unwrap(), wanted);
        assert_eq!(sockets::congestion_control(broker.as_fd()).unwrap(), wanted, "the accepted end");
    }
}

#[test]
fn the_first_flight_is_the_initial_window() {
    for wanted in [2u32, 10, 20] {
        let Some(tapped) = Tapped::new(&with("initial_window_segments", json!(wanted))) else { return };
        let (mut client, mut broker) = tapped.connect();
        // The handshake's last acknowledgement has arrived when data of the client has.
        client.write_all(&[1]).unwrap();
        broker.read_exact(&mut [0]).unwrap();
        tapped.deaf.store(true, Ordering::Relaxed);
        broker.set_nonblocking(true).unwrap();
        let _ = broker.write(&[0; 60_000]).unwrap();
        let flight = || -> BTreeSet<u32> {
            let data = tapped.segments().into_iter();
            let data = data.filter(|segment| segment.from == 0 && segment.payload_bytes > 0);
            data.map(|segment| segment.sequence).collect()
        };
        // However long who reads the frames waits for a processor.
        let deadline = Instant::now() + Duration::from_secs(20);
        while (flight().len() as u32) < wanted && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        // Without acknowledgements nothing but repetitions can follow the first flight.
        thread::sleep(Duration::from_millis(300));
        let flight = flight();
        // A tail loss probe may add one new segment (RFC 8985 §7.3).
        let probe = u32::from(flight.len() as u32 == wanted + 1);
        assert_eq!(flight.len() as u32 - probe, wanted);
    }
}

#[test]
fn timers_and_buffers_are_the_namespaces() {
    let fields = [
        ("rto_min_ns", json!(50_000_000), "net/ipv4/tcp_rto_min_us", "50000"),
        ("rto_max_ns", json!(60_000_000_000_u64), "net/ipv4/tcp_rto_max_ms", "60000"),
        ("tail_loss_probe", json!(false), "net/ipv4/tcp_early_retrans", "0"),
        ("syn_retries", json!(3), "net/ipv4/tcp_syn_retries", "3"),
        ("syn_linear_retries", json!(0), "net/ipv4/tcp_syn_linear_timeouts", "0"),
        ("send_buffer_bytes", json!(30_000), "net/ipv4/tcp_wmem", "30000\t30000\t30000"),
        ("receive_buffer_bytes", json!(40_000), "net/ipv4/tcp_rmem", "40000\t40000\t40000"),
    ];
    for (field, value, sysctl, expected) in fields {
        if mqttlab_system::namespaces::sysctl(sysctl).is_none() {
            eprintln!("skipped: this kernel has no {sysctl}");
            continue;
        }
        let Some(tapped) = Tapped::new(&with(field, value)) else { return };
        for host in 0..2 {
            let namespace = tapped.testbed.namespace(host).unwrap();
            let found = namespace.run(|| Ok(mqttlab_system::namespaces::sysctl(sysctl))).unwrap();
            assert_eq!(found.as_deref(), Some(expected), "{field}");
        }
        assert_eq!(tapped.testbed.warnings(), &[] as &[String]);
    }
}

#[test]
fn without_delayed_acknowledgements_every_segment_is_acknowledged_at_once() {
    // In answer to a request the kernel delays its acknowledgement by 40 ms, unless told otherwise.
    let answered = |delayed: bool| -> Option<usize> {
        let tapped = Tapped::new(&with("delayed_ack", json!(delayed)))?;
        let (mut client, mut broker) = tapped.connect();
        for _ in 0..5 {
            client.write_all(&[1]).unwrap();
            broker.read_exact(&mut [0]).unwrap();
            broker.write_all(&[2]).unwrap();
            client.read_exact(&mut [0]).unwrap();
        }
        let pure = tapped.segments().into_iter().filter(|s| s.from == 0 && s.payload_bytes == 0 && !s.is_syn);
        Some(pure.count())
    };
    // A stall of the machine makes the kernel acknowledge in both cases, so a draw is played again.
    for _ in 0..10 {
        let (Some(delayed), Some(immediate)) = (answered(true), answered(false)) else { return };
        assert!(immediate >= 5, "each of five segments is acknowledged at once, not {immediate}");
        if delayed < immediate {
            return;
        }
    }
    panic!("delayed acknowledgements were never fewer than immediate ones");
}

#[test]
fn direct_networks_have_the_congestion_control_too() {
    for kind in ["loopback", "veth"] {
        if !crate::support::namespaces_are_permitted() {
            return;
        }
        let mut plan = crate::support::plan(&with("congestion_control", json!("cubic")));
        plan.network.kind = serde_json::from_value(json!(kind)).unwrap();
        let testbed = Testbed::build(&plan).unwrap();
        let address = testbed.server_address(0);
        let listener = testbed.namespace(0).unwrap().run(|| TcpListener::bind(address)).unwrap();
        let socket = testbed.sockets().socket(1, 0).unwrap();
        connect(&socket, address);
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(sockets::congestion_control(socket.as_fd()).unwrap(), "cubic", "{kind}");
        assert_eq!(
            sockets::congestion_control(accepted.as_fd()).unwrap(),
            "cubic",
            "{kind}, the accepted end"
        );
    }
}
