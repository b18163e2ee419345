//! Measures what an emulated path does, and says what its model says beside it.
//!
//! ```text
//!   links of a plan ──► two hosts, the emulator between them ──► paced datagrams   delay, jitter, loss
//!                                                            ──► trains            rate
//!                                                            ──► TCP               round trip, goodput
//! ```
//!
//! The path has the plan's links, dice of its own, and nobody else on it. Both ends are on this machine and read one
//! clock. What it does not measure: what the links do when others use them, too; and paths over a radio channel, whose
//! delay depends on who else sends.

mod expected;
mod tcp;
pub(crate) mod udp;

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time;

use mqttlab_net::LinkSpec;
use mqttlab_plan::{Hop, PathPlan, Plan};
use mqttlab_system::namespaces::Namespace;
use mqttlab_system::netlink::Metrics;
use mqttlab_system::priority::{self, Priority};
use mqttlab_system::sockets;
use mqttlab_units::Duration;
use serde_json::{Value, json};

use self::expected::{Expected, expected, frame_bytes};
use self::udp::{HEADER_BYTES, PROBE_BYTES, Paced, TrainPlan, Trains};
use crate::clock::Clock;
use crate::network::calibration;
use crate::network::emulator::{Emulator, EmulatorCounters, EmulatorSetting};
use crate::network::port::{Device, Port};
use crate::network::wiring::Wiring;

/// The links between a host and its server's, there and back.
#[derive(Clone, Debug)]
struct ProbedPath {
    host: usize,
    server_host: usize,
    /// To the server, from the server.
    links: [Vec<LinkSpec>; 2],
    /// Where these are among the plan's; a transmitter that both directions share is in both.
    numbers: [Vec<usize>; 2],
}

impl ProbedPath {
    fn is_shared(&self) -> bool {
        self.numbers[0].iter().any(|number| self.numbers[1].contains(number))
    }
}

/// Probes the plan's paths, each for about `length`, and returns what was found as `run.json` holds it. Paths that differ
/// in nothing but the names of their links are probed once; of the others the first [`PATHS_MAX`]. `say` is told the part
/// that is done, and what comes. The process must be allowed to make namespaces.
///
/// # Errors
/// Namespaces or devices cannot be made.
pub fn probe(plan: &Plan, length: Duration, say: &mut dyn FnMut(f64, &str)) -> io::Result<Value> {
    let paths = paths(plan);
    let priority =
        if priority::real_time_permitted().is_ok() { Priority::EMULATOR } else { Priority::Normal };
    let compensation = match plan.live.latency_compensation {
        Some(compensation) => compensation,
        None => calibration::compensation(plan.live.port, priority)?,
    };
    let count = paths.len().min(PATHS_MAX);
    let mut found = Vec::new();
    for (number, path) in paths.iter().take(count).enumerate() {
        let name = &plan.hosts[path.host].name;
        let mut part = |done: f64, what: &str| {
            say((number as f64 + done) / count as f64, &format!("{name}: {what}"));
        };
        let bench = ProbeSetup { plan, path, priority, compensation };
        found.push(bench.measure(time::Duration::from_nanos(length.as_ns()), &mut part)?);
    }
    say(1.0, "done");
    Ok(json!({
        "paths": found,
        "paths_left_out": paths.len() - count,
        "real_time": priority != Priority::Normal,
        "latency_compensation_ns": compensation,
    }))
}

/// Every host's way to its server and back, once for each that differs.
fn paths(plan: &Plan) -> Vec<ProbedPath> {
    let numbers = |from: usize, to: usize| -> Option<Vec<usize>> {
        let path = plan.network.paths.iter().find(|path| (path.from, path.to) == (from, to))?;
        let link = |hop: &Hop| match *hop {
            Hop::Link(link) => Some(link),
            Hop::Radio { .. } => None,
        };
        path.hops.iter().map(link).collect()
    };
    let both = |(host, server_host): (usize, usize)| {
        let numbers = [numbers(host, server_host)?, numbers(server_host, host)?];
        let links = |way: usize| numbers[way].iter().map(|link| plan.network.links[*link].clone()).collect();
        Some(ProbedPath { host, server_host, links: [links(0), links(1)], numbers })
    };
    let mut seen = BTreeSet::new();
    let talking = plan.clients().map(|(group, client)| (group.host_of(client), plan.server_of(group).host));
    let talking: BTreeSet<(usize, usize)> = talking.filter(|(host, server)| host != server).collect();
    let paths = talking.into_iter().filter_map(both);
    let is_emulated = |path: &ProbedPath| path.numbers.iter().any(|numbers| !numbers.is_empty());
    paths.filter(|path| is_emulated(path) && seen.insert(without_names(path))).collect()
}

