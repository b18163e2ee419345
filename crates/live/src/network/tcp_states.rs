//! What the kernel knows of every TCP connection, at both ends: asked of each host's namespace by sock_diag(7).
//!
//! ```text
//!   client's namespace  ──► its sockets: mark ─► client, own address ┐
//!   server's namespace  ──► its sockets: peer's address ─────────────┴─► the same client
//! ```
//!
//! A client marks its sockets with its number (`SO_MARK`), so that a dump of thousands of them tells whose they are. One
//! question to a namespace answers for all its sockets. A state that has not changed since it was asked last makes no row.
//! It is asked as often as the plan says, or more rarely where asking takes more than half a percent of a processor's time.
//!
//! What it does not model: connections over IPv6, hosts beyond the first [`NAMESPACES_MAX`], and what happens between two
//! questions.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use mqttlab_recording::{End, Sink, TcpSample};
use mqttlab_system::namespaces::Namespace;
use mqttlab_system::{netlink, sockets};
use mqttlab_units::{Duration, Instant};

/// Marks a socket as a client's.
///
/// # Errors
/// The kernel refused.
pub fn mark(socket: BorrowedFd<'_>, client: u32) -> io::Result<()> {
    sockets::set_mark(socket, client + 1)
}

/// Asks the namespaces of a run for the states of their sockets.
#[derive(Default)]
pub struct SocketStates {
    namespaces: Vec<OwnedFd>,
    /// The state last written for an end of a connection.
    last: BTreeMap<(u32, End), TcpInfoState>,
    buffer: Vec<u8>,
    interval: Duration,
    next: Instant,
}

/// A socket as the kernel describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Socket {
    pub(crate) local: SocketAddrV4,
    pub(crate) peer: SocketAddrV4,
    mark: u32,
    state: TcpInfoState,
    /// Bytes that its peer has acknowledged so far (`tcpi_bytes_acked`).
    pub(crate) acknowledged_bytes: u64,
    /// The time since it last sent data.
    pub(crate) since_sent: Duration,
    /// The time since an acknowledgement last came.
    pub(crate) since_acknowledged: Duration,
}

/// What one end of a connection knows of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TcpInfoState {
    rto_us: u32,
    srtt_us: u32,
    congestion_window_bytes: u64,
    slow_start_threshold_bytes: Option<u64>,
    unsent_bytes: u64,
    unacknowledged_bytes: u64,
}

impl SocketStates {
    /// Nobody is asked yet; who is asked is asked so often.
    pub fn every(interval: Duration) -> SocketStates {
        SocketStates { interval, ..SocketStates::default() }
    }

    /// Asks this namespace, too.
    ///
    /// # Errors
    /// The kernel has no sock_diag, or forbids it.
    pub fn watch(&mut self, namespace: &Namespace) -> io::Result<()> {
        if self.namespaces.len() < NAMESPACES_MAX {
            self.namespaces.push(namespace.run(netlink::open_diagnostics)?);
        }
        Ok(())
    }

    /// Writes a row for every end of a connection whose state has changed, if it is time to. A namespace that does not
    /// answer has none.
    pub fn sample_if_due(&mut self, now: Instant, sink: &mut Sink) {
        if now >= self.next && !self.namespaces.is_empty() {
            let began = std::time::Instant::now();
            self.sample(now, sink);
            let took = Duration::from_ns(began.elapsed().as_nanos() as u64);
            self.next = now + self.interval.max(took * REST);
        }
    }

    fn sample(&mut self, now: Instant, sink: &mut Sink) {
        let mut sockets = Vec::new();
        for namespace in &self.namespaces {
            let _ = dump(namespace, &mut self.buffer, &mut sockets);
        }
        let client_of: HashMap<SocketAddrV4, u32> = sockets
            .iter()
            .filter(|socket| socket.mark > 0)
            .map(|socket| (socket.local, socket.mark - 1))
            .collect();
        for socket in &sockets {
            let (end, client) = match socket.mark {
                0 => (End::Server, client_of.get(&socket.peer).copied()),
                mark => (End::Client, Some(mark - 1)),
            };
            // Sockets of others, such as those of a program that only looks whether the server is there.
            let Some(client) = client else { continue };
            if self.last.insert((client, end), socket.state) != Some(socket.state) {
                sink.tcp_sample(&socket.state.row(now, client, end));
            }
        }
    }
}

