//! How long a frame takes through this machine when the links take no time at all.
//!
//! A datagram needs some tens of microseconds from the sender's system call to the receiver's kernel, most of it
//! waking the emulator up. It does not depend on the emulated delay, so it is measured once, on a scratch pair of
//! hosts, and every delivery is begun that much earlier. Where a delay is shorter than that, the difference stays.
//!
//! What it does not measure: the load of the run itself.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::thread;
use std::time;

use mqttlab_net::LinkSpec;
use mqttlab_plan::{Hop, PathPlan, PortKind};
use mqttlab_system::clock::unix_ns;
use mqttlab_system::namespaces::Namespace;
use mqttlab_system::netlink::Metrics;
use mqttlab_system::priority::Priority;
use mqttlab_system::sockets;
use mqttlab_units::{Duration, Seed};

use crate::clock::Clock;
use crate::network::emulator::{Emulator, EmulatorSetting};
use crate::network::port::{Device, Port};
use crate::network::wiring::Wiring;

/// Two hosts with a link from the first to the second, and a datagram socket on each.
pub struct Bench {
    emulator: Emulator,
    /// Sends to the receiver.
    pub sender: UdpSocket,
    /// Stamps what it receives in the kernel.
    pub receiver: UdpSocket,
}

impl Bench {
    /// Builds it, with an emulator of the given priority and compensation.
    ///
    /// # Errors
    /// Namespaces or devices cannot be made.
    pub fn build(
        link: LinkSpec,
        kind: PortKind,
        priority: Priority,
        compensation: Duration,
    ) -> io::Result<Bench> {
        let (namespaces, wire) = ([Namespace::new()?, Namespace::new()?], Namespace::new()?);
        let mut ports = Vec::new();
        for (namespace, address) in namespaces.iter().zip(ADDRESSES) {
            let device = Device { address, mtu: 1500, metrics: Metrics::default() };
            ports.push(Port::open(namespace, &wire, kind, &device)?);
        }
        let bind =
            |host: usize| namespaces[host].run(|| UdpSocket::bind(SocketAddrV4::new(ADDRESSES[host], 0)));
        let (sender, receiver) = (bind(0)?, bind(1)?);
        sender.connect(receiver.local_addr()?)?;
        sockets::stamp(&receiver)?;
        receiver.set_read_timeout(Some(time::Duration::from_secs(5)))?;
        let paths = vec![PathPlan { from: 0, to: 1, hops: vec![Hop::Link(0)] }];
        let wiring = Wiring::of_pair(ADDRESSES, vec![link], paths, Seed(0));
        let clock = Clock::start();
        let setting = EmulatorSetting::unrecorded(ports, wiring, compensation, clock, priority);
        let emulator = Emulator::start(setting)?;
        Ok(Bench { emulator, sender, receiver })
    }

    /// The emulator's counters.
    pub fn counters(&self) -> &crate::network::emulator::EmulatorCounters {
        self.emulator.shared()
    }

    /// Sends one datagram and says how long it took from before the system call to the receiver's kernel.
    ///
    /// # Errors
    /// It did not arrive within five seconds.
    pub fn one_way_delay(&self, payload: &[u8]) -> io::Result<Duration> {
        // By the clock that the kernel stamps with.
        let sent = unix_ns();
        self.sender.send(payload)?;
        let (_, received) = receive(&self.receiver, &mut [0; 2048])?;
        Ok(Duration::from_ns(received.saturating_sub(sent)))
    }

    /// Stops the emulator.
    ///
    /// # Errors
    /// The error that it ended with.
    pub fn stop(self) -> io::Result<()> {
        self.emulator.stop().map(drop)
    }
}

/// Measures the compensation that this machine needs: the median excess over a delay of 2 ms.
///
/// # Errors
/// Namespaces or devices cannot be made, or nothing arrived.
pub fn compensation(kind: PortKind, priority: Priority) -> io::Result<Duration> {
    let link = constant_delay(CALIBRATION_DELAY);
    let bench = Bench::build(link, kind, priority, Duration::ZERO)?;
    let mut excess = Vec::with_capacity(SAMPLES);
    for sample in 0..SAMPLES + WARM_UP {
        // As far apart as messages are, because a processor that has slept longer wakes more slowly, and of
        // different lengths, so that no timer beats with them.
        thread::sleep(time::Duration::from_micros(1500 + 237 * (sample as u64 % 13)));
        let delay = bench.one_way_delay(&[0; 64])?;
        if sample >= WARM_UP {
            excess.push(delay.saturating_sub(CALIBRATION_DELAY));
        }
    }
    bench.stop()?;
    excess.sort_unstable();
    Ok(excess[SAMPLES / 2].min(COMPENSATION_MAX))
}

/// A link that does nothing but delay.
pub fn constant_delay(mean: Duration) -> LinkSpec {
    let json = serde_json::json!({
        "name": "bench", "rate_bit_s": null, "overhead_bytes": 0, "minimum_frame_bytes": 0,
        "queue": { "limit_packets": null, "limit_bytes": null, "counts_delay_line": false },
        "delay": { "law": "constant", "mean_ns": mean, "jitter_ns": 0, "correlation": [0, 1], "keep_order": true },
        "loss": { "kind": "none" }, "loss_at": "entry",
        "duplication": [0, 1], "corruption": [0, 1],
        "reordering": { "probability": [0, 1], "gap": 1 },
    });
    serde_json::from_value(json).expect("this is a link")
}

/// Receives a datagram and the time at which the kernel had it, in nanoseconds since 1970.
///
/// # Errors
/// Nothing came before the socket's timeout, or without a time.
pub fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, u64)> {
    let (length, stamp) = sockets::receive_stamped(socket, buffer)?;
    let stamp = stamp.ok_or_else(|| io::Error::other("a datagram came without a time stamp"))?;
    Ok((length, stamp))
}

/// The address of the receiver, for other senders.
///
/// # Errors
/// Never for a bound socket.
pub fn address(socket: &UdpSocket) -> io::Result<SocketAddr> {
    socket.local_addr()
}

const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 255, 0, 1), Ipv4Addr::new(10, 255, 0, 2)];
const CALIBRATION_DELAY: Duration = Duration::from_ms(2);
const SAMPLES: usize = 50;
/// The first datagram may lack a time stamp's accuracy: the kernel enables stamping lazily.
const WARM_UP: usize = 5;
/// A busy machine must not make a run's delays shorter than they should be.
const COMPENSATION_MAX: Duration = Duration::from_us(150);
