//! What clients on a server's own host say to it, which never comes to the emulator.
//!
//! ```text
//!   client ──► lo ──► server        a packet socket sees each frame where lo hands it to its receiver
//! ```
//!
//! It listens and holds nothing up: a TUN device in the path would add two copies and a wake-up to every frame, which a
//! load on one host would measure instead of the broker. The kernel stamps the frames, and keeps them until this
//! thread, which has no priority, reads them; what does not fit into the socket's buffer is dropped there, and counted.
//!
//! What it does not model: links. Frames of `lo` take no time, and a TCP segment here may have 64 KiB.

use std::io;
use std::os::fd::OwnedFd;
use std::thread::{self, JoinHandle};

use mqttlab_plan::Endpoint;
use mqttlab_recording::{Direction, Frame, FrameFate, Sink};
use mqttlab_system::devices::{self, LinkAddress};
use mqttlab_system::namespaces::Namespace;
use mqttlab_system::netlink;
use mqttlab_system::poller::{Interest, Poller, Waker};
use mqttlab_system::sockets;
use mqttlab_units::{Duration, Instant};

use crate::clock::Clock;
use crate::network::frame_names::FrameNames;

/// What a capture works with.
pub struct LoopbackSetting<'a> {
    /// The server's namespace.
    pub namespace: &'a Namespace,
    /// Which of the plan's servers it is.
    pub server: usize,
    /// The server's host.
    pub host: u16,
    /// The number that the recording has for the device.
    pub link: u16,
    /// Where the server listens; what is not to or from there is not written down.
    pub endpoints: Vec<Endpoint>,
    /// The run's clock.
    pub clock: Clock,
    /// Where frames are written down.
    pub sink: Sink,
}

/// A capture under way.
pub struct LoopbackCapture {
    server: usize,
    waker: Waker,
    thread: JoinHandle<io::Result<CaptureCount>>,
}

/// How many frames a capture has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureCount {
    /// Frames that were written down.
    pub frames: u64,
    /// Frames that the kernel dropped because the socket's buffer was full.
    pub dropped: u64,
}

impl LoopbackCapture {
    /// Starts it.
    ///
    /// # Errors
    /// Packet sockets are not permitted here, or there are too many open files or threads.
    pub fn start(setting: LoopbackSetting<'_>) -> io::Result<LoopbackCapture> {
        let socket = setting.namespace.run(|| {
            // A segment is a row; without this one row may be many small segments.
            devices::switch_segmentation_offloads_off("lo")?;
            let address = LinkAddress::new(netlink::link_index("lo")?, [0; 6]);
            let socket = devices::packet_socket(&address, BUFFER_BYTES)?;
            sockets::stamp(&socket)?;
            Ok(socket)
        })?;
        let (waker, poller) = (Waker::new()?, Poller::new(SOURCES)?);
        poller.add(&socket, SOCKET, Interest::Reading)?;
        poller.add(&waker, WAKER, Interest::Reading)?;
        let mut reader = LoopbackReader {
            socket,
            clock: setting.clock,
            sink: setting.sink,
            endpoints: setting.endpoints,
            numbered_from: NUMBERED_FROM * (1 + setting.server as u64),
            pattern: pattern(setting.host, setting.link),
            latest: Instant::ZERO,
            names: FrameNames::default(),
            seen: CaptureCount::default(),
            buffer: vec![0; FRAME_BYTES_MAX].into(),
        };
        let thread = thread::Builder::new().name("loopback".into()).spawn(move || reader.run(poller))?;
        Ok(LoopbackCapture { server: setting.server, waker, thread })
    }

    /// Which of the plan's servers it listens to.
    pub fn server(&self) -> usize {
        self.server
    }