impl Socket {
    /// Bytes that were sent and that the peer has not acknowledged.
    pub(crate) fn in_flight_bytes(&self) -> u64 {
        self.state.unacknowledged_bytes
    }

    /// Bytes that it has sent so far, repetitions not counted.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.acknowledged_bytes + self.state.unacknowledged_bytes
    }

    #[cfg(test)]
    pub(crate) fn of(
        peer: SocketAddrV4,
        in_flight_bytes: u64,
        since_sent: Duration,
        since_acknowledged: Duration,
    ) -> Socket {
        let state = TcpInfoState { unacknowledged_bytes: in_flight_bytes, ..TcpInfoState::default() };
        Socket { local: peer, peer, mark: 0, state, acknowledged_bytes: 0, since_sent, since_acknowledged }
    }

    #[cfg(test)]
    pub(crate) fn with_acknowledged(self, acknowledged_bytes: u64) -> Socket {
        Socket { acknowledged_bytes, ..self }
    }

    #[cfg(test)]
    pub(crate) fn with_srtt(mut self, srtt: Duration) -> Socket {
        self.state.srtt_us = (srtt.as_ns() / 1000) as u32;
        self
    }

    /// The smoothed round trip.
    pub(crate) fn srtt(&self) -> Duration {
        Duration::from_us(self.state.srtt_us.into())
    }
}

impl TcpInfoState {
    /// `struct tcp_info` and the bytes that wait in the socket, acknowledged not yet or sent not yet.
    fn read(info: &[u8], waiting_bytes: u32) -> Option<TcpInfoState> {
        let segment_bytes = u64::from(u32_at(info, 16)?);
        let slow_start_threshold = u32_at(info, 76)?;
        let unsent_bytes = u64::from(u32_at(info, 144)?);
        Some(TcpInfoState {
            rto_us: u32_at(info, 8)?,
            srtt_us: u32_at(info, 68)?,
            congestion_window_bytes: u64::from(u32_at(info, 80)?) * segment_bytes,
            slow_start_threshold_bytes: (slow_start_threshold < INFINITE_THRESHOLD)
                .then(|| u64::from(slow_start_threshold) * segment_bytes),
            unsent_bytes,
            unacknowledged_bytes: u64::from(waiting_bytes).saturating_sub(unsent_bytes),
        })
    }

    fn row(&self, at: Instant, client: u32, end: End) -> TcpSample {
        TcpSample {
            at,
            client: Some(client),
            connection: None,
            end,
            rto: Duration::from_us(self.rto_us.into()),
            srtt: (self.srtt_us > 0).then(|| Duration::from_us(self.srtt_us.into())),
            congestion_window_bytes: self.congestion_window_bytes,
            slow_start_threshold_bytes: self.slow_start_threshold_bytes,
            unsent_bytes: self.unsent_bytes,
            unacknowledged_bytes: self.unacknowledged_bytes,
        }
    }
}

/// Appends every established TCP socket over IPv4 of the namespace that the netlink socket is of.
///
/// # Errors
/// The kernel does not answer.
pub(crate) fn dump(netlink: impl AsFd, buffer: &mut Vec<u8>, sockets: &mut Vec<Socket>) -> io::Result<()> {
    netlink::say(&netlink, &request())?;
    buffer.resize(BUFFER_BYTES, 0);
    loop {
        let length = netlink::hear(&netlink, buffer)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut rest = &buffer[..length];
        while let (Some(size), Some(kind)) = (u32_at(rest, 0), u16_at(rest, 4)) {
            let size = size as usize;
            if kind != SOCK_DIAG_BY_FAMILY || size < MESSAGE_HEADER || size > rest.len() {
                // The end of the dump, or an error instead of one.
                return Ok(());
            }
            sockets.extend(read(&rest[MESSAGE_HEADER..size]));
            rest = &rest[size.next_multiple_of(4).min(rest.len())..];
        }
    }
}

