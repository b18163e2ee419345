//! What a simulation looks like at an instant, as JSON: for debugging, and for whoever wants to watch one.
//!
//! ```text
//!   state ──► counts · links (queues) · hosts ──► clients (sessions) · servers (queues, sessions) · sockets (TCP)
//! ```
//!
//! Looking changes nothing. `docs/explanation/simulator.md` documents the fields; times and sizes are in the unit that ends their names.

use serde::Serialize;

use mqttlab_tcp::{ConnectionState as TcpState, Endpoint, RecoveryPhase};
use mqttlab_units::Instant;

use crate::clients::client::Client;
use crate::hosts::connections::SimConnection;
use crate::hosts::wire::FrameCounts;
use crate::ids::{HostId, ServerId, Side};
use crate::servers::ServerModel;
use crate::simulation::Simulation;

/// A simulation at an instant.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct SimulationState {
    pub at_ns: u64,
    pub phase: &'static str,
    pub events: u64,
    pub next_event_at_ns: Option<u64>,
    pub frames: FrameCounts,
    pub counts: SimCounts,
    pub links: Vec<LinkState>,
    pub hosts: Vec<HostState>,
}

/// What has been counted so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct SimCounts {
    pub connected: u32,
    pub ready: u32,
    pub failed: u32,
    pub offered: u64,
    pub sent: u64,
    pub expected: u64,
    pub delivered: u64,
    pub unacknowledged: i64,
    pub disconnects: u64,
    pub dropped_by_broker: u64,
}

/// A link's queue: what waits for its transmitter or is being sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct LinkState {
    pub link: String,
    pub queue_frames: usize,
    pub queue_bytes: u64,
}

/// What is on a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct HostState {
    pub host: String,
    pub clients: Vec<ClientState>,
    pub servers: Vec<ServerState>,
    pub sockets: Vec<SocketState>,
}

/// A client and its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct ClientState {
    pub client: String,
    /// `waiting` for its next attempt, `opening`, `open`, `away` or `gone`.
    pub connection: &'static str,
    pub next_attempt_at_ns: Option<u64>,
    /// Whether the broker has accepted the connection.
    pub online: bool,
    /// QoS 1 and 2 messages in flight or waiting for the window.
    pub unacknowledged: usize,
    /// Messages that wait for their first sending.
    pub unsent: usize,
    /// Messages in the stream that the socket has not taken whole.
    pub unwritten: usize,
    /// QoS 2 messages that wait for their PUBREL.
    pub held: usize,
}

/// A server's queues and sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct ServerState {
    pub server: u32,
    /// Packets read and not served.
    pub inbox: usize,
    /// Packets served and not written.
    pub outbox: usize,
    /// When the packet being served is done.
    pub busy_until_ns: Option<u64>,
    pub sessions: Vec<SessionState>,
}

/// A session at a broker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct SessionState {
    pub client: String,
    pub connected: bool,
    pub subscriptions: usize,
    /// QoS 1 and 2 messages sent and not acknowledged, and how many may be.
    pub in_flight: usize,
    pub window: u16,
    /// Messages that wait behind the window.
    pub waiting: usize,
    /// QoS 2 messages of the client whose PUBREL has not come.
    pub held: usize,
}

/// One end of a TCP connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct SocketState {
    /// The connection's number in the recording.
    pub connection: u32,
    pub client: String,
    pub side: &'static str,
    pub port: u16,
    pub peer_port: u16,
    /// RFC 9293's.
    pub state: &'static str,
    /// `open`, `fast_recovery` or `timeout_recovery`.
    pub recovery: &'static str,
    /// In bytes or segments, as the stack counts; with it the three that follow.
    pub congestion_window: u64,
    /// `None` before the first loss.
    pub slow_start_threshold: Option<u64>,
    pub in_flight: u64,
    pub unacknowledged_bytes: u64,
    pub srtt_ns: Option<u64>,
    pub rto_ns: u64,
    pub next_timer_at_ns: Option<u64>,
    /// Written by the program and not taken by the socket.
    pub unwritten_bytes: u64,
    pub unwritten_packets: usize,
    /// Arrived and not read by the program.
    pub unread_bytes: u64,
}