fn without_names(path: &ProbedPath) -> String {
    let mut links = path.links.clone();
    links.iter_mut().flatten().for_each(|link| link.name.clear());
    serde_json::to_string(&(links, path.is_shared())).expect("links can be written")
}

/// What is probed, and how.
struct ProbeSetup<'a> {
    plan: &'a Plan,
    path: &'a ProbedPath,
    priority: Priority,
    compensation: Duration,
}

/// Two hosts with the path between them.
struct Pair {
    namespaces: [Namespace; 2],
    /// There until the pair is dropped.
    emulator: Option<Emulator>,
    shared: Arc<EmulatorCounters>,
    clock: Clock,
}

impl ProbeSetup<'_> {
    fn measure(&self, length: time::Duration, say: &mut dyn FnMut(f64, &str)) -> io::Result<Value> {
        let size = PROBE_BYTES as u64 + HEADER_BYTES;
        let expected = [0, 1].map(|way| expected(&self.path.links[way], size));
        say(0.0, "delay and loss");
        let pair = self.build()?;
        let paced = self.pace(&pair, &expected, length.mul_f64(0.5))?;
        let lateness = pair.shared.lateness.snapshot();
        let mut trains = [None, None];
        for way in [0, 1] {
            say(0.5 + 0.1 * way as f64, "rate");
            trains[way] = self.trains(&pair, way, &expected, length.mul_f64(0.1))?;
        }
        say(0.7, "round trip of TCP");
        let [client, broker] = &pair.namespaces;
        let connect = tcp::shortest_connect(client, broker, ADDRESSES[1], CONNECTS)?;
        drop(pair);
        let mut bulk = [None, None];
        for way in [0, 1] {
            say(0.8 + 0.1 * way as f64, "goodput of TCP");
            // A pair of its own, for what the other transfer left in the queues would hold it up.
            let pair = self.build()?;
            let (from, to) = (&pair.namespaces[way], &pair.namespaces[1 - way]);
            bulk[way] = tcp::bulk(from, to, ADDRESSES[1 - way], length.mul_f64(0.1))?;
        }
        let direction = |way: usize| {
            json!({
                "expected": expected[way], "udp": paced[way], "trains": trains[way], "tcp": bulk[way],
            })
        };
        Ok(json!({
            "host": self.plan.hosts[self.path.host].name,
            "broker_host": self.plan.hosts[self.path.server_host].name,
            "up": direction(0),
            "down": direction(1),
            "probe_bytes": size,
            "connect_ns": connect.map(|time| time.as_nanos() as u64),
            "emulator_lateness_p99_ns": lateness.percentile(99.0),
        }))
    }

    fn build(&self) -> io::Result<Pair> {
        let (namespaces, wire) = ([Namespace::new()?, Namespace::new()?], Namespace::new()?);
        let mut ports = Vec::new();
        for (namespace, address) in namespaces.iter().zip(ADDRESSES) {
            let device = Device { address, mtu: self.plan.network.mtu_bytes, metrics: Metrics::default() };
            ports.push(Port::open(namespace, &wire, self.plan.live.port, &device)?);
        }
        // The plan's links under their own names and numbers, so that what is shared is.
        let hops = |way: usize| self.path.numbers[way].iter().copied().map(Hop::Link).collect();
        let paths =
            vec![PathPlan { from: 0, to: 1, hops: hops(0) }, PathPlan { from: 1, to: 0, hops: hops(1) }];
        let links = self.plan.network.links.clone();
        let wiring = Wiring::of_pair(ADDRESSES, links, paths, self.plan.seed.derive("probe"));
        let clock = Clock::start();
        let (compensation, priority) = (self.compensation, self.priority);
        let setting = EmulatorSetting::unrecorded(ports, wiring, compensation, clock, priority);
        let emulator = Emulator::start(setting)?;
        let shared = Arc::clone(emulator.shared());
        Ok(Pair { namespaces, emulator: Some(emulator), shared, clock })
    }

    /// Both directions at once; where they share a link a probe finds it busy now and then.
    fn pace(&self, pair: &Pair, expected: &[Expected; 2], length: time::Duration) -> io::Result<[Paced; 2]> {
        let sockets = pair.sockets()?;
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let receivers = [1, 0].map(|end: usize| {
                let (socket, over) = (&sockets[end], &over);
                scope.spawn(move || udp::collect(socket, over))
            });
            let senders = [0, 1].map(|way: usize| {
                let part = if self.path.is_shared() { USED_PART_SHARED } else { USED_PART };
                let interval = interval(&expected[way], &self.path.links[way], length, part);
                let count = (length.as_nanos() as u64 / interval.as_ns()).max(1);
                let (socket, clock) = (&sockets[way], &pair.clock);
                scope.spawn(move || udp::send_paced(socket, clock, count, interval, None))
            });
            let sent = senders.map(|sender| sender.join().expect("a sender does not panic"));
            // What is on the links still arrives.
            thread::sleep(expected.iter().map(receive_timeout).max().unwrap_or_default());
            over.store(true, Relaxed);
            let arrived = receivers.map(|receiver| receiver.join().expect("a receiver does not panic"));
            let [up, down] = sent;
            let [at_broker, at_host] = arrived;
            Ok([udp::judge(&up?, &at_broker?), udp::judge(&down?, &at_host?)])
        })
    }

    /// `None` where no link has a rate.
    fn trains(
        &self,
        pair: &Pair,
        way: usize,
        expected: &[Expected; 2],
        budget: time::Duration,
    ) -> io::Result<Option<Trains>> {
        let links = &self.path.links[way];
        let slowest = links.iter().filter(|link| link.rate_bit_s.is_some());
        let Some(slowest) = slowest.min_by_key(|link| link.rate_bit_s) else { return Ok(None) };
        let rate = expected[way].rate_bit_s.unwrap_or(u64::MAX) as f64;
        let mut payload = u64::from(self.plan.network.mtu_bytes).min(1500) - HEADER_BYTES;
        let time = |payload: u64| (frame_bytes(slowest, payload + HEADER_BYTES) * 8) as f64 / rate;
        // Ten frames or more to a train, where the link is slow by smaller ones.
        while payload > 2 * PROBE_BYTES as u64 && time(payload) * 10.0 > budget.as_secs_f64() {
            payload /= 2;
        }
        let frame_bytes = frame_bytes(slowest, payload + HEADER_BYTES);
        let fits = (budget.as_secs_f64() / 2.0 / time(payload)) as u64;
        let length = links.iter().map(|link| queue_frames(link, frame_bytes) / 2).min().unwrap_or(TRAIN_MAX);
        let length = length.min(fits).clamp(2, TRAIN_MAX);
        let patience = time::Duration::from_secs_f64(2.0 * length as f64 * time(payload))
            + receive_timeout(&expected[way]);
        let plan = TrainPlan { length, payload: payload as usize, frame_bytes, patience, budget };
        let sockets = pair.sockets()?;
        udp::trains(&sockets[way], &sockets[1 - way], plan).map(Some)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // Its thread would go on; a fault of it has shown in what did not arrive.
        let _ = self.emulator.take().map(Emulator::stop);
    }
}