/// `struct inet_diag_req_v2` behind a header.
fn request() -> [u8; MESSAGE_HEADER + 56] {
    let mut bytes = [0; MESSAGE_HEADER + 56];
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    let body = &mut bytes[MESSAGE_HEADER..];
    body[0] = libc::AF_INET as u8;
    body[1] = libc::IPPROTO_TCP as u8;
    body[2] = 1 << (INET_DIAG_INFO - 1);
    body[4..8].copy_from_slice(&(1u32 << ESTABLISHED).to_ne_bytes());
    bytes
}

/// `struct inet_diag_msg` and its attributes.
fn read(message: &[u8]) -> Option<Socket> {
    let address = |at: usize, port: usize| {
        let octets: [u8; 4] = message.get(at..at + 4)?.try_into().ok()?;
        let port = u16::from_be_bytes(message.get(port..port + 2)?.try_into().ok()?);
        Some(SocketAddrV4::new(Ipv4Addr::from(octets), port))
    };
    let (local, peer) = (address(8, 4)?, address(24, 6)?);
    let waiting_bytes = u32_at(message, 60)?;
    let (mut mark, mut state, mut ages) = (0, None, None);
    let mut rest = message.get(DIAG_BYTES..)?;
    while let (Some(size), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let size = usize::from(size);
        let value = rest.get(ATTRIBUTE_HEADER..size)?;
        match kind {
            INET_DIAG_INFO => {
                state = TcpInfoState::read(value, waiting_bytes);
                ages = u32_at(value, 44).zip(u32_at(value, 56)).zip(u64_at(value, 120));
            }
            INET_DIAG_MARK => mark = u32_at(value, 0)?,
            _ => {}
        }
        rest = rest.get(size.next_multiple_of(4)..).unwrap_or_default();
    }
    let ((since_sent, since_acknowledged), acknowledged_bytes) = ages?;
    let ms = |ms: u32| Duration::from_ms(ms.into());
    let (since_sent, since_acknowledged) = (ms(since_sent), ms(since_acknowledged));
    Some(Socket { local, peer, mark, state: state?, acknowledged_bytes, since_sent, since_acknowledged })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// So many times as long as asking took nothing is asked.
const REST: u64 = 200;
/// Each takes a descriptor.
const NAMESPACES_MAX: usize = 64;
const MESSAGE_HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
/// The size of `struct inet_diag_msg`.
const DIAG_BYTES: usize = 72;
/// The kernel fills a dump's messages up to 32 KiB.
const BUFFER_BYTES: usize = 32 << 10;
/// The kernel's word for "no slow-start threshold" (`TCP_INFINITE_SSTHRESH`).
const INFINITE_THRESHOLD: u32 = 0x7fff_ffff;
// linux/sock_diag.h, linux/inet_diag.h and net/tcp_states.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_MARK: u16 = 15;
const ESTABLISHED: u32 = 1;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn both_ends_of_a_connection_are_found_with_what_waits_in_them() {
        let Ok(netlink) = netlink::open_diagnostics() else { return };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_server, _) = listener.accept().unwrap();
        // Without the right to mark there is no way to tell whose it is.
        let marked = mark(client.as_fd(), 6).is_ok();
        client.write_all(&[0; 1000]).unwrap();
        let mut sockets = Vec::new();
        dump(&netlink, &mut Vec::new(), &mut sockets).unwrap();
        let of = |local| sockets.iter().find(|socket| std::net::SocketAddr::V4(socket.local) == local);
        let near = of(client.local_addr().unwrap()).unwrap();
        let far = of(client.peer_addr().unwrap()).unwrap();
        assert_eq!((near.peer, far.peer), (far.local, near.local));
        assert_eq!((near.mark, far.mark), (if marked { 7 } else { 0 }, 0));
        assert!(near.state.congestion_window_bytes >= 10 * 536, "{near:?}");
        assert!(near.state.rto_us >= 200_000, "{near:?}");
        assert_eq!(near.state.slow_start_threshold_bytes, None);
    }
}