impl Simulation {
    /// What it looks like now.
    ///
    /// # Errors
    /// A sentence, when the names of hosts and links cannot be read back from the recording.
    pub fn state(&self) -> Result<SimulationState, String> {
        let layout = self.evidence.layout().map_err(|error| error.to_string())?;
        let host = |name: &String| HostState { host: name.clone(), ..HostState::default() };
        let mut hosts: Vec<HostState> = layout.hosts.iter().map(host).collect();
        for (id, client) in self.clients.iter() {
            let HostId(host) = self.groups.host_of(id);
            hosts[host as usize].clients.push(client_state(self.groups.name_of(id), client));
        }
        for (id, server) in self.servers.iter() {
            let HostId(host) = self.transport.hosts().listener(id).host;
            hosts[host as usize].servers.push(server_state(id, server));
        }
        for connection in self.transport.connections().iter() {
            for side in Side::BOTH {
                let HostId(host) = connection.hosts[side as usize];
                // A connection that carries many clients' packets is no single one's.
                let client = connection.client.map_or(String::new(), |client| self.groups.name_of(client));
                hosts[host as usize].sockets.push(socket_state(client, connection, side));
            }
        }
        let queues = self.transport.wire().queues(self.now());
        let link = |(link, (queue_frames, queue_bytes)): (&String, (usize, u64))| LinkState {
            link: link.clone(),
            queue_frames,
            queue_bytes,
        };
        Ok(SimulationState {
            at_ns: self.now().as_ns(),
            phase: self.conductor.stage().name(),
            events: self.events,
            next_event_at_ns: self.next_event_at().map(Instant::as_ns),
            frames: self.transport.wire().counts(),
            counts: self.counts(),
            links: layout.links.iter().zip(queues).map(link).collect(),
            hosts,
        })
    }

    /// What has been counted so far.
    pub fn counts(&self) -> SimCounts {
        let books = &self.books;
        SimCounts {
            connected: books.connected.max(0) as u32,
            ready: books.ready.max(0) as u32,
            failed: books.failed,
            offered: books.offered,
            sent: books.sent,
            expected: books.expected,
            delivered: books.delivered,
            unacknowledged: books.unacknowledged,
            disconnects: books.disconnects,
            dropped_by_broker: self.servers.dropped(),
        }
    }
}

fn client_state(name: String, client: &Client) -> ClientState {
    let snapshot = client.snapshot();
    let (connection, next_attempt) = match snapshot.state {
        mqttlab_client::State::Waiting(at) => ("waiting", Some(at)),
        mqttlab_client::State::Opening { .. } => ("opening", None),
        mqttlab_client::State::Open { .. } => ("open", None),
        mqttlab_client::State::Away => ("away", None),
        mqttlab_client::State::Gone => ("gone", None),
    };
    ClientState {
        client: name,
        connection,
        next_attempt_at_ns: next_attempt.map(Instant::as_ns),
        online: snapshot.is_online,
        unacknowledged: snapshot.unacknowledged,
        unsent: snapshot.not_put,
        unwritten: snapshot.unwritten,
        held: snapshot.held,
    }
}

fn server_state(id: ServerId, server: &dyn ServerModel) -> ServerState {
    let look = server.snapshot();
    let session = |session: mqttlab_mqtt::broker::SessionInfo<'_>| SessionState {
        client: session.client.to_owned(),
        connected: session.connection.is_some(),
        subscriptions: session.subscriptions,
        in_flight: session.in_flight,
        window: session.window,
        waiting: session.waiting,
        held: session.held,
    };
    ServerState {
        server: id.0,
        inbox: look.inbox,
        outbox: look.outbox,
        busy_until_ns: look.busy_until.map(Instant::as_ns),
        sessions: look.sessions.into_iter().map(session).collect(),
    }
}

fn socket_state(client: String, connection: &SimConnection, side: Side) -> SocketState {
    let end: &Endpoint = &connection.ends[side as usize];
    let (info, stream) = (end.info(), &connection.streams[side as usize]);
    SocketState {
        connection: connection.number,
        client,
        side: if side == Side::Client { "client" } else { "server" },
        port: connection.ports[side as usize],
        peer_port: connection.ports[side.other() as usize],
        state: tcp_word(info.state),
        recovery: match info.phase {
            RecoveryPhase::Open => "open",
            RecoveryPhase::Fast => "fast_recovery",
            RecoveryPhase::Timeout => "timeout_recovery",
        },
        congestion_window: info.congestion_window,
        slow_start_threshold: Some(info.slow_start_threshold).filter(|&threshold| threshold < u64::MAX),
        in_flight: info.in_flight,
        unacknowledged_bytes: info.unacknowledged_bytes,
        srtt_ns: info.srtt.map(|srtt| srtt.as_ns()),
        rto_ns: info.rto.as_ns(),
        next_timer_at_ns: end.next_deadline().map(Instant::as_ns),
        unwritten_bytes: stream.waiting(),
        unwritten_packets: stream.packets_waiting(),
        unread_bytes: end.readable(),
    }
}

/// A connection's state as RFC 9293 and the kernel's tools write it.
fn tcp_word(state: TcpState) -> &'static str {
    match state {
        TcpState::Closed => "CLOSED",
        TcpState::Listen => "LISTEN",
        TcpState::SynSent => "SYN-SENT",
        TcpState::SynReceived => "SYN-RECEIVED",
        TcpState::Established => "ESTABLISHED",
        TcpState::FinWait1 => "FIN-WAIT-1",
        TcpState::FinWait2 => "FIN-WAIT-2",
        TcpState::CloseWait => "CLOSE-WAIT",
        TcpState::Closing => "CLOSING",
        TcpState::LastAck => "LAST-ACK",
        TcpState::TimeWait => "TIME-WAIT",
    }
}