impl Pair {
    /// Two sockets that send to each other; each stamps what it receives.
    fn sockets(&self) -> io::Result<[UdpSocket; 2]> {
        let bind = |end: usize| -> io::Result<UdpSocket> {
            let socket =
                self.namespaces[end].run(|| UdpSocket::bind(SocketAddrV4::new(ADDRESSES[end], 0)))?;
            sockets::stamp(&socket)?;
            socket.set_read_timeout(Some(time::Duration::from_millis(20)))?;
            Ok(socket)
        };
        let sockets = [bind(0)?, bind(1)?];
        sockets[0].connect(sockets[1].local_addr()?)?;
        sockets[1].connect(sockets[0].local_addr()?)?;
        Ok(sockets)
    }
}

/// Between two probes: so that they use no more than a part of the slowest link, and are [`PROBES`] at most.
fn interval(expected: &Expected, links: &[LinkSpec], length: time::Duration, part: f64) -> Duration {
    let bytes = links.iter().map(|link| frame_bytes(link, PROBE_BYTES as u64 + HEADER_BYTES)).max();
    let bits = (bytes.unwrap_or(0) * 8) as f64;
    let sending = expected.rate_bit_s.map_or(0.0, |rate| bits / rate as f64);
    let evenly = length.as_secs_f64() / PROBES as f64;
    Duration::from_s_f64(evenly.max(sending / part))
}

/// How long a frame may be on its way.
fn receive_timeout(expected: &Expected) -> time::Duration {
    let longest = expected.delay_mean_ns + 8.0 * expected.delay_sd_ns;
    time::Duration::from_nanos(longest as u64).min(PATIENCE_MAX) + time::Duration::from_millis(100)
}

/// Frames of this size that a link's queue holds.
fn queue_frames(link: &LinkSpec, frame_bytes: u64) -> u64 {
    let packets = link.queue.limit_packets.map_or(u64::MAX, u64::from);
    packets.min(link.queue.limit_bytes.map_or(u64::MAX, |bytes| bytes / frame_bytes))
}

/// Different paths that are probed at most.
pub const PATHS_MAX: usize = 4;
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 254, 0, 1), Ipv4Addr::new(10, 254, 0, 2)];
const PROBES: u64 = 2000;
/// The part of the slowest link that probes use.
const USED_PART: f64 = 0.2;
/// The same for each direction where both have one link.
const USED_PART_SHARED: f64 = 0.025;
const TRAIN_MAX: u64 = 100;
const CONNECTS: u32 = 3;
const PATIENCE_MAX: time::Duration = time::Duration::from_secs(3);