    /// Takes what the kernel still has, and ends.
    ///
    /// # Errors
    /// The error that it ended with.
    ///
    /// # Panics
    /// When its thread did.
    pub fn stop(self) -> io::Result<CaptureCount> {
        self.waker.wake();
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl CaptureCount {
    /// Both together.
    pub fn and(self, other: CaptureCount) -> CaptureCount {
        CaptureCount { frames: self.frames + other.frames, dropped: self.dropped + other.dropped }
    }

    /// A sentence on what is missing, if anything is.
    pub fn gap(&self) -> Option<String> {
        let CaptureCount { frames, dropped } = *self;
        (dropped > 0).then(|| {
            format!(
                "{dropped} of {} frames of clients on their server's host were not captured, because this program did not \
                 read them in time: the recorded packets and the attribution of those messages' latency have gaps",
                frames + dropped
            )
        })
    }
}

struct LoopbackReader {
    socket: OwnedFd,
    clock: Clock,
    sink: Sink,
    endpoints: Vec<Endpoint>,
    /// The number of its first frame, apart from those of other servers' devices.
    numbered_from: u64,
    /// What all rows have in common.
    pattern: Frame,
    /// The time of the last frame.
    latest: Instant,
    /// Which tells what is sent again.
    names: FrameNames,
    seen: CaptureCount,
    buffer: Box<[u8]>,
}

impl LoopbackReader {
    fn run(&mut self, mut poller: Poller) -> io::Result<CaptureCount> {
        let mut over = false;
        while !over {
            over = (0..poller.wait(Some(IDLE))?).any(|index| poller.ready(index).number == WAKER);
            while let Some((length, stamp_ns)) = receive(&self.socket, &mut self.buffer)? {
                self.record(length, stamp_ns);
            }
            self.sink.tick();
        }
        self.seen.dropped = devices::socket_drops(&self.socket)?;
        Ok(self.seen)
    }

    fn record(&mut self, length: usize, stamp_ns: Option<u64>) {
        let packet = &self.buffer[..length];
        let Some(to_broker) = towards(packet, &self.endpoints) else { return };
        // The wall clock may be set while the run goes on; time does not run back, and nothing comes before it was sent.
        let now = self.clock.now();
        let at = stamp_ns.map_or(now, |stamp| self.clock.at_unix_ns(stamp)).min(now).max(self.latest);
        self.latest = at;
        let named = self.names.name(u32::from(self.pattern.from_host), packet, self.seen.frames);
        let frame = Frame {
            repetition: named.repetition,
            direction: if to_broker { Direction::Up } else { Direction::Down },
            frame: self.numbered_from + self.seen.frames,
            frame_bytes: length as u32,
            entered: at,
            start: Some(at),
            sent: Some(at),
            delivered: Some(at),
            ..self.pattern
        };
        self.seen.frames += 1;
        self.sink.frame(&frame, packet);
    }
}

fn pattern(host: u16, link: u16) -> Frame {
    Frame {
        link,
        direction: Direction::Up,
        hop: 0,
        hops: 1,
        frame: 0,
        from_host: host,
        to_host: host,
        frame_bytes: 0,
        entered: Instant::ZERO,
        start: None,
        sent: None,
        delivered: None,
        fate: FrameFate::Delivered,
        cause: None,
        repetition: None,
    }
}

/// Whether an IPv4 packet goes to one of these endpoints; `None` when it neither goes there nor comes from there. TCP and UDP
/// have port numbers of their own: a gateway and a broker may both have 1884.
fn towards(packet: &[u8], endpoints: &[Endpoint]) -> Option<bool> {
    let header = usize::from(packet.first().filter(|first| *first >> 4 == 4)? & 15) * 4;
    let protocol = *packet.get(9)?;
    let port_at = |at: usize| Some(u16::from_be_bytes(packet.get(at..at + 2)?.try_into().ok()?));
    let is_of_server = |port: u16| {
        let is_it =
            |endpoint: &Endpoint| endpoint.port == port && endpoint.transport.ip_protocol() == protocol;
        endpoints.iter().any(is_it)
    };
    let [from_server, to_server] = [is_of_server(port_at(header)?), is_of_server(port_at(header + 2)?)];
    (from_server || to_server).then_some(to_server)
}

/// Reads one frame and when the kernel saw it, by the wall clock; `None` when there is none now.
fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<u64>)>> {
    match sockets::receive_stamped(socket, buffer) {
        Ok(frame) => Ok(Some(frame)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Frames that nobody has read yet; at 64 KiB each a few hundred, small ones some tens of thousands.
const BUFFER_BYTES: usize = 32 << 20;
/// Nothing larger comes out of `lo`.
const FRAME_BYTES_MAX: usize = 1 << 17;
/// The emulator numbers its frames from zero.
const NUMBERED_FROM: u64 = 1 << 40;
/// The recorder wants to hear from every sink ten times a second.
const IDLE: Duration = Duration::from_ms(50);
/// The socket and the waker.
const SOURCES: usize = 2;
const SOCKET: u64 = 0;
const WAKER: u64 = u64::MAX;
#[cfg(test)]
mod tests {
    use mqttlab_plan::EndpointTransport;

    use super::*;

    fn segment(from: u16, to: u16, protocol: u8) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x45;
        packet[9] = protocol;
        packet[20..22].copy_from_slice(&from.to_be_bytes());
        packet[22..24].copy_from_slice(&to.to_be_bytes());
        packet
    }

    #[test]
    fn frames_that_were_not_captured_are_said() {
        assert_eq!(CaptureCount { frames: 5, dropped: 0 }.gap(), None);
        assert!(CaptureCount { frames: 5, dropped: 2 }.gap().unwrap().starts_with("2 of 7 frames"));
    }

    #[test]
    fn only_what_a_server_says_and_hears_is_written_down() {
        let endpoint = |transport| Endpoint { transport, address: [10, 77, 0, 1].into(), port: 1883 };
        let (broker, gateway) = ([endpoint(EndpointTransport::Tls)], [endpoint(EndpointTransport::Udp)]);
        let (tcp, udp) = (EndpointTransport::Tcp.ip_protocol(), EndpointTransport::Udp.ip_protocol());
        assert_eq!(towards(&segment(40_000, 1883, tcp), &broker), Some(true));
        assert_eq!(towards(&segment(1883, 40_000, tcp), &broker), Some(false));
        assert_eq!(towards(&segment(40_000, 80, tcp), &broker), None);
        assert_eq!(towards(&segment(40_000, 1883, udp), &broker), None);
        assert_eq!(towards(&segment(1883, 40_000, udp), &gateway), Some(false));
        assert_eq!(towards(&segment(40_000, 1883, tcp), &gateway), None);
        assert_eq!(towards(&[0x45; 8], &broker), None);
    }
}
